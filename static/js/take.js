// A survey in a browser tab: wires the parts together and turns the pages.

import { pause, systemClock } from "./clock.js";
import { logInAgain, renewShell } from "./dialogue.js";
import { placeAtStart, placeIn, rememberPlace, withLanguage } from "./navigation.js";
import { Pages } from "./pages.js";
import { Panel } from "./panel.js";
import { Queue } from "./queue.js";
import { sendSave } from "./sending.js";
import { Sheet } from "./sheet.js";
import { Status, noticeOf, statusOf } from "./status.js";
import { LONGEST_KEPT, openStore, wipeOld } from "./store.js";
import { Taking, contentsByPage } from "./taking.js";
import { focusItem, problemMessage, showProblems } from "./validity.js";
import { Words, fillIn } from "./words.js";

// A tab that is just being reloaded still holds its lock for a moment.
const ADOPTING_TAKES = 1000;
const CATCHING_UP_TAKES = 3000;
const DRAFT_AFTER = 400;
const LOADING_SHOWS_AFTER = 200;
const LOADING_WORRIES_AFTER = 4000;
// Shorter than anybody reads a page, longer than a slow double tap.
const TURN_TAKES = 400;
// In CSS pixels: two taps of one finger are not farther apart.
const FINGER = 40;
// Ways in which saving ends for this tab, so that going on would be in vain.
const FINAL = ["superseded", "person", "finished", "closed", "withdrawn"];

const PIPE = /\$\{\s*([^\s{}]+)\s*\}/g;

class Take {
  constructor(shell) {
    this.shell = shell;
    this.language = shell.language;
    this.clock = systemClock;
    this.random = Math.random;
    this.fetcher = (...request) => fetch(...request);
    this.started = performance.now();
    this.words = new Words(shell.messages, shell.language);
    this.current = null;
    this.sheet = null;
    this.turns = 0;
    this.turnedAt = -Infinity;
    // Where the click was that turned the page.
    this.turnedBy = null;
    this.draftTimer = null;
    this.edited = new Set();
    this.toldRefusals = new Set();
    this.isReviewing = false;
    this.isLeaving = false;
    this.parts();
  }

  parts() {
    const { words, clock, random, fetcher, shell } = this;
    const find = (id) => document.getElementById(id);
    this.container = find("page");
    this.nextButton = find("next");
    this.backButton = find("back");
    this.announcer = find("announce");
    this.select = find("language");
    this.surveyTitle = shell.title;
    this.status = new Status({ element: find("status"), words, clock });
    this.panel = new Panel({ element: find("notice"), words });
    const address = (place) => fillIn(shell.urls.content, place);
    this.pages = new Pages({ address, language: this.language, fetcher, clock, random });
  }

  async start() {
    wipeOld();
    const worry = this.worry();
    const outline = await this.pages.outline();
    const { answers, tag, answersOf: digest, queueKey: key } = this.shell;
    const changed = () => this.update();
    this.store = await openStore({ tag, digest, key, changed });
    // From here on the key is in the store's hands only.
    this.shell.queueKey = null;
    this.taking = new Taking({ outline, answers, moment: () => this.moment() });
    this.queue = this.newQueue(outline, answers);
    await this.adopt();
    await this.catchUp();
    this.listen();
    await this.begin();
    worry();
    this.update();
    this.prefetch();
  }

  newQueue(outline, answers) {
    const { store, clock, random, shell } = this;
    return new Queue({
      send: (save) => this.send(save),
      store,
      clock,
      random,
      base: shell.revision,
      seen: shell.seen,
      known: contentsByPage(outline, answers),
      changed: () => this.update(),
    });
  }

  send({ page, ...save }) {
    const url = fillIn(this.shell.urls.page, { n: page });
    const { fetcher, clock } = this;
    return sendSave({ ...save, url, tag: this.shell.tag, fetcher, clock });
  }

