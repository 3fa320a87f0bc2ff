// Two tabs or devices that changed the same page.

// Takes and gives JSON texts of a page's answers: what was changed from
// `before` to `mine` wins, the rest is as in `theirs`.
export function mergeAnswers(before, mine, theirs) {
  const [old, own, other] = [before, mine, theirs].map(byName);
  const merged = new Map();
  for (const [name, answer] of own) {
    const changed = !sameAnswer(answer, old.get(name));
    merged.set(name, changed || !other.has(name) ? answer : other.get(name));
  }
  return textOfAnswers(merged);
}

function byName(content) {
  return new Map(Object.entries(JSON.parse(content ?? "{}")));
}

function sameAnswer(one, two) {
  return JSON.stringify(one ?? null) === JSON.stringify(two ?? null);
}

// One text for the same answers, whoever made it. Not by way of an object:
// an item may be called "__proto__".
export function textOfAnswers(answers) {
  const parts = [...answers].map((pair) => pair.map((part) => JSON.stringify(part)).join(":"));
  return `{${parts.join(",")}}`;
}
