// A roll under way: may it go on? The gate's verdict with every reason, and beside it what an operator watches.
//
//     verdict       reasons                          shown as
//     open          none that stops                  Go on
//     closed        only rebalances under way        Wait
//     closed        any other                        Stop
//     cannot_tell   something is out of reach        Cannot tell
//     any           the page is under doubt          Cannot tell (`doubt` of live.js)
import { $, duration, get, groupPage, h, head, isMoving, lagSum, lagTiles, lagTime, lagUnknown, localTime, looks, number, patch, percent, plural, row, setClass, setText, setTitle, tiles, total, unreadLook, visible } from "./common.js";
import { Timeline, since } from "./chart.js";
import { bands, list, merged } from "./events.js";
import { believed, doubt, doubtOf, follow, lacking, namesMayLack, now, shows } from "./live.js";
import { Trends, drawTrend } from "./trends.js";

const MOST_ROWS = 100;
const MOST_NAMED = 8;
const MOST_EVENTS = 1000;
const GATE_MS = 2000;
const GATE_ANYWAY_MS = 10000;
const LONGEST_QUERY = 60000;
const SPAN_MS = 300000;
const HOUR_MS = 3600000;
const AWAITED_MS = 600000;
const LEAVES = new Set(["member_left", "member_fenced", "static_member_absent"]);
const MOST_REPORTED = 500;

const QUESTIONS = { upgrade: "May the next consumer be rolled to the consumer protocol?", downgrade: "May brokers be rolled to a release without the consumer protocol?" };
const WORDS = {
  open: ["Go on", "good", "Nothing stops the roll."],
  wait: ["Wait", "moving", "A rebalance is under way, or just ended. Go on when the group has come to rest."],
  closed: ["Stop", "bad", "Going on would fail, or lose something."],
  cannot_tell: ["Cannot tell", "moving", "What would decide it is out of reach."],
  unknown: ["…", "", ""],
};
const EFFECTS = { stop: "stops", unknown: "not known", note: "to know" };
const PHASES = ["upgraded", "upgrading", "downgrading", "blocked", "classic", "downgraded"];

const known = new Map();
const trends = new Trends();
const timeline = new Timeline($("timeline"), "Lag, rebalances and conversions of the groups of this roll");
const query = new URLSearchParams(location.search);
const BLOCKERS = JSON.parse($("groups").dataset.blockers);
const KINDS = new Set(JSON.parse($("groups").dataset.kinds));
let happened = [];
let gate = null;
let gateOf = ""; // what of the groups the gate was judged by
let pending = null; // an answer of a moment whose rows are yet to come
let version = null; // of the rows
let gateAt = 0;
let gateDue = true;
let typed = false;
let picked = false;

const direction = () => document.querySelector("#direction input:checked").value;
const members = (group) => group.classic_members + group.consumer_members;
const membersBefore = (group) => members(group) + group.missing_members;
const mixed = (group) => protocols(group) && (group.phase === null || group.phase === "upgrading" || group.phase === "downgrading");
const mixedFor = (since) => (since === null ? "not known" : duration(Math.max(0, now() - since) / 1000));
const protocols = (group) => !group.simple && (group.type === "classic" || group.type === "consumer");
const modern = (group) => group.type === "share" || group.type === "streams";

/** Groups the roll is about: of consumers those with members or that lost them in a roll, of brokers all that a former release would not know. */
function concerned() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const down = direction() === "downgrade";
  // Members of Connect groups and the like are not consumers: they are never upgraded.
  const rolls = (group) => (down ? protocols(group) || modern(group) : protocols(group) && (members(group) > 0 || group.missing_members) && !group.out_of_scope);
  return (shows() ? [...known.values()] : []).filter((group) => rolls(group) && words.every((word) => group.group.toLowerCase().includes(word)));
}

