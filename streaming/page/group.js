// One group: who owns what, how far they are, what happened.
import { $, banner, clock, duration, events, get, h, head, looks, number, patch, refresh, setClass, setText, stateClass, tiles } from "./common.js";

const MOST_COLUMNS = 200;
const MOST_MEMBERS = 200;
const STEP = 300;
let shownOffsets = STEP;

const name = location.pathname.startsWith("/group/") ? decodeURIComponent(location.pathname.slice(7)) : new URLSearchParams(location.search).get("name") ?? "";
const address = /^\.{0,2}$/.test(name) ? `/api/v1/groups/?name=${encodeURIComponent(name)}` : `/api/v1/groups/${encodeURIComponent(name)}`;

const MEMBERS = [
  { label: "Member" },
  { label: "Instance", roomy: true },
  { label: "Client", roomy: true },
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
  { label: "Log end", number: true },
  { label: "Lag", number: true },
  { label: "Lag time", number: true },
  { label: "Last commit", number: true, roomy: true },
  { label: "Metadata", roomy: true, look: "wide" },
];

const METHODS = {
  interpolated: "interpolated between two samples of the log end",
  caught_up: "at the end of the log",
  ahead_of_end: "committed since the log end was sampled",
  outside_history: "older than the sampled history: no figure",
  no_end_offset: "the log end is not known",
  no_committed_offset: "nothing is committed",
  topic_recreated: "the commit is of a former topic of this name",
};

