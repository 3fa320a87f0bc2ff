// The editor of a draft: saves fields by themselves, and shows what each change led to.
// Without this script, its forms work by sending the page.

import { Canvas } from "./editor_canvas.js";
import {
  announce,
  button,
  element,
  hideNotice,
  hideToast,
  onLastChange,
  setStatus,
  showNotice,
  showToast,
  word,
} from "./editor_messages.js";
import { Keys } from "./editor_keys.js";
import { morph } from "./editor_morph.js";
import { isUntouched, Rows } from "./editor_options.js";
import { Outline } from "./editor_outline.js";
import { QuestionPasting } from "./editor_pasting.js";
import { Queue } from "./editor_queue.js";
import { RuleForms } from "./editor_rules.js";
import { PendingTexts } from "./editor_storage.js";

const PAUSE = 500;
// What rows are called that have no text yet.
const MADE_UP_NAME = /^(question|grid|page)(_\d+)*$/;
const STATE = ["at", "language", "second", "options", "page"];

class Editor {
  constructor(root) {
    this.root = root;
    this.settings = document.getElementById("ed-settings");
    this.state = Object.fromEntries(STATE.map((name) => [name, this.stateField(name)]));
    // By address: what is typed and not stored yet, and what the others have stored.
    this.typed = new Map();
    this.timers = new Map();
    this.conflicts = new Map();
    this.refused = new Set();
    // What was wrong with a text that is not stored.
    this.errors = new Map();
    this.trouble = "";
    // What goes on when everything is stored.
    this.waiting = [];
    this.pending = new PendingTexts(root.dataset.user, root.dataset.survey);
    this.queue = new Queue(
      { edit: root.dataset.address, change: root.dataset.change },
      {
        headers: () => ({ "X-Outline": this.outline.digests() }),
        state: () => Object.fromEntries(Object.entries(this.state).filter(([, value]) => value)),
        onStart: () => this.onStart(),
        onIdle: () => this.onIdle(),
        onSaved: (...result) => this.onSaved(...result),
        onDone: (...result) => this.onDone(...result),
        onShown: (reply) => this.onShown(reply),
        onTrouble: (kind) => this.onTrouble(kind),
        onContact: () => this.onContact(),
      },
    );
    const act = (verb, more) => this.act(verb, more);
    this.outline = new Outline(document.getElementById("ed-pages"), { act });
    this.rules = new RuleForms(this.settings, this.pending, (more) => this.queue.act("", more));
    this.rows = new Rows(this.settings, { act });
    this.pasting = new QuestionPasting(this.settings, {
      address: root.dataset.paste,
      state: () => this.state,
      restore: (field, text) => this.replace(field, text),
      flush: () => this.whenStored(),
    });
    this.keys = new Keys({ act, leave: () => this.outline.focusCurrent() });
    this.canvas = new Canvas(document.getElementById("ed-canvas"), (key) =>
      this.choose(key, { focus: true }),
    );
    this.canvas.select(this.state.at);
    this.listen();
    this.toggles();
    this.afterShow();
    this.showMessages();
    this.restore();
    if (this.queue.isIdle && this.rules.state) this.showState();
    this.outline.reveal();
    const first = this.settings.querySelector("textarea");
    const wanted = this.fieldOf(root.dataset.field);
    if (wanted) wanted.focus();
    else if (this.isWide && first && !first.value && this.state.at) first.focus();
  }

  // Outline, page and settings stand beside each other, and each of them scrolls.
  get isWide() {
    return window.matchMedia("(min-width: 68.75rem)").matches;
  }

  // Messages of the page before: there is no room for them to stay.
  showMessages() {
    const box = document.getElementById("messages");
    const messages = [...(box?.querySelectorAll(".message") ?? [])];
    if (!messages.length) return;
    showToast(messages.map((message) => message.textContent.trim()).join(" "));
    for (const message of messages) message.remove();
  }

  stateField(name) {
    return this.settings.querySelector(`.ed-state [name="${name}"]`)?.value ?? "";
  }

