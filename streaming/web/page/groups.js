// All groups: what needs a look first, then the rest; a table of one page that is patched, never rebuilt.
import { $, cellLook, get, groupPage, h, head, isMoving, lagSum, lagTiles, lagTime, lagUnknown, leastLag, looks, number, patch, percent, plural, row, setClass, setText, setTitle, stateClass, tiles, total, unreadLook, visible } from "./common.js";
import { list, merged } from "./events.js";
import { believed, doubt, follow, lacking, now, shows } from "./live.js";
import { Trends, drawTrend } from "./trends.js";

const PAGE = 100;
const LATEST = 40;
const SEARCH_MS = 5000;
const RANKS = { critical: 1000, warning: 100, info: 10 };

const known = new Map();
const trends = new Trends();
const choice = { ...{ q: "", show: "", sort: "attention", down: "1", page: "0" }, ...Object.fromEntries(new URLSearchParams(location.search)) };
let latest = [];
let leftOut = 0;

const members = (group) => group.classic_members + group.consumer_members;
const concerned = (group) => !group.simple && (group.type === "classic" || group.type === "consumer");
const mixed = (group) => (group.type === "classic" || group.type === "consumer") && (group.phase === null || group.phase === "upgrading" || group.phase === "downgrading");
const moving = (group) => group.rebalancing_since !== null || isMoving(group.state);
const worst = (group) => group.attention[0]?.severity ?? "";
const attention = (group) => group.attention.reduce((total, look) => total + RANKS[look.severity], group.doubt ? RANKS.warning : 0);
const pressing = (group) => Boolean(group.doubt) || worst(group) === "critical" || worst(group) === "warning";

const FILTERS = {
  "": () => true,
  attention: pressing,
  lagging: (group) => leastLag(group) > 0,
  moving,
  mixed,
  classic: (group) => group.type === "classic" && !group.simple,
  consumer: (group) => group.type === "consumer",
  share: (group) => group.type === "share",
  streams: (group) => group.type === "streams",
  empty: (group) => group.state === "Empty",
};

const COLUMNS = [
  { name: "attention", label: "!", said: "urgency", title: "What needs a look first", look: "mark", sort: attention },
  { name: "group", label: "Group", look: "group", sort: (group) => group.group },
  { name: "state", label: "State", look: "state", sort: (group) => group.state },
  { name: "type", label: "Type", roomy: true, look: "middling", sort: (group) => group.type },
  { name: "members", label: "Members", number: true, roomy: true, title: "Between protocols: classic + consumer", sort: members },
  { name: "lag", label: "Lag", number: true, look: "lag", title: "Records not yet committed, all partitions", sort: (group) => leastLag(group) ?? -1 },
  { name: "seconds", label: "Lag time", number: true, look: "seconds", title: "Age of the oldest record not yet committed", sort: (group) => group.max_lag_seconds ?? -1 },
  { name: "trend", label: "Trend", roomy: true, look: "trend", title: "Lag over the last five minutes" },
  { name: "phase", label: "Migration", look: "phase", title: "From the classic to the consumer protocol", sort: (group) => `${mixed(group) ? 0 : 1}${group.phase ?? "mixed"}` },
  { name: "rebalances", label: "Rebalances", number: true, roomy: true, look: "spacious", title: "Completed", sort: (group) => group.rebalances ?? -1 },
  { name: "epoch", label: "Epoch", number: true, roomy: true, look: "spacious", title: "Group epoch, or generation of a classic group", sort: (group) => group.epoch ?? -1 },
];
const TEXTUAL = new Set(["group", "type", "state", "phase"]);

function makeRow(group) {
  const made = row(COLUMNS);
  const cell = cells(made);
  cell.attention.append(h("span", { className: "hidden" }));
  cell.group.append(h("a", { href: groupPage(group.group), title: visible(group.group) }, h("bdi", {}, visible(group.group))), h("ul", { className: "looks" }));
  cell.state.append(h("span"));
  cell.phase.append(h("div", { className: "migration" }, h("progress", { hidden: true, max: 1, value: 0 }), h("span")));
  return made;
}

const cells = (made) => (made.byName ??= Object.fromEntries(COLUMNS.map(({ name }, at) => [name, made.cells[at]])));

