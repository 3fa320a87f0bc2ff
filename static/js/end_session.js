// The end of *Stop for now*, once this tab has nothing unsent: the session ends, the
// device forgets the person, and a page says what was saved.

import { fullJitter, pause } from "./clock.js";
import { forgetDevice } from "./forget_device.js";
import { askServer } from "./server_requests.js";
import { countKept } from "./store.js";

// For what other tabs of this person still send.
const LONGEST_WAIT_FOR_TABS = 5000;
const COUNT_EVERY = 250;

// Resolves to the number of pages on this device that could not be sent.
export async function waitForOtherTabs(tag, clock) {
  const until = clock.now() + LONGEST_WAIT_FOR_TABS;
  for (;;) {
    // The first time too: they have just been told, and are storing what was typed.
    await pause(clock, COUNT_EVERY);
    const { open, closed } = await countKept(tag);
    if (!(open + closed) || clock.now() > until) return open + closed;
  }
}

// Repeats as long as isWanted(), until the server has ended the session or says
// that it is somebody else's by now.
export async function endSession({ url, tag, fetcher, clock, random, isWanted, failed }) {
  const headers = { "X-Groundswell-Respondent": tag };
  const options = { method: "POST", headers };
  for (let attempt = 1; isWanted(); attempt += 1) {
    const { status, reply } = await askServer({ url, options, fetcher, clock });
    if (status === 200 && reply.stopped === true) return;
    if (status === 403 && reply.error === "person") return;
    failed();
    await pause(clock, fullJitter(attempt, random));
  }
}

export async function showStopped({ url, language, unsent }) {
  await forgetDevice();
  const address = new URL(url, location.href);
  address.searchParams.set("language", language);
  if (unsent) address.searchParams.set("unsent", "yes");
  location.replace(address);
}
