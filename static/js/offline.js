// Surveys that can be reloaded without a network: a service worker answers then
// (offline_worker.js), from what the survey's tab has kept. All of it is removed
// where the next person may come: on the login page, and after finishing.

const WORKER_SCOPE = "/take/";
const CACHE_PREFIX = "groundswell-";
const CONTENT = "groundswell-content";
export const SNAPSHOTS = "groundswell-tabs";
export const TAB_KEY = "groundswell tab key";

// Where the installation does not want it, `url` is empty. None of these
// functions rejects: without a service worker, a reload needs the network.
export async function serveOffline(url) {
  try {
    if (url) await navigator.serviceWorker.register(url);
    else await forgetOffline();
  } catch {
    // See above.
  }
}

// Keeps a page of the survey, which is the same for everyone, once the tab has
// seen that it is no captive portal's.
export async function keepContent(address, response, text) {
  try {
    // A page that an older renderer made is not exactly this one.
    if (/no-store/.test(response.headers.get("Cache-Control"))) return;
    const cache = await caches.open(CONTENT);
    if (!(await cache.match(address))) await cache.put(address, new Response(text));
  } catch {
    // See above.
  }
}

export async function forgetOffline() {
  try {
    sessionStorage.removeItem(TAB_KEY);
    const registration = await navigator.serviceWorker.getRegistration(WORKER_SCOPE);
    if (registration) await registration.unregister();
  } catch {
    // The caches remain to be deleted.
  }
  try {
    const names = await caches.keys();
    const own = names.filter((name) => name.startsWith(CACHE_PREFIX));
    await Promise.all(own.map((name) => caches.delete(name)));
  } catch {
    // See above.
  }
}
