// Simulates one person on two devices, each with several tabs that share its
// storage, with the real queue, drafts and recovery. Networks lose, delay, double
// and reorder; tabs crash; clocks jump; a standby that lacks the last commits is
// promoted. The seed decides everything, including the order of events.

import { Drafts } from "/js/drafts.js";
import { TABS } from "/js/waiting_saves.js";
import { Queue } from "/js/queue.js";
import { Recovery } from "/js/recovery.js";
import { statusOf } from "/js/save_status.js";
import { classify } from "/js/send_save.js";
import { SurveyState, contentsByPage } from "/js/survey_state.js";
import { knownTo } from "/js/tab_snapshot.js";
import { FakeClock, randomFrom } from "/models/queue_model.js";
import { Device, Store } from "/models/tabs_device.js";
import { Evidence } from "/models/tabs_evidence.js";

const STEPS = 60;
const ROUNDS = 30;
const MOST_TABS = 3;
const PAGE_ITEMS = [["a1", "a2"], ["b1", "b2"], ["c1"]];
const HOUR = 60 * 60 * 1000;

function makeOutline() {
  const outline = { pages: [], items: {}, order: [], option_sets: {} };
  PAGE_ITEMS.forEach((items, index) => {
    outline.pages.push({ items });
    for (const name of items) {
      outline.items[name] = { kind: "text", page: index + 1 };
      outline.order.push(name);
    }
  });
  return outline;
}

const OUTLINE = makeOutline();
const PAGES = PAGE_ITEMS.map((_, index) => index + 1);

// The rule of the SQL statement of a save: see survey/taking/storage.py.
function mayReplace(row, save, sabotage, base) {
  const { seen, shown = [seen] } = save;
  if (row.revision >= save.revision && sabotage !== "ignores the order") return false;
  const isOwn = row.revision % TABS === save.revision % TABS;
  if (sabotage === "takes rows from the base for its own") {
    return row.revision <= seen || row.revision >= base;
  }
  if (sabotage === "takes older rows for seen" && row.revision < seen) return true;
  if (sabotage === "takes rows in between for seen") {
    return isOwn || (row.revision >= Math.min(...shown) && row.revision <= seen);
  }
  return isOwn || shown.includes(row.revision);
}

class Primary {
  constructor(model) {
    this.model = model;
    // By item: {version, revision, value, tab}
    this.rows = new Map();
    // Commits that the standby may lack: [name, the row before] of each item.
    this.recent = [];
    this.offset = 0;
  }

  revisionsOf(page) {
    const rows = PAGE_ITEMS[page - 1].map((name) => this.rows.get(name));
    return rows.filter(Boolean).map(({ revision }) => revision);
  }

  // What a page would be loaded with now.
  read() {
    const all = [...this.rows].map(([, { revision }]) => revision + 1);
    const clock = Math.floor(1e9 + this.model.clock.time * 1000 + this.offset);
    return {
      tag: "maya",
      answers: Object.fromEntries([...this.rows].map(([name, { value }]) => [name, value])),
      revision: Math.max(...all, clock, 1),
      seen: PAGES.map((page) => Math.max(0, ...this.revisionsOf(page))),
      shown: PAGES.map((page) => [...new Set(this.revisionsOf(page))].sort((one, two) => one - two)),
      versions: [...this.rows].map(([, { version }]) => version),
    };
  }

  receive(page, body) {
    const save = JSON.parse(body);
    const { evidence, sabotage, clock } = this.model;
    const { revision } = save;
    const answers = Object.entries(save.answers);
    const isStored = ([name, value]) => {
      const row = this.rows.get(name);
      return row?.revision === revision && row.value === value;
    };
    const reply = [200, { saved: answers.length, revision, at: "now" }];
    if (answers.every(isStored)) return reply;
    const { base } = evidence.originOf(page, revision);
    const isRefused = ([name]) => {
      const before = this.rows.get(name);
      return before && !mayReplace(before, save, sabotage, base);
    };
    const isInParts = sabotage === "stores parts of a save";
    if (!isInParts && answers.some(isRefused)) return [409, { error: "superseded" }];
    const changes = [];
    for (const [name, value] of answers.filter((answer) => !isRefused(answer))) {
      const before = this.rows.get(name);
      const row = { version: `${name} ${revision}`, revision, value };
      evidence.noteCommit(page, name, before, row);
      changes.push([name, before]);
      this.rows.set(name, row);
    }
    this.recent.push({ at: clock.time, changes });
    if (changes.length < answers.length) return [409, { error: "superseded" }];
    evidence.noteWhole(page, revision);
    return reply;
  }

