// What a running tab asks the server besides saving: to log in again, and to
// go on from what other tabs and devices saved.

import { readObject, SEND_TIMEOUT } from "./sending.js";

// Resolves to {status, reply}; status 0 when nothing of ours answered.
export async function askServer({ url, options, fetcher, clock }) {
  const abort = new AbortController();
  const timer = clock.after(SEND_TIMEOUT, () => abort.abort());
  try {
    const response = await fetcher(url, {
      credentials: "same-origin",
      cache: "no-store",
      redirect: "manual",
      signal: abort.signal,
      ...options,
      headers: { Accept: "application/json", ...options?.headers },
    });
    const reply = readObject(await response.text());
    return reply ? { status: response.status, reply } : { status: 0, reply: {} };
  } catch {
    return { status: 0, reply: {} };
  } finally {
    clock.cancel(timer);
  }
}

// The token is fetched anew: a login in another tab replaced the page's own.
export async function logInAgain({ url, code, language, fetcher, clock }) {
  const { reply } = await askServer({ url, fetcher, clock });
  if (typeof reply.csrf !== "string") return { status: 0, reply: {} };
  const body = new URLSearchParams({ code, language });
  const options = { method: "POST", body, headers: { "X-CSRFToken": reply.csrf } };
  return askServer({ url, options, fetcher, clock });
}

export function renewShell({ url, language, fetcher, clock }) {
  const asked = `${url}?renew&language=${encodeURIComponent(language)}`;
  return askServer({ url: asked, fetcher, clock });
}
