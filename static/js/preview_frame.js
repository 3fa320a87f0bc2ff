// The page around a previewed survey: starts a preview without answers, and
// switches the frame between the width of a phone and of the window.

import { startPreview } from "./preview_storage.js";

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
  startPreview();
  const inside = frame.querySelector("iframe");
  inside.src = inside.dataset.src;
}

for (const frame of document.querySelectorAll(".preview-frame")) showPreview(frame);
