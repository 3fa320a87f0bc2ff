// Replaces fetch() for a previewed survey: saves are answered in the browser, and
// only pages are requested from the server. Runs before take.js.

import { previewAnswers, storePreviewPage, storedPreview } from "./preview_storage.js";

const serverFetch = window.fetch.bind(window);
const previewed = readPreviewed();
// “Saved” would contradict “nothing is saved”.
document.getElementById("status")?.setAttribute("hidden", "");

function readPreviewed() {
  const element = document.getElementById("take");
  const data = JSON.parse(element.textContent);
  element.textContent = JSON.stringify(withPreviewAnswers(data));
  return data;
}

// The data of a page whose earlier answers are those of this preview.
function withPreviewAnswers(data) {
  const preview = storedPreview();
  const revisions = Object.values(preview.pages).map(({ revision }) => revision);
  return {
    ...data,
    tag: preview.tag,
    answers: previewAnswers(preview),
    seen: data.seen.map((_, index) => preview.pages[index + 1]?.revision ?? 0),
    revision: Math.max(data.revision, ...revisions.map((revision) => revision + 1)),
  };
}

window.fetch = (url, options = {}) => {
  const method = options.method ?? "GET";
  if (method === "POST") return Promise.resolve(replyToSave(String(url), options.body));
  if (method !== "GET") return Promise.resolve(Response.json({}, { status: 405 }));
  const reply = serverFetch(url, options);
  return String(url).startsWith(previewed.urls.renew) ? reply.then(replyToRenewal) : reply;
};

function replyToSave(url, body) {
  if (url === previewed.urls.stop) return Response.json({ stopped: true });
  const [before, after] = previewed.urls.page.split("{n}");
  const page = url.slice(before.length, url.length - after.length);
  if (!url.startsWith(before) || !url.endsWith(after) || !/^\d+$/.test(page)) {
    return Response.json({}, { status: 404 });
  }
  const save = JSON.parse(body);
  storePreviewPage(page, save);
  const saved = Object.keys(save.answers).length;
  return Response.json({ saved, revision: save.revision, at: new Date().toISOString() });
}

async function replyToRenewal(response) {
  return Response.json(withPreviewAnswers(await response.json()), { status: response.status });
}
