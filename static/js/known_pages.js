// What the server is known to have had of each page, and which of its rows this
// tab has shown.

import { textOfAnswers } from "./merge_answers.js";
import { pairsIn } from "./waiting_saves.js";

const NOTHING = { revision: 0, content: "{}", loaded: true };

export class KnownPages {
  // seen and shown are, for each page, the highest revision of the rows that were
  // shown to the person, and all of them
  // known is [page, JSON text] of the answers that the server has
  constructor({ seen, shown, known }) {
    this.noteShown(seen, shown);
    // By rising revision.
    this.history = new Map();
    for (const [page, content] of known) {
      this.history.set(page, [{ revision: this.seenOf(page), content, loaded: true }]);
    }
  }

  noteShown(seen, shown) {
    this.seen = [...seen];
    this.shown = shown.map((revisions) => [...revisions]);
  }

  newestKnown(page) {
    const history = this.history.get(page) ?? [];
    return history[history.length - 1] ?? NOTHING;
  }

  // Without what closed tabs knew.
  newestHere(page) {
    const history = (this.history.get(page) ?? []).filter(({ learned }) => !learned);
    return history[history.length - 1] ?? NOTHING;
  }

  knownContent(page) {
    return this.newestKnown(page).content;
  }

  noteKnown(page, entry) {
    const others = (this.history.get(page) ?? []).filter(
      ({ revision }) => revision !== entry.revision,
    );
    others.push(entry);
    others.sort((one, two) => one.revision - two.revision);
    this.history.set(page, others);
  }

  seenOf(page) {
    return this.seen[page - 1] ?? 0;
  }

  // All revisions that were shown of a page, if there are several.
  shownOf(page) {
    const shown = this.shown[page - 1] ?? [];
    return shown.length > 1 ? [...shown] : undefined;
  }

  // That tab may have known a later state of the server than this one, or one that
  // is lost. It is what this tab shows now, so the server tells the two apart.
  learnFrom(page, { before, beforeRevision }) {
    if (!(beforeRevision > this.newestKnown(page).revision)) return;
    const known = { revision: beforeRevision, content: before };
    this.noteKnown(page, { ...known, loaded: true, learned: true });
    this.seen[page - 1] = beforeRevision;
    this.shown[page - 1] = [beforeRevision];
  }

  // True if the server does not have what it once acknowledged or sent: another
  // server took its place, which lacks the last commits. No row is ever deleted, so
  // an item without one is lost, even if another tab has saved its page since.
  isLostBy({ seen, known, earlier }) {
    return known.some(([page, content]) => {
      const isOlder = this.newestHere(page).revision > (seen[page - 1] ?? 0);
      return isOlder || this.withMissing(content, this.knownContent(page), earlier) !== content;
    });
  }

  // The server's answers, with those that it once had and has lost. (A reply to
  // a save that was faster than this reading looks the same; then they are sent
  // twice.)
  withLostAnswers(page, content, earlier) {
    const newest = this.newestHere(page);
    const revision = this.seenOf(page);
    const answers =
      newest.revision > revision
        ? this.withLost(page, content, newest).answers
        : this.withMissing(content, this.knownContent(page), earlier);
    const kept = (this.history.get(page) ?? []).filter((entry) => entry.revision <= revision);
    this.history.set(page, kept);
    this.noteKnown(page, { revision, content, loaded: false });
    return answers;
  }

  // `content`, with the lost answers of the page. isForeign: one of them replaces an
  // answer that this tab never had, so that another tab may have given it since.
  withLost(page, content, lost) {
    const history = this.history.get(page);
    const had = pairsIn(history.flatMap((one) => [one.content, ...(one.replaced ?? [])]));
    const merged = new Map(Object.entries(JSON.parse(content)));
    let isForeign = false;
    for (const [name, answer] of Object.entries(JSON.parse(lost.content))) {
      const current = merged.get(name) ?? null;
      const isOlder = current === null || had.has(JSON.stringify([name, current]));
      if (isOlder || answer !== null) merged.set(name, answer);
      if (!isOlder && answer !== null) isForeign = true;
    }
    return { answers: textOfAnswers(merged), isForeign };
  }

  // `content`, with those of the lost answers whose item has none, except `earlier`:
  // names of items whose answers the server does not show.
  withMissing(content, lost, earlier) {
    const isShown = ([name]) => !earlier.includes(name);
    const expected = Object.entries(JSON.parse(lost)).filter(isShown);
    return textOfAnswers(new Map([...expected, ...Object.entries(JSON.parse(content))]));
  }
}
