// Charts as PNG, drawn by the browser from their SVG file beside the button.

// Slides and documents show it sharply on dense screens and on paper.
const SCALE = 2;

async function drawn(address) {
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = SCALE * picture.naturalWidth;
  canvas.height = SCALE * picture.naturalHeight;
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-png]");
  if (!button || button.disabled) {
    return;
  }
  button.disabled = true;
  try {
    const { href } = button.parentElement.querySelector("a[download]");
    save(await drawn(href), `${button.dataset.png}.png`);
  } finally {
    button.disabled = false;
  }
});