  moment() {
    const now = movedOn(this.shell.now, performance.now() - this.started);
    return { today: this.shell.today, now, language: this.language };
  }

  prefetch() {
    const numbers = this.taking.outline.pages.map((_, index) => index + 1);
    const ahead = numbers.filter((n) => n > this.current);
    const behind = numbers.filter((n) => n < this.current);
    this.pages.prefetch([this.current, ...ahead, ...behind]);
  }

  // What an earlier tab of this person left on this device

  async adopt() {
    const adopted = this.store.adopt((page, record) => this.takeUp(page, record));
    const enough = new Promise((resolve) => this.clock.after(ADOPTING_TAKES, resolve));
    await Promise.race([adopted, enough]);
  }

  takeUp(page, record) {
    const isBusy = this.current === page && this.edited.has(page);
    if (isBusy) this.queue.hold(page, this.taking.content(page));
    const stored = this.queue.restore(page, record);
    if (record.later?.held) {
      this.draftPage = page;
      this.edited.add(page);
    }
    this.showUnsaved(page);
    return stored;
  }

  // The tab that left a draft sent it off while it died, perhaps after this
  // tab's shell was made: without another look the draft would stand against
  // its own successor.
  async catchUp() {
    if (this.draftPage === undefined) return;
    const { fetcher, clock, language } = this;
    const url = this.shell.urls.renew;
    const renewed = renewShell({ url, language, fetcher, clock });
    const late = pause(clock, CATCHING_UP_TAKES).then(() => ({ status: 0 }));
    const { status, reply } = await Promise.race([renewed, late]);
    if (status === 200 && reply.tag === this.shell.tag) this.takeIn(reply);
  }

  showUnsaved(page) {
    const content = this.queue.unsaved(page);
    if (content === null) return;
    const isShown = content === this.taking.content(page);
    this.taking.takeIn(Object.entries(JSON.parse(content)));
    if (this.current === page && this.sheet && !isShown) this.show(page, { stay: true });
  }

  // Where to begin

  async begin() {
    const place = placeAtStart(this.shell.tag);
    const { taking } = this;
    if (place && taking.isVisible(place.page)) {
      return this.show(place.page, { replace: true, item: place.item, first: true });
    }
    const draft = taking.isVisible(this.draftPage) ? this.draftPage : null;
    const page = draft ?? taking.firstUnreached();
    if (page !== null) return this.show(page, { replace: true, first: true });
    await this.show(taking.before(Infinity) ?? 1, { replace: true, first: true });
    if (!this.comesFromReview()) this.review();
  }

  // Else the way back from the review would lead to the review.
  comesFromReview() {
    return document.referrer.includes(this.shell.urls.complete);
  }

  // Showing a page

  // {replace, stay} say what becomes of the history, `item` is where to go on
  // the page, `first` leaves the focus alone.
  async show(n, { replace, stay, item, first } = {}) {
    this.turns += 1;
    const turn = this.turns;
    this.keepDraft();
    this.current = n;
    this.sheet = null;
    this.isReviewing = false;
    if (!stay) this.turnedAt = performance.now();
    const { tag } = this.shell;
    if (!stay) rememberPlace({ page: n, tag, language: this.language, replace });
    const done = this.pages.has(n) ? () => {} : this.showLoading();
    const section = await this.pages.page(n);
    done();
    if (turn === this.turns) this.place(section, n, { item, first, stay });
  }

  place(section, n, { item, first, stay }) {
    this.taking.fillDefaults(n);
    this.sheet = new Sheet({
      section,
      n,
      taking: this.taking,
      seed: this.shell.seed,
      words: this.words,
      edited: () => this.noteEdit(n),
    });
    this.container.replaceChildren(section);
    this.updateFrame();
    this.update();
    if (stay) return;
    this.announce(section, n);
    if (item) focusItem(section, item);
    else if (!first) this.toTop(section);
  }

  toTop(section) {
    scrollTo(0, 0);
    section.querySelector(".page-title").focus({ preventScroll: true });
  }

