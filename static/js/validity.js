// Problems of a page, shown at its items and in a summary that links to them.

import { controlsOf, LONGEST_TEXT } from "./answers.js";

// problems: [{name, message}]
export function showProblems(section, problems, words, goTo) {
  clearProblems(section);
  for (const { name, message } of problems) markProblem(section, name, message);
  const summary = summaryOf(section, problems, words, goTo);
  section.querySelector(".page-title").after(summary);
  return summary;
}

export function clearProblems(section) {
  section.querySelector(".error-summary")?.remove();
  for (const element of section.querySelectorAll(".item.invalid")) {
    clearProblem(section, element.dataset.item);
  }
}

export function clearProblem(section, name) {
  const element = itemElement(section, name);
  const error = element?.querySelector(".error");
  if (!error) return;
  element.classList.remove("invalid");
  error.hidden = true;
  error.textContent = "";
  for (const marked of [element, ...controlsOf(element)]) {
    marked.removeAttribute("aria-invalid");
  }
}

function markProblem(section, name, message) {
  const element = itemElement(section, name);
  const error = element.querySelector(".error");
  element.classList.add("invalid");
  error.textContent = message;
  error.hidden = false;
  for (const marked of invalidParts(element)) marked.setAttribute("aria-invalid", "true");
}

// Of radio buttons the group is invalid, not each button; ARIA knows no
// invalid group of check boxes, whose error is told by its description.
function invalidParts(element) {
  if (element.getAttribute("role") === "radiogroup") return [element];
  return controlsOf(element).filter(({ type }) => type !== "radio" && type !== "checkbox");
}

function summaryOf(section, problems, words, goTo) {
  const summary = document.createElement("div");
  summary.className = "error-summary";
  summary.tabIndex = -1;
  summary.setAttribute("role", "alert");
  const title = document.createElement("h3");
  title.textContent = words.count("error_summary", problems.length);
  const list = document.createElement("ul");
  for (const problem of problems) list.append(summaryLine(section, problem, goTo));
  summary.append(title, list);
  return summary;
}

function summaryLine(section, { name, message }, goTo) {
  const line = document.createElement("li");
  const link = document.createElement("a");
  link.href = `#page-${section.dataset.page}/${name}`;
  const label = labelOf(section, name);
  link.textContent = `${label}${/[.?!:…؟。]$/u.test(label) ? "" : ":"} ${message}`;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    goTo(name);
  });
  line.append(link);
  return line;
}

function labelOf(section, name) {
  const element = itemElement(section, name);
  const label =
    element.querySelector(".label-text") ?? element.querySelector("legend, label");
  return (label?.textContent ?? name).trim();
}

export function itemElement(section, name) {
  return section.querySelector(`[data-item="${CSS.escape(name)}"]`);
}

export function focusItem(section, name) {
  const element = itemElement(section, name);
  const controls = element ? controlsOf(element) : [];
  const control = controls.find((one) => !one.disabled && isShown(one));
  if (!control) return;
  control.focus({ preventScroll: true });
  element.scrollIntoView({ block: "center" });
}

function isShown(control) {
  return !control.closest("[hidden]");
}

// The words for a problem's key, which is the server's or one of the rules'.
export function problemMessage(key, item, words, pipe) {
  if (key === "required") return pipe(item.required_message) || words.say("required");
  if (key === "constraint") {
    return pipe(item.constraint_message) || words.say("constraint_default");
  }
  if (key === "option") return words.say("not_an_option");
  if (key === "out_of_range" && item.range) {
    return words.say(key, { min: item.range.start, max: item.range.end });
  }
  if (key === "too_long") return words.say(key, { max: LONGEST_TEXT });
  return words.say(words.has(key) ? key : "constraint_default");
}
