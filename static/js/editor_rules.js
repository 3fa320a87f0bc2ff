// Forms of rules in words: each change is sent, and what is complete is stored.

import { button, element, hideNotice, showNotice, word } from "./editor_messages.js";

const RULE_PAUSE = 700;

export class RuleForms {
  // `send` does what a form says; `pending` keeps it until it is stored.
  constructor(settings, pending, send) {
    this.settings = settings;
    this.pending = pending;
    this.sendForm = send;
    this.timers = new Map();
    // Why rules are not stored, by question and rule: "unfinished" or "refused".
    this.states = pending.ruleStates();
  }

  // The questions that are still there, with a rule that does not count.
  get unfinished() {
    const keys = [...this.states.keys()].map((name) => name.split(":")[0]);
    return [...new Set(keys)].filter((key) => document.querySelector(`#ed-pages [data-at="${CSS.escape(key)}"]`));
  }

  get state() {
    const left = new Set(this.unfinished);
    const states = [...this.states].filter(([name]) => left.has(name.split(":")[0]));
    if (!states.length) return "";
    return states.some(([, state]) => state === "refused") ? "refused" : "unfinished";
  }

  // Half a rule is only in this browser: nobody who checks the survey sees it.
  askAbout(link) {
    const lines = this.unfinished.map((key) => {
      const line = document.querySelector(`#ed-pages [data-at="${CSS.escape(key)}"]`);
      const name = line.querySelector(".ed-text").textContent;
      return element("li", {}, element("a", { href: line.href, "data-at": key }, name));
    });
    const anyway = element("a", { class: "button small", href: link.href }, word("check anyway"));
    const actions = element("div", { class: "actions" }, anyway, button(word("close"), hideNotice));
    showNotice(element("p", {}, word("unfinished rules")), element("ul", {}, ...lines), actions);
  }

  setState(more, state) {
    const name = `${this.keyOf(more)}:${more.rule}`;
    if (state) this.states.set(name, state);
    else this.states.delete(name);
  }

  // Until it is sent, what the server shows of other changes does not replace it.
  keep(form) {
    form.dataset.kept = "yes";
  }

  onInput(target) {
    const form = target.closest(".ed-rule");
    this.keep(form);
    this.store(this.valuesOf(form));
    if (target.nodeName === "SELECT") return;
    clearTimeout(this.timers.get(form));
    this.timers.set(
      form,
      setTimeout(() => this.send(form), RULE_PAUSE),
    );
  }

  onChange(target) {
    const form = target.closest(".ed-rule");
    const isSubject = /-(item|operator)$/.test(target.name);
    if (isSubject) this.send(form, "refresh");
    else if (target.nodeName === "SELECT" || this.timers.has(form)) this.send(form);
  }

  flush() {
    for (const form of [...this.timers.keys()]) this.send(form);
  }

  send(form, action = "") {
    clearTimeout(this.timers.get(form));
    this.timers.delete(form);
    if (!form.isConnected) return;
    this.keep(form);
    const more = this.valuesOf(form, action);
    this.store(more);
    this.sendForm(more);
  }

  valuesOf(form, action = "") {
    const { rule } = form.dataset;
    const more = { rule, action };
    for (const field of form.querySelectorAll("[name]")) {
      if (field.nodeName !== "BUTTON") more[field.name] = field.value;
    }
    more[`rule-${rule}-do`] = action;
    return more;
  }

  keyOf(more) {
    return more[`rule-${more.rule}-key`];
  }

  store(more) {
    const key = this.keyOf(more);
    this.pending.keepRule(key, more.rule, more, this.states.get(`${key}:${more.rule}`));
  }

  // What was filled in before a reload, or before another question was chosen.
  restore(key) {
    for (const more of this.pending.rulesOf(key)) {
      const shown = { ...more, action: "refresh", [`rule-${more.rule}-do`]: "refresh" };
      this.store(shown);
      this.sendForm(shown);
    }
  }

  // The forms show what is stored.
  forget() {
    for (const form of this.settings.querySelectorAll(".ed-rule[data-kept]")) {
      if (this.timers.has(form)) continue;
      const more = this.valuesOf(form);
      this.pending.dropRule(this.keyOf(more), more.rule, more);
      this.setState(more, "");
      delete form.dataset.kept;
    }
  }

  find(rule) {
    return this.settings.querySelector(`.ed-rule[data-rule="${rule}"]`);
  }

  // Stored, or refused with both rules shown; otherwise something is still missing.
  onSent(more, isDone, isUnsaved, state) {
    const { rule } = more;
    const form = this.find(rule);
    this.setState(more, state);
    if (!isUnsaved && !this.timers.has(form)) this.pending.dropRule(this.keyOf(more), rule, more);
    if (form && isDone && !this.timers.has(form)) delete form.dataset.kept;
  }

  onShown(rule, isUnsaved, action) {
    const form = this.find(rule);
    if (!form) return;
    if (isUnsaved) {
      this.keep(form);
      this.store(this.valuesOf(form));
      form.open = true;
    } else if (form.dataset.filled !== undefined) {
      // With a group that the stored rule does not need.
      this.keep(form);
    }
    if (/^(add|group)/.test(action)) form.querySelector("[autofocus]")?.focus();
    else if (action.startsWith("remove")) form.querySelector("select, summary")?.focus();
  }
}
