// Which notice is shown above the page: why nothing is saved, and what to do.

import { noticeOf } from "./save_status.js";

export class Notices {
  constructor(tab) {
    this.tab = tab;
    // Revisions of refused saves whose page was already shown again.
    this.shownRefusals = new Set();
  }

  update() {
    const { panel, queue, stopping } = this.tab;
    const notice = this.current();
    if (notice) panel.show(notice);
    else panel.hide();
    if (stopping.isStopping) return;
    const isNew = ({ kind, revision }) =>
      kind === "answers" && !this.shownRefusals.has(revision);
    const refusal = queue.refusals().find(isNew);
    if (!refusal) return;
    this.shownRefusals.add(refusal.revision);
    this.returnTo(refusal);
  }

  current() {
    const { queue, finishing, stopping } = this.tab;
    // *Continue here* would show the answers without the code.
    const isSuperseded = queue.halted?.error === "superseded";
    if (stopping.isStopping && (!queue.halted || isSuperseded)) return stopping.notice();
    if (queue.halted) return this.haltNotice(queue.halted);
    const refused = queue.refusals().find(({ kind }) => kind === "refused");
    if (refused) return this.refusedNotice(refused);
    if (finishing.isReviewing) return this.waitingNotice();
    if (this.tab.untilClosing() <= 0) return this.closingNotice();
    return this.tab.isOffline ? this.offlineNotice() : null;
  }

  // Saving stopped for this tab.
  haltNotice(halted) {
    const { messages, recovery } = this.tab;
    const { title, text } = noticeOf(halted);
    const notice = { name: halted.error, state: "stopped", takesFocus: true };
    Object.assign(notice, { title: messages.text(title), text: messages.text(text) });
    if (halted.kind === "session") {
      notice.askForCode = (code) => recovery.logIn(code);
    } else if (halted.error === "superseded") {
      const run = () => recovery.continueHere();
      notice.buttons = [{ label: messages.text("continue_here"), run }];
    } else if (halted.error === "person") {
      Object.assign(notice, this.waysBack());
    } else if (halted.error === "closed") {
      Object.assign(notice, this.closedNotice());
    } else if (this.unsavedPages().length && halted.error !== "declined") {
      notice.text += ` ${messages.text("cannot_save")}`;
      notice.teacherCode = this.teacherCode(halted.error[0].toUpperCase());
    } else {
      notice.text += ` ${messages.text("close_page")}`;
    }
    return notice;
  }

  unsavedPages() {
    return [...this.tab.queue.slots.keys()].sort((one, two) => one - two);
  }

  // Answers that were started in time are accepted for some minutes.
  closingNotice() {
    const { messages } = this.tab;
    const title = messages.text("closed_while");
    const text = messages.text("closed_grace", this.closingTimes());
    return { name: "closing", state: "waiting", title, text, takesFocus: false };
  }

  closedNotice() {
    const { messages, survey } = this.tab;
    const pages = this.unsavedPages();
    const numbers = pages.map((page) => survey.placeOf(page).n);
    const unsaved = messages.text("closed_unsaved", { pages: numbers.join(", ") });
    const text = messages.text("closed_while_help", this.closingTimes());
    // The end may have been put off meanwhile.
    const buttons = [{ label: messages.text("try_again"), run: () => this.tab.queue.resume() }];
    return pages.length ? { text: `${text} ${unsaved}`, buttons } : { text };
  }

  closingTimes() {
    const { messages, bootstrap } = this.tab;
    const [time, until] = [bootstrap.closesAt, bootstrap.acceptedUntil];
    return { time: messages.time(time), until: messages.time(until) };
  }

  // To the code field. Leaving the page would lose answers that the device
  // cannot keep, so then the field is in the notice.
  waysBack() {
    const { messages, recovery, queue, store, bootstrap } = this.tab;
    if (!store.durable && (queue.pending() || queue.isEditing())) {
      return { askForCode: (code) => recovery.logIn(code) };
    }
    const run = () => recovery.leaveFor(bootstrap.urls.login);
    return { buttons: [{ label: messages.text("login_title"), run }] };
  }

  // The server refused one page as a whole.
  refusedNotice({ page, status }) {
    const { messages, queue, survey } = this.tab;
    const run = () => queue.tryRefusedAgain();
    return {
      name: `refused ${page}`,
      state: "stopped",
      takesFocus: true,
      title: messages.text("cannot_save"),
      text: messages.text("page_n", survey.placeOf(page)),
      teacherCode: this.teacherCode(`${status}-${page}`),
      buttons: [{ label: messages.text("try_again"), run }],
    };
  }

  // The review waits for the last saves, or for the network.
  waitingNotice() {
    const { messages, queue } = this.tab;
    const pending = queue.pending();
    const notice = { name: "waiting", state: "waiting", text: "", takesFocus: true };
    if (!pending) {
      return { ...notice, name: "offline", title: messages.text("load_failed") };
    }
    const title = messages.plural("waiting_saves", pending);
    return { ...notice, title, text: messages.text("waiting_saves_help") };
  }

  offlineNotice() {
    const title = this.tab.messages.text("offline");
    return { name: "unreachable", state: "waiting", title, text: "", takesFocus: false };
  }

  // Tells support staff what happened and to which respondent, without a name.
  teacherCode(reason) {
    return `${reason}-${this.tab.bootstrap.tag.slice(0, 6).toUpperCase()}`;
  }

  async returnTo(refusal) {
    const { display, drafts } = this.tab;
    if (display.current !== refusal.page) {
      drafts.saveIfEdited();
      await display.show(refusal.page);
    }
    if (display.current === refusal.page && display.form) display.showRefused(refusal);
  }
}
