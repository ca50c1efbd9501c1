"""Share partitions as the board holds them, by group, and their lag: figures of the share coordinator's log.

    lag            high watermark - start offset - what is done behind it, as Kafka's tool has it
    lag in time    age of the record at the first offset that is not done: all acknowledged and idle is no lag
    stalled since  when that offset became the first one, or its record was written, whichever was later

What both logs are needed for is decided here: a state whose group is not there, or is no share group, or whose topic
was made again, is shown in no group, and counted.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, NamedTuple

from coordinator_model import lag
from coordinator_model.views.share_partitions import ShareFigures
from streaming.base.persistent_map import GroupMap
from streaming.end_offsets.store import EndOffsets

ShareKey = tuple[str, int]
"""(topic id, partition)"""

OfGroup = Mapping[ShareKey, ShareFigures]

NO_SHARES: Final[OfGroup] = {}


@dataclass(frozen=True, slots=True, eq=False)
class SharesShown:
    """All share partitions as of one micro-batch; never changed.

    `logs` are totals of each partition of the share coordinator's log.
    """

    groups: GroupMap[OfGroup] = field(default_factory=GroupMap)
    logs: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


class SharesDraft:
    """What is shown, with rows of a batch taken in."""

    def __init__(self, shown: SharesShown) -> None:
        self._shown = shown
        self.changed: dict[str, dict[ShareKey, ShareFigures]] = {}
        self._logs: dict[int, Mapping[str, Any]] = {}

    def take(self, partition: int, kind: str, payload: bytes) -> None:
        """Take in a row of the second log (`base.batch_rows.Row`)."""
        if kind == "share_log":
            self._logs[partition] = json.loads(payload)
        elif kind == "share_gone":
            group, *place = json.loads(payload)
            self._of(group).pop((place[0], place[1]), None)
        else:
            figures = ShareFigures.load(payload)
            self._of(figures.group)[figures.topic_id, figures.partition] = figures

    def shown(self) -> SharesShown:
        """All of it, in the place of what was shown."""
        if not self.changed and not self._logs:
            return self._shown
        groups = self._shown.groups.with_changes({name: of or None for name, of in self.changed.items()})
        return SharesShown(groups, {**self._shown.logs, **self._logs})

    def _of(self, group: str) -> dict[ShareKey, ShareFigures]:
        if group not in self.changed:
            self.changed[group] = dict(self._shown.groups.get(group, NO_SHARES))
        return self.changed[group]


UNREAD: Final = "its partition of the share coordinator's log cannot be read"
NOT_INITIALIZED: Final = "not initialized"
NO_COUNT: Final = "brokers before 4.2 do not say how much is done"
NO_END: Final = "where the partition ends is not known"


class ShareLag(NamedTuple):
    """Lag of one share partition. What is not known is None.

    Attributes:
        figures: what is written of it.
        topic: the topic's name, or its id where that is not known.
        end: high watermark.
        records: as Kafka's tool has it.
        seconds: age of the record at the first offset that is not done.
        at_least: whether that is a lower bound.
        stalled_since_ms: since when that record waits to be done.
        why: why there is no lag in records.
    """

    figures: ShareFigures
    topic: str
    end: int | None
    records: int | None
    seconds: float | None
    at_least: bool
    stalled_since_ms: int | None
    why: str | None

    @property
    def is_unknown(self) -> bool:
        """Whether sums lack it: where nothing was delivered yet there is nothing to add.

        Nor where brokers never say how much is done, or nothing is read of any share group.
        """
        return self.why in (NO_END, UNREAD)

    def view(self) -> dict[str, Any]:
        """As the API has it."""
        return {
            **self.figures.view(self.topic),
            "log_end_offset": self.end,
            "lag": self.records,
            "lag_seconds": self.seconds,
            "lag_seconds_at_least": self.at_least,
            "stalled_since": self.stalled_since_ms,
            **({} if self.why is None else {"lag_unknown": self.why}),
        }


def share_lags(shares: OfGroup, ends: EndOffsets, now_ms: int) -> list[ShareLag]:
    """Share partitions of a group at this moment, by topic and partition, without those of topics that were made again.

    Hold the lock of `ends`.
    """
    names = ends.topic_names
    found = []
    for (topic_id, _), figures in shares.items():
        name = names.get(topic_id)
        if name is None or not _is_another(ends, name, topic_id):
            found.append(_measured(figures, name, ends, now_ms))
    return sorted(found, key=lambda of: (of.topic, of.figures.partition))


def share_views(shares: OfGroup, topic_names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Share partitions of a GROUP, without lag, by topic and partition."""
    views = [of.view(topic_names.get(of.topic_id, of.topic_id)) for of in shares.values()]
    return sorted(views, key=itemgetter("topic", "partition", "topic_id"))


