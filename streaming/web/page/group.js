// One group: who owns what, how far they are, what happened.
import { $, clock, duration, get, h, head, lagSum, lagTime, lagUnknown, looks, number, partitions, patch, ranges, row, setClass, setText, setTitle, short, size, stateClass, tiles, topicPage, unreadLook, visible } from "./common.js";
import { Timeline, since } from "./chart.js";
import { bands, list, merged } from "./events.js";
import { believed, doubt, doubtOf, follow, now, shows } from "./live.js";
import { Past } from "./past.js";
import { drawShares } from "./shares.js";
import { PARTITIONS, TASKS, drawMatrix, legend, makeMatrix, matrices, shortName } from "./matrix.js";

const STEP = 300;
const MOST_MEMBERS = 500;
const MOST_EVENTS = 300;
const HISTORY_MS = 5000;
const BREATH = 4; // a group that takes a second to fetch is fetched every fifth

const name = location.pathname.startsWith("/group/") ? decodeURIComponent(location.pathname.slice(7)) : new URLSearchParams(location.search).get("name") ?? "";
const inQuery = /^\.{0,2}$/.test(name);
const address = inQuery ? `/api/v1/groups/?name=${encodeURIComponent(name)}` : `/api/v1/groups/${encodeURIComponent(name)}`;
const timeline = new Timeline($("timeline"), "Lag, rebalances and events over time");

let live = null;
let mayBe = {}; // with the `doubt` of a group that is not known, and may be there all the same
let group = null; // what is shown: the live one, or the one of a moment of the past
let history = null;
let happened = [];
let most = MOST_EVENTS; // and those that were asked of the past
let shownOffsets = STEP;
let readAt = 0;
let readTook = 0;

const MEMBERS = [
  { label: "Member", look: "who" },
  { label: "Static id", roomy: true, title: "group.instance.id" },
  { label: "Host", roomy: true },
  { label: "Protocol" },
  { label: "Epoch", number: true },
  { label: "State" },
  { label: "Owns", look: "wide" },
];

const OFFSETS = [
  { label: "Topic" },
  { label: "Partition", number: true },
  { label: "Committed", number: true },
  { label: "Log end", number: true, roomy: true },
  { label: "Lag", number: true },
  { label: "Lag time", number: true },
  { label: "Last commit", number: true, roomy: true },
  { label: "Metadata", roomy: true, look: "wide" },
];

const METHODS = {
  interpolated: "interpolated between two samples of the log end",
  caught_up: "at the end of the log",
  ahead_of_end: "committed since the log end was sampled",
  beyond_end: "the log ends before it: cut off, or recreated",
  list_offsets: "brokers said when the record was written",
  at_least: "a lower bound: the record was there when sampling began",
  no_record: "no record waits there: markers of transactions, what was aborted, or what was deleted",
  truncated: "the log was cut off below the commit: counted from there",
  no_end_offset: "the log end is not known: no leader, no answer from it, or no permission to describe the topic",
  no_such_topic: "brokers say that there is no such topic: it is no part of the group's lag",
  never_committed: "a member holds the partition, and nothing was ever committed of it",
  no_committed_offset: "nothing is committed",
  topic_recreated: "the commit is of a former topic of this name: known with the next commit",
  not_kept: "the history keeps no lag",
};

const SHOWN_ELSEWHERE = new Set(["rebalancing", "upgrading", "downgrading"]);
const BLOCKERS = JSON.parse($("warnings").dataset.blockers);
const TEXTS = JSON.parse($("warnings").dataset.texts); // of alarms of which more is to be said than in a list

