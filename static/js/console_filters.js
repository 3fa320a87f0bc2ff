// Filters of a list act at once. On a narrow screen they are folded under one button.

// What is typed is searched while it is typed. The change that a field reports when it is
// left would load the list once more, below the click on one of its rows.
document.addEventListener(
  "change",
  (event) => {
    if (event.target.matches(".search input[type=search]")) event.stopPropagation();
  },
  { capture: true },
);

function chosenFilters(form) {
  const chosen = [];
  for (const input of form.querySelectorAll(".search-pair :is(select, input)")) {
    if (input.type === "checkbox") {
      if (input.checked) chosen.push(input.labels[0]?.textContent);
    } else if (input.value) {
      chosen.push(input.selectedOptions?.[0].textContent ?? input.value);
    }
  }
  return chosen.map((text) => text.trim()).join(", ");
}

function nameChosen(form, button) {
  const chosen = chosenFilters(form);
  button.querySelector(".chosen").textContent = chosen && `: ${chosen}`;
}

// The style sheet folds them only where the screen is narrow.
export function foldFilters() {
  const button = document.querySelector(".fold-filters");
  const form = button?.form;
  if (!form?.querySelector(".search-pair")) return;
  button.hidden = false;
  form.classList.add("folded");
  nameChosen(form, button);
  form.addEventListener("change", () => nameChosen(form, button));
  button.addEventListener("click", () => {
    const isFolded = form.classList.toggle("folded");
    button.setAttribute("aria-expanded", String(!isFolded));
  });
  form.addEventListener("submit", () => {
    form.classList.add("folded");
    button.setAttribute("aria-expanded", "false");
    if (!matchMedia("(max-width: 40em)").matches) return;
    // The keyboard on the screen would cover what was found.
    document.activeElement.blur();
    form.scrollIntoView();
  });
}
