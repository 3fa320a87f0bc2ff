// Answers that are not sent yet: those of the page on the screen, and those
// that an earlier tab of this person left on this device.

import { pause } from "./clock.js";

// A tab that is just being reloaded still holds its lock for a moment.
const LONGEST_ADOPTION = 1000;
const LONGEST_RENEWAL = 3000;
const KEEP_AFTER = 400;

export class Drafts {
  constructor(tab) {
    this.tab = tab;
    // Numbers of the pages that were answered since they were last saved.
    this.edited = new Set();
    this.timer = null;
    // The page whose draft was found on this device.
    this.restoredPage = undefined;
    this.hasRestored = false;
    this.isOpen = false;
  }

  noteEdit(n) {
    this.edited.add(n);
    this.tab.display.updateNavigation();
    if (this.timer === null) {
      this.timer = this.tab.clock.after(KEEP_AFTER, () => this.keep());
    }
  }

  // Keeps the answers on the device until the person leaves the page, so that
  // a browser crash loses nothing, and each page is one request.
  keep() {
    if (this.timer === null) return;
    this.cancelTimer();
    this.hold();
  }

  hold() {
    const { current } = this.tab.display;
    this.tab.queue.hold(current, this.tab.survey.content(current));
  }

  cancelTimer() {
    if (this.timer !== null) this.tab.clock.cancel(this.timer);
    this.timer = null;
  }

  // `passed`: with Next. What was left blank counts as skipped only then.
  save({ passed }) {
    const { survey, queue, display } = this.tab;
    const n = display.current;
    this.cancelTimer();
    this.edited.delete(n);
    const content = survey.content(n, { passed });
    survey.noteStored(content);
    queue.put(n, content);
  }

  // Leaves a page in another way than with Next.
  saveIfEdited() {
    const { display } = this.tab;
    display.form?.readIncomplete();
    if (display.form && this.edited.has(display.current)) this.save({ passed: false });
  }

  // Takes over what an earlier tab of this person left on this device.
  async restore() {
    const { store, clock, recovery, bootstrap } = this.tab;
    const adopted = store.adopt((page, record) => this.adoptPage(page, record));
    await Promise.race([adopted, pause(clock, LONGEST_ADOPTION)]);
    this.isOpen = true;
    if (this.restoredPage === undefined) return;
    // The earlier tab sent its draft while it closed, perhaps after this tab
    // was loaded: without renewal the draft would conflict with its own save.
    const late = pause(clock, LONGEST_RENEWAL).then(() => ({ status: 0 }));
    const { status, reply } = await Promise.race([this.tab.renew(), late]);
    if (status === 200 && reply.tag === bootstrap.tag) recovery.mergeServerAnswers(reply);
  }

  // A tab that is closed long after this one was opened may have been told something
  // newer by the server; and what this tab was told may have been lost since.
  async adoptPage(page, record) {
    if (this.isOpen) await this.tab.recovery.learnFromServer();
    return this.restorePage(page, record);
  }

  restorePage(page, record) {
    const { queue, survey, display } = this.tab;
    const isBeingEdited = display.current === page && this.edited.has(page);
    if (isBeingEdited) queue.hold(page, survey.content(page));
    const stored = queue.restore(page, record);
    this.hasRestored = true;
    if (record.later?.held) {
      this.restoredPage = page;
      this.edited.add(page);
    }
    const content = queue.unsaved(page);
    if (content !== null) {
      const isShown = content === survey.content(page);
      survey.load(Object.entries(JSON.parse(content)));
      if (display.current === page && display.form && !isShown) {
        display.show(page, { stay: true });
      }
    }
    return stored;
  }
}