  announce(section, n) {
    const title = section.querySelector(".page-title").textContent.trim();
    const progress = this.words.say("page_of", { n, total: this.taking.count() });
    document.title = `${title} – ${this.surveyTitle}`;
    this.announcer.textContent = title === progress ? title : `${title}. ${progress}`;
  }

  updateFrame() {
    const { taking, current: n, words } = this;
    const total = taking.count();
    document.getElementById("progress").value = n;
    const progress = words.say("page_of", { n, total });
    document.getElementById("progress-text").textContent = progress;
    this.backButton.hidden = taking.before(n) === null;
    this.backButton.textContent = words.say("back");
    this.nextButton.hidden = false;
    this.nextButton.textContent = words.say(taking.after(n) === null ? "review" : "next");
  }

  // Says so when a page takes long, and hands back a way to stop.
  showLoading() {
    const write = () => this.writeLoading("loading");
    const wait = this.clock.after(LOADING_SHOWS_AFTER, write);
    const worry = this.worry();
    return () => {
      this.clock.cancel(wait);
      worry();
    };
  }

  worry() {
    const write = () => this.writeLoading("load_failed");
    const timer = this.clock.after(LOADING_WORRIES_AFTER, write);
    return () => this.clock.cancel(timer);
  }

  writeLoading(key) {
    const line = document.createElement("p");
    line.className = "loading";
    line.setAttribute("role", "status");
    line.textContent = this.words.say(key);
    this.container.replaceChildren(line);
  }

  // Answering and turning

  noteEdit(n) {
    this.edited.add(n);
    this.updateFrame();
    if (this.draftTimer === null) {
      this.draftTimer = this.clock.after(DRAFT_AFTER, () => this.keepDraft());
    }
  }

  // Kept on the device until the person leaves the page, so that a browser
  // that dies loses nothing; the server is asked once a page only.
  keepDraft() {
    if (this.draftTimer === null) return;
    this.clock.cancel(this.draftTimer);
    this.draftTimer = null;
    this.queue.hold(this.current, this.taking.content(this.current));
  }

  // A page that was only looked at is not saved by going back: its rows would
  // say that it was answered, and another device would begin behind it.
  saveIfEdited() {
    if (this.sheet && this.edited.has(this.current)) this.save();
  }

  save() {
    const n = this.current;
    if (this.draftTimer !== null) this.clock.cancel(this.draftTimer);
    this.draftTimer = null;
    this.edited.delete(n);
    this.taking.hasReached(n);
    this.queue.put(n, this.taking.content(n));
  }

  // Two clicks on *Next* are one move. Whoever answered meanwhile means it.
  isTurning() {
    const justTurned = performance.now() - this.turnedAt < TURN_TAKES;
    return !this.sheet || (justTurned && !this.edited.has(this.current));
  }

  next() {
    if (this.isTurning()) return;
    const problems = this.taking.problems(this.current);
    if (problems.length) {
      this.keepDraft();
      this.showProblems(problems);
      return;
    }
    this.save();
    if (this.isStopped() || this.isStillRefused()) return;
    const to = this.taking.after(this.current);
    if (to === null) this.review();
    else this.show(to);
  }

  // Going on would only make more answers that nobody can save.
  isStopped() {
    if (!FINAL.includes(this.queue.halted?.error)) return false;
    this.panel.focus();
    return true;
  }

  isStillRefused() {
    const refusal = this.queue.refusals().find(({ page }) => page === this.current);
    if (refusal?.kind === "answers") this.showRefused(refusal);
    return refusal?.kind === "answers";
  }

  back() {
    const to = this.taking.before(this.current);
    if (to === null) return;
    this.saveIfEdited();
    this.show(to);
  }

