// The login page: a code from a card's link, or typed.

import { groupCode, groupWhileTyping } from "./codes.js";
import { wipeOld } from "./store.js";

// Links on cards carry the code in the fragment, which no server logs; it is
// erased so that it is not in the history either.
function takeCodeFromAddress(field) {
  const code = decodeFragment(location.hash);
  if (!location.hash) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (groupCode(code)) field.value = groupCode(code);
}

function decodeFragment(fragment) {
  try {
    return decodeURIComponent(fragment.slice(1));
  } catch {
    return "";
  }
}

function startLogin() {
  const field = document.getElementById("code");
  groupWhileTyping(field);
  takeCodeFromAddress(field);
  addEventListener("hashchange", () => takeCodeFromAddress(field));
  // The code of the child before must not come back with the back button.
  addEventListener("pageshow", (event) => {
    if (event.persisted) field.value = "";
  });
  wipeOld();
}

startLogin();
