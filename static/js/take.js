// A survey in a browser tab: creates the parts, and connects them to the
// browser's events. Each part is in a module of its own: which page is shown
// (page_display.js), moving between pages (navigation.js), unsaved answers
// (drafts.js, queue.js, store.js), notices (notices.js), finishing
// (finishing.js), stopping for now (stopping.js, idle.js), and continuing after
// saving stopped (recovery.js).

import { systemClock, timeAfter } from "./clock.js";
import { Drafts } from "./drafts.js";
import { Finishing } from "./finishing.js";
import { Idle } from "./idle.js";
import { switchLanguage } from "./language_switch.js";
import { Navigation } from "./navigation.js";
import { NoticePanel } from "./notice_panel.js";
import { Notices } from "./notices.js";
import { keepContent, serveOffline } from "./offline.js";
import { catchUpWhenReached, fillFrame, showUnreachable } from "./offline_start.js";
import { PageDisplay } from "./page_display.js";
import { Pages } from "./pages.js";
import { Question } from "./question.js";
import { Queue, drawTab } from "./queue.js";
import { Recovery } from "./recovery.js";
import { SaveStatus, statusOf } from "./save_status.js";
import { sendSave } from "./send_save.js";
import { Stopping } from "./stopping.js";
import { renewBootstrap } from "./server_requests.js";
import { openStore, wipeEnded } from "./store.js";
import { SurveyState, contentsByPage } from "./survey_state.js";
import { TabSnapshot, openSnapshot } from "./tab_snapshot.js";
import { Messages, fillIn } from "./messages.js";

const DAY = 24 * 60 * 60 * 1000;

class SurveyTab {
  constructor(bootstrap, { isOffline }) {
    this.bootstrap = bootstrap;
    // Reloaded without a network, and the server has not answered since.
    this.isOffline = isOffline;
    this.language = bootstrap.language;
    this.clock = systemClock;
    this.random = Math.random;
    this.fetcher = (...request) => fetch(...request);
    this.startedAt = performance.now();
    this.isLeaving = false;
    this.messages = new Messages(bootstrap.messages, bootstrap.language);
    const { language, messages, clock, random, fetcher } = this;
    const find = (id) => document.getElementById(id);
    this.status = new SaveStatus({ element: find("status"), messages, clock });
    this.panel = new NoticePanel({ element: find("notice"), messages });
    this.question = new Question(find("question"));
    const address = (place) => fillIn(bootstrap.urls.content, place);
    const keep = bootstrap.urls.worker ? keepContent : () => {};
    this.pages = new Pages({ address, language, fetcher, clock, random, keep });
    this.display = new PageDisplay(this);
    this.drafts = new Drafts(this);
    this.navigation = new Navigation(this);
    this.notices = new Notices(this);
    this.finishing = new Finishing(this);
    this.recovery = new Recovery(this);
    this.stopping = new Stopping(this);
    this.idle = new Idle({
      tag: bootstrap.tag,
      clock,
      question: this.question,
      text: (...message) => this.messages.text(...message),
      stop: () => this.stopping.begin(),
    });
  }

  async start() {
    wipeEnded();
    if (this.isOffline) fillFrame(this);
    const stopWarning = this.display.warnIfSlow();
    const outline = await this.pages.outline();
    const { bootstrap, clock, random } = this;
    const { answers, earlier, tag, answersOf: digest, queueKey: key, closesAt } = bootstrap;
    const changed = () => this.update();
    this.store = await openStore({ tag, digest, key, closesAt, changed });
    // From here on only the store and the snapshot hold the key.
    bootstrap.queueKey = null;
    this.snapshot = new TabSnapshot({ tab: this, queueKey: key });
    this.survey = new SurveyState({ outline, answers, earlier, moment: () => this.moment() });
    this.queue = new Queue({
      send: (save) => this.send(save),
      store: this.store,
      clock,
      random,
      tab: drawTab(),
      base: bootstrap.revision,
      seen: bootstrap.seen,
      shown: bootstrap.shown,
      known: contentsByPage(outline, answers),
      changed,
    });
    await this.drafts.restore();
    this.listen();
    if (this.stopping.isMarked()) this.stopping.begin();
    else await this.navigation.begin();
    stopWarning();
    if (!this.stopping.isStopping) this.finishing.continuePending();
    // Longer times than a session do not matter, and overflow a timer.
    const closing = this.untilClosing();
    if (closing < DAY) this.clock.after(Math.max(closing, 0) + 1000, () => this.update());
    this.update();
    if (this.isOffline) catchUpWhenReached(this);
    this.keepSnapshot();
    await this.prefetch();
    if (bootstrap.urls.worker !== undefined) serveOffline(bootstrap.urls.worker);
  }

