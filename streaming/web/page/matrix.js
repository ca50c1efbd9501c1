// Who owns what: members by partitions, one table a topic; of a streams group, members by tasks, one a subtopology.
import { h, number, patch, setClass, setText, setTitle, tiny, visible } from "./common.js";

const MOST_COLUMNS = 256;
const MOST_ROWS = 200;
const DENSE = 48;

// Kind of cell → sign and meaning.
export const PARTITIONS = {
  owned: ["●", "owned"],
  revoking: ["◐", "to be revoked"],
  target: ["○", "waiting for it"],
  twice: ["!", "owned twice"],
};
export const TASKS = {
  owned: ["●", "active"],
  standby: ["s", "standby"],
  warmup: ["w", "warm-up"],
  revoking: ["◐", "to be given up"],
  target: ["○", "waiting for it"],
};

/** What a topic's table holds: {name, columns, rows: [{member, marks: {partition: kind}}], lag, orphans, kinds}. */
export function matrices(group) {
  return group.members.some((member) => member.tasks) ? tasks(group) : topics(group);
}

function collect() {
  const found = new Map();
  const of = (name) => {
    if (!found.has(name)) found.set(name, { name, columns: new Set(), rows: new Map(), lag: new Map(), orphans: new Set() });
    return found.get(name);
  };
  const mark = (name, numbers, member, kind) => {
    const table = of(name);
    if (!table.rows.has(member)) table.rows.set(member, new Map());
    for (const partition of numbers) {
      table.columns.add(partition);
      table.rows.get(member).set(partition, kind);
    }
  };
  return { found, of, mark };
}

function listed(found, kinds) {
  return [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1)).map((table) => ({
    ...table, kinds, columns: [...table.columns].sort((a, b) => a - b), rows: [...table.rows].map(([member, marks]) => ({ member, marks })),
  }));
}

function topics(group) {
  const { found, of, mark } = collect();
  for (const member of group.members) {
    const waits = member.classic_protocol;
    for (const [topic, numbers] of Object.entries(member.target)) mark(topic, numbers, member, "target");
    for (const [topic, numbers] of Object.entries(member.assigned)) mark(topic, numbers, member, "owned");
    for (const [topic, numbers] of Object.entries(member.pending_revocation)) mark(topic, numbers, member, "revoking");
    // A member on the classic protocol revokes with its next heartbeat: the log knows what, the record of it comes after.
    for (const [topic, numbers] of Object.entries(waits?.revokes ?? {})) mark(topic, numbers, member, "revoking");
  }
  for (const [place, ids] of Object.entries(group.duplicates ?? {})) {
    const cut = place.lastIndexOf("/");
    const partition = Number(place.slice(cut + 1));
    for (const member of group.members) if (ids.includes(member.member_id)) mark(place.slice(0, cut), [partition], member, "twice");
  }
  for (const [topic, numbers] of Object.entries(group.unassigned ?? {})) {
    if (!group.members.length) continue;
    for (const partition of numbers) {
      of(topic).columns.add(partition);
      of(topic).orphans.add(partition);
    }
  }
  for (const each of group.offsets) {
    const table = found.get(each.topic);
    if (!table) continue;
    table.columns.add(each.partition);
    if (each.lag !== null) table.lag.set(each.partition, each.lag);
  }
  return listed(found, PARTITIONS);
}

function tasks(group) {
  const { found, mark } = collect();
  const every = (tasks) => ["warmup", "standby", "active"].map((role) => [role === "active" ? "owned" : role, tasks?.[role] ?? {}]);
  for (const member of group.members) {
    for (const [subtopology, numbers] of every(member.target_tasks).flatMap(([, held]) => Object.entries(held))) mark(subtopology, numbers, member, "target");
    for (const [kind, held] of every(member.tasks)) for (const [subtopology, numbers] of Object.entries(held)) mark(subtopology, numbers, member, kind);
    for (const [subtopology, numbers] of every(member.tasks_pending_revocation).flatMap(([, held]) => Object.entries(held))) mark(subtopology, numbers, member, "revoking");
  }
  const reads = (name) => group.topology?.subtopologies?.[name]?.source_topics ?? [];
  return listed(found, TASKS).map((table) => ({ ...table, title: [`Subtopology ${table.name}`, ...reads(table.name).map(visible)].join(" · ") }));
}

