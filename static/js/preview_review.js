// The review of a previewed survey: the rules run here, over the answers that
// are here, and the server is told which questions are missing.

import { textFromWire } from "./answers.js";
import { beginPreview, keptPreview, previewedAnswers } from "./preview_kept.js";
import { pageVisible, stateOf } from "./rules.js";
import { fillIn } from "./words.js";

// An address that is too long would be refused.
const MOST_TOLD = 100;

async function reviewHere({ urls, language, today, now }) {
  const address = fillIn(urls.content, { language, n: 0 });
  const response = await fetch(address, { credentials: "same-origin" });
  const outline = await response.json();
  const answers = Object.entries(previewedAnswers(keptPreview()));
  const given = Object.create(null);
  for (const [name, value] of answers) given[name] = textFromWire(value);
  const state = stateOf(outline, given, { today, now, language });
  const numbers = outline.pages.map((_, index) => index + 1);
  const pages = numbers.filter((n) => pageVisible(outline, state, n)).length;
  const told = Object.keys(state.problems).slice(0, MOST_TOLD);
  const found = new URLSearchParams({ language, pages });
  for (const name of told) found.append("missing", name);
  location.replace(`${urls.complete}?${found}`);
}

// The form of the real review would be sent; here it ends the preview.
function finishHere(form, { urls, language }) {
  form.dataset.tag = keptPreview().tag;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { searchParams } = new URL(location.href);
    const pages = searchParams.get("pages");
    const asked = new URLSearchParams({ language, pages, finished: "yes" });
    location.replace(`${urls.complete}?${asked}`);
  });
}

function beginReview() {
  const data = JSON.parse(document.getElementById("take").textContent);
  const asked = new URL(location.href).searchParams;
  const form = document.getElementById("finish");
  if (!asked.has("pages")) reviewHere(data);
  if (form) finishHere(form, data);
  if (asked.has("finished")) beginPreview();
}

beginReview();
