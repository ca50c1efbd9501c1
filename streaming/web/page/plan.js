// The migration plan: the table is the monitor's; here are the search, the migration over time, and whether the monitor is
// still there.
import { $, get, moment, setText } from "./common.js";
import { Timeline, since } from "./chart.js";
import { doubt, follow, now, unreadNumbers } from "./live.js";

const EVERY_MS = 60000;
const LINES = [
  ["Groups", "groups", [["classic protocol", "classic", 8], ["between protocols", "mixed", 6], ["consumer protocol", "consumer", 0], ["blocked", "blocked", 2], ["stalled", "stalled", 4]]],
  ["Members", "members", [["classic protocol", "classic", 8], ["consumer protocol", "consumer", 0]]],
];

const LEAST_POINTS = 3;

const figures = [...document.querySelectorAll(".tile dd")].map((place) => [place, place.textContent]);
const chart = $("burndown") && new Timeline($("burndown"), "Groups and members by protocol over time");
let asked = -Infinity;
let isChosen = false;

/** Groups and members by protocol, from the history; what was before it is not known, and not drawn. */
async function read() {
  if (!chart) return;
  asked = performance.now();
  const from = Math.floor(now() - 1000 * Number($("span").value));
  const [status, answer] = await get(`/api/v1/burndown?${new URLSearchParams({ since: from, match: $("search").value || "*" })}`);
  if (status !== 200) {
    setText($("burn-note"), status === 503 ? "Not known: the history is being asked by too many." : "Not known: the history cannot be read.");
    return;
  }
  const { times } = answer;
  const known = times.find((_, at) => answer.groups.classic[at] !== null);
  if (!isChosen && $("span").selectedIndex > 0 && times.filter((time) => time >= known).length < LEAST_POINTS) {
    // A young history is a point or two of a week: until a span is chosen, the longest that shows a line.
    $("span").selectedIndex -= 1;
    await read();
    return;
  }
  const panels = LINES.map(([name, of, lines]) => ({ name, lines: lines.map(([label, field, look]) => ({ name: label, look: `line-${look}`, points: times.map((time, at) => [time, answer[of][field][at]]) })) }));
  chart.draw({ from: since(from, [known], times.at(-1)), to: times.at(-1), panels });
  setText($("burn-note"), known === undefined ? "Not known: the history has yet to begin." : known > from + (times[1] - times[0]) ? `The history begins shortly before ${moment(known)}.` : "");
}

$("choose").addEventListener("submit", (event) => {
  event.preventDefault();
  location.assign(`/plan?${new URLSearchParams({ match: $("search").value })}`);
});
$("span")?.addEventListener("change", () => {
  isChosen = true;
  chart.zoomTo(null);
  read();
});

/** The plan is of the moment it was asked for; one that was not complete is asked for again as soon as it can be. */
function draw() {
  const { incomplete, unread } = $("choose").dataset;
  if (doubt() === null && (incomplete !== undefined || unread !== unreadNumbers())) location.reload();
  for (const [place, figure] of figures) setText(place, doubt() === null ? figure : "–");
}

setText($("made"), `as of ${moment(Date.now())}`);
follow(null, read, async () => {
  if (performance.now() - asked > EVERY_MS) await read();
}, draw);
