// The place in the survey and the browser's history. The address only names
// the place: the answers and the place itself live in the tab.

export function placeIn(fragment) {
  const [, page, item] = /^#page-(\d+)(?:\/(.+))?$/.exec(fragment) ?? [];
  if (!page) return null;
  return { page: Number(page), item: item ? decodeItem(item) : null };
}

function decodeItem(item) {
  try {
    return decodeURIComponent(item);
  } catch {
    return null;
  }
}

export function rememberPlace({ page, tag, language, replace }) {
  const search = withLanguage(location.search, language);
  const address = `${location.pathname}${search}#page-${page}`;
  // Without answers: the history is open to the next person at this computer.
  const state = { page, tag };
  if (replace) history.replaceState(state, "", address);
  else history.pushState(state, "", address);
}

export function withLanguage(search, language) {
  const parameters = new URLSearchParams(search);
  parameters.set("language", language);
  return `?${parameters}`;
}

// Where a shell that was just loaded begins. A bare page in the fragment is
// this person's place only if this person's tab wrote it: at a shared computer
// the history may be another child's. A link to an item comes from the review.
export function placeAtStart(tag) {
  const place = placeIn(location.hash);
  if (!place) return null;
  return place.item !== null || history.state?.tag === tag ? place : null;
}
