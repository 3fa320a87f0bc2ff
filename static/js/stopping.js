// *Stop for now*: hides the answers, sends what is unsent, and ends the session. What
// cannot be sent waits, encrypted, behind the field for the code.

import { endSession, showStopped, waitForOtherTabs } from "./end_session.js";
import { isMarkedStopping, markStopping, whenStoppingElsewhere } from "./forget_device.js";

// A save takes longer only where something is wrong.
const PATIENCE = 5000;
// Errors after which the server takes no answer of this tab any more.
const FINAL = ["person", "finished", "closed", "withdrawn", "declined"];

export class Stopping {
  constructor(tab) {
    this.tab = tab;
    this.button = document.getElementById("stop");
    this.isStopping = false;
    this.isEnding = false;
    this.isLate = false;
  }

  listen() {
    this.button.addEventListener("click", () => this.ask());
    whenStoppingElsewhere(this.tab.bootstrap.tag, () => this.begin());
  }

  // This person stopped, and the page was loaded again before it was done.
  isMarked() {
    return isMarkedStopping(this.tab.bootstrap.tag);
  }

  // Offline there is no way back, because only the server knows the code.
  ask() {
    const { queue, question, messages } = this.tab;
    const isStuck = queue.isRetrying() || queue.halted || queue.refusals().length;
    if (!isStuck && navigator.onLine) {
      this.begin();
      return;
    }
    question.ask({
      name: "stop",
      title: messages.text("unsaved_title"),
      text: messages.text("unsaved_stop"),
      buttons: [
        { label: messages.text("keep_going"), run: () => {} },
        { label: messages.text("stop"), run: () => this.begin() },
      ],
    });
  }

  begin() {
    const { tab } = this;
    if (this.isStopping || tab.isLeaving) return;
    this.isStopping = true;
    tab.question.close();
    tab.idle.pause();
    tab.drafts.saveIfEdited();
    tab.display.clear();
    tab.finishing.isReviewing = false;
    markStopping(tab.bootstrap.tag);
    tab.queue.sendDrafts();
    tab.clock.after(PATIENCE, () => this.beLate());
    tab.update();
  }

  beLate() {
    this.isLate = true;
    this.tab.update();
  }

  // The person typed the code and goes on.
  cancel() {
    if (!this.isStopping) return;
    this.isStopping = this.isEnding = this.isLate = false;
    this.tab.idle.resume();
  }

  // Called after each change of the queue.
  update() {
    const { queue, store } = this.tab;
    if (!this.isStopping) return;
    if (FINAL.includes(queue.halted?.error) && store.durable) {
      this.leaveUnsent(queue.halted.error);
      return;
    }
    if (queue.halted || queue.isRetrying() || queue.refusals().length) this.isLate = true;
    if (!this.isUnsent()) this.end();
  }

  // What was not sent stays on the device. The login page would end the session,
  // which may be another person's.
  async leaveUnsent(error) {
    const { recovery, store, bootstrap, language } = this.tab;
    const { urls } = bootstrap;
    if (error !== "person") {
      recovery.leaveFor(urls.login);
      return;
    }
    recovery.forget();
    await store.settled();
    await showStopped({ url: urls.stop, language, unsent: true });
  }

  async end() {
    if (this.isEnding) return;
    this.isEnding = true;
    const { tab } = this;
    const { store, clock, random, fetcher, bootstrap, language } = tab;
    const { tag, urls } = bootstrap;
    await store.settled();
    const unsent = await waitForOtherTabs(tag, clock);
    // Without the mark, another tab has ended the session, or has got the code.
    const isWanted = () => this.isEnding && this.isMarked();
    const failed = () => this.beLate();
    await endSession({ url: urls.stop, tag, fetcher, clock, random, isWanted, failed });
    if (!this.isEnding) return;
    tab.recovery.forget();
    await showStopped({ url: urls.stop, language, unsent });
  }

  isUnsent() {
    const { queue } = this.tab;
    return queue.pending() > 0 || queue.isEditing();
  }

  // In place of the answers, which only the code shows again.
  notice() {
    const { store, messages, recovery } = this.tab;
    const isUnsent = this.isUnsent();
    const name = isUnsent ? "not_stopped" : "not_logged_out";
    if (!this.isLate) {
      const title = messages.text("stopping");
      return { name: "stopping", state: "waiting", title, text: "", takesFocus: true };
    }
    return {
      name,
      state: "stopped",
      takesFocus: true,
      title: messages.text(`${name}_title`),
      text: messages.text(isUnsent && !store.durable ? "not_stopped_memory" : name),
      askForCode: (code) => recovery.logIn(code),
    };
  }
}
