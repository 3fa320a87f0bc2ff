// The queue of page saves: one save per page waits, and one is in flight.
//
// The slot of a page holds `save`, which is or will be sent, and `later`: newer
// answers of the same page that wait for it or, if `held`, for the person to
// leave the page. Network, storage and screen are passed in, so that tests can
// lose, double and reorder everything.

import { fullJitter, FIRST_WAIT } from "./clock.js";
import { mergeAnswers, textOfAnswers } from "./merge_answers.js";

export class Queue {
  // send({page, revision, body, leaving}) resolves to an outcome of send_save.js
  // store has write(page, record) and remove(page), neither of which rejects
  // base is this tab's first revision; seen is, for each page, the highest
  // revision that was shown to the person
  // known maps a page to the JSON text of the answers that the server has
  // changed() is called after each change that the screen shows
  constructor({ send, store, clock, random, base, seen, known, changed }) {
    Object.assign(this, { send, store, clock, random, base, seen, changed });
    this.next = base;
    this.acknowledged = new Map();
    this.known = new Map();
    for (const [page, content] of known) this.known.set(page, { revision: 0, content });
    this.slots = new Map();
    this.inFlight = new Set();
    this.halted = null;
    this.failures = 0;
    // When to retry, at random after the earliest time that the server allows.
    this.retryAt = 0;
    this.earliestRetry = 0;
    this.timer = null;
    this.savedAt = null;
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

  setLater(page, content, held) {
    const slot = this.slotOf(page);
    const newest = slot.save ? slot.save.content : this.knownContent(page);
    // The number shows whether a row of the server is newer than this draft.
    slot.later = content === newest ? null : { content, held, number: this.next };
    this.promote(slot);
    this.persist(slot);
  }

  slotOf(page) {
    if (!this.slots.has(page)) {
      this.slots.set(page, { page, save: null, later: null, before: null });
    }
    const slot = this.slots.get(page);
    slot.before ??= this.knownContent(page);
    return slot;
  }

  knownContent(page) {
    return this.known.get(page)?.content ?? "{}";
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
    const revision = this.next;
    this.next += 1;
    const seen = Math.max(this.seenOf(page), this.acknowledged.get(page) ?? 0);
    slot.save = waitingSave(page, { revision, seen, base: this.base, content: later.content });
    slot.later = null;
  }

  seenOf(page) {
    return this.seen[page - 1] ?? 0;
  }

  // Writes the slot to the device's storage, or removes it when it is empty.
  persist(slot) {
    if (!slot.save && !slot.later) {
      this.slots.delete(slot.page);
      return this.store.remove(slot.page);
    }
    return this.store.write(slot.page, {
      before: slot.before,
      save: slot.save && bodyFields(slot.save),
      later: slot.later,
    });
  }

  // Takes over what an earlier tab of the same person left on this device. A
  // save is sent again with its own revision, even if the server has the same
  // answers: an older save of the page may still arrive, and only a higher
  // revision stops it. Resolves when this tab has stored the record.
  restore(page, record) {
    const slot = this.slots.get(page);
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
  addsNothing(page, { before, save, later }) {
    if (!save || later || save.revision >= this.seenOf(page)) return false;
    const known = this.knownContent(page);
    return mergeAnswers(before, known, save.content) === known;
  }

  // True if this tab has saved the page with a higher revision, or is about to.
  isOvertaken(slot, page, { save }) {
    const known = this.known.get(page)?.revision ?? 0;
    return Boolean(save) && save.revision < Math.max(known, slot?.save?.revision ?? 0);
  }

  // Changes of this tab win over the record. A save that the server had when
  // this tab was loaded adds nothing.
  restoreOvertaken(slot, page, { before, save, later }) {
    const wasSeen = save.revision <= this.seenOf(page);
    if (wasSeen && !later) return slot ? this.persist(slot) : this.store.remove(page);
    const own = slot ? (slot.later ?? slot.save).content : this.knownContent(page);
    const theirs = (later ?? save).content;
    const content = mergeAnswers(wasSeen ? save.content : before, own, theirs);
    const held = slot ? Boolean(slot.later?.held) : Boolean(later?.held);
    this.setLater(page, content, held);
    const merged = this.slots.get(page);
    return merged ? this.persist(merged) : this.store.remove(page);
  }

  restoreWhole(slot, page, { before, save, later }) {
    const restored = { page, save: slot?.save ?? null, later: null, before };
    if (save) {
      this.next = Math.max(this.next, save.revision + 1);
      restored.save = waitingSave(page, save);
      restored.save.restored = true;
    }
    const own = slot && (slot.later ?? slot.save);
    if (own) {
      const theirs = later ?? save;
      const content = theirs ? mergeAnswers(before, own.content, theirs.content) : own.content;
      restored.later = { content, held: Boolean(slot.later?.held), number: this.next };
    } else if (save) {
      restored.later = later;
    } else if (later) {
      const known = this.knownContent(page);
      const content = this.mergeDraft(page, before, later, known);
      restored.later = content === known ? null : { ...later, content, adopted: true };
    }
    this.slots.set(page, restored);
    this.promote(restored);
    return this.persist(restored);
  }

  // A tab that closes sends its last answers without waiting for storage, so a
  // row of the server that is newer than the draft contains more than the draft.
  mergeDraft(page, before, later, known) {
    if (this.seenOf(page) >= (later.number ?? Infinity)) {
      return mergeAnswers(before, known, later.content);
    }
    return mergeAnswers(before, later.content, known);
  }

  // The newest answers of a page that are not known to be saved, or null.
  unsaved(page) {
    const slot = this.slots.get(page);
    return slot ? (slot.later ?? slot.save).content : null;
  }

  // Sending

  sendNext() {
    if (this.halted || this.inFlight.size || this.timer !== null) return;
    const save = this.nextToSend();
    if (!save) return;
    const wait = this.retryAt - this.clock.now();
    if (wait <= 0) {
      this.transmit(save);
      return;
    }
    this.timer = this.clock.after(wait, () => {
      this.timer = null;
      this.sendNext();
    });
  }

  // The save with the fewest attempts, so that one page that makes the server
  // fail does not hold up the others.
  nextToSend() {
    const saves = [...this.slots.values()].map(({ save }) => save);
    const ready = saves.filter((save) => save && !save.refused);
    ready.sort((a, b) => a.attempts - b.attempts || a.revision - b.revision);
    return ready[0];
  }

  transmit(save, { leaving = false } = {}) {
    this.inFlight.add(save);
    save.attempts += 1;
    const { page, revision } = save;
    this.send({ page, revision, body: bodyOf(save), leaving }).then(
      (outcome) => this.handleOutcome(save, outcome),
      () => this.handleOutcome(save, { kind: "retry", after: null }),
    );
    this.changed();
  }

  handleOutcome(save, outcome) {
    this.inFlight.delete(save);
    const slot = this.slots.get(save.page);
    const isNewest = slot?.save === save;
    if (outcome.kind === "saved" && outcome.revision === save.revision) {
      this.acknowledge(save, outcome.at);
    } else if (outcome.kind === "session" || outcome.kind === "halt") {
      this.handleStop(save, outcome, isNewest);
    } else if (outcome.kind === "answers" || outcome.kind === "refused") {
      if (isNewest) Object.assign(save, { refused: outcome, restored: false });
    } else {
      this.backOff(outcome.after ?? 0);
    }
    const current = this.slots.get(save.page);
    if (current?.later) {
      const before = current.save;
      this.promote(current);
      if (current.save !== before) this.persist(current);
    }
    this.sendNext();
    this.changed();
  }

  handleStop(save, outcome, isNewest) {
    if (outcome.error === "superseded") {
      // A newer save of this same tab may have superseded it.
      if (!isNewest) return;
      // Another device saved the very same answers, so there is no conflict.
      if (save.restored && save.content === this.knownContent(save.page)) {
        const slot = this.slots.get(save.page);
        slot.save = null;
        this.persist(slot);
        return;
      }
    }
    this.halt(outcome);
  }

  acknowledge(save, at) {
    this.failures = 0;
    this.retryAt = 0;
    this.earliestRetry = 0;
    this.stopTimer();
    this.savedAt = at;
    const earlier = this.acknowledged.get(save.page) ?? 0;
    this.acknowledged.set(save.page, Math.max(earlier, save.revision));
    const known = this.known.get(save.page);
    if (!known || known.revision < save.revision) {
      this.known.set(save.page, { revision: save.revision, content: save.content });
    }
    const slot = this.slots.get(save.page);
    if (!slot) return;
    slot.before = this.knownContent(save.page);
    if (slot.save === save) slot.save = null;
    this.persist(slot);
  }

  backOff(after) {
    this.failures += 1;
    const now = this.clock.now();
    this.earliestRetry = now + after;
    // The server tells a whole school the same number of seconds.
    const jitter = fullJitter(this.failures, this.random);
    const spread = Math.max(jitter, this.random() * after);
    this.retryAt = this.earliestRetry + spread;
    this.stopTimer();
  }

  stopTimer() {
    if (this.timer !== null) this.clock.cancel(this.timer);
    this.timer = null;
  }

  // The network seems to be back: retries within a second at random, but not
  // before the time that the server asked for.
  retrySoon() {
    const soon = this.clock.now() + this.random() * FIRST_WAIT;
    this.retryAt = Math.min(this.retryAt, Math.max(this.earliestRetry, soon));
    this.stopTimer();
    this.sendNext();
  }

  // The tab may be closed in a moment: sends everything that waits at once, even
  // while an older save of the same page is in flight; revisions order them.
  sendAll() {
    if (this.halted) return;
    for (const slot of [...this.slots.values()]) {
      const before = slot.save;
      this.promote(slot, { leaving: true });
      if (slot.save !== before) this.persist(slot);
      const { save } = slot;
      const isIdle = save && !save.refused && !this.inFlight.has(save);
      if (isIdle) this.transmit(save, { leaving: true });
    }
  }

  // Sends drafts of pages that the person will not leave, such as restored ones.
  sendDrafts() {
    for (const slot of [...this.slots.values()]) {
      if (slot.later) this.setLater(slot.page, slot.later.content, false);
    }
    this.sendNext();
    this.changed();
  }

  // Stopping and going on

  halt(outcome) {
    this.halted = outcome;
    this.stopTimer();
  }

  resume(base = 0) {
    this.next = Math.max(this.next, base);
    this.halted = null;
    this.failures = 0;
    this.retryAt = 0;
    this.sendNext();
    this.changed();
  }

  tryRefusedAgain() {
    for (const { save } of this.slots.values()) if (save) save.refused = null;
    this.resume();
  }

  // *Continue here*: `known` has what other tabs and devices saved meanwhile, and
  // `base` is above all their revisions. Changes of this tab win, item by item.
  rebase({ base, seen, known }) {
    this.next = Math.max(this.next, base);
    Object.assign(this, { base, seen });
    this.known = new Map();
    for (const [page, content] of known) {
      this.known.set(page, { revision: this.next - 1, content });
    }
    for (const slot of [...this.slots.values()]) this.rebaseSlot(slot);
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

  rebaseSlot(slot) {
    const { later, save } = slot;
    const theirs = this.knownContent(slot.page);
    const content = this.rebasedContent(slot, theirs);
    const held = Boolean(!save && later?.held);
    // A save that was in flight may still arrive, so it is sent again even if
    // the server has the same answers: see restore().
    const isInFlight = [...this.inFlight].some(({ page }) => page === slot.page);
    const isSaved = content === theirs && !save && !isInFlight;
    slot.before = theirs;
    slot.save = null;
    slot.later = isSaved ? null : { content, held, number: this.next };
    this.promote(slot);
    this.persist(slot);
  }

  // Answers of a closed tab may be older than the server's, so the server's
  // changes win over them; changes of this tab win over both.
  rebasedContent({ page, save, later, before }, theirs) {
    if (later?.adopted) return this.mergeDraft(page, before, later, theirs);
    if (!save?.restored) return mergeAnswers(before, (later ?? save).content, theirs);
    const merged = mergeAnswers(before, theirs, save.content);
    return later ? mergeAnswers(save.content, later.content, merged) : merged;
  }

  // State, for the status line and the notices

  pending() {
    let count = 0;
    for (const slot of this.slots.values()) {
      if (slot.save || !slot.later.held) count += 1;
    }
    return count;
  }

  isEditing() {
    return [...this.slots.values()].some((slot) => slot.later?.held);
  }

  isRetrying() {
    return this.failures > 0;
  }

  refusals() {
    const refused = [];
    for (const { page, save } of this.slots.values()) {
      if (save?.refused) refused.push({ page, revision: save.revision, ...save.refused });
    }
    return refused;
  }
}

function waitingSave(page, save) {
  return { page, ...save, attempts: 0, restored: false, refused: null };
}

// Everything in a save's body, so that a retry is identical to the byte. `seen`
// and `base` tell the server which rows this tab may replace: those that it has
// shown to the person, and its own.
function bodyFields({ revision, seen, base, content }) {
  return { revision, seen, base, content };
}

export function bodyOf({ revision, seen, base, content }) {
  return `{"revision":${revision},"seen":${seen},"base":${base},"answers":${content}}`;
}
