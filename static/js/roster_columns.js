// Lists what is still missing while the columns of a roster are chosen, and offers one
// place for all rows where no column names it. Without this script, the page lists it
// each time that the form is sent.

const heads = [...document.querySelectorAll("select[data-column]")];
const places = [...document.querySelectorAll("[data-place] select")];
const nowhere = [...document.querySelectorAll("[data-nowhere]")];
const needs = [...document.querySelectorAll("[data-needs]")];
// Where errors are listed, nothing else says what is missing.
const nothingMissing = document.querySelector("#nothing-missing");

function showMissing() {
  const columns = new Set(heads.map(({ value }) => value));
  const answered = new Set([
    ...columns,
    ...places.filter(({ value }) => value).map(({ name }) => name),
    ...nowhere.filter(({ checked }) => checked).map(({ name }) => name),
  ]);
  for (const need of needs) {
    need.hidden = need.dataset.needs.split(" ").some((name) => answered.has(name));
  }
  if (nothingMissing) {
    nothingMissing.hidden = needs.some(({ hidden }) => !hidden);
  }
  for (const head of heads) {
    head.closest("li").classList.toggle("is-used", head.value !== "");
  }
  for (const place of places) {
    const name = place.name.replace("everyone_", "");
    const hasColumn = columns.has(name) || columns.has(`${name}_name`);
    place.closest("[data-place]").hidden = hasColumn && !place.value;
  }
}

for (const input of [...heads, ...places, ...nowhere]) {
  input.addEventListener("change", showMissing);
}

// The browser may have kept other choices when the page was reloaded.
showMissing();
