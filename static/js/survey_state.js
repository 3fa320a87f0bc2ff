// One respondent's answers in this tab, which pages and items they make
// relevant, and what a save sends. Knows neither screen nor network.

import { answerableItems, formProblem, isAnswerable, textFromWire, wireFromText } from "./answers.js";
import { textOfAnswers } from "./merge_answers.js";
import { defaultOf, isComputed, offeredOptions, pageVisible, stateOf } from "./rules.js";

export class SurveyState {
  // answers: {name: value as sent} of every item that has a row on the server
  // earlier: names of items that were answered on another device, or before the
  // person stopped for now. Their answers are not shown here, and stay as they are
  // unless they are answered again.
  // moment() is {today, now, language}
  constructor({ outline, answers, earlier = [], moment }) {
    Object.assign(this, { outline, moment });
    this.earlier = new Set(earlier);
    // Without a prototype: an item may be called "constructor".
    this.answers = Object.create(null);
    // What the server has, or is being sent, by name. An item that is absent
    // was not answered yet, and its page was not passed with Next.
    this.stored = new Map();
    // Typed texts that are no valid answer: {typed, problem, values} by name.
    this.mistyped = new Map();
    this.defaulted = new Set();
    // Items filled with their default that the person has not touched.
    this.untouched = new Set();
    this.load(Object.entries(answers));
  }

  // Takes answers of the server, or of the device: [[name, value as sent]].
  load(entries) {
    for (const [name, value] of entries) {
      if (!this.item(name)) continue;
      this.answers[name] = textFromWire(value);
      this.stored.set(name, value);
      this.mistyped.delete(name);
    }
    this.recompute();
  }

  item(name) {
    return isOwn(this.outline.items, name) ? this.outline.items[name] : undefined;
  }

  set(name, { text, typed, problem, values }) {
    this.answers[name] = text;
    this.untouched.delete(name);
    if (problem) this.mistyped.set(name, { typed, problem, values });
    else this.mistyped.delete(name);
    this.recompute();
  }

  // An option that is no longer offered does not count as an answer, for other
  // rules either. It counts again when the option is offered again.
  recompute() {
    let given = this.answers;
    let state;
    do {
      state = stateOf(this.outline, given, this.moment());
      this.given = given;
      given = this.withoutUnoffered(given, state);
    } while (given !== this.given);
    this.state = state;
  }

  withoutUnoffered(given, state) {
    const names = Object.keys(state.problems);
    const isLost = (name) => state.problems[name] === "option" && !isComputed(this.item(name));
    const lost = names.filter(isLost);
    if (!lost.length) return given;
    const kept = Object.assign(Object.create(null), given);
    for (const name of lost) {
      const offered = offeredOptions(this.outline, state, name).map(({ value }) => value);
      const parts = given[name].split(" ");
      kept[name] = parts.filter((part) => offered.includes(part)).join(" ");
    }
    return kept;
  }

  valuesOf(name) {
    const { option_set: set } = this.item(name);
    return (this.outline.option_sets[set] ?? []).map(({ value }) => value);
  }

  // Fills items that were never answered, once: clearing a default is an answer.
  fillDefaults(n) {
    if (this.defaulted.has(n)) return;
    this.defaulted.add(n);
    for (const name of answerableItems(this.outline, n)) {
      const isTouched = name in this.answers || this.mistyped.has(name);
      if (isTouched || isComputed(this.item(name)) || this.earlier.has(name)) continue;
      this.answers[name] = defaultOf(this.outline, this.state, name);
      this.untouched.add(name);
    }
    this.recompute();
  }

  // The JSON text of what a save of page n carries. `passed`: the person went on
  // with Next, so items that were left blank are null. Otherwise they are absent,
  // unless they were stored before: nothing is stored for them, and the page is
  // shown again.
  content(n, { passed = false } = {}) {
    const values = [];
    for (const name of answerableItems(this.outline, n)) {
      const isStored = this.stored.has(name);
      if (this.isWithheld(name)) {
        // What is no answer yet never replaces one.
        const stored = this.stored.get(name);
        const isValid = !formProblem(this.item(name), textFromWire(stored));
        if (isStored && isValid) values.push([name, stored]);
        continue;
      }
      const value = wireFromText(this.item(name), this.state.values[name]);
      if (value === null && this.isKept(name)) continue;
      const isOpen = value === null || this.untouched.has(name);
      if (passed || isStored || !isOpen) values.push([name, value]);
    }
    return textOfAnswers(values);
  }