  showProblems(problems) {
    const { section, taking } = this.sheet;
    const pipe = (text) => this.piped(text);
    const told = problems.map(({ name, key }) => ({
      name,
      message: problemMessage(key, taking.item(name), this.words, pipe),
    }));
    const goTo = (name) => focusItem(section, name);
    const summary = showProblems(section, told, this.words, goTo);
    summary.scrollIntoView({ block: "center" });
    summary.focus({ preventScroll: true });
  }

  piped(text = "") {
    const { values } = this.taking.state;
    return text.replace(PIPE, (_, name) => values[name] ?? "");
  }

  // The review

  async review() {
    const mistaken = this.taking.firstMistaken();
    if (mistaken !== null) {
      if (mistaken !== this.current) await this.show(mistaken);
      if (this.sheet) this.showProblems(this.taking.problems(mistaken, { required: false }));
      return;
    }
    this.isReviewing = true;
    this.queue.release();
  }

  // Offline, leaving the page would end at the browser's own error.
  isReadyForReview() {
    const isIdle = !this.queue.pending() && !this.queue.halted;
    return this.isReviewing && isIdle && navigator.onLine;
  }

  async openReview() {
    if (this.isLeaving) return;
    this.isLeaving = true;
    await this.store.settled();
    location.assign(this.shell.urls.complete + withLanguage("", this.language));
  }

  // Showing how saving goes

  update() {
    if (!this.queue || this.isLeaving) return;
    this.status.show(statusOf(this.queue, this.store.durable));
    if (this.isReadyForReview()) {
      this.openReview();
      return;
    }
    this.showNotice();
    this.tellRefusals();
  }

  showNotice() {
    const notice = this.notice();
    if (notice) this.panel.show(notice);
    else this.panel.hide();
  }

  notice() {
    const { halted } = this.queue;
    if (halted) return this.haltNotice(halted);
    const refused = this.queue.refusals().find(({ kind }) => kind === "refused");
    if (refused) return this.refusedNotice(refused);
    return this.isReviewing ? this.waitingNotice() : null;
  }

  haltNotice(halted) {
    const { title, text } = noticeOf(halted);
    const { words } = this;
    const notice = { name: halted.error, state: "stopped", calls: true };
    Object.assign(notice, { title: words.say(title), text: words.say(text) });
    if (halted.kind === "session") {
      notice.ask = (code) => this.logIn(code);
    } else if (halted.error === "superseded") {
      const run = () => this.continueHere();
      notice.buttons = [{ label: words.say("continue_here"), run }];
    } else if (halted.error === "person") {
      const run = () => this.startOver();
      notice.buttons = [{ label: words.say("log_in_again"), run }];
    } else {
      notice.text += ` ${words.say("cannot_save")}`;
      notice.code = this.teacherCode(halted.error[0].toUpperCase());
    }
    return notice;
  }

  refusedNotice({ page, status }) {
    const { words } = this;
    const run = () => this.queue.tryRefusedAgain();
    return {
      name: `refused ${page}`,
      state: "stopped",
      calls: true,
      title: words.say("cannot_save"),
      text: words.say("page_n", { n: page }),
      code: this.teacherCode(`${status}-${page}`),
      buttons: [{ label: words.say("try_again"), run }],
    };
  }

  waitingNotice() {
    const pending = this.queue.pending();
    const notice = { name: "waiting", state: "waiting", text: "", calls: true };
    if (!pending) {
      return { ...notice, name: "offline", title: this.words.say("load_failed") };
    }
    const title = this.words.count("waiting_saves", pending);
    return { ...notice, title, text: this.words.say("waiting_saves_help") };
  }

  // Tells those who look into it what happened and to whom, and nobody else.
  teacherCode(reason) {
    return `${reason}-${this.shell.tag.slice(0, 6).toUpperCase()}`;
  }

  tellRefusals() {
    for (const refusal of this.queue.refusals()) {
      if (refusal.kind !== "answers" || this.toldRefusals.has(refusal.revision)) continue;
      this.toldRefusals.add(refusal.revision);
      this.returnTo(refusal);
      return;
    }
  }

