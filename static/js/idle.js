// Asks whether somebody is still there, and stops if nobody answers: otherwise the
// next person at this computer would find an open survey.

import { ACTIVE, note, noted } from "./forget_device.js";

const ASK_AFTER = 10 * 60 * 1000;
const STOP_AFTER = 5 * 60 * 1000;
const CHECK_INTERVAL = 10 * 1000;
const NOTE_INTERVAL = 5 * 1000;
const KINDS_OF_INPUT = ["pointerdown", "keydown", "input", "wheel", "touchmove"];

export class Idle {
  // clock.now() cannot be corrected, and stands still while some laptops sleep;
  // wall() goes on meanwhile. A clock that is set forward counts as time away.
  constructor({ tag, clock, wall = () => Date.now(), question, text, stop }) {
    Object.assign(this, { tag, clock, wall, question, text, stop });
    // Tells this tab's note from that of another one.
    this.by = Math.random();
    this.notedAt = -Infinity;
    this.isOver = false;
    this.restart();
  }

  listen() {
    const options = { capture: true, passive: true };
    for (const kind of KINDS_OF_INPUT) addEventListener(kind, () => this.noteInput(), options);
    addEventListener("visibilitychange", () => this.check());
    this.checkLater();
  }

  checkLater() {
    this.clock.after(CHECK_INTERVAL, () => {
      this.check();
      this.checkLater();
    });
  }

  // The first input after a long sleep may be another person's.
  noteInput() {
    this.check();
    if (!this.isOver && this.question.name !== "idle") this.restart();
  }

  restart() {
    this.startedAt = { now: this.clock.now(), wall: this.wall() };
    if (this.clock.now() - this.notedAt < NOTE_INTERVAL) return;
    this.notedAt = this.clock.now();
    const { tag, by } = this;
    note(ACTIVE, JSON.stringify({ tag, by, at: this.wall() }));
  }

  check() {
    if (this.isOver) return;
    const idle = this.idleTime();
    if (idle >= ASK_AFTER + STOP_AFTER) this.end();
    else if (idle < ASK_AFTER) this.question.close("idle");
    else if (this.question.name !== "idle") this.ask();
  }

  idleTime() {
    const { clock, wall, startedAt, tag, by } = this;
    const here = Math.max(clock.now() - startedAt.now, wall() - startedAt.wall);
    const active = lastActive();
    const isOther = active?.tag === tag && active.by !== by;
    const elsewhere = isOther ? wall() - active.at : -1;
    // A time in the future was noted before the clock was corrected.
    return elsewhere >= 0 ? Math.min(here, elsewhere) : here;
  }

  ask() {
    const { text } = this;
    this.question.ask({
      name: "idle",
      title: text("still_there"),
      text: text("still_there_help", { n: STOP_AFTER / 60000 }),
      buttons: [
        { label: text("keep_going"), run: () => this.restart() },
        { label: text("stop"), run: () => this.end() },
      ],
    });
  }

  end() {
    this.question.close("idle");
    this.pause();
    this.stop();
  }

  // There is nothing to stop any more.
  pause() {
    this.isOver = true;
  }

  // The person typed the code again.
  resume() {
    this.isOver = false;
    this.restart();
  }
}

function lastActive() {
  try {
    return JSON.parse(noted(ACTIVE));
  } catch {
    return null;
  }
}
