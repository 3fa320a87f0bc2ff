// The clock is passed to every part, so that tests can control time.

// Time since the page was opened: the device's own time of day may be corrected by
// hours at any moment.
export const systemClock = {
  now: () => performance.now(),
  after: (milliseconds, run) => setTimeout(run, milliseconds),
  cancel: (timer) => clearTimeout(timer),
};

// The server's time in milliseconds, from the page that it sent; NaN without one.
export function serverTime() {
  return Date.parse(document.documentElement.dataset.now) + performance.now();
}

export const FIRST_WAIT = 1000;
export const LONGEST_WAIT = 60000;

// Exponential backoff with full jitter: a school whose network failed must not
// come back all in the same second.
export function fullJitter(attempt, random) {
  return random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1));
}

export function pause(clock, milliseconds) {
  return new Promise((resolve) => clock.after(milliseconds, resolve));
}
