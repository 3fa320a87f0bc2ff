// The answers that wait, page by page, and what the server is known to have.
//
// The slot of a page holds `save`, which is or will be sent, and `later`: newer
// answers of the same page that wait for it or, if `held`, for the person to
// leave the page. queue.js sends them.

import { mergeAnswers, textOfAnswers } from "./merge_answers.js";

// Revisions of one tab are equal modulo TABS, so that the server knows which rows
// are its own, even if two tabs count from the same number: see save_page() in
// survey/taking/storage.py.
export const TABS = 2 ** 20;

const NOTHING = { revision: 0, content: "{}", loaded: true };

export class PageSlots {
  // store has write(page, record) and remove(page), neither of which rejects
  // tab is a number below TABS; base is above every revision that is stored
  // seen and shown are, for each page, the highest revision of the rows that were
  // shown to the person, and all of them
  // known is [page, JSON text] of the answers that the server has
  constructor({ store, tab, base, seen, shown, known }) {
    Object.assign(this, { store, tab });
    this.next = base;
    this.noteShown(seen, shown);
    this.slots = new Map();
    this.inFlight = new Set();
    // What the server is known to have had of each page, by rising revision.
    this.history = new Map();
    for (const [page, content] of known) {
      this.history.set(page, [{ revision: this.seenOf(page), content, loaded: true }]);
    }
  }

  // Servers of the last release tell only the highest revisions.
  noteShown(seen, shown = seen.map((revision) => [revision])) {
    this.seen = [...seen];
    this.shown = shown.map((revisions) => [...revisions]);
  }

  // Queues the answers of a page that the person left, as JSON text.
  put(page, content) {
    this.setLater(page, content, false);
    this.sendNext();
    this.changed();
  }

  // Keeps the answers of a page on the device while the person is still on it.
  hold(page, content) {
    this.setLater(page, content, true);
    this.changed();
  }

  // taken: what else these answers have replaced.
  setLater(page, content, held, taken = []) {
    const slot = this.slotOf(page);
    const newest = slot.save ? slot.save.content : this.knownContent(page);
    // The number shows whether a row of the server is newer than this draft.
    const isSame = content === slot.later?.content;
    const number = isSame ? slot.later.number : this.next;
    const replaced = [...(isSame ? slot.later.replaced : replacedBy(slot)), ...taken];
    slot.later = content === newest ? null : { content, held, number, replaced };
    this.promote(slot);
    this.persist(slot);
  }

