// How far an upload is. Without this file the browser uploads all the same.

function formOf(event) {
  return event.target.closest?.("form[data-upload]");
}

function say(form, words) {
  form.querySelector(".upload-words").textContent = words;
}

function showProgress(form, shown) {
  form.querySelector("progress").hidden = !shown;
}

// Said before the minutes that it would take.
document.addEventListener("change", (event) => {
  const { files, dataset } = event.target;
  if (!files || !dataset.largest) return;
  const isTooLarge = [...files].some(({ size }) => size > Number(dataset.largest));
  event.target.setCustomValidity(isTooLarge ? dataset.words : "");
  if (isTooLarge) event.target.reportValidity();
});

document.addEventListener("htmx:beforeSend", (event) => {
  const form = formOf(event);
  if (!form) return;
  showProgress(form, true);
  say(form, form.dataset.uploading);
});

document.addEventListener("htmx:xhr:progress", (event) => {
  const form = formOf(event);
  const { lengthComputable, loaded, total } = event.detail;
  if (!form || !lengthComputable || !total) return;
  form.querySelector("progress").value = loaded / total;
  if (loaded === total) say(form, form.dataset.uploaded);
});

for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    const form = formOf(event);
    if (!form) return;
    showProgress(form, false);
    say(form, form.dataset.failed);
  });
}