  async returnTo(refusal) {
    if (this.current !== refusal.page) {
      this.saveIfEdited();
      await this.show(refusal.page);
    }
    if (this.current === refusal.page && this.sheet) this.showRefused(refusal);
  }

  showRefused({ items }) {
    const names = this.taking.outline.pages[this.current - 1].items;
    const problems = names
      .filter((name) => name in items && this.sheet.element(name))
      .map((name) => ({ name, key: String(items[name]) }));
    if (problems.length) this.showProblems(problems);
  }

  // Going on after saving stopped

  // Resolves to words that say what went wrong, or null.
  async logIn(code) {
    const { fetcher, clock, language } = this;
    const url = this.shell.urls.login;
    const { status, reply } = await logInAgain({ url, code, language, fetcher, clock });
    if (status === 200 && typeof reply.tag === "string") return this.goOn(reply);
    if (status === 503 || status === 429) return this.words.say("overloaded");
    if (typeof reply.message === "string") return reply.message;
    return this.words.say("load_failed");
  }

  goOn({ tag, revision }) {
    if (tag !== this.shell.tag) {
      this.startOver();
      return null;
    }
    this.queue.resume(Number.isInteger(revision) ? revision : 0);
    this.sheet?.section.querySelector(".page-title").focus();
    return null;
  }

  // Somebody else's session: nothing of this person stays in the tab. What is
  // unsaved stays on the device under this person's own key.
  async startOver() {
    this.queue.halt({ kind: "halt", error: "person" });
    this.forget();
    await this.store.settled();
    location.replace(this.shell.urls.renew);
  }

  forget() {
    this.isLeaving = true;
    this.turns += 1;
    this.sheet = null;
    this.edited.clear();
    this.container.replaceChildren();
    this.queue?.slots.clear();
    if (!this.taking) return;
    this.taking.answers = Object.create(null);
    this.taking.mistyped.clear();
    this.taking.recompute();
  }

  async continueHere() {
    const { fetcher, clock, language } = this;
    const url = this.shell.urls.renew;
    const { status, reply } = await renewShell({ url, language, fetcher, clock });
    if (status === 200 && reply.tag !== this.shell.tag) {
      this.stop("halt", "person");
    } else if (status === 200) {
      this.takeOver(reply);
    } else if (status === 401) {
      this.stop("session", reply.error);
    } else if (status === 409) {
      this.stop("halt", reply.error);
    } else {
      this.panel.say(this.words.say("load_failed"));
    }
  }

  stop(kind, error) {
    this.queue.halt({ kind, error });
    this.update();
  }

  takeOver(reply) {
    if (this.sheet && this.edited.has(this.current)) {
      this.queue.hold(this.current, this.taking.content(this.current));
    }
    this.takeIn(reply);
    this.show(this.current, { stay: true });
  }

  takeIn({ revision, seen, answers }) {
    const { outline } = this.taking;
    this.taking.takeIn(Object.entries(answers));
    const known = contentsByPage(outline, answers);
    this.queue.rebase({ base: revision, seen, known });
    for (const [page] of known) {
      const content = this.queue.unsaved(page);
      if (content) this.taking.takeIn(Object.entries(JSON.parse(content)));
    }
  }

  // Languages

  async switchLanguage(language) {
    const { fetcher, clock } = this;
    try {
      await this.pages.switchLanguage(language, this.current);
    } catch {
      this.select.value = this.language;
      this.announcer.textContent = this.words.say("load_failed");
      return;
    }
    const url = this.shell.urls.renew;
    const { status, reply } = await renewShell({ url, language, fetcher, clock });
    if (status === 200 && reply.messages) {
      this.reword(new Words(reply.messages, language), reply.title);
    }
    this.language = language;
    this.taking.outline = await this.pages.outline();
    this.taking.recompute();
    rememberPlace({ page: this.current, tag: this.shell.tag, language, replace: true });
    await this.show(this.current, { stay: true });
    this.update();
    this.prefetch();
  }