  slotOf(page) {
    if (!this.slots.has(page)) {
      // before: what the server had, and at which revision, when these answers
      // were given. adopted: a draft of a closed tab, perhaps older than that.
      const { content: before, revision: beforeRevision } = this.newestKnown(page);
      const empty = { page, save: null, later: null, adopted: null };
      this.slots.set(page, { ...empty, before, beforeRevision });
    }
    return this.slots.get(page);
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

  // Newer answers replace the save that waits. They do not replace a save in
  // flight, whose reply would then belong to other answers, nor one restored
  // after a reload: another device may have saved since, which only a request
  // with the restored revision can find out.
  promote(slot, { leaving = false } = {}) {
    const { save, later } = slot;
    if (!later || (later.held && !leaving)) return;
    if (save?.restored || (save && this.inFlight.has(save) && !leaving)) return;
    const { page } = slot;
    const revision = this.takeRevision();
    const { content, replaced } = later;
    const sight = { seen: this.seenOf(page), shown: this.shownOf(page), base: revision };
    slot.save = waitingSave(page, { revision, ...sight, content, replaced });
    slot.later = null;
  }

  // The next number that is this tab's.
  takeRevision() {
    const ahead = (this.tab - (this.next % TABS) + TABS) % TABS;
    const revision = this.next + ahead;
    this.next = revision + 1;
    return revision;
  }

  seenOf(page) {
    return this.seen[page - 1] ?? 0;
  }

  // All revisions that were shown of a page, if there are several.
  shownOf(page) {
    const shown = this.shown[page - 1] ?? [];
    return shown.length > 1 ? [...shown] : undefined;
  }

  // Writes the slot to the device's storage, or removes it when it is empty.
  persist(slot) {
    if (!slot.save && !slot.later) {
      this.slots.delete(slot.page);
      return this.store.remove(slot.page);
    }
    return this.store.write(slot.page, {
      before: slot.before,
      beforeRevision: slot.beforeRevision,
      save: slot.save && keptFields(slot.save),
      later: slot.later,
      adopted: slot.later && !(slot.save && !slot.save.restored) ? slot.adopted : null,
    });
  }

  // Takes over what an earlier tab of the same person left on this device. A
  // save is sent again with its own revision, even if the server has the same
  // answers: an older save of the page may still arrive, and only a higher
  // revision stops it. Resolves when this tab has stored the record.
  restore(page, record) {
    const slot = this.slots.get(page);
    this.learnFrom(page, record);
    if (this.addsNothing(page, record)) {
      return slot ? this.persist(slot) : this.store.remove(page);
    }
    const stored = this.isOvertaken(slot, page, record)
      ? this.restoreOvertaken(slot, page, record)
      : this.restoreWhole(slot, page, record);
    this.sendNext();
    this.changed();
    return stored;
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

  // True if the server had a newer save when this tab was loaded that made all
  // the changes of the restored one: sending it could only be superseded.
  addsNothing(page, record) {
    const { save, later } = record;
    if (!save || later || save.revision >= this.seenOf(page)) return false;
    const known = this.knownContent(page);
    return this.recordContent(page, record, known) === known;
  }

  // True if this tab has saved the page with a higher revision, or is about to.
  isOvertaken(slot, page, { save }) {
    const { revision, loaded } = this.newestKnown(page);
    const known = loaded ? 0 : revision;
    return Boolean(save) && save.revision < Math.max(known, slot?.save?.revision ?? 0);
  }

  // Changes of this tab win over the record. A save that the server had when
  // this tab was loaded adds nothing: it had this or a newer one of that tab.
  restoreOvertaken(slot, page, { before, beforeRevision, save, later, adopted }) {
    const seen = this.seenOf(page);
    const wasSeen = save.revision <= seen && isSameTab(save.revision, seen);
    if (wasSeen && !later) return slot ? this.persist(slot) : this.store.remove(page);
    const base = this.knownContent(page);
    const isEdited = slot && isEditedHere(slot);
    const own = slot ? this.rebasedContent(slot, base) : base;
    const from = { before: wasSeen ? save.content : before, beforeRevision };
    const record = { ...from, save, later, adopted };
    const theirs = this.recordContent(page, record, base);
    const held = slot ? Boolean(slot.later?.held) : Boolean(later?.held);
    const replaced = replacedByRecord(record);
    this.setLater(page, mergeAnswers(base, own, theirs), held, replaced);
    const merged = this.slots.get(page);
    if (merged && theirs !== base) {
      const { later: newer, save: sent, adopted: earlier } = merged;
      const content = isEdited ? theirs : (newer ?? sent).content;
      const taken = { before: base, number: numberOf(record), replaced, content };
      if (!earlier) merged.adopted = taken;
      else if (!isEdited) merged.adopted = joinAdopted(earlier, taken);
    }
    return merged ? this.persist(merged) : this.store.remove(page);
  }

  restoreWhole(slot, page, record) {
    const { before, beforeRevision = 0, save, later } = record;
    const { revision, content: base } = this.newestKnown(page);
    const isEdited = slot && isEditedHere(slot);
    const editedAt = slot && (slot.later?.number ?? slot.save.revision);
    const theirs = this.recordContent(page, record, base);
    const replaced = [...(slot ? replacedBy(slot) : []), base, ...replacedByRecord(record)];
    const content = slot ? mergeAnswers(base, this.rebasedContent(slot, base), theirs) : theirs;
    const held = slot ? Boolean(slot.later?.held) : Boolean(later?.held);
    const numbers = [slot, record].filter(Boolean).map(numberOf);
    const number = Math.min(...numbers, save ? revision + 1 : Infinity);
    const restored = slot ?? this.slotOf(page);
    this.next = Math.max(this.next, save ? save.revision + 1 : 0, later?.number ?? 0);
    if (save) {
      restored.save = waitingSave(page, save);
      restored.save.restored = true;
      Object.assign(restored, { before, beforeRevision });
    } else if (!restored.save?.restored) {
      Object.assign(restored, { before: base, beforeRevision: revision });
    }
    const isSent = content === (restored.save?.content ?? base);
    restored.later = null;
    if (!isSent) {
      const from = { before: save ? save.content : base, number, replaced };
      restored.adopted = { ...from, content: isEdited ? theirs : content };
      restored.later = { content, held, number: isEdited ? editedAt : number, replaced };
    }
    this.promote(restored);
    return this.persist(restored);
  }

  // What a closed tab left, on top of what the server has: its save may be older
  // than the server's answers, so the server's changes win; unless the server went
  // back behind what that tab knew.
  recordContent(page, { before, beforeRevision = 0, save, later, adopted }, base) {
    let stored = base;
    if (save) {
      const sides = [base, save.content];
      if (this.newestKnown(page).revision < beforeRevision) sides.reverse();
      stored = mergeAnswers(withReplaced(before, save.replaced, base), ...sides);
    }
    if (!later) return stored;
    // That tab had taken over a draft in turn, which is older than its own changes.
    if (adopted) {
      const taken = this.mergeDraft(page, adopted, stored);
      return this.mergeDraft(page, { ...later, before: adopted.content }, taken);
    }
    return this.mergeDraft(page, { ...later, before: save ? save.content : before }, stored);
  }

  // A draft {before, replaced, content, number} of a closed tab. That tab sent its
  // last answers without waiting for storage, and other tabs may have saved since:
  // a row with a higher number is newer than the draft, and its changes win.
  mergeDraft(page, { before: earlier, replaced, content, number }, theirs) {
    const before = withReplaced(earlier, replaced, theirs);
    if (this.newestKnown(page).revision >= (number ?? Infinity)) {
      return mergeAnswers(before, theirs, content);
    }
    return mergeAnswers(before, content, theirs);
  }

  // The newest answers of a page that are not known to be saved, or null.
  unsaved(page) {
    const slot = this.slots.get(page);
    return slot ? (slot.later ?? slot.save).content : null;
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

  // True if another tab has saved a page whose answers wait here, or were lost: only
  // the person can tell which are right.
  isOvertakenBy({ seen, shown = seen.map((revision) => [revision]), known }) {
    return known.some(([page, content]) => {
      const slot = this.slots.get(page);
      const own = [0, slot?.save?.revision, ...(this.shown[page - 1] ?? [])];
      const isUnseen = (one) => !isSameTab(one, this.tab) && !own.includes(one);
      if (slot && shown[page - 1].some(isUnseen)) return true;
      const newest = this.newestHere(page);
      return newest.revision > seen[page - 1] && this.withLost(page, content, newest).isForeign;
    });
  }

  // *Continue here*: `known` has what other tabs and devices saved meanwhile, and
  // `base` is above all their revisions. Changes of this tab win, item by item.
  rebase({ base, seen, shown, known, earlier = [] }) {
    this.next = Math.max(this.next, base);
    this.noteShown(seen, shown);
    for (const [page, content] of known) {
      const lost = this.newestKnown(page);
      const theirs = this.withLostAnswers(page, content, earlier);
      const slot = this.slots.get(page);
      if (slot) this.rebaseSlot(slot, theirs, content);
      else if (theirs !== content) this.sendAgain(page, theirs, content, lost);
    }
    this.resume();
  }

  // Lost answers are no changes of this tab: what is saved after them wins.
  sendAgain(page, content, before, { revision: number, content: lost }) {
    this.setLater(page, content, false);
    Object.assign(this.slots.get(page), { adopted: { before, number, replaced: [lost], content } });
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

  // Takes blanks of these items out of what waits.
  dropBlanks(names) {
    const keep = ([name, answer]) => answer !== null || !names.has(name);
    const without = (part) => {
      const answers = Object.entries(JSON.parse(part.content)).filter(keep);
      return { ...part, content: textOfAnswers(answers) };
    };
    if (!names.size) return;
    for (const slot of this.slots.values()) {
      if (slot.save) slot.save = without(slot.save);
      if (slot.later) slot.later = without(slot.later);
    }
  }

  rebaseSlot(slot, theirs, stored) {
    const { later, save } = slot;
    const wasShown = String(save?.shown ?? save?.seen);
    const isShown = String(this.shownOf(slot.page) ?? this.seenOf(slot.page));
    const isUnchanged = wasShown === isShown && theirs === stored;
    // The server will store it as it is, perhaps before anything sent now.
    if (save?.restored && this.inFlight.has(save) && isUnchanged) return;
    const number = isEditedHere(slot) ? this.next : numberOf(slot);
    const content = this.rebasedContent(slot, theirs);
    if (save?.restored && !slot.adopted) slot.adopted = this.adoptedFrom(slot, theirs);
    // Without lost answers, which would look like changes of another tab next time.
    if (slot.adopted) slot.adopted = { ...slot.adopted, before: stored };
    const held = Boolean(!save && later?.held);
    // A save that was in flight may still arrive, so it is sent again even if
    // the server has the same answers: see restore().
    const isInFlight = [...this.inFlight].some(({ page }) => page === slot.page);
    const isSaved = content === stored && !save && !isInFlight;
    const replaced = replacedBy(slot);
    // The server went back: what it had before may be saved again by another tab.
    if (slot.beforeRevision > this.seenOf(slot.page)) replaced.push(slot.before);
    Object.assign(slot, { before: stored, beforeRevision: this.seenOf(slot.page) });
    slot.save = null;
    slot.later = isSaved ? null : { content, held, number, replaced };
    this.promote(slot);
    this.persist(slot);
  }

  // The restored save as a draft, so that the server's changes win in future too.
  adoptedFrom({ page, before, beforeRevision, save }, theirs) {
    const content = this.recordContent(page, { before, beforeRevision, save }, theirs);
    const replaced = [...save.replaced, save.content];
    return { before: theirs, number: save.revision, replaced, content };
  }

  // What a closed tab left may be older than the server's answers: see
  // mergeDraft(). Changes of this tab win over both.
  rebasedContent(slot, theirs) {
    const { page, before, beforeRevision, save, later, adopted } = slot;
    const isRestored = Boolean(save?.restored);
    const { content, replaced } = later ?? save;
    const stored = isRestored ? this.recordContent(page, { before, beforeRevision, save }, theirs) : theirs;
    if (adopted) {
      const merged = this.mergeDraft(page, adopted, stored);
      slot.adopted = { ...adopted, before: theirs, content: merged };
      return mergeAnswers(adopted.content, content, merged);
    }
    if (isRestored && !later) return stored;
    const from = isRestored ? save.content : before;
    return mergeAnswers(withReplaced(from, replaced, stored), content, stored);
  }

  // Drops a restored save, which the server has from another device.
  dropSave(page) {
    const slot = this.slots.get(page);
    const { content: before, revision: beforeRevision } = this.newestKnown(page);
    Object.assign(slot, { save: null, before, beforeRevision });
    this.persist(slot);
  }

  // Notes that the server has a save.
  noteStored(save) {
    const { page, revision, content, replaced } = save;
    this.noteKnown(page, { revision, content, replaced, loaded: false });
    // Rows of this tab need not be seen: their revision says that they are its own.
    if (!isSameTab(revision, this.tab)) {
      this.seen[page - 1] = Math.max(this.seenOf(page), revision);
      const shown = (this.shown[page - 1] ?? []).filter((other) => other && other !== revision);
      this.shown[page - 1] = [...shown, revision];
    }
    const slot = this.slots.get(page);
    if (!slot) return;
    const newest = this.newestKnown(page);
    Object.assign(slot, { before: newest.content, beforeRevision: newest.revision });
    if (slot.save === save) {
      slot.save = null;
      if (!save.restored) slot.adopted = null;
    }
    this.persist(slot);
  }
}

// False for what was only taken over from closed tabs.
function isEditedHere({ save, later, adopted }) {
  if (adopted) return (later ?? save).content !== adopted.content;
  return !(save?.restored && !later);
}

// A row of the server that is as high is newer.
function numberOf({ save, later, adopted }) {
  return adopted?.number ?? (later ? later.number : save.revision) ?? Infinity;
}

// `before`, but with an answer of `theirs` where that is one which these answers
// have replaced: it is no change of another tab.
function withReplaced(before, replaced = [], theirs = "{}") {
  const [answers, current] = [before, theirs].map((text) => Object.entries(JSON.parse(text)));
  const known = pairsIn(replaced);
  const isReplaced = (pair) => known.has(JSON.stringify(pair));
  return textOfAnswers(new Map([...answers, ...current.filter(isReplaced)]));
}

function pairsIn(contents) {
  const pairs = contents.flatMap((text) => Object.entries(JSON.parse(text)));
  return new Set(pairs.map((pair) => JSON.stringify(pair)));
}

function isSameTab(one, two) {
  return one % TABS === two % TABS;
}

function waitingSave(page, save) {
  const { replaced = [] } = save;
  return { page, ...save, replaced, attempts: 0, restored: false, refused: null };
}

// Everything in a save's body, so that a retry is identical to the byte. `seen`
// tells the server which rows this tab has shown to the person. `base` is the
// save's own revision; in records of earlier releases, the tab's first.
function bodyFields({ revision, seen, shown, oldest, base, content }) {
  return { revision, seen, shown, oldest, base, content };
}

// The answers that `replaced` lists were replaced by these, and may be on the
// server all the same.
function keptFields(save) {
  return { ...bodyFields(save), replaced: save.replaced };
}

// Two drafts that were taken over are as old as the older one.
function joinAdopted(one, two) {
  const number = Math.min(one.number, two.number);
  return { ...two, number, replaced: [...one.replaced, ...two.replaced] };
}

function replacedByRecord({ save, later }) {
  const parts = [save, later].filter(Boolean);
  return parts.flatMap(({ replaced = [], content }) => [...replaced, content]);
}

function replacedBy({ save, later, adopted }) {
  if (!later) return save ? [...save.replaced, save.content] : [];
  // The closed tab may have sent its draft.
  const wasAdopted = adopted !== null && later.content === adopted.content;
  return wasAdopted ? [...later.replaced, later.content] : [...later.replaced];
}
