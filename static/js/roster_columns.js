// Shows the first values of a column as soon as it is chosen, and what each column
// of the file is used for. Without this script, a table lists all of them.

const samples = JSON.parse(document.querySelector("#samples").textContent);
const selects = [...document.querySelectorAll("select[data-column]")];

function showValues(select) {
  const values = samples[select.value] ?? [];
  const shown = document.getElementById(`${select.id}_samples`);
  shown.textContent = values.length ? `Such as: ${values.join(" · ")}` : "";
  if (select.value && !values.length) shown.textContent = "This column is empty.";
}

function showUses() {
  for (const row of document.querySelectorAll("tr[data-header]")) {
    const used = selects.filter(({ value }) => value === row.dataset.header);
    const labels = used.map(({ id }) => document.querySelector(`label[for="${id}"]`));
    row.querySelector("[data-use]").textContent = labels.length
      ? labels.map(({ firstChild }) => firstChild.textContent.trim()).join(", ")
      : "Left out";
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
