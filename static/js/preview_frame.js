// The page around a previewed survey: starts a preview without answers, and
// switches the frame between the width of a phone and of the window.

import { startPreview } from "./preview_storage.js";

function chooseWidth(frame, buttons, chosen) {
  frame.classList.toggle("phone", chosen.dataset.width === "phone");
  for (const button of buttons) {
    button.setAttribute("aria-pressed", String(button === chosen));
  }
}

// The next person reads the language that was chosen in the frame.
function keepLanguage(inside) {
  const field = document.querySelector(".preview-choices [name=language]");
  const link = document.getElementById("next-person");
  const take = () => {
    field.value = inside.contentDocument?.documentElement.lang || field.value;
    const address = new URL(link.href);
    address.searchParams.set("language", field.value);
    link.href = address;
  };
  field.form.addEventListener("submit", take);
  link.addEventListener("click", take);
}

function showPreview(frame) {
  const buttons = [...document.querySelectorAll("button[data-width]")];
  for (const button of buttons) {
    button.addEventListener("click", () => chooseWidth(frame, buttons, button));
  }
  startPreview();
  const inside = frame.querySelector("iframe");
  inside.src = inside.dataset.src;
  keepLanguage(inside);
}

for (const frame of document.querySelectorAll(".preview-frame")) showPreview(frame);
