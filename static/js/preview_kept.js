// What a previewed survey would have saved: in this tab alone, until another
// person begins.

const KEPT = "groundswell preview";

// {tag, pages: {number: {revision, answers}}}
export function keptPreview() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? beginPreview();
  } catch {
    return beginPreview();
  }
}

export function beginPreview() {
  // A tag of its own, so that nothing another one left waiting is taken up.
  const random = crypto.getRandomValues(new Uint32Array(4));
  const kept = { tag: `preview-${random.join("-")}`, pages: {} };
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
  return kept;
}

export function keepPreviewed(page, { revision, answers }) {
  const kept = keptPreview();
  kept.pages[page] = { revision, answers };
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
}

export function previewedAnswers({ pages }) {
  return Object.assign({}, ...Object.values(pages).map(({ answers }) => answers));
}
