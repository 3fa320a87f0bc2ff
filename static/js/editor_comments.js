// Keeps comments that are typed and not sent, for this tab, by the question they are at.

function commentKey(form) {
  const user = document.getElementById("ed")?.dataset.user ?? "";
  const replies = form.elements.replies_to?.value ?? "";
  return `comment:${user}:${new URL(form.action).pathname}:${replies}`;
}

function isCommentForm(form) {
  return Boolean(form?.closest?.(".ed-comments") && form.elements.text);
}

document.addEventListener("input", ({ target }) => {
  if (target.name !== "text" || !isCommentForm(target.form)) return;
  try {
    if (target.value) sessionStorage.setItem(commentKey(target.form), target.value);
    else sessionStorage.removeItem(commentKey(target.form));
  } catch {
    // Storage is blocked or full.
  }
});

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { requestConfig, xhr } = detail;
  const form = requestConfig?.elt;
  if (requestConfig?.verb !== "post" || !isCommentForm(form)) return;
  // After a login has ended, the reply is that of another page.
  const isStored = xhr.status === 200 && xhr.responseURL === form.action;
  if (isStored) sessionStorage.removeItem(commentKey(form));
});

document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (!target.matches?.(".ed-comments")) return;
  for (const form of target.querySelectorAll("form")) {
    if (!isCommentForm(form) || form.elements.text.value) continue;
    const text = sessionStorage.getItem(commentKey(form));
    if (!text) continue;
    form.elements.text.value = text;
    const folded = form.closest("details");
    if (folded) folded.open = true;
  }
});
