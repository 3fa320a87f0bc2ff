// Merges the answers of two tabs or devices that changed the same page.

// All are JSON texts of a page's answers: answers that differ between `before`
// and `mine` win, the others are taken from `theirs`. An item that is absent on
// one side was not answered there.
export function mergeAnswers(before, mine, theirs) {
  const [old, own, other] = [before, mine, theirs].map(byName);
  const merged = new Map();
  for (const [name, answer] of own) {
    const changed = !sameAnswer(answer, old.get(name));
    merged.set(name, changed || !other.has(name) ? answer : other.get(name));
  }
  for (const [name, answer] of other) if (!own.has(name)) merged.set(name, answer);
  return textOfAnswers(merged);
}

function byName(content) {
  return new Map(Object.entries(JSON.parse(content ?? "{}")));
}

function sameAnswer(one, two) {
  return JSON.stringify(one ?? null) === JSON.stringify(two ?? null);
}

// The JSON text of [name, answer] pairs, equal for equal answers in any order.
// Built without an object, because an item may be called "__proto__".
export function textOfAnswers(answers) {
  const sorted = [...answers].sort(([one], [two]) => (one < two ? -1 : 1));
  const parts = sorted.map((pair) => pair.map((part) => JSON.stringify(part)).join(":"));
  return `{${parts.join(",")}}`;
}
