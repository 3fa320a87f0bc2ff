// Copies the address in the field beside a button.

for (const button of document.querySelectorAll("[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  const status = document.getElementById(button.getAttribute("aria-describedby"));
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      status.textContent = status.dataset.copied;
    } catch {
      // The address is selected: keys copy it.
      status.textContent = status.dataset.selected;
    }
  });
}
