// The live stream: what is new every second, and what is to be believed when it falls silent.
//
//     state         the monitor                               shown as
//     connecting    has not been heard yet                    "connecting"
//     live          spoke within the last seconds             "live"
//     stale         did, and no longer does                   "stale", a banner, and figures without colour
//
// Of what is under doubt, tiles have no figure. Rows stay, without colour and with the moment that they are of (`asOf`);
// where there is no such moment, as while the log is being read, there are none.
//
// A silent connection may be one whose other end is gone, so it is opened again; a browser would wait for minutes. What
// came in between two frames is handed on together. Hidden pages hold no connection: a browser has six.
import { $, duration, moment, plural, setClass, setText, visible } from "./common.js";

const STALE_MS = 5000;
const REOPEN_MS = 10000;
const DELAYS_MS = [500, 1000, 2000, 5000];
const OLD_ENDS_SECONDS = 15;

let heard = null;
let said = null;
let latest = null; // the last frame that the page shows; null before the first, and while everything is read again
let known = null; // when the rows that are there were last known to be so

/**
 * Why what is shown may not be so, in words, or null while it can: the one rule of all pages. A figure under doubt
 * is shown as not known, never as good.
 */
export function doubt() {
  if (heard === null) return "the monitor has not answered yet";
  if (performance.now() - heard > STALE_MS) return `no word from the monitor since ${moment(said)}`;
  if (latest === null) return "the monitor's answer is being read";
  return latest.doubt === null ? null : worded(latest.doubt);
}

/** What is missing in words, as `said` of streaming/base/doubt.py: what, since when, how far. */
const worded = ({ reason, since, far }) => `${reason}, since ${moment(since)}${far ? `: ${far}` : ""}`;

/**
 * Why a sum, or a list, may lack something although it is of now: partitions of the log that are not read. In words, or
 * null where all are read.
 */
export const lacking = () => (latest?.unread?.length ? latest.unread.map(worded).join("; ") : null);

/** Numbers of the partitions that are not read. */
export const unreadNumbers = () => (latest?.unread ?? []).map(({ partition }) => partition).join(",");

/** Whether names of groups may be missing: of what could not be read since the start nothing is known. */
export const namesMayLack = () => lacking() !== null && !latest.ready;

/** The doubt of one group in words, or null: what may be in a partition that is not read now. What all are under, `doubt` says. */
export const doubtOf = ({ doubt: of }) => ((latest?.unread ?? []).some(({ partition }) => partition === of?.partition) ? worded(of) : null);

/** The same of lag, which also needs to know where logs end. */
export function lagDoubt() {
  const old = latest?.end_offset_age_seconds ?? null;
  return doubt() ?? (old === null ? "the ends of logs are not known" : old > OLD_ENDS_SECONDS ? `the ends of logs are ${duration(old)} old` : null);
}

/** The moment (ms) that rows under doubt are of, or null: half a log is of no moment. */
const asOf = () => known ?? latest?.doubt?.as_of ?? null;

/** Whether rows may be shown. */
export const shows = () => doubt() === null || asOf() !== null;

/** Of which moment rows are, in words; "" while that is now. */
function age() {
  if (doubt() !== null) return asOf() === null ? "" : `as of ${moment(asOf())}`;
  return lagDoubt() === null || !latest.end_offset_age_seconds ? "" : `lag as of ${moment(now() - 1000 * latest.end_offset_age_seconds)}`;
}

/**
 * Tiles as they may be shown: one under doubt has no figure, no colour, and says why. Those of lag are marked `ofLag`.
 *
 * @param of the one group that they are of; without it they are sums, and one that may lack something is not fine.
 */
export function believed(items, of = null) {
  const own = of === null ? null : doubtOf(of);
  const partly = of === null ? lacking() : null;
  return items.map((item) => {
    const why = (item.ofLag ? lagDoubt() : doubt()) ?? own;
    if (why !== null) return { ...item, value: "–", note: `cannot tell: ${why}`, look: "", progress: null };
    return partly === null ? item : { ...item, note: `${item.note}; not of all: ${partly}`, look: item.look === "fine" ? "" : item.look };
  });
}

/** The monitor's clock now; it stands still while the monitor is silent, and so does every age that is counted to it. */
export const now = () => (said === null ? Date.now() : said + Math.min(performance.now() - heard, STALE_MS));

/**
 * Follow the monitor, of one group or of all.
 *
 * @param group name of the one group, or null for all.
 * @param read called, and awaited, when everything is to be read again.
 * @param take called with {groups, gone, events} that are new, how many are left out, and the version of the rows, null where
 *     they have just been read, and may be of a later one.
 * @param redraw called when a doubt came or went while nothing is new.
 */
