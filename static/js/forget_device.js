// What a browser remembers of a person, besides answers that the server does not
// have yet: those stay until they are sent, encrypted (store.js).

// The person is stopping: until that is done, their answers are shown in no tab.
const STOPPING = "groundswell stopping";

// Called once when a person has stopped for now or has finished here, before the
// page says so. Whatever else the browser keeps for a running survey ends here too.
export async function forgetDevice() {
  unmarkStopping();
}

export function markStopping(tag) {
  try {
    localStorage.setItem(STOPPING, tag);
  } catch {
    // Without storage, only this tab knows.
  }
}

export function isMarkedStopping(tag) {
  try {
    return localStorage.getItem(STOPPING) === tag;
  } catch {
    return false;
  }
}

// Somebody typed a code: this browser is in use again.
export function unmarkStopping() {
  try {
    localStorage.removeItem(STOPPING);
  } catch {
    // There was none.
  }
}

// Calls run() when another tab of this person starts to stop.
export function whenStoppingElsewhere(tag, run) {
  addEventListener("storage", ({ key, newValue }) => {
    if (key === STOPPING && newValue === tag) run();
  });
}
