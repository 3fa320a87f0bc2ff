// What a tab knows, kept so that a reload without a network shows it again:
// encrypted with a key that only this tab has. The key ends with the tab, and the
// login page deletes what it opens, so that the next person can read nothing.

import { timeAfter } from "./clock.js";
import { SNAPSHOTS, TAB_KEY } from "./offline.js";
import { importKey, seal, unseal } from "./store.js";

// As long as a session lasts on the server.
const LONGEST_OFFLINE = 4 * 60 * 60 * 1000;
// More revisions of a page, saved since its rows were last seen, are of no use.
const MOST_SAVED = 20;
const IV_LENGTH = 12;

export class TabSnapshot {
  // queueKey opens this person's records in the store.
  constructor({ tab, queueKey }) {
    Object.assign(this, { tab, queueKey });
    this.timer = null;
    this.last = Promise.resolve();
    this.isForgotten = false;
  }

  // A moment later, when the queue has noted what the server has.
  keepSoon() {
    if (this.timer !== null) return;
    this.timer = this.tab.clock.after(0, () => {
      this.timer = null;
      this.last = this.last.then(() => this.keep());
    });
  }

  // Never rejects. If it fails, a reload shows what was kept before, or needs the
  // network; the revisions say which, so nothing is overwritten.
  async keep() {
    if (this.isForgotten || this.tab.isLeaving) return;
    try {
      const cache = await caches.open(SNAPSHOTS);
      const own = tabKey(this.tab.bootstrap.tag);
      const { iv, sealed } = await seal(await importKey(own.key), own.tag, this.contents());
      if (this.isForgotten || this.tab.isLeaving) return;
      await cache.put(addressOf(own), new Response(new Blob([iv, sealed])));
      // Another person may have used this browser before.
      await removeSnapshots(cache, (tag) => tag !== own.tag);
    } catch {
      // See above.
    }
  }

  contents() {
    const { bootstrap, language, messages, survey, queue } = this.tab;
    const { now } = this.tab.moment();
    return {
      at: Date.now(),
      bootstrap: {
        ...bootstrap,
        ...knownTo(queue),
        queueKey: this.queueKey,
        earlier: [...survey.earlier],
        language,
        messages: messages.messages,
        now,
      },
    };
  }

  // Somebody else uses this computer now.
  async forget() {
    const { tag: own } = this.tab.bootstrap;
    this.isForgotten = true;
    try {
      sessionStorage.removeItem(TAB_KEY);
      await removeSnapshots(await caches.open(SNAPSHOTS), (tag) => tag === own);
    } catch {
      // There was none.
    }
  }
}

// The answers that the tab believes the server to have, and at which revisions:
// what a new tab needs instead of a page of the server. Its revisions are another
// tab's, so rows that this one saved count as seen.
export function knownTo(queue) {
  const pages = [...queue.history.keys()];
  const revisions = pages.map((page) => {
    const history = queue.history.get(page);
    // What a closed tab knew is learned again from what that tab has left.
    const learned = history.filter((one) => one.learned).map(({ revision }) => revision);
    const known = history.filter((one) => !one.learned).map(({ revision }) => revision);
    const shown = (queue.shown[page - 1] ?? []).filter((one) => !learned.includes(one));
    const seen = new Set([...shown, ...known.slice(-MOST_SAVED)]);
    return [...seen].filter(Boolean).sort((one, two) => one - two);
  });
  const contents = pages.map((page) => JSON.parse(queue.newestHere(page).content));
  return {
    answers: Object.fromEntries(contents.flatMap((answers) => Object.entries(answers))),
    revision: queue.next,
    seen: revisions.map((page) => Math.max(0, ...page)),
    shown: revisions,
  };
}

// What this tab knew before it was reloaded, as the page of the server would have
// had it, or null. `tag` is the person in the tab's address.
export async function openSnapshot(tag) {
  try {
    const own = JSON.parse(sessionStorage.getItem(TAB_KEY));
    if (tag && tag !== own.tag) return null;
    const cache = await caches.open(SNAPSHOTS);
    const bytes = await (await cache.match(addressOf(own))).arrayBuffer();
    const kept = { iv: bytes.slice(0, IV_LENGTH), sealed: bytes.slice(IV_LENGTH) };
    const { at, bootstrap } = await unseal(await importKey(own.key), own.tag, kept);
    const passed = Math.max(0, Date.now() - at);
    if (passed > LONGEST_OFFLINE) return null;
    return { ...bootstrap, now: timeAfter(bootstrap.now, passed) };
  } catch {
    return null;
  }
}

// The key of this tab, for this person: {tag, id, key}.
function tabKey(tag) {
  const kept = JSON.parse(sessionStorage.getItem(TAB_KEY));
  if (kept?.tag === tag) return kept;
  const random = (length) => {
    const bytes = crypto.getRandomValues(new Uint8Array(length));
    return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_");
  };
  const own = { tag, id: random(12), key: random(32) };
  sessionStorage.setItem(TAB_KEY, JSON.stringify(own));
  return own;
}

function addressOf({ tag, id }) {
  return `/take/snapshots/${tag}/${id}`;
}

async function removeSnapshots(cache, isRemoved) {
  for (const request of await cache.keys()) {
    const [, tag] = /snapshots\/(.*)\//.exec(request.url);
    if (isRemoved(tag)) await cache.delete(request);
  }
}
