// The console works without this file; with it, lists and pages move less.

// A form that was sent is not sent twice by an impatient second click.
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

// Coming back by the browser's button, it may be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
  }
});

// A name that is suggested never overwrites one that is being typed.
document.addEventListener("input", (event) => {
  if (event.target.closest("#name-row")) {
    htmx.trigger(".names-it", "htmx:abort");
  }
});
