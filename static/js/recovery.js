// Continuing after saving stopped: log in again, take over from another tab or
// device, or leave the tab to another person.

import { fullJitter, pause } from "./clock.js";
import { codeRefusal, logInAgain } from "./server_requests.js";
import { contentsByPage } from "./survey_state.js";

// A whole state's tabs must not compare in the minute after a promotion.
const LONGEST_UNTIL_COMPARISON = 5 * 60 * 1000;

export class Recovery {
  constructor(tab) {
    this.tab = tab;
    this.comparison = null;
  }

  // Resolves to what is wrong with the code, or null.
  async logIn(code) {
    const { bootstrap, messages, fetcher, clock, language } = this.tab;
    const { queue, display, navigation, stopping } = this.tab;
    const url = bootstrap.urls.login;
    const answer = await logInAgain({ url, code, language, fetcher, clock });
    const { status, reply } = answer;
    if (status === 200 && typeof reply.tag === "string") {
      if (reply.tag !== bootstrap.tag) {
        this.leaveFor(bootstrap.urls.renew);
        return null;
      }
      stopping.cancel();
      queue.resume(Number.isInteger(reply.revision) ? reply.revision : 0);
      this.compareLater();
      if (display.form) display.form.section.querySelector(".page-title").focus();
      else if (display.current === null) navigation.begin();
      else display.show(display.current, { stay: true });
      return null;
    }
    return codeRefusal(answer, messages);
  }

  // The session is another person's: nothing of this person stays in the tab.
  // Unsaved answers stay on the device, encrypted with this person's key.
  async leaveFor(address) {
    const { queue, store, snapshot } = this.tab;
    queue.halt({ kind: "halt", error: "person" });
    this.forget();
    await snapshot.forget();
    await store.settled();
    location.replace(address);
  }

  // Somebody else uses this computer now, and should not read these answers.
  hideAnswers() {
    const { display, drafts, snapshot } = this.tab;
    if (!display.form) return;
    drafts.keep();
    display.clear();
    snapshot.forget();
  }

  forget() {
    const { tab } = this;
    tab.isLeaving = true;
    // Afterwards a draft would be written over by an empty one.
    tab.drafts.keep();
    tab.display.clear();
    tab.drafts.edited.clear();
    tab.queue?.slots.clear();
    tab.survey?.clear();
  }

  // *Continue here*: this tab takes over from the one that saved last.
  async continueHere() {
    const { messages, panel } = this.tab;
    const renewed = await this.tab.renew();
    if (renewed.status === 200) this.takeOver(renewed.reply);
    else if (!this.isStoppedBy(renewed)) panel.replaceText(messages.text("load_failed"));
  }

  // True if by its reply the server takes nothing more of this tab.
  isStoppedBy({ status, reply }) {
    if (status === 401) this.stop("session", reply.error);
    if (status === 409) this.stop("halt", reply.error);
    return [401, 403, 409].includes(status);
  }

  // For a tab that was reloaded without a network. Resolves to false if the server
  // did not answer, or with what it had before it stored a save of this tab.
  async catchUp() {
    const { queue } = this.tab;
    const { acknowledged } = queue;
    const renewed = await this.tab.renew();
    if (renewed.status !== 200) return this.isStoppedBy(renewed);
    if (queue.halted) return true;
    if (queue.acknowledged !== acknowledged) return false;
    // Otherwise the person is asked once something is saved.
    const isAllowed = !queue.isOvertakenBy(this.stateOf(renewed.reply));
    if (isAllowed) this.takeOver(renewed.reply, { quietly: true });
    return true;
  }

  // Sends again what the server once had and has lost: after the loss of a
  // primary, its standby may lack the last seconds. Resolves to false if it did.
  async sendLost() {
    const { queue } = this.tab;
    const reply = await this.readServer();
    if (!reply || !queue.isLostBy(this.stateOf(reply))) return true;
    // Answers of this tab replace none that it has not shown: the person is asked.
    if (queue.isOvertakenBy(this.stateOf(reply))) this.stop("halt", "superseded");
    else this.takeOver(reply);
    return false;
  }

  // Resolves once this tab knows what the server has, as far as it may without asking
  // the person.
  async learnFromServer() {
    const { clock, random, queue } = this.tab;
    for (let failures = 1; ; failures += 1) {
      const reply = await this.readServer();
      const mayTakeOver = reply && !queue.isOvertakenBy(this.stateOf(reply));
      if (mayTakeOver) this.takeOver(reply, { quietly: true });
      if (reply) return;
      await pause(clock, fullJitter(failures, random));
    }
  }

  // Resolves to null if the server can't be asked now, or should not.
  async readServer() {
    const { bootstrap, queue } = this.tab;
    const isUseless = () => this.tab.isLeaving || Boolean(queue.halted);
    if (isUseless()) return null;
    const { status, reply } = await this.tab.renew();
    const isSamePerson = status === 200 && reply.tag === bootstrap.tag;
    return isSamePerson && !isUseless() ? reply : null;
  }

  compareLater() {
    const { clock, random } = this.tab;
    if (this.comparison !== null) return;
    this.comparison = clock.after(random() * LONGEST_UNTIL_COMPARISON, () => {
      this.comparison = null;
      if (!this.tab.isLeaving) this.sendLost();
    });
  }

  // quietly: leaves the page on the screen alone if its answers stay the same.
  takeOver(reply, { quietly = false } = {}) {
    const { display, drafts, survey } = this.tab;
    if (display.form && drafts.edited.has(display.current)) drafts.hold();
    this.tab.keepSnapshot();
    if (display.current === null) {
      this.mergeServerAnswers(reply);
      return;
    }
    const shown = survey.content(display.current);
    this.mergeServerAnswers(reply);
    if (quietly && survey.content(display.current) === shown) return;
    display.show(display.current, { stay: true });
  }

  stop(kind, error) {
    this.tab.queue.halt({ kind, error });
    this.tab.update();
  }

  stateOf({ revision: base, seen, shown, answers, earlier = [] }) {
    const known = contentsByPage(this.tab.survey.outline, answers);
    return { base, seen, shown, known, earlier };
  }

  // Shows what other tabs and devices saved; unsaved changes of this tab win.
  mergeServerAnswers(reply) {
    const { survey, queue } = this.tab;
    const state = this.stateOf(reply);
    survey.keepEarlier(state.earlier);
    queue.dropBlanks(new Set(state.earlier));
    survey.load(Object.entries(reply.answers));
    queue.rebase(state);
    for (const [page] of state.known) {
      const content = queue.unsaved(page);
      if (content) survey.load(Object.entries(JSON.parse(content)));
    }
  }
}
