// The outline: its menu, moving lines by keys and by dragging.

import { word } from "./editor_messages.js";
import { morph } from "./editor_morph.js";

const DOTS = document.querySelector("#ed-actions .icon")?.outerHTML ?? "⋮";

export class Outline {
  // `act` does something with a row; `choose` selects it.
  constructor(list, { act, choose }) {
    this.list = list;
    this.act = act;
    this.choose = choose;
    this.menu = document.getElementById("ed-menu");
    this.opener = null;
    list.addEventListener("click", (event) => this.onClick(event));
    list.addEventListener("keydown", (event) => this.onKey(event));
    this.menu.addEventListener("click", (event) => this.onMenu(event));
    this.menu.addEventListener("keydown", (event) => this.onMenuKey(event));
    document.addEventListener("click", ({ target }) => {
      if (!this.menu.contains(target) && !target.closest?.(".ed-more")) this.close();
    });
    this.decorate();
  }

  // A line that moved to another page is another element, and keeps the focus.
  show(html) {
    const focused = document.activeElement?.closest?.("#ed-pages a")?.dataset.at;
    morph(this.list, html);
    this.decorate();
    if (!focused || this.list.contains(document.activeElement)) return;
    const link = this.list.querySelector(`a[data-at="${CSS.escape(focused)}"]`);
    link?.focus({ preventScroll: true });
  }

  decorate() {
    for (const line of this.list.querySelectorAll(".ed-line[data-key]")) {
      if (!line.querySelector(".ed-more")) {
        const more = document.createElement("button");
        more.type = "button";
        more.className = "ed-more";
        more.dataset.own = "yes";
        more.tabIndex = -1;
        more.setAttribute("aria-haspopup", "menu");
        more.setAttribute("aria-expanded", "false");
        more.innerHTML = DOTS;
        line.append(more);
      }
      const link = line.querySelector("a");
      const more = line.querySelector(".ed-more");
      more.setAttribute("aria-label", this.nameOfMenu(line));
      more.tabIndex = link.hasAttribute("aria-current") ? 0 : -1;
    }
    this.enterAt(this.list.querySelector(".ed-line > [aria-current]"));
    this.makeSortable();
  }

  // The Tab key stops at one line; arrow keys lead to the others.
  enterAt(link) {
    const links = [...this.list.querySelectorAll(".ed-line > a")];
    const focused = links.includes(document.activeElement) ? document.activeElement : null;
    const stop = focused ?? link ?? links[0];
    for (const each of links) each.tabIndex = each === stop ? 0 : -1;
  }

  focusCurrent() {
    this.list.querySelector(".ed-line > [aria-current]")?.focus();
  }

  nameOfMenu(line) {
    // Of a note, its first line.
    const [text] = line.querySelector(".ed-text").textContent.trim().split("\n");
    const n = line.querySelector(".ed-number").textContent;
    if (!n) return word("actions for", { text });
    return word(line.matches(".ed-head") ? "actions for page" : "actions for question", { n, text });
  }

  makeSortable() {
    if (!globalThis.Sortable) return;
    const options = {
      animation: 120,
      delay: 150,
      delayOnTouchOnly: true,
      filter: ".ed-more",
      preventOnFilter: false,
      onEnd: (event) => this.onDrop(event),
    };
    for (const entries of this.list.querySelectorAll(".ed-entries")) {
      if (!globalThis.Sortable.get(entries)) {
        globalThis.Sortable.create(entries, { ...options, group: "entries", draggable: ".ed-line" });
      }
    }
    if (!globalThis.Sortable.get(this.list)) {
      globalThis.Sortable.create(this.list, { ...options, draggable: ".ed-page[data-key]", handle: ".ed-head" });
    }
  }

  // What the server need not send again.
  digests() {
    const pages = [...this.list.querySelectorAll(".ed-page[data-key]")];
    return pages.map((page) => page.dataset.digest ?? "").join("");
  }

  onDrop({ item, from, to, oldIndex, newIndex }) {
    if (from === to && oldIndex === newIndex) return;
    // Nobody has stored yet what is shown now.
    for (const list of [from, to]) delete list.closest(".ed-page")?.dataset.digest;
    const after = item.classList.contains("ed-page") ? this.pageBefore(item) : this.lineBefore(item);
    if (after !== null) this.act(`place:${item.dataset.key}`, { after });
  }

  pageBefore(page) {
    const before = page.previousElementSibling;
    if (!before) return "";
    if (before.dataset.key) return before.dataset.key;
    const lines = [...before.querySelectorAll('.ed-line[data-depth="0"]')];
    return lines.at(-1)?.dataset.key ?? "";
  }

  // Below a line of the same depth, or at the start of the page.
  lineBefore(item) {
    let before = item.previousElementSibling;
    if (item.dataset.depth === "1" && before) {
      const isHead = before.dataset.depth === "0" && before.matches(".ed-grid, .ed-heading");
      return isHead ? `into:${before.dataset.key}` : before.dataset.key;
    }
    while (before && before.dataset.depth !== "0") before = before.previousElementSibling;
    if (before) return before.dataset.key;
    const page = item.closest(".ed-page");
    return page.dataset.key ? `into:${page.dataset.key}` : this.pageBefore(page);
  }

