// What a browser remembers of a person, besides answers that the server does not
// have yet: those stay until they are sent, encrypted (store.js).

import { forgetOffline } from "./offline.js";

// The person is stopping: until that is done, their answers are shown in no tab.
const STOPPING = "groundswell stopping";
// The last input of a person: {tag, by, at}, where `by` is a tab.
export const ACTIVE = "groundswell active";

// Where the browser allows no storage.
const memory = new Map();

// Called once when a person has stopped for now or has finished here, before the
// page says so. Whatever else the browser keeps for a running survey ends here too.
export async function forgetDevice() {
  removeNote(STOPPING);
  removeNote(ACTIVE);
  await forgetOffline();
}

export function markStopping(tag) {
  note(STOPPING, tag);
}

export function isMarkedStopping(tag) {
  return noted(STOPPING) === tag;
}

// Somebody opened the login page, or entered a code: this browser is in use again.
export function unmarkStopping() {
  removeNote(STOPPING);
}

// Calls run() when another tab of this person starts to stop.
export function whenStoppingElsewhere(tag, run) {
  addEventListener("storage", ({ key, newValue }) => {
    if (key === STOPPING && newValue === tag) run();
  });
}

export function note(key, text) {
  memory.set(key, text);
  try {
    localStorage.setItem(key, text);
  } catch {
    // Then each tab knows only its own.
  }
}

export function noted(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return memory.get(key) ?? null;
  }
}

function removeNote(key) {
  memory.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // See above.
  }
}