  // True for an answer of another device that was not replaced here.
  isKept(name) {
    return this.earlier.has(name) && !this.stored.has(name);
  }

  // Takes names of answers that other devices saved meanwhile. A blank of this tab
  // was left without seeing them, so it replaces none.
  keepEarlier(names) {
    for (const name of names) {
      this.earlier.add(name);
      if (this.stored.get(name) === null) this.stored.delete(name);
    }
  }

  hasKept(n) {
    return answerableItems(this.outline, n).some((name) => this.isKept(name));
  }

  // True for what cannot be stored as it is: the server would refuse the whole
  // page for it.
  isWithheld(name) {
    if (!this.state.relevant[name]) return false;
    const item = this.item(name);
    const problem = this.state.problems[name];
    const breaksRule = problem === "constraint" && item.local?.includes("constraint");
    const isMistyped = this.mistyped.has(name) || formProblem(item, this.state.values[name]);
    return Boolean(problem === "option" || breaksRule || isMistyped);
  }

  // True while an answer on the screen is not what was saved.
  hasWithheld() {
    return Object.keys(this.answers).some((name) => this.isWithheld(name));
  }

  noteStored(content) {
    for (const [name, value] of Object.entries(JSON.parse(content))) {
      this.stored.set(name, value);
    }
  }

  // [{name, key, values}] in the order of the page; `values` fill the message.
  problems(n, { required = true } = {}) {
    const found = [];
    for (const name of this.outline.pages[n - 1].items) {
      const item = this.item(name);
      const { relevant, values, problems } = this.state;
      if (!isAnswerable(item) || !relevant[name]) continue;
      const mistyped = this.mistyped.get(name);
      const key = mistyped?.problem ?? formProblem(item, values[name]) ?? problems[name];
      const isMissing = key === "required";
      if (!key || (isMissing && (!required || this.isKept(name)))) continue;
      found.push({ name, key, ...(mistyped?.values && { values: mistyped.values }) });
    }
    return found;
  }

  // Pages

  count() {
    return this.outline.pages.length;
  }

  isVisible(n) {
    return n >= 1 && n <= this.count() && pageVisible(this.outline, this.state, n);
  }

  visiblePages() {
    const numbers = this.outline.pages.map((_, index) => index + 1);
    return numbers.filter((n) => this.isVisible(n));
  }

  after(n) {
    return this.visiblePages().find((other) => other > n) ?? null;
  }

  before(n) {
    return this.visiblePages().reverse().find((other) => other < n) ?? null;
  }

  // The place of page n among the pages that this person sees, and their number.
  placeOf(n) {
    const pages = this.visiblePages();
    return { n: pages.filter((page) => page <= n).length, total: pages.length };
  }

  // The first page until something is stored, because it may have only notes. Then
  // the first page with a question that was neither answered nor passed, or null.
  startPage() {
    const isOpen = (name) =>
      this.state.relevant[name] && !this.stored.has(name) && !this.earlier.has(name);
    const hasOpen = (n) => answerableItems(this.outline, n).some(isOpen);
    const isFirstVisit = !this.stored.size && !this.earlier.size;
    return this.visiblePages().find((n) => isFirstVisit || hasOpen(n)) ?? null;
  }

  // The first page with an answer that cannot be saved as it is.
  firstMistaken() {
    const wrong = (n) => this.problems(n, { required: false }).length > 0;
    return this.visiblePages().find(wrong) ?? null;
  }

  clear() {
    this.answers = Object.create(null);
    this.stored.clear();
    this.mistyped.clear();
    this.recompute();
  }
}

// [page, JSON text] of the answers that the server has, for each page.
export function contentsByPage(outline, answers) {
  return outline.pages.map((_, index) => {
    const names = answerableItems(outline, index + 1);
    const rows = names.filter((name) => isOwn(answers, name));
    return [index + 1, textOfAnswers(rows.map((name) => [name, answers[name]]))];
  });
}

function isOwn(object, name) {
  return Object.prototype.hasOwnProperty.call(object, name);
}