const COLUMNS = [
  { name: "group", label: "Group", look: "group" },
  { name: "phase", label: "Phase", look: "phase" },
  { name: "mixed", label: "Mixed for", number: true, title: "Members of both protocols" },
  { name: "blockers", label: "In the way", roomy: true, look: "wide" },
  { name: "conversions", label: "Up / down", number: true, roomy: true, look: "spacious", title: "Completed conversions in either direction" },
  { name: "rebalances", label: "Rebalances", number: true, roomy: true },
  { name: "lag", label: "Lag", number: true, look: "lag" },
  { name: "seconds", label: "Lag time", number: true, roomy: true, look: "spacious" },
  { name: "trend", label: "Trend", roomy: true, look: "trend", title: "Lag over the last five minutes" },
];

/** How far a group is. Share and streams groups have a protocol of their own, and are nowhere on the way. */
function phaseText(group) {
  if (!protocols(group)) return `${group.type}, ${plural(members(group), "member")}`;
  return `${group.phase ?? "mixed"} ${group.consumer_members}/${membersBefore(group)}`;
}

function makeRow(group) {
  const made = row(COLUMNS);
  made.cells[0].append(h("a", { href: groupPage(group.group), title: visible(group.group) }, h("bdi", {}, visible(group.group))), h("ul", { className: "looks" }));
  made.cells[1].append(h("div", { className: "migration" }, h("progress", { max: 1, value: 0 }), h("span")));
  return made;
}

function updateRow(made, group) {
  const [name, phase, age, blockers, conversions, rebalances, lag, seconds, trend] = made.cells;
  setClass(made, group.doubt ? "unread" : group.attention[0]?.severity ?? "");
  looks(name.lastChild, [...unreadLook(group), ...group.attention].filter(({ code }) => code !== "upgrading" && code !== "downgrading"), now());
  const [bar, text] = phase.firstChild.children;
  [bar.value, bar.max] = [group.consumer_members, membersBefore(group) || 1];
  setClass(bar, group.phase === "downgrading" ? "back" : "");
  bar.setAttribute("aria-label", `${group.consumer_members} of ${membersBefore(group)} members use the consumer protocol`);
  setText(text, phaseText(group));
  setText(age, mixed(group) ? mixedFor(group.mixed_since) : "–");
  setText(blockers, [...group.blockers.map((each) => BLOCKERS[each] ?? each), group.leftovers && `${number(group.leftovers)} left over`].filter(Boolean).join("; ") || "–");
  setText(conversions, `${number(group.upgrades)} / ${number(group.downgrades)}`);
  setText(rebalances, number(group.rebalances));
  setText(lag, lagSum(group));
  setTitle(lag, lagUnknown(group));
  setText(seconds, lagTime(group.max_lag_seconds, group.max_lag_seconds_at_least));
  drawTrend(trend, trends.of(group.group), group.lag, group.attention);
}

function urgency(group) {
  const first = ["critical", "warning"].indexOf(group.attention[0]?.severity);
  const done = direction() === "upgrade" ? group.phase === "upgraded" : !modern(group) && group.type === "classic" && !group.leftovers;
  return [first < 0 ? 2 : first, mixed(group) ? 0 : 1, done ? 1 : 0];
}

function sorted(groups) {
  const keyed = groups.map((group) => [urgency(group), group]);
  const order = ([one, a], [other, b]) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2] || (a.group < b.group ? -1 : 1);
  return keyed.sort(order).map(([, group]) => group);
}

/** Why a sum over these groups may lack something: one of them is not read, or some are not known by name. */
const partly = (groups) => groups.map(doubtOf).find((why) => why !== null) ?? ($("search").value && !namesMayLack() ? null : lacking());