function member(line, each) {
  const [who, instance, host, protocol, epoch, state, owns] = line.cells;
  if (!who.firstChild) who.append(h("bdi"));
  setText(who.firstChild, shortName(each));
  setTitle(who, details(each));
  setText(instance, each.instance_id === null ? "–" : visible(each.instance_id));
  setText(host, visible(each.client_host || "–"));
  setText(protocol, each.protocol);
  setText(epoch, each.epoch < 0 ? "–" : number(each.epoch));
  if (!state.firstChild) state.append(h("span"));
  const away = each.epoch === -2;
  const word = away ? "away" : each.classic_protocol?.state ?? each.state;
  setText(state.firstChild, word);
  setClass(state.firstChild, away ? "pill moving" : stateClass(word));
  setTitle(state, each.classic_protocol?.inferred ? "Concluded: the log does not state it." : "");
  setText(owns, owned(each));
}

/** Why a member waits, and for whom: in the log's words, others by the names that the page gives them. */
function waits(each) {
  const others = Object.entries(each.waiting.for);
  if (!others.length) return each.waiting.text;
  return others.map(([other, held]) => `waits for ${partitions(held)}, which ${shortName(group.members.find(({ member_id: id }) => id === other) ?? { member_id: other })} has yet to release`).join("; ");
}

/** What the log says of a member besides: a line each, of what there is. */
function details(each) {
  const seconds = (milliseconds) => duration(milliseconds / 1000);
  const { topics = [], regex = null, regex_topics: matched = null } = each.subscription ?? {};
  return [
    each.member_id,
    `client id ${each.client_id || "none"}`,
    topics.length && `subscribes to ${topics.join(", ")}`,
    regex !== null && `subscribes to the pattern ${regex}: ${matched === null ? "not matched yet" : matched.join(", ") || "no topic"}`,
    each.assignor && `assignor ${each.assignor}`,
    each.rack_id && `rack ${each.rack_id}`,
    each.rebalance_timeout_ms && `rebalance timeout ${seconds(each.rebalance_timeout_ms)}`,
    each.session_timeout_ms && `session timeout ${seconds(each.session_timeout_ms)}`,
    ...(each.claims ?? []).map((claim) => `joined by ${claim.assignor} owning ${partitions(claim.owned) || "nothing"}${claim.generation === null ? "" : ` of generation ${claim.generation}`}`),
  ].filter(Boolean).map(visible).join("\n");
}

/** Kafka's own names of tasks: 0_0–2, 1_0. */
const taskIds = (held) => Object.entries(held).flatMap(([subtopology, numbers]) => ranges(numbers).split(", ").map((run) => `${subtopology}_${run}`)).join(", ");

function owned(each) {
  if (each.tasks) {
    const kinds = [["active", each.tasks.active], ["standby", each.tasks.standby], ["warm-up", each.tasks.warmup]];
    const tasks = kinds.filter(([, held]) => size(held)).map(([kind, held]) => `${kind} ${taskIds(held)}`).join("; ");
    return [tasks || "no tasks", each.process_id && `process ${visible(each.process_id)}`].filter(Boolean).join(" · ");
  }
  return [
    partitions(each.assigned) || "nothing",
    size(each.pending_revocation) && `to be revoked: ${partitions(each.pending_revocation)}`,
    each.waiting && each.waiting.situation !== "revoking" && visible(waits(each)),
  ].filter(Boolean).join("; ");
}

function offset(line, each) {
  const [topic, partition, committed, end, lag, seconds, commit, metadata] = line.cells;
  if (topic.textContent !== visible(each.topic)) topic.replaceChildren(h("a", { href: topicPage(each.topic) }, h("bdi", {}, visible(each.topic))));
  setText(partition, number(each.partition));
  setText(committed, number(each.offset));
  setText(end, number(each.log_end_offset));
  const isStable = (each.stable_lag ?? each.lag) === each.lag;
  setText(lag, isStable ? number(each.lag) : `${number(each.lag)} (${number(each.stable_lag)} stable)`);
  setTitle(lag, isStable ? "" : "A transaction is open: so many records can be read by consumers of committed ones");
  setClass(lag, each.lag ? "number" : "number zero");
  setText(seconds, lagTime(each.lag_seconds, each.lag_seconds_at_least));
  setClass(seconds, each.lag_seconds ? "number" : "number zero");
  setTitle(seconds, METHODS[each.lag_method] ?? each.lag_method);
  setText(commit, each.commit_timestamp === null || each.commit_timestamp < 0 ? "–" : clock(each.commit_timestamp));
  setText(metadata, each.metadata ? visible(each.metadata) : "–");
  const unread = each.subscribed === false;
  setTitle(topic, unread ? "no member reads this topic any more" : "");
  setClass(topic, unread ? "zero" : "");
  const lost = each.records_lost;
  setClass(line, lost && !unread ? "warning" : "");
  setTitle(committed, lost ? `up to ${number(each.log_start_offset - each.offset)} records after it are deleted already` : "");
}

