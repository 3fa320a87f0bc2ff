// Around a previewed survey: begins with somebody who has answered nothing,
// and shows the frame as wide as a phone or as the window.

import { beginPreview } from "./preview_kept.js";

function chooseWidth(frame, buttons, chosen) {
  frame.classList.toggle("phone", chosen.dataset.width === "phone");
  for (const button of buttons) {
    button.setAttribute("aria-pressed", String(button === chosen));
  }
}

function showPreview(frame) {
  const buttons = [...document.querySelectorAll("button[data-width]")];
  for (const button of buttons) {
    button.addEventListener("click", () => chooseWidth(frame, buttons, button));
  }
  beginPreview();
  const inside = frame.querySelector("iframe");
  inside.src = inside.dataset.src;
}

for (const frame of document.querySelectorAll(".preview-frame")) showPreview(frame);