function progress(groups) {
  const [all, up] = [groups, groups].map((each, at) => each.reduce((total, group) => total + (at ? group.consumer_members : membersBefore(group)), 0));
  const down = direction() === "downgrade";
  const done = down ? all - up : up;
  const why = doubt() ?? partly(groups);
  setText($("members-done"), all && why === null ? `${percent(done, all)} %` : "–");
  setText($("members-note"), why === null ? `${number(done)} of ${plural(all, "member")} on the ${down ? "classic" : "consumer"} protocol` : `cannot tell: ${why}`);
  [$("members-bar").value, $("members-bar").max] = [why === null ? done : 0, all || 1];
  $("members-bar").setAttribute("aria-label", $("members-note").textContent);
  const counted = (why === null ? PHASES : []).map((phase) => [phase, groups.filter((group) => group.phase === phase).length]).filter(([, count]) => count);
  patch($("phases"), counted, ([phase]) => phase, ([phase]) => h("span", { className: phase }), (part, [phase, count]) => {
    part.style.flexGrow = count;
    part.title = `${plural(count, "group")} ${phase}`;
  });
  $("phases").setAttribute("aria-label", counted.map(([phase, count]) => `${count} ${phase}`).join(", "));
  patch($("phase-legend"), counted, ([phase]) => phase, ([phase]) => h("li", {}, h("span", { className: `swatch ${phase}` }), h("span")), (item, [phase, count]) => setText(item.lastChild, ` ${number(count)} ${phase}`));
}

function summary(groups) {
  const sum = (of) => total(groups, of);
  const between = groups.filter(mixed);
  const oldest = between.some((group) => group.mixed_since === null) ? null : Math.min(...between.map((group) => group.mixed_since));
  const busy = groups.filter((group) => group.rebalancing_since !== null || (group.rebalances === null && isMoving(group.state))).length;
  const [blocked, leftovers, twice] = [sum((group) => (group.blockers.length ? 1 : 0)), sum((group) => group.leftovers), sum((group) => group.duplicate_partitions ?? 0)];
  const alone = groups.every((group) => group.duplicate_partitions !== null);
  return [
    { name: "Between protocols", value: number(between.length), note: between.length ? (oldest === null ? "since when is not known" : `for ${mixedFor(oldest)}`) : "no mixed group", look: between.length ? "active" : "" },
    { name: "Conversions", value: `${number(sum((group) => group.upgrades))} / ${number(sum((group) => group.downgrades))}`, note: "up / down" },
    { name: "Blocked", value: number(blocked), note: blocked ? "brokers would refuse" : "none would be refused", look: blocked && direction() === "upgrade" ? "warning" : "" },
    { name: "Left over", value: number(leftovers), note: "after downgrades", look: leftovers ? "warning" : "" },
    { name: "Rebalancing", value: number(busy), note: `${number(sum((group) => group.rebalances))} completed`, look: busy ? "active" : "" },
    { name: "Owned twice", value: number(twice || (alone ? 0 : null)), note: twice ? "partitions" : alone ? "every owner is alone" : "polls saw none", look: twice ? "critical" : "" },
    ...lagTiles(groups),
  ];
}

function drawVerdict() {
  setText($("question"), QUESTIONS[direction()]);
  // Under doubt only what keeps the answer from being known is of use.
  const reasons = (gate?.reasons ?? []).filter(({ effect }) => (doubt() === null && !namesMayLack()) || effect === "unknown");
  const stops = reasons.filter(({ effect }) => effect === "stop");
  // Of names that are searched for, some may not be known: then the gate was asked about others only.
  const why = doubt() ?? (namesMayLack() ? lacking() : null);
  const verdict = why !== null ? "cannot_tell" : gate === null ? "unknown" : gate.verdict === "closed" && stops.every(({ code }) => code === "rebalancing") ? "wait" : gate.verdict;
  const [word, look, general] = WORDS[verdict];
  const sentence = why === null ? general : `Not known: ${why}.`;
  setText($("word"), word);
  const others = verdict === "closed" && direction() === "upgrade" && !$("search").value;
  setText($("sentence"), others ? `${sentence} Search for the groups of this roll to leave others out.` : sentence);
  setClass($("verdict"), `card verdict ${look}`);
  $("verdict").dataset.verdict = verdict;
  const kinds = new Map();
  for (const reason of reasons) {
    const kind = `${reason.effect} ${reason.code}`;
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(reason);
  }
  const rank = ([kind]) => Object.keys(EFFECTS).findIndex((effect) => kind.startsWith(effect));
  patch($("reasons"), [...kinds].sort((one, other) => rank(one) - rank(other)), ([kind]) => kind, ([, [{ effect }]]) => h("li", { className: effect }, h("span", { className: "effect" }, EFFECTS[effect]), h("div")), (item, [, alike]) => drawReason(item.lastChild, alike));
}

