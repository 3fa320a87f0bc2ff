// The form of a page: connects its controls with the answers of the survey.

import { LONGEST_TEXT, controlsOf, isAnswerable, readItem, writeItem } from "./answers.js";
import { isComputed, isRequired, offeredOptions } from "./rules.js";
import { shuffled } from "./shuffle.js";
import { clearProblem, itemElement } from "./problems.js";

// Characters before the limit of a text from which on they are counted.
const COUNTED = 500;
const TYPED_KINDS = ["text", "integer", "decimal", "date", "time", "datetime"];

export class PageForm {
  // edited() is called after each change by the person
  constructor({ section, n, survey, seed, messages, edited }) {
    Object.assign(this, { section, n, survey, messages, edited });
    this.elements = [...section.querySelectorAll("[data-item]")].filter(
      (element) => survey.item(element.dataset.item),
    );
    for (const element of this.elements) this.shuffle(element, seed);
    for (const element of this.elements) this.fill(element);
    this.refresh();
    this.listen();
  }

  // Options under the columns of a grid keep the order that all rows share.
  shuffle(element, seed) {
    const { item: name } = element.dataset;
    const item = this.survey.item(name);
    if (!item.randomize || element.closest(".grid.table")) return;
    const options = [...element.querySelectorAll("[data-value]")];
    const parent = options[0]?.parentNode;
    parent?.append(...shuffled(options, seed, name, item.seed));
  }

  fill(element) {
    const { item: name } = element.dataset;
    const item = this.survey.item(name);
    if (!isAnswerable(item)) return;
    const typed = this.survey.mistyped.get(name)?.typed;
    const { state, given } = this.survey;
    const text = isComputed(item) ? state.values[name] : given[name];
    writeItem(element, item, typed ?? text ?? "", this.messages.text("not_answered"));
  }

  refresh() {
    for (const element of this.elements) this.refreshItem(element);
    for (const block of this.section.querySelectorAll(".block")) {
      const items = [...block.querySelectorAll("[data-item]")];
      block.hidden = items.length > 0 && items.every((element) => element.hidden);
    }
    for (const place of this.section.querySelectorAll("[data-pipe]")) {
      const text = this.survey.state.values[place.dataset.pipe] ?? "";
      if (place.textContent !== text) place.textContent = text;
    }
  }

  refreshItem(element) {
    const { item: name } = element.dataset;
    const item = this.survey.item(name);
    element.hidden = !this.survey.state.relevant[name];
    if (item.choice_filter !== undefined) this.filterOptions(element, name);
    if (typeof item.required === "object") this.markRequired(element, name);
    // Never changes a text while it is being typed.
    if (!TYPED_KINDS.includes(item.kind) || isComputed(item)) this.fill(element);
  }

  filterOptions(element, name) {
    const { outline, state } = this.survey;
    const options = offeredOptions(outline, state, name);
    const offered = new Set(options.map(({ value }) => value));
    for (const option of element.querySelectorAll("[data-value]")) {
      option.hidden = !offered.has(option.dataset.value);
      // Safari shows a hidden <option> all the same.
      if (option.tagName === "OPTION") option.disabled = option.hidden;
    }
  }

  markRequired(element, name) {
    const { outline, state } = this.survey;
    const required = isRequired(outline, state, name);
    const mark = element.querySelector(".required-mark");
    if (mark) mark.hidden = !required;
    const isGroup = element.getAttribute("role") === "radiogroup";
    for (const part of isGroup ? [element] : controlsOf(element)) {
      if (part.type !== "checkbox") part.setAttribute("aria-required", String(required));
    }
  }

  listen() {
    this.section.addEventListener("input", (event) => this.read(event.target));
    this.section.addEventListener("change", (event) => this.showCanonical(event.target));
    this.section.addEventListener("click", ({ target }) => {
      const clear = target.closest("button.clear");
      if (clear) this.clear(clear.closest("[data-item]"));
      else this.touch(target);
    });
    this.section.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") this.touch(event.target);
    });
  }

  // An unanswered scale shows its middle. Choosing the middle changes no value,
  // so touching the scale counts as an answer.
  touch(target) {
    if (target.matches("input[type=range].untouched")) this.read(target);
  }

  read(target) {
    const element = target.closest("[data-item]");
    const name = element?.dataset.item;
    const item = name && this.survey.item(name);
    if (!item || !isAnswerable(item) || isComputed(item)) return;
    if (target.type === "range") target.classList.remove("untouched");
    const { language } = this.survey.moment();
    this.survey.set(name, readItem(element, item, this.survey.valuesOf(name), language));
    if (item.kind === "text") this.showLength(element, target);
    clearProblem(this.section, name);
    this.refresh();
    this.edited();
  }

  // A date without a year fires no event in some browsers.
  readIncomplete() {
    for (const element of this.elements) {
      const name = element.dataset.item;
      const isIncomplete = controlsOf(element).some(({ validity }) => validity.badInput);
      if (isIncomplete && !this.survey.mistyped.has(name)) this.read(controlsOf(element)[0]);
    }
  }

  // The browser accepts no more characters at the limit, without saying why.
  showLength(element, field) {
    const left = LONGEST_TEXT - field.value.length;
    let counter = element.querySelector(".counter");
    if (!counter && left > COUNTED) return;
    if (!counter) {
      counter = document.createElement("p");
      counter.className = "counter";
      counter.setAttribute("role", "status");
      field.after(counter);
    }
    counter.textContent =
      left > COUNTED ? "" : this.messages.text("characters_left", { n: left });
  }

  clear(element) {
    this.survey.set(element.dataset.item, { text: "", typed: "", problem: null });
    this.refresh();
    controlsOf(element).find((control) => !control.closest("[hidden]"))?.focus();
    this.edited();
  }

  // Shows a typed number in the form in which it is stored.
  showCanonical(target) {
    this.read(target);
    const name = target.closest("[data-item]")?.dataset.item;
    const kind = name && this.survey.item(name)?.kind;
    if (!["integer", "decimal"].includes(kind) || this.survey.mistyped.has(name)) return;
    target.value = this.survey.answers[name];
  }

  element(name) {
    return itemElement(this.section, name);
  }
}