function badges() {
  const found = [
    doubtOf(group) && !past?.at ? [`unknown, was ${group.state}`, "tag"] : [group.state, stateClass(group.state)],
    [group.simple ? "commits only" : `${group.type} group`, "tag"],
    ...(group.protocol ? [[`assignor ${group.protocol}`, "tag"]] : []),
  ];
  patch($("badges"), found, ([text, look]) => text + look, ([text, look]) => h("span", { className: look }, visible(text)));
}

function warnings() {
  const twice = Object.entries(group.duplicates ?? {}).map(([place, ids]) => `${visible(place)} by ${ids.map((id) => shortName(group.members.find((each) => each.member_id === id) ?? { member_id: id })).join(" and ")}`);
  const free = Object.entries(group.unassigned ?? {});
  const texts = {
    ...TEXTS,
    duplicate_assignment: twice.length ? `Owned twice: ${twice.slice(0, 8).join("; ")}${twice.length > 8 ? " …" : ""}` : null,
    unassigned_partitions: free.length ? `No member reads ${partitions(Object.fromEntries(free.slice(0, 8)))}` : null,
  };
  const found = group.attention.filter(({ code }) => !SHOWN_ELSEWHERE.has(code)).map((look) => ({ ...look, text: look.expected ? look.text : texts[look.code] ?? look.text }));
  for (const blocker of group.migration.blockers) found.push({ code: blocker, severity: "info", since: null, text: `A broker would refuse to upgrade this group: ${BLOCKERS[blocker] ?? blocker}` });
  patch($("lacks"), group.log_lacks ?? [], ({ code }) => code, ({ text }) => h("p", { className: "muted" }, text));
  looks($("warnings"), [...(past?.at || !doubtOf(group) ? [] : unreadLook(group)), ...found], moment());
}

function summary() {
  const { upgraded_members: upgraded, members, mixed_since: since, phase } = group.migration;
  const mixed = (group.type === "classic" || group.type === "consumer") && (phase === null || phase === "upgrading" || phase === "downgrading");
  const lasted = since === null ? "both protocols, since when is not known" : `both protocols for ${duration(Math.max(0, moment() - since) / 1000)}`;
  const out = group.migration.out_of_scope;
  const concerned = !out && !group.simple && (group.type === "classic" || group.type === "consumer");
  const patterns = Object.entries(group.regexes ?? {});
  const static_ = group.members.filter((each) => each.instance_id !== null).length;
  const classic = group.assignment_epoch === null;
  const behind = !classic && group.assignment_epoch !== group.epoch;
  return [
    { name: classic ? "Generation" : "Group epoch", value: number(group.epoch), note: classic ? "" : `assignment epoch ${number(group.assignment_epoch)}`, look: behind ? "active" : "" },
    { name: "Members", value: number(group.members.length), note: [concerned && `${number(group.members.length - upgraded)} classic, ${number(upgraded)} consumer`, static_ && `${static_} static`].filter(Boolean).join(", ") },
    ...(out ? [{ name: "Migration", value: "out of scope", note: `protocol type ${visible(group.protocol_type ?? "")}` }] : []),
    ...(concerned ? [{ name: "Migration", value: phase ?? "mixed", note: mixed ? lasted : "", progress: mixed ? [upgraded, members] : null, look: mixed ? "active" : "" }] : []),
    ...(group.rebalances === null ? [] : [{ name: "Rebalances", value: number(group.rebalances), note: group.rebalancing_since === null ? "none under way" : `under way for ${duration(Math.max(0, now() - group.rebalancing_since) / 1000)}`, look: group.rebalancing_since === null ? "" : "active" }]),
    ...(patterns.length ? [{ name: "Patterns", value: number(patterns.length), note: patterns.map(([regex, topics]) => `${visible(regex)}: ${topics.map(visible).join(", ") || "no topic"}`).join("; ") }] : []),
    ...(group.lag_left_out ? [{ name: "Lag", value: "–", note: group.lag_left_out }] : []),
    ...((group.offsets.length || group.share_partitions?.length) && !group.lag_left_out && !past?.at ? [
      { name: "Lag", value: lagSum(group), note: [group.max_lag === null ? "" : `largest partition ${short(group.max_lag)}`, lagUnknown(group)].filter(Boolean).join(", "), ofLag: true },
      { name: "Lag time", value: lagTime(group.max_lag_seconds, group.max_lag_seconds_at_least), note: group.max_lag_seconds_at_least ? `at least: ${lagUnknown(group) || "older than what was sampled"}` : group.offsets.length ? "oldest uncommitted" : "oldest not done", ofLag: true },
    ] : []),
  ];
}