function updateRow(made, group) {
  const cell = cells(made);
  setClass(made, group.doubt ? "unread" : worst(group));
  setText(cell.attention.firstChild, group.doubt ? "unknown" : worst(group));
  looks(cell.group.lastChild, [...unreadLook(group), ...group.attention], now());
  setText(cell.state.firstChild, group.doubt ? "unknown" : group.state);
  setTitle(cell.state.firstChild, group.doubt ? `was ${group.state}` : "");
  setClass(cell.state.firstChild, group.doubt ? "" : stateClass(group.state));
  setText(cell.type, group.simple ? "commits only" : group.type);
  setText(cell.members, mixed(group) ? `${group.classic_members} + ${group.consumer_members}` : number(members(group)));
  setText(cell.lag, lagSum(group));
  setTitle(cell.lag, lagUnknown(group));
  setClass(cell.lag, `${cellLook(COLUMNS[5])}${leastLag(group) ? "" : " zero"}`);
  setText(cell.seconds, lagTime(group.max_lag_seconds, group.max_lag_seconds_at_least));
  setClass(cell.seconds, `${cellLook(COLUMNS[6])}${group.max_lag_seconds ? "" : " zero"}`);
  setTitle(cell.seconds, group.max_lag_seconds_at_least ? `At least: ${lagUnknown(group) || "a commit is older than what was sampled"}` : "");
  drawTrend(cell.trend, trends.of(group.group), group.lag, group.attention);
  drawPhase(cell.phase.firstChild, group);
  setText(cell.rebalances, number(group.rebalances));
  setText(cell.epoch, number(group.epoch));
}

function drawPhase(element, group) {
  const [bar, text] = element.children;
  bar.hidden = !mixed(group);
  if (mixed(group)) {
    [bar.value, bar.max] = [group.consumer_members, members(group) || 1];
    setClass(bar, group.phase === "downgrading" ? "back" : "");
    bar.setAttribute("aria-label", `${group.consumer_members} of ${members(group)} members use the consumer protocol`);
    setText(text, `${group.phase ?? "mixed"} ${group.consumer_members}/${members(group)}`);
  } else if (group.out_of_scope) setText(text, "out of scope");
  else setText(text, concerned(group) ? group.phase ?? "mixed" : "–");
  setClass(text, mixed(group) ? "" : "zero");
}

function summary(groups) {
  const sum = (of) => total(groups, of);
  const count = (of) => sum((group) => (of(group) ? 1 : 0));
  const critical = count((group) => worst(group) === "critical");
  const warnings = count((group) => worst(group) === "warning");
  const [busy, between] = [count(moving), count(mixed)];
  const rolling = sum((group) => (concerned(group) ? members(group) : 0));
  const upgraded = sum((group) => (group.type === "consumer" ? group.consumer_members : 0));
  const look = critical ? "critical" : warnings ? "warning" : "fine";
  return [
    { name: "Need a look", value: critical + warnings ? number(critical + warnings) : "none", note: critical + warnings ? `${number(critical)} critical, ${plural(warnings, "warning")}` : "no alarms", look },
    { name: "Groups", value: number(groups.length), note: `${number(count((group) => group.state === "Stable"))} stable, ${number(count((group) => group.state === "Empty"))} empty` },
    { name: "Rebalancing", value: number(busy), note: `${number(sum((group) => group.rebalances))} completed`, look: busy ? "active" : "" },
    ...lagTiles(groups),
    { name: "Consumer protocol", value: rolling ? `${percent(upgraded, rolling)} %` : "–", note: between ? `${plural(between, "group")} between protocols` : `${number(upgraded)} of ${plural(rolling, "member")}`, progress: [upgraded, rolling || 1], look: between ? "active" : "" },
  ];
}

const ASKED = { topic: "topic", client: "client_id", host: "host", instance: "instance_id", owner: "owner" };
let searched = null;

/** The words of the search box: those like `topic:orders` are the monitor's to answer, the others are parts of names. */
function words() {
  const asked = new URLSearchParams();
  const parts = choice.q.split(/\s+/).filter((word) => {
    const [, of, value] = /^(\w+):(.+)$/.exec(word) ?? [];
    if (!Object.hasOwn(ASKED, of ?? "")) return word;
    asked.set(ASKED[of], value);
    return false;
  });
  return { asked: asked.toString(), parts: parts.map((word) => word.toLowerCase()) };
}

async function ask() {
  const { asked } = words();
  if (!asked) searched = null;
  else if (searched?.asked !== asked || performance.now() - searched.at > SEARCH_MS) {
    const [status, answer] = await get(`/api/v1/search?${asked}`);
    if (status === 200 && words().asked === asked) searched = { asked, at: performance.now(), names: new Set(answer.groups), unknown: answer.cannot_tell };
  }
}

function chosen() {
  const { asked, parts } = words();
  const found = (group) => !asked || (searched?.asked === asked && searched.names.has(group.group));
  const wanted = FILTERS[choice.show] ?? FILTERS[""];
  const groups = (shows() ? [...known.values()] : []).filter((group) => wanted(group) && found(group) && parts.every((word) => group.group.toLowerCase().includes(word)));
  const column = COLUMNS.find(({ name, sort }) => sort && name === choice.sort) ?? COLUMNS[0];
  const sign = choice.down ? -1 : 1;
  const keyed = groups.map((group) => [column.sort(group), group]);
  keyed.sort(([a, one], [b, other]) => (a < b ? -sign : a > b ? sign : one.group < other.group ? -1 : 1));
  return keyed.map(([, group]) => group);
}