def orphans(shown: SharesShown, groups: Mapping[str, Any], ends: EndOffsets) -> int | None:
    """Share partitions that are shown in no group; None where nothing is known of any.

    Args:
        shown: all of them.
        groups: all groups of the same moment, by name.
        ends: with where logs end.
    """
    if ends.share_log.why_unknown is not None:
        return None
    count = 0
    for name, of in shown.groups.items():
        held = groups.get(name)
        if held is None or held.shares is not of:
            count += len(of)
        else:
            count += sum(is_of_another_topic(topic_id, ends) for topic_id, _ in of)
    return count


def is_of_another_topic(topic_id: str, ends: EndOffsets) -> bool:
    """Whether a topic id is no longer its topic's."""
    name = ends.topic_names.get(topic_id)
    return name is not None and _is_another(ends, name, topic_id)


def _is_another(ends: EndOffsets, name: str, topic_id: str) -> bool:
    topic = ends.topic(name)
    return topic is not None and topic.id != topic_id


def _measured(figures: ShareFigures, name: str | None, ends: EndOffsets, now_ms: int) -> ShareLag:
    known = None if name is None else ends.partition(name, figures.partition)
    end = None if known is None else known.high_watermark
    topic = figures.topic_id if name is None else name
    start, done = figures.start_offset, figures.delivery_complete_count
    unknown = ends.share_log.why_unknown
    if unknown is None and figures.log_partition in ends.share_log.unread:
        unknown = UNREAD
    if unknown is not None or start is None or end is None or known is None:
        why = unknown or (NOT_INITIALIZED if start is None else NO_END)
        return ShareLag(figures, topic, end, None, None, at_least=False, stalled_since_ms=None, why=why)
    first = figures.first_not_done if figures.first_not_done is not None else start
    found = lag.measure(first, end, known.history, now_ms, found=known.found, start=known.earliest, gaps=known.gaps)
    since_ms = None
    if found.seconds is not None and found.method not in (lag.CAUGHT_UP, lag.AHEAD_OF_END, lag.NO_RECORD):
        since_ms = max(figures.moved_ms, round(now_ms - found.seconds * 1_000))
    records = None if done is None else max(0, end - start - done)
    no_count = NO_COUNT if done is None else None
    return ShareLag(figures, topic, end, records, found.seconds, found.at_least, since_ms, no_count)


class ShareSums(NamedTuple):
    """Lag of a group's share partitions together, as `lag_columns.FIGURES`; -1 and NaN where not known."""

    known_records: int = 0
    unknown: int = 0
    max_records: int = -1
    max_seconds: float = float("nan")
    at_least: bool = False
    waits: bool = False
    """Whether a record waits to be done."""


def sums_of(lags: Sequence[ShareLag]) -> ShareSums:
    """The sums of some share partitions."""
    records = [of.records for of in lags if of.records is not None]
    seconds = [of.seconds for of in lags if of.seconds is not None]
    return ShareSums(
        known_records=sum(records),
        unknown=sum(of.is_unknown for of in lags),
        max_records=max(records, default=-1),
        max_seconds=max(seconds, default=float("nan")),
        at_least=any(of.at_least for of in lags),
        waits=any(of.stalled_since_ms is not None for of in lags),
    )


def topic_ids(groups: Iterable[OfGroup]) -> frozenset[str]:
    """Ids of all topics that share partitions are of."""
    return frozenset(topic_id for of in groups for topic_id, _ in of)
