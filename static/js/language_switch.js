// Showing a running survey in another language.

import { Messages } from "./messages.js";
import { rememberPlace } from "./page_history.js";

export async function switchLanguage(tab, select) {
  const language = select.value;
  const { display, bootstrap } = tab;
  try {
    await tab.pages.switchLanguage(language, display.current);
  } catch {
    select.value = tab.language;
    display.announcer.textContent = tab.messages.text("load_failed");
    return;
  }
  const { status, reply } = await tab.renew(language);
  if (status === 200 && reply.messages) {
    const { title, frame, frameDirection } = reply;
    translateFrame(tab, new Messages(reply.messages, language), reply);
    Object.assign(bootstrap, { title, frame, frameDirection });
  }
  tab.language = language;
  tab.survey.outline = await tab.pages.outline();
  tab.survey.recompute();
  rememberPlace({ page: display.current, tag: bootstrap.tag, language, replace: true });
  await display.show(display.current, { stay: true });
  tab.update();
  await tab.prefetch();
  tab.keepSnapshot();
}

// The frame may be in another language than the survey, which has more of them.
export function translateFrame(tab, messages, { title, frame, frameDirection }) {
  tab.messages = messages;
  tab.display.surveyTitle = title;
  const heading = document.getElementById("survey-title");
  heading.textContent = title;
  heading.lang = messages.language;
  const entry = tab.bootstrap.languages.find(({ code }) => code === messages.language);
  heading.dir = entry?.direction ?? "ltr";
  tab.status.translate(messages);
  tab.panel.translate(messages);
  document.documentElement.lang = frame;
  document.documentElement.dir = frameDirection;
  for (const element of document.querySelectorAll("[data-message]")) {
    element.textContent = messages.text(element.dataset.message);
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", messages.text(element.dataset.label));
  }
}