function render() {
  const groups = chosen();
  const pages = Math.max(1, Math.ceil(groups.length / PAGE));
  const page = Math.min(Math.max(0, Number(choice.page) || 0), pages - 1);
  const shown = groups.slice(page * PAGE, (page + 1) * PAGE);
  patch($("groups").tBodies[0], shown, (group) => group.group, makeRow, updateRow);
  for (const cell of $("groups").tHead.rows[0].cells) {
    if (cell.dataset.name) cell.setAttribute("aria-sort", cell.dataset.name === choice.sort ? (choice.down ? "descending" : "ascending") : "none");
  }
  const count = groups.length === known.size ? number(groups.length) : `${number(groups.length)} of ${number(known.size)}`;
  const unknown = words().asked && searched?.unknown;
  const more = [lacking() && `not of all: ${lacking()}`, leftOut && `${number(leftOut)} left out by configuration`, unknown && `cannot tell of ${number(unknown)}`].filter(Boolean);
  setText($("count"), [shows() ? count : "–", ...more].join(", "));
  $("pager").hidden = pages < 2;
  setText($("range"), `${number(page * PAGE + 1)}–${number(page * PAGE + shown.length)} of ${number(groups.length)}`);
  $("before").disabled = page === 0;
  $("after").disabled = page === pages - 1;
  $("empty").hidden = groups.length > 0;
  setText($("empty"), !shows() || (doubt() && !known.size) ? `Not known: ${doubt()}.` : lacking() ? `Not known of all: ${lacking()}.` : known.size ? "No group matches." : "There are no groups yet. They appear as soon as a consumer joins or commits.");
}

/** What is shown is in the address, so that it can be passed on and is there again after going back. */
function choose(changes, { stay = false } = {}) {
  Object.assign(choice, stay ? {} : { page: "0" }, changes);
  const query = new URLSearchParams(Object.entries(choice).filter(([name, value]) => value && !(name === "page" && value === "0")));
  history.replaceState(null, "", `?${query}`);
  render();
}

function sortBy(name) {
  choose({ sort: name, down: choice.sort === name ? (choice.down ? "" : "1") : TEXTUAL.has(name) ? "" : "1" });
  $("order").value = name;
}

function turn(by) {
  const button = by < 0 ? $("before") : $("after");
  if (!$("pager").hidden && !button.disabled) choose({ page: `${(Number(choice.page) || 0) + by}` }, { stay: true });
}

function step(by) {
  const links = [...$("groups").tBodies[0].querySelectorAll("td.group a")];
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

const KEYS = {
  "/": () => $("search").focus(),
  j: () => step(1),
  k: () => step(-1),
  "[": () => turn(-1),
  "]": () => turn(1),
  r: () => location.assign("/roll"),
  "?": () => $("keys").showModal(),
};

head($("groups"), COLUMNS, sortBy);
$("order").append(...COLUMNS.filter(({ sort }) => sort).map(({ name, label, said }) => h("option", { value: name }, `by ${said ?? label.toLowerCase()}`)));
$("search").value = choice.q;
$("filter").value = choice.show;
$("order").value = choice.sort;
$("search").addEventListener("input", async () => {
  choose({ q: $("search").value });
  await ask();
  render();
});
$("filter").addEventListener("change", () => choose({ show: $("filter").value }));
$("order").addEventListener("change", () => sortBy($("order").value));
$("before").addEventListener("click", () => turn(-1));
$("after").addEventListener("click", () => turn(1));
$("help").addEventListener("click", KEYS["?"]);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  if (event.key === "Escape" && event.target === $("search")) {
    $("search").value = "";
    choose({ q: "" });
    $("search").blur();
  } else if (KEYS[event.key] && !event.target.closest("input, select")) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

async function read() {
  const [, overview] = await get("/api/v1/overview");
  known.clear();
  for (const group of overview.groups) known.set(group.group, group);
  trends.read(overview.trends, known.keys());
  latest = overview.events;
  leftOut = overview.left_out.groups;
}

function draw() {
  tiles($("tiles"), believed(summary([...known.values()])));
  render();
  list($("events"), latest, true);
}

follow(null, read, async ({ groups, gone, events, left_out }) => {
  leftOut = left_out.groups;
  for (const name of gone) known.delete(name);
  for (const group of groups) known.set(group.group, group);
  trends.take(known, now());
  await ask();
  latest = merged(latest, events, LATEST);
  draw();
}, draw);
