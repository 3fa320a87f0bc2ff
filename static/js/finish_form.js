// The button *Finish*: sends the request until the server has answered, also
// after a reload, a lost network or the end of the session.

import { fullJitter } from "./clock.js";
import { searchFor } from "./page_history.js";
import { askServer, codeRefusal, logInAgain, renewBootstrap } from "./server_requests.js";

const PENDING = "groundswell finishing";
const LONGEST_PENDING = 24 * 60 * 60 * 1000;

export class FinishForm {
  constructor({ form, panel, status, messages, fetcher, clock, random }) {
    Object.assign(this, { form, panel, status, messages, fetcher, clock, random });
    this.button = form.querySelector("button[type=submit]");
    this.tag = form.dataset.tag;
    this.language = messages.language;
    this.csrf = form.elements.csrfmiddlewaretoken?.value ?? "";
    this.reviewed = null;
    this.failures = 0;
    this.isSending = false;
    this.timer = null;
  }

  listen() {
    this.form.addEventListener("submit", (event) => {
      if (event.defaultPrevented) return;
      event.preventDefault();
      // The button below the answers: how far it is, is said above them.
      const pressed = document.activeElement;
      if (pressed && pressed !== this.button && pressed.form === this.form) this.form.scrollIntoView();
      if (this.reviewed === null) this.begin(this.form.elements.reviewed.value);
    });
    addEventListener("online", () => this.retrySoon());
    // The person pressed *Finish* before a reload. What was reviewed then is
    // finished; the server refuses it if answers have changed since.
    const pending = pendingFinish(this.tag);
    if (pending) this.begin(pending);
  }

  begin(reviewed) {
    this.reviewed = reviewed;
    rememberFinish(this.tag, reviewed);
    if (this.button) this.button.disabled = true;
    this.showStatus("finishing");
    this.send();
  }

  async send() {
    if (this.isSending || this.reviewed === null) return;
    this.isSending = true;
    const { status, reply } = await this.request();
    this.isSending = false;
    if (status === 200 && reply.finished) this.leave();
    else if (status === 401) this.askForCode();
    else if (status === 403 || status === 409) this.leave();
    else this.retryLater();
  }

  // After a failure first asks for what a form needs: a login in another tab
  // replaces the CSRF token, and a reply that was lost may have finished.
  async request() {
    const { tag, language, fetcher, clock } = this;
    if (this.failures) {
      const url = this.form.dataset.renew;
      const renewed = await renewBootstrap({ url, tag, language, fetcher, clock });
      if (renewed.status !== 200) return renewed;
      this.csrf = renewed.reply.csrf;
    }
    const body = new URLSearchParams({ reviewed: this.reviewed, for: tag });
    const options = { method: "POST", body, headers: { "X-CSRFToken": this.csrf } };
    return askServer({ url: this.form.action, options, fetcher, clock });
  }

  // To the thanks, or to whatever the server shows of this survey now.
  leave() {
    forgetFinish();
    const { tag, language } = this;
    location.replace(this.form.getAttribute("action") + searchFor({ tag, language }));
  }

  retryLater() {
    this.failures += 1;
    this.showStatus("not_finished");
    const wait = fullJitter(this.failures, this.random);
    this.timer = this.clock.after(wait, () => this.send());
  }

  retrySoon() {
    if (this.timer === null) return;
    this.clock.cancel(this.timer);
    this.timer = this.clock.after(this.random() * 1000, () => this.send());
  }

  askForCode() {
    const { messages } = this;
    this.status.hidden = true;
    this.panel.show({
      name: "session",
      state: "stopped",
      takesFocus: true,
      title: messages.text("session_over"),
      text: messages.text("session_over_finishing"),
      askForCode: (code) => this.logIn(code),
    });
  }

  // Resolves to what is wrong with the code, or null.
  async logIn(code) {
    const { language, fetcher, clock, messages } = this;
    const answer = await logInAgain({ url: "/", code, language, fetcher, clock });
    const { status, reply } = answer;
    if (status === 200 && typeof reply.tag === "string") {
      // Another person's code: the server shows their own survey.
      if (reply.tag !== this.tag) location.replace(this.form.dataset.renew);
      this.csrf = reply.csrf;
      this.panel.hide();
      this.showStatus("finishing");
      if (reply.tag === this.tag) this.send();
      return null;
    }
    return codeRefusal(answer, messages);
  }

  showStatus(key) {
    this.status.hidden = false;
    this.status.textContent = this.messages.text(key);
  }
}

// Only that this person wants to finish what they reviewed; no answers. Kept for
// a day, because it can be sent only after a login of the same person.
function rememberFinish(tag, reviewed) {
  try {
    localStorage.setItem(PENDING, JSON.stringify({ tag, reviewed, at: Date.now() }));
  } catch {
    // Without storage it is sent as long as the page stays open.
  }
}

// What the person of this tag had reviewed before *Finish*, or null.
export function pendingFinish(tag) {
  try {
    const pending = JSON.parse(localStorage.getItem(PENDING));
    const isOwn = pending?.tag === tag && Math.abs(Date.now() - pending.at) < LONGEST_PENDING;
    return isOwn ? pending.reviewed : null;
  } catch {
    return null;
  }
}

function forgetFinish() {
  try {
    localStorage.removeItem(PENDING);
  } catch {
    // There was none.
  }
}
