// The board of response rates: refreshes its figures, and says how old they are.

import { drawCharts, drawForPaper } from "./charts.js";

const EVERY = 60_000;
// Figures that are older are called so; the server's own limit is the same.
const FRESH = 120;

let lastAsked = performance.now();
let lastShown = performance.now();
let remembered = null;

function refresh() {
  const asking = document.getElementById("refresh");
  if (asking && window.htmx) {
    lastAsked = performance.now();
    window.htmx.trigger(asking, "figures");
  }
}

function clockTime() {
  return new Date().toLocaleTimeString([], { timeStyle: "medium" });
}

// A hidden tab asks nothing; shown again, it asks at once what it has missed.
function refreshWhenDue() {
  if (!document.hidden && performance.now() - lastAsked >= EVERY) {
    refresh();
  }
}

function inWords(seconds) {
  for (const [unit, size] of [["days", 86400], ["hours", 3600], ["minutes", 60]]) {
    if (seconds >= 2 * size) {
      return `${Math.floor(seconds / size)} ${unit}`;
    }
  }
  return `${seconds} ${seconds === 1 ? "second" : "seconds"}`;
}

// Between two refreshes, and when none succeeds, the figures go on ageing.
function tellAge() {
  const age = document.getElementById("age");
  if (!age || !("open" in age.dataset)) {
    return;
  }
  const since = Math.floor((performance.now() - lastShown) / 1000);
  const seconds = Number(age.dataset.seconds) + since;
  const late = seconds > FRESH;
  age.classList.toggle("caution", late);
  age.textContent = late
    ? `These figures are ${inWords(seconds)} old: counting is late.`
    : `Counted ${inWords(seconds)} ago.`;
}

function trouble(words) {
  const place = document.getElementById("refresh-trouble");
  if (place && place.textContent !== words) {
    place.textContent = words;
  }
}

// What is exchanged forgets what was open, where the keyboard was, and how far
// a wide table was scrolled.
function remember() {
  const list = document.getElementById("list");
  const focused = list?.contains(document.activeElement) ? document.activeElement : null;
  return {
    open: [...(list?.querySelectorAll("details[open][id]") ?? [])].map((one) => one.id),
    scrolled: [...(list?.querySelectorAll(".table-frame") ?? [])].map((one) => [
      one.getAttribute("aria-label") ?? one.getAttribute("aria-labelledby"),
      one.scrollLeft,
    ]),
    focused: focused && {
      id: focused.id,
      href: focused.getAttribute("href"),
      summary: focused.tagName === "SUMMARY" ? focused.parentElement.id : "",
    },
    top: window.scrollY,
  };
}

function remind(kept) {
  const list = document.getElementById("list");
  for (const id of kept.open) {
    document.getElementById(id)?.setAttribute("open", "");
  }
  for (const frame of list.querySelectorAll(".table-frame")) {
    const name = frame.getAttribute("aria-label") ?? frame.getAttribute("aria-labelledby");
    frame.scrollLeft = kept.scrolled.find(([of]) => of === name)?.[1] ?? 0;
  }
  const { id, href, summary } = kept.focused ?? {};
  const again =
    (summary && document.getElementById(summary)?.querySelector("summary")) ||
    (id && document.getElementById(id)) ||
    (href && [...list.querySelectorAll("a")].find((one) => one.getAttribute("href") === href));
  if (again) {
    again.focus({ preventScroll: true });
  }
  window.scrollTo({ top: kept.top, behavior: "instant" });
}

function isRefresh(event) {
  return event.detail.elt?.id === "refresh" || event.detail.requestConfig?.elt?.id === "refresh";
}

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isRefresh(event)) {
    return;
  }
  // Logged out in the meantime: the login page is no list.
  const answered = new URL(event.detail.xhr.responseURL || location.href);
  if (answered.pathname !== location.pathname) {
    event.detail.shouldSwap = false;
    location.reload();
    return;
  }
  remembered = remember();
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target?.id !== "list") {
    return;
  }
  lastShown = performance.now();
  drawCharts();
  if (remembered) {
    remind(remembered);
    remembered = null;
    trouble("");
    document.getElementById("refreshed").textContent = `, last at ${clockTime()}`;
  }
});

for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    if (isRefresh(event)) {
      trouble("It could not be refreshed just now, and is tried again in a minute");
    }
  });
}

document.addEventListener("visibilitychange", refreshWhenDue);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
window.addEventListener("beforeprint", () => drawForPaper(true));
window.addEventListener("afterprint", () => drawForPaper(false));
setInterval(refreshWhenDue, 1000);
setInterval(tellAge, 1000);
drawCharts();
