// Events as a list, newest first, and the episodes of rebalances that can be read from them.
import { $, clock, duration, groupPage, h, number, partitions, patch, visible } from "./common.js";

const WORDS = { members: "members", duration_ms: "took", mixed_ms: "both protocols for", silent_ms: "silent for" };
const HIDDEN = new Set(["client_host", "protocol", "former_member_id"]);

/** One more list of events with new ones in it: each once, by the log's time, the latest `most`. */
export function merged(events, newer, most) {
  if (!newer.length) return events;
  const known = new Map([...events, ...newer].map((event) => [event.id, event]));
  return [...known.values()].sort((one, other) => one.time - other.time).slice(-most);
}

/** Show events, newest first; `where` says whether each names its group, `then` is called with the one whose time is chosen. */
export function list(element, events, where, then = null) {
  patch(element, events.toReversed(), (event) => event.id, (event) => {
    const kind = h("span", { className: "kind" }, event.kind.replaceAll("_", " "));
    if (event.inferred) kind.append(h("span", { className: "inferred", title: "The log does not state it: it was concluded." }, "inferred"));
    const instant = new Date(event.time);
    const iso = Number.isNaN(instant.valueOf()) ? `${event.time}` : instant.toISOString();
    const time = h("time", { dateTime: iso, title: iso }, clock(event.time));
    const when = then ? h("button", { type: "button", className: "when", ariaLabel: `As it was at ${clock(event.time)}`, onclick: () => then(event) }, time) : time;
    const item = h("li", { className: event.severity }, h("div", { className: "line" }, when, kind));
    if (where && event.group !== "") item.append(h("a", { className: "where", href: groupPage(event.group), title: visible(event.group) }, h("bdi", {}, visible(event.group))));
    const detail = told(event.detail);
    if (detail) item.append(h("div", { className: "detail", title: detail }, h("bdi", {}, detail)));
    return item;
  });
  $("no-events").hidden = events.length > 0;
}

function told(detail) {
  return Object.entries(detail)
    .filter(([name, value]) => !HIDDEN.has(name) && value !== null && value !== "" && value !== false && !(Array.isArray(value) && !value.length))
    .map(([name, value]) => {
      const word = WORDS[name] ?? name.replaceAll("_", " ");
      if (value === true) return word;
      return `${word} ${name.endsWith("_ms") && typeof value === "number" ? duration(value / 1000) : plain(value)}`;
    })
    .join(" · ");
}

function plain(value) {
  if (typeof value === "string") return visible(value);
  if (typeof value === "number") return number(value);
  if (Array.isArray(value)) return value.map(plain).join(", ");
  if (value === null || typeof value !== "object") return String(value);
  if (Object.values(value).every((each) => Array.isArray(each) && each.every((item) => typeof item === "number"))) return partitions(value);
  return Object.entries(value).map(([name, each]) => `${visible(name)} ${plain(each)}`).join(", ");
}

/**
 * Rebalances as {from, to, moved, why, epoch, group}, `to` null while under way. A classic one has no beginning in the
 * log but for its last phase.
 */
export function episodes(events) {
  const open = new Map();
  const found = [];
  for (const event of events) {
    if (event.kind === "rebalance_started") open.set(event.group, event);
    if (event.kind !== "rebalance_completed") continue;
    const took = event.detail.duration_ms ?? 0;
    open.delete(event.group);
    found.push({ from: event.time - took, to: event.time, moved: event.detail.partitions_moved, why: event.detail.causes ?? [], epoch: event.detail.epoch ?? event.detail.generation, group: event.group });
  }
  for (const event of open.values()) found.push({ from: event.time, to: null, moved: null, why: event.detail.causes ?? [], epoch: event.detail.epoch, group: event.group });
  return found;
}