/** 0-3, 7, 9-11 */
function ranges(numbers) {
  const runs = [];
  for (const value of numbers) {
    if (runs.length && value === runs.at(-1)[1] + 1) runs.at(-1)[1] = value;
    else runs.push([value, value]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from}–${to}`)).join(", ");
}

const partitions = (held) => Object.entries(held).map(([topic, numbers]) => `${topic} ${ranges(numbers)}`).join("; ");
const size = (held) => Object.values(held).reduce((total, numbers) => total + numbers.length, 0);

function cells(columns) {
  return (item) => h("tr", {}, ...columns.map((column) => h("td", { className: looks(column) })));
}

function member(row, each) {
  const [id, instance, client, host, protocol, epoch, state, owns] = row.cells;
  setText(id, each.member_id);
  setText(instance, each.instance_id ?? "–");
  setText(client, each.client_id || "–");
  setText(host, each.client_host || "–");
  setText(protocol, each.protocol);
  setText(epoch, number(each.epoch));
  if (!state.firstChild) state.append(h("span"));
  const away = each.epoch === -2;
  setText(state.firstChild, away ? "away" : each.state);
  setClass(state.firstChild, away ? "pill moving" : stateClass(each.state));
  const revoking = size(each.pending_revocation) ? `; to be revoked: ${partitions(each.pending_revocation)}` : "";
  setText(owns, (partitions(each.assigned) || "nothing") + revoking);
}

function offset(row, each) {
  const [topic, partition, committed, end, lag, seconds, commit, metadata] = row.cells;
  setText(topic, each.topic);
  setText(partition, number(each.partition));
  setText(committed, number(each.offset));
  setText(end, number(each.log_end_offset));
  setText(lag, number(each.lag));
  setClass(lag, each.lag ? "number" : "number zero");
  setText(seconds, duration(each.lag_seconds));
  setClass(seconds, each.lag_seconds ? "number" : "number zero");
  seconds.title = METHODS[each.lag_method] ?? each.lag_method;
  setText(commit, each.commit_timestamp < 0 ? "–" : clock(each.commit_timestamp));
  setText(metadata, each.metadata || "–");
  const lost = each.log_start_offset !== null && each.offset < each.log_start_offset;
  setClass(row, lost ? "alert" : "");
  committed.title = lost ? `${number(each.log_start_offset - each.offset)} records after it are deleted already` : "";
}

/** Topic → {partitions, rows: [[member, {partition: mark}]]} */
function matrices(group) {
  const topics = new Map();
  const owners = new Map();
  const mark = (topic, partition, at, kind) => {
    if (!topics.has(topic)) topics.set(topic, { columns: new Set(), marks: new Map() });
    const { columns, marks } = topics.get(topic);
    columns.add(partition);
    if (!marks.has(at)) marks.set(at, new Map());
    marks.get(at).set(partition, kind);
  };
  group.members.forEach((each, at) => {
    for (const [kind, held] of [["target", each.target], ["revoking", each.pending_revocation], ["owned", each.assigned]]) {
      for (const [topic, numbers] of Object.entries(held)) {
        for (const partition of numbers) {
          mark(topic, partition, at, kind);
          if (kind === "target") continue;
          const place = `${partition} ${topic}`;
          owners.set(place, (owners.get(place) ?? new Set()).add(at));
        }
      }
    }
  });
  for (const each of group.offsets) {
    if (topics.has(each.topic)) topics.get(each.topic).columns.add(each.partition);
  }
  return [...topics].sort(([a], [b]) => (a < b ? -1 : 1)).map(([topic, { columns, marks }]) => ({
    topic, marks, owners, columns: [...columns].sort((a, b) => a - b),
  }));
}

const SIGNS = { owned: "●", revoking: "◐", target: "○", twice: "!" };
const SAID = { owned: "owned", revoking: "to be revoked", target: "target, not yet owned", twice: "owned twice", "": "not owned" };

function drawMatrix(section, { topic, columns, marks, owners }, group) {
  const shown = columns.slice(0, MOST_COLUMNS);
  const rows = group.members.map((each, at) => [each, at]).filter(([, at]) => marks.has(at)).slice(0, MOST_MEMBERS);
  const more = columns.length > shown.length ? `, first ${number(shown.length)} shown` : "";
  setText(section.firstChild, `${topic} · ${number(columns.length)} partitions${more}`);
  const table = section.querySelector("table");
  if (table.columns !== shown.join()) {
    table.columns = shown.join();
    table.tHead.rows[0].replaceChildren(h("td"), ...shown.map((partition) => h("th", { scope: "col" }, `${partition}`)));
    table.tBodies[0].replaceChildren();
    table.tBodies[0].held?.clear();
  }
  const shared = group.type === "share";
  patch(table.tBodies[0], rows, ([each]) => each.member_id, ([each]) => {
    const label = each.instance_id ?? each.client_id;
    const cell = h("th", { scope: "row", title: each.member_id }, label ? `${label} · ${each.member_id.slice(-6)}` : each.member_id);
    return h("tr", {}, cell, ...shown.map(() => h("td", { className: "cell" })));
  }, (row, [, at]) => {
    shown.forEach((partition, column) => {
      const cell = row.cells[column + 1];
      const holders = owners.get(`${partition} ${topic}`);
      let kind = marks.get(at).get(partition) ?? "";
      if (!shared && kind !== "target" && kind && holders?.size > 1) kind = "twice";
      setClass(cell, `cell ${kind || (holders ? "" : "unowned")}`.trim());
      setText(cell, SIGNS[kind] ?? "");
      const said = `partition ${partition}: ${SAID[kind]}`;
      if (cell.title !== said) cell.title = said;
    });
  });
}

function makeMatrix() {
  const table = h("table", { className: "matrix" }, h("thead", {}, h("tr")), h("tbody"));
  return h("div", { className: "topic" }, h("h3"), h("div", { className: "scroll" }, table));
}

function badges(group) {
  const found = [
    [group.state, stateClass(group.state)],
    [group.simple ? "commits only" : `${group.type} group`, "tag"],
    [group.migration.phase, "tag"],
  ];
  if (group.protocol) found.push([`assignor ${group.protocol}`, "tag"]);
  patch($("badges"), found, ([text]) => text, ([text, look]) => h("span", { className: look }, text), () => {});
}

function summary(group) {
  const { upgraded_members: upgraded, members, mixed_since: since } = group.migration;
  const mixed = since !== null;
  const concerned = group.type === "classic" || group.type === "consumer";
  return [
    { name: group.assignment_epoch === null ? "Generation" : "Group epoch", value: number(group.epoch), note: group.assignment_epoch === null ? "" : `assignment epoch ${number(group.assignment_epoch)}` },
    { name: "Members", value: number(group.members.length), note: `${number(group.members.length - upgraded)} classic, ${number(upgraded)} consumer` },
    ...(concerned ? [{ name: "Migration", value: group.migration.phase, note: mixed ? `both protocols for ${duration((Date.now() - since) / 1000)}` : "", progress: mixed ? [upgraded, members] : null, look: mixed ? "alert" : "" }] : []),
    { name: "Lag", value: number(group.lag), note: `largest ${number(group.max_lag)}` },
    { name: "Lag time", value: duration(group.max_lag_seconds), note: group.lag && group.max_lag_seconds === null ? "a commit is older than the history" : "oldest record not committed" },
  ];
}

function warnings(group) {
  const found = [];
  const held = new Map();
  if (group.type !== "share") {
    for (const each of group.members) {
      for (const [topic, numbers] of [...Object.entries(each.assigned), ...Object.entries(each.pending_revocation)]) {
        for (const partition of numbers) {
          const place = `${topic}/${partition}`;
          held.set(place, (held.get(place) ?? new Set()).add(each.member_id));
        }
      }
    }
  }
  const twice = [...held].filter(([, ids]) => ids.size > 1).map(([place]) => place);
  if (twice.length) found.push([`Owned by two members at once: ${twice.slice(0, 12).join(", ")}${twice.length > 12 ? " …" : ""}`, ""]);
  for (const blocker of group.migration.blockers) found.push([`A broker would refuse to upgrade this group: ${blocker.replaceAll("_", " ")}`, "moving"]);
  if (group.migration.leftovers) found.push([`${number(group.migration.leftovers)} records of the new protocol are left over from before a downgrade`, "moving"]);
  patch($("warnings"), found, ([text]) => text, ([text, look]) => h("li", { className: look }, text), () => {});
}

head($("members"), MEMBERS);
head($("offsets"), OFFSETS);
$("more").addEventListener("click", () => { shownOffsets += STEP; });

refresh(async () => {
  const [[status, group], [, ready], [, history]] = await Promise.all([
    get(address), get("/ready"), get(`/api/v1/events?limit=100&group=${encodeURIComponent(name)}`),
  ]);
  banner(ready.ready, ready.missing, null);
  $("missing").hidden = status !== 404;
  $("content").hidden = false;
  if (name) events($("events"), history.events, false);
  for (const section of document.querySelectorAll("#content > :not(:last-child)")) section.hidden = status === 404;
  if (status !== 200) return;
  badges(group);
  warnings(group);
  tiles($("tiles"), summary(group));
  const drawn = matrices(group);
  $("assignment-section").hidden = !drawn.length;
  patch($("matrix"), drawn, (each) => each.topic, makeMatrix, (section, each) => drawMatrix(section, each, group));
  setText($("member-count"), number(group.members.length));
  patch($("members").tBodies[0], group.members.slice(0, 500), (each) => each.member_id, cells(MEMBERS), member);
  setText($("offset-count"), number(group.offsets.length));
  patch($("offsets").tBodies[0], group.offsets.slice(0, shownOffsets), (each) => `${each.partition} ${each.topic}`, cells(OFFSETS), offset);
  $("more").hidden = group.offsets.length <= shownOffsets;
  setText($("more"), `Show ${number(Math.min(STEP, group.offsets.length - shownOffsets))} more`);
});
