// The saves that wait: one per page, one in flight.
//
// A page's slot holds `save`, which is or will be on the wire, and `later`,
// newer answers of the same page that wait for it (or, when held, for the
// person to leave the page). Knows neither network, storage nor screen: they
// are passed in, so that tests can lose, double and reorder everything.

import { fullJitter, FIRST_WAIT } from "./clock.js";
import { mergeAnswers } from "./merging.js";

export class Queue {
  // send({page, revision, body, leaving}) resolves to an outcome of sending.js
  // store has write(page, record) and remove(page), neither of which rejects
  // base is where this tab's revisions begin, seen has for each page the highest
  // one that the person was shown
  // known maps a page to the JSON text of the answers that the server holds
  // changed() is called after each change that a person might want to see
  constructor({ send, store, clock, random, base, seen, known, changed }) {
    Object.assign(this, { send, store, clock, random, base, seen, changed });
    this.next = base;
    this.acknowledged = new Map();
    this.known = new Map();
    for (const [page, content] of known) this.known.set(page, { revision: 0, content });
    this.slots = new Map();
    this.flying = new Set();
    this.halted = null;
    this.failures = 0;
    // `notBefore` spreads the retries; `barred` is what the server asked for.
    this.notBefore = 0;
    this.barred = 0;
    this.timer = null;
    this.savedAt = null;
  }

  // The person left the page with these answers, the JSON text of them.
  put(page, content) {
    this.setLater(page, content, false);
    this.kick();
    this.changed();
  }

  // The person is still answering the page: kept on the device, not yet sent.
  hold(page, content) {
    this.setLater(page, content, true);
    this.changed();
  }

