// Pictures over time, drawn as SVG: sparklines in a table, and panels that share one axis of time and one cursor.
//
// A panel is of lines ({name, points: [[time, value or null]], look}), of spans ({from, to, text, look}) or of marks
// ({time, text, look}). A gap in a line is what is not known: never drawn as zero.
import { clock, duration, h, setText, short, tiny } from "./common.js";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 52;
const RIGHT = 12;
const LINES_HEIGHT = 132;
const STRIP_HEIGHT = 24;
const GAP = 34;
const BOTTOM = 20;
const SHORTEST_MS = 60000;
const STEPS_SECONDS = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 345600];
const DAY_MS = 86400000;

function svg(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

/** An empty sparkline; `drawSpark` fills it. */
export function spark() {
  const picture = svg("svg", { viewBox: "0 0 96 22", preserveAspectRatio: "none", class: "spark", role: "img" });
  picture.append(svg("path", { class: "area" }), svg("path", { class: "stroke" }));
  return picture;
}

/** Draw values, oldest first; null is a gap. Says in words whether they rise or fall, or that the last is not known. */
export function drawSpark(picture, values, unknownNow = false) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 1);
  const flat = known.length < 2 || !known.some((value) => value);
  const x = (at) => ((at * 96) / Math.max(1, values.length - 1)).toFixed(1);
  let line = "";
  if (!flat) {
    let pen = "M";
    values.forEach((value, at) => {
      if (value === null) pen = "M";
      else {
        line += `${pen}${x(at)} ${(20 - (18 * value) / most).toFixed(1)}`;
        pen = "L";
      }
    });
  }
  const drawn = `${line} ${unknownNow}`;
  if (picture.drawn === drawn) return;
  picture.drawn = drawn;
  picture.lastChild.setAttribute("d", line);
  picture.firstChild.setAttribute("d", line && !values.includes(null) ? `${line}L96 22L0 22Z` : "");
  const last = known.at(-1) ?? 0;
  const usual = known.reduce((total, value) => total + value, 0) / Math.max(1, known.length);
  const look = last > usual * 1.2 + 10 ? "up" : last < usual * 0.8 - 10 ? "down" : "level";
  picture.setAttribute("class", `spark ${look}`);
  picture.setAttribute("aria-label", flat ? (unknownNow ? "lag not known" : "no lag") : { up: "rising", down: "falling", level: "level" }[look]);
}

/** A number of the kind 1, 2, 5, 10, 20 … at or above the value. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

const runs = (points) => points.reduce((found, point) => {
  if (point[1] === null) found.push([]);
  else found.at(-1).push(point);
  return found;
}, [[]]).filter((run) => run.length);

/** Where an axis of time begins: `from`, or a little before the first thing there is to show, if that is later. */
export function since(from, moments, to) {
  const first = Math.min(...moments.filter((moment) => moment !== undefined), to);
  return Math.max(from, Math.min(first - 2000, to - SHORTEST_MS));
}

