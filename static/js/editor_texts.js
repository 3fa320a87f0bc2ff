// Saves the texts of a draft while they are typed, one after the other.
// Without this script, each text is a form with a button.

import { button, element, hideNotice, showDone, showNotice, word } from "./editor_messages.js";
import { Queue } from "./editor_queue.js";
import { PendingTexts } from "./editor_storage.js";

const PAUSE = 600;

// Sends a text as its form does.
class TextQueue extends Queue {
  post(body) {
    const [name] = Object.keys(body);
    const address = name.slice(2);
    const [language, id] = address.split("/");
    const seen = body[`seen:${address}`];
    const data = new URLSearchParams({ text_id: id, language, text: body[name], seen });
    return this.request(this.addresses.change, { method: "POST", body: data });
  }
}

// The cells of a column that was copied. Those of several lines are in quotes.
function cellsOf(copied) {
  const text = copied.replace(/\r\n?/g, "\n").replace(/\n$/, "");
  const hasQuotes = text.split('"').length % 2 === 1;
  const cells = text.split(hasQuotes ? /\n(?=(?:[^"]*"[^"]*")*[^"]*$)/ : "\n");
  return cells.map((cell) =>
    /^"[^]*\n[^]*"$/.test(cell) ? cell.slice(1, -1).replaceAll('""', '"') : cell,
  );
}

class Texts {
  constructor(root) {
    this.root = root;
    // By address: what is typed and not stored yet, and why the server refused it.
    this.typed = new Map();
    this.refused = new Map();
    this.timers = new Map();
    this.trouble = "";
    this.next = null;
    this.pending = new PendingTexts(root.dataset.user, `texts-${root.dataset.survey}`);
    const address = root.dataset.address;
    this.queue = new TextQueue(
      { edit: address, change: address },
      {
        state: () => ({}),
        onStart: () => {},
        onIdle: () => this.onIdle(),
        onSaved: (...result) => this.onSaved(...result),
        onTrouble: (kind) => this.onTrouble(kind),
        onContact: () => this.onContact(),
      },
    );
    this.listen();
    this.restore();
  }

  listen() {
    document.addEventListener("input", ({ target }) => this.onInput(target));
    document.addEventListener("focusout", ({ target }) => this.onLeave(target));
    document.addEventListener("paste", (event) => this.onPaste(event));
    document.addEventListener("click", (event) => this.onClick(event), { capture: true });
    document.addEventListener("submit", (event) => this.onSubmit(event), { capture: true });
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.flush();
    });
    window.addEventListener("beforeunload", (event) => {
      if (!this.pending.isSafe && this.typed.size) event.preventDefault();
    });
    // A list that is read before a text is stored would show what was there before.
    document.addEventListener("htmx:confirm", (event) => {
      if (this.isIdle || this.trouble) return;
      event.preventDefault();
      this.afterSaving(() => event.detail.issueRequest(true));
    });
    document.addEventListener("htmx:afterSwap", () => this.fillTyped());
  }

  get isIdle() {
    return this.queue.isIdle && !this.timers.size;
  }

  addressOf(target) {
    const row = target.closest?.(".text-row");
    return row ? `${row.elements.language.value}/${row.id}` : "";
  }

  rowOf(address) {
    const [language, id] = address.split("/");
    const row = document.getElementById(id);
    return row?.elements.language.value === language ? row : null;
  }

  onInput(target) {
    const address = target.name === "text" ? this.addressOf(target) : "";
    if (!address) return;
    const seen = this.typed.get(address)?.seen ?? target.form.elements.seen.value;
    this.typed.set(address, { text: target.value, seen });
    const isConflict = this.refused.get(address)?.isConflict;
    if (!isConflict) this.pending.keep(address, target.value, seen);
    this.say(target.form, word(isConflict ? "unsaved" : "saving"));
    if (isConflict) return;
    this.refused.delete(address);
    clearTimeout(this.timers.get(address));
    this.timers.set(
      address,
      setTimeout(() => this.send(address), PAUSE),
    );
  }

  // Half a translation lacks what the original has: it is refused in words only when
  // its field is left.
  onLeave(target) {
    const address = target.name === "text" ? this.addressOf(target) : "";
    if (!address) return;
    if (this.timers.has(address)) this.send(address);
    else if (this.refused.has(address)) this.showReply(address, this.refused.get(address));
  }

  send(address) {
    clearTimeout(this.timers.get(address));
    this.timers.delete(address);
    const typed = this.typed.get(address);
    if (typed) this.queue.save(address, typed.text, typed.seen);
  }

  flush() {
    for (const address of [...this.timers.keys()]) this.send(address);
  }

  // Calls `next` when all is stored, or not if that fails: a notice says so then.
  afterSaving(next) {
    this.next = next;
    this.flush();
    if (this.queue.isIdle) this.onIdle();
    else this.queue.retry();
  }

  onIdle() {
    const next = this.next;
    this.next = null;
    next?.();
  }

  onSaved(address, field, { status, body }, isLatest) {
    const typed = this.typed.get(address);
    if (status !== 200) {
      if (isLatest && typed?.text === field.text) this.onRefused(address, field, status, body);
      return;
    }
    this.pending.drop(address, field.text);
    this.refused.delete(address);
    if (typed?.text === field.text) {
      this.typed.delete(address);
      this.showReply(address, body);
    } else if (typed) {
      // What was stored may differ from what was sent, by blanks.
      typed.seen = body.text;
      const queued = this.queue.fields.get(address);
      if (queued) queued.seen = body.text;
      this.pending.keep(address, typed.text, typed.seen);
    }
    for (const [state, count] of Object.entries(body.counts ?? {})) {
      const shown = this.root.ownerDocument.querySelector(`[data-count="${state}"]`);
      if (shown && this.rowOf(address)) shown.textContent = count;
    }
    document.getElementById("texts-undo")?.removeAttribute("hidden");
  }

  onRefused(address, field, status, body) {
    const row = this.rowOf(address);
    const reply = { ...body, isConflict: status === 409 };
    // After a reload, the texts are compared again: the browser keeps what was seen.
    if (reply.isConflict) this.typed.get(address).seen = body.text;
    if (!row || !body.html) {
      this.showLeft(address, field.text, body.error);
      return;
    }
    this.refused.set(address, reply);
    if (document.activeElement === row.elements.text && !reply.isConflict) {
      this.say(row, word("unsaved"));
    } else {
      this.showReply(address, reply);
    }
  }

  // A text of another page or language, or of a question that was deleted.
  showLeft(address, text, reason) {
    const discard = button(word("discard"), () => {
      this.pending.drop(address, text);
      this.typed.delete(address);
      hideNotice();
    });
    showNotice(
      element("p", {}, word("left"), " ", reason ?? ""),
      element("blockquote", { dir: "auto" }, text),
      discard,
    );
  }

  // Leaves the field as it is, with its focus and cursor.
  showReply(address, { html }) {
    const row = this.rowOf(address);
    if (!row || !html) return;
    const template = document.createElement("template");
    template.innerHTML = html;
    const fresh = template.content.querySelector("form");
    const hadFocus = row.contains(document.activeElement);
    row.className = fresh.className;
    row.elements.seen.value = fresh.elements.seen.value;
    for (const part of [".text-original", ".text-problem", ".text-acts"]) {
      row.querySelector(part).replaceWith(fresh.querySelector(part));
    }
    for (const name of ["aria-invalid", "aria-describedby"]) {
      const value = fresh.elements.text.getAttribute(name);
      if (value === null) row.elements.text.removeAttribute(name);
      else row.elements.text.setAttribute(name, value);
    }
    if (hadFocus && !row.contains(document.activeElement)) row.elements.text.focus();
    this.say(row, fresh.querySelector("[role=status]").textContent);
  }

  say(row, text) {
    const status = row.querySelector("[role=status]");
    if (status.textContent !== text) status.textContent = text;
  }

  // What was typed before a reload, or while the browser had no connection.
  restore() {
    const texts = this.pending.all();
    for (const [address, { text, seen }] of texts) {
      this.typed.set(address, { text, seen: seen ?? "" });
      this.queue.save(address, text, seen ?? "");
    }
    if (!texts.size) return;
    this.fillTyped();
    showDone(element("p", {}, word("restored")), button(word("close"), hideNotice));
  }

  fillTyped() {
    for (const [address, { text }] of this.typed) {
      const row = this.rowOf(address);
      if (!row) continue;
      if (row.elements.text.value !== text) row.elements.text.value = text;
      if (this.refused.has(address)) this.showReply(address, this.refused.get(address));
    }
  }

  onPaste(event) {
    const { target } = event;
    const address = target.name === "text" ? this.addressOf(target) : "";
    const cells = cellsOf(event.clipboardData?.getData("text/plain") ?? "");
    if (!address || cells.length < 2) return;
    const all = [...document.querySelectorAll(".text-row textarea")];
    const fields = all.slice(all.indexOf(target)).slice(0, cells.length);
    const original = target.form.querySelector(".text-original [lang]")?.innerText ?? "";
    // A text of several lines may be meant for one text of as many.
    if (fields.length < 2 || original.trim().split("\n").length >= cells.length) return;
    event.preventDefault();
    const before = fields.map((field) => field.value);
    // A line that is empty leaves the text as it is.
    this.write(fields, cells.map((cell, place) => (cell.trim() ? cell : before[place])));
    const values = { lines: cells.length, texts: fields.length };
    const text = word(fields.length < cells.length ? "pasted_some" : "pasted", values);
    const back = button(word("paste_back"), () => {
      this.write(fields, before);
      hideNotice();
    });
    const together = button(word("paste_together"), () => {
      this.write(fields, [cells.join("\n"), ...before.slice(1)]);
      hideNotice();
    });
    const acts = [back, together, button(word("close"), hideNotice)];
    showDone(element("p", {}, text), element("div", { class: "actions" }, ...acts));
  }

  write(fields, texts) {
    for (const [place, field] of fields.entries()) {
      if (field.value === texts[place]) continue;
      field.value = texts[place];
      this.onInput(field);
    }
    this.flush();
  }

  onClick(event) {
    const link = event.target.closest?.("a[href]");
    const isElsewhere = event.button || event.ctrlKey || event.metaKey || event.shiftKey;
    if (!link || isElsewhere || link.target || link.closest("[hx-get], [hx-boost=true]")) return;
    const isPublishing = link.hasAttribute("data-after-saving");
    if (this.trouble ? !isPublishing : this.isIdle && !(isPublishing && this.refused.size)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.afterSaving(() => {
      if (isPublishing && this.refused.size) this.showRefused();
      else window.location.assign(link.href);
    });
  }

  showRefused() {
    const [[address, reply]] = this.refused;
    this.showReply(address, reply);
    showNotice(element("p", {}, word("refused")), button(word("close"), hideNotice));
    this.rowOf(address)?.elements.text.focus();
  }

  onSubmit(event) {
    const form = event.target;
    if (form.matches(".text-row")) {
      event.preventDefault();
      event.stopImmediatePropagation();
      const address = this.addressOf(form);
      const seen = this.typed.get(address)?.seen ?? form.elements.seen.value;
      this.refused.delete(address);
      this.typed.set(address, { text: form.elements.text.value, seen });
      this.send(address);
    } else if (form.method === "post" && !this.isIdle && !this.trouble) {
      event.preventDefault();
      event.stopImmediatePropagation();
      this.afterSaving(() => form.requestSubmit(event.submitter));
    }
  }

  // The texts stay in the browser, and are sent when the page is looked at again.
  onTrouble(kind) {
    this.next = null;
    if (this.trouble === kind) return;
    this.trouble = kind;
    const fate = word(this.pending.isSafe ? "kept" : "unsafe");
    const text = element("p", {}, `${word(kind)} ${fate}`);
    const login = { href: this.root.dataset.login, target: "_blank", rel: "noopener" };
    if (kind === "login") text.append(" ", element("a", login, word("login_link")));
    showNotice(text);
  }

  onContact() {
    if (this.trouble) hideNotice();
    this.trouble = "";
  }
}

const root = document.getElementById("texts");
if (root) new Texts(root);
