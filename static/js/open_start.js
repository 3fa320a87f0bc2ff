// The page for typing an open code, which may come from the link on a poster.

import { groupWhileTyping, selectImpossible, takeCodeFromAddress } from "./access_codes.js";

function showCode(field) {
  const code = takeCodeFromAddress();
  if (!code) return;
  field.value = code;
  field.form.submit();
}

function startOpenPage() {
  const field = document.getElementById("code");
  if (!field) return;
  groupWhileTyping(field);
  selectImpossible(field);
  showCode(field);
  addEventListener("hashchange", () => showCode(field));
}

startOpenPage();
