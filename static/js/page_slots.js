// The answers that wait, page by page. queue.js sends them.
//
// A slot has two parts. `save` will be sent or is being sent, and keeps its revision.
// `later` are newer answers of the same page, without a revision yet: `held` while the
// person is on the page. A page without both has no slot.
//
//   save       later    what it is                      what ends it
//   -          held     typed, page still open          put(): waiting; as the server has it: no slot
//   waiting    -        left the page                   sent: in flight
//   waiting    held     came back to the page           put(): replaces the save that waits
//   in flight  -        its reply is awaited            noteStored(): no slot; no reply: waiting
//   in flight  waiting  left the page again             noteStored(): `later` becomes the save
//   in flight  held     came back to the page           noteStored(): held alone
//   restored   any      a closed tab had not got a      noteStored(), or dropSave() if another
//                       reply: sent again as it was     device has saved since: `later` follows
//
// promote() makes `later` the save, in no other place. Revisions of this tab are its
// number modulo TABS, so that each shows which tab made it; takeRevision() gives them.
// What another tab left comes by restore() (a closed tab of this device) and rebase()
// (*Continue here*: rows of the server); both keep in `adopted` which part of `later` is
// not this tab's own, because the server's changes win over that part, and lose against
// what was typed here.

import { KnownPages } from "./known_pages.js";
import { mergeAnswers, textOfAnswers } from "./merge_answers.js";
import { TABS, isEditedHere, isSameTab, joinAdopted, keptFields, numberOf, replacedBy, replacedByRecord, waitingSave, withReplaced } from "./waiting_saves.js";

export class PageSlots extends KnownPages {
  // store has write(page, record) and remove(page), neither of which rejects
  // tab is a number below TABS; base is above every revision that is stored
  // The others are explained at KnownPages.
  constructor({ store, tab, base, ...options }) {
    super(options);
    Object.assign(this, { store, tab });
    this.next = base;
    this.slots = new Map();
    this.inFlight = new Set();
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
    const shownRows = { seen: this.seenOf(page), shown: this.shownOf(page) };
    slot.save = waitingSave(page, { revision, ...shownRows, content, replaced });
    slot.later = null;
  }

  // The next number that is this tab's.
  takeRevision() {
    const ahead = (this.tab - (this.next % TABS) + TABS) % TABS;
    const revision = this.next + ahead;
    this.next = revision + 1;
    return revision;
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
    // `base` may be what the closed tab knew, and the server has what this tab did.
    const own = slot ? [...replacedBy(slot), slot.before] : [];
    const replaced = [...own, base, ...replacedByRecord(record)];
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
      // Without what was answered here.
      const earlier = restored.adopted?.content ?? base;
      const taken = isEdited ? mergeAnswers(base, earlier, theirs) : content;
      restored.adopted = { ...from, content: taken };
      restored.later = { content, held, number: isEdited ? editedAt : number, replaced };
    }
    this.promote(restored);
    return this.persist(restored);
  }

  // What a closed tab left, on top of what the server has: its save may be older
  // than the server's answers, so the server's changes win; unless the server went
  // back behind what that tab knew.
  recordContent(page, { before, beforeRevision = 0, save, later, adopted }, base) {
    // What another closed tab knew may be lost, so it is not newer than this draft.
    const newest = this.newestHere(page).revision;
    let stored = base;
    if (save) {
      const sides = [base, save.content];
      if (this.newestKnown(page).revision < beforeRevision) sides.reverse();
      stored = mergeAnswers(withReplaced(before, save.replaced, base), ...sides);
    }
    if (!later) return stored;
    // That tab had taken over a draft in turn, which is older than its own changes.
    if (adopted) {
      const taken = this.mergeDraft(adopted, stored, newest);
      return this.mergeDraft({ ...later, before: adopted.content }, taken, newest);
    }
    return this.mergeDraft({ ...later, before: save ? save.content : before }, stored, newest);
  }

  // A draft {before, replaced, content, number} of a closed tab. That tab sent its
  // last answers without waiting for storage, and other tabs may have saved since:
  // if the newest row has a higher number than the draft, its changes win.
  mergeDraft({ before: earlier, replaced, content, number }, theirs, newest) {
    const before = withReplaced(earlier, replaced, theirs);
    if (newest >= (number ?? Infinity)) return mergeAnswers(before, theirs, content);
    return mergeAnswers(before, content, theirs);
  }

  // The newest answers of a page that are not known to be saved, or null.
  unsaved(page) {
    const slot = this.slots.get(page);
    return slot ? (slot.later ?? slot.save).content : null;
  }

  // True if another tab has saved a page whose answers wait here, or were lost: only
  // the person can tell which are right.
  isOvertakenBy({ seen, shown, known }) {
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
      const { revision: number, content: lost } = this.newestKnown(page);
      const theirs = this.withLostAnswers(page, content, earlier);
      // Lost answers are no changes of this tab: what is saved after them wins.
      const isLost = theirs !== content;
      const sentAgain = isLost ? { before: content, number, replaced: [lost], content: theirs } : null;
      const slot = this.slots.get(page);
      if (slot) {
        this.rebaseSlot(slot, theirs, content, sentAgain);
      } else if (isLost) {
        this.setLater(page, theirs, false);
        this.slots.get(page).adopted = sentAgain;
      }
    }
    this.resume();
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

  // sentAgain: the draft of lost answers that `theirs` has and `stored` lacks, or null.
  rebaseSlot(slot, theirs, stored, sentAgain) {
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
    slot.adopted = slot.adopted ? { ...slot.adopted, before: stored } : sentAgain;
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
      const merged = this.mergeDraft(adopted, stored, this.newestKnown(page).revision);
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
