// Texts and rules that are not yet stored, kept in this browser by user, survey and
// field.

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

  // What is filled in of a rule that is not complete.
  keepRule(key, rule, values, state = "") {
    try {
      const kept = JSON.stringify({ values, state });
      localStorage.setItem(`${this.prefix}rule:${key}:${rule}`, kept);
    } catch {
      // Storage is full or blocked: the form still has it.
    }
  }

  // Something else may have been chosen since.
  dropRule(key, rule, sent) {
    const name = `${this.prefix}rule:${key}:${rule}`;
    try {
      const { values } = JSON.parse(localStorage.getItem(name));
      const isSent = Object.keys(values).every((field) => values[field] === sent[field]);
      if (isSent) localStorage.removeItem(name);
    } catch {
      // Nothing is kept there.
    }
  }

  ruleStates() {
    const states = new Map();
    try {
      const start = `${this.prefix}rule:`;
      for (const name of Object.keys(localStorage)) {
        if (!name.startsWith(start)) continue;
        const { state } = JSON.parse(localStorage.getItem(name));
        if (state) states.set(name.slice(start.length), state);
      }
    } catch {
      // Storage is blocked, or holds something else.
    }
    return states;
  }

  rulesOf(key) {
    const rules = [];
    try {
      const start = `${this.prefix}rule:${key}:`;
      for (const name of Object.keys(localStorage)) {
        if (name.startsWith(start)) rules.push(JSON.parse(localStorage.getItem(name)).values);
      }
    } catch {
      // Storage is blocked, or holds something else.
    }
    return rules;
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
