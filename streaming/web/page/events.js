// Events as a list, newest first, and the bands of time that can be read from them. Their sentences are the monitor's
// (`text`), the same as in the terminal.
import { $, ZONE, clock, groupPage, h, moment, patch, setText, visible } from "./common.js";
import { doubt } from "./live.js";

/** One more list of events with new ones in it: each once, by the log's time, the latest `most`. */
export function merged(events, newer, most) {
  if (!newer.length) return events;
  const known = new Map([...events, ...newer].map((event) => [event.id, event]));
  return [...known.values()].sort((one, other) => one.time - other.time).slice(-most);
}

/** Show events, newest first; `where` says whether each names its group, `then` is called with the one whose time is chosen. */
export function list(element, events, where, then = null) {
  patch(element, events.toReversed(), (event) => event.id, (event) => {
    const said = h("span", { className: "said" }, h("bdi", {}, visible(event.text)));
    if (event.inferred) said.append(h("span", { className: "inferred", title: "The log does not state it: it was concluded." }, "inferred"));
    const instant = new Date(event.time);
    const iso = Number.isNaN(instant.valueOf()) ? `${event.time}` : instant.toISOString();
    const time = h("time", { dateTime: iso, title: `${moment(event.time)} (${iso})` }, clock(event.time));
    const when = then ? h("button", { type: "button", className: "when", ariaLabel: `As it was at ${moment(event.time)}`, onclick: () => then(event) }, time) : time;
    const item = h("li", { className: event.severity }, h("div", { className: "line" }, when, ...(where && event.group ? [h("a", { className: "where", href: groupPage(event.group), title: visible(event.group) }, h("bdi", {}, visible(event.group)))] : [])), said);
    item.dataset.kind = event.kind;
    return item;
  });
  const title = $("events-title");
  if (!title.lastElementChild) title.append(h("span", { className: "muted zone" }, ` times in ${ZONE}`));
  const none = $("no-events");
  none.said ??= none.textContent;
  setText(none, doubt() === null ? none.said : `Not known: ${doubt()}.`);
  none.hidden = events.length > 0;
}

const CONVERSION = /^(upgrade|downgrade)_(started|completed)$/;

/**
 * Bands of time, {from, to, look, text}, `to` null while it lasts: rebalances and conversions by the sentence of what ended
 * or began them, alarms at the moment of theirs. A classic rebalance has no beginning in the log but for its last phase.
 */
export function bands(events, named = false) {
  const open = new Map();
  const found = [];
  const text = (event) => (named && event.group ? `${visible(event.group)}: ` : "") + visible(event.text);
  const begin = (kind, event, look) => open.set(`${kind} ${event.group}`, { from: event.time, to: null, look, text: text(event) });
  const end = (kind, event, look, took = 0) => {
    const band = open.get(`${kind} ${event.group}`);
    open.delete(`${kind} ${event.group}`);
    found.push({ from: Math.min(band?.from ?? event.time, event.time - took), to: event.time, look, text: text(event) });
  };
  for (const event of events) {
    const conversion = CONVERSION.test(event.kind);
    if (event.kind === "rebalance_started") begin("rebalance", event, "active");
    else if (event.kind === "rebalance_completed") end("rebalance", event, "rebalance", event.detail.duration_ms ?? 0);
    else if (conversion && event.kind.endsWith("started")) begin("conversion", event, "conversion");
    else if (conversion) end("conversion", event, "conversion");
    else if (event.severity !== "info") found.push({ from: event.time, to: event.time, look: event.severity, text: text(event) });
  }
  return [...found, ...open.values()];
}
