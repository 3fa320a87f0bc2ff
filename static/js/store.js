// Keeps unsaved answers on the device: encrypted, for one person, until the server
// has them, or can't accept them any more.
//
// A record is {tag, tab, page, digest, until, iv, sealed}; `until` is compared with
// the server's time only, because the device's may be corrected by days. The key comes with the
// page, only after a login of this respondent, and stays in memory, so that the
// next child at the same computer can read nothing.

import { pause, serverTime, systemClock } from "./clock.js";

// The end of a survey may be put off after a tab was loaded.
const KEPT_AFTER_CLOSING = 7 * 24 * 60 * 60 * 1000;
const DATABASE = "groundswell";
const KEPT = "kept";
// Some browsers never answer an open() in a private window.
const OPEN_TIMEOUT = 3000;
const LOCK_PREFIX = "groundswell-tab-";

// Used where the browser offers no storage: keeps nothing.
export class MemoryStore {
  constructor() {
    this.durable = false;
  }

  async write() {}

  async remove() {}

  async adopt() {}

  async settled() {}

  protect() {}
}

// closesAt is when the survey closes, as an ISO time.
export async function openStore({ tag, digest, key, closesAt, changed }) {
  try {
    const database = await openDatabase();
    const secret = await importKey(key);
    const until = Date.parse(closesAt) + KEPT_AFTER_CLOSING;
    const store = new KeptStore({ database, secret, tag, digest, until, changed });
    await holdLock(store.tab);
    return store;
  } catch {
    return new MemoryStore();
  }
}

export class KeptStore {
  constructor({ database, secret, tag, digest, until, changed }) {
    Object.assign(this, { database, secret, tag, digest, until, changed });
    const random = crypto.getRandomValues(new Uint8Array(8));
    this.tab = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    // What the disk refused, by page: the disk was full, or was taken away.
    this.failed = new Map();
    this.durable = true;
    this.isProtected = false;
    // Operations run one after the other. Encryption takes time, and an old write
    // must not finish after the removal that follows it.
    this.last = Promise.resolve();
  }

  write(page, record) {
    return this.inTurn(page, true, async () => {
      const sealed = await seal(this.secret, this.boundTo(page), record);
      const { tag, tab, digest, until } = this;
      const row = { tag, tab, page, digest, until, ...sealed };
      await inKept(this.database, "readwrite", (kept) => kept.put(row));
    });
  }

  remove(page) {
    return this.inTurn(page, false, () => this.erase(this.tab, page));
  }

  erase(tab, page) {
    const key = [this.tag, tab, page];
    return inKept(this.database, "readwrite", (kept) => kept.delete(key));
  }

  // Resolves when all operations so far are on disk, or were refused.
  settled() {
    return this.last;
  }

  // A page's newer operation replaces one that failed. The others are repeated
  // as soon as the disk accepts something again.
  inTurn(page, isWrite, operation) {
    const run = async () => {
      this.failed.delete(page);
      this.failed.set(page, { isWrite, operation });
      try {
        for (const [key, waiting] of [...this.failed].reverse()) {
          await waiting.operation();
          this.failed.delete(key);
        }
      } catch {
        // It stays in `failed`, and so do the older ones.
      }
      this.setDurable(![...this.failed.values()].some((waiting) => waiting.isWrite));
    };
    this.last = this.last.then(run);
    return this.last;
  }

  // Whether the disk accepted the last operation of a page. One that is under way
  // is waited for: until then it counts as failed.
  async accepted(page) {
    for (let last = null; last !== this.last; ) {
      last = this.last;
      await last;
    }
    return !this.failed.has(page);
  }

  setDurable(durable) {
    if (this.durable === durable) return;
    this.durable = durable;
    this.changed();
  }

  // Asks the browser not to delete what waits when it needs space. Some browsers
  // ask the person in turn, so only once answers can't be sent.
  protect() {
    if (this.isProtected) return;
    this.isProtected = true;
    navigator.storage?.persist?.().catch(() => {});
  }

  // Authenticated with the ciphertext, so that records cannot be exchanged.
  boundTo(page) {
    return `${this.tag} ${this.digest} ${page}`;
  }

  // Passes on what closed tabs of this person left, now or when they close:
  // found(page, record) resolves when this tab has stored the record.
  async adopt(found) {
    const rows = await this.rowsOf(this.tag);
    const tabs = new Set(rows.map((row) => row.tab).filter((tab) => tab !== this.tab));
    const adoptions = [...tabs].map((tab) =>
      whenClosed(tab, () => this.adoptFrom(tab, found)).catch(() => {}),
    );
    await Promise.all(adoptions);
  }

