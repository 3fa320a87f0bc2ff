// Small improvements of the console, which also works without this script.

import { keepHeader, listTables, stackRows, startListKeys } from "./console_lists.js";
import { offerColumns, rememberColumnsMenu } from "./console_columns.js";
import { foldFilters } from "./console_filters.js";
import { startMenus } from "./console_menus.js";

function prepareLists() {
  for (const table of listTables()) {
    stackRows(table);
    keepHeader(table);
    offerColumns(table);
  }
}

startMenus();
startListKeys();
foldFilters();
prepareLists();
document.addEventListener("htmx:beforeSwap", rememberColumnsMenu);
document.addEventListener("htmx:afterSwap", prepareLists);

// Ignores the second click on a button that sends a form.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) {
    return;
  }
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
});

// A page that the back button shows again may send its form again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
  }
});

// An empty filter means the same as none: links that people share stay short.
document.addEventListener("formdata", ({ target, formData }) => {
  if (target.method !== "get") return;
  for (const name of new Set(formData.keys())) {
    if (!formData.getAll(name).some(Boolean)) formData.delete(name);
  }
});

// After a form was refused, reading goes on at the list of what is wrong in it.
const problems = document.querySelector(".error-summary");
if (problems) {
  document.title = `${problems.dataset.title} ${document.title}`;
  problems.focus();
}

// What is being corrected is no longer listed, nor marked at its field. While it is
// typed: later, the page would move below a button that is being pressed.
document.addEventListener("input", ({ target }) => {
  const row = target.closest(".form-row.wrong");
  if (!row || !problems) return;
  row.classList.remove("wrong");
  for (const error of row.querySelectorAll(".error")) error.remove();
  for (const input of row.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
  }
  for (const link of problems.querySelectorAll("a")) {
    if (row.contains(document.getElementById(link.hash.slice(1)))) link.parentElement.remove();
  }
  if (problems.querySelector("li, p")) return;
  problems.remove();
  document.title = document.title.slice(problems.dataset.title.length + 1);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest(".error-summary a");
  const input = link && document.getElementById(link.hash.slice(1));
  if (!input) return;
  event.preventDefault();
  const folded = input.closest("details");
  if (folded) folded.open = true;
  // The label and the error stand above and below the input.
  (input.closest(".form-row") ?? input).scrollIntoView();
  input.focus({ preventScroll: true });
});
