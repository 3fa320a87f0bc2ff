// Lists of the console: keys, the remembered order, and rows on narrow screens.

const SORTS = "console-sorts";

// The name of a list: its address without the numbers of what it is about.
export function listName(path) {
  return path.replace(/\d+/g, "0");
}

export function readStored(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    // Storage is blocked, or holds something else.
    return {};
  }
}

export function store(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The choice holds until the page is left.
  }
}

function rememberSort(link) {
  const sort = new URL(link.href).searchParams.get("sort");
  store(SORTS, { ...readStored(SORTS), [listName(location.pathname)]: sort });
}

// A link to a list leads to the order that was last chosen there.
function keepSort(link) {
  const sort = readStored(SORTS)[listName(link.pathname)];
  if (!sort || link.origin !== location.origin) return;
  const address = new URL(link.href);
  if (address.searchParams.has("sort")) return;
  address.searchParams.set("sort", sort);
  link.href = address.href;
}

function rememberOrder(event) {
  const link = event.target.closest("a[href]");
  if (!link) return;
  if (link.matches(".sort")) rememberSort(link);
  // Links of the list itself say what they change.
  else if (!link.hasAttribute("hx-get") && link.pathname !== location.pathname) keepSort(link);
}

function mainLink(row) {
  return row?.querySelector(":scope > th a") ?? row?.querySelector("a");
}

function nextLink(row, step) {
  for (let other = row[step]; other; other = other[step]) {
    const link = mainLink(other);
    if (link) return link;
  }
  return null;
}

// From the search field, arrow keys go through the rows.
function goalOfKey(key, target, field) {
  if (key !== "ArrowDown" && key !== "ArrowUp") return null;
  if (target === field) {
    const links = [...document.querySelectorAll("#list .list tbody tr")].map(mainLink);
    return key === "ArrowDown" ? (links.find(Boolean) ?? null) : null;
  }
  const row = target.closest(".list tbody tr");
  if (!row || target !== mainLink(row)) return null;
  if (key === "ArrowDown") return nextLink(row, "nextElementSibling") ?? target;
  return nextLink(row, "previousElementSibling") ?? field;
}

function moveByKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  const field = document.querySelector(".search input[type=search]");
  const goal = goalOfKey(event.key, event.target, field);
  if (!goal) return;
  event.preventDefault();
  goal.focus();
  if (goal === field) field.select();
}

// A refreshed list has new elements: the focus stays on the link to the same page.
let focusedAddress = null;

function rememberFocus() {
  focusedAddress = document.activeElement?.closest("#list a[href]")?.href ?? null;
}

function restoreFocus() {
  if (!focusedAddress || document.activeElement !== document.body) return;
  const links = [...document.querySelectorAll("#list a[href]")];
  links.find((link) => link.href === focusedAddress)?.focus();
}

// On a narrow screen each row is a card, and each cell has its column's name.
// Roles, because cells that are no table's cells for CSS lose them.
export function stackRows(table) {
  const heads = table.tHead?.rows;
  if (heads?.length !== 1 || table.querySelector("[colspan], [rowspan]")) return;
  const names = [...heads[0].cells].map((cell) => cell.textContent.trim());
  if (names.length < 3) return;
  table.setAttribute("role", "table");
  for (const part of table.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    for (const cell of row.cells) {
      const isHead = row.parentElement === table.tHead;
      const role = cell.tagName === "TD" ? "cell" : isHead ? "columnheader" : "rowheader";
      cell.setAttribute("role", role);
      if (!isHead) cell.dataset.label = names[cell.cellIndex];
    }
  }
  table.classList.add("stacks");
}

// The header of a table that is not wider than the page stays in view.
const fittingTables = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const frame = target.parentElement;
    frame?.classList.toggle("fits", target.offsetWidth <= frame.clientWidth);
  }
});

export function keepHeader(table) {
  fittingTables.observe(table);
}

export function listTables() {
  const tables = [...document.querySelectorAll(".table-frame > .list")];
  return tables.filter((table) => !table.closest(".chart, .role-panel"));
}

export function startListKeys() {
  document.addEventListener("click", rememberOrder, true);
  document.addEventListener("keydown", moveByKey);
  document.addEventListener("htmx:beforeSwap", rememberFocus);
  document.addEventListener("htmx:afterSwap", restoreFocus);
}