  async adoptFrom(tab, found) {
    const rows = (await this.rowsOf(this.tag)).filter((row) => row.tab === tab);
    for (const row of rows) {
      if (row.digest !== this.digest) continue;
      const opened = unseal(this.secret, this.boundTo(row.page), row);
      const record = await opened.catch(() => null);
      if (record !== null) await found(row.page, record);
      // A record that this person's own key does not open is lost.
      if (await this.accepted(row.page)) await this.erase(tab, row.page);
    }
  }

  rowsOf(tag) {
    return inKept(this.database, "readonly", (kept) => kept.getAll(wholeTag(tag)));
  }
}

// Removes every person's records whose survey has ended by the server's time.
export function wipeEnded(now = serverTime()) {
  return removeWhere(({ until }) => now > until);
}

// Removes one person's records.
export function removeKept(person) {
  return removeWhere(({ tag }) => tag === person);
}

// Never rejects: without storage there is nothing to remove.
async function removeWhere(isRemoved) {
  try {
    const database = await openDatabase();
    const rows = await inKept(database, "readonly", (kept) => kept.getAll());
    await inKept(database, "readwrite", (kept) => {
      for (const { tag, tab, page } of rows.filter(isRemoved)) kept.delete([tag, tab, page]);
    });
    database.close();
  } catch {
    // See above.
  }
}

// Resolves to the numbers of unsaved pages on this device, in tabs that are open
// and of tabs that are closed: {open, closed}. Only of one person if there is a
// tag. Never rejects.
export async function countKept(tag) {
  try {
    const database = await openDatabase();
    const range = tag === undefined ? null : wholeTag(tag);
    const rows = await inKept(database, "readonly", (kept) => kept.getAll(range));
    database.close();
    const tabs = await openTabs();
    const open = rows.filter(({ tab }) => tabs.has(LOCK_PREFIX + tab)).length;
    return { open, closed: rows.length - open };
  } catch {
    return { open: 0, closed: 0 };
  }
}

function wholeTag(tag) {
  return IDBKeyRange.bound([tag], [tag, []]);
}

function openDatabase() {
  const opened = new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(KEPT, { keyPath: ["tag", "tab", "page"] });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const late = pause(systemClock, OPEN_TIMEOUT).then(() => {
    throw new Error("The storage of this browser does not answer.");
  });
  return Promise.race([opened, late]);
}

// Resolves to the result of the one request that `use` makes, once the
// transaction is committed: a request's success does not mean it is on disk.
function inKept(database, mode, use) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(KEPT, mode);
    const request = use(transaction.objectStore(KEPT));
    transaction.oncomplete = () => resolve(request?.result);
    transaction.onabort = () => reject(transaction.error);
    transaction.onerror = () => reject(transaction.error);
  });
}

// Tabs

// Held until the page is closed, so that other tabs know which tabs are open. A
// browser without locks takes every other tab for closed: then two tabs may send
// the same save, which the server answers the same way twice.
function holdLock(tab) {
  if (!navigator.locks) return Promise.resolve();
  return new Promise((granted) => {
    navigator.locks.request(LOCK_PREFIX + tab, () => {
      granted();
      return new Promise(() => {});
    });
  });
}

async function openTabs() {
  if (!navigator.locks) return new Set();
  const { held } = await navigator.locks.query();
  return new Set(held.map(({ name }) => name));
}

async function whenClosed(tab, run) {
  if (!navigator.locks) return run();
  return navigator.locks.request(LOCK_PREFIX + tab, run);
}

// Encryption

export async function importKey(text) {
  const bytes = fromBase64url(text);
  return crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
}

export async function seal(secret, boundTo, record) {
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const plain = new TextEncoder().encode(JSON.stringify(record));
  const sealed = await crypto.subtle.encrypt(cipher(iv, boundTo), secret, plain);
  return { iv, sealed };
}

export async function unseal(secret, boundTo, { iv, sealed }) {
  const plain = await crypto.subtle.decrypt(cipher(iv, boundTo), secret, sealed);
  return JSON.parse(new TextDecoder().decode(plain));
}

function cipher(iv, boundTo) {
  return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(boundTo) };
}

function fromBase64url(text) {
  const base64 = text.replace(/-/g, "+").replace(/_/g, "/");
  return Uint8Array.from(atob(base64), (symbol) => symbol.charCodeAt(0));
}
