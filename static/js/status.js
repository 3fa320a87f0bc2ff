// What is said about saving, in words. *Saved* only when nothing waits.

const SAVING_SHOWS_AFTER = 300;

// {state, key, values}; `state` is for the style sheet, null says nothing.
export function statusOf(queue, durable) {
  if (queue.halted) return { state: "stopped", key: noticeOf(queue.halted).title };
  const refused = queue.refusals();
  if (refused.some(({ kind }) => kind === "refused")) {
    return { state: "stopped", key: "cannot_save" };
  }
  if (refused.length) return { state: "stopped", key: "error_summary_one" };
  if (queue.pending() && queue.isRetrying()) {
    return { state: "waiting", key: durable ? "not_saved" : "not_saved_memory" };
  }
  if (queue.pending()) return { state: "saving", key: "saving" };
  if (queue.savedAt && !queue.isEditing()) {
    return { state: "saved", key: "saved_at", at: queue.savedAt };
  }
  return durable ? null : { state: "waiting", key: "memory_only" };
}

// The words for each way in which saving ends for a tab.
export function noticeOf({ error }) {
  return NOTICES[error] ?? NOTICES.session;
}

const NOTICES = {
  session: { title: "session_over", text: "session_over_help" },
  reissued: { title: "reissued_while", text: "reissued_while_help" },
  superseded: { title: "superseded", text: "superseded_help" },
  person: { title: "other_person", text: "other_person_help" },
  finished: { title: "finished_elsewhere", text: "finished_elsewhere_help" },
  closed: { title: "closed_while", text: "closed_while_help" },
  withdrawn: { title: "withdrawn_while", text: "withdrawn_while_help" },
};

export class Status {
  constructor({ element, words, clock }) {
    Object.assign(this, { element, words, clock });
    this.timer = null;
    this.shown = null;
  }

  // A save that takes a moment is not worth a word: the region is read aloud.
  show(status) {
    if (this.timer !== null) this.clock.cancel(this.timer);
    this.timer = null;
    if (status?.state === "saving" && this.shown?.state !== "waiting") {
      this.timer = this.clock.after(SAVING_SHOWS_AFTER, () => this.write(status));
      // "Saved" must not stand while something is on its way.
      if (this.shown?.state === "saved") this.write(null);
    } else {
      this.write(status);
    }
  }

  write(status) {
    this.shown = status;
    const text = status ? this.textOf(status) : "";
    if (this.element.textContent !== text) this.element.textContent = text;
    if (status) this.element.dataset.state = status.state;
    else delete this.element.dataset.state;
  }

  textOf({ key, at }) {
    if (!at) return this.words.say(key);
    return this.words.say(key, { time: this.words.time(at) });
  }

  reword(words) {
    this.words = words;
    this.write(this.shown);
  }
}
