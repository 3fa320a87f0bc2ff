// Shows the first values of a column as soon as it is chosen, and what each column
// of the file is used for. Without this script, a table lists all of them.

const samples = JSON.parse(document.querySelector("#samples").textContent);
const words = document.querySelector("form[data-such-as]").dataset;
const selects = [...document.querySelectorAll("select[data-column]")];

function showValues(select) {
  const values = samples[select.value] ?? [];
  const shown = document.getElementById(`${select.id}_samples`);
  shown.textContent = values.length ? `${words.suchAs} ${values.join(" · ")}` : "";
  if (select.value.trim() && !values.length) shown.textContent = words.empty;
}

function showUses() {
  for (const row of document.querySelectorAll("tr[data-header]")) {
    const used = selects.filter(({ value }) => value === row.dataset.header);
    const labels = used.map(({ id }) => document.querySelector(`label[for="${id}"]`));
    row.querySelector("[data-use]").textContent = labels.length
      ? labels.map(({ firstChild }) => firstChild.textContent.trim()).join(", ")
      : words.leftOut;
  }
}

for (const select of selects) {
  select.addEventListener("change", () => {
    showValues(select);
    showUses();
  });
}

// The browser may have kept other choices when the page was reloaded.
selects.forEach(showValues);
showUses();