/** Draw one table into what `makeMatrix` made. */
export function drawMatrix(section, { name, title, columns, rows, lag, orphans, kinds }) {
  const shown = columns.slice(0, MOST_COLUMNS);
  const cut = [columns.length > shown.length && `first ${number(shown.length)} shown`, rows.length > MOST_ROWS && `first ${MOST_ROWS} members shown`].filter(Boolean);
  const what = kinds === TASKS ? "tasks" : "partitions";
  setText(section.firstChild, [title ?? visible(name), `${number(columns.length)} ${columns.length === 1 ? what.slice(0, -1) : what}`, ...cut].join(" · "));
  const table = section.querySelector("table");
  setClass(table, shown.length > DENSE ? "matrix dense" : "matrix");
  if (table.columns !== shown.join()) {
    table.columns = shown.join();
    table.tHead.replaceChildren(
      h("tr", {}, h("td"), ...shown.map((partition) => h("th", { scope: "col" }, `${partition}`))),
      h("tr", { className: "lag" }, h("th", { scope: "row" }, "lag"), ...shown.map(() => h("td"))),
    );
    table.tBodies[0].replaceChildren();
    table.tBodies[0].held?.clear();
  }
  const [names, lags] = table.tHead.rows;
  lags.hidden = !lag.size;
  shown.forEach((partition, at) => {
    const value = lag.get(partition);
    setClass(names.cells[at + 1], orphans.has(partition) ? "orphan" : "");
    setTitle(names.cells[at + 1], orphans.has(partition) ? `partition ${partition}: no owner` : "");
    setText(lags.cells[at + 1], value ? tiny(value) : "·");
    setTitle(lags.cells[at + 1], value === undefined || value === null ? "" : `partition ${partition}: lag ${number(value)}`);
  });
  patch(table.tBodies[0], rows.slice(0, MOST_ROWS), ({ member }) => member.member_id, ({ member }) => {
    const label = h("th", { scope: "row", title: visible(member.member_id) }, h("bdi", {}, shortName(member)), h("span", { className: "speaks" }));
    return h("tr", {}, label, ...shown.map(() => h("td", { className: "cell" })));
  }, (line, { member, marks }) => {
    setText(line.cells[0].lastChild, member.protocol);
    setClass(line.cells[0].lastChild, `speaks ${member.protocol}`);
    shown.forEach((partition, at) => {
      const cell = line.cells[at + 1];
      const kind = marks.get(partition) ?? "";
      setClass(cell, `cell ${kind}`.trim());
      setText(cell, kinds[kind]?.[0] ?? "");
      setTitle(cell, kind ? `${shortName(member)}, ${what.slice(0, -1)} ${partition}: ${kinds[kind][1]}` : "");
    });
  });
}

/** A short name of a member: the instance id, or the client id with the end of the member id. */
export function shortName(member) {
  if (member.instance_id !== null && member.instance_id !== undefined) return visible(member.instance_id);
  return member.client_id ? `${visible(member.client_id)} · ${visible(member.member_id.slice(-6))}` : visible(member.member_id);
}

export function makeMatrix() {
  const table = h("table", { className: "matrix" }, h("thead"), h("tbody"));
  return h("div", { className: "topic" }, h("h3"), h("div", { className: "scroll", tabIndex: 0, role: "group", ariaLabel: "Assignment" }, table));
}

/** Legend of the kinds that a group's matrices may show. */
export function legend(parent, kinds) {
  patch(parent, Object.entries(kinds), ([kind]) => kind, ([kind, [sign, text]]) => h("li", {}, h("span", { className: `cell ${kind}`, ariaHidden: "true" }, sign), ` ${text}`));
}
