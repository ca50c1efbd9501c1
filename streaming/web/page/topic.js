// One topic: the groups that have to do with it, each with its lag there. What is not known has no figure.
import { $, get, groupPage, h, head, lagSum, lagTime, lagUnknown, leastLag, number, patch, plural, row, setClass, setText, setTitle, short, stateClass, tiles, visible } from "./common.js";
import { believed, doubt, follow, lacking, shows } from "./live.js";

const EVERY_MS = 2000;
const name = $("topic").textContent;
let topic = null;
let asked = -Infinity;

const COLUMNS = [
  { name: "group", label: "Group", look: "group" },
  { name: "state", label: "State", look: "state" },
  { name: "owner", label: "Owner", roomy: true },
  { name: "members", label: "Members", number: true, roomy: true, title: "Of the group, whatever they read" },
  { name: "reads", label: "Reads it", title: "Whether a member subscribes to it, as far as the log shows" },
  { name: "held", label: "Held", number: true, title: "Partitions that some member holds" },
  { name: "committed", label: "Committed", number: true, roomy: true, title: "Partitions with a committed offset" },
  { name: "lag", label: "Lag", number: true, look: "lag", title: "Records not yet committed, in this topic" },
  { name: "seconds", label: "Lag time", number: true, look: "seconds", title: "Age of the oldest record not yet committed" },
];

const reads = ({ subscribed }) => (subscribed === null ? "not known" : subscribed ? "yes" : "no");

function makeRow(group) {
  const made = row(COLUMNS);
  made.cells[0].append(h("a", { href: groupPage(group.group), title: visible(group.group) }, h("bdi", {}, visible(group.group))));
  made.cells[1].append(h("span"));
  return made;
}

function updateRow(made, group) {
  const cell = Object.fromEntries(COLUMNS.map((column, at) => [column.name, made.cells[at]]));
  setClass(made, group.doubt ? "unread" : "");
  setText(cell.state.firstChild, group.doubt ? `unknown, was ${group.state}` : group.state);
  setClass(cell.state.firstChild, group.doubt ? "" : stateClass(group.state));
  setText(cell.owner, group.owner === null ? "–" : visible(group.owner));
  setText(cell.members, number(group.members));
  setText(cell.reads, reads(group));
  setText(cell.held, number(group.assigned_partitions));
  setText(cell.committed, number(group.committed_partitions));
  setText(cell.lag, lagSum(group));
  setText(cell.seconds, lagTime(group.max_lag_seconds, group.max_lag_seconds_at_least));
  setTitle(cell.lag, lagUnknown(group));
}

function summary() {
  const unknown = topic.groups.some((group) => group.unknown_lags);
  const worst = topic.groups.reduce((most, group) => ((leastLag(group) ?? -1) > (most ? leastLag(most) : -1) ? group : most), null);
  const more = [topic.left_out && `${number(topic.left_out)} left out by configuration`, topic.cannot_tell && `cannot tell of ${number(topic.cannot_tell)} more`].filter(Boolean).join(", ");
  return [
    { name: "Groups", value: number(topic.groups.length), note: more },
    { name: "Partitions", value: number(topic.partitions), note: topic.partitions === null ? "brokers have not described it" : "" },
    { name: "Largest lag", value: worst ? `${unknown ? "≥ " : ""}${short(leastLag(worst))}` : "–", note: worst ? visible(worst.group) : "no group has a lag that is known", ofLag: true },
  ];
}

function draw() {
  setText($("missing"), doubt() === null ? "No group has to do with a topic of this name." : `Not known: ${doubt()}.`);
  if (topic === null) return;
  tiles($("tiles"), believed(summary()));
  const unknown = topic.cannot_tell ? [`Of ${plural(topic.cannot_tell, "more group")} it is not known whether they read this topic: ids without a name, or subscriptions that the log does not spell out.`] : [];
  if (lacking() !== null) unknown.push(`Groups may be missing: ${lacking()}.`);
  patch($("warnings"), unknown, (text) => text, (text) => h("li", {}, text));
  setText($("count"), shows() ? number(topic.groups.length) : "–");
  const groups = (shows() ? [...topic.groups] : []).sort((a, b) => (leastLag(b) ?? -1) - (leastLag(a) ?? -1) || (a.group < b.group ? -1 : 1));
  patch($("groups").tBodies[0], groups, (group) => group.group, makeRow, updateRow);
}

async function read() {
  asked = performance.now();
  const [status, answer] = await get(`/api/v1/topics/?${new URLSearchParams({ name })}`);
  $("loading").hidden = true;
  $("missing").hidden = status === 200;
  $("content").hidden = status !== 200;
  topic = status === 200 ? answer : null;
  draw();
}

head($("groups"), COLUMNS);
follow(null, read, async () => {
  if (performance.now() - asked > EVERY_MS) await read();
}, draw);
