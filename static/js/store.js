// Keeps unsaved answers on the device: encrypted, for one person, for one day.
//
// A record is {tag, tab, page, digest, time, iv, sealed}. The key comes with the
// page, only after a login of this respondent, and stays in memory, so that the
// next child at the same computer can read nothing.

import { systemClock, pause } from "./clock.js";

export const LONGEST_KEPT = 24 * 60 * 60 * 1000;
const DATABASE = "groundswell";
const KEPT = "kept";
// Some browsers never answer an open() in a private window.
const OPEN_TIMEOUT = 3000;
const LOCK_PREFIX = "groundswell-tab-";

// Used where the browser offers no storage: keeps nothing.
export class MemoryStore {
  durable = false;

  async write() {}

  async remove() {}

  async adopt() {}

  async settled() {}
}

export async function openStore({ tag, digest, key, changed, clock = systemClock }) {
  try {
    const database = await openDatabase();
    const secret = await importKey(key);
    const store = new KeptStore({ database, secret, tag, digest, changed, clock });
    await holdLock(store.tab);
    return store;
  } catch {
    return new MemoryStore();
  }
}

export class KeptStore {
  constructor({ database, secret, tag, digest, changed, clock }) {
    Object.assign(this, { database, secret, tag, digest, changed, clock });
    const random = crypto.getRandomValues(new Uint8Array(8));
    this.tab = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    this.durable = true;
    // Operations run one after the other. Encryption takes time, and an old write
    // must not finish after the removal that follows it.
    this.last = Promise.resolve();
  }

  write(page, record) {
    return this.inTurn(async () => {
      const sealed = await seal(this.secret, this.boundTo(page), record);
      const { tag, tab, digest } = this;
      const row = { tag, tab, page, digest, time: this.clock.now(), ...sealed };
      await inKept(this.database, "readwrite", (kept) => kept.put(row));
    });
  }

  remove(page) {
    return this.inTurn(() => this.erase(this.tab, page));
  }

  erase(tab, page) {
    const key = [this.tag, tab, page];
    return inKept(this.database, "readwrite", (kept) => kept.delete(key));
  }

  // Resolves when all operations so far are on disk.
  settled() {
    return this.last;
  }

  inTurn(operation) {
    this.last = this.last.then(operation).then(
      () => this.setDurable(true),
      () => this.setDurable(false),
    );
    return this.last;
  }

  // Tells the tab when the disk is full or the storage was taken away.
  setDurable(durable) {
    if (this.durable === durable) return;
    this.durable = durable;
    this.changed();
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
    rows.sort((one, two) => one.time - two.time);
    for (const row of rows) {
      if (row.digest !== this.digest || isTooOld(row, this.clock.now())) continue;
      const opened = unseal(this.secret, this.boundTo(row.page), row);
      const record = await opened.catch(() => null);
      if (record !== null) await found(row.page, record);
      // A record that this person's own key does not open is lost.
      if (this.durable) await this.erase(tab, row.page);
    }
  }

  rowsOf(tag) {
    return inKept(this.database, "readonly", (kept) => kept.getAll(wholeTag(tag)));
  }
}

// Removes every person's records that are older than a day. Never rejects.
export async function wipeOld(clock = systemClock) {
  try {
    const database = await openDatabase();
    const rows = await inKept(database, "readonly", (kept) => kept.getAll());
    const old = rows.filter((row) => isTooOld(row, clock.now()));
    await inKept(database, "readwrite", (kept) => {
      for (const { tag, tab, page } of old) kept.delete([tag, tab, page]);
    });
    database.close();
  } catch {
    // Without storage there is nothing to wipe.
  }
}

// Resolves to the number of this person's unsaved pages on this device.
// Never rejects.
export async function countKept(tag) {
  try {
    const database = await openDatabase();
    const count = await inKept(database, "readonly", (kept) => kept.count(wholeTag(tag)));
    database.close();
    return count;
  } catch {
    return 0;
  }
}

// Also true for a record from the future: the device's clock was corrected.
function isTooOld(row, now) {
  return Math.abs(now - row.time) > LONGEST_KEPT;
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

async function whenClosed(tab, run) {
  if (!navigator.locks) return run();
  return navigator.locks.request(LOCK_PREFIX + tab, run);
}

// Encryption

async function importKey(text) {
  const bytes = fromBase64url(text);
  return crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
}

async function seal(secret, boundTo, record) {
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const plain = new TextEncoder().encode(JSON.stringify(record));
  const sealed = await crypto.subtle.encrypt(cipher(iv, boundTo), secret, plain);
  return { iv, sealed };
}

async function unseal(secret, boundTo, { iv, sealed }) {
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