/** Panels under each other in `parent`, with a cursor that tells what was at a moment. */
export class Timeline {
  constructor(parent, label) {
    this.note = h("div", { className: "cursor-note", hidden: true });
    this.svg = svg("svg", { class: "timeline", role: "img", tabindex: "0", "aria-label": label });
    parent.append(this.svg, this.note);
    this.parent = parent;
    this.model = null;
    this.at = null;
    new ResizeObserver(() => this.draw(this.model)).observe(parent);
    this.svg.addEventListener("pointermove", (event) => this.point(event.clientX - this.svg.getBoundingClientRect().left));
    this.svg.addEventListener("pointerleave", () => this.point(null));
    this.svg.addEventListener("blur", () => this.point(null));
    this.svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.point(Math.min(this.width - RIGHT, Math.max(LEFT, (this.at ?? this.width - RIGHT) + step * Math.max(4, this.width / 90))));
    });
  }

  /** {from, to (ms), panels: [{name, unit?, lines? | spans? | marks?}], moment? (ms, marked by a line)} */
  draw(model) {
    this.model = model;
    if (!model || !this.parent.clientWidth) return;
    this.width = this.parent.clientWidth;
    const height = model.panels.reduce((total, panel) => total + GAP + (panel.lines ? LINES_HEIGHT : STRIP_HEIGHT), BOTTOM);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", `${height}`);
    const parts = [];
    let top = 0;
    for (const panel of model.panels) {
      const tall = panel.lines ? LINES_HEIGHT : STRIP_HEIGHT;
      parts.push(svg("text", { class: "panel-name", x: LEFT, y: top + 23 }, panel.name));
      top += GAP;
      if (panel.lines) this.#lines(parts, panel, top);
      else this.#strip(parts, panel, top);
      top += tall;
    }
    if (model.moment > model.from) parts.push(svg("line", { class: "moment", x1: this.x(model.moment), x2: this.x(model.moment), y1: 0, y2: top }));
    this.#axis(parts, top);
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: top, visibility: "hidden" });
    this.svg.replaceChildren(...parts, this.cursor);
    if (this.at !== null) this.point(this.at);
  }

  x(time) {
    const { from, to } = this.model;
    return LEFT + ((time - from) / Math.max(1, to - from)) * (this.width - LEFT - RIGHT);
  }

  #lines(parts, panel, top) {
    const inside = panel.lines.flatMap((line) => line.points).filter(([time, value]) => value !== null && time >= this.model.from);
    const most = nice(Math.max(...inside.map(([, value]) => value), panel.unit === "seconds" ? 1 : 4));
    const y = (value) => top + LINES_HEIGHT - (value / most) * LINES_HEIGHT;
    const shown = panel.unit === "seconds" ? duration : tiny;
    for (const value of [0, most / 2, most]) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y(value), y2: y(value) }));
      parts.push(svg("text", { class: "tick", x: LEFT - 7, y: y(value) + 4, "text-anchor": "end" }, shown(value)));
    }
    if (!inside.length) parts.push(svg("text", { class: "tick", x: LEFT + 10, y: top + LINES_HEIGHT / 2 }, "No figure yet."));
    for (const line of panel.lines) {
      for (const run of runs(line.points.filter(([time]) => time >= this.model.from))) {
        const path = run.map(([time, value], at) => `${at ? "L" : "M"}${this.x(time).toFixed(1)} ${y(value).toFixed(1)}`).join("");
        if (line.fill) parts.push(svg("path", { class: `area ${line.look}`, d: `${path}L${this.x(run.at(-1)[0]).toFixed(1)} ${y(0)}L${this.x(run[0][0]).toFixed(1)} ${y(0)}Z` }));
        if (run.length === 1) parts.push(svg("circle", { class: `dot ${line.look}`, cx: this.x(run[0][0]), cy: y(run[0][1]), r: 2 }));
        else parts.push(svg("path", { class: `stroke ${line.look}`, d: path }));
      }
    }
  }

  #strip(parts, panel, top) {
    const middle = top + STRIP_HEIGHT / 2;
    parts.push(svg("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: middle, y2: middle }));
    for (const span of panel.spans ?? []) {
      const [start, stop] = [Math.max(LEFT, this.x(span.from)), this.x(span.to ?? this.model.to)];
      if (stop < LEFT) continue;
      const bar = svg("rect", { class: `span ${span.look}`, x: start, y: top + 6, width: Math.max(4, stop - start), height: STRIP_HEIGHT - 12, rx: 4 });
      bar.append(svg("title", {}, span.text));
      parts.push(bar);
    }
    for (const mark of panel.marks ?? []) {
      if (mark.time < this.model.from) continue;
      const dot = svg("circle", { class: `mark ${mark.look}`, cx: this.x(mark.time), cy: middle, r: mark.look === "info" ? 3.5 : 5 });
      dot.append(svg("title", {}, mark.text));
      parts.push(dot);
    }
  }

  #axis(parts, top) {
    const { from, to } = this.model;
    const wanted = (to - from) / 1000 / Math.max(2, (this.width - LEFT) / 110);
    const step = 1000 * (STEPS_SECONDS.find((each) => each >= wanted) ?? 604800);
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = this.x(time);
      if (x > this.width - RIGHT - 20 || x < LEFT + 10) continue;
      parts.push(svg("text", { class: "tick", x, y: top + 15, "text-anchor": "middle" }, step < DAY_MS ? new Date(time).toLocaleTimeString("en-GB").slice(0, step < 60000 ? undefined : -3) : new Date(time).toLocaleDateString("en-CA").slice(5)));
    }
  }

  /** Put the cursor at x, or take it away. */
  point(x) {
    this.at = x === null || x < LEFT || x > this.width - RIGHT ? null : x;
    this.note.hidden = this.at === null || !this.model;
    this.cursor?.setAttribute("visibility", this.note.hidden ? "hidden" : "visible");
    if (this.note.hidden) return;
    const { from, to, panels } = this.model;
    const time = from + ((this.at - LEFT) / (this.width - LEFT - RIGHT)) * (to - from);
    this.cursor.setAttribute("x1", this.at);
    this.cursor.setAttribute("x2", this.at);
    const said = [clock(time)];
    const near = ((to - from) / this.width) * 6;
    for (const panel of panels) {
      for (const line of panel.lines ?? []) {
        const before = line.points.findLast(([moment]) => moment <= time);
        if (before && before[1] !== null) said.push(`${line.name}: ${panel.unit === "seconds" ? duration(before[1]) : short(before[1])}`);
      }
      for (const span of panel.spans ?? []) if (time >= span.from - near && time <= (span.to ?? to) + near) said.push(span.text);
      for (const mark of panel.marks ?? []) if (Math.abs(mark.time - time) < near) said.push(mark.text);
    }
    setText(this.note, said.slice(0, 12).join("\n"));
    const wide = this.note.offsetWidth;
    this.note.style.left = `${this.at + wide + 20 > this.width ? this.at - wide - 10 : this.at + 10}px`;
  }
}