  setLater(page, content, held) {
    const slot = this.slotOf(page);
    const newest = slot.save ? slot.save.content : this.knownContent(page);
    // The number tells whether a row that turns up is newer than a draft.
    slot.later = content === newest ? null : { content, held, number: this.next };
    this.promote(slot);
    this.keep(slot);
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

  // Newer answers take the place of those that wait. Not of those in flight,
  // whose reply would then be about something else; and not of those kept from
  // before a reload, which another device may have overtaken meanwhile: only
  // their own revision can find that out.
  promote(slot, { leaving = false } = {}) {
    const { save, later } = slot;
    if (!later || (later.held && !leaving)) return;
    if (save?.kept || (save && this.flying.has(save) && !leaving)) return;
    slot.save = this.newSave(slot.page, later.content);
    slot.later = null;
  }

  newSave(page, content) {
    const revision = this.next;
    this.next += 1;
    const seen = Math.max(this.seenOf(page), this.acknowledged.get(page) ?? 0);
    return waitingSave(page, { revision, seen, base: this.base, content });
  }

  seenOf(page) {
    return this.seen[page - 1] ?? 0;
  }

  // Storage holds what the slot holds; an empty slot holds nothing.
  keep(slot) {
    if (!slot.save && !slot.later) {
      this.slots.delete(slot.page);
      return this.store.remove(slot.page);
    }
    return this.store.write(slot.page, {
      before: slot.before,
      save: slot.save && wireOf(slot.save),
      later: slot.later,
    });
  }

  // Takes up what an earlier tab of the same person left on this device. A
  // save goes out once more with its own revision, even when the server holds
  // the same answers: an older save of the page may still be on its way, and
  // only a higher revision stops it. Resolves when it is this tab's own.
  restore(page, record) {
    const slot = this.slots.get(page);
    if (this.addsNothing(page, record)) {
      return slot ? this.keep(slot) : this.store.remove(page);
    }
    const stored = this.isOvertaken(slot, page, record)
      ? this.restoreOvertaken(slot, page, record)
      : this.restoreWhole(slot, page, record);
    this.kick();
    this.changed();
    return stored;
  }

  // The server held a newer save when this tab was loaded, which changed all
  // that the kept one did: sending it could only be called superseded.
  addsNothing(page, { before, save, later }) {
    if (!save || later || save.revision >= this.seenOf(page)) return false;
    const known = this.knownContent(page);
    return mergeAnswers(before, known, save.content) === known;
  }

  // This tab has saved the page, or is about to, under a higher revision.
  isOvertaken(slot, page, { save }) {
    const known = this.known.get(page)?.revision ?? 0;
    return Boolean(save) && save.revision < Math.max(known, slot?.save?.revision ?? 0);
  }

  // What this tab changed wins; the record supplies the rest. A save that the
  // server held when this tab was loaded has nothing left to supply.
  restoreOvertaken(slot, page, { before, save, later }) {
    const wasSeen = save.revision <= this.seenOf(page);
    if (wasSeen && !later) return slot ? this.keep(slot) : this.store.remove(page);
    const own = slot ? (slot.later ?? slot.save).content : this.knownContent(page);
    const theirs = (later ?? save).content;
    const content = mergeAnswers(wasSeen ? save.content : before, own, theirs);
    const held = slot ? Boolean(slot.later?.held) : Boolean(later?.held);
    this.setLater(page, content, held);
    const merged = this.slots.get(page);
    return merged ? this.keep(merged) : this.store.remove(page);
  }

  restoreWhole(slot, page, { before, save, later }) {
    const restored = { page, save: slot?.save ?? null, later: null, before };
    if (save) {
      this.next = Math.max(this.next, save.revision + 1);
      restored.save = waitingSave(page, save);
      restored.save.kept = true;
    }
    const own = slot && (slot.later ?? slot.save);
    if (own) {
      restored.later = this.mergedLater(slot, own, before, later ?? save);
    } else {
      restored.later = later && this.rebasedLater(page, before, later, restored.save);
    }
    this.slots.set(page, restored);
    this.promote(restored);
    return this.keep(restored);
  }

  mergedLater(slot, own, before, theirs) {
    const content = theirs ? mergeAnswers(before, own.content, theirs.content) : own.content;
    return { content, held: Boolean(slot.later?.held), number: this.next };
  }

  rebasedLater(page, before, later, save) {
    if (save) return later;
    const known = this.knownContent(page);
    const content = this.withDraft(page, before, later, known);
    return content === known ? null : { ...later, content, adopted: true };
  }

  // A tab that dies sends its last answers without waiting for storage: a row
  // that is newer than its draft was made from more than the draft.
  withDraft(page, before, later, known) {
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

  kick() {
    if (this.halted || this.flying.size || this.timer !== null) return;
    const save = this.pick();
    if (!save) return;
    const wait = this.notBefore - this.clock.now();
    if (wait > 0) {
      this.timer = this.clock.after(wait, () => this.wake());
    } else {
      this.fly(save);
    }
  }

  wake() {
    this.timer = null;
    this.kick();
  }

  // The least tried first, so that one page the server stumbles over does not
  // keep the others back.
  pick() {
    let best = null;
    for (const { save } of this.slots.values()) {
      if (!save || save.refused) continue;
      if (!best || this.isSooner(save, best)) best = save;
    }
    return best;
  }

  isSooner(save, other) {
    if (save.attempts !== other.attempts) return save.attempts < other.attempts;
    return save.revision < other.revision;
  }

  fly(save, { leaving = false } = {}) {
    this.flying.add(save);
    save.attempts += 1;
    const { page, revision } = save;
    this.send({ page, revision, body: bodyOf(save), leaving }).then(
      (outcome) => this.settle(save, outcome),
      () => this.settle(save, { kind: "retry", after: null }),
    );
    this.changed();
  }

  settle(save, outcome) {
    this.flying.delete(save);
    const slot = this.slots.get(save.page);
    const newest = slot?.save === save;
    if (outcome.kind === "saved" && outcome.revision === save.revision) {
      this.acknowledge(save, outcome.at);
    } else if (outcome.kind === "session" || outcome.kind === "halt") {
      this.stopped(save, outcome, newest);
    } else if (outcome.kind === "answers" || outcome.kind === "refused") {
      if (newest) Object.assign(save, { refused: outcome, kept: false });
    } else {
      this.backOff(outcome.after ?? 0);
    }
    this.moveOn(save.page);
  }

  stopped(save, outcome, newest) {
    if (outcome.error !== "superseded") return this.halt(outcome);
    // An overtaken save may be called superseded by its own successor.
    if (!newest) return undefined;
    // Somebody else saved the very same answers: nothing is left to decide.
    const isSame = save.content === this.knownContent(save.page);
    return save.kept && isSame ? this.drop(save) : this.halt(outcome);
  }

  drop(save) {
    const slot = this.slots.get(save.page);
    slot.save = null;
    return this.keep(slot);
  }

  moveOn(page) {
    const slot = this.slots.get(page);
    if (slot?.later) {
      const before = slot.save;
      this.promote(slot);
      if (slot.save !== before) this.keep(slot);
    }
    this.kick();
    this.changed();
  }

  acknowledge(save, at) {
    this.failures = 0;
    this.notBefore = 0;
    this.barred = 0;
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
    this.keep(slot);
  }

  backOff(after) {
    this.failures += 1;
    const now = this.clock.now();
    this.barred = now + after;
    // Everybody in a school is told the same number of seconds.
    const jitter = fullJitter(this.failures, this.random);
    const spread = Math.max(jitter, this.random() * after);
    this.notBefore = this.barred + spread;
    this.stopTimer();
  }

  stopTimer() {
    if (this.timer !== null) this.clock.cancel(this.timer);
    this.timer = null;
  }

  // The network seems to be back: soon, but not all of a school at once, and
  // not before the time that the server asked for.
  nudge() {
    const soon = this.clock.now() + this.random() * FIRST_WAIT;
    this.notBefore = Math.min(this.notBefore, Math.max(this.barred, soon));
    this.stopTimer();
    this.kick();
  }

  // The page may be gone in a moment: everything that waits goes out at once,
  // even beside an older save of the same page, as revisions put them in order.
  leave() {
    if (this.halted) return;
    for (const slot of [...this.slots.values()]) {
      const before = slot.save;
      this.promote(slot, { leaving: true });
      if (slot.save !== before) this.keep(slot);
      const { save } = slot;
      const isIdle = save && !save.refused && !this.flying.has(save);
      if (isIdle) this.fly(save, { leaving: true });
    }
  }

  // Drafts of pages that nobody will leave any more, such as a dead tab's.
  release() {
    for (const slot of [...this.slots.values()]) {
      if (slot.later) this.setLater(slot.page, slot.later.content, false);
    }
    this.kick();
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
    this.notBefore = 0;
    this.kick();
    this.changed();
  }

  tryRefusedAgain() {
    for (const { save } of this.slots.values()) if (save) save.refused = null;
    this.resume();
  }

  // *Continue here*: `known` is what other tabs and devices saved meanwhile,
  // `base` is above all of it. What the person changed here wins, item by item.
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

  rebaseSlot(slot) {
    const { later, save } = slot;
    const theirs = this.knownContent(slot.page);
    const content = this.rebasedContent(slot, theirs);
    const held = Boolean(!save && later?.held);
    // What was once on its way may still arrive, so that it is sent again even
    // if the server holds the same: see restore().
    const settled = content === theirs && !save && !this.isFlying(slot.page);
    slot.before = theirs;
    slot.save = null;
    slot.later = settled ? null : { content, held, number: this.next };
    this.promote(slot);
    this.keep(slot);
  }

  // What a dead tab left may be older than what the server has now, so there
  // the server's changes win; what was changed in this tab wins over both.
  rebasedContent({ page, save, later, before }, theirs) {
    if (later?.adopted) return this.withDraft(page, before, later, theirs);
    if (!save?.kept) return mergeAnswers(before, (later ?? save).content, theirs);
    const settled = mergeAnswers(before, theirs, save.content);
    return later ? mergeAnswers(save.content, later.content, settled) : settled;
  }

  isFlying(page) {
    return [...this.flying].some((save) => save.page === page);
  }

  // What there is to say

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
  return { page, ...save, attempts: 0, kept: false, refused: null };
}

// All that a save's body is made of, so that a retry is the same to the byte.
// `seen` and `base` tell the server which rows this tab may replace: those it
// has shown to its person, and its own.
function wireOf({ revision, seen, base, content }) {
  return { revision, seen, base, content };
}

export function bodyOf({ revision, seen, base, content }) {
  return `{"revision":${revision},"seen":${seen},"base":${base},"answers":${content}}`;
}
