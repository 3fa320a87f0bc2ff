// Shows the progress of an upload, and keeps the chosen file if the server finds
// errors. Without this script, the browser sends the form as usual.

const form = document.querySelector("form[data-upload]");
// Its attributes are the texts that this script shows.
const shown = form?.querySelector("[data-upload-progress]");

// Checked before an upload that may take minutes.
form?.addEventListener("change", ({ target }) => {
  const { files, dataset } = target;
  if (!files || !dataset.largest) return;
  const isTooLarge = [...files].some(({ size }) => size > Number(dataset.largest));
  target.setCustomValidity(isTooLarge ? dataset.words : "");
  if (isTooLarge) target.reportValidity();
});

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!form.dataset.uploading) send(new FormData(form));
});

function send(data) {
  const bar = shown.querySelector("progress");
  form.dataset.uploading = "yes";
  form.querySelector("button[type=submit]").disabled = true;
  shown.hidden = bar.hidden = false;
  bar.value = 0;
  showStatus(shown.dataset.sending);

  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", (event) => {
    bar.value = event.lengthComputable ? event.loaded / event.total : 0;
    if (event.loaded === event.total) {
      showStatus(shown.dataset.checking);
    }
  });
  request.addEventListener("load", () => {
    if (request.status === 413) {
      fail(shown.dataset.tooLarge);
    } else if (request.status >= 400) {
      fail(shown.dataset.failed);
    } else if (request.responseURL !== location.href) {
      location.assign(request.responseURL);
    } else {
      showAnswer(request.responseText);
    }
  });
  request.addEventListener("error", () => {
    fail(shown.dataset.lost);
  });
  request.open("POST", location.href);
  request.send(data);
}

function showStatus(text) {
  const message = shown.querySelector("[role=status]");
  if (message.textContent !== text) message.textContent = text;
}

function fail(text) {
  showStatus(text);
  shown.querySelector("progress").hidden = true;
  form.querySelector("button[type=submit]").disabled = false;
  delete form.dataset.uploading;
}

// Copies the errors into this page, so that the file stays chosen.
function showAnswer(text) {
  const answer = new DOMParser()
    .parseFromString(text, "text/html")
    .querySelector("form[data-upload]");
  for (const old of form.querySelectorAll(".error")) old.remove();
  for (const row of answer?.querySelectorAll(".form-row") ?? []) {
    const field = row.querySelector("input, select");
    const before = form.querySelector(`[name="${field.name}"]`);
    const here = before.closest(".form-row");
    if (!here) {
      // A hidden field that the server now asks for.
      before.replaceWith(document.importNode(row, true));
      continue;
    }
    here.classList.toggle("wrong", row.classList.contains("wrong"));
    here.append(...copies(row.querySelectorAll(".error")));
    for (const name of ["aria-invalid", "aria-describedby"]) {
      describe(here.querySelector("input, select"), name, field.getAttribute(name));
    }
  }
  form.prepend(...copies(answer?.querySelectorAll(":scope > .error") ?? []));
  fail(shown.dataset.refused);
  form.querySelector(".wrong input, .wrong select")?.focus();
}

function copies(elements) {
  return [...elements].map((element) => document.importNode(element, true));
}

function describe(field, name, value) {
  if (value === null) field.removeAttribute(name);
  else field.setAttribute(name, value);
}