  listen() {
    this.settings.addEventListener("input", ({ target }) => this.onInput(target));
    this.settings.addEventListener("change", ({ target }) => this.onChange(target));
    this.settings.addEventListener("focusin", ({ target }) => this.onFocus(target));
    document.addEventListener("submit", (event) => this.onSubmit(event), { capture: true });
    document.addEventListener("click", (event) => this.onClick(event));
    document.addEventListener("htmx:beforeSwap", (event) => this.onFragment(event));
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.flush();
    });
    window.addEventListener("beforeunload", (event) => {
      const isUnsafe = !this.pending.isSafe && this.typed.size;
      if (this.queue.acts.length || isUnsafe || this.hasRefused()) event.preventDefault();
    });
    document.querySelector(".ed-bar").addEventListener("change", ({ target }) => {
      if (target.name !== "language" && target.name !== "second") return;
      this.state[target.name] = target.value;
      this.flush();
      this.queue.show(this.shownState());
    });
  }

  // What is not on its way would only be sent and refused once more after a reload.
  hasRefused() {
    const isWaiting = (address) => this.timers.has(address) || this.queue.fields.has(address);
    return this.conflicts.size > 0 || [...this.typed.keys()].some((address) => !isWaiting(address));
  }

  // Typing

  fieldOf(address) {
    return document.getElementById(`f-${address}`);
  }

  addressOf(target) {
    return target.name?.startsWith("f:") ? target.name.slice(2) : "";
  }

  onInput(target) {
    this.keys.onInput(target, this.seenOf(this.addressOf(target)));
    if (target.name?.startsWith("rule-")) this.rules.onInput(target);
    const address = this.addressOf(target);
    if (!address || target.readOnly) return;
    const text = target.type === "checkbox" ? (target.checked ? "yes" : "") : target.value;
    const seen = this.typed.get(address)?.seen ?? this.seenOf(address);
    this.typed.set(address, { text, seen });
    this.refused.delete(address);
    this.errors.delete(address);
    // Half a name would rename the question in all rules that read it.
    if (address.endsWith(":name:")) return;
    this.pending.keep(address, text, seen);
    if (address.endsWith(":required_choice:")) this.showRequiredRule({ open: true });
    if (this.conflicts.has(address)) return;
    clearTimeout(this.timers.get(address));
    this.timers.set(address, setTimeout(() => this.send(address), PAUSE));
    setStatus("saving");
  }

  // The text of a new option is there to be typed over.
  onFocus(target) {
    if (isUntouched(target)) target.select();
  }

  onChange(target) {
    if (target.name?.startsWith("rule-")) this.rules.onChange(target);
    const address = this.addressOf(target);
    if (!address) return;
    if (!this.typed.has(address) && target.nodeName === "SELECT") this.onInput(target);
    // A question is named after its text when the text is complete.
    if (this.timers.has(address)) this.send(address, true);
    else if (address.endsWith(":name:")) this.send(address);
    else if (isText(address) && !this.conflicts.has(address)) {
      const text = this.typed.get(address)?.text ?? target.value;
      this.queue.save(address, text, this.typed.get(address)?.seen ?? this.seenOf(address), true);
    }
  }

  seenOf(address) {
    return document.getElementsByName(`seen:${address}`)[0]?.value ?? "";
  }

  send(address, left = false) {
    clearTimeout(this.timers.get(address));
    this.timers.delete(address);
    const typed = this.typed.get(address);
    if (typed) this.pending.keep(address, typed.text, typed.seen);
    if (typed) this.queue.save(address, typed.text, typed.seen, left);
  }

  flush() {
    this.rules.flush();
    for (const address of [...this.timers.keys()]) this.send(address);
    for (const address of this.typed.keys()) {
      const isName = address.endsWith(":name:") && !this.refused.has(address);
      if (isName && !this.queue.fields.has(address)) this.send(address);
    }
  }

  act(verb, more = {}) {
    this.flush();
    this.keys.forgetTyped();
    this.queue.act(verb, more);
  }

  replace(field, text) {
    field.value = text;
    this.onInput(field);
  }

  // Resolves when nothing waits to be stored.
  whenStored() {
    this.flush();
    if (this.queue.isIdle) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  // What was typed before a reload, or while the browser had no connection.
  restore() {
    const texts = this.pending.all();
    for (const [address, { text, seen }] of texts) {
      this.typed.set(address, { text, seen: seen ?? "" });
      this.queue.save(address, text, seen ?? "", isText(address));
    }
    this.finishName();
    this.rules.restore(this.state.at);
    if (!texts.size) return;
    this.fillTyped();
    showToast(word("restored"));
  }

  // A reload left the field before the question was named after its text.
  finishName() {
    const name = this.settings.querySelector("[name^='f:survey:'][name$=':name:']")?.value;
    const field = this.settings.querySelector("textarea[name^='f:survey:']");
    const address = field ? this.addressOf(field) : "";
    if (!MADE_UP_NAME.test(name) || !isText(address) || !field.value) return;
    if (!this.typed.has(address)) this.queue.save(address, field.value, field.value, true);
  }

  fillTyped() {
    for (const [address, { text }] of this.typed) {
      const field = this.fieldOf(address);
      if (!field) continue;
      if (field.type === "checkbox") field.checked = Boolean(text);
      else if (field.value !== text) field.value = text;
    }
  }

  // Choosing what to look at

  choose(key, { focus = false } = {}) {
    this.flush();
    if (!navigator.onLine) {
      showToast(word("stays"));
      return;
    }
    // What cannot be saved is only in its field, which is left now.
    for (const address of this.refused) {
      const text = this.typed.get(address)?.text;
      if (text) this.showUnsaved(address, text, this.errors.get(address), word("left"));
      this.typed.delete(address);
      this.errors.delete(address);
    }
    this.refused.clear();
    this.state.options = "";
    this.select(key);
    this.focusAfterShow = focus ? "label" : "";
    this.isChosen = true;
    // What is typed now would go into the question that is left.
    this.settings.inert = true;
    this.queue.show(this.shownState());
    this.queue.retry();
  }

  select(key) {
    this.state.at = key;
    this.outline.select(key);
    this.canvas.select(key);
    this.markSurveyLink();
  }

  // What is chosen cannot be loaded: contents and page go back to what is still shown.
  stay() {
    if (!this.isChosen || !this.queue.look) return;
    this.queue.look = null;
    this.isChosen = false;
    this.focusAfterShow = "";
    this.settings.inert = false;
    this.select(this.settings.querySelector("form").dataset.at);
    showToast(word("stays"));
  }

  shownState() {
    return Object.fromEntries(
      Object.entries({ ...this.state, at: this.state.at }).filter(([name, value]) => value || name === "at"),
    );
  }

  markSurveyLink() {
    const link = document.querySelector(".ed-survey-link");
    if (this.state.at) link.removeAttribute("aria-current");
    else link.setAttribute("aria-current", "true");
  }

  onClick(event) {
    const check = event.target.closest?.("#ed-check");
    if (check && this.rules.unfinished.length) {
      event.preventDefault();
      this.rules.askAbout(check);
      return;
    }
    const elsewhere = event.target.closest?.("#ed a[data-place]");
    if (elsewhere) elsewhere.search = `?after=${encodeURIComponent(this.state.at)}`;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const link = event.target.closest?.("#ed a[data-at], #ed a[data-options], #ed-wrong a, #ed-notice a[data-at]");
    const moveTo = event.target.closest?.("#ed-actions [data-act]");
    const width = event.target.closest?.("button[data-width]");
    if (link) {
      event.preventDefault();
      if (link.dataset.options) {
        this.state.options = link.dataset.options;
        this.queue.show(this.shownState());
      } else {
        if (link.closest("#ed-notice")) hideNotice();
        // By the Enter key: what is chosen is written next.
        const isByKey = event.detail === 0 && Boolean(link.closest("#ed-pages"));
        this.choose(link.dataset.at, { focus: isByKey });
      }
    } else if (moveTo) {
      document.getElementById("ed-actions").open = false;
      this.outline.run(moveTo.dataset.act, this.state.at);
    } else if (width) {
      const buttons = document.querySelectorAll("button[data-width]");
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === width));
      document.querySelector(".ed-canvas").classList.toggle("phone", width.dataset.width === "phone");
    }
  }

  onSubmit(event) {
    const form = event.target;
    if (!form.matches("[data-editor]")) return;
    event.preventDefault();
    const { submitter } = event;
    if (submitter?.name.startsWith("rule-")) {
      this.rules.send(submitter.closest(".ed-rule"), submitter.value);
      return;
    }
    if (submitter?.name !== "act") {
      this.flush();
      return;
    }
    if (submitter.getAttribute("aria-disabled") === "true") return;
    submitter.closest("details")?.removeAttribute("open");
    const more = {};
    for (const name of ["list", "new_language"]) {
      const field = form.elements.namedItem(name);
      if (field && submitter.value.startsWith(name === "list" ? "use-options" : "language")) {
        more[name] = field.value;
      }
    }
    this.act(submitter.value, more);
  }

  // Answers

  onStart() {
    if (this.queue.fields.size || this.queue.acts.length) setStatus("saving");
  }

  onIdle() {
    if (this.timers.size) return;
    const state = this.showState();
    if (state === "saved" && this.wasSaving) announce(word("saved"));
    this.wasSaving = false;
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  showState() {
    const state = this.typed.size > 0 ? "refused" : this.rules.state || "saved";
    setStatus(state);
    return state;
  }

  onTrouble(kind) {
    setStatus(kind === "offline" ? "offline" : "refused");
    if (kind === "offline") this.stay();
    if (this.trouble === kind) return;
    this.trouble = kind;
    if (kind === "offline") announce(word("offline"));
    if (kind === "login") {
      const login = `${this.root.dataset.login}?next=${encodeURIComponent(location.pathname)}`;
      const link = element("a", { href: login, target: "_blank", rel: "opener" }, word("log in"));
      showNotice(element("p", {}, word("login")), element("p", {}, link));
    } else if (kind === "denied") {
      this.settings.inert = false;
      showNotice(element("p", {}, word("denied")));
    }
  }

  // Comments and the names of other authors. A login page in their place, or an error,
  // is not shown there: what was typed stays.
  onFragment({ detail }) {
    const { xhr, pathInfo } = detail;
    const asked = new URL(pathInfo.requestPath, location.href).pathname;
    if (new URL(xhr.responseURL).pathname !== asked) {
      detail.shouldSwap = false;
      this.onTrouble("login");
    } else if (xhr.status === 403 || xhr.status === 404) {
      this.onTrouble("denied");
    }
  }

  onContact() {
    if (this.trouble) hideNotice();
    this.trouble = "";
  }

  onSaved(address, sent, { status, body }, isLatest) {
    this.wasSaving = true;
    if (status === 200) {
      this.errors.delete(address);
      this.pending.drop(address, sent.text);
      const typed = this.typed.get(address);
      if (typed?.text === sent.text) this.typed.delete(address);
      else if (typed) typed.seen = sent.text;
      this.apply(body);
      return;
    }
    if (body.conflicts) {
      for (const conflict of body.conflicts) this.conflicts.set(conflict.address, conflict);
      this.apply(body);
    } else if (body.published) {
      this.showPublished(body.error);
    } else if (body.hasFailed) {
      if (!isLatest) return;
      this.showRefusal(address, word("failed"));
    } else if (status === 409) {
      const { text } = this.typed.get(address) ?? sent;
      this.showUnsaved(address, text, body.error, word("gone"));
      this.apply(body);
    } else if (isLatest) {
      this.pending.drop(address, sent.text);
      this.refused.add(address);
      this.apply(body);
      this.showRefusal(address, body.error);
    }
  }

  onDone(verb, { status, body }, more) {
    if (more.rule) {
      const isRefused = status !== 200 && status !== 409;
      const isUnsaved = body.hasUnsavedRule || isRefused || body.published;
      this.rules.onSent(more, status === 200, isUnsaved, isRefused ? "refused" : body.ruleState);
    }
    if (body.published) {
      this.showPublished(body.error);
      return;
    }
    if (body.conflicts) {
      for (const conflict of body.conflicts) this.conflicts.set(conflict.address, conflict);
      this.apply(body);
      return;
    }
    if (status !== 200) {
      this.apply(body);
      showToast(body.error ?? word(body.hasFailed ? "failed act" : "refused"));
      return;
    }
    if (verb) hideToast();
    // What was typed is stored; what is not complete gives way to what is stored now.
    if (/^(undo|redo)/.test(verb)) this.rules.forget();
    const hasMoved = this.state.at !== body.at;
    if (!this.queue.look) {
      this.state.at = body.at;
      this.canvas.selected = body.at;
    }
    this.apply(body);
    if (more.rule) this.rules.onShown(more.rule, body.hasUnsavedRule, more.action);
    if (hasMoved) this.showSettingsTop();
    if (body.focus) this.focus(body.focus);
    else if (!document.activeElement || document.activeElement === document.body) this.focusLine();
    if (verb.startsWith("language")) document.getElementById("ed-new-language").value = "";
    if (!body.message) return;
    if (body.offersUndo || body.readers.length) {
      showToast(body.message, {
        readers: body.readers,
        reason: body.readersReason,
        change: body.offersUndo ? body.undo : 0,
        onUndo: (change) => this.act(`undo:${change}`),
        onChoose: (key) => this.choose(key),
      });
    }
    announce(body.message);
  }

  onShown({ status, body }) {
    this.settings.inert = false;
    if (body.published) this.showPublished(body.error);
    if (status === 200) this.apply(body);
    else if (body.hasFailed) showToast(word("failed look"));
    if (this.isChosen) this.showSettingsTop();
    this.isChosen = false;
    if (this.focusAfterShow) this.focus(this.focusAfterShow);
    this.focusAfterShow = "";
    if (status === 200) this.rules.restore(this.state.at);
  }

  showSettingsTop() {
    this.settings.scrollTop = 0;
    this.outline.reveal();
    if (this.isWide) return;
    this.settings.querySelector("textarea, h2")?.scrollIntoView({ block: "center" });
  }

  focusLine() {
    const link = document.querySelector(".ed-outline [aria-current]");
    link?.focus({ preventScroll: true });
  }

  // `label` is the first text of the settings; else the start of an address.
  focus(wanted) {
    const fields = [...this.settings.querySelectorAll("textarea[name], input[name^='f:']")];
    const field =
      wanted === "label" ? fields[0] : fields.find(({ name }) => name.startsWith(`f:${wanted}:`));
    field?.focus();
    if (field && (wanted !== "label" || !field.value)) field.select();
  }

  apply(body) {
    if (!body.outline && body.outline !== "") return;
    onLastChange(body.undo);
    this.outline.show(body.outline);
    document.getElementById("ed-title").textContent = body.title;
    morph(document.getElementById("ed-wrong"), body.wrong);
    for (const name of ["undo", "redo"]) {
      const control = document.getElementById(`ed-${name}`);
      if (body[name]) control.removeAttribute("aria-disabled");
      else control.setAttribute("aria-disabled", "true");
    }
    // Something else is chosen already, and is on its way.
    if (body.at !== this.state.at) return;
    this.state.page = String(body.page || "");
    history.replaceState(null, "", body.address);
    morph(this.settings, body.settings, (field) => this.typed.has(this.addressOf(field)));
    morph(document.getElementById("ed-bar"), body.bar);
    this.canvas.selected = body.at;
    this.canvas.show(body.canvas);
    this.afterShow();
  }

  afterShow() {
    document.querySelector(".ed-widths").hidden = false;
    const values = document.getElementById("ed-values");
    if (values) values.checked = readFlag("editor-show-values");
    window.htmx?.process(this.settings);
    this.fillTyped();
    this.rows.decorate();
    this.markSurveyLink();
    this.showRequiredRule();
    for (const conflict of this.conflicts.values()) this.showConflict(conflict);
    for (const [address, error] of this.errors) this.markWrong(address, error);
  }

  // The rule of *Required* stands there only if it is chosen.
  showRequiredRule({ open = false } = {}) {
    const choice = this.settings.querySelector("[name$=':required_choice:'][name^='f:']");
    const rule = this.settings.querySelector("#ed-rule-required, [data-field$=':required_if:']");
    if (!choice || !rule) return;
    rule.hidden = choice.value !== "if";
    if (open && !rule.hidden) rule.open = true;
  }

  // Trouble with single texts

  showRefusal(address, error) {
    this.errors.set(address, error);
    if (this.markWrong(address, error)) announce(error);
    else showToast(error);
  }

  // Returns whether the field is there.
  markWrong(address, error) {
    const place = document.getElementById(`p-${address}`);
    if (!place) return false;
    place.textContent = error;
    this.fieldOf(address).setAttribute("aria-invalid", "true");
    document.getElementById(`w-${address}`).classList.add("wrong");
    return true;
  }

  showConflict(conflict) {
    const { address, theirs, sentence, isOwn } = conflict;
    const id = `c-${address}`;
    if (document.getElementById(id)) return;
    const wrapper = document.getElementById(`w-${address}`);
    const keepMine = () => {
      const mine = this.fieldOf(address)?.value ?? conflict.mine;
      this.settle(address);
      this.typed.set(address, { text: mine, seen: theirs });
      this.queue.save(address, mine, theirs);
      this.fieldOf(address)?.focus();
    };
    const takeTheirs = () => {
      this.settle(address);
      this.forget(address);
      const field = this.fieldOf(address);
      if (field) field.value = theirs;
      field?.focus();
      if (!this.typed.size) this.showState();
    };
    const box = element(
      "div",
      { class: "ed-conflict", id, role: "group", "aria-label": sentence, "data-own": "yes" },
      element("p", {}, sentence),
      element("p", {}, `${word(isOwn ? "other text" : "theirs")}:`),
      element("blockquote", {}, theirs || "–"),
    );
    if (!wrapper) {
      box.append(element("p", {}, `${word(isOwn ? "this text" : "mine")}:`), element("blockquote", {}, conflict.mine));
    } else {
      box.append(element("p", {}, word("edit both")));
    }
    box.append(
      element(
        "div",
        { class: "actions" },
        button(word(isOwn ? "keep this" : "keep mine"), keepMine),
        button(word(isOwn ? "take other" : "take theirs"), takeTheirs),
      ),
    );
    if (wrapper) wrapper.append(box);
    else showNotice(box);
    announce(sentence);
  }

  settle(address) {
    this.conflicts.delete(address);
    const box = document.getElementById(`c-${address}`);
    if (box?.closest("#ed-notice")) hideNotice();
    box?.remove();
  }

  forget(address) {
    const typed = this.typed.get(address);
    if (typed) this.pending.drop(address, typed.text);
    this.typed.delete(address);
    this.errors.delete(address);
  }

  // There is no field any more for a text that is not stored: it can be copied.
  showUnsaved(address, text, error, reason) {
    const area = element("textarea", { class: "field", rows: "3", readonly: "" });
    area.value = text;
    const close = () => {
      this.forget(address);
      hideNotice();
      if (!this.typed.size) this.showState();
    };
    const label = element("label", {}, reason, area);
    showNotice(element("p", {}, error), label, button(word("close"), close));
  }

  showPublished(error) {
    const link = element(
      "a",
      { href: this.root.dataset.address.replace(/edit\/$/, "") },
      word("published"),
    );
    setStatus("refused");
    showNotice(element("p", {}, error), element("p", {}, link));
  }

  toggles() {
    document.documentElement.classList.add("ed-ready");
    for (const name of ["names", "values"]) {
      const key = `editor-show-${name}`;
      const shows = readFlag(key);
      document.documentElement.classList.toggle(`ed-show-${name}`, shows);
    }
    document.addEventListener("change", ({ target }) => {
      const name = /^ed-(names|values)$/.exec(target.id ?? "")?.[1];
      if (!name) return;
      document.documentElement.classList.toggle(`ed-show-${name}`, target.checked);
      writeFlag(`editor-show-${name}`, target.checked);
    });
    const names = document.getElementById("ed-names");
    names.checked = readFlag("editor-show-names");
  }
}

// Questions are named after it.
function isText(address) {
  return /^survey:[^:]*:label:/.test(address);
}

function readFlag(key) {
  try {
    return localStorage.getItem(key) === "yes";
  } catch {
    return false;
  }
}

function writeFlag(key, value) {
  try {
    localStorage.setItem(key, value ? "yes" : "no");
  } catch {
    // The choice holds until the page is left.
  }
}

const root = document.getElementById("ed");
if (root) new Editor(root);
