// All groups: tiles, a table that is patched, never rebuilt, and the latest events.
import { $, banner, duration, events, get, groupPage, h, head, looks, number, patch, refresh, setClass, setText, short, stateClass, tiles } from "./common.js";

const STEP = 300;
const REMEMBERED = 60;
const trends = new Map();
const order = { name: "attention", down: true };
let shown = STEP;
let last = null;

const members = (group) => group.classic_members + group.consumer_members;
const mixed = (group) => group.phase === "upgrading" || group.phase === "downgrading";
const moving = (group) => group.rebalancing_since !== null || !["Stable", "Empty", "Dead"].includes(group.state);
const alarm = (group) => group.duplicate_partitions > 0;
const settled = (group) => group.state === "Stable";
const alert = (group) => group.leftovers > 0 || group.phase === "blocked" || group.absent_members > 0 || (settled(group) && group.unassigned_partitions > 0);
const attention = (group) => (alarm(group) ? 1000 : 0) + (alert(group) ? 100 : 0) + (moving(group) ? 20 : 0) + (mixed(group) ? 10 : 0);

const FILTERS = {
  "": () => true,
  attention: (group) => attention(group) > 0,
  lagging: (group) => group.lag > 0,
  moving,
  mixed,
  classic: (group) => group.type === "classic" && !group.simple,
  consumer: (group) => group.type === "consumer",
  share: (group) => group.type === "share",
  streams: (group) => group.type === "streams",
  empty: (group) => group.state === "Empty",
};

const COLUMNS = [
  { name: "attention", label: "!", title: "What needs attention first", look: "mark", sort: attention },
  { name: "group", label: "Group", sort: (group) => group.group },
  { name: "type", label: "Type", roomy: true, sort: (group) => group.type },
  { name: "state", label: "State", sort: (group) => group.state },
  { name: "members", label: "Members", number: true, title: "Members that use the classic + the consumer protocol", sort: members },
  { name: "lag", label: "Lag", number: true, title: "Records not yet committed, all partitions", sort: (group) => group.lag ?? -1 },
  { name: "seconds", label: "Lag time", number: true, title: "Age of the oldest record not yet committed", sort: (group) => group.max_lag_seconds ?? (group.lag ? 1e12 : -1) },
  { name: "trend", label: "Trend", roomy: true, title: "Lag over the last minute" },
  { name: "phase", label: "Migration", title: "From the classic to the consumer protocol", sort: (group) => `${mixed(group) ? 0 : 1}${group.phase}` },
  { name: "rebalances", label: "Rebalances", number: true, roomy: true, title: "Completed", sort: (group) => group.rebalances },
  { name: "epoch", label: "Epoch", number: true, roomy: true, look: "spacious", title: "Group epoch, or generation of a classic group", sort: (group) => group.epoch },
];

function sortBy(name) {
  const textual = ["group", "type", "state", "phase"].includes(name);
  order.down = order.name === name ? !order.down : !textual;
  order.name = name;
  render();
}

function makeRow(group) {
  const row = h("tr");
  for (const column of COLUMNS) row.append(h("td", { className: looks(column) }));
  const [mark, name, , state, , , , trend, phase] = row.cells;
  mark.append(h("span", { className: "hidden" }));
  setClass(name, "group");
  name.append(h("a", { href: groupPage(group.group), title: group.group }, group.group || "(empty name)"), h("div", { className: "notes" }));
  state.append(h("span"));
  phase.append(h("div", { className: "migration" }, h("progress", { hidden: true, max: 1, value: 0 }), h("span")));
  trend.append(spark());
  return row;
}

function updateRow(row, group) {
  const [mark, name, type, state, count, lag, seconds, trend, phase, rebalances, epoch] = row.cells;
  setClass(row, alarm(group) ? "alarm" : alert(group) ? "alert" : "");
  setText(mark.firstChild, alarm(group) ? "alarm" : alert(group) ? "warning" : "");
  setText(name.lastChild, notes(group));
  setText(type, group.simple ? "simple" : group.type);
  setText(state.firstChild, group.state);
  setClass(state.firstChild, stateClass(group.state));
  setText(epoch, number(group.epoch));
  setText(count, mixed(group) ? `${group.classic_members} + ${group.consumer_members}` : number(members(group)));
  migration(phase.firstChild, group);
  setText(lag, short(group.lag));
  setClass(lag, group.lag ? "number" : "number zero");
  setText(seconds, duration(group.max_lag_seconds));
  setClass(seconds, group.max_lag_seconds ? "number" : "number zero");
  seconds.title = group.lag && group.max_lag_seconds === null ? "A partition's commit is older than the sampled history" : "";
  drawTrend(trend.firstChild, trends.get(group.group) ?? []);
  setText(rebalances, number(group.rebalances));
}

function migration(element, group) {
  const [bar, text] = element.children;
  const concerned = group.type === "classic" || group.type === "consumer";
  bar.hidden = !mixed(group);
  if (mixed(group)) {
    bar.max = members(group) || 1;
    bar.value = group.consumer_members;
    setClass(bar, group.phase === "downgrading" ? "mixed" : "");
    bar.setAttribute("aria-label", `${group.consumer_members} of ${members(group)} members use the consumer protocol`);
    setText(text, `${group.phase} ${group.consumer_members}/${members(group)}`);
  } else setText(text, concerned && !group.simple ? group.phase : "–");
  setClass(text, mixed(group) || group.phase === "blocked" ? "" : "zero");
}

