// Lag of all groups over the last minutes: what the monitor remembers when a page opens, and what the page sees since.

import { setClass, setText } from "./common.js";

const STEP_MS = 5000;
const POINTS = 60;

/** Say in a cell whether values, oldest first, rise or fall; null is a gap. `now` is the last of them. What the group's `attention` says of its lag is not said otherwise here. */
export function drawTrend(cell, values, now, attention) {
  const known = values.filter((value) => value !== null);
  const last = known.at(-1) ?? 0;
  const usual = known.reduce((sum, value) => sum + value, 0) / Math.max(1, known.length);
  const flat = known.length < 2 || !known.some((value) => value);
  const grows = attention.some(({ text }) => text.includes("lag grows"));
  const word = now === null ? "–" : grows ? "rising" : flat ? (now ? "" : "no lag") : last > usual * 1.2 + 10 ? "rising" : last < usual * 0.8 - 10 ? "falling" : "level";
  setText(cell, word);
  setClass(cell, `roomy trend ${word === "rising" || word === "falling" ? word : "zero"}`);
}

export class Trends {
  constructor() {
    this.times = [];
    this.lines = new Map();
    this.seen = new Set();
  }

  /** Take what the monitor remembers: {times, groups: {name: [lag or null]}}, of the groups there are; a flat zero is left out. */
  read({ times, groups }, names) {
    this.times = times;
    this.seen = new Set(names);
    this.lines = new Map(Object.entries(groups).map(([name, line]) => [name, [...line]]));
  }

  /** Take a sample of the groups as they are, if it is time for one. */
  take(groups, time) {
    if (this.times.length && time - this.times.at(-1) < STEP_MS) return;
    this.times.push(time);
    for (const [name, group] of groups) {
      const line = this.lines.get(name);
      if (line) line.push(group.lag);
      // No line is a flat zero so far, but of a group that is new, or whose lag is not known: of those it is a gap.
      else if (group.lag !== 0 || !this.seen.has(name)) {
        const before = this.seen.has(name) && group.lag !== null ? 0 : null;
        this.lines.set(name, [...new Array(this.times.length - 1).fill(before), group.lag]);
      }
      this.seen.add(name);
    }
    const over = this.times.length - POINTS;
    if (over > 0) this.times.splice(0, over);
    for (const [name, line] of this.lines) {
      if (!groups.has(name)) {
        this.lines.delete(name);
        this.seen.delete(name);
      }
      else if (line.length > POINTS) line.splice(0, line.length - POINTS);
    }
  }

  /** Lag of one group, oldest first. */
  of(name) {
    return this.lines.get(name) ?? [];
  }

  /** [time, lag of these groups together], null where one of them is not known then, or where there is none; groups without any figure aside. */
  sum(names) {
    const lines = names.map((name) => this.lines.get(name)).filter((line) => line?.some((value) => value !== null));
    return this.times.map((time, at) => {
      const values = lines.map((line) => line[line.length - this.times.length + at]);
      return [time, !names.length || values.includes(null) ? null : values.reduce((total, value) => total + (value ?? 0), 0)];
    });
  }
}