export function follow(group, read, take, redraw = () => {}) {
  let source = null;
  let last = "";
  let opened = 0;
  let failures = 0;
  let waiting = [];
  let busy = false;
  let doubted = null;

  function open() {
    if (source || document.hidden) return;
    opened = performance.now();
    const query = new URLSearchParams({ ...(group === null ? {} : { group }), ...(last ? { since: last } : {}) });
    source = new EventSource(`/api/v1/live?${query}`);
    source.onmessage = (message) => {
      [heard, failures, last] = [performance.now(), 0, message.lastEventId];
      const news = JSON.parse(message.data);
      said = news.time;
      news.version = news.reset ? null : last.replace(/-[^-]*$/, "");
      if (news.reset) latest = null;
      waiting.push(news);
      requestAnimationFrame(work);
    };
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) reopen();
    };
  }

  function close() {
    source?.close();
    source = null;
  }

  function reopen() {
    close();
    setTimeout(open, DELAYS_MS[Math.min(failures++, DELAYS_MS.length - 1)]);
  }

  async function work() {
    if (busy || !waiting.length) return;
    busy = true;
    const batch = waiting;
    waiting = [];
    try {
      if (batch.some((news) => news.reset)) {
        await read();
        known = null;
      }
      latest = batch.at(-1);
      if (doubt() === null) known = latest.time;
      const groups = new Map(batch.flatMap((news) => news.groups ?? []).map((each) => [each.group, each]));
      const gone = new Set();
      for (const news of batch) {
        for (const each of news.groups ?? []) gone.delete(each.group);
        for (const name of news.gone ?? []) gone.add(name);
      }
      for (const name of gone) groups.delete(name);
      await take({ groups: [...groups.values()], gone: [...gone], events: batch.flatMap((news) => news.events), left_out: latest.left_out, version: latest.version });
      // Last: the pill says "live" of figures that are there.
      redrawDoubt();
      if (latest) show(latest);
    } catch (problem) {
      // What failed is read again, from the beginning, on the next connection.
      console.warn(problem);
      latest = null;
      redrawDoubt();
      state("stale", "no answer", `The monitor could not answer (${problem.message}). What you see is from before; trying again.`);
      last = "";
      reopen();
    }
    busy = false;
    if (waiting.length) requestAnimationFrame(work);
  }

  /** What is under doubt loses its colour at once (page.css), and its figures as it is drawn. */
  function redrawDoubt() {
    const found = `${doubt()} ${lagDoubt() === null} ${lacking()}`;
    if (doubted === found) return;
    doubted = found;
    document.body.classList.toggle("doubted", doubt() !== null);
    document.body.classList.toggle("lag-doubted", lagDoubt() !== null);
    for (const place of document.querySelectorAll(".as-of")) setText(place, age());
    redraw();
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  setInterval(() => {
    const silent = performance.now() - (heard ?? opened);
    if (source && performance.now() - opened > REOPEN_MS && silent > REOPEN_MS) reopen();
    if (!document.hidden && silent > STALE_MS) showStale(silent);
    redrawDoubt();
  }, 500);
  redrawDoubt();
  open();
}

function show(news) {
  const unread = (news.unread ?? []).map(worded);
  const reasons = news.ready ? [] : news.missing.filter(({ partition }) => partition === undefined).map(worded);
  const old = news.end_offset_age_seconds;
  if (news.ready && old !== null && old > OLD_ENDS_SECONDS) reasons.push(`The log ends are ${duration(old)} old: lag does not move`);
  const source = news.source;
  const still = !news.ready && news.doubt?.as_of;
  const head = !reasons.length || news.ready ? "" : source || still ? "Not ready: " : "Catching up: ";
  if (unread.length) reasons.push(`${unread.join("; ")}. What may be in ${unread.length > 1 ? "them" : "it"} is not known`);
  const notLoaded = news.not_loaded ?? [];
  if (notLoaded.length) reasons.push(`The coordinator of ${notLoaded.length > 1 ? "partitions" : "partition"} ${notLoaded.join(", ")} of the offsets topic has not loaded: its groups neither join nor commit`);
  const said = reasons.length ? `${head}${reasons.join("; ")}. ` : "";
  if (source) showPolled(source, said);
  else if (still) state("stale", "stale", said);
  else if (reasons.length) state("reading", news.ready ? (unread.length ? "live, in part" : "live") : head ? "catching up" : "not ready", said);
  else state("live", "live", "");
}

/** Of polled groups it is always said that they are, and what is missing: figures of the log are not known. */
function showPolled(source, said) {
  const stale = source.stale_since !== null;
  const since = stale ? `No answer from the brokers since ${moment(source.stale_since)} (${source.failure}): what you see is from then. ` : "";
  const left = source.groups_not_described ? `${plural(source.groups_not_described, "group")} not described: ${source.not_described.map((each) => `${visible(each.group)} (${each.reason})`).join(", ")}. ` : "";
  const hidden = source.lists_all_groups === false ? "Groups that may not be described may be missing without a word. " : "";
  const how = `Polled every ${duration(source.interval_ms / 1000)}, as the log is not read: rebalances, handovers, rewinds, commit times and epochs of classic groups are not known.`;
  state(stale ? "stale" : "reading", stale ? "polled, stale" : "polled", `${said}${since}${left}${hidden}${how}`);
}

function showStale(silent) {
  if (heard === null) state("stale", "not connected", "The monitor does not answer yet. Trying again.");
  else state("stale", `stale, ${duration(silent / 1000)}`, `No word from the monitor since ${moment(said)}. What you see is from then; trying again.`);
}

function state(name, pill, text) {
  const look = { live: "good", reading: "moving", stale: "bad" }[name];
  setText($("link"), pill);
  setClass($("link"), `pill ${look}`);
  setText($("banner"), text);
  setClass($("banner"), `banner ${look}`);
  $("banner").hidden = !text;
  document.body.dataset.link = name;
}