/** One reason; of many groups, their names and what is said of the first. */
function drawReason(place, alike) {
  const key = JSON.stringify(alike);
  if (place.key === key) return;
  place.key = key;
  const named = alike.filter(({ group }) => group !== null);
  const links = named.slice(0, MOST_NAMED).flatMap(({ group }, at) => [...(at ? [", "] : []), h("a", { href: groupPage(group) }, h("bdi", {}, visible(group)))]);
  if (named.length > MOST_NAMED) links.push(` and ${number(named.length - MOST_NAMED)} more`);
  const who = alike.flatMap((reason) => reason.members ?? []).map((member) => visible(member.instance_id ?? member.client_id ?? member.member_id ?? ""));
  const texts = [...new Set(alike.map(({ text }) => visible(text)))];
  const members_ = who.length ? ` (${[...new Set(who)].slice(0, MOST_NAMED).join(", ")}${who.length > MOST_NAMED ? " …" : ""})` : "";
  const text = `${texts[0]}${members_}${texts.length > 1 ? " and alike" : ""}`;
  place.replaceChildren(h("span", { className: "text" }, text), ...(links.length ? [h("span", { className: "names" }, ...links)] : []));
}

function drawTimeline(groups) {
  const names = new Set(groups.map((group) => group.group));
  const to = now();
  const mine = happened.filter((event) => names.has(event.group) && event.time >= to - 2 * SPAN_MS);
  const measured = groups.filter((group) => group.lag !== null);
  const from = since(to - SPAN_MS, [trends.times[0], mine[0]?.time], to);
  const lag = [...trends.sum([...names]), [to, measured.length && !groups.some((group) => group.unknown_lags) ? total(measured, (group) => group.lag) : null]];
  const panels = [{ name: "Lag, records", lines: [{ name: "lag of all of them", look: "line-0", points: lag }] }];
  timeline.draw({ from, to, panels, bands: bands(mine, true) });
}

async function readGate(groups) {
  const names = $("search").value && direction() === "upgrade" ? groups.map((group) => group.group) : [];
  const question = () => `${direction()} ${$("search").value}`;
  const [asked, of] = [direction(), question()];
  const list_ = `${new URLSearchParams(names.map((name) => ["group", name]))}`;
  // Too many to name them: the verdict is then on all groups, which is the more careful one.
  const [status, answer] = await get(`/api/v1/gate/${asked}?as_shown=1${list_ && list_.length < LONGEST_QUERY ? `&${list_}` : ""}`);
  gateAt = performance.now();
  pending = status === 200 && of === question() ? answer : null;
}

/** What of the groups a gate is judged by: a verdict stands beside the rows that it is of, or it does not stand. */
const judged = (groups) => JSON.stringify(groups.map((group) => [group.group, group.type, group.phase, group.state, group.classic_members, group.consumer_members, group.missing_members, group.rebalancing_since, group.attention.some(({ code }) => code === "rebalance_stuck"), group.blockers, group.duplicate_partitions, group.leftovers, group.doubt?.reason]));

function takePending(of) {
  if (pending !== null && pending.version === version) [gate, gateOf, pending] = [pending, of, null];
}

/** Ask the gate again where its answer may be another: at once if the groups changed. */
async function ask() {
  const groups = concerned();
  const of = judged(groups);
  takePending(of);
  const waited = performance.now() - gateAt;
  // A group that is being rolled rests for a while before the gate opens: nothing happens then that would be news.
  const waits = gate?.reasons.some(({ code }) => code === "rebalancing");
  if (gate === null || of !== gateOf || ((gateDue || waits) && waited > GATE_MS) || waited > GATE_ANYWAY_MS) {
    gateDue = false;
    await readGate(groups);
  }
}

