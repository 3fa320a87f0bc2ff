// Response rates: refresh the figures each minute, and show how old they are.

const REFRESH_EVERY = 60_000;
// Seconds; `FRESH_FOR` on the server is the same.
const FRESH_FOR = 120;

let lastRequest = performance.now();
let lastUpdate = performance.now();
let savedState = null;

function refresh() {
  const trigger = document.getElementById("refresh");
  if (trigger && window.htmx) {
    lastRequest = performance.now();
    window.htmx.trigger(trigger, "figures");
  }
}

function clockTime() {
  return new Date().toLocaleTimeString([], { timeStyle: "medium" });
}

// A hidden tab sends no requests, and refreshes as soon as it is shown again.
function refreshWhenDue() {
  if (!document.hidden && performance.now() - lastRequest >= REFRESH_EVERY) {
    refresh();
  }
}

function duration(seconds) {
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds >= 2 * size) {
      return inUnits(Math.floor(seconds / size), unit);
    }
  }
  return inUnits(seconds, "second");
}

// "3 minutes", in the language of the page.
function inUnits(count, unit) {
  const style = { style: "unit", unit, unitDisplay: "long", useGrouping: false };
  return new Intl.NumberFormat(document.documentElement.lang || "en", style).format(count);
}

// The figures grow older between two refreshes, and while refreshing fails.
function updateAge() {
  const age = document.getElementById("age");
  if (!age || !("open" in age.dataset)) {
    return;
  }
  const since = Math.floor((performance.now() - lastUpdate) / 1000);
  const seconds = Number(age.dataset.seconds) + since;
  const late = seconds > FRESH_FOR;
  age.classList.toggle("caution", late);
  const text = late ? age.dataset.late : age.dataset.counted;
  age.textContent = text.replace("{age}", duration(seconds));
}

function showTrouble(message) {
  const place = document.getElementById("refresh-trouble");
  if (place && place.textContent !== message) {
    place.textContent = message;
  }
}

// Replacing the list closes details, moves the focus and scrolls wide tables
// back, so their state is saved before and restored after.
function saveState() {
  const list = document.getElementById("list");
  const focused = list?.contains(document.activeElement) ? document.activeElement : null;
  return {
    open: [...(list?.querySelectorAll("details[open][id]") ?? [])].map((details) => details.id),
    scrolled: [...(list?.querySelectorAll(".table-frame") ?? [])].map((frame) => [
      frame.getAttribute("aria-label") ?? frame.getAttribute("aria-labelledby"),
      frame.scrollLeft,
    ]),
    focused: focused && {
      id: focused.id,
      href: focused.getAttribute("href"),
      summary: focused.tagName === "SUMMARY" ? focused.parentElement.id : "",
    },
    top: window.scrollY,
  };
}

function restoreState(state) {
  const list = document.getElementById("list");
  for (const details of list.querySelectorAll("details[id]")) {
    details.open = state.open.includes(details.id);
  }
  for (const frame of list.querySelectorAll(".table-frame")) {
    const name = frame.getAttribute("aria-label") ?? frame.getAttribute("aria-labelledby");
    frame.scrollLeft = state.scrolled.find(([label]) => label === name)?.[1] ?? 0;
  }
  const { id, href, summary } = state.focused ?? {};
  const target =
    (summary && document.getElementById(summary)?.querySelector("summary")) ||
    (id && document.getElementById(id)) ||
    (href && [...list.querySelectorAll("a")].find((link) => link.getAttribute("href") === href));
  if (target) {
    target.focus({ preventScroll: true });
  }
  window.scrollTo({ top: state.top, behavior: "instant" });
}

function isRefresh(event) {
  return event.detail.elt?.id === "refresh" || event.detail.requestConfig?.elt?.id === "refresh";
}

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isRefresh(event)) {
    return;
  }
  // Logged out in the meantime: the response is the login page, not a list.
  const url = new URL(event.detail.xhr.responseURL || location.href);
  if (url.pathname !== location.pathname) {
    event.detail.shouldSwap = false;
    location.reload();
    return;
  }
  savedState = saveState();
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target?.id !== "list") {
    return;
  }
  lastUpdate = performance.now();
  if (savedState) {
    restoreState(savedState);
    savedState = null;
    showTrouble("");
    const refreshed = document.getElementById("refreshed");
    refreshed.textContent = refreshed.dataset.last.replace("{time}", clockTime());
  }
});

for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    if (isRefresh(event)) {
      showTrouble(document.getElementById("refresh").dataset.trouble);
    }
  });
}

document.addEventListener("visibilitychange", refreshWhenDue);
setInterval(refreshWhenDue, 1000);
setInterval(updateAge, 1000);
