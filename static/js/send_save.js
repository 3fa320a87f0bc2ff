// Sends one page save, and classifies the reply.

export const SEND_TIMEOUT = 30000;
const LONGEST_RETRY_AFTER = 15 * 60 * 1000;
// Browsers refuse a keepalive request above 64 KB.
const LARGEST_KEEPALIVE = 60000;
const HALTING = ["superseded", "finished", "withdrawn", "declined", "closed"];
const TEMPORARY = [408, 425, 429];

// What the queue acts on:
//   {kind: "saved", revision, at}       stored on the server's disk
//   {kind: "retry", after}              unknown; `after` in ms or null
//   {kind: "session", error}            log in again, then retry
//   {kind: "halt", error}               this tab can save nothing more
//   {kind: "answers", items}            the server refused these answers
//   {kind: "refused", status}           the server refused this page
export function classify({ status, text, revision, header }) {
  const reply = readObject(text);
  if (status === 200) {
    const isOurs = reply?.revision === revision && Number.isInteger(reply.saved);
    return isOurs ? { kind: "saved", revision, at: reply.at } : { kind: "retry", after: null };
  }
  if (!isRefusal(status) || !isOwnRefusal(reply)) {
    return { kind: "retry", after: retryAfter(header) };
  }
  if (status === 401) return { kind: "session", error: reply.error };
  if (status === 403 && reply.error === "person") return { kind: "halt", error: "person" };
  if (status === 409 && HALTING.includes(reply.error)) {
    return { kind: "halt", error: reply.error };
  }
  if (status === 422 && isObject(reply.items)) {
    return { kind: "answers", items: reply.items };
  }
  return { kind: "refused", status };
}

export function isRefusal(status) {
  return status >= 400 && status < 500 && !TEMPORARY.includes(status);
}

// Proxies, school filters and captive portals use any status, some with JSON:
// without the server's mark, a refusal says nothing about the answers.
export function isOwnRefusal(reply) {
  return reply?.from === "groundswell" && typeof reply.error === "string";
}

export function readObject(text) {
  try {
    const value = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Milliseconds, or null. A date is compared with the reply's own date, because
// the clock of an old Chromebook may be days wrong.
export function retryAfter(header) {
  const value = (header("Retry-After") ?? "").trim();
  if (!value) return null;
  const wait = /^\d+$/.test(value)
    ? Number(value) * 1000
    : Date.parse(value) - Date.parse(header("Date") ?? "");
  if (Number.isNaN(wait)) return null;
  return Math.min(Math.max(wait, 0), LONGEST_RETRY_AFTER);
}

// Never rejects. `leaving` lets the request outlive the page.
export async function sendSave({ url, tag, body, revision, leaving, fetcher, clock }) {
  const abort = new AbortController();
  const timer = clock.after(SEND_TIMEOUT, () => abort.abort());
  try {
    const response = await fetcher(url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json",
        "X-Groundswell-Respondent": tag,
      },
      body,
      credentials: "same-origin",
      cache: "no-store",
      redirect: "manual",
      keepalive: leaving && new Blob([body]).size < LARGEST_KEEPALIVE,
      signal: abort.signal,
    });
    const text = await response.text();
    const header = (name) => response.headers.get(name);
    return classify({ status: response.status, text, revision, header });
  } catch {
    return { kind: "retry", after: null };
  } finally {
    clock.cancel(timer);
  }
}
