// Finishing: the review opens once all answers are valid and saved.

import { pendingFinish } from "./finish_form.js";
import { searchFor } from "./page_history.js";

export class Finishing {
  constructor(tab) {
    this.tab = tab;
    // The person asked for the review, which waits for the last saves.
    this.isReviewing = false;
    this.isComparing = false;
  }

  // The person pressed *Finish*, and the page was reloaded before it was done.
  continuePending() {
    if (pendingFinish(this.tab.bootstrap.tag)) this.review();
  }

  async review() {
    const { survey, display, queue } = this.tab;
    const mistaken = survey.firstMistaken();
    if (mistaken !== null) {
      if (mistaken !== display.current) await display.show(mistaken);
      if (display.form) display.showProblems(survey.problems(mistaken, { required: false }));
      return;
    }
    this.isReviewing = true;
    queue.sendDrafts();
  }

  // Offline, leaving the page would end at the browser's own error page.
  isReady() {
    const { queue } = this.tab;
    const isIdle = !queue.pending() && !queue.halted;
    return this.isReviewing && isIdle && navigator.onLine && !this.tab.isOffline;
  }

  async openReview() {
    const { tab } = this;
    if (tab.isLeaving || this.isComparing) return;
    this.isComparing = true;
    const isComplete = await tab.recovery.sendLost();
    this.isComparing = false;
    // What was lost is being sent again, and then the review opens.
    if (!isComplete) this.isReviewing = true;
    if (tab.isLeaving || !this.isReady()) return;
    tab.isLeaving = true;
    await tab.store.settled();
    const { urls, tag } = tab.bootstrap;
    location.assign(urls.complete + searchFor({ tag, language: tab.language }));
  }
}
