// What both pages share. Names of groups, members and topics are anybody's text: they reach the page through
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

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

const whole = new Intl.NumberFormat("en");
export const number = (value) => (value === null || value === undefined ? "–" : whole.format(value));

export function short(value) {
  if (value === null || value === undefined) return "–";
  return value < 100000 ? whole.format(value) : new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

/** Seconds as people say them: 0.4 s, 12 s, 3 m 20 s, 2 h 5 m, 4 d 3 h. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0 s";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} m`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

export function clock(milliseconds) {
  const moment = new Date(milliseconds);
  const time = moment.toLocaleTimeString("en-GB");
  return moment.toDateString() === new Date().toDateString() ? time : `${moment.toLocaleDateString("en-CA")} ${time}`;
}

const GOOD = new Set(["Stable"]);
const CALM = new Set(["Empty", "Dead"]);
export const stateClass = (state) => `pill ${GOOD.has(state) ? "good" : CALM.has(state) ? "" : "moving"}`.trim();

/** Address of a group's page. "." and ".." are not possible in a path. */
export function groupPage(name) {
  return /^\.{0,2}$/.test(name) ? `/group?name=${encodeURIComponent(name)}` : `/group/${encodeURIComponent(name)}`;
}

/** Make the children of a parent those of the items, in order, by key: what is there stays, and only it changes. */
export function patch(parent, items, key, make, update) {
  const held = (parent.held ??= new Map());
  const keep = new Set();
  let place = parent.firstElementChild;
  for (const item of items) {
    const id = key(item);
    if (keep.has(id)) continue;
    keep.add(id);
    let element = held.get(id);
    if (!element) held.set(id, (element = make(item)));
    update(element, item);
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  for (const [id, element] of held) {
    if (!keep.has(id)) {
      element.remove();
      held.delete(id);
    }
  }
}

export function tiles(parent, items) {
  patch(parent, items, (item) => item.name, (item) => {
    const bar = h("progress", { hidden: true });
    return h("dl", { className: "tile" }, h("dt", {}, item.name), h("dd", {}), h("div", { className: "note" }), bar);
  }, (tile, item) => {
    setClass(tile, `tile ${item.look ?? ""}`.trim());
    setText(tile.children[1], item.value);
    setText(tile.children[2], item.note ?? "");
    tile.children[2].title = item.note ?? "";
    const bar = tile.children[3];
    bar.hidden = !item.progress;
    if (item.progress) {
      [bar.value, bar.max] = item.progress;
      bar.setAttribute("aria-label", item.name);
    }
  });
}

function told(detail) {
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && !value.length))
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${typeof value === "object" ? plain(value) : value}`)
    .join(" · ");
}

function plain(value) {
  if (Array.isArray(value)) return value.map((each) => (typeof each === "object" ? plain(each) : each)).join(", ");
  return Object.entries(value).map(([name, each]) => `${name} [${Array.isArray(each) ? each.join(", ") : typeof each === "object" ? plain(each) : each}]`).join(", ");
}

/** Events, newest first. */
export function events(list, items, withGroup) {
  patch(list, items.toReversed(), (event) => event.id, (event) => {
    const kind = h("span", { className: "kind" }, event.kind.replaceAll("_", " "));
    if (event.inferred) kind.title = "inferred: the log does not state it";
    const moment = h("time", { dateTime: new Date(event.time).toISOString(), title: new Date(event.time).toISOString() }, clock(event.time));
    const item = h("li", { className: event.severity }, h("div", { className: "line" }, moment, kind));
    if (withGroup && event.group) item.append(h("a", { className: "where", href: groupPage(event.group), title: event.group }, event.group));
    const detail = told(event.detail);
    if (detail) item.append(h("div", { className: "detail", title: detail }, detail));
    return item;
  }, () => {});
  $("no-events").hidden = items.length > 0;
}

/** Table head from columns: {name, label, number?, roomy?}; sortable where `sort` is given. */
export function head(table, columns, sort) {
  table.tHead.rows[0].append(...columns.map((column) => {
    const cell = h("th", { scope: "col", className: looks(column) });
    if (sort && column.sort) {
      cell.dataset.name = column.name;
      cell.append(h("button", { type: "button", title: column.title ?? "", onclick: () => sort(column.name) }, column.label));
    } else cell.append(h("span", { title: column.title ?? "" }, column.label));
    return cell;
  }));
}

export const looks = (column) => [column.number && "number", column.roomy && "roomy", column.look].filter(Boolean).join(" ");

/** Ask again and again, a second after the last answer, or later where answers take long; not while hidden. */
export async function refresh(ask) {
  const link = $("link");
  for (;;) {
    const begun = performance.now();
    if (!document.hidden) {
      try {
        await ask();
        setText(link, "live");
        setClass(link, "pill good");
      } catch (problem) {
        console.warn(problem);
        setText(link, "disconnected");
        setClass(link, "pill bad");
      }
    }
    const took = performance.now() - begun;
    await new Promise((done) => setTimeout(done, Math.max(1000, 3 * took)));
  }
}

export async function get(address) {
  const answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(15000) });
  if (!answer.ok && answer.status !== 404 && answer.status !== 503) throw new Error(`${address}: ${answer.status}`);
  return [answer.status, await answer.json()];
}

/** Say above everything what keeps the figures from being believed. */
export function banner(ready, missing, age) {
  const element = $("banner");
  const reasons = ready ? [] : missing.map((each) => (each.records ? `${each.reason} (${number(each.records)} records to go)` : each.reason));
  if (ready && age !== null && age > 15) reasons.push(`log end offsets are ${duration(age)} old: lag does not move`);
  setText(element, reasons.length ? `${ready ? "" : "Catching up: "}${reasons.join("; ")}` : "");
  element.hidden = !reasons.length;
}
