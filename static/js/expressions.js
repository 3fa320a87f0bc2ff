// Evaluates compiled expressions, like survey/instrument/definitions/expressions/, which
// documents their form. Both must give the same result for every vector in
// survey/tests/definitions/expression_vectors.json.

const MILLISECONDS_OF_DAY = 86400000;
const LONGEST_INPUT = 5000;
const LARGEST_PLAIN = 1e16;
const FARTHEST = 1e9;

// --- Conversions -------------------------------------------------------------

const SPACE = " \t\r\n";
const NUMBER = /^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)$/;
const CLOCK = "([0-9]{2}):([0-9]{2})(?::([0-9]{2}(?:\\.[0-9]{1,9})?))?";
const TIME = new RegExp(`^${CLOCK}$`);
const MOMENT = new RegExp(
  "^([0-9]{4})-([0-9]{2})-([0-9]{2})" +
    `(?:T${CLOCK}(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?$`,
);

// A regular expression would scan a run of spaces again and again.
function stripped(value) {
  let [start, end] = [0, value.length];
  while (start < end && SPACE.includes(value[start])) start += 1;
  while (end > start && SPACE.includes(value[end - 1])) end -= 1;
  return value.slice(start, end);
}

export function truth(value) {
  if (typeof value === "number") return value !== 0 && !Number.isNaN(value);
  return Boolean(value);
}

export function number(value) {
  if (typeof value !== "string") return Number(value);
  const bare = stripped(value);
  return NUMBER.test(bare) ? Number(bare) : asDays(bare);
}

export function text(value) {
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < LARGEST_PLAIN) {
    return String(value);
  }
  return withoutExponent(String(value));
}

