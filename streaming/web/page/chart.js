// Charts by uPlot (uplot.js): panels that share an axis of time, a pointer and a zoom.
//
// A panel is of lines: {name, unit?, lines: [{name, points: [[time, value or null]], look}]}. A gap in a line is what is
// not known: never drawn as zero. Bands lie behind all panels: {from, to, look, text}, `to` null while it lasts.
import { clock, duration, h, patch, setText, short, tiny } from "./common.js";

const HEIGHT = 170;
const BARE_HEIGHT = 70;
const SHORTEST_MS = 60000;
const MINUTE_MS = 60000;
const DAY_MS = 86400000;
const LEAST_BAND = 3;
const MOST_SAID = 6;

const style = getComputedStyle(document.documentElement);
const colour = (name) => () => style.getPropertyValue(`--${name}`);
const BANDS = { rebalance: "new", active: "back", conversion: "good", warning: "moving", critical: "bad", moment: "moving" };
const faint = { stroke: colour("faint"), width: 1 };

/** Where an axis of time begins: `from`, or a little before the first thing there is to show, if that is later. */
export function since(from, moments, to) {
  const first = Math.min(...moments.filter((moment) => moment !== undefined), to);
  return Math.max(from, Math.min(first - 2000, to - SHORTEST_MS));
}

/** [times, values of each line at them]: undefined where a line has no point, null where its value is not known. */
function aligned(lines, from) {
  const points = lines.map((line) => line.points.filter(([time]) => time >= from));
  const times = [...new Set(points.flatMap((line) => line.map(([time]) => time)))].sort((one, other) => one - other);
  const place = new Map(times.map((time, at) => [time, at]));
  return [times, ...points.map((line) => {
    const values = new Array(times.length);
    for (const [time, value] of line) values[place.get(time)] = value;
    return values;
  })];
}

/** Labels of the axis, by the reader's clock: as fine as the steps between them. */
const labels = (_, times, __, ___, step) => times.map((time) => {
  const moment = new Date(time);
  return step < DAY_MS ? moment.toLocaleTimeString("en-GB").slice(0, step < MINUTE_MS ? undefined : -3) : moment.toLocaleDateString("en-CA").slice(5);
});

/** Panels under each other in `parent`: the pointer or the arrow keys show what was at a moment, a drag is a zoom. */
export class Timeline {
  constructor(parent, label) {
    this.parent = parent;
    this.panels = h("div", { className: "panels", tabIndex: 0, role: "group", ariaLabel: `${label}. The arrow keys move through time.` });
    this.note = h("div", { className: "cursor-note", role: "status", hidden: true });
    this.whole = h("button", { type: "button", className: "quiet whole", hidden: true, onclick: () => this.zoomTo(null) }, "Whole span");
    parent.append(this.whole, this.panels, this.note);
    this.sync = uPlot.sync(label);
    this.charts = [];
    this.off = new Set(); // names of lines that the legend has switched off
    this.model = this.zoom = this.at = null;
    new ResizeObserver(() => this.#resize()).observe(parent);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.charts.forEach(({ plot }) => plot.redraw()));
    this.panels.addEventListener("keydown", (event) => this.#key(event));
    this.panels.addEventListener("blur", () => this.#point(null));
  }

  /** {from, to (ms), panels, bands?} */
  draw(model) {
    this.model = model;
    if (!this.parent.clientWidth) return;
    const keys = model.panels.map((panel) => `${panel.name} ${panel.lines.map((line) => line.name + line.look)}`);
    if (keys.join("\n") !== this.charts.map(({ key }) => key).join("\n")) this.#build(keys);
    const [min, max] = this.zoom ?? [model.from, model.to];
    model.panels.forEach((panel, at) => {
      const { plot, empty } = this.charts[at];
      const data = aligned(panel.lines, model.from);
      empty.hidden = !panel.lines.length || data.slice(1).some((values) => values.some((value) => value !== null && value !== undefined));
      plot.batch(() => {
        plot.setData(data, false);
        plot.setScale("x", { min, max });
      });
    });
    this.#tell();
  }

  /** Show a part of the span, [from, to] in ms, or null for all of it. */
  zoomTo(span) {
    this.zoom = span;
    this.whole.hidden = span === null;
    if (this.model) this.draw(this.model);
  }

  #build(keys) {
    for (const { plot } of this.charts) plot.destroy();
    this.charts = [];
    this.panels.replaceChildren();
    this.charts = this.model.panels.map((panel, at) => {
      const place = h("div", { className: "panel" });
      const empty = h("p", { className: "muted nothing", hidden: true }, "No figure yet.");
      const legend = h("ul", { className: "legend" });
      this.panels.append(h("div", { className: "panel-name" }, panel.name), place, legend);
      const plot = new uPlot(this.#options(panel), [[], ...panel.lines.map(() => [])], place);
      place.append(empty);
      const chart = { key: keys[at], plot, empty, legend };
      this.#legend(chart, panel);
      return chart;
    });
  }

  #options(panel) {
    const bare = !panel.lines.length;
    const shown = panel.unit === "seconds" ? duration : tiny;
    const least = panel.unit === "seconds" ? 1 : 4;
    const axis = { stroke: colour("muted"), grid: faint, ticks: { show: false }, font: "11px system-ui", size: 26 };
    return {
      width: this.#width(),
      height: bare ? BARE_HEIGHT : HEIGHT,
      ms: 1,
      legend: { show: false },
      padding: [8, 24, 0, bare ? 52 : 0],
      axes: [{ ...axis, space: 70, values: labels }, ...(bare ? [] : [{ ...axis, size: 52, values: (_, values) => values.map((value) => shown(value)) }])],
      scales: { x: { range: () => this.zoom ?? [this.model.from, this.model.to] }, y: { range: (_, __, most) => [0, Math.max((most ?? 0) * 1.05, least)] } },
      series: [{}, ...panel.lines.map((line) => ({ label: line.name, stroke: colour(line.look), width: 1.5, show: !this.off.has(line.name), points: { show: (_, __, first, last) => last - first < 2 } }))],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false, dist: 6 },
        sync: { key: this.sync.key, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
        bind: { dblclick: () => () => this.zoomTo(null) },
      },
      hooks: {
        drawClear: [(plot) => this.#bands(plot)],
        setCursor: [(plot) => this.#moved(plot)],
        setSelect: [(plot) => this.#selected(plot)],
      },
    };
  }

  #selected(plot) {
    const { left, width } = plot.select;
    if (width < 6) return;
    const span = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoomTo(span);
  }

  /** Bands behind the lines. */
  #bands(plot) {
    const { ctx, bbox } = plot;
    const { bands = [], to } = this.model;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const band of bands) {
      const [start, stop] = [band.from, band.to ?? to].map((time) => plot.valToPos(time, "x", true));
      ctx.fillStyle = colour(BANDS[band.look])();
      ctx.globalAlpha = stop - start > 2 * LEAST_BAND * devicePixelRatio ? 0.12 : 0.55;
      ctx.fillRect(start, bbox.top, Math.max(LEAST_BAND * devicePixelRatio, stop - start), bbox.height);
    }
    ctx.restore();
  }

  #legend(chart, panel) {
    patch(chart.legend, panel.lines, (line) => line.name, (line) => {
      const button = h("button", { type: "button", className: line.look, ariaPressed: `${!this.off.has(line.name)}` }, h("span", { className: "swatch" }), h("bdi", {}, line.name), h("span", { className: "value" }));
      button.addEventListener("click", () => {
        if (!this.off.delete(line.name)) this.off.add(line.name);
        button.ariaPressed = `${!this.off.has(line.name)}`;
        chart.plot.setSeries(1 + panel.lines.indexOf(line), { show: !this.off.has(line.name) });
      });
      return h("li", {}, button);
    });
  }

