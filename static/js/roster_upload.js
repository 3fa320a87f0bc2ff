// Shows how far the upload of a large file is. Without this file, the browser
// sends the form by itself.

const form = document.querySelector("form[data-upload]");

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!form.dataset.uploading) {
    send(new FormData(form));
  }
});

function send(data) {
  form.dataset.uploading = "yes";
  const shown = form.querySelector("[data-upload-progress]");
  const bar = shown.querySelector("progress");
  const button = form.querySelector("button[type=submit]");
  shown.hidden = bar.hidden = false;
  bar.value = 0;
  button.disabled = true;

  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", (event) => {
    bar.value = event.lengthComputable ? (100 * event.loaded) / event.total : 0;
    say(event.loaded < event.total ? "Uploading" : "Looking at the file");
  });
  request.addEventListener("load", () => {
    if (request.status === 413) {
      fail("The file is too large to be uploaded.");
    } else if (request.status >= 400) {
      fail("The file could not be uploaded. Load this page anew and try again.");
    } else if (request.responseURL !== location.href) {
      location.assign(request.responseURL);
    } else {
      showAnswer(request.responseText);
    }
  });
  request.addEventListener("error", () => {
    fail("The connection broke off. Nothing was uploaded: try again.");
  });
  request.open("POST", form.action);
  request.send(data);

  function say(text) {
    const message = shown.querySelector("[data-upload-message]");
    if (message.textContent !== text) {
      message.textContent = text;
    }
  }

  function fail(text) {
    say(text);
    bar.hidden = true;
    button.disabled = false;
    delete form.dataset.uploading;
  }

  // What is wrong with the form. The file stays chosen, unlike in a new page.
  function showAnswer(text) {
    const answer = new DOMParser().parseFromString(text, "text/html");
    for (const old of form.querySelectorAll(".error")) {
      old.remove();
    }
    for (const row of answer.querySelectorAll("form[data-upload] .form-row")) {
      const input = row.querySelector("input, select");
      const here = form.querySelector(`[name="${input.name}"]`).closest(".form-row");
      here.classList.toggle("wrong", row.classList.contains("wrong"));
      for (const error of row.querySelectorAll(".error")) {
        here.append(document.importNode(error, true));
      }
    }
    fail("The file was not taken: see above.");
    form.querySelector(".wrong input, .wrong select")?.focus();
  }
}
