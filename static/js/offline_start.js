// A tab that was reloaded without a network: its page came from the service
// worker, without anything of a person or a survey.

import { fullJitter } from "./clock.js";
import { translateFrame } from "./language_switch.js";
import { forgetOffline } from "./offline.js";

// Writes what the server would have written around the survey.
export function fillFrame(tab) {
  const { bootstrap, language, messages } = tab;
  const select = document.getElementById("language");
  for (const { code, name, direction } of bootstrap.languages) {
    const option = new Option(name, code, code === language, code === language);
    Object.assign(option, { lang: code, dir: direction });
    select.append(option);
  }
  select.parentElement.hidden = bootstrap.languages.length < 2;
  document.getElementById("progress").max = bootstrap.pages;
  translateFrame(tab, messages, bootstrap);
}

// Asks until the server answers; then what it has replaces what the tab believed.
export async function catchUpWhenReached(tab) {
  const { finishing, recovery, pages, random } = tab;
  let isReviewing;
  for (let attempt = 1; tab.isOffline; attempt += 1) {
    if (attempt > 1) await pages.wait(fullJitter(attempt - 1, random));
    ({ isReviewing } = finishing);
    tab.isOffline = !(await recovery.catchUp());
  }
  // Showing the page again has ended the wait for the review.
  if (isReviewing) await finishing.review();
  tab.update();
}

// Nothing of this tab can be opened: it is a new one, or somebody else's. The
// worker is removed, so that the next attempt shows the browser's own page.
export async function showUnreachable() {
  const words = JSON.parse(document.getElementById("unreachable").textContent);
  const language = new URLSearchParams(location.search).get("language");
  const { direction, load_failed: text, try_again: label } = words[language] ?? words.en;
  document.documentElement.lang = language in words ? language : "en";
  document.documentElement.dir = direction;
  const line = document.querySelector("#page .loading");
  line.textContent = text;
  const button = document.createElement("button");
  button.className = "button primary";
  button.textContent = label;
  button.addEventListener("click", () => location.reload());
  line.after(button);
  await forgetOffline();
}