function drawTimeline() {
  const offsets = live?.offsets ?? [];
  const to = now();
  const { times, lag, max_lag_seconds: seconds, partitions: largest, partition_count: count } = history ?? { times: [], lag: [], max_lag_seconds: [], partitions: [], partition_count: 0 };
  const parts = largest.toSorted((one, other) => (one.topic < other.topic ? -1 : one.topic > other.topic ? 1 : one.partition - other.partition));
  const from = since(to - 1000 * Number($("span").value), [times[0], happened.find(({ time }) => time > to - 1000 * Number($("span").value))?.time], to);
  const line = (values, last) => [...times.map((time, at) => [time, values[at]]), ...(last === undefined ? [] : [[to, last]])];
  const several = new Set(parts.map(({ topic }) => topic)).size > 1;
  const now_ = new Map(offsets.map((each) => [`${each.topic}/${each.partition}`, each.lag]));
  const lines = parts.length > 1 ? parts.map(({ topic, partition, lag: values }, at) => ({ name: several ? `${visible(topic)} ${partition}` : `partition ${partition}`, look: `line-${at % 12}`, points: line(values, now_.get(`${topic}/${partition}`)) })) : [];
  const lags = [
    { name: lines.length ? "Lag by partition, records" : "Lag, records", lines: lines.length ? lines : [{ name: "lag", look: "line-0", points: line(lag, live?.lag) }] },
    { name: "Lag time, oldest record not committed", unit: "seconds", lines: [{ name: "lag time", look: "line-1", points: line(seconds, live?.max_lag_seconds) }] },
  ];
  const panels = offsets.length || live?.share_partitions?.length ? lags : [{ name: "Rebalances, conversions and alarms", lines: [] }];
  timeline.draw({ from, to, panels, bands: [...bands(happened), ...(past?.at ? [{ from: past.at, to: past.at, look: "moment", text: "The group is shown as it was here" }] : [])] });
  $("most").hidden = !(parts.length && count > parts.length);
  setText($("most"), `Drawn: the ${parts.length} of ${number(count)} partitions with the largest lag.`);
}

