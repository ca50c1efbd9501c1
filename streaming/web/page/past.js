// What was, from the history that the monitor keeps: events older than its memory, and the group as it was at a moment.
import { $, get, localTime, moment, setText } from "./common.js";

const EARLIER = 300;
const OF_A_SPAN = 1000;
const REMEMBERED_SECONDS = 3600; // what a monitor without a history knows as well

/** An answer of the history, asked again a few times while others ask it. */
async function patient(address) {
  for (let left = 5; ; left -= 1) {
    const [status, answer] = await get(address);
    if (status !== 503 || left === 0) return [status, answer];
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/** A GROUP of the history with what is only known of the present, as unknown. */
function complete(group) {
  const offset = { lag: null, lag_seconds: null, lag_method: "not_kept", log_end_offset: null, log_start_offset: null };
  const unknown = { lag: null, at_least: null, unknown_lags: 0, max_lag: null, max_lag_seconds: null, rebalances: null, rebalancing_since: null, duplicates: {}, unassigned: null, attention: [] };
  return { ...unknown, ...group, offsets: group.offsets.map((each) => ({ ...each, ...offset })) };
}

/**
 * The controls of a page whose monitor keeps a history.
 *
 * `at` is the moment that is asked for (ms), null for now; `group` the GROUP as it was then, null if none is known, and
 * then `problem` says why.
 */
export class Past {
  constructor(name, changed) {
    this.address = /^\.{0,2}$/.test(name) ? `/api/v1/history?name=${encodeURIComponent(name)}&` : `/api/v1/history/${encodeURIComponent(name)}?`;
    this.changed = changed;
    this.at = this.group = null;
    this.problem = "";
    this.asked = 0;
    $("at").addEventListener("keydown", (event) => event.key === "Enter" && this.go());
    $("show").addEventListener("click", () => this.go());
    $("now").addEventListener("click", () => this.go(null));
    addEventListener("popstate", () => this.follow());
  }

  /** Show what the page's address says. */
  async follow() {
    const text = new URLSearchParams(location.search).get("at");
    const at = text === null ? NaN : Date.parse(text);
    await this.#show(Number.isNaN(at) ? null : at);
  }

  /** Show another moment, by default the one that was typed in; its address can be passed on. */
  async go(at = Date.parse($("at").value)) {
    if (Number.isNaN(at)) return;
    const to = new URL(location.href);
    if (at === null) to.searchParams.delete("at");
    else to.searchParams.set("at", new Date(at).toISOString());
    window.history.pushState(null, "", to);
    await this.#show(at);
  }

  async #show(at) {
    const asked = ++this.asked;
    let [group, problem] = [null, ""];
    if (at !== null) {
      try {
        const [status, answer] = await patient(`${this.address}at=${at}`);
        if (status === 200) group = complete(answer);
        else problem = status === 404 ? `There was no such group at ${moment(at)}.` : status === 410 ? `Not known: the history of all groups does not go back to ${moment(at)}, or cannot be read.` : `Not known: the history is being asked by too many. Try again.`;
      } catch (error) {
        problem = `The history cannot be asked: ${error.message}.`;
      }
    }
    if (asked !== this.asked) return; // another moment was asked for meanwhile
    const isOther = at !== null || this.at !== null;
    [this.at, this.group, this.problem] = [at, group, problem];
    $("at").value = localTime(at ?? Date.now());
    $("now").hidden = $("as-of").hidden = at === null;
    document.body.dataset.time = at === null ? "now" : "past";
    setText($("as-of"), group === null ? problem : `As it was at ${moment(at)}: nothing changed from ${moment(group.as_of)} until then. Lag, and what else only holds for the present, is not kept.`);
    if (isOther) this.changed();
  }

  /** Events of the last seconds, where the monitor's memory may not reach so far; the latest thousand of them. */
  async span(seconds, now) {
    return seconds > REMEMBERED_SECONDS ? this.#events(`since=${Math.floor(now - 1000 * seconds)}&limit=${OF_A_SPAN}`) : [];
  }

  /** The events before those, the oldest of which is given; none if no earlier ones are kept. */
  async earlier(oldest) {
    if (!oldest) return this.#events(`limit=${EARLIER}`);
    for (const until of [oldest.time, oldest.time - 1]) {
      const found = await this.#events(`until=${until}&limit=${EARLIER}`);
      // Those of the same millisecond may fill an answer.
      if (found.length < EARLIER || found[0].time < oldest.time) return found;
    }
    return [];
  }

  async #events(query) {
    const [status, answer] = await patient(this.address + query);
    if (status === 503) throw new Error(answer.error);
    return status === 200 ? answer.events : [];
  }
}
