// The answers of a preview: stored in this tab only, until the next preview.

const PREVIEW_KEY = "groundswell preview";

// {tag, pages: {number: {revision, answers}}}
export function storedPreview() {
  try {
    return JSON.parse(sessionStorage.getItem(PREVIEW_KEY)) ?? startPreview();
  } catch {
    return startPreview();
  }
}

export function startPreview() {
  // A new tag, so that answers of an earlier preview are not restored.
  const random = crypto.getRandomValues(new Uint32Array(4));
  const preview = { tag: `preview-${random.join("-")}`, pages: {} };
  sessionStorage.setItem(PREVIEW_KEY, JSON.stringify(preview));
  return preview;
}

export function storePreviewPage(page, { revision, answers }) {
  const preview = storedPreview();
  preview.pages[page] = { revision, answers };
  sessionStorage.setItem(PREVIEW_KEY, JSON.stringify(preview));
}

export function previewAnswers({ pages }) {
  return Object.assign({}, ...Object.values(pages).map(({ answers }) => answers));
}