  reword(words, surveyTitle) {
    this.words = words;
    this.surveyTitle = surveyTitle;
    document.title = surveyTitle;
    document.getElementById("survey-title").textContent = surveyTitle;
    this.status.reword(words);
    this.panel.reword(words);
    document.documentElement.lang = words.language;
    document.documentElement.dir = this.directionOf(words.language);
    for (const element of document.querySelectorAll("[data-message]")) {
      element.textContent = words.say(element.dataset.message);
    }
    for (const element of document.querySelectorAll("[data-label]")) {
      element.setAttribute("aria-label", words.say(element.dataset.label));
    }
  }

  directionOf(language) {
    return this.shell.languages.find(({ code }) => code === language)?.direction ?? "ltr";
  }

  // Events

  listen() {
    this.nextButton.addEventListener("click", (event) => this.turn(event, () => this.next()));
    this.backButton.addEventListener("click", (event) => this.turn(event, () => this.back()));
    for (const kind of ["mousedown", "click"]) {
      this.container.addEventListener(kind, (event) => this.dropEcho(event), true);
    }
    this.select?.addEventListener("change", () => this.switchLanguage(this.select.value));
    addEventListener("popstate", (event) => this.travel(event.state));
    addEventListener("online", () => this.nudge());
    addEventListener("visibilitychange", () => this.noteVisibility());
    addEventListener("pagehide", (event) => this.hide(event));
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    addEventListener("beforeunload", (event) => this.warn(event));
    setInterval(() => wipeOld(), LONGEST_KEPT / 24);
  }

  // The second click of a double click is meant for the page before.
  turn(event, move) {
    if (event.detail > 1) return;
    this.turnedBy = event;
    move();
  }

  // Nor does it answer what came to lie under it. Judged by when it was made: a
  // slow device hears of it long after. Of a mouse the browser counts the
  // clicks; of a finger they are told by their place.
  dropEcho(event) {
    const { turnedBy, turnedAt } = this;
    if (!event.detail || !turnedBy || event.timeStamp - turnedAt > TURN_TAKES) return;
    const x = event.clientX - turnedBy.clientX;
    const y = event.clientY - turnedBy.clientY;
    const isTap = event.type === "click" && event.pointerType !== "mouse";
    if (event.detail < 2 && !(isTap && Math.hypot(x, y) < FINGER)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  travel(state) {
    const place = placeIn(location.hash);
    const page = place?.page ?? state?.page;
    if (!this.taking.isVisible(page)) return;
    this.saveIfEdited();
    this.show(page, { replace: true, item: place?.item });
  }

  nudge() {
    this.queue.nudge();
    this.pages.nudge();
    this.update();
  }

  noteVisibility() {
    if (document.visibilityState === "hidden") this.leave();
    else this.nudge();
  }

  leave() {
    if (this.isLeaving) return;
    this.saveIfEdited();
    this.queue.leave();
  }

  // A page kept for the back button would show these answers to whoever comes
  // next.
  hide(event) {
    this.leave();
    if (event.persisted) this.forget();
  }

  // Only where closing the tab would lose something.
  warn(event) {
    if (this.isLeaving || this.store.durable || !this.queue.pending()) return;
    event.preventDefault();
    event.returnValue = "";
  }
}

// An ISO time with offset, some milliseconds later.
function movedOn(iso, milliseconds) {
  const zoned = /([+-])(\d{2}):(\d{2})$/.exec(iso);
  const [, sign, hours, minutes] = zoned ?? ["", "+", "00", "00"];
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  const shifted = new Date(Date.parse(iso) + milliseconds + offset * 60000);
  return `${shifted.toISOString().slice(0, 19)}${sign}${hours}:${minutes}`;
}

// The shell's data leave the document: it holds the key of the kept answers.
function readShell() {
  const element = document.getElementById("take");
  const shell = JSON.parse(element.textContent);
  element.remove();
  return shell;
}

new Take(readShell()).start();
