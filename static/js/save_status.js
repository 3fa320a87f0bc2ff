// The status line about saving. *Saved* is shown only when nothing waits.

const SAVING_SHOWS_AFTER = 300;

// {state, key, at}: `state` is for the style sheet; null shows nothing.
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

// The messages for each way in which saving stops for a tab.
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
  declined: { title: "declined_while", text: "declined_while_help" },
};

export class SaveStatus {
  constructor({ element, messages, clock }) {
    Object.assign(this, { element, messages, clock });
    this.timer = null;
    this.shown = null;
  }

  // Short saves are not mentioned, because screen readers read this line aloud.
  show(status) {
    if (this.timer !== null) this.clock.cancel(this.timer);
    this.timer = null;
    if (status?.state === "saving" && this.shown?.state !== "waiting") {
      this.timer = this.clock.after(SAVING_SHOWS_AFTER, () => this.write(status));
      // "Saved" must not be shown while a save is in flight.
      if (this.shown?.state === "saved") this.write(null);
    } else {
      this.write(status);
    }
  }

  write(status) {
    this.shown = status;
    const { key, at } = status ?? {};
    const values = at ? { time: this.messages.time(at) } : {};
    const text = status ? this.messages.text(key, values) : "";
    if (this.element.textContent !== text) this.element.textContent = text;
    if (status) this.element.dataset.state = status.state;
    else delete this.element.dataset.state;
  }

  translate(messages) {
    this.messages = messages;
    this.write(this.shown);
  }
}