  // A standby takes over that lacks the last commits, and has a clock of its own.
  promote(count) {
    this.model.counts.promotions += 1;
    for (let lost = 0; lost < count && this.recent.length; lost += 1) {
      for (const [name, before] of this.recent.pop().changes) {
        this.model.evidence.noteRollback(name, this.rows.get(name), before, this.model.tabs);
        if (before) this.rows.set(name, before);
        else this.rows.delete(name);
      }
    }
    this.recent = [];
    this.jump();
  }

  jump() {
    this.offset = (this.model.random() - 0.7) * 2 * HOUR * 1000;
  }
}

// The parts of a SurveyTab that save, restore and continue.
class Tab {
  constructor(model, device, bootstrap) {
    model.lives += 1;
    Object.assign(this, { model, device, number: model.lives, isAlive: true, isLeaving: false });
    this.closed = new Promise((resolve) => (this.noteClosed = resolve));
    this.bootstrap = { tag: "maya" };
    this.clock = model.clockOf(this);
    this.random = model.random;
    this.base = bootstrap.revision;
    this.edits = 0;
    this.known = new Set();
    this.learn(bootstrap);
    const moment = () => ({ today: "", now: "", language: "en" });
    const { answers, revision: base, seen, shown } = bootstrap;
    this.survey = new SurveyState({ outline: OUTLINE, answers, moment });
    this.store = new Store(this);
    this.queue = new Queue({
      send: (save) => model.send(save, this),
      store: this.store,
      clock: this.clock,
      random: this.random,
      tab: model.sabotage === "gives all tabs one number" ? 1 : (this.number * 7919) % TABS,
      base,
      seen,
      shown,
      known: contentsByPage(OUTLINE, answers),
      changed: () => this.isAlive && model.evidence.checkStatus(this, statusOf(this.queue, true)),
    });
    this.display = { current: 1, form: { readIncomplete() {} }, updateNavigation() {}, show: () => this.drafts.keep() };
    this.panel = { replaceText() {} };
    this.messages = { text() {} };
    this.drafts = new Drafts(this);
    this.recovery = new Recovery(this);
    this.removeProtection(model.sabotage);
    this.watchMerges();
    this.watchAdoptions();
    this.watchOutcomes();
    this.keepSnapshot();
    // The first page is shown once that is done.
    this.isReady = false;
    this.drafts.restore().then(() => (this.isReady = true));
  }

  update() {}

  // What a reload without a network starts with. Some are not kept: the disk is
  // full, or the tab was reloaded before.
  keepSnapshot() {
    if (!this.model.reloads || (this.snapshot && this.random() < 0.3)) return;
    const snapshot = { ...knownTo(this.queue), versions: [...this.known] };
    this.snapshot = JSON.stringify(snapshot);
  }

  watchOutcomes() {
    const { queue } = this;
    const handle = queue.handleOutcome;
    queue.handleOutcome = (save, outcome) => {
      handle.call(queue, save, outcome);
      if (outcome.kind === "saved") this.keepSnapshot();
    };
  }

  removeProtection(sabotage) {
    const { queue, recovery } = this;
    if (sabotage === "does not compare") recovery.sendLost = async () => true;
    if (sabotage === "adopts without asking the server") recovery.learnFromServer = async () => {};
    if (sabotage === "does not ask the person") queue.isOvertakenBy = () => false;
    if (sabotage === "forgets what was restored") queue.adoptedFrom = () => null;
    if (sabotage === "keeps the base of a dropped save") {
      queue.dropSave = (page) => queue.persist(Object.assign(queue.slots.get(page), { save: null }));
    }
  }

  // An item that is answered but not sent in this tab keeps the answer on the
  // screen, whatever a closed tab left.
  watchAdoptions() {
    const { queue } = this;
    const restore = queue.restore;
    queue.restore = (page, record) => {
      const own = queue.unsaved(page);
      // What the closed tab knew is shown here.
      const { before, beforeRevision } = record;
      if (beforeRevision > queue.newestKnown(page).revision) {
        const names = Object.keys(JSON.parse(before));
        this.learn({ versions: names.map((name) => `${name} ${beforeRevision}`) });
      }
      const stored = restore.call(queue, page, record);
      const theirs = JSON.parse((record.later ?? record.save).content);
      const isChosen = (text) => this.isTypedHere(text);
      if (own) this.model.evidence.noteChoice(isChosen, own, queue.unsaved(page), theirs);
      return stored;
    };
  }

