// Messages of the editor: what was done, with *Undo*, and what keeps it from saving.

const TOAST = 8_000;
// Of questions that a message names.
const MOST_NAMED = 5;

const words = new Map(
  [...(document.getElementById("ed-words")?.content.querySelectorAll("[data-word]") ?? [])].map(
    (word) => [word.dataset.word, word.textContent],
  ),
);

export function word(name, values = {}) {
  let text = words.get(name) ?? name;
  for (const [key, value] of Object.entries(values)) text = text.replace(`{${key}}`, value);
  return text;
}

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function button(text, onClick, className = "button small") {
  const made = element("button", { type: "button", class: className }, text);
  made.addEventListener("click", onClick);
  return made;
}

export function announce(text) {
  const live = document.getElementById("ed-live");
  live.textContent = "";
  live.textContent = text;
}

let timer = 0;
// The number of the change that the toast offers to undo.
let offered = 0;

export function hideToast() {
  document.getElementById("ed-toast").hidden = true;
  offered = 0;
}

// After another change, the offer would be about that one.
export function onLastChange(number) {
  if (offered && offered !== number) hideToast();
}

// `readers` are questions whose rules read what was deleted or moved, and `reason` says so.
// `accept` is an offer: what its button says and does.
export function showToast(
  text,
  { readers = [], reason = "", change = 0, onUndo = null, onChoose = null, accept = null } = {},
) {
  const toast = document.getElementById("ed-toast");
  const body = element("div", {}, element("p", {}, text));
  if (readers.length) {
    const list = element("ul");
    for (const reader of readers.slice(0, MOST_NAMED)) {
      const link = element("a", { href: reader.href }, reader.text);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        onChoose?.(reader.key);
      });
      list.append(element("li", {}, link));
    }
    const more = readers.length - MOST_NAMED;
    if (more > 0) list.append(element("li", {}, word("and more", { n: more })));
    body.append(element("p", {}, reason), list);
  }
  toast.replaceChildren(body);
  offered = change;
  if (change) {
    const undo = () => {
      hideToast();
      onUndo(change);
    };
    toast.append(button(word("undo"), undo, ""));
  }
  if (accept) {
    const onAccept = () => {
      hideToast();
      accept.onAccept();
    };
    toast.append(button(accept.words, onAccept, ""));
  }
  toast.append(button(word("close"), hideToast, ""));
  toast.hidden = false;
  clearTimeout(timer);
  // What has to be read and followed stays.
  if (!readers.length && !accept) timer = setTimeout(hideToast, TOAST);
}

export function isToastShown() {
  return !document.getElementById("ed-toast").hidden;
}

export function showNotice(...children) {
  fillNotice("error", children);
}

// Of what has worked.
export function showDone(...children) {
  fillNotice("success", children);
}

function fillNotice(look, children) {
  const notice = document.getElementById("ed-notice");
  for (const name of ["error", "success"]) notice.classList.toggle(name, name === look);
  notice.replaceChildren(...children);
  notice.hidden = false;
}

export function hideNotice() {
  document.getElementById("ed-notice").hidden = true;
}

export function setStatus(state) {
  const status = document.getElementById("ed-status");
  if (status.dataset.state === state && status.textContent === word(state)) return;
  status.dataset.state = state;
  status.textContent = word(state);
}