  async send({ page, ...save }) {
    const { bootstrap, fetcher, clock } = this;
    const url = fillIn(bootstrap.urls.page, { n: page });
    const outcome = await sendSave({ ...save, url, tag: bootstrap.tag, fetcher, clock });
    if (outcome.kind === "saved") {
      this.keepSnapshot();
      if (this.isOffline) this.pages.retrySoon();
    }
    return outcome;
  }

  // For a reload without a network.
  keepSnapshot() {
    if (this.bootstrap.urls.worker) this.snapshot.keepSoon();
  }

  startClock({ now }) {
    this.bootstrap.now = now;
    this.startedAt = performance.now();
  }

  // What rules know of the moment: the server's clock, and the language. A tab that
  // is open over midnight has another day than the one on which it was loaded.
  moment() {
    const now = timeAfter(this.bootstrap.now, performance.now() - this.startedAt);
    return { today: now.slice(0, 10), now, language: this.language };
  }

  // In milliseconds, by the server's clock.
  untilClosing() {
    const { closesAt, now } = this.bootstrap;
    return Date.parse(closesAt) - Date.parse(now) - (performance.now() - this.startedAt);
  }

  // What the page would start with if it were loaded now.
  async renew(language = this.language) {
    const { fetcher, clock } = this;
    const { tag, urls } = this.bootstrap;
    const renewed = await renewBootstrap({ url: urls.renew, tag, language, fetcher, clock });
    const { status, reply } = renewed;
    if (status === 403 && reply.error === "person") this.recovery.stop("halt", "person");
    if (status === 200) {
      const { closesAt, acceptedUntil } = reply;
      Object.assign(this.bootstrap, { closesAt, acceptedUntil });
      if (this.isOffline) this.startClock(reply);
    }
    return renewed;
  }

  prefetch() {
    const { current } = this.display;
    const numbers = this.survey.outline.pages.map((_, index) => index + 1);
    const ahead = numbers.filter((n) => n > current);
    const behind = numbers.filter((n) => n < current);
    return this.pages.prefetch([current, ...ahead, ...behind]);
  }

  // Shows how saving goes. Called after each change of the queue.
  update() {
    if (!this.queue || this.isLeaving) return;
    if (this.queue.halted?.error === "person") this.recovery.hideAnswers();
    this.status.show(this.savingStatus());
    if (this.queue.isRetrying()) {
      this.store.protect();
      // The server that comes back may be another one.
      this.recovery.compareLater();
    }
    this.stopping.update();
    if (this.finishing.isReady()) this.finishing.openReview();
    else this.notices.update();
  }

  // *Saved* is never shown beside something that was not saved.
  savingStatus() {
    const status = statusOf(this.queue, this.store.durable);
    return status?.state === "saved" && this.survey.hasWithheld() ? null : status;
  }

  listen() {
    this.navigation.listen();
    this.stopping.listen();
    this.idle.listen();
    const select = document.getElementById("language");
    select?.addEventListener("change", () => switchLanguage(this, select));
    addEventListener("online", () => this.retrySoon());
    addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.saveBeforeLeaving();
      else this.retrySoon();
    });
    addEventListener("pagehide", (event) => {
      this.saveBeforeLeaving();
      // The browser keeps the page for its back button, which would show these
      // answers to the next person at this computer.
      if (event.persisted) this.recovery.forget();
    });
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    addEventListener("beforeunload", (event) => {
      const isPending = this.queue.pending();
      // Opening the login page in this tab ends the session, before `pagehide`.
      this.saveBeforeLeaving();
      // Only where closing the tab would lose something.
      if (this.isLeaving || this.store.durable || !isPending) return;
      event.preventDefault();
      event.returnValue = "";
    });
  }

  retrySoon() {
    this.queue.retrySoon();
    this.pages.retrySoon();
    this.recovery.compareLater();
    this.update();
  }

  saveBeforeLeaving() {
    if (this.isLeaving) return;
    this.drafts.saveIfEdited();
    this.queue.sendAll();
  }
}

// Removes the data from the document, because it holds the key of the answers
// that are kept on the device. A page of the service worker has none.
function takeBootstrap() {
  const element = document.getElementById("take");
  if (!element) return null;
  const bootstrap = JSON.parse(element.textContent);
  element.remove();
  return bootstrap;
}

async function start() {
  const loaded = takeBootstrap();
  const tag = new URLSearchParams(location.search).get("for");
  const bootstrap = loaded ?? (await openSnapshot(tag));
  if (bootstrap) new SurveyTab(bootstrap, { isOffline: !loaded }).start();
  else showUnreachable();
}

start();
// Otherwise old_browser.js opens the pages that need no script.
document.documentElement.setAttribute("data-started", "");