  // *Continue here* is the person's choice of this tab's answers.
  watchMerges() {
    const { recovery, queue } = this;
    const { mergeServerAnswers: merge } = recovery;
    recovery.mergeServerAnswers = (reply) => {
      const isChosen = queue.halted !== null;
      const lost = PAGES.filter((page) => queue.newestHere(page).revision > reply.seen[page - 1]);
      const contentOf = (page) => queue.unsaved(page) ?? (lost.includes(page) ? queue.knownContent(page) : null);
      const own = new Map(PAGES.map((page) => [page, contentOf(page)]));
      this.learn(reply);
      merge.call(recovery, reply);
      if (!isChosen) return;
      for (const [page, content] of own) {
        if (!content) continue;
        const isChosen = (text) => lost.includes(page) || this.isTypedHere(text);
        this.model.evidence.noteChoice(isChosen, content, queue.unsaved(page), reply.answers);
      }
    };
  }

  isTypedHere(text) {
    return text.startsWith(`${this.number}.`);
  }

  learn({ versions }) {
    for (const version of versions) this.known.add(version);
  }

  renew() {
    return this.model.renew(this);
  }

  edit() {
    const names = PAGE_ITEMS[this.display.current - 1];
    const name = names[Math.floor(this.random() * names.length)];
    this.edits += 1;
    const text = `${this.number}.${this.edits}`;
    this.model.evidence.noteEdit(name, text, this.survey.answers[name] ?? "");
    this.survey.set(name, { text, typed: text, problem: null });
    this.drafts.noteEdit(this.display.current);
  }

  next() {
    this.drafts.save({ passed: true });
    this.display.current = (this.display.current % PAGES.length) + 1;
  }

  back() {
    this.drafts.saveIfEdited();
    this.display.current = ((this.display.current + PAGES.length - 2) % PAGES.length) + 1;
  }

  hide() {
    this.drafts.saveIfEdited();
    this.queue.sendAll();
  }

  die() {
    this.isAlive = false;
    this.noteClosed();
  }
}

export class TabsModel {
  constructor(seed, sabotage = "", { reloads = false } = {}) {
    this.random = randomFrom(seed);
    this.sabotage = sabotage;
    this.reloads = reloads;
    this.clock = new FakeClock();
    this.wall = 0;
    this.violations = [];
    this.counts = {
      edits: 0, sent: 0, lost: 0, conflicts: 0, crashes: 0, closes: 0, adopted: 0, promotions: 0, jumps: 0,
    };
    this.evidence = new Evidence(this.violations);
    this.primary = new Primary(this);
    this.devices = [new Device(true), new Device(this.random() < 2)];
    this.tabs = [];
    this.lives = 0;
    this.isCalm = false;
    this.mayPromote = this.random() < 0.5;
    this.open(this.devices[0]);
  }

  // Timers do not follow the device's time of day. Without its protection, a tab
  // would compute its waits from it.
  clockOf(tab) {
    const { clock } = this;
    const isWall = this.sabotage === "waits by the time of day";
    return {
      now: () => clock.time + (isWall ? this.wall : 0),
      after: (wait, run) => clock.after(wait, () => tab.isAlive && run()),
      cancel: (timer) => clock.cancel(timer),
    };
  }

  wait(milliseconds) {
    return new Promise((resolve) => this.clock.after(milliseconds, resolve));
  }

  pick(list) {
    return list[Math.floor(this.random() * list.length)];
  }

  // The page is loaded some time after the server has read the answers.
  async open(device) {
    const bootstrap = this.primary.read();
    await this.wait(this.isCalm ? 50 : this.random() * 1500);
    if (device.tabsWithRecords().size) this.counts.adopted += 1;
    this.tabs.push(new Tab(this, device, bootstrap));
  }

  // Without a network: the tab starts with what the last one knew.
  async reload(tab) {
    this.counts.reloads = (this.counts.reloads ?? 0) + 1;
    const bootstrap = JSON.parse(tab.snapshot);
    this.close(tab, { crash: this.random() < 0.3 });
    if (this.sabotage === "takes everything for seen after a reload") {
      const { seen, shown, revision } = this.primary.read();
      Object.assign(bootstrap, { answers: {}, seen, shown, revision });
    }
    await this.wait(this.random() * 500);
    const again = new Tab(this, tab.device, bootstrap);
    this.tabs.push(again);
    while (again.isAlive && !(await again.recovery.catchUp())) await this.wait(this.random() * 60000);
  }

  close(tab, { crash }) {
    this.counts[crash ? "crashes" : "closes"] += 1;
    if (!crash) tab.hide();
    tab.die();
    this.tabs = this.tabs.filter((other) => other !== tab);
  }

