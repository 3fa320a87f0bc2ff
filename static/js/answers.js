// Answers in their three forms: as sent, as text, and in the controls of a page.
//
// Elsewhere in the browser an answer is text, '' when blank; several options are
// joined by one space in the order of their option set.

import { readTyped } from "./typed_values.js";

const NOT_ANSWERABLE = ["note", "calculate", "hidden"];
// Typed as text, where the browser has no control for them or a poor one.
const READ_KINDS = ["integer", "decimal", "date", "time", "datetime"];
const FORMS = {
  integer: /^-?\d{1,15}$/,
  decimal: /^-?\d{1,15}(\.\d{1,10})?$/,
  range: /^-?\d{1,15}(\.\d{1,10})?$/,
  date: /^\d{4}-\d{2}-\d{2}$/,
  time: /^\d{2}:\d{2}(:\d{2})?$/,
  datetime: /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$/,
};
export const LONGEST_TEXT = 5000;

export function isAnswerable(item) {
  return !NOT_ANSWERABLE.includes(item.kind);
}

export function answerableItems(outline, n) {
  return outline.pages[n - 1].items.filter((name) => isAnswerable(outline.items[name]));
}

export function textFromWire(value) {
  return Array.isArray(value) ? value.join(" ") : (value ?? "");
}

export function wireFromText(item, text) {
  if (text === "") return null;
  return item.kind === "select_multiple" ? text.split(" ") : text;
}

// Converts typed text to the form in which it is stored. Text that does not fit
// is returned unchanged.
export function canonical(kind, typed, language = "en") {
  if (kind === "text") return cleanText(typed);
  return READ_KINDS.includes(kind) ? (readTyped(kind, typed, language).text ?? typed) : typed;
}

// PostgreSQL stores no NUL, and UTF-8 has no lone surrogates.
function cleanText(typed) {
  const clean = typed.replace(/\0/g, "").replace(/\p{Surrogate}/gu, "\ufffd");
  return clean.trim() === "" ? "" : clean;
}

// The message key of an answer that does not have the form of its kind, or null.
export function formProblem(item, text) {
  const { kind } = item;
  if (text === "") return null;
  if (kind === "text") return [...text].length > LONGEST_TEXT ? "too_long" : null;
  if (kind === "acknowledge") return text === "OK" ? null : "not_an_option";
  if (!FORMS[kind]) return null;
  if (FORMS[kind].test(text)) {
    // A control for dates takes "15" for a year.
    if (text.startsWith("0") && kind.startsWith("date")) return "year_incomplete";
    return kind === "range" ? rangeProblem(item, text) : null;
  }
  if (kind === "integer" && FORMS.decimal.test(text)) return "not_whole";
  return ["integer", "decimal", "range"].includes(kind) ? "not_a_number" : "not_a_date";
}

function rangeProblem({ range }, text) {
  const { start, end, step } = range;
  const value = Number(text);
  const steps = (value - Number(start)) / Number(step);
  const onStep = Math.abs(steps - Math.round(steps)) < 1e-6;
  const inside = value >= Number(start) && value <= Number(end);
  return inside && onStep ? null : "out_of_range";
}

// Controls

export function controlsOf(element) {
  return [...element.querySelectorAll("input, select, textarea")];
}

// Returns {text, typed, problem, values}; `values` fill the message of the problem.
// `options` are the values of the item's options in order.
export function readItem(element, item, options, language = "en") {
  const controls = controlsOf(element);
  if (isChoice(controls)) return valid(readChoice(controls, item, options));
  const [control] = controls;
  if (item.kind === "select_one") return valid(control.value);
  if (item.kind === "range") {
    return valid(control.classList.contains("untouched") ? "" : control.value);
  }
  const typed = control.value;
  const text = canonical(item.kind, typed, language);
  // A half-filled date has no value; only its validity tells it from a blank.
  if (control.validity.badInput) return { text: "", typed, problem: "not_a_date" };
  const asked = READ_KINDS.includes(item.kind) ? readTyped(item.kind, typed, language) : {};
  const problem = asked.problem ?? formProblem(item, text);
  return { text: problem ? "" : text, typed, problem, values: asked.values };
}

function valid(text) {
  return { text, typed: text, problem: null };
}

function isChoice(controls) {
  return controls.some(({ type }) => type === "radio" || type === "checkbox");
}

// Randomised options are shown in another order than they are stored in.
function readChoice(controls, item, options) {
  const checked = controls.filter((control) => control.checked);
  const chosen = checked.map((control) => control.value);
  if (item.kind !== "select_multiple") return chosen[0] ?? "";
  return options.filter((value) => chosen.includes(value)).join(" ");
}

// `unanswered` is what a screen reader says of a scale without an answer.
export function writeItem(element, item, text, unanswered) {
  const controls = controlsOf(element);
  if (isChoice(controls)) {
    const chosen = item.kind === "select_multiple" ? text.split(" ") : [text];
    for (const control of controls) control.checked = chosen.includes(control.value);
  } else if (item.kind === "range") {
    writeRange(element, controls[0], text, unanswered);
  } else if (controls[0].value !== text) {
    controls[0].value = text;
  }
  const clear = element.querySelector("button.clear");
  if (clear) clear.hidden = text === "";
}

function writeRange(element, control, text, unanswered) {
  if (text !== "") control.value = text;
  for (const marked of [control, element]) {
    marked.classList.toggle("untouched", text === "");
  }
  const output = element.querySelector(".range-value");
  if (output) output.textContent = text;
  if (text === "") control.setAttribute("aria-valuetext", unanswered);
  else control.removeAttribute("aria-valuetext");
}
