// The review page: finishing waits until no answers wait on this device.

import { systemClock } from "./clock.js";
import { FinishForm } from "./finish_form.js";
import { NoticePanel } from "./notice_panel.js";
import { searchFor } from "./page_history.js";
import { countKept, wipeOld } from "./store.js";
import { Messages, fillIn, localTime } from "./messages.js";

const COUNT_INTERVAL = 2000;

function showLocalTimes(language) {
  for (const element of document.querySelectorAll("time[datetime]")) {
    const day = element.dataset.format === "datetime" ? { day: "numeric", month: "long" } : {};
    const format = { ...day, hour: "numeric", minute: "2-digit" };
    element.textContent = localTime(element.dateTime, language, format);
  }
}

// Links back to the questions stay with this person, and in this language.
function keepPlace(tag, language) {
  for (const link of document.querySelectorAll('a[href^="/take/"]')) {
    link.search = searchFor({ tag, language });
  }
}

function showWaiting(count) {
  const waiting = document.getElementById("waiting");
  const button = document.getElementById("finish-button");
  const text = count === 1 ? waiting.dataset.one : waiting.dataset.many;
  waiting.hidden = count === 0;
  waiting.textContent = count ? fillIn(text, { n: count }) : "";
  if (button) button.disabled = count > 0;
}

// Counts again until nothing waits, because another tab may still be sending.
async function watchWaiting(form) {
  const count = await countKept(form.dataset.tag);
  showWaiting(count);
  if (count) setTimeout(() => watchWaiting(form), COUNT_INTERVAL);
}

function listenToFinish(form, language) {
  const find = (id) => document.getElementById(id);
  const messages = new Messages(JSON.parse(find("words").textContent), language);
  const panel = new NoticePanel({ element: find("notice"), messages });
  const status = find("finishing");
  const fetcher = (...request) => fetch(...request);
  const { random } = Math;
  new FinishForm({ form, panel, status, messages, fetcher, clock: systemClock, random }).listen();
}

async function startReview() {
  const { lang } = document.documentElement;
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
  showLocalTimes(lang);
  const form = document.getElementById("finish");
  if (form) {
    const language = form.elements.language.value;
    keepPlace(form.dataset.tag, language);
    listenToFinish(form, language);
  }
  await wipeOld();
  if (form) await watchWaiting(form);
}

startReview();
