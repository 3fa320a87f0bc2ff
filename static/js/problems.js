// Shows the problems of a page at its items, and in a summary that links to them.

import { controlsOf, LONGEST_TEXT } from "./answers.js";

// problems: [{name, message}]
export function showProblems(section, problems, messages, goTo) {
  section.querySelector(".error-summary")?.remove();
  for (const element of section.querySelectorAll(".item.invalid")) {
    clearProblem(section, element.dataset.item);
  }
  for (const { name, message } of problems) markProblem(section, name, message);
  const summary = summaryOf(section, problems, messages, goTo);
  section.querySelector(".page-title").after(summary);
  return summary;
}

export function clearProblem(section, name) {
  leaveOutOfSummary(section, name);
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

// A summary names what is still wrong, and goes with the last of it.
function leaveOutOfSummary(section, name) {
  const summary = section.querySelector(".error-summary");
  const line = summary?.querySelector(`[data-about="${CSS.escape(name)}"]`);
  if (!line) return;
  line.remove();
  const left = summary.querySelectorAll("li").length;
  if (left) summary.querySelector("h3").textContent = summary.titleFor(left);
  else summary.remove();
}

function markProblem(section, name, message) {
  const element = itemElement(section, name);
  const error = element.querySelector(".error");
  element.classList.add("invalid");
  error.textContent = message;
  error.hidden = false;
  // A radio group is invalid as a whole, not each button. ARIA has no invalid
  // group of check boxes; their error is in the description.
  const isChoice = ({ type }) => type === "radio" || type === "checkbox";
  const isGroup = element.getAttribute("role") === "radiogroup";
  const controls = controlsOf(element).filter((control) => !isChoice(control));
  for (const part of isGroup ? [element] : controls) {
    part.setAttribute("aria-invalid", "true");
  }
}

function summaryOf(section, problems, messages, goTo) {
  const summary = document.createElement("div");
  summary.className = "error-summary";
  summary.tabIndex = -1;
  summary.setAttribute("role", "alert");
  const title = document.createElement("h3");
  summary.titleFor = (number) => messages.plural("error_summary", number);
  title.textContent = summary.titleFor(problems.length);
  const list = document.createElement("ul");
  for (const problem of problems) list.append(summaryLine(section, problem, goTo));
  summary.append(title, list);
  return summary;
}

function summaryLine(section, { name, message }, goTo) {
  const line = document.createElement("li");
  line.dataset.about = name;
  const link = document.createElement("a");
  link.href = `#page-${section.dataset.page}/${name}`;
  const element = itemElement(section, name);
  const text = element.querySelector(".label-text") ?? element.querySelector("legend, label");
  const label = (text?.textContent ?? name).trim();
  link.textContent = `${label}${/[.?!:…؟。]$/u.test(label) ? "" : ":"} ${message}`;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    goTo(name);
  });
  line.append(link);
  return line;
}

export function itemElement(section, name) {
  return section.querySelector(`[data-item="${CSS.escape(name)}"]`);
}

export function focusItem(section, name) {
  const element = itemElement(section, name);
  const controls = element ? controlsOf(element) : [];
  const control = controls.find((field) => !field.disabled && !field.closest("[hidden]"));
  if (!control) return;
  control.focus({ preventScroll: true });
  element.scrollIntoView({ block: "center" });
}

// The message for a problem, whose key comes from the server or from the rules.
// `values` are of what was typed.
export function problemMessage(key, item, messages, pipe, values = {}) {
  if (key === "required") return pipe(item.required_message) || messages.text("required");
  if (key === "constraint") {
    return pipe(item.constraint_message) || messages.text("constraint_default");
  }
  if (key === "option") return messages.text("not_an_option");
  if (key === "out_of_range" && item.range) {
    return messages.text(key, { min: item.range.start, max: item.range.end });
  }
  if (key === "too_long") return messages.text(key, { max: LONGEST_TEXT });
  return messages.text(messages.has(key) ? key : "constraint_default", values);
}
