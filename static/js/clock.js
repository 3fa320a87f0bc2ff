// Time and chance, passed in so that tests can hold them still.

export const systemClock = {
  now: () => Date.now(),
  after: (milliseconds, run) => setTimeout(run, milliseconds),
  cancel: (timer) => clearTimeout(timer),
};

export const FIRST_WAIT = 1000;
export const LONGEST_WAIT = 60000;

// Full jitter: a school that lost its network together must not come back
// together.
export function fullJitter(attempt, random) {
  return random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1));
}

export function pause(clock, milliseconds) {
  return new Promise((resolve) => clock.after(milliseconds, resolve));
}