async function draw(asks = false) {
  if (asks) await ask();
  const groups = concerned();
  const of = judged(groups);
  takePending(of);
  if (of !== gateOf) gate = null;
  drawVerdict();
  progress(groups);
  tiles($("tiles"), believed(summary(groups)));
  drawTimeline(groups);
  const shown = sorted(groups).slice(0, MOST_ROWS);
  patch($("groups").tBodies[0], shown, (group) => group.group, makeRow, updateRow);
  setText($("count"), groups.length > shown.length ? `${number(shown.length)} of ${number(groups.length)}, those under way first` : shows() ? number(groups.length) : "–");
  $("empty").hidden = groups.length > 0;
  setText($("empty"), (doubt() ?? lacking()) === null ? "No group is concerned." : `Not known: ${doubt() ?? lacking()}.`);
  drawReport(groups);
  list($("events"), happened.filter(({ kind }) => KINDS.has(kind)).slice(-40), true);
}

/** The event with which the last roll began: members leave in whose place the first one of the other protocol comes (`reports/rolls.py`). */
function beginning(events) {
  const started = events.findLast(({ kind }) => kind.endsWith("grade_started"));
  if (!started) return undefined;
  const before = events.slice(0, events.indexOf(started));
  const former = before.findLastIndex(({ kind, time }) => /grade_(started|completed)$/.test(kind) || (kind === "member_joined" && time < started.time));
  return before.slice(former + 1).find(({ kind, time, detail }) => LEAVES.has(kind) && !detail.cleared && started.time - time <= AWAITED_MS) ?? started;
}

/** The report's groups: of the one last rolled, since then, unless another group or time is chosen; without a roll of an hour. */
function drawReport(groups) {
  const names = sorted(groups).slice(0, MOST_REPORTED).map((group) => group.group);
  patch($("report-group"), names, (name) => name, (name) => h("option", { value: name }, visible(name)));
  const rolled = happened.findLast(({ kind, group }) => /grade_(started|completed)$/.test(kind) && names.includes(group));
  if (!picked && rolled) $("report-group").value = rolled.group;
  const chosen = $("report-group").value;
  if (!typed && document.activeElement !== $("report-since")) {
    const begun = beginning(happened.filter(({ group }) => group === chosen));
    $("report-since").value = localTime(begun ? begun.time - 1000 : now() - HOUR_MS);
  }
  const since = Date.parse($("report-since").value);
  for (const [id, format] of [["report-markdown", "markdown"], ["report-html", "html"]]) {
    const link = $(id);
    if (chosen && !Number.isNaN(since)) link.href = `/api/v1/report/?${new URLSearchParams({ name: chosen, since, format })}`;
    else link.removeAttribute("href");
  }
}

function choose() {
  const chosen = new URLSearchParams(Object.entries({ direction: direction(), q: $("search").value }).filter(([, value]) => value));
  history.replaceState(null, "", `?${chosen}`);
  gate = pending = null;
  draw(doubt() === null);
}

head($("groups"), COLUMNS);
$("search").value = query.get("q") ?? "";
const wanted = document.querySelector(`#direction input[value="${query.get("direction") === "downgrade" ? "downgrade" : "upgrade"}"]`);
wanted.checked = true;
$("direction").addEventListener("change", choose);
$("search").addEventListener("input", choose);
$("report-group").addEventListener("change", () => {
  picked = true;
  drawReport(concerned());
});
$("report-since").addEventListener("input", () => {
  typed = true;
  drawReport(concerned());
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input")) {
    event.preventDefault();
    $("search").focus();
  }
});

async function read() {
  const [[, overview], [, past]] = await Promise.all([get("/api/v1/overview"), get(`/api/v1/events`)]);
  known.clear();
  for (const group of overview.groups) known.set(group.group, group);
  trends.read(overview.trends, known.keys());
  happened = merged([], past.events, MOST_EVENTS);
  gateDue = true;
}

follow(null, read, async ({ groups, gone, events, version: now_ }) => {
  version = now_;
  for (const name of gone) known.delete(name);
  for (const group of groups) known.set(group.group, group);
  trends.take(known, now());
  happened = merged(happened, events, MOST_EVENTS);
  gateDue ||= groups.length > 0 || gone.length > 0 || gate?.verdict === "cannot_tell";
  await draw(true);
}, draw);
