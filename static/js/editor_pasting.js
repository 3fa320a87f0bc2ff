// Lines that are pasted into the text of a question: the offer to make questions of them.

import { showToast, word } from "./editor_messages.js";
import { csrfToken } from "./editor_queue.js";

// Below, it is a sentence with an address, or two.
const FEWEST_LINES = 2;

export class QuestionPasting {
  // `restore` gives a field the text it had; `flush` resolves when all is stored.
  constructor(settings, { address, state, restore, flush }) {
    this.address = address;
    this.state = state;
    this.restore = restore;
    this.flush = flush;
    settings.addEventListener("paste", (event) => this.onPaste(event));
  }

  // The text is pasted as it is: nothing is lost if the offer is not taken.
  async onPaste({ target, clipboardData }) {
    if (!this.isQuestion(target)) return;
    const text = clipboardData?.getData("text/plain") ?? "";
    const lines = text.split(/[\r\n]+/).filter((line) => line.trim());
    if (lines.length < FEWEST_LINES) return;
    const before = target.value;
    const offer = await this.offerFor(text);
    if (!offer || !target.isConnected) return;
    const accept = () => this.leave(target, before, text);
    showToast(offer, { accept: { words: word("make questions"), onAccept: accept } });
  }

  // In the first language: the others are translations.
  isQuestion(target) {
    const isText = /^f:survey:[^:]*:label:/.test(target.name ?? "");
    const first = document.querySelector("#ed-language option")?.value;
    const isFirst = target.name?.endsWith(`:${first}`);
    return isText && isFirst && !target.readOnly && !target.closest(".ed-option");
  }

  async offerFor(text) {
    try {
      const headers = { Accept: "application/json", "X-CSRFToken": csrfToken() };
      const body = new FormData();
      body.set("text", text);
      const response = await fetch(this.address, { method: "POST", headers, body, redirect: "manual" });
      return response.ok ? (await response.json()).offer : "";
    } catch {
      return "";
    }
  }

  // To the preview, with the text; the field has what it had before.
  async leave(field, before, text) {
    this.restore(field, before);
    await this.flush();
    const form = document.createElement("form");
    form.method = "post";
    form.action = this.address;
    form.enctype = "multipart/form-data";
    const values = { csrfmiddlewaretoken: csrfToken(), at: this.state().at, text, read: "yes" };
    for (const [name, value] of Object.entries(values)) {
      // An input would drop the ends of lines.
      const area = document.createElement("textarea");
      area.name = name;
      area.value = value;
      form.append(area);
    }
    form.hidden = true;
    document.body.append(form);
    form.submit();
  }
}
