// Share partitions of a share group: how far each is, what is delivered again, what was given up.
import { $, duration, h, head, lagTime, number, patch, row, setClass, setText, setTitle, topicPage, visible } from "./common.js";

const MOST = 300;

const SHARES = [
  { label: "Topic" },
  { label: "Partition", number: true },
  { label: "Start offset", number: true, title: "Where delivery begins, as last written" },
  { label: "First not done", number: true, title: "The start offset, moved past all that is done" },
  { label: "Lag", number: true, title: "High watermark, less the start offset and what is done behind it" },
  { label: "Lag time", number: true, title: "Age of the record at the first offset that is not done" },
  { label: "Delivered again", number: true, title: "Records to be delivered that were delivered twice or more, in vain" },
  { label: "Most deliveries", number: true, roomy: true },
  { label: "At limit", number: true, title: "Given up: delivered as often as may be" },
  { label: "Rejected", number: true, title: "Given up: a member rejected them" },
];

function share(line, each, now) {
  const [topic, partition, start, first, lag, seconds, again, most, limit, rejected] = line.cells;
  if (topic.textContent !== visible(each.topic)) topic.replaceChildren(h("a", { href: topicPage(each.topic) }, h("bdi", {}, visible(each.topic))));
  setText(partition, number(each.partition));
  setText(start, number(each.start_offset));
  setText(first, number(each.first_not_done));
  setText(lag, number(each.lag));
  setTitle(lag, each.lag_unknown ?? "");
  setClass(lag, each.lag ? "number" : "number zero");
  setText(seconds, lagTime(each.lag_seconds, each.lag_seconds_at_least));
  setClass(seconds, each.lag_seconds ? "number" : "number zero");
  setTitle(seconds, each.stalled_since ? `not done for ${duration(Math.max(0, now - each.stalled_since) / 1000)}` : "");
  for (const [cell, count] of [[again, each.redelivered], [most, each.max_delivery_count], [limit, each.archived_total.limit], [rejected, each.archived_total.rejected]]) {
    setText(cell, number(count));
    setClass(cell, count ? "number" : "number zero");
  }
  setTitle(rejected, each.archived_unclear ? `and ${number(each.archived_unclear)} of which it is not known whether there was a record` : "");
}

head($("shares"), SHARES);

/** Show the share partitions of a group; a moment of the past has none. */
export function drawShares(group, now) {
  const found = group.share_partitions ?? [];
  $("shares-section").hidden = !found.length;
  setText($("share-count"), number(found.length));
  patch($("shares").tBodies[0], found.slice(0, MOST), (each) => `${each.partition} ${each.topic_id}`, () => row(SHARES), (line, each) => share(line, each, now));
  $("more-shares").hidden = found.length <= MOST;
  setText($("more-shares"), `Shown: the first ${number(MOST)}.`);
}
