// The clock is passed to every part, so that tests can control time.

export const systemClock = {
  now: () => Date.now(),
  after: (milliseconds, run) => setTimeout(run, milliseconds),
  cancel: (timer) => clearTimeout(timer),
};

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