function draw() {
  group = past?.at ? past.group : live;
  const rows = Boolean(past?.at) || shows();
  const why = doubt() ?? doubtOf(mayBe);
  for (const section of $("content").querySelectorAll("section")) if (!section.contains($("events"))) section.hidden = group === null;
  $("badges").hidden = $("warnings").hidden = group === null || !rows;
  $("missing").hidden = (group !== null && rows) || Boolean(past?.at);
  setText($("missing"), why === null ? "There is no such group now. It is shown here as soon as there is one." : `Not known: ${why}.`);
  $("content").hidden = false;
  $("loading").hidden = true;
  list($("events"), happened, false, past && (({ time }) => past.go(time)));
  if (group === null) return;
  badges();
  warnings();
  tiles($("tiles"), past?.at ? summary() : believed(summary(), group));
  if (!rows) {
    for (const id of ["assignment", "members", "shares", "offsets", "time"]) $(`${id}-section`).hidden = true;
    return;
  }
  const drawn = matrices(group);
  $("assignment-section").hidden = !drawn.length;
  legend($("legend"), drawn[0]?.kinds === TASKS ? TASKS : PARTITIONS);
  patch($("matrix"), drawn, (each) => each.name, makeMatrix, drawMatrix);
  $("members-section").hidden = !group.members.length;
  setText($("member-count"), number(group.members.length));
  patch($("members").tBodies[0], group.members.slice(0, MOST_MEMBERS), (each) => each.member_id, () => row(MEMBERS), member);
  drawShares(group, now());
  drawOffsets();
  drawTimeline();
}

function drawOffsets() {
  $("offsets-section").hidden = !group.offsets.length;
  setText($("offset-count"), number(group.offsets.length));
  patch($("offsets").tBodies[0], group.offsets.slice(0, shownOffsets), (each) => `${each.partition} ${each.topic}`, () => row(OFFSETS), offset);
  $("more").hidden = group.offsets.length <= shownOffsets;
  setText($("more"), `Show ${number(Math.min(STEP, group.offsets.length - shownOffsets))} more`);
}

async function readGroup() {
  const begun = performance.now();
  const [status, answer] = await get(address);
  live = status === 200 ? answer : null;
  mayBe = status === 200 ? {} : answer;
  readAt = performance.now();
  readTook = readAt - begun;
}

async function readHistory() {
  const [status, answer] = await get(`/api/v1/lag?group=${encodeURIComponent(name)}`);
  history = status === 200 ? { ...answer, read: performance.now() } : null;
}

async function read() {
  const [, [, latest]] = await Promise.all([readGroup(), get(`/api/v1/events?group=${encodeURIComponent(name)}`)]);
  // What was asked of the past stays.
  happened = merged(most > MOST_EVENTS ? happened : [], latest.events, most);
  if (live) await readHistory();
}

head($("members"), MEMBERS);
head($("offsets"), OFFSETS);
setText($("group"), visible(name));
const past = $("at") && new Past(name, draw);
const moment = () => past?.at ?? now();
past?.follow();

/** Show events of the past beside those the monitor remembers; returns whether there were more. */
function remember(events) {
  const before = happened.length;
  most += events.length;
  happened = merged(happened, events, most);
  draw();
  return happened.length > before;
}

$("span").addEventListener("change", async () => {
  drawTimeline();
  if (past) remember(await past.span(Number($("span").value), now()).catch(() => []));
});
$("earlier")?.addEventListener("click", async () => {
  const button = $("earlier");
  button.disabled = true;
  try {
    const more = remember(await past.earlier(happened[0]));
    setText(button, more ? "Earlier events" : "No earlier events are kept");
    button.disabled = !more;
  } catch (problem) {
    setText(button, `Earlier events (${problem.message}; try again)`);
    button.disabled = false;
  }
});
$("more").addEventListener("click", () => {
  shownOffsets += STEP;
  drawOffsets();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.target.closest("select")) location.assign("/");
});

let due = false;
follow(name, read, async ({ groups, gone, events }) => {
  happened = merged(happened, events, most);
  due ||= groups.length > 0 || gone.length > 0;
  if (due && performance.now() - readAt > BREATH * readTook) {
    due = false;
    await readGroup();
  }
  if (live && performance.now() - (history?.read ?? 0) > HISTORY_MS) await readHistory();
  draw();
}, () => readAt && draw());
