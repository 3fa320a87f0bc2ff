// The page as respondents see it, in a frame: marks its parts and lets them be chosen.

import { morph } from "./editor_morph.js";

export class Canvas {
  constructor(frame, onChoose) {
    this.frame = frame;
    this.onChoose = onChoose;
    this.selected = "";
    this.revealed = "";
    this.marks = null;
    frame.addEventListener("load", () => this.start());
    if (this.document?.readyState === "complete") this.start();
  }

  get document() {
    return this.frame.contentDocument;
  }

  start() {
    const data = this.document?.getElementById("marks");
    if (!data) return;
    this.marks ??= JSON.parse(data.textContent);
    this.document.addEventListener("click", (event) => {
      event.preventDefault();
      const part = event.target.closest("[data-ed-key]");
      if (part) this.onChoose(part.dataset.edKey);
    });
    this.decorate();
  }

  show({ html, marks, language, direction }) {
    this.marks = marks;
    const document = this.document;
    const page = document?.getElementById("page");
    if (!page) return;
    document.documentElement.lang = language;
    document.documentElement.dir = direction;
    morph(page, html);
    const empty = document.querySelector(".ed-empty");
    if (empty) empty.hidden = Boolean(html);
    this.decorate();
  }

  select(key) {
    this.selected = key;
    this.decorate();
  }

  decorate() {
    const document = this.document;
    if (!document || !this.marks) return;
    for (const badges of document.querySelectorAll(".ed-badges")) badges.remove();
    for (const item of document.querySelectorAll("[data-item]")) {
      // Nothing is answered here, and a click selects the whole question.
      for (const child of item.children) child.inert = child.nodeName !== "LEGEND";
      const mark = this.marks.items[item.dataset.item];
      if (mark) this.mark(item, mark);
    }
    for (const block of document.querySelectorAll("[data-block]")) {
      const key = this.marks.blocks[block.dataset.block];
      const head = block.querySelector(".stem, .block-title") ?? block.querySelector(".grid-head");
      if (key && head) this.assign(head, key);
    }
    const title = document.querySelector(".page-title");
    if (title && this.marks.page) this.assign(title, this.marks.page);
    if (this.selected !== this.revealed) this.reveal(document.querySelector(".ed-selected"));
  }

  // Only the frame scrolls: `scrollIntoView` would scroll the editor around it as well.
  reveal(chosen) {
    if (!chosen) return;
    this.revealed = this.selected;
    const view = this.document.defaultView;
    const { top, bottom } = chosen.getBoundingClientRect();
    if (top < 0 || bottom > view.innerHeight) {
      const below = bottom - view.innerHeight + 8;
      view.scrollBy(0, top < 0 ? top - 8 : Math.min(top - 8, below));
    }
  }

  assign(element, key) {
    element.classList.add("ed-part");
    element.dataset.edKey = key;
    element.classList.toggle("ed-selected", key === this.selected);
  }

  mark(item, mark) {
    this.assign(item, mark.key);
    item.classList.toggle("ed-unfinished", Boolean(mark.missing));
    // Respondents would see the name of the variable there.
    const label = mark.missing && item.querySelector(".label-text, p");
    if (label) label.textContent = mark.missing;
    if (!mark.badges.length && !mark.problems.length) return;
    const badges = this.document.createElement("div");
    badges.className = "ed-badges";
    const add = (words, className) => {
      const badge = this.document.createElement("span");
      badge.className = className;
      badge.textContent = words;
      badges.append(badge);
    };
    for (const words of mark.badges) add(words, "ed-badge");
    for (const words of mark.problems) add(words, "ed-badge ed-wrong");
    item.prepend(badges);
  }
}
