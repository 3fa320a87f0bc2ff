// The review of a previewed survey: applies the rules to the preview's answers in
// the browser, and passes the names of missing questions to the server.

import { textFromWire } from "./answers.js";
import { startPreview, storedPreview, previewAnswers } from "./preview_storage.js";
import { pageVisible, stateOf } from "./rules.js";
import { fillIn } from "./messages.js";

// The server refuses an address that is too long.
const MOST_NAMES = 100;

async function reviewPreview({ urls, language, today, now }) {
  const address = fillIn(urls.content, { language, n: 0 });
  const response = await fetch(address, { credentials: "same-origin" });
  const outline = await response.json();
  const answers = Object.entries(previewAnswers(storedPreview()));
  const given = Object.create(null);
  for (const [name, value] of answers) given[name] = textFromWire(value);
  const state = stateOf(outline, given, { today, now, language });
  const numbers = outline.pages.map((_, index) => index + 1);
  const pages = numbers.filter((n) => pageVisible(outline, state, n)).length;
  const missing = Object.keys(state.problems).slice(0, MOST_NAMES);
  const result = new URLSearchParams({ language, pages });
  for (const name of missing) result.append("missing", name);
  location.replace(`${urls.complete}?${result}`);
}

// Ends the preview where the real form would be sent.
function finishPreview(form, { urls, language }) {
  form.dataset.tag = storedPreview().tag;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { searchParams } = new URL(location.href);
    const pages = searchParams.get("pages");
    const result = new URLSearchParams({ language, pages, finished: "yes" });
    location.replace(`${urls.complete}?${result}`);
  });
}

function stopPreview({ urls, language }) {
  document.getElementById("stop").addEventListener("submit", (event) => {
    event.preventDefault();
    location.replace(`${urls.stop}&${new URLSearchParams({ language })}`);
  });
}

function startPreviewReview() {
  const data = JSON.parse(document.getElementById("take").textContent);
  const parameters = new URL(location.href).searchParams;
  const form = document.getElementById("finish");
  if (!parameters.has("pages")) reviewPreview(data);
  if (form) {
    finishPreview(form, data);
    stopPreview(data);
  }
  if (parameters.has("finished")) startPreview();
}

startPreviewReview();
