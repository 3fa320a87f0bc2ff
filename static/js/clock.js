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

// An ISO time with offset, some milliseconds later.
export function timeAfter(iso, milliseconds) {
  const zoned = /([+-])(\d{2}):(\d{2})$/.exec(iso);
  const [, sign, hours, minutes] = zoned ?? ["", "+", "00", "00"];
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  const shifted = new Date(Date.parse(iso) + milliseconds + offset * 60000);
  return `${shifted.toISOString().slice(0, 19)}${sign}${hours}:${minutes}`;
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
