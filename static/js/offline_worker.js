// The service worker of a survey: while the server can't be reached, a reload
// shows the survey again. It reads what the survey's tab has put into the caches
// (offline.js, tab_snapshot.js), and sees no answers.
//
// survey/taking/offline.py writes `OFFLINE` before this text: {release, page,
// headers, files}, the page without anything of a person, and the addresses of its
// files. It is null where surveys can't be reloaded offline: then this removes
// itself, and so ends every worker that browsers have.

const RELEASES = "groundswell-release-";
const CONTENT_CACHE = "groundswell-content";
const SNAPSHOT_CACHE = "groundswell-tabs";
// Milliseconds until a network that does not answer counts as none.
const LONGEST_NAVIGATION = 5000;

addEventListener("install", (event) => event.waitUntil(install()));
addEventListener("activate", (event) => event.waitUntil(activate()));
if (OFFLINE) addEventListener("fetch", handleFetch);

function releaseCache() {
  return caches.open(RELEASES + OFFLINE.release);
}

async function install() {
  if (OFFLINE) {
    const cache = await releaseCache();
    await Promise.all(OFFLINE.files.map((address) => keepFile(cache, address)));
  }
  await self.skipWaiting();
}

// A captive portal answers with a page of its own. An installation that fails is
// repeated by the browser, and leaves the worker of the release before.
async function keepFile(cache, address) {
  const response = await fetch(address);
  const type = response.headers.get("Content-Type") ?? "";
  if (!response.ok || response.redirected || type.startsWith("text/html")) {
    throw new Error(`Not a file of the survey: ${address}`);
  }
  await cache.put(address, response);
}

async function activate() {
  const isOld = OFFLINE
    ? (name) => name.startsWith(RELEASES) && name !== RELEASES + OFFLINE.release
    : (name) => name.startsWith("groundswell-");
  const names = await caches.keys();
  await Promise.all(names.filter(isOld).map((name) => caches.delete(name)));
  if (!OFFLINE) await self.registration.unregister();
}

// Everything else goes to the server as if there were no worker: saves, logins,
// the tab's questions about its answers.
function handleFetch(event) {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate") {
    if (pathname === "/take/") event.respondWith(openSurvey(request));
    if (pathname === "/take/complete/") event.respondWith(openReview(request));
  } else if (OFFLINE.files.includes(pathname)) {
    event.respondWith(fromCache(request, RELEASES + OFFLINE.release));
  } else if (pathname.startsWith("/content/")) {
    event.respondWith(fromCache(request, CONTENT_CACHE));
  }
}

// No reply to a navigation is ever kept: it is one person's.
async function openSurvey(request) {
  // Without what a tab knew there is nothing to show.
  if (!(await caches.has(SNAPSHOT_CACHE))) return fetch(request);
  const late = new Promise((resolve) => setTimeout(resolve, LONGEST_NAVIGATION, null));
  const response = await Promise.race([fetch(request).catch(() => null), late]);
  if (response !== null && isOurs(response)) return response;
  return new Response(OFFLINE.page, { headers: OFFLINE.headers });
}

// The review needs the server: the survey waits for it.
async function openReview(request) {
  try {
    return await fetch(request);
  } catch {
    return Response.redirect(`/take/${new URL(request.url).search}`);
  }
}

// Not a captive portal's. This server's redirects lead to the login or the review.
function isOurs(response) {
  const policy = response.headers.get("Content-Security-Policy") ?? "";
  return response.type === "opaqueredirect" || policy.includes("default-src 'none'");
}

async function fromCache(request, cacheName) {
  return (await caches.match(request, { cacheName, ignoreVary: true })) ?? fetch(request);
}
