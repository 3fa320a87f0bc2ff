// Small improvements of the console, which also works without this script.

// Ignores the second click on a button that sends a form.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) {
    return;
  }
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
});

// A page that the back button shows again may send its form again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
  }
});

// A suggested name never overwrites a name that is being typed.
document.addEventListener("input", (event) => {
  if (event.target.closest("#name-row")) {
    htmx.trigger(".names-it", "htmx:abort");
  }
});
