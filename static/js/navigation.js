// Moving between the pages: where to begin, Next and Back, the browser's history.

import { placeAtStart, placeIn } from "./page_history.js";

// Shorter than reading any page takes, longer than a slow double tap.
const DOUBLE_CLICK_TIME = 400;
// In CSS pixels: two taps of one finger are not farther apart.
const FINGER_WIDTH = 40;
// Errors after which this tab can save nothing more, so moving on is in vain.
const FINAL_ERRORS = ["superseded", "person", "finished", "closed", "withdrawn", "declined"];

export class Navigation {
  constructor(tab) {
    this.tab = tab;
    // The click that turned the page.
    this.lastClick = null;
    // The person looks at some questions again, and returns to the review.
    this.cameFromReview = false;
  }

  listen() {
    const { display } = this.tab;
    const turnOn = (button, move) =>
      button.addEventListener("click", (event) => {
        // The second click of a double click was meant for the page before.
        if (event.detail > 1) return;
        this.lastClick = event;
        move();
      });
    turnOn(display.nextButton, () => this.next());
    turnOn(display.backButton, () => this.back());
    turnOn(display.reviewButton, () => this.returnToReview());
    for (const kind of ["mousedown", "click"]) {
      display.container.addEventListener(kind, (event) => this.ignoreSecondClick(event), true);
    }
    addEventListener("popstate", ({ state }) => {
      const place = placeIn(location.hash);
      const page = place?.page ?? state?.page;
      if (!this.tab.survey.isVisible(page)) return;
      this.tab.drafts.saveIfEdited();
      display.show(page, { replace: true, item: place?.item });
    });
  }

  // The second click of a double click must not answer an item of the new page
  // that is now under it. The event's own time counts, because a slow device
  // delivers it late. The browser counts the clicks of a mouse; a second tap of
  // a finger is recognised by its place.
  ignoreSecondClick(event) {
    const { lastClick } = this;
    const sinceShown = event.timeStamp - this.tab.display.shownAt;
    if (!event.detail || !lastClick || sinceShown > DOUBLE_CLICK_TIME) return;
    const x = event.clientX - lastClick.clientX;
    const y = event.clientY - lastClick.clientY;
    const isTap = event.type === "click" && event.pointerType !== "mouse";
    if (event.detail < 2 && !(isTap && Math.hypot(x, y) < FINGER_WIDTH)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Shows the page in the address, or the one where this person begins.
  async begin() {
    const { survey, display, drafts, bootstrap, finishing } = this.tab;
    const place = placeAtStart(bootstrap.tag);
    // The thanks of one part lead to the next one, which has nothing to review yet.
    const isNextPart = new URLSearchParams(location.search).has("next-part");
    this.cameFromReview = !isNextPart && document.referrer.includes(bootstrap.urls.complete);
    if (place && survey.isVisible(place.page)) {
      return display.show(place.page, { replace: true, item: place.item, first: true });
    }
    const draft = survey.isVisible(drafts.restoredPage) ? drafts.restoredPage : null;
    const page = draft ?? survey.startPage();
    if (page !== null) return display.show(page, { replace: true, first: true });
    await display.show(survey.before(Infinity) ?? 1, { replace: true, first: true });
    // Otherwise the way back from the review would lead to the review. But the
    // review sends a person here if answers of a crashed tab wait.
    if (!this.cameFromReview || drafts.hasRestored) finishing.review();
  }

  next() {
    const { survey, display, drafts, finishing } = this.tab;
    const { current } = display;
    // Two clicks on *Next* are one move, unless an item was answered between.
    const justTurned = performance.now() - display.shownAt < DOUBLE_CLICK_TIME;
    if (!display.form || (justTurned && !drafts.edited.has(current))) return;
    display.form.readIncomplete();
    if (display.showsNewQuestions()) return;
    const problems = survey.problems(current);
    if (problems.length) {
      drafts.keep();
      display.showProblems(problems);
      return;
    }
    drafts.save({ passed: true });
    if (this.isBlocked()) return;
    const to = survey.after(current);
    if (to === null) finishing.review();
    else display.show(to);
  }

  // A required answer may still be missing: the review lists it.
  returnToReview() {
    const { survey, display, drafts, finishing } = this.tab;
    if (!display.form) return;
    display.form.readIncomplete();
    if (display.showsNewQuestions()) return;
    const problems = survey.problems(display.current);
    drafts.save({ passed: !problems.length });
    if (!this.isBlocked()) finishing.review();
  }

  isBlocked() {
    const { queue, panel, display } = this.tab;
    if (FINAL_ERRORS.includes(queue.halted?.error)) {
      panel.focus();
      return true;
    }
    const refusal = queue.refusals().find(({ page }) => page === display.current);
    if (refusal?.kind !== "answers") return false;
    display.showRefused(refusal);
    return true;
  }

  back() {
    const { survey, display, drafts } = this.tab;
    const to = survey.before(display.current);
    if (to === null) return;
    drafts.saveIfEdited();
    display.show(to);
  }
}
