// The notice above a page: why nothing is saved any more and what to do.

import { groupWhileTyping } from "./codes.js";

const TYPED_INTO = "textarea, input:not([type=radio], [type=checkbox], [type=range])";

export class Panel {
  constructor({ element, words }) {
    Object.assign(this, { element, words });
    this.title = element.querySelector("#notice-title");
    this.text = element.querySelector("#notice-text");
    this.actions = element.querySelector("#notice-actions");
    this.shown = null;
  }

  // {name, state, title, text, code, ask, buttons, calls}: `ask` takes a typed
  // access code, each button is {label, run}, `calls` takes the focus.
  show(notice) {
    const isNew = this.shown?.name !== notice.name;
    this.shown = notice;
    if (isNew) this.build(notice);
    else this.retitle(notice);
    if (isNew && notice.calls) this.call();
  }

  build(notice) {
    this.element.hidden = false;
    this.element.dataset.state = notice.state;
    this.retitle(notice);
    this.text.textContent = notice.text;
    for (const added of this.element.querySelectorAll(".added")) added.remove();
    this.actions.replaceChildren(...(notice.buttons ?? []).map((one) => buttonFor(one)));
    if (notice.code) this.actions.before(this.codeLine(notice.code));
    if (notice.ask) this.actions.before(this.form(notice.ask));
  }

  retitle({ title }) {
    if (this.title.textContent !== title) this.title.textContent = title;
  }

  // Shown again from the start, in other words.
  reword(words) {
    this.words = words;
    this.hide();
  }

  hide(name = this.shown?.name) {
    if (!this.shown || this.shown.name !== name) return;
    this.shown = null;
    this.element.hidden = true;
  }

  // Not out of a text that somebody is just typing: the title is read aloud
  // by the status line, too.
  call() {
    const busy = document.activeElement;
    if (busy?.matches(TYPED_INTO) && !this.element.contains(busy)) return;
    this.focus();
  }

  focus() {
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "center" });
  }

  say(message) {
    this.text.textContent = message;
  }

  codeLine(code) {
    const line = document.createElement("p");
    line.className = "added teacher-code";
    line.textContent = this.words.say("cannot_save_code", { code });
    return line;
  }

  form(ask) {
    const form = document.createElement("form");
    form.className = "added";
    form.noValidate = true;
    const label = document.createElement("label");
    label.className = "item-label";
    label.htmlFor = "notice-access-code";
    label.textContent = this.words.say("code_label");
    const submit = buttonFor({ label: this.words.say("log_in_again") });
    submit.type = "submit";
    const field = codeField();
    const error = document.createElement("p");
    error.id = "notice-error";
    error.className = "error";
    error.hidden = true;
    error.setAttribute("role", "alert");
    form.append(label, field, error, submit);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit({ field, error, submit, ask });
    });
    return form;
  }

  async submit({ field, error, submit, ask }) {
    if (submit.disabled) return;
    submit.disabled = true;
    const message = await ask(field.value);
    submit.disabled = false;
    error.textContent = message ?? "";
    error.hidden = !message;
    if (!message) return;
    field.setAttribute("aria-invalid", "true");
    field.focus();
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
