// Simulates a person, a network and a server that misbehave at random, with the
// real queue. The seed decides everything, including the order of events.

import { TABS } from "/js/waiting_saves.js";
import { Queue } from "/js/queue.js";
import { classify } from "/js/send_save.js";
import { statusOf } from "/js/save_status.js";

const PAGES = 4;
const STEPS = 60;
const LONGEST = 3 * 60 * 60 * 1000;

export function randomFrom(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export class FakeClock {
  constructor() {
    this.time = 0;
    this.timers = [];
    this.count = 0;
  }

  now() {
    return this.time;
  }

  after(milliseconds, run) {
    this.count += 1;
    const timer = { at: this.time + milliseconds, order: this.count, run };
    this.timers.push(timer);
    return timer;
  }

  cancel(timer) {
    this.timers = this.timers.filter((other) => other !== timer);
  }

  // Runs what is due until `until`, and lets promises settle after each.
  async advance(until) {
    for (;;) {
      for (let turn = 0; turn < 8; turn += 1) await null;
      const due = this.timers.filter(({ at }) => at <= until);
      if (!due.length) break;
      due.sort((one, two) => one.at - two.at || one.order - two.order);
      this.cancel(due[0]);
      this.time = due[0].at;
      due[0].run();
    }
    this.time = until;
  }
}

// Like the SQL statement of a save: a row is replaced only by a higher revision,
// and only by a tab that was loaded with it or saved it.
class Server {
  constructor() {
    this.rows = new Map();
    this.bodies = new Map();
    this.violations = [];
    this.accepted = 0;
  }

  receive(page, body) {
    const { revision, seen, answers } = JSON.parse(body);
    const content = JSON.stringify(answers);
    const name = `${page} ${revision}`;
    if ((this.bodies.get(name) ?? body) !== body) this.violations.push(`two bodies: ${name}`);
    this.bodies.set(name, body);
    const row = this.rows.get(page);
    if (row && row.revision > revision) return [409, { error: "superseded" }];
    if (row?.revision === revision && row.content !== content) return [409, { error: "superseded" }];
    const isOwn = row && row.revision % TABS === revision % TABS;
    if (row && !isOwn && row.revision !== seen) return [409, { error: "superseded" }];
    this.rows.set(page, { revision, content });
    this.accepted += 1;
    return [200, { saved: 1, revision, at: "2027-03-01T10:42:00Z" }];
  }
}

export class Model {
  constructor(seed, sabotage = "") {
    this.random = randomFrom(seed);
    this.sabotage = sabotage;
    this.clock = new FakeClock();
    this.server = new Server();
    this.violations = this.server.violations;
    this.kept = new Map();
    this.last = new Map();
    this.isCalm = false;
    this.lives = 0;
    this.counts = { sent: 0, lost: 0, foreign: 0, reloads: 0, saved: 0, leaves: 0 };
    this.load();
  }

  load() {
    this.lives += 1;
    const life = this.lives;
    const known = [...this.server.rows].map(([page, { content }]) => [page, content]);
    const pages = Array.from({ length: PAGES }, (_, index) => index + 1);
    const seen = pages.map((page) => this.server.rows.get(page)?.revision ?? 0);
    this.queue = new Queue({
      send: (save) => this.send(save, life),
      store: this.store(life),
      clock: this.clock,
      random: this.random,
      tab: life,
      base: Math.max(...seen, Math.floor(this.clock.time * 1000)) + 1,
      seen,
      shown: seen.map((revision) => [revision]),
      known,
      changed: () => life === this.lives && this.check(),
    });
    this.isAlone = true;
    const kept = [...this.kept];
    if (this.sabotage === "forgets kept saves") return;
    for (const [page, text] of kept) {
      const record = JSON.parse(text);
      const equal = record.save?.content === this.server.rows.get(page)?.content;
      if (this.sabotage === "trusts equal answers" && equal) this.kept.delete(page);
      else this.queue.restore(page, record);
    }
  }

  // A closed page writes, sends and receives nothing more.
  store(life) {
    const living = (run) => async (...given) => life === this.lives && run(...given);
    return {
      durable: true,
      write: living((page, record) => this.kept.set(page, JSON.stringify(record))),
      remove: living((page) => this.kept.delete(page)),
    };
  }

  // A request may be lost before or after the server, arrive late, or get a
  // foreign reply. Requests of a closed tab still arrive.
  async send(save, life) {
    if (life !== this.lives) return new Promise(() => {});
    const outcome = await this.travel(save);
    return life === this.lives ? outcome : new Promise(() => {});
  }

  async travel({ page, revision, body }) {
    this.counts.sent += 1;
    if (this.isAlone && this.queue.inFlight.size > 1) this.violations.push("two in flight");
    const fate = this.isCalm ? "well" : this.pick(["well", "well", "lost", "unheard", "busy", "foreign", "late"]);
    await this.wait(this.isCalm ? 50 : this.random() * 2000);
    if (fate === "lost") return this.lose();
    if (fate === "busy") return this.reply(503, { error: "again" }, revision, "2");
    if (fate === "foreign") return this.answerAsPortal(revision);
    if (fate === "late") {
      this.wait(this.random() * 90000).then(() => this.server.receive(page, body));
      return this.lose();
    }
    const [status, content] = this.server.receive(page, body);
    await this.wait(this.random() * 2000);
    if (fate === "unheard") return this.lose();
    return this.reply(status, content, revision);
  }

  wait(milliseconds) {
    return new Promise((resolve) => this.clock.after(milliseconds, resolve));
  }

  lose() {
    this.counts.lost += 1;
    return { kind: "retry", after: null };
  }

  answerAsPortal(revision) {
    this.counts.foreign += 1;
    if (this.sabotage === "believes any 200") return { kind: "saved", revision, at: "" };
    const text = this.pick(["<h1>Welcome to wifi</h1>", `{"saved":1,"revision":${revision - 1}}`, "{}", "null"]);
    return this.read(200, text, revision);
  }

  reply(status, content, revision, after) {
    return this.read(status, JSON.stringify({ ...content, from: "groundswell" }), revision, after);
  }

  read(status, text, revision, after = null) {
    const header = (name) => (name === "Retry-After" ? after : null);
    return classify({ status, text, revision, header });
  }

  pick(list) {
    return list[Math.floor(this.random() * list.length)];
  }

  // *Saved* on the screen means that the server has the last answers.
  check() {
    const shown = statusOf(this.queue, true);
    if (shown?.state !== "saved") return;
    this.counts.saved += 1;
    for (const [page, content] of this.last) {
      if (this.server.rows.get(page)?.content !== content) this.violations.push(`false Saved: page ${page}`);
    }
  }

  edit() {
    const page = 1 + Math.floor(this.random() * PAGES);
    const content = JSON.stringify({ more: null, [`q${page}`]: String(Math.floor(this.random() * 5)) });
    if (this.random() < 0.2) this.queue.hold(page, content);
    this.last.set(page, content);
    this.queue.put(page, content);
  }

  act() {
    const dice = this.random();
    if (dice < 0.7) {
      this.edit();
    } else if (dice < 0.8) {
      this.queue.retrySoon();
    } else if (dice < 0.9) {
      this.counts.leaves += 1;
      this.isAlone = false;
      this.queue.sendAll();
    } else {
      this.counts.reloads += 1;
      this.load();
    }
  }

  async run() {
    for (let step = 0; step < STEPS; step += 1) {
      this.act();
      await this.clock.advance(this.clock.time + this.random() * 4000);
      // Only this tab writes, so no other save can have been faster.
      if (this.queue.halted) this.violations.push(`halted: ${this.queue.halted.error}`);
      this.queue.halted = null;
    }
    this.isCalm = true;
    await this.clock.advance(this.clock.time + LONGEST);
    this.finish();
    return { violations: [...new Set(this.violations)], counts: this.counts };
  }

  finish() {
    if (this.queue.pending()) this.violations.push("still waiting");
    if (this.kept.size) this.violations.push("still kept");
    for (const [page, content] of this.last) {
      const row = this.server.rows.get(page);
      if (row?.content !== content) this.violations.push(`lost: page ${page}`);
    }
  }
}

export async function runModel(seed, sabotage) {
  return new Model(seed, sabotage).run();
}

// For tests that control the network: each send waits until `settle` is called
// with an outcome.
export function scripted({ base = 100, tab = base, ...options } = {}) {
  const { seen = [9, 9, 9, 9], known = [], random = () => 0.5 } = options;
  const clock = new FakeClock();
  const kept = new Map();
  const sent = [];
  const store = {
    durable: true,
    write: async (page, record) => kept.set(page, record),
    remove: async (page) => kept.delete(page),
  };
  const send = (save) => new Promise((answer) => sent.push({ ...save, answer }));
  const shown = seen.map((revision) => [revision]);
  const queue = new Queue({
    ...{ send, store, clock, random, tab, base, seen, shown, known, changed: () => {} },
  });
  const settle = () => clock.advance(clock.time);
  return { queue, clock, kept, sent, settle, status: () => statusOf(queue, true) };
}
