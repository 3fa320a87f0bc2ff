// What the model of several tabs knows about each answer: who typed it where, on
// what it was based, and whether it was ever kept or stored.

function valuesIn(content) {
  const values = Object.values(JSON.parse(content));
  return values.filter((value) => value !== null && value !== "");
}

export class Evidence {
  constructor(violations) {
    this.violations = violations;
    // Every typed text is unique: text -> {name, over}, over the text it replaced.
    this.edits = new Map();
    // Texts that reached the device's storage, or the server.
    this.kept = new Set();
    this.stored = new Set();
    // Texts of items whose answer on the server has become another one since that is
    // not older.
    this.changedSince = new Set();
    // "page revision" -> the tab that made the save, and what it had seen then.
    this.promotions = new Map();
    this.commits = new Set();
    // Texts that a promotion lost, by page, until a tab has sent them again.
    this.missing = new Map();
    // Of these, those that no open tab knew or that another tab saved over:
    // browsers can't send them again.
    this.excused = new Set();
    // Texts that the person replaced with those of another tab.
    this.overruled = new Set();
  }

  noteEdit(name, text, over) {
    this.edits.set(text, { name, over });
  }

  notePromotion(page, revision, tab) {
    const key = `${page} ${revision}`;
    if (this.promotions.has(key)) return;
    this.promotions.set(key, { tab, base: tab.base, known: new Set(tab.known) });
  }

  originOf(page, revision) {
    return this.promotions.get(`${page} ${revision}`);
  }

  noteKept({ save, later }) {
    for (const part of [save, later]) {
      if (part) for (const text of valuesIn(part.content)) this.kept.add(text);
    }
  }

  // Nothing stored may be replaced by a save whose tab never saw it.
  noteCommit(page, name, before, written) {
    const origin = this.originOf(page, written.revision);
    written.tab = origin.tab;
    if (before && before.tab !== origin.tab && !origin.known.has(before.version)) {
      this.violations.push(`overwritten unseen: ${name} ${before.revision}`);
    }
    const text = written.value;
    if (text) this.stored.add(text);
    this.noteChange(name, before?.value ?? null, text);
    for (const lost of this.missing.get(name) ?? []) {
      if (lost.text === text) this.excused.delete(text);
      else if (!lost.holders.includes(origin.tab)) this.excused.add(lost.text);
    }
  }

  noteChange(name, before, text) {
    for (let over = text; over; over = this.edits.get(over)?.over) this.changedSince.delete(over);
    for (const [other, edit] of this.edits) {
      if (edit.name !== name || other === text || this.isBelow(other, text)) continue;
      if (!this.isStep(before, text, other)) this.changedSince.add(other);
    }
  }

  // True if an answer, or a blank, is on the way to one that was never stored, without
  // a stored one in between, and replaces none but one before it.
  isStep(before, text, other) {
    let over = other;
    while (over && over !== text && !this.stored.has(over)) over = this.edits.get(over)?.over;
    return over === (text ?? "") && (!before || before === text || this.isBelow(before, text));
  }

  noteWhole(page, revision) {
    this.commits.add(`${page} ${revision}`);
  }

  // An answer that the person chose wins over those of others.
  noteChoice(isChosen, own, merged, theirs) {
    const [before, after] = [own, merged ?? "{}"].map((content) => JSON.parse(content));
    for (const [name, text] of Object.entries(after)) {
      const other = theirs[name];
      if (!text || !other || text === other || before[name] !== text) continue;
      if (!isChosen(text)) continue;
      for (let over = other; over; over = this.edits.get(over)?.over) this.overruled.add(over);
      for (let over = text; over; over = this.edits.get(over)?.over) this.overruled.delete(over);
    }
  }

  noteRollback(name, row, before, tabs) {
    const text = row.value;
    if (!text || before?.value === text) return;
    const knows = ({ queue }) =>
      [...queue.history.keys()].some((page) =>
        [queue.knownContent(page), queue.unsaved(page)].some(
          (content) => content && valuesIn(content).includes(text),
        ),
      );
    const lost = this.missing.get(name) ?? [];
    lost.push({ text, holders: tabs.filter(knows) });
    this.missing.set(name, lost);
  }

  checkAcknowledged(page, revision) {
    if (!this.commits.has(`${page} ${revision}`)) this.violations.push("acknowledged without a row");
  }

  // *Saved* on the screen means that all shown answers were stored.
  checkStatus(tab, status) {
    if (status?.state !== "saved" || !tab.drafts) return;
    const current = tab.drafts.edited.has(tab.display.current) ? tab.display.current : null;
    tab.survey.outline.pages.forEach(({ items }, index) => {
      if (index + 1 === current) return;
      for (const name of items) {
        const text = tab.survey.answers[name];
        if (text && !this.stored.has(text)) this.violations.push(`false Saved: ${name} ${text}`);
      }
    });
  }

  // The last text of each item must not be one that a stored text replaced. Nor
  // one that a text replaced which was only kept on a device, unless the answer on
  // the server has changed since: then the server's wins.
  checkFinal(answers, tabs) {
    this.excuseUnknown(tabs);
    for (const [text, { name }] of this.edits) {
      const isKept = this.kept.has(text) && !this.isOutdated(text);
      if (!isKept && !this.stored.has(text)) continue;
      if (this.excused.has(text) || this.overruled.has(text)) continue;
      const last = answers[name] ?? "";
      if (last === text) continue;
      if (last === "" || this.isBelow(last, text)) this.violations.push(`lost: ${name} ${text} under ${last}`);
    }
  }

  // True if another answer, which the person gave or chose elsewhere, has replaced this
  // one or one that it was typed over.
  isOutdated(text) {
    for (let over = text; over; over = this.edits.get(over)?.over) {
      if (this.changedSince.has(over) || this.overruled.has(over)) return true;
    }
    return false;
  }

  // A tab that was closed before it compared sends nothing again. What the person had
  // replaced before is lost with it.
  excuseUnknown(tabs) {
    for (const lost of [...this.missing.values()].flat()) {
      if (!lost.holders.some((tab) => tabs.includes(tab))) this.excused.add(lost.text);
    }
    for (const text of [...this.excused]) {
      let over = this.edits.get(text)?.over;
      for (; over && !this.stored.has(over); over = this.edits.get(over)?.over) this.excused.add(over);
    }
  }

  isBelow(earlier, text) {
    for (let over = this.edits.get(text)?.over; over; over = this.edits.get(over)?.over) {
      if (over === earlier) return true;
    }
    return false;
  }
}
