/* Search of the help site: reads one index per language, once somebody types. */

const form = document.querySelector(".search");
const field = form.querySelector("input");
const matches = form.querySelector(".matches");
const MOST_SHOWN = 12;
let index = null;

function folded(text) {
  return text
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .toLowerCase();
}

async function load() {
  const response = await fetch(form.dataset.index);
  const rows = await response.json();
  return rows.map((row) => ({
    ...row,
    headingWords: ` ${folded(row.heading)}`,
    synonymWords: ` ${folded(row.synonyms)}`,
    all: ` ${folded(`${row.page} ${row.heading} ${row.synonyms} ${row.text}`)}`,
  }));
}

/* Words of the heading count most, then what people call it, then the text. */
function ranked(words) {
  const count = (text) => words.filter((word) => text.includes(` ${word}`)).length;
  return index
    .filter((row) => words.every((word) => row.all.includes(word)))
    .map((row) => ({
      row,
      weight: 2 * count(row.headingWords) + count(row.synonymWords),
    }))
    .sort((first, second) => second.weight - first.weight)
    .slice(0, MOST_SHOWN)
    .map((match) => match.row);
}

function line(row) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = form.dataset.root.replace(/\/?$/, "/") + row.place;
  link.textContent = row.heading;
  item.append(link);
  if (row.page !== row.heading) {
    const page = document.createElement("span");
    page.className = "hint";
    page.textContent = row.page;
    item.append(" ", page);
  }
  return item;
}

async function show() {
  const words = folded(field.value).split(/\s+/).filter(Boolean);
  if (!words.length) {
    matches.hidden = true;
    return;
  }
  index ??= await load();
  const list = document.createElement("ul");
  list.append(...ranked(words).map(line));
  matches.replaceChildren(list.children.length ? list : form.dataset.none);
  matches.hidden = false;
}

field.addEventListener("input", show);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  matches.querySelector("a")?.click();
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    field.value = "";
    matches.hidden = true;
    field.focus();
  }
});
form.hidden = false;
