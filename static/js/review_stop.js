// *Stop for now* on the review, where nothing of this tab is unsent.

import { endSession, showStopped, waitForOtherTabs } from "./end_session.js";
import { isMarkedStopping, markStopping, whenStoppingElsewhere } from "./forget_device.js";
import { codeRefusal, logInAgain } from "./server_requests.js";

export class ReviewStop {
  constructor({ form, tag, finishForm, panel, messages, fetcher, clock, random }) {
    Object.assign(this, { form, tag, finishForm, panel, messages, fetcher, clock, random });
    this.isStopping = false;
  }

  listen() {
    this.form.addEventListener("submit", (event) => {
      if (event.defaultPrevented) return;
      event.preventDefault();
      this.begin();
    });
    whenStoppingElsewhere(this.tag, () => this.begin());
    if (isMarkedStopping(this.tag)) this.begin();
  }

  begin() {
    if (this.isStopping) return;
    this.isStopping = true;
    markStopping(this.tag);
    // The person pressed *Finish*, which goes on until the server has answered.
    const isFinishing = this.finishForm.reviewed !== null;
    const shown = isFinishing ? ".reviewed, .missing, main a, main form" : "main > :not(#notice)";
    for (const part of document.querySelectorAll(`${shown}, nav.languages`)) part.remove();
    if (!isFinishing) this.end();
  }

  async end() {
    const { form, tag, messages, fetcher, clock, random } = this;
    const title = messages.text("stopping");
    this.panel.show({ name: "stopping", state: "waiting", title, text: "", takesFocus: true });
    const unsent = await waitForOtherTabs(tag, clock);
    const isWanted = () => this.isStopping && isMarkedStopping(tag);
    const failed = () => this.askForCode();
    const url = form.action;
    await endSession({ url, tag, fetcher, clock, random, isWanted, failed });
    if (this.isStopping) await showStopped({ url, language: messages.language, unsent });
  }

  // Offline there is no way back, because only the server knows the code.
  askForCode() {
    const { messages } = this;
    this.panel.show({
      name: "not_logged_out",
      state: "stopped",
      takesFocus: true,
      title: messages.text("not_logged_out_title"),
      text: messages.text("not_logged_out"),
      askForCode: (code) => this.logIn(code),
    });
  }

  // Resolves to what is wrong with the code, or null.
  async logIn(code) {
    const { messages, fetcher, clock } = this;
    const { language } = messages;
    const answer = await logInAgain({ url: "/", code, language, fetcher, clock });
    const { status, reply } = answer;
    if (status === 200 && typeof reply.tag === "string") {
      this.isStopping = false;
      if (reply.tag === this.tag) location.reload();
      else location.replace(this.finishForm.form.dataset.renew);
      return null;
    }
    return codeRefusal(answer, messages);
  }
}
