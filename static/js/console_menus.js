// Menus of the console. They are links and <details>, and work without this script.

import { readStored, store } from "./console_lists.js";

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu !== except && !menu.contains(except)) menu.open = false;
  }
}

// On a narrow screen the link "Menu" shows the navigation, like a button.
function foldNavigation(link, navigation) {
  const show = (open) => {
    navigation.classList.toggle("open", open);
    navigation.classList.toggle("closed", !open);
    link.setAttribute("aria-expanded", String(open));
  };
  link.setAttribute("role", "button");
  link.setAttribute("aria-controls", navigation.id);
  link.setAttribute("aria-expanded", String(location.hash === link.hash));
  link.addEventListener("click", (event) => {
    event.preventDefault();
    show(link.getAttribute("aria-expanded") !== "true");
  });
  link.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    link.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || link.getAttribute("aria-expanded") !== "true") return;
    show(false);
    link.focus();
  });
}

// The key "/" alone can be switched off on the page My account: speech input and
// trembling hands press it without meaning to (WCAG 2.1.4).
const KEYS = "console-keys";

function slashIsOn() {
  return readStored(KEYS).slash !== false;
}

// Ctrl or Command with K go to the search; "/" to that of the list, where there is one,
// unless somebody is typing.
function focusSearch(event) {
  const isTyping = event.target.closest?.("input, select, textarea, [contenteditable]");
  const isPlain = !event.ctrlKey && !event.altKey && !event.metaKey;
  const isSlash = event.key === "/" && !isTyping && isPlain && slashIsOn();
  const isCommand = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
  if (!isSlash && !isCommand) return;
  const ofAll = document.getElementById("search-all");
  const search = isSlash ? (document.getElementById("q") ?? ofAll) : ofAll;
  if (!search) return;
  event.preventDefault();
  search.focus();
  search.select();
}

function offerKeys() {
  const box = document.getElementById("slash-key");
  if (!box) return;
  box.checked = slashIsOn();
  box.addEventListener("change", () => store(KEYS, { slash: box.checked }));
  box.closest("section").hidden = false;
}

// On a phone, the tabs scroll: the current one is in view.
function showCurrentTab() {
  const tab = document.querySelector(".tabs [aria-current]");
  tab?.scrollIntoView({ block: "nearest", inline: "center" });
}

export function startMenus() {
  showCurrentTab();
  offerKeys();
  document.addEventListener("keydown", focusSearch);
  document.addEventListener("click", ({ target }) => closeMenus(target));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = event.target.closest("details.menu[open]");
    closeMenus();
    menu?.querySelector("summary").focus();
  });
  // Tab leaves an open menu: it would cover what has the focus.
  document.addEventListener("focusin", ({ target }) => closeMenus(target));
  const link = document.querySelector(".console-menu");
  const navigation = document.getElementById("navigation");
  if (link && navigation) foldNavigation(link, navigation);
}
