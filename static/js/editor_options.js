// Options and statements: typed, added, deleted, moved and pasted row by row.

// Whether a text of a new option is still the one that it began with.
export function isUntouched(field) {
  const { placeholder } = field.closest(".ed-option")?.dataset ?? {};
  return Boolean(placeholder) && field.value === placeholder;
}

export class Rows {
  constructor(settings, { act }) {
    this.settings = settings;
    this.act = act;
    settings.addEventListener("keydown", (event) => this.onKey(event));
    settings.addEventListener("paste", (event) => this.onPaste(event));
    this.decorate();
  }

  decorate() {
    const list = this.settings.querySelector(".ed-options:not([data-locked])");
    if (!list || !globalThis.Sortable || globalThis.Sortable.get(list)) return;
    globalThis.Sortable.create(list, {
      animation: 120,
      handle: ".ed-handle",
      draggable: ".ed-option",
      onEnd: ({ item, oldIndex, newIndex }) => {
        if (oldIndex === newIndex) return;
        const before = item.previousElementSibling?.dataset.key ?? "";
        if (list.dataset.list === "option") {
          this.act(`option-place:${item.dataset.key}`, { after: before });
        } else {
          const grid = this.settings.querySelector("form").dataset.at;
          this.act(`place:${item.dataset.key}`, { after: before || `into:${grid}` });
        }
      },
    });
  }

  // Only in the texts of rows that can be changed.
  rowOf(target) {
    const isText = target.nodeName === "TEXTAREA" && !target.readOnly;
    return isText ? target.closest(".ed-option") : null;
  }

  onKey(event) {
    const row = this.rowOf(event.target);
    if (!row || event.isComposing) return;
    const { key } = row.dataset;
    const kind = row.parentElement.dataset.list;
    if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      const next = row.nextElementSibling?.querySelector("textarea");
      if (next && (!next.value || isUntouched(next))) next.focus();
      else this.act(`${kind}-add:${key}`);
    } else if (event.key === "Backspace" && !event.target.value && row.parentElement.children.length > 1) {
      event.preventDefault();
      this.act(`${kind}-delete:${key}`);
    } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      this.act(`${kind}-${event.key === "ArrowUp" ? "up" : "down"}:${key}`);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const next = event.key === "ArrowUp" ? row.previousElementSibling : row.nextElementSibling;
      const text = next?.querySelector("textarea");
      if (text && !event.target.value.includes("\n")) {
        event.preventDefault();
        text.focus();
      }
    }
  }

  // A column of a spreadsheet, or lines of a document, become rows.
  onPaste(event) {
    const row = this.rowOf(event.target);
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!row || !/[\r\n\t]/.test(text.trim())) return;
    event.preventDefault();
    const field = event.target;
    const [start, end] = [field.selectionStart, field.selectionEnd];
    const [before, after] = isUntouched(field)
      ? ["", ""]
      : [field.value.slice(0, start), field.value.slice(end)];
    const whole = before + text.replace(/[\r\n]+$/, "") + after;
    const kind = row.parentElement.dataset.list;
    const more = { text: whole, pasted: field.lang };
    // What is selected as a whole is written over, and so are the rows below.
    if (field.value && !before && !after && !isUntouched(field)) more.replaces = "yes";
    this.act(kind === "option" ? `options-paste:${row.dataset.key}` : `rows-paste:${row.dataset.key}`, more);
  }
}
