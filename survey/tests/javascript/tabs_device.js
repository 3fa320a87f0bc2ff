// The devices of the model of several tabs: what they keep, and for which tab.

// The storage of one device, and the locks of its tabs.
export class Device {
  constructor(hasLocks) {
    this.hasLocks = hasLocks;
    this.records = new Map();
    this.turns = new Map();
  }

  tabsWithRecords() {
    return new Set([...this.records.values()].map(({ tab }) => tab));
  }

  // Runs once the tab is closed and nobody else holds its lock; a tab that is closed
  // holds none.
  whenClosed(tab, holder, run) {
    if (!this.hasLocks) return run();
    const turn = (this.turns.get(tab) ?? tab.closed).then(() => Promise.race([run(), holder.closed]));
    this.turns.set(tab, turn);
    return turn;
  }
}

// Like KeptStore, without encryption. A closed tab writes nothing more.
export class Store {
  durable = true;

  constructor(tab) {
    this.tab = tab;
    this.last = Promise.resolve();
  }

  write(page, record) {
    const { tab } = this;
    if (record.save) tab.model.evidence.notePromotion(page, record.save.revision, tab);
    const text = JSON.stringify(record);
    return this.inTurn(() => {
      tab.device.records.set(`${tab.number}/${page}`, { tab, page, text });
      tab.model.evidence.noteKept(record);
    });
  }

  remove(page) {
    return this.inTurn(() => this.tab.device.records.delete(`${this.tab.number}/${page}`));
  }

  inTurn(operation) {
    const { tab } = this;
    const run = async () => {
      if (!tab.isAlive) return;
      await tab.model.wait(tab.model.random() * 30);
      if (tab.isAlive) operation();
    };
    this.last = this.last.then(run);
    return this.last;
  }

  async adopt(found) {
    const { device } = this.tab;
    const others = [...device.tabsWithRecords()].filter((other) => other !== this.tab);
    await Promise.all(others.map((other) => device.whenClosed(other, this.tab, () => this.adoptFrom(other, found))));
  }

  async adoptFrom(other, found) {
    const { records } = this.tab.device;
    for (const [key, record] of [...records].filter(([, { tab }]) => tab === other)) {
      if (!this.tab.isAlive) return;
      await found(record.page, this.forget(JSON.parse(record.text)));
      if (this.tab.isAlive) records.delete(key);
    }
  }

  forget(record) {
    const { sabotage } = this.tab.model;
    if (sabotage === "forgets what a tab took over") record.adopted = null;
    if (sabotage === "forgets what answers replaced") {
      for (const part of [record.save, record.later]) if (part) part.replaced = [];
    }
    return record;
  }
}