function withoutExponent(written) {
  const parts = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(written);
  if (!parts) return written;
  const [, sign, whole, fraction = "", exponent] = parts;
  const power = Number(exponent);
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${whole}${fraction}`;
  return sign + whole + fraction.padEnd(power, "0");
}

function asDays(moment) {
  const clock = TIME.exec(moment);
  if (clock) return dayFraction(clock[1], clock[2], clock[3]);
  const found = MOMENT.exec(moment);
  if (!found) return NaN;
  return (
    days(found[1], found[2], found[3]) +
    dayFraction(found[4], found[5], found[6])
  );
}

function days(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  const exists =
    Number(year) > 0 &&
    date.getUTCMonth() === Number(month) - 1 &&
    date.getUTCDate() === Number(day);
  return exists ? date.getTime() / MILLISECONDS_OF_DAY : NaN;
}

function dayFraction(hour, minute, second) {
  if (hour === undefined) return 0;
  const [hours, minutes, seconds] = [hour, minute, second ?? 0].map(Number);
  if (hours > 23 || minutes > 59 || seconds >= 60) return NaN;
  return (hours * 3600 + minutes * 60 + seconds) / 86400;
}

// The argument as a position in a text; null for NaN.
function whole(value) {
  const position = number(value);
  if (Number.isNaN(position)) return null;
  return Math.trunc(Math.max(-FARTHEST, Math.min(FARTHEST, position)));
}

// --- Operations --------------------------------------------------------------

export function evaluate(expr, context) {
  if (!Array.isArray(expr)) return expr;
  const [operation, ...operands] = expr;
  const lazy = LAZY[operation];
  if (lazy) return lazy(context, ...operands);
  return EAGER[operation](
    ...operands.map((operand) => evaluate(operand, context)),
  );
}

// An item may be called "constructor".
function entry(values, name) {
  return (Object.prototype.hasOwnProperty.call(values, name) && values[name]) || "";
}

function equal(left, right) {
  if (typeof left === "boolean" || typeof right === "boolean") {
    return truth(left) === truth(right);
  }
  if (typeof left === "number" || typeof right === "number") {
    return number(left) === number(right);
  }
  return left === right;
}

function add(...values) {
  return values.slice(1).reduce((sum, value) => sum + number(value), number(values[0]));
}

function least(...values) {
  let smallest = number(values[0]);
  for (const candidate of values.map(number)) {
    if (Number.isNaN(candidate)) return NaN;
    if (candidate < smallest) smallest = candidate;
  }
  return smallest;
}

function greatest(...values) {
  return -least(...values.map((value) => -number(value)));
}

// Rounds half up, on the decimal digits shown: round(1.005, 2) = 1.01.
function rounded(value, places = 0) {
  const exact = number(value);
  let wanted = whole(places);
  if (wanted === null) return NaN;
  if (!Number.isFinite(exact)) return exact;
  wanted = Math.max(-400, Math.min(400, wanted));
  const [units, fraction = ""] = text(exact).split(".");
  if (fraction.length <= wanted) return exact;
  // Digit by digit, because a number holds 15 of them and Safari 13 no more.
  const sign = units.startsWith("-") ? "-" : "";
  const dropped = fraction.length - wanted;
  const digits = (units.slice(sign.length) + fraction).padStart(dropped + 1, "0");
  const kept = digits.slice(0, -dropped);
  const rest = digits.slice(-dropped);
  const isUp = sign ? /^(?:[6-9]|5.*[1-9])/.test(rest) : rest >= "5";
  return Number(`${sign}${isUp ? increment(kept) : kept}e${-wanted}`) + 0;
}

function increment(digits) {
  const nines = /9*$/.exec(digits)[0];
  const head = digits.slice(0, digits.length - nines.length);
  return `${head.slice(0, -1)}${Number(head.slice(-1)) + 1}${"0".repeat(nines.length)}`;
}

// Adding zero avoids -0, which Python's integers do not have.
const integral = (round) => (value) => round(number(value)) + 0;

function words(value) {
  return text(value)
    .split(/[ \t\r\n]+/)
    .filter(Boolean);
}

function selected(options, option) {
  return text(options).split(" ").includes(stripped(text(option)));
}

function selectedAt(options, position) {
  return words(options)[whole(position) ?? -1] ?? "";
}

// Characters are code points, as in Python.
function part(value, start, end = FARTHEST) {
  const [first, last] = [whole(start), whole(end)];
  if (first === null || last === null) return "";
  return [...text(value)].slice(first, last).join("");
}

function partBefore(value, sought) {
  const position = text(value).indexOf(text(sought));
  return position < 0 ? "" : text(value).slice(0, position);
}

function partAfter(value, sought) {
  const position = text(value).indexOf(text(sought));
  return position < 0 ? "" : text(value).slice(position + text(sought).length);
}

// Characters without a replacement are removed; the first of two alike counts.
function translated(value, characters, replacements) {
  const written = [...text(replacements)];
  const replacing = new Map();
  [...text(characters)].forEach((character, position) => {
    if (!replacing.has(character)) replacing.set(character, written[position] ?? "");
  });
  return [...text(value)]
    .map((character) => replacing.get(character) ?? character)
    .join("");
}

function dateOf(value) {
  const count = number(value);
  if (typeof value === "string" && MOMENT.test(stripped(value))) {
    return Number.isNaN(count) ? "" : stripped(value).slice(0, 10);
  }
  const written = new Date(Math.floor(count) * MILLISECONDS_OF_DAY);
  const year = written.getUTCFullYear();
  return year >= 1 && year <= 9999 ? written.toISOString().slice(0, 10) : "";
}

function formattedDate(value, codes) {
  const day = dateOf(value);
  if (!day) return "";
  const found = MOMENT.exec(stripped(text(value))) ?? [];
  const parts = dateParts(day, found[4] ?? "00", found[5] ?? "00", found[6] ?? "00");
  return codes.replace(/%(.)/g, (_, code) => parts[code]);
}

function dateParts(day, hour, minute, second) {
  return {
    Y: day.slice(0, 4),
    y: day.slice(2, 4),
    m: day.slice(5, 7),
    n: String(Number(day.slice(5, 7))),
    d: day.slice(8),
    e: String(Number(day.slice(8))),
    H: hour,
    h: String(Number(hour)),
    M: minute,
    S: second.slice(0, 2),
    3: second.slice(3, 6).padEnd(3, "0"),
    "%": "%",
  };
}

function coalesce(context, ...operands) {
  let value = "";
  for (const operand of operands) {
    value = evaluate(operand, context);
    if (value !== "" && !Number.isNaN(value)) break;
  }
  return value;
}

const LAZY = {
  __proto__: null,
  $: (context, name) => entry(context.values, name),
  col: (context, name) => entry(context.row ?? {}, name),
  and: (context, ...operands) =>
    operands.every((operand) => truth(evaluate(operand, context))),
  or: (context, ...operands) =>
    operands.some((operand) => truth(evaluate(operand, context))),
  if: (context, condition, then, otherwise) =>
    evaluate(truth(evaluate(condition, context)) ? then : otherwise, context),
  coalesce,
  regex: (context, operand, pattern) =>
    matches(text(evaluate(operand, context)), pattern),
  "format-date": (context, operand, codes) =>
    formattedDate(evaluate(operand, context), codes),
  "jr:choice-name": (context, operand, name) =>
    context.choiceLabel(name, text(evaluate(operand, context))),
  today: (context) => context.today,
  now: (context) => context.now,
};

const EAGER = {
  __proto__: null,
  "=": equal,
  "!=": (left, right) => !equal(left, right),
  "<": (left, right) => number(left) < number(right),
  "<=": (left, right) => number(left) <= number(right),
  ">": (left, right) => number(left) > number(right),
  ">=": (left, right) => number(left) >= number(right),
  "+": add,
  "-": (left, right) => number(left) - number(right),
  "*": (left, right) => number(left) * number(right),
  div: (left, right) => number(left) / number(right),
  mod: (left, right) => number(left) % number(right),
  neg: (value) => -number(value),
  abs: (value) => Math.abs(number(value)),
  boolean: truth,
  ceiling: integral(Math.ceil),
  concat: (...values) => values.map(text).join(""),
  contains: (value, sought) => text(value).includes(text(sought)),
  "count-selected": (value) => words(value).length,
  date: dateOf,
  "decimal-date-time": number,
  "ends-with": (value, end) => text(value).endsWith(text(end)),
  floor: integral(Math.floor),
  int: integral(Math.trunc),
  max: greatest,
  min: least,
  "normalize-space": (value) => words(value).join(" "),
  not: (value) => !truth(value),
  number,
  once: (value) => value,
  round: rounded,
  selected,
  "selected-at": selectedAt,
  "starts-with": (value, start) => text(value).startsWith(text(start)),
  string: text,
  "string-length": (value) => [...text(value)].length,
  substr: part,
  "substring-after": partAfter,
  "substring-before": partBefore,
  sum: add,
  translate: translated,
};

// --- Patterns ----------------------------------------------------------------

// The browser's own RegExp backtracks, which takes years for some patterns and
// answers. This matcher follows all states at once, one character at a time. It
// reads only the portable form that survey/instrument/definitions/portable_regex.py writes,
// and uses RegExp for single characters only.

const PIECE =
  /\[(?:\\.|[^\]\\])*\]|\\x[0-9A-F]{2}|\\[pP]\{\w+\}|\\.|\(\?:|\{\d+(?:,\d*)?\}|[\s\S]/gu;
const ACCEPT = 0;
const machines = new Map();

export function matches(value, pattern) {
  const characters = [...value.replace(/\p{Surrogate}/gu, "\uFFFD")];
  if (characters.length > LONGEST_INPUT) return false;
  if (!machines.has(pattern)) machines.set(pattern, machineFor(pattern));
  const { states, start } = machines.get(pattern);
  let active = reach(states, [start]);
  for (const character of characters) {
    const next = active.filter((at) => states[at].test?.(character));
    if (!next.length) return false;
    active = reach(states, next.map((at) => states[at].next[0]));
  }
  return active.includes(ACCEPT);
}

// All states that are reached without reading a character.
function reach(states, waiting) {
  const seen = new Set();
  while (waiting.length) {
    const at = waiting.pop();
    if (seen.has(at)) continue;
    seen.add(at);
    if (!states[at].test) waiting.push(...states[at].next);
  }
  return [...seen];
}

function machineFor(pattern) {
  const states = [{ next: [] }];
  const pieces = alternatives({ parts: pattern.match(PIECE) ?? [], at: 0 });
  return { states, start: build(pieces, ACCEPT, states) };
}

function alternatives(source) {
  const branches = [[]];
  while (source.at < source.parts.length && source.parts[source.at] !== ")") {
    if (source.parts[source.at] === "|") {
      source.at += 1;
      branches.push([]);
    } else {
      branches[branches.length - 1].push(repeated(source));
    }
  }
  source.at += 1;
  return { branches };
}

function repeated(source) {
  const part = source.parts[source.at++];
  const body = part === "(?:" ? alternatives(source) : { test: tester(part) };
  const [low, high] = counts(source.parts[source.at] ?? "");
  if (low === null) return body;
  source.at += 1;
  return { body, low, high };
}

function counts(part) {
  if (part === "*") return [0, Infinity];
  if (part === "+") return [1, Infinity];
  if (part === "?") return [0, 1];
  const found = /^\{(\d+)(,?)(\d*)\}$/.exec(part);
  if (!found) return [null, null];
  const low = Number(found[1]);
  return [low, found[2] ? Number(found[3] || Infinity) : low];
}

function tester(part) {
  if ([...part].length === 1) return (character) => character === part;
  const single = new RegExp(`^${part}$`, "u");
  return (character) => single.test(character);
}

// Adds the states of a piece before `next` and returns where they begin.
function build(piece, next, states) {
  if (piece.test) return states.push({ test: piece.test, next: [next] }) - 1;
  if (piece.body) return buildRepeated(piece, next, states);
  const starts = piece.branches.map((branch) =>
    branch.reduceRight((after, inner) => build(inner, after, states), next),
  );
  return states.push({ next: starts }) - 1;
}

function buildRepeated({ body, low, high }, next, states) {
  let start = next;
  if (high === Infinity) {
    start = states.push({ next: [next] }) - 1;
    states[start].next.push(build(body, start, states));
  } else {
    for (let count = low; count < high; count += 1) {
      start = states.push({ next: [next, build(body, start, states)] }) - 1;
    }
  }
  for (let count = 0; count < low; count += 1) start = build(body, start, states);
  return start;
}
