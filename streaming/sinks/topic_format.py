"""Records of the two topics that others read (docs/topics.md): how they are spelt, and read again.

    topic     key                        value
    events    group, as UTF-8            docs/schemas/event.schema.json, in an envelope if asked for (cloud_events)
    groups    ["cluster","group"]        the group: as people read it (`state`), and as the board holds it (`snapshot`)
              ["cluster"]                the monitor: how far it is, what it counted

The group is there twice, because the two have different readers. `state` is GROUP, whose fields stay;
programs of other people read it. `snapshot` is what the checkpoint holds, from which `serve` shows the same figures as
the monitor itself: it knows of counters, conversions and open rebalances that GROUP does not name. A release that does
not read a snapshot's format says so. Both are absolute, so that only the newest record of a key counts.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from coordinator_model.state import snapshot
from coordinator_model.views.share_partitions import ShareFigures
from streaming.base.batch_rows import Row
from streaming.board.board import SHARE_LOG, Board
from streaming.board.board_group import BoardGroup
from streaming.board.event_window import Event
from streaming.board.offset_columns import OffsetColumns
from streaming.sinks import cloud_events

GROUP_FORMAT: Final = "group-state/1"
MONITOR_FORMAT: Final = "monitor-state/1"

Snapshot = Mapping[str, Any]
"""`group`: text of the group without its offsets; `offsets`: texts of its offset buckets; `shares`: texts of its share
partitions, where it has any."""


def event_record(cluster: str, event: Event) -> tuple[bytes, bytes]:
    """Key and value of an event; the key of one of no group is empty."""
    return _utf8(event["group"] or ""), _json({**event, "cluster": cluster})


def group_key(cluster: str, group: str) -> bytes:
    """Key of a group."""
    return _json([cluster, group])


def group_snapshot(held: BoardGroup) -> Snapshot:
    """All that makes the group what it is."""
    shares = [of.dump() for _, of in sorted(held.shares.items())]
    return {
        "group": held.text,
        "offsets": [snapshot.text_of_offsets(bucket.packed) for bucket in held.buckets],
        **({"shares": shares} if shares else {}),
    }


def group_value(cluster: str, held: BoardGroup, shot: Snapshot, topic_names: Mapping[str, str], now_ms: int) -> bytes:
    """Value of a group."""
    return _json(
        {
            "format": GROUP_FORMAT,
            "cluster": cluster,
            "time": now_ms,
            "state": held.group_view(topic_names, now_ms),
            "snapshot": shot,
        }
    )


def digest(shot: Snapshot) -> bytes:
    """What two equal snapshots have in common, and no others."""
    return hashlib.sha256(_json([shot["group"], shot["offsets"], *shot.get("shares", ())])).digest()


def monitor_key(cluster: str) -> bytes:
    """Key of the monitor."""
    return _json([cluster])


def monitor_value(cluster: str, board: Board, now_ms: int, *, ready: bool) -> bytes:
    """Value of the monitor; `ready` once all groups are written that it had caught up with."""
    polls = board.health.polls()
    return _json(
        {
            "format": MONITOR_FORMAT,
            "cluster": cluster,
            "time": now_ms,
            "ready": ready,
            "positions": {"membership": board.health.positions.membership, "commits": board.health.positions.commits},
            "shards": {str(partition): totals for partition, totals in board.shown.shards.items()},
            "unread": {str(partition): since_ms for partition, since_ms in board.health.unread.items()},
            "offsets_partitions": board.health.offsets_partitions,
            "share_log": board.ends.share_log.why_unknown,
            "agreed": {str(partition): number for partition, number in board.health.agreed.items()},
            **({} if polls is None else {"source": polls.as_json()}),
        }
    )


def read_key(key: bytes | None) -> tuple[str, ...]:
    """Cluster, and group if it is a group's; empty for what is not ours."""
    try:
        held = json.loads(key or b"")
    except ValueError:
        return ()
    is_ours = isinstance(held, list) and len(held) in (1, 2) and all(isinstance(part, str) for part in held)
    return tuple(held) if is_ours else ()


def read_value(value: bytes, accepted: str) -> dict[str, Any]:
    """A value of a format; raises ValueError for what is none."""
    held = json.loads(value)
    found = held.get("format") if isinstance(held, dict) else None
    if found != accepted:
        raise ValueError(f"format: found {found!r}, this release reads {accepted!r}")
    return dict(held)


def read_event(value: bytes | None) -> dict[str, Any]:
    """An event, with an envelope or without; raises ValueError for what is none."""
    held = cloud_events.opened(json.loads(value or b"null"))
    if not isinstance(held, dict) or not {"id", "time", "group", "kind"} <= held.keys():
        raise ValueError("no event")
    return held


def rows(group: str, shot: Snapshot, known: BoardGroup | None) -> Iterator[Row]:
    """A group's snapshot as rows for a board that knows it already as `known`, or does not."""
    buckets = [snapshot.offsets_of_text(text) for text in shot["offsets"]]
    former = set() if known is None else {bucket.key for bucket in known.buckets}
    if former - {OffsetColumns(*packed).key for packed in buckets}:
        # It ended and began again unseen.
        yield Row(-1, "group_deleted", group)
    yield Row(-1, "group", group, words=shot["group"])
    for packed in buckets:
        yield Row(-1, "offsets", group, *packed)
    shares = [ShareFigures.load(text) for text in shot.get("shares", ())]
    for of in shares:
        yield Row(SHARE_LOG + of.log_partition, "share", "", of.dump().encode())
    gone = {} if known is None else known.shares.keys() - {(of.topic_id, of.partition) for of in shares}
    for topic_id, number in sorted(gone):
        yield Row(SHARE_LOG, "share_gone", "", json.dumps([group, topic_id, number]).encode())


def shard_rows(held: Mapping[str, Any]) -> Iterator[Row]:
    """The monitor's counts as rows for a board."""
    for partition, totals in held["shards"].items():
        yield Row(int(partition), "shard", "", json.dumps(totals).encode())


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
