// The page numbers in the address and in the browser's history. The address only
// names a page, an item and, by an opaque tag, whose tab this is; the tab holds
// the answers.

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
  const search = searchFor({ tag, language });
  const address = `${location.pathname}${search}#page-${page}`;
  // No answers: the next person at this computer can open the history.
  const state = { page, tag };
  if (replace) history.replaceState(state, "", address);
  else history.pushState(state, "", address);
}

// The server refuses an address with the tag of another person than the one who
// is logged in, so that a reload never shows one child's answers in another
// child's tab.
export function searchFor({ tag, language }) {
  return `?${new URLSearchParams({ language, for: tag })}`;
}

// The place where a tab that was just loaded starts. A page in the fragment
// counts only if this person's tab wrote it, because on a shared computer it may
// come from another child's history. A link to an item comes from the review.
export function placeAtStart(tag) {
  const place = placeIn(location.hash);
  if (!place) return null;
  return place.item !== null || history.state?.tag === tag ? place : null;
}
