// The choice of columns in wide lists, remembered by the browser.

import { listName, readStored, store } from "./console_lists.js";

const HIDDEN_COLUMNS = "console-columns";
const FEWEST_COLUMNS = 6;

let before = { open: false, focused: false };

// A list that refreshes itself replaces the menu, which may be open.
export function rememberColumnsMenu() {
  const menu = document.getElementById("columns");
  before = {
    open: Boolean(menu?.open),
    focused: Boolean(menu?.contains(document.activeElement)),
  };
}

// Until somebody chooses, the columns that are seldom needed are hidden.
function hiddenColumns(table) {
  const seldom = table.tHead.querySelectorAll(".seldom");
  return readStored(HIDDEN_COLUMNS)[listName(location.pathname)] ?? [...seldom].map(columnName);
}

// By name, because the same list may have other columns for another person.
function applyColumns(table) {
  const names = hiddenColumns(table);
  const numbers = [...table.tHead.rows[0].cells]
    .map((cell, index) => (index && names.includes(columnName(cell)) ? index + 1 : 0))
    .filter(Boolean);
  table.dataset.hidden = numbers.join(" ");
}

function columnName(cell) {
  return cell.textContent.trim();
}

function isRowHeader(table, index) {
  return table.tBodies[0]?.rows[0]?.cells[index]?.tagName === "TH";
}

// The style sheet hides such a column, so that there is nothing to choose.
function isEmpty(table, index) {
  const rows = [...(table.tBodies[0]?.rows ?? [])];
  return rows.length > 0 && rows.every((row) => row.cells[index].classList.contains("none"));
}

function columnBox(table, cell) {
  const label = document.createElement("label");
  const box = document.createElement("input");
  const name = columnName(cell);
  box.type = "checkbox";
  box.checked = !hiddenColumns(table).includes(name);
  box.addEventListener("change", () => {
    const others = hiddenColumns(table).filter((other) => other !== name);
    const names = box.checked ? others : [...others, name];
    store(HIDDEN_COLUMNS, { ...readStored(HIDDEN_COLUMNS), [listName(location.pathname)]: names });
    applyColumns(table);
  });
  label.append(box, ` ${name}`);
  return label;
}

// The words are the server's, so that they are translated with the page.
export function offerColumns(table) {
  const frame = table.parentElement;
  const words = document.querySelector("template#columns-menu");
  const cells = [...(table.tHead?.rows[0]?.cells ?? [])];
  if (!words || cells.length < FEWEST_COLUMNS || !table.closest("#list")) return;
  // A table with joined cells has no numbered columns.
  if (!table.classList.contains("stacks")) return;
  applyColumns(table);
  if (document.getElementById(words.content.firstElementChild.id)) return;
  const menu = words.content.firstElementChild.cloneNode(true);
  const chosen = cells.filter(
    (cell, index) => index && !isRowHeader(table, index) && !isEmpty(table, index),
  );
  const fill = () => {
    const boxes = chosen.map((cell) => columnBox(table, cell));
    menu.querySelector(".menu-panel").append(...boxes);
  };
  menu.addEventListener("toggle", fill, { once: true });
  frame.before(menu);
  menu.open = before.open;
  if (before.focused) menu.querySelector("summary").focus();
}
