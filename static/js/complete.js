// The review page: finishing waits until no answers wait on this device, and the
// person may stop for now.

import { systemClock } from "./clock.js";
import { FinishForm } from "./finish_form.js";
import { forgetDevice } from "./forget_device.js";
import { Idle } from "./idle.js";
import { NoticePanel } from "./notice_panel.js";
import { searchFor } from "./page_history.js";
import { Question } from "./question.js";
import { ReviewStop } from "./review_stop.js";
import { countKept, removeKept, wipeEnded } from "./store.js";
import { Messages, fillIn, localTime } from "./messages.js";

const COUNT_INTERVAL = 2000;
const ATTEMPT = "groundswell sends answers of a closed tab";

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
// What a crashed tab left is sent by a new one, which comes back here.
async function watchWaiting(form) {
  const { tag, renew: take } = form.dataset;
  const { open, closed } = await countKept(tag);
  if (closed && isFirstAttempt()) {
    location.replace(take + searchFor({ tag, language: document.documentElement.lang }));
    return;
  }
  if (!closed) sessionStorage.removeItem(ATTEMPT);
  // Anything that a new tab could not send either can't be sent at all.
  showWaiting(open);
  if (open) setTimeout(() => watchWaiting(form), COUNT_INTERVAL);
}

// False if this review already sent the person back to the survey once.
function isFirstAttempt() {
  const isFirst = sessionStorage.getItem(ATTEMPT) === null;
  sessionStorage.setItem(ATTEMPT, "made");
  return isFirst;
}

// The buttons *Finish* and *Stop for now*.
function listenToButtons(form, language) {
  const find = (id) => document.getElementById(id);
  const messages = new Messages(JSON.parse(find("words").textContent), language);
  const panel = new NoticePanel({ element: find("notice"), messages });
  const fetcher = (...request) => fetch(...request);
  const { random } = Math;
  const shared = { panel, messages, fetcher, clock: systemClock, random };
  const finishForm = new FinishForm({ ...shared, form, status: find("finishing") });
  finishForm.listen();
  const { tag } = form.dataset;
  const stopForm = find("stop");
  new ReviewStop({ ...shared, form: stopForm, tag, finishForm }).listen();
  // As if the person had pressed the button, which does something else in previews.
  const stop = () => stopForm.dispatchEvent(new Event("submit", { cancelable: true }));
  const question = new Question(find("question"));
  const text = (...message) => messages.text(...message);
  new Idle({ tag, clock: systemClock, question, text, stop }).listen();
}

async function startReview() {
  const { lang } = document.documentElement;
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
  showLocalTimes(lang);
  const form = document.getElementById("finish");
  // Before anything that waits: a person who has stopped must not see their answers.
  if (form) {
    keepPlace(form.dataset.tag, form.elements.language.value);
    listenToButtons(form, form.elements.language.value);
  }
  document.documentElement.removeAttribute("data-stopping");
  await wipeEnded();
  // The server accepts nothing more of a person who has finished.
  const finished = document.querySelector("[data-finished]");
  if (finished) {
    await removeKept(finished.dataset.finished);
    await forgetDevice();
  }
  if (form) await watchWaiting(form);
}

startReview();
