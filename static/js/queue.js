// The queue of page saves: one save per page waits, and one is in flight.
//
// Network, storage and screen are passed in, so that tests can lose, double and
// reorder everything.

import { fullJitter, FIRST_WAIT } from "./clock.js";
import { PageSlots } from "./page_slots.js";
import { TABS } from "./waiting_saves.js";

export function drawTab() {
  return crypto.getRandomValues(new Uint32Array(1))[0] % TABS;
}

export class Queue extends PageSlots {
  // send({page, revision, body, leaving}) resolves to an outcome of send_save.js
  // changed() is called after each change that the screen shows
  // The others are explained at PageSlots.
  constructor({ send, clock, random, changed, ...options }) {
    super(options);
    Object.assign(this, { send, clock, random, changed });
    this.halted = null;
    this.failures = 0;
    // When to retry, at random after the earliest time that the server allows.
    this.retryAt = 0;
    this.earliestRetry = 0;
    this.timer = null;
    this.savedAt = null;
    this.acknowledged = 0;
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
        this.dropSave(save.page);
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
    this.acknowledged += 1;
    this.noteStored(save);
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

export function bodyOf({ revision, seen, shown, content }) {
  // Only where rows of a page differ.
  const list = shown ? `"shown":[${shown}],` : "";
  return `{"revision":${revision},"seen":${seen},${list}"answers":${content}}`;
}