function notes(group) {
  const found = [];
  if (group.duplicate_partitions) found.push(`${group.duplicate_partitions} owned twice`);
  if (group.rebalancing_since !== null && last) found.push(`rebalancing ${duration(Math.max(0, last.time - group.rebalancing_since) / 1000)}`);
  if (group.unassigned_partitions) found.push(`${group.unassigned_partitions} unassigned`);
  if (group.absent_members) found.push(`${group.absent_members} static away`);
  if (group.leftovers) found.push(`${group.leftovers} records left over`);
  if (group.phase === "blocked") found.push("upgrade blocked");
  return found.join(", ");
}

const SVG = "http://www.w3.org/2000/svg";
function spark() {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 60 20");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("aria-hidden", "true");
  picture.append(document.createElementNS(SVG, "path"));
  return picture;
}

function drawTrend(picture, values) {
  const most = Math.max(...values, 1);
  const line = values.length < 2 || !values.some((value) => value)
    ? "" : values.map((value, at) => `${at ? "L" : "M"}${((at * 60) / (values.length - 1)).toFixed(1)} ${(19 - (18 * value) / most).toFixed(1)}`).join("");
  if (picture.firstChild.getAttribute("d") !== line) picture.firstChild.setAttribute("d", line);
  const before = values[0] ?? 0;
  const now = values.at(-1) ?? 0;
  const look = now > before * 1.2 + 10 ? "up" : now < before * 0.8 - 10 ? "down" : "";
  picture.setAttribute("class", `spark ${look}`);
}

function remember(groups) {
  const here = new Set();
  for (const group of groups) {
    here.add(group.group);
    if (group.lag === null) continue;
    const values = trends.get(group.group) ?? [];
    values.push(group.lag);
    if (values.length > REMEMBERED) values.shift();
    trends.set(group.group, values);
  }
  for (const name of trends.keys()) if (!here.has(name)) trends.delete(name);
}

function summary(groups) {
  const sum = (of) => groups.reduce((total, group) => total + of(group), 0);
  const count = (of) => sum((group) => (of(group) ? 1 : 0));
  const duplicates = sum((group) => group.duplicate_partitions);
  const between = groups.filter(mixed);
  const rolling = sum((group) => (group.type === "classic" || group.type === "consumer" ? members(group) : 0));
  const upgraded = sum((group) => (group.type === "consumer" ? group.consumer_members : 0));
  const slowest = groups.reduce((worst, group) => ((group.max_lag_seconds ?? -1) > (worst?.max_lag_seconds ?? -1) ? group : worst), null);
  return [
    { name: "Groups", value: number(groups.length), note: `${number(count(settled))} stable, ${number(count((group) => group.state === "Empty"))} empty` },
    { name: "Members", value: number(sum(members)), note: `${number(sum((group) => group.classic_members))} classic, ${number(sum((group) => group.consumer_members))} consumer` },
    { name: "Consumer protocol", value: rolling ? `${Math.round((100 * upgraded) / rolling)} %` : "–", note: between.length ? `${between.length} between protocols` : `${number(upgraded)} of ${number(rolling)} members`, progress: [upgraded, rolling || 1], look: between.length ? "alert" : "" },
    { name: "Rebalancing", value: number(count(moving)), note: `${number(sum((group) => group.rebalances))} completed`, look: count(moving) ? "alert" : "" },
    { name: "Lag", value: short(sum((group) => group.lag ?? 0)), note: slowest && slowest.max_lag_seconds > 0 ? `longest ${duration(slowest.max_lag_seconds)}` : "nobody waits" },
    { name: "Partitions owned twice", value: number(duplicates), note: duplicates ? "each read by two members" : "every owner is alone", look: duplicates ? "alarm" : "" },
  ];
}

function render() {
  if (!last) return;
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = FILTERS[$("filter").value];
  const groups = last.groups.filter((group) => wanted(group) && words.every((word) => group.group.toLowerCase().includes(word)));
  const column = COLUMNS.find((each) => each.name === order.name);
  const sign = order.down ? -1 : 1;
  const keyed = groups.map((group) => [column.sort(group), group]);
  keyed.sort(([a, one], [b, other]) => (a < b ? -sign : a > b ? sign : one.group < other.group ? -1 : 1));
  patch($("groups").tBodies[0], keyed.slice(0, shown).map(([, group]) => group), (group) => group.group, makeRow, updateRow);
  for (const cell of $("groups").tHead.rows[0].cells) {
    if (cell.dataset.name) cell.setAttribute("aria-sort", cell.dataset.name === order.name ? (order.down ? "descending" : "ascending") : "none");
  }
  setText($("count"), groups.length === last.groups.length ? number(groups.length) : `${number(groups.length)} of ${number(last.groups.length)}`);
  $("more").hidden = groups.length <= shown;
  setText($("more"), `Show ${number(Math.min(STEP, groups.length - shown))} more of ${number(groups.length)}`);
  $("empty").hidden = groups.length > 0;
  setText($("empty"), last.groups.length ? "No group matches." : "There are no groups yet. They appear as soon as a consumer joins or commits.");
}

head($("groups"), COLUMNS, sortBy);
$("search").addEventListener("input", () => { shown = STEP; render(); });
$("filter").addEventListener("change", () => { shown = STEP; render(); });
$("more").addEventListener("click", () => { shown += STEP; render(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select")) {
    event.preventDefault();
    $("search").focus();
  }
  if (event.key === "Escape" && event.target === $("search")) {
    $("search").value = "";
    render();
  }
});

refresh(async () => {
  [, last] = await get("/api/v1/overview");
  banner(last.ready, last.missing, last.end_offset_age_seconds);
  remember(last.groups);
  tiles($("tiles"), summary(last.groups));
  render();
  events($("events"), last.events, true);
});
