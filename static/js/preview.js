// Stands between a previewed survey and the network: saves are answered here,
// and nothing but pages is asked of the server. Runs before take.js.

import { keepPreviewed, keptPreview, previewedAnswers } from "./preview_kept.js";

const askServer = window.fetch.bind(window);
const shell = readPreviewed();

function readPreviewed() {
  const element = document.getElementById("take");
  const data = JSON.parse(element.textContent);
  element.textContent = JSON.stringify(goneOn(data));
  return data;
}

// The shell of a person who has answered so much already.
function goneOn(data) {
  const kept = keptPreview();
  const revisions = Object.values(kept.pages).map(({ revision }) => revision);
  return {
    ...data,
    tag: kept.tag,
    answers: previewedAnswers(kept),
    seen: data.seen.map((_, index) => kept.pages[index + 1]?.revision ?? 0),
    revision: Math.max(data.revision, ...revisions.map((one) => one + 1)),
  };
}

window.fetch = (url, options = {}) => {
  const method = options.method ?? "GET";
  if (method === "POST") return Promise.resolve(savedHere(String(url), options.body));
  if (method !== "GET") return Promise.resolve(Response.json({}, { status: 405 }));
  const asked = askServer(url, options);
  return String(url).startsWith(shell.urls.renew) ? asked.then(renewedHere) : asked;
};

function savedHere(url, body) {
  const [before, after] = shell.urls.page.split("{n}");
  const page = url.slice(before.length, url.length - after.length);
  if (!url.startsWith(before) || !url.endsWith(after) || !/^\d+$/.test(page)) {
    return Response.json({}, { status: 404 });
  }
  const save = JSON.parse(body);
  keepPreviewed(page, save);
  const saved = Object.keys(save.answers).length;
  return Response.json({ saved, revision: save.revision, at: new Date().toISOString() });
}

async function renewedHere(response) {
  return Response.json(goneOn(await response.json()), { status: response.status });
}
