// What a running tab asks the server for besides saving pages: a new login,
// and the answers that other tabs and devices saved.

import { unmarkStopping } from "./forget_device.js";
import { isOwnRefusal, isRefusal, readObject, SEND_TIMEOUT } from "./send_save.js";

// Resolves to {status, reply}; status 0 if this server did not answer.
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
    const { status } = response;
    const reply = readObject(await response.text());
    const isOwn = reply !== null && (!isRefusal(status) || isOwnRefusal(reply));
    return isOwn ? { status, reply } : { status: 0, reply: {} };
  } catch {
    return { status: 0, reply: {} };
  } finally {
    clock.cancel(timer);
  }
}

// Fetches a new CSRF token, because a login in another tab replaced the page's.
export async function logInAgain({ url, code, language, fetcher, clock }) {
  const { reply } = await askServer({ url, fetcher, clock });
  if (typeof reply.csrf !== "string") return { status: 0, reply: {} };
  const body = new URLSearchParams({ code, language });
  const options = { method: "POST", body, headers: { "X-CSRFToken": reply.csrf } };
  const answer = await askServer({ url, options, fetcher, clock });
  if (answer.status === 200) unmarkStopping();
  return answer;
}

// What to say of a code that was refused: {message, at}. `at` is the index of a
// character that no code has.
export function codeRefusal({ status, reply }, messages) {
  if (status === 503 || status === 429) return { message: messages.text("overloaded") };
  if (typeof reply.message !== "string") return { message: messages.text("load_failed") };
  return { message: reply.message, at: reply.character };
}

export function renewBootstrap({ url, tag, language, fetcher, clock }) {
  const address = `${url}?renew&language=${encodeURIComponent(language)}`;
  const options = { headers: { "X-Groundswell-Respondent": tag } };
  return askServer({ url: address, options, fetcher, clock });
}
