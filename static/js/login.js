// The login page: the code is typed, or comes from the link on a login card.

import { groupWhileTyping, selectImpossible, takeCodeFromAddress } from "./access_codes.js";
import { unmarkStopping } from "./forget_device.js";
import { forgetOffline } from "./offline.js";
import { countKept, wipeEnded } from "./store.js";

function moveCodeFromAddress(field) {
  const code = takeCodeFromAddress();
  if (code) field.value = code;
}

// Answers that an earlier person could not send: only that person's code opens
// and sends them.
async function showUnsent() {
  await wipeEnded();
  const { closed } = await countKept();
  document.getElementById("unsent").hidden = closed === 0;
}

function startLogin() {
  const field = document.getElementById("code");
  groupWhileTyping(field);
  selectImpossible(field);
  moveCodeFromAddress(field);
  addEventListener("hashchange", () => moveCodeFromAddress(field));
  // The back button must not bring back the code of the child before. And opening
  // this page again ends whatever session began meanwhile.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
  unmarkStopping();
  // What the last person's tabs had for a reload without a network.
  forgetOffline();
  showUnsent();
}

startLogin();