  #moved(plot) {
    const { left } = plot.cursor;
    const at = left === undefined || left === null || left < 0 ? null : plot.posToVal(left, "x");
    if (at === this.at) return;
    this.at = at;
    this.#tell();
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.target !== this.panels) return;
    event.preventDefault();
    const [from, to] = this.zoom ?? [this.model.from, this.model.to];
    this.#point(Math.min(to, Math.max(from, (this.at ?? to) + (step * (to - from)) / 90)));
  }

  /** Put the pointer at a time, or take it away. */
  #point(time) {
    this.at = time;
    const { plot } = this.charts[0] ?? {};
    plot?.setCursor(time === null ? { left: -10, top: -10 } : { left: plot.valToPos(time, "x"), top: 10 });
    this.#tell();
  }

  /** What was at the pointer's time: values in the legend, the bands' sentences in a note. */
  #tell() {
    const { at, model } = this;
    this.charts.forEach(({ plot, legend }, number) => {
      const [times, ...values] = plot.data;
      const before = at === null ? times.length - 1 : times.findLastIndex((time) => time <= at);
      const shown = model.panels[number].unit === "seconds" ? duration : short;
      [...legend.children].forEach((item, line) => {
        const value = values[line].slice(0, before + 1).findLast((each) => each !== undefined);
        setText(item.firstChild.lastChild, shown(value));
      });
    });
    this.note.hidden = at === null || !this.charts.length;
    if (this.note.hidden) return;
    const near = ((this.zoom?.[1] ?? model.to) - (this.zoom?.[0] ?? model.from)) / 150;
    const said = (model.bands ?? []).filter((band) => at >= band.from - near && at <= (band.to ?? model.to) + near).map(({ text }) => text);
    const more = said.length > MOST_SAID ? [`and ${said.length - MOST_SAID} more`] : [];
    setText(this.note, [clock(at), ...said.slice(0, MOST_SAID), ...more].join("\n"));
    const { plot } = this.charts[0];
    const left = plot.over.offsetLeft + plot.valToPos(at, "x");
    const wide = this.note.offsetWidth;
    this.note.style.left = `${left + wide + 30 > this.parent.clientWidth ? Math.max(0, left - wide - 6) : left + 24}px`;
  }

  #width() {
    const { paddingLeft, paddingRight } = getComputedStyle(this.parent);
    return this.parent.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  }

  #resize() {
    if (!this.model || !this.parent.clientWidth) return;
    if (!this.charts.length) this.draw(this.model);
    for (const { plot } of this.charts) plot.setSize({ width: this.#width(), height: plot.height });
  }
}
