// The notice above a page: why nothing is saved, and what to do.

import { groupWhileTyping, selectCharacter } from "./access_codes.js";

const TYPED_INTO = "textarea, input:not([type=radio], [type=checkbox], [type=range])";

export class NoticePanel {
  constructor({ element, messages }) {
    Object.assign(this, { element, messages });
    this.title = element.querySelector("#notice-title");
    this.text = element.querySelector("#notice-text");
    this.actions = element.querySelector("#notice-actions");
    this.shown = null;
  }

  // notice: {name, state, title, text, takesFocus, teacherCode, askForCode,
  // buttons}. `askForCode(code)` resolves to {message, at} or null; each
  // button is {label, run}.
  show(notice) {
    const isNew = this.shown?.name !== notice.name;
    this.shown = notice;
    if (this.title.textContent !== notice.title) this.title.textContent = notice.title;
    if (!isNew) return;
    this.element.hidden = false;
    this.element.dataset.state = notice.state;
    this.text.textContent = notice.text;
    for (const added of this.element.querySelectorAll(".added")) added.remove();
    const buttons = (notice.buttons ?? []).map((button) => buttonFor(button));
    this.actions.textContent = "";
    this.actions.append(...buttons);
    if (notice.teacherCode) {
      const line = document.createElement("p");
      line.className = "added teacher-code";
      const code = notice.teacherCode;
      line.textContent = this.messages.text("cannot_save_code", { code });
      this.actions.before(line);
    }
    if (notice.askForCode) this.actions.before(this.codeForm(notice.askForCode));
    // The focus stays in a text that is being typed; the status line announces
    // the title as well.
    const focused = document.activeElement;
    const isTyping = focused?.matches(TYPED_INTO) && !this.element.contains(focused);
    if (notice.takesFocus && !isTyping) this.focus();
  }

  // Hides the notice; the next one is built in the new language.
  translate(messages) {
    this.messages = messages;
    this.hide();
  }

  hide(name = this.shown?.name) {
    if (!this.shown || this.shown.name !== name) return;
    this.shown = null;
    this.element.hidden = true;
  }

  focus() {
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "center" });
  }

  replaceText(message) {
    this.text.textContent = message;
  }

  codeForm(askForCode) {
    const form = document.createElement("form");
    form.className = "added";
    form.noValidate = true;
    const label = document.createElement("label");
    label.className = "item-label";
    label.htmlFor = "notice-access-code";
    label.textContent = this.messages.text("code_label");
    const submit = buttonFor({ label: this.messages.text("log_in_again") });
    submit.type = "submit";
    const field = codeField();
    const error = document.createElement("p");
    error.id = "notice-error";
    error.className = "error";
    error.hidden = true;
    error.setAttribute("role", "alert");
    form.append(label, field, error, submit);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (submit.disabled) return;
      submit.disabled = true;
      const refusal = await askForCode(field.value);
      submit.disabled = false;
      error.textContent = refusal?.message ?? "";
      error.hidden = !refusal;
      if (!refusal) return;
      field.setAttribute("aria-invalid", "true");
      field.focus();
      if (refusal.at !== undefined) selectCharacter(field, refusal.at);
    });
    return form;
  }
}

function buttonFor({ label, run }) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button primary";
  button.textContent = label;
  if (run) button.addEventListener("click", run);
  return button;
}

function codeField() {
  const field = document.createElement("input");
  field.id = "notice-access-code";
  field.className = "field code";
  field.dir = "ltr";
  field.maxLength = 60;
  field.autocomplete = "off";
  field.spellcheck = false;
  field.setAttribute("autocapitalize", "characters");
  field.setAttribute("aria-describedby", "notice-error");
  groupWhileTyping(field);
  return field;
}
