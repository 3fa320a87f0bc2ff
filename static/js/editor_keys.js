// Keys of the whole editor: add a question, undo, leave a message or the settings.

import { hideToast, isToastShown } from "./editor_messages.js";

export class Keys {
  // `leave` goes back from the settings to the contents.
  constructor({ act, leave }) {
    this.act = act;
    this.leave = leave;
    this.forgetTyped();
    document.addEventListener("keydown", (event) => this.onKey(event));
    const addMenu = document.querySelector(".ed-add-menu");
    addMenu.addEventListener("keydown", (event) => this.onAddKey(event, addMenu));
  }

  // What the browser can undo: what was typed last, and the text before it.
  onInput(field, text) {
    if (field !== this.typed.field) this.typed = { field, text };
  }

  forgetTyped() {
    this.typed = { field: null, text: "" };
  }

  onKey(event) {
    if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing) this.onEscape(event.target);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      const kind = document.querySelector("#ed-settings select[name$=':kind:']")?.value;
      this.act(`add:${kind || "select_one"}`);
      return;
    }
    const key = event.key.toLowerCase();
    const isUndo = key === "z" && (event.ctrlKey || event.metaKey);
    const isRedo = (key === "y" && event.ctrlKey) || (isUndo && event.shiftKey);
    if (!(isUndo || isRedo) || this.isUndoneByBrowser(event.target, isRedo)) return;
    event.preventDefault();
    this.act(isRedo ? "redo" : "undo");
  }

  // From a message, or back to the contents.
  onEscape(target) {
    if (isToastShown()) hideToast();
    else if (target.closest?.("#ed-settings") && !target.closest(".menu")) this.leave();
  }

  // In a field, the browser undoes what was typed there, and else the last text that
  // was typed anywhere: not what was done since, such as pasting.
  isUndoneByBrowser(target, isRedo) {
    if (target.closest?.("dialog")) return true;
    if (!target.matches?.("input:not([type=checkbox]), textarea")) return false;
    if (!/^(f:|rule-)/.test(target.name)) return true;
    const { field, text } = this.typed;
    return target === field && (isRedo || target.value !== text);
  }

  onAddKey(event, menu) {
    const entries = [...menu.querySelectorAll(".menu-panel .plain")];
    const place = entries.indexOf(document.activeElement);
    const next = {
      ArrowDown: place + 1,
      ArrowUp: place < 0 ? -1 : place - 1,
      Home: 0,
      End: -1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    menu.open = true;
    entries.at(next % entries.length).focus();
  }
}