  select(key) {
    for (const link of this.list.querySelectorAll("[aria-current]")) {
      link.removeAttribute("aria-current");
    }
    const link = this.list.querySelector(`a[data-at="${CSS.escape(key)}"]`);
    link?.setAttribute("aria-current", "true");
    this.enterAt(link);
    this.reveal();
  }

  // Only the list scrolls, and not the page around it.
  reveal() {
    const line = this.list.querySelector("[aria-current]");
    if (!line) return;
    const list = this.list.getBoundingClientRect();
    const { top, bottom } = line.getBoundingClientRect();
    // The end of the list may be below the window.
    const isInWindow = list.top < window.innerHeight;
    const end = isInWindow ? Math.min(list.bottom, window.innerHeight) : list.bottom;
    if (top < list.top) this.list.scrollTop -= list.top - top + 8;
    else if (bottom > end) this.list.scrollTop += bottom - end + 8;
  }

  onClick(event) {
    const more = event.target.closest(".ed-more");
    if (more) this.open(more);
  }

  open(more) {
    if (this.opener === more) {
      this.close();
      return;
    }
    this.close();
    this.opener = more;
    more.setAttribute("aria-expanded", "true");
    this.menu.hidden = false;
    const box = more.getBoundingClientRect();
    const height = this.menu.offsetHeight;
    const top = box.bottom + height > window.innerHeight ? box.top - height : box.bottom;
    this.menu.style.insetBlockStart = `${Math.max(top, 8)}px`;
    const width = this.menu.offsetWidth;
    const left = Math.min(Math.max(box.right - width, 8), window.innerWidth - width - 8);
    this.menu.style.left = `${left}px`;
    this.menu.querySelector("button").focus();
  }

  close({ focus = false } = {}) {
    if (!this.opener) return;
    this.opener.setAttribute("aria-expanded", "false");
    if (focus) this.opener.focus();
    this.opener = null;
    this.menu.hidden = true;
  }

  onMenu({ target }) {
    const chosen = target.closest("[data-act]");
    if (!chosen || !this.opener) return;
    const { key } = this.opener.closest(".ed-line").dataset;
    const link = this.opener.closest(".ed-line").querySelector("a");
    this.close();
    link.focus();
    this.run(chosen.dataset.act, key);
  }

  run(act, key) {
    if (act === "move-to") this.askPlace(key);
    else this.act(`${act}:${key}`);
  }

  onMenuKey(event) {
    const buttons = [...this.menu.querySelectorAll("button")];
    const place = buttons.indexOf(document.activeElement);
    const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: -1 }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      buttons.at(next % buttons.length).focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      this.close({ focus: true });
    }
  }

  // Arrow keys go through the lines; with Alt, they move the line.
  onKey(event) {
    const line = event.target.closest(".ed-line[data-key], .ed-head");
    if (!line || !["ArrowUp", "ArrowDown", "Delete"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Delete") {
      if (line.dataset.key) this.act(`delete:${line.dataset.key}`);
    } else if (event.altKey) {
      if (line.dataset.key) this.act(`${event.key === "ArrowUp" ? "up" : "down"}:${line.dataset.key}`);
    } else {
      const links = [...this.list.querySelectorAll(".ed-line > a")];
      const place = links.indexOf(line.querySelector("a"));
      const next = links[place + (event.key === "ArrowUp" ? -1 : 1)];
      next?.focus();
      this.enterAt(next);
    }
  }

  askPlace(key) {
    const dialog = document.getElementById("ed-move");
    const select = document.getElementById("ed-place");
    select.replaceChildren(...this.places(key));
    dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => {
        if (dialog.returnValue && select.value) {
          this.act(`place:${key}`, { after: select.value });
        }
      },
      { once: true },
    );
    dialog.showModal();
    select.focus();
  }

  places(key) {
    const isPage = Boolean(this.list.querySelector(`.ed-page[data-key="${CSS.escape(key)}"]`));
    const options = [];
    const markHere = () => {
      const here = options.at(-1);
      if (!here) return;
      here.text = word("now here", { text: here.text });
      here.selected = true;
    };
    const add = (value, text) => {
      if (value === key) markHere();
      else options.push(new Option(text, value));
    };
    for (const page of this.list.querySelectorAll(".ed-page")) {
      const title = page.querySelector(".ed-head .ed-text").textContent;
      if (isPage) {
        if (page.dataset.key) add(page.dataset.key, title);
        continue;
      }
      if (page.dataset.key) {
        add(`into:${page.dataset.key}`, word("start of page", { n: `${page.dataset.page}: ${title}` }));
      }
      for (const line of page.querySelectorAll('.ed-line[data-depth="0"]')) {
        add(line.dataset.key, line.querySelector(".ed-text").textContent);
      }
    }
    return options;
  }
}
