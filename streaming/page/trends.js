// Lag of all groups over the last minutes: what the monitor remembers when a page opens, and what the page sees since.

const STEP_MS = 5000;
const POINTS = 60;

export class Trends {
  constructor() {
    this.times = [];
    this.lines = new Map();
  }

  /** Take what the monitor remembers: {times, groups: {name: [lag or null]}}, a flat zero left out. */
  read({ times, groups }) {
    this.times = times;
    this.lines = new Map(Object.entries(groups).map(([name, line]) => [name, [...line]]));
  }

  /** Take a sample of the groups as they are, if it is time for one. */
  take(groups, time) {
    if (this.times.length && time - this.times.at(-1) < STEP_MS) return;
    this.times.push(time);
    for (const [name, group] of groups) {
      const line = this.lines.get(name);
      if (line) line.push(group.lag);
      // No line is a flat zero so far; where lag is not known it is a gap, not the end of that zero.
      else if (group.lag !== 0) this.lines.set(name, [...new Array(this.times.length - 1).fill(group.lag === null ? null : 0), group.lag]);
    }
    const over = this.times.length - POINTS;
    if (over > 0) this.times.splice(0, over);
    for (const [name, line] of this.lines) {
      if (!groups.has(name)) this.lines.delete(name);
      else if (line.length > POINTS) line.splice(0, line.length - POINTS);
    }
  }

  /** Lag of one group, oldest first. */
  of(name) {
    return this.lines.get(name) ?? [];
  }

  /** [time, lag of these groups together], null where that of one is not known then; groups without any figure aside. */
  sum(names) {
    const lines = names.map((name) => this.lines.get(name)).filter((line) => line?.some((value) => value !== null));
    return this.times.map((time, at) => {
      const values = lines.map((line) => line[line.length - this.times.length + at]);
      return [time, values.includes(null) ? null : values.reduce((total, value) => total + (value ?? 0), 0)];
    });
  }
}
