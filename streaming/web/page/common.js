// What all pages share. Names of groups, members and topics are anybody's text: they reach the page through
// textContent and attributes only, never as markup.

export const $ = (id) => document.getElementById(id);

/** An element with properties and children; children are elements or text. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Where the reader's clock is; inputs of a time name it in their label. */
export const ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const place of document.querySelectorAll("label .zone")) place.textContent = `(${ZONE})`;

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

export function setTitle(element, text) {
  if (element.title !== text) element.title = text;
}

// Control characters, and those that are invisible or turn the direction of what follows: shown by their number.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** A name as it can be read: nothing in it is invisible or moves its neighbours. */
export function visible(name) {
  const shown = name.replace(UNSEEN, (sign) => `\\u${sign.codePointAt(0).toString(16).padStart(4, "0")}`);
  return shown.trim() ? shown : `“${shown}”`;
}

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const unknown = (value) => value === null || value === undefined;
export const number = (value) => (unknown(value) ? "–" : whole.format(value));
export const short = (value) => (unknown(value) ? "–" : value < 100000 ? whole.format(value) : compact.format(value));
export const tiny = (value) => (unknown(value) ? "" : value < 1000 ? `${value}` : compact.format(value));
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** Sum over groups; null, which is shown as "–", as soon as one of them is not known. */
export const total = (groups, of) => groups.reduce((sum, group) => (unknown(sum) || unknown(of(group)) ? null : sum + of(group)), 0);

const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]];

/** Seconds as people say them: 40 ms, 0.4 s, 12 s, 3 m 20 s, 2 h 5 m, 4 d 3 h; as words.py does. */
export function duration(seconds) {
  if (unknown(seconds)) return "–";
  if (seconds > 0 && seconds < 0.095) return `${Math.max(1, Math.floor(seconds * 1000 + 0.5))} ms`;
  if (seconds > 0 && seconds < 9.95) return `${(Math.floor(seconds * 10 + 0.5) / 10).toFixed(1)} s`;
  const all = Math.max(0, Math.floor(seconds + 0.5));
  const [size, unit, smaller, part] = UNITS.find(([each]) => all >= each) ?? [];
  return size ? `${Math.floor(all / size)} ${unit} ${Math.floor((all % size) / smaller)} ${part}` : `${all} s`;
}

/** Whole percents, rounded down: 100 only when all is done. */
export const percent = (done, all) => (all ? Math.floor((100 * done) / all) : 0);

/** Lag in time; a lower bound as "> 12 m 0 s". */
export const lagTime = (seconds, atLeast) => `${atLeast && !unknown(seconds) ? "> " : ""}${duration(seconds)}`;

/** Records of a group, or of a part of it; while some partition's lag is not known, those of the others: "≥ 1,200". */
export const lagSum = (of) => (unknown(of.lag) && !unknown(of.max_lag) ? `≥ ${short(of.at_least)}` : short(of.lag));
/** The same as a number, to compare with; null where nothing is known. */
export const leastLag = (of) => (unknown(of.max_lag) ? null : of.lag ?? of.at_least);
export const lagUnknown = (of) => (of.unknown_lags ? `not known of ${plural(of.unknown_lags, "partition")}` : "");

export function clock(milliseconds) {
  const moment = new Date(milliseconds);
  if (Number.isNaN(moment.valueOf())) return `${milliseconds}`;
  const time = moment.toLocaleTimeString("en-GB");
  return moment.toDateString() === new Date().toDateString() ? time : `${moment.toLocaleDateString("en-CA")} ${time}`;
}

/** The same in a sentence of its own, with date and zone: 2026-01-31 14:03:00 GMT+1. */
export function moment(milliseconds) {
  const at = new Date(milliseconds);
  if (Number.isNaN(at.valueOf())) return `${milliseconds}`;
  const zone = at.toLocaleTimeString("en-GB", { timeZoneName: "short" }).split(" ").at(-1);
  return `${at.toLocaleDateString("en-CA")} ${at.toLocaleTimeString("en-GB")} ${zone}`;
}

/** A time as text that an input of date and time takes, by the reader's clock. */
export function localTime(milliseconds) {
  const offset = new Date(milliseconds).getTimezoneOffset();
  return new Date(milliseconds - 60000 * offset).toISOString().slice(0, 19);
}

