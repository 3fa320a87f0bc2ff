// Changes a part of the page to new HTML and keeps what is the same: the focus, what
// is being typed, scrolled and unfolded.

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || "" : "";
}

function isSameKind(first, second) {
  return first.nodeType === second.nodeType && first.nodeName === second.nodeName;
}

// What the user or a script has changed is not an attribute of the new HTML.
const OWN = new Set(["open", "aria-expanded", "aria-pressed", "data-sent", "style", "tabindex"]);

function syncAttributes(element, wanted) {
  for (const { name } of [...element.attributes]) {
    if (!wanted.hasAttribute(name) && !OWN.has(name)) element.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (element.getAttribute(name) !== value && !OWN.has(name)) {
      element.setAttribute(name, value);
    }
  }
}

function syncValue(element, { value, checked }, isChanged) {
  if (isChanged(element)) return;
  if (element.type === "checkbox" || element.type === "radio") {
    element.checked = checked;
  } else if (element.value !== value) {
    const isTyping = element === element.ownerDocument.activeElement;
    // Blanks at the end are not stored while somebody types on.
    if (!isTyping || element.value.trim() !== value) element.value = value;
  }
}

function morphNode(node, wanted, isChanged) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.nodeValue !== wanted.nodeValue) node.nodeValue = wanted.nodeValue;
    return;
  }
  // A rule that is not complete yet.
  if (node.dataset.kept) return;
  // Not sent again, because it is shown already.
  if (wanted.dataset.same !== undefined) return;
  // The value of a field is no part of its HTML.
  const fields = "input, textarea, select";
  if (node.isEqualNode(wanted) && !node.matches(fields) && !node.querySelector(fields)) return;
  syncAttributes(node, wanted);
  // Before new options are taken out of it.
  const { value, checked } = wanted;
  if (node.nodeName !== "TEXTAREA") morphChildren(node, wanted, isChanged);
  if (["INPUT", "TEXTAREA", "SELECT"].includes(node.nodeName)) {
    syncValue(node, { value, checked }, isChanged);
  }
}

function morphChildren(parent, wanted, isChanged) {
  const byKey = new Map();
  for (const child of parent.childNodes) {
    if (keyOf(child)) byKey.set(keyOf(child), child);
  }
  const wantedKeys = new Set([...wanted.childNodes].map(keyOf));
  const isGone = (node) => node && keyOf(node) && !wantedKeys.has(keyOf(node)) && !node.dataset.own;
  let current = parent.firstChild;
  for (const want of [...wanted.childNodes]) {
    const key = keyOf(want);
    let match = null;
    // Or what follows it would be made anew, and lose the focus.
    while (isGone(current)) {
      const { nextSibling } = current;
      current.remove();
      current = nextSibling;
    }
    if (key) {
      const known = byKey.get(key);
      match = known && isSameKind(known, want) ? known : null;
    } else if (current && !keyOf(current) && isSameKind(current, want)) {
      match = current;
    }
    if (!match) {
      parent.insertBefore(want, current);
      continue;
    }
    if (match === current) current = current.nextSibling;
    else parent.insertBefore(match, current);
    byKey.delete(key);
    morphNode(match, want, isChanged);
  }
  while (current) {
    const next = current.nextSibling;
    // What a script has added stays.
    if (!current.dataset?.own) current.remove();
    current = next;
  }
}

export function morph(target, html, isChanged = () => false) {
  const document = target.ownerDocument;
  const template = document.createElement("template");
  template.innerHTML = html;
  const content = document.importNode(template.content, true);
  const focused = document.activeElement;
  const [start, end] = selectionOf(focused);
  morphChildren(target, content, isChanged);
  // A moved element loses the focus.
  if (focused !== document.activeElement && target.contains(focused)) {
    focused.focus({ preventScroll: true });
    if (start !== null) focused.setSelectionRange(start, end);
  }
}

function selectionOf(element) {
  try {
    return [element.selectionStart ?? null, element.selectionEnd];
  } catch {
    return [null, null];
  }
}
