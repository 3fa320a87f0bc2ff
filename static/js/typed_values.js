// Numbers and dates as people type them. What can be read in two ways is not read:
// the person is asked. survey/taking/typed_values.py does the same; the vectors in
// survey/tests/taking/typed_vectors.json run through both.

// The zeros of Arabic, Persian, N'Ko, the scripts of India, Thai, Lao, Tibetan,
// Burmese, Khmer and Mongolian. Nine digits follow each.
const ZEROS = "٠۰߀०০੦૦୦௦౦೦൦๐໐༠၀០᠐";
// Languages in which a point is no separator of thousands. Elsewhere 1.200 may be
// 1200: Spanish is written with both.
const WITH_POINT = new Set(
  "en zh ja ko th he hi bn ur ta te pa gu ne so sw am ti fil tl my ms".split(" "),
);
const GROUPED = /^[1-9]\d{0,2}([., ])\d{3}(?:\1\d{3})*$/;
const YEAR_FIRST = /^(\d{4})[-./ ](\d{1,2})[-./ ](\d{1,2})$/;
const YEAR_LAST = /^(\d{1,2})[-./ ](\d{1,2})[-./ ](\d{4})$/;
const THREE_PARTS = /^\d{1,4}[-./ ]\d{1,2}[-./ ]\d{1,4}$/;

// {text}, or {problem, values} of a text that can mean several things.
export function readTyped(kind, typed, language) {
  const plain = withAsciiDigits(typed).trim();
  if (kind === "integer" || kind === "decimal") return readNumber(kind, plain, language);
  // Some browsers add seconds and their fractions.
  const text = plain.replace(/(:\d{2})\.\d+$/, "$1");
  if (kind === "time") return { text };
  const [, day, clock = ""] = /^(.*?)(?:[T ](\d{1,2}:.*))?$/.exec(text) ?? [, text];
  const read = readDay(day);
  return read.text && clock ? { text: `${read.text}T${clock}` } : read;
}

// Full-width forms are those of Chinese and Japanese keyboards.
function withAsciiDigits(typed) {
  return typed.replace(/[^\0-\x7f]/gu, (character) => {
    const code = character.codePointAt(0);
    if (code >= 0xff01 && code <= 0xff5e) return String.fromCharCode(code - 0xfee0);
    const digit = [...ZEROS].map((zero) => code - zero.codePointAt(0));
    return String(digit.find((value) => value >= 0 && value <= 9) ?? character);
  });
}

function readNumber(kind, plain, language) {
  const [, sign, body] = /^([-+\u2212]?)(.*)$/s.exec(plain);
  const minus = sign && sign !== "+" ? "-" : "";
  // Arabic has separators of its own, and an apostrophe or a space only groups.
  const marked = body
    .replace(/[\s'’\u066c]/g, " ")
    .replace(/\u060c/g, ",")
    .replace(/\u066b/g, ";");
  const grouped = GROUPED.test(marked) ? minus + marked.replace(/\D/g, "") : null;
  const decimal = decimalOf(marked);
  const hasPoint = WITH_POINT.has(language.toLowerCase().split(/[-_]/)[0]);
  if (grouped !== null && decimal && !(kind === "decimal" && hasPoint && marked.includes("."))) {
    const problem = kind === "integer" ? "ambiguous_whole" : "ambiguous_number";
    const values = { typed: plain, grouped, decimal: minus + certain(decimal, hasPoint) };
    return { problem, values };
  }
  if (decimal) {
    const { whole, fraction } = decimal;
    return { text: `${minus}${whole || "0"}${fraction ? `.${fraction}` : ""}` };
  }
  return { text: grouped ?? (minus ? minus + body : plain) };
}

// The parts of a text that has at most one decimal separator, or null.
function decimalOf(marked) {
  const [, before, separator, fraction = ""] = /^(.*?)(?:([.,;])(\d*))?$/s.exec(marked);
  const grouping = GROUPED.exec(before);
  const isWhole = /^\d*$/.test(before) || (grouping !== null && grouping[1] !== separator);
  if (!isWhole || (grouping !== null && !separator) || !(before || fraction)) return null;
  return { whole: before.replace(/\D/g, ""), fraction };
}

// Written so that it is not taken for thousands: never with three decimals.
function certain({ whole, fraction }, hasPoint) {
  const short = fraction.replace(/0+$/, "");
  const shown = short.length === 3 ? `${short}0` : short;
  return shown ? `${whole}${hasPoint ? "." : ","}${shown}` : whole;
}

function readDay(day) {
  const ordered = YEAR_FIRST.exec(day);
  if (ordered) return { text: isoDay(ordered[1], ordered[2], ordered[3]) };
  const [, first, second, year] = YEAR_LAST.exec(day) ?? [];
  const isDay = (part) => Number(part) > 12;
  if (year && (isDay(first) !== isDay(second) || Number(first) === Number(second))) {
    const [month, date] = isDay(first) ? [second, first] : [first, second];
    return { text: isoDay(year, month, date) };
  }
  if (THREE_PARTS.test(day)) return { problem: "ambiguous_date", values: { typed: day } };
  return { text: day };
}

function isoDay(year, month, day) {
  return `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
}
