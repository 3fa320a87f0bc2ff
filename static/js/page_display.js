// The page on the screen: loads it, fills it with answers, moves the focus,
// and shows the problems of its answers.

import { answerableItems } from "./answers.js";
import { PageForm } from "./page_form.js";
import { rememberPlace } from "./page_history.js";
import { focusItem, problemMessage, showProblems } from "./problems.js";
import { fillPipes } from "./rules.js";

const LOADING_SHOWS_AFTER = 200;
const LOADING_WARNS_AFTER = 4000;

export class PageDisplay {
  constructor(tab) {
    this.tab = tab;
    // The number of the page, and its form once it is loaded.
    this.current = null;
    this.form = null;
    // Counts the pages shown, so that one that loads late replaces no newer one.
    this.shown = 0;
    this.shownAt = -Infinity;
    this.surveyTitle = tab.bootstrap.title;
    this.container = document.getElementById("page");
    this.nextButton = document.getElementById("next");
    this.backButton = document.getElementById("back");
    this.reviewButton = document.getElementById("to-review");
    this.stopButton = document.getElementById("stop");
    // Where people may say that they do not take part; on the first page alone.
    this.declineLink = document.getElementById("decline");
    this.announcer = document.getElementById("announce");
  }

  // `replace` and `stay` say how the browser's history changes, `item` names
  // the item to focus, `first` leaves the focus where it is.
  async show(n, { replace, stay, item, first } = {}) {
    const { tab } = this;
    if (tab.queue.halted?.error === "person" || tab.stopping.isStopping) return;
    this.shown += 1;
    const { shown } = this;
    tab.drafts.keep();
    this.current = n;
    this.form = null;
    tab.finishing.isReviewing = false;
    // The click that opened the first page came before this document.
    if (!stay) this.shownAt = first ? 0 : performance.now();
    if (!first) document.getElementById("language-missing")?.remove();
    const { tag } = tab.bootstrap;
    if (!stay) rememberPlace({ page: n, tag, language: tab.language, replace });
    const stopLoading = tab.pages.has(n) ? () => {} : this.showLoading();
    const section = await tab.pages.page(n);
    stopLoading();
    if (shown === this.shown) this.place(section, n, { item, first, stay });
  }

  place(section, n, { item, first, stay }) {
    const { survey, bootstrap, messages, drafts } = this.tab;
    survey.recompute();
    survey.fillDefaults(n);
    // Chromium fires `change` for a field that is taken off the screen with the focus.
    const edited = () => this.form === form && drafts.noteEdit(n);
    const form = new PageForm({ section, n, survey, seed: bootstrap.seed, messages, edited });
    this.form = form;
    this.noteAnsweredEarlier(section, n);
    this.fillContainer(section);
    document.getElementById("simple-version")?.remove();
    this.updateNavigation();
    this.tab.update();
    const heading = section.querySelector(".page-title");
    document.title = `${heading.textContent.trim()} – ${this.surveyTitle}`;
    if (stay) return;
    // The heading takes the focus, so a screen reader says both, once.
    heading.setAttribute("aria-describedby", "progress-text");
    if (item) {
      focusItem(section, item);
    } else if (!first) {
      scrollTo(0, 0);
      heading.focus({ preventScroll: true });
    }
  }

  // Applies rules again that read the clock. Returns true, and moves the focus, if a
  // question appears by it, which must be seen before the page is passed.
  showsNewQuestions() {
    const { survey, messages } = this.tab;
    const items = answerableItems(survey.outline, this.current);
    const hidden = items.filter((name) => !survey.state.relevant[name]);
    survey.recompute();
    this.form.refresh();
    const name = hidden.find((item) => survey.state.relevant[item]);
    if (name === undefined) return false;
    this.announcer.textContent = messages.text("new_questions");
    focusItem(this.form.section, name);
    return true;
  }

  noteAnsweredEarlier(section, n) {
    section.querySelector(".answered-earlier")?.remove();
    const { survey, messages } = this.tab;
    if (!survey.hasKept(n)) return;
    const note = document.createElement("p");
    note.className = "answered-earlier";
    note.lang = document.documentElement.lang;
    note.textContent = messages.text("answered_earlier");
    section.querySelector(".page-title").after(note);
  }

  // The progress bar and the buttons.
  updateNavigation() {
    const { survey, messages } = this.tab;
    const { current: n } = this;
    const place = survey.placeOf(n);
    const bar = document.getElementById("progress");
    Object.assign(bar, { max: place.total || 1, value: place.n });
    document.getElementById("progress-text").textContent = messages.text("page_of", place);
    const heading = this.form?.section.querySelector(".page-title[data-numbered]");
    if (heading) heading.textContent = messages.text("page_n", place);
    this.backButton.hidden = survey.before(n) === null;
    this.backButton.textContent = messages.text("back");
    this.nextButton.hidden = false;
    this.stopButton.hidden = false;
    this.showDecline(survey.before(n) === null);
    const isLast = survey.after(n) === null;
    this.nextButton.textContent = messages.text(isLast ? "review" : "next");
    this.reviewButton.hidden = isLast || !this.tab.navigation.cameFromReview;
  }

  showDecline(isShown) {
    if (!this.declineLink) return;
    this.declineLink.hidden = !isShown;
    const link = this.declineLink.querySelector("a");
    const address = new URL(link.href);
    address.searchParams.set("language", this.tab.language);
    link.href = address.href;
  }

  // Says so when a page takes long to load. Returns a function that stops it.
  showLoading() {
    const { clock } = this.tab;
    const timer = clock.after(LOADING_SHOWS_AFTER, () => this.writeLoading("loading"));
    const stopWarning = this.warnIfSlow();
    return () => {
      clock.cancel(timer);
      stopWarning();
    };
  }

  warnIfSlow() {
    const { clock } = this.tab;
    const timer = clock.after(LOADING_WARNS_AFTER, () => this.writeLoading("load_failed"));
    return () => clock.cancel(timer);
  }

  writeLoading(key) {
    const line = document.createElement("p");
    line.className = "loading";
    line.setAttribute("role", "status");
    line.textContent = this.tab.messages.text(key);
    this.fillContainer(line);
  }

  fillContainer(...elements) {
    this.container.textContent = "";
    this.container.append(...elements);
  }

  // problems: [{name, key, values}]
  showProblems(problems) {
    const { survey, messages } = this.tab;
    const { section } = this.form;
    const { values } = survey.state;
    const pipe = (text = "") => fillPipes(text, values);
    const listed = problems.map(({ name, key, values: filled }) => ({
      name,
      message: problemMessage(key, survey.item(name), messages, pipe, filled),
    }));
    const goTo = (name) => focusItem(section, name);
    const summary = showProblems(section, listed, messages, goTo);
    summary.scrollIntoView({ block: "center" });
    summary.focus({ preventScroll: true });
  }

  // The answers of this page that the server refused.
  showRefused({ items }) {
    const names = this.tab.survey.outline.pages[this.current - 1].items;
    const problems = names
      .filter((name) => name in items && this.form.element(name))
      .map((name) => ({ name, key: String(items[name]) }));
    if (problems.length) this.showProblems(problems);
  }

  clear() {
    this.shown += 1;
    this.form = null;
    this.fillContainer();
    const { nextButton, backButton, reviewButton, stopButton } = this;
    for (const button of [nextButton, backButton, reviewButton, stopButton]) {
      button.hidden = true;
    }
    this.showDecline(false);
  }
}
