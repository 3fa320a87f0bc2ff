// Fetches the pages of the survey ahead, so that a class can go on while the
// network is down. Pages are the same for everyone and never change.

import { fullJitter, pause } from "./clock.js";
import { readObject } from "./send_save.js";

const FETCH_TIMEOUT = 30000;
// Leaves room for saves: a whole class starts in the same minute.
const AT_ONCE = 2;

export class Pages {
  // address({language, n}) is a page's URL; page 0 is the outline
  // keep(url, response, text) keeps a page for a reload without a network
  constructor({ address, language, fetcher, clock, random, keep }) {
    Object.assign(this, { address, language, fetcher, clock, random, keep });
    this.loading = new Map();
    this.loaded = new Map();
    this.waits = new Set();
  }

  outline() {
    return this.get(0);
  }

  // Resolves to a copy of the page's section; retries until it is loaded.
  async page(n) {
    return document.importNode(await this.get(n), true);
  }

  has(n) {
    return this.loaded.has(this.nameOf(this.language, n));
  }

  get(n, language = this.language) {
    const name = this.nameOf(language, n);
    if (!this.loading.has(name)) {
      this.loading.set(name, this.untilLoaded(language, n));
    }
    return this.loading.get(name);
  }

  nameOf(language, n) {
    return `${language}/${n}`;
  }

  async untilLoaded(language, n) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.fetchOnce(language, n, attempt > 1);
      } catch {
        await this.wait(fullJitter(attempt, this.random));
      }
    }
  }

  // The browser's cache may hold a captive portal's answer under this address,
  // so a second attempt bypasses the cache.
  async fetchOnce(language, n, again = false) {
    const abort = new AbortController();
    const timer = this.clock.after(FETCH_TIMEOUT, () => abort.abort());
    try {
      const address = this.address({ language, n });
      const response = await this.fetcher(address, {
        credentials: "same-origin",
        cache: again ? "reload" : "default",
        redirect: "error",
        signal: abort.signal,
      });
      if (response.status !== 200) throw new Error(`Page ${n}: ${response.status}`);
      const text = await response.text();
      const content = n ? readSection(text, n) : readOutline(text);
      this.loaded.set(this.nameOf(language, n), content);
      this.keep(address, response, text);
      return content;
    } finally {
      this.clock.cancel(timer);
    }
  }

  // Fetches in this order, a few at a time; stops when the language changes.
  async prefetch(numbers) {
    const { language } = this;
    const remaining = [...numbers];
    const work = async () => {
      while (remaining.length && this.language === language) {
        await this.get(remaining.shift(), language);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  // One attempt only: while the network is down, the language stays the same.
  async switchLanguage(language, n) {
    for (const number of [0, n]) {
      const name = this.nameOf(language, number);
      if (this.loaded.has(name)) continue;
      const content = await this.fetchOnce(language, number);
      this.loading.set(name, Promise.resolve(content));
    }
    this.language = language;
  }

  async wait(milliseconds) {
    let wake;
    const woken = new Promise((resolve) => (wake = resolve));
    this.waits.add(wake);
    await Promise.race([pause(this.clock, milliseconds), woken]);
    this.waits.delete(wake);
  }

  // The network seems to be back: each wait ends within a second, at random.
  retrySoon() {
    for (const wake of this.waits) this.clock.after(this.random() * 1000, wake);
  }
}

function readSection(text, n) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const section = page.querySelector("section.page");
  if (section?.dataset.page !== String(n)) throw new Error(`Not page ${n} of the survey.`);
  return section;
}

function readOutline(text) {
  const outline = readObject(text);
  if (!Array.isArray(outline?.pages) || !outline.items) throw new Error("Not an outline.");
  return outline;
}