/** 0–3, 7, 9–11 */
export function ranges(numbers) {
  const runs = [];
  for (const value of numbers) {
    if (runs.length && value === runs.at(-1)[1] + 1) runs.at(-1)[1] = value;
    else runs.push([value, value]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from}–${to}`)).join(", ");
}

export const partitions = (held) => Object.entries(held).map(([topic, numbers]) => `${visible(topic)} ${ranges(numbers)}`).join("; ");
export const size = (held) => Object.values(held).reduce((total, numbers) => total + numbers.length, 0);

const GOOD = new Set(["Stable"]);
const CALM = new Set(["Empty", "Dead"]);
export const isMoving = (state) => !GOOD.has(state) && !CALM.has(state);
export const stateClass = (state) => `pill ${GOOD.has(state) ? "good" : CALM.has(state) ? "" : "moving"}`.trim();

/** Address of a group's page. "." and ".." are not possible in a path. */
export function groupPage(name) {
  try {
    return /^\.{0,2}$/.test(name) ? `/group?name=${encodeURIComponent(name)}` : `/group/${encodeURIComponent(name)}`;
  } catch {
    return "#"; // half of a surrogate pair has no address
  }
}

/** Address of a topic's page. */
export const topicPage = (name) => groupPage(name).replace(/^\/group/, "/topic");

export async function get(address) {
  const answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(15000) });
  if (!answer.ok && ![404, 410, 503].includes(answer.status)) throw new Error(`${address}: ${answer.status}`);
  return [answer.status, await answer.json()];
}

/** Make the children of a parent those of the items, in order, by key: what is there stays, and only it changes. */
export function patch(parent, items, key, make, update = () => {}) {
  const held = (parent.held ??= new Map());
  const keep = new Set(items.map(key));
  for (const [id, element] of held) {
    if (!keep.has(id)) {
      element.remove();
      held.delete(id);
    }
  }
  let place = parent.firstElementChild;
  for (const item of items) {
    const id = key(item);
    if (!keep.delete(id)) continue;
    let element = held.get(id);
    if (!element) held.set(id, (element = make(item)));
    update(element, item);
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
}

/** Figures: {name, value, note?, look?, progress? ([done, all]), href?}. */
export function tiles(parent, items) {
  patch(parent, items, (item) => item.name, (item) => {
    const bar = h("progress", { hidden: true });
    return h("div", { className: "tile" }, h("dl", {}, h("dt", {}, item.name), h("dd", {})), h("div", { className: "note" }), bar);
  }, (tile, item) => {
    const [list, note, bar] = tile.children;
    const value = list.lastChild;
    setClass(tile, `tile ${item.look ?? ""}`.trim());
    setText(value, item.value);
    setText(note, item.note ?? "");
    setTitle(note, item.note ?? "");
    bar.hidden = !item.progress;
    if (item.progress) {
      [bar.value, bar.max] = item.progress;
      bar.setAttribute("aria-label", item.name);
    }
  });
}

/**
 * Lag of groups together, and the longest of their lag times. Of a group without a figure it is not known: where no group
 * has one there is none for all, and a group with lag whose time is not known may be the slowest of all. With a group
 * whose lag is known in part all of it is a lower bound.
 */
export function lagTiles(groups) {
  const known = groups.filter((group) => leastLag(group) !== null);
  const lagging = known.filter((group) => leastLag(group) > 0);
  const left = groups.filter((group) => unknown(group.lag)).length;
  const partly = groups.some((group) => group.unknown_lags);
  const untimed = lagging.filter((group) => unknown(group.max_lag_seconds)).length;
  const slowest = lagging.reduce((most, group) => ((group.max_lag_seconds ?? 0) > (most?.max_lag_seconds ?? 0) ? group : most), null);
  const nothing = groups.length > 0 && !known.length;
  const time = slowest ? lagTime(slowest.max_lag_seconds, slowest.max_lag_seconds_at_least || untimed > 0 || partly) : untimed || nothing || partly ? "–" : "0 s";
  const note = untimed ? `not known of ${plural(untimed, "group")} with lag` : slowest ? visible(slowest.group) : nothing ? "no group has a lag that is known" : partly ? "nothing waits that is known" : "nothing waits";
  return [
    { name: "Lag", value: nothing ? "–" : `${partly ? "≥ " : ""}${short(total(known, leastLag))}`, note: `in ${plural(lagging.length, "group")}${left ? `, not known of ${number(left)}` : ""}`, ofLag: true },
    { name: "Longest lag time", value: time, note, ofLag: true },
  ];
}

/** The row of a group that may be in a part of the log that is not read: without colour, and why. */
export const unreadLook = (group) => (group.doubt?.partition !== undefined ? [{ code: "unread", severity: "warning", text: `unknown: partition ${group.doubt.partition} is not read`, since: group.doubt.since }] : []);

/** Reasons to look, as tags; `now` (ms) is what their age is counted to. */
export function looks(parent, found, now) {
  patch(parent, found, (look) => look.code, (look) => h("li", { className: `look ${look.severity}` }), (item, look) => {
    setText(item, look.since === null ? look.text : `${look.text} · ${duration(Math.max(0, now - look.since) / 1000)}`);
  });
}

/** Table head from columns: {name, label, title?, number?, roomy?, look?, sort?}; sortable where `sort` is given. */
export function head(table, columns, sort) {
  table.tHead.rows[0].append(...columns.map((column) => {
    const cell = h("th", { scope: "col", className: cellLook(column) });
    if (sort && column.sort) {
      cell.dataset.name = column.name;
      cell.append(h("button", { type: "button", title: column.title ?? "", onclick: () => sort(column.name) }, column.label));
    } else cell.append(h("span", { title: column.title ?? "" }, column.label));
    return cell;
  }));
}

export const cellLook = (column) => [column.number && "number", column.roomy && "roomy", column.look].filter(Boolean).join(" ");
/** A row of cells; on a phone, where a row is a card, each names its column. */
export const row = (columns) => h("tr", {}, ...columns.map((column) => h("td", { className: cellLook(column), "data-label": column.label })));
