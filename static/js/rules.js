// Applies the rules of a whole survey, like survey/instrument/definitions/rules.py. Both must
// give the same state for every vector in
// survey/tests/definitions/rules_vectors.json.

import { evaluate, text, truth } from "./expressions.js";

const UNANSWERABLE = new Set(["note", "calculate", "hidden"]);
const UNSEEN = new Set(["calculate", "hidden"]);
const CHOICES = new Set(["select_one", "select_multiple"]);
const LONGEST_VALUE = 5000;
const PIPE = /\$\{\s*([^\s{}]+)\s*\}/g;

// `answers` are text by item: "" or absent is blank, a multiple choice is its
// values joined by one space. `clock` is {today, now, language}.
export function stateOf(outline, answers, clock) {
  const state = {
    relevant: bare(),
    values: bare(),
    problems: bare(),
    labels: new Map(),
    ...clock,
  };
  for (const name of outline.order) {
    state.relevant[name] = holds(outline, state, name, "relevant", true);
    state.values[name] = state.relevant[name]
      ? valueOf(outline, state, name, answers)
      : "";
  }
  for (const name of outline.order) {
    const problem = state.relevant[name] && problemOf(outline, state, name);
    if (problem) state.problems[name] = problem;
  }
  return state;
}

// Whether anything on page `number` (from 1) shows.
export function pageVisible(outline, state, number) {
  return outline.order.some((name) => {
    const item = outline.items[name];
    return item.page === number && !UNSEEN.has(item.kind) && state.relevant[name];
  });
}

// The item's options that its choice filter lets through.
export function offeredOptions(outline, state, name) {
  const filter = outline.items[name].choice_filter;
  const options = optionsOf(outline, name);
  if (filter === undefined) return options;
  return options.filter((option) =>
    truth(value(outline, state, filter, rowOf(option))),
  );
}

export function isRequired(outline, state, name) {
  return holds(outline, state, name, "required", false);
}

// What an unanswered item is filled with when it is first shown.
export function defaultOf(outline, state, name) {
  const item = outline.items[name];
  if (item.default_expression === undefined) return item.default ?? "";
  return written(value(outline, state, item.default_expression));
}

// Fills each ${name} in a text with the item's value.
export function fillPipes(text, values) {
  return text.replace(PIPE, (_, name) => values[name] ?? "");
}

// True if a calculation sets the value, and not the respondent.
export function isComputed(item) {
  if (item.kind === "calculate") return true;
  return Boolean(item.read_only) && item.calculation !== undefined;
}

// An item may be called "constructor" or "__proto__".
function bare() {
  return Object.create(null);
}

function value(outline, state, expr, row = {}) {
  return evaluate(expr, {
    values: state.values,
    today: state.today,
    now: state.now,
    choiceLabel: (name, chosen) =>
      fillPipes(choiceLabel(outline, state, name, chosen), state.values),
    row,
  });
}

function holds(outline, state, name, rule, otherwise) {
  const expr = outline.items[name][rule];
  return expr === undefined ? otherwise : truth(value(outline, state, expr));
}

function valueOf(outline, state, name, answers) {
  const item = outline.items[name];
  if (item.kind === "hidden") return item.default ?? "";
  if (!isComputed(item)) {
    return (Object.prototype.hasOwnProperty.call(answers, name) && answers[name]) || "";
  }
  if (item.calculation === undefined) return "";
  return written(value(outline, state, item.calculation));
}

// Like ODK: NaN is stored as no answer.
function written(result) {
  if (Number.isNaN(result)) return "";
  const whole = text(result);
  if (whole.length <= LONGEST_VALUE) return whole;
  return [...whole].slice(0, LONGEST_VALUE).join("");
}

function problemOf(outline, state, name) {
  const item = outline.items[name];
  if (UNANSWERABLE.has(item.kind)) return null;
  const answer = state.values[name];
  if (answer === "") return isRequired(outline, state, name) ? "required" : null;
  if (CHOICES.has(item.kind) && !isOffered(outline, state, name, answer)) {
    return "option";
  }
  return holds(outline, state, name, "constraint", true) ? null : "constraint";
}

function isOffered(outline, state, name, answer) {
  const multiple = outline.items[name].kind === "select_multiple";
  const offered = new Set(
    offeredOptions(outline, state, name).map((option) => option.value),
  );
  return (multiple ? answer.split(" ") : [answer]).every((one) => offered.has(one));
}

function optionsOf(outline, name) {
  const set = outline.items[name]?.option_set;
  return outline.option_sets[set] ?? [];
}

function rowOf(option) {
  return { ...option.attributes, name: option.value };
}

// The label in the state's language; labels of several values are joined.
function choiceLabel(outline, state, name, chosen) {
  if (!state.labels.has(name)) state.labels.set(name, labelsOf(outline, state, name));
  const labels = state.labels.get(name);
  if (labels.has(chosen)) return labels.get(chosen);
  const parts = chosen.split(" ").filter((one) => labels.has(one));
  return parts.map((one) => labels.get(one)).join(", ");
}

function labelsOf(outline, state, name) {
  return new Map(
    optionsOf(outline, name).map((option) => [
      option.value,
      labelIn(outline, state.language, option),
    ]),
  );
}

// An outline has labels in its own language; a definition has them in all.
function labelIn(outline, language, option) {
  const label = option.label ?? "";
  if (typeof label === "string") return label;
  return label[language] || label[outline.languages[0].code] || option.value;
}
