// Texts that are not yet stored, kept in this browser by user, survey and field.

export class PendingTexts {
  constructor(user, survey) {
    this.prefix = `editor:${user}:${survey}:`;
    this.isSafe = true;
  }

  keep(address, text, seen) {
    try {
      localStorage.setItem(this.prefix + address, JSON.stringify({ text, seen }));
      this.isSafe = true;
    } catch {
      // Storage is full or blocked: leaving the page would lose the text.
      this.isSafe = false;
    }
  }

  // Another tab may have typed on.
  drop(address, text) {
    try {
      const kept = JSON.parse(localStorage.getItem(this.prefix + address));
      if (kept?.text === text) localStorage.removeItem(this.prefix + address);
    } catch {
      // Nothing is kept there.
    }
  }

  all() {
    const texts = new Map();
    try {
      for (const key of Object.keys(localStorage)) {
        if (!key.startsWith(this.prefix)) continue;
        const kept = JSON.parse(localStorage.getItem(key));
        if (typeof kept?.text === "string") texts.set(key.slice(this.prefix.length), kept);
      }
    } catch {
      // Storage is blocked, or holds something else.
    }
    return texts;
  }
}
