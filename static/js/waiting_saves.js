// Saves and drafts of one page: what they hold and what they have replaced.

import { textOfAnswers } from "./merge_answers.js";

// Revisions of one tab are equal modulo TABS, so that the server knows which rows
// are its own, even if two tabs count from the same number: see save_page() in
// survey/taking/storage.py.
export const TABS = 2 ** 20;

// False for what was only taken over from closed tabs.
export function isEditedHere({ save, later, adopted }) {
  if (adopted) return (later ?? save).content !== adopted.content;
  return !(save?.restored && !later);
}

// A row of the server that is as high is newer.
export function numberOf({ save, later, adopted }) {
  return adopted?.number ?? (later ? later.number : save.revision) ?? Infinity;
}

// `before`, but with an answer of `theirs` where that is one which these answers
// have replaced: it is no change of another tab.
export function withReplaced(before, replaced = [], theirs = "{}") {
  const [answers, current] = [before, theirs].map((text) => Object.entries(JSON.parse(text)));
  const known = pairsIn(replaced);
  const isReplaced = (pair) => known.has(JSON.stringify(pair));
  return textOfAnswers(new Map([...answers, ...current.filter(isReplaced)]));
}

export function pairsIn(contents) {
  const pairs = contents.flatMap((text) => Object.entries(JSON.parse(text)));
  return new Set(pairs.map((pair) => JSON.stringify(pair)));
}

export function isSameTab(one, two) {
  return one % TABS === two % TABS;
}

export function waitingSave(page, save) {
  const { replaced = [] } = save;
  return { page, ...save, replaced, attempts: 0, restored: false, refused: null };
}

// Everything in a save's body, so that a retry is identical to the byte: `seen`
// and `shown` tell the server which rows this tab has shown to the person. The
// answers that `replaced` lists were replaced by these, and may be on the server
// all the same.
export function keptFields({ revision, seen, shown, content, replaced }) {
  return { revision, seen, shown, content, replaced };
}

// Two drafts that were taken over are as old as the older one.
export function joinAdopted(one, two) {
  const number = Math.min(one.number, two.number);
  return { ...two, number, replaced: [...one.replaced, ...two.replaced] };
}

export function replacedByRecord({ save, later }) {
  const parts = [save, later].filter(Boolean);
  return parts.flatMap(({ replaced = [], content }) => [...replaced, content]);
}

export function replacedBy({ save, later, adopted }) {
  if (!later) return save ? [...save.replaced, save.content] : [];
  // The closed tab may have sent its draft.
  const wasAdopted = adopted !== null && later.content === adopted.content;
  return wasAdopted ? [...later.replaced, later.content] : [...later.replaced];
}