  // A request may be lost before or after the server, arrive late or twice.
  // Requests of a closed tab still arrive.
  async send({ page, revision, body }, tab) {
    this.counts.sent += 1;
    const fate = this.isCalm ? "well" : this.pick(["well", "well", "lost", "unheard", "busy", "late", "twice"]);
    await this.wait(this.isCalm ? 50 : this.random() * 2000);
    const lost = { kind: "retry", after: null };
    if (fate === "late" || fate === "twice") {
      this.wait(this.random() * 60000).then(() => this.primary.receive(page, body));
    }
    if (fate === "lost" || fate === "late") this.counts.lost += 1;
    if (fate === "lost" || fate === "late") return tab.isAlive ? lost : new Promise(() => {});
    const [status, content] = fate === "busy" ? [503, { error: "again" }] : this.primary.receive(page, body);
    const names = Object.keys(JSON.parse(body).answers);
    await this.wait(this.isCalm ? 50 : this.random() * 2000);
    if (!tab.isAlive) return new Promise(() => {});
    if (fate === "unheard") return lost;
    if (status === 409) this.counts.conflicts += 1;
    if (status === 200) tab.learn({ versions: names.map((name) => `${name} ${revision}`) });
    if (status === 200) this.evidence.checkAcknowledged(page, revision);
    const text = JSON.stringify({ ...content, from: "groundswell" });
    return classify({ status, text, revision, header: () => null });
  }

  async renew(tab) {
    await this.wait(this.isCalm ? 50 : this.random() * 1000);
    const reply = this.primary.read();
    await this.wait(this.isCalm ? 50 : this.random() * 1000);
    if (!tab.isAlive) return new Promise(() => {});
    if (!this.isCalm && this.random() < 0.2) return { status: 0, reply: {} };
    return { status: 200, reply };
  }

  act() {
    this.happen();
    const tab = this.pick(this.tabs);
    if (!tab) {
      this.open(this.pick(this.devices));
      return;
    }
    if (!tab.isReady) return;
    if (tab.queue.halted && this.random() < 0.4) tab.recovery.continueHere();
    const dice = this.random();
    if (dice < 0.5) {
      this.counts.edits += 1;
      tab.edit();
    } else if (dice < 0.66) tab.next();
    else if (dice < 0.74) tab.back();
    else if (dice < 0.79) tab.hide();
    else if (dice < 0.83) tab.queue.retrySoon();
    else if (dice < 0.86) tab.recovery.sendLost();
    else if (dice < 0.9) this.close(tab, { crash: false });
    else if (dice < 0.93) this.close(tab, { crash: true });
    else if (dice < 0.96 && this.reloads) this.reload(tab);
    else if (this.tabs.length < MOST_TABS) this.open(this.pick(this.devices));
  }

  happen() {
    const dice = this.random();
    if (dice < 0.03) this.primary.jump();
    else if (dice < 0.06) this.wall += (this.random() - 0.5) * 96 * HOUR;
    else if (dice < 0.08 && this.mayPromote) this.primary.promote(1 + Math.floor(this.random() * 3));
    if (dice < 0.06) this.counts.jumps += 1;
    // The standby is at most a few seconds behind.
    this.primary.recent = this.primary.recent.filter(({ at }) => this.clock.time - at < 5000);
  }

  async run() {
    for (let step = 0; step < STEPS; step += 1) {
      this.act();
      await this.clock.advance(this.clock.time + this.random() * 4000);
    }
    await this.settle();
    return { violations: [...new Set(this.violations)], counts: this.counts };
  }

  // Late requests arrive; then the network is good, and the person answers every
  // notice and goes on to the review in every tab.
  async settle() {
    this.isCalm = true;
    await this.clock.advance(this.clock.time + 2 * 60 * 1000);
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const device of this.devices) {
        // What a closed tab left needs a new tab; the review opens one.
        const isLeft = [...device.tabsWithRecords()].some((tab) => !tab.isAlive);
        if (isLeft) await this.finishes(this.open(device));
      }
      await this.clock.advance(this.clock.time + 10000);
      for (const tab of this.tabs) {
        if (tab.queue.halted) await this.finishes(tab.recovery.continueHere());
        tab.drafts.saveIfEdited();
        tab.queue.sendDrafts();
        await this.clock.advance(this.clock.time + 2 * 60 * 1000);
        if (!tab.queue.halted) await this.finishes(tab.recovery.sendLost());
      }
      const isDone = this.tabs.every(({ queue }) => !queue.pending() && !queue.halted);
      if (isDone && this.devices.every(({ records }) => !records.size)) break;
    }
    this.check();
  }

  async finishes(promise) {
    let isDone = false;
    promise.then(() => (isDone = true));
    while (!isDone) await this.clock.advance(this.clock.time + 1000);
  }

  check() {
    for (const { queue } of this.tabs) {
      if (queue.pending()) this.violations.push("still waiting");
    }
    if (this.devices.some(({ records }) => records.size)) this.violations.push("still kept");
    this.evidence.checkFinal(this.primary.read().answers, this.tabs);
  }
}

export async function runTabs(seed, sabotage, options) {
  return new TabsModel(seed, sabotage, options).run();
}
