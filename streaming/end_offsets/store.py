"""Where the logs end: what the sampler last heard of topics and partitions, for all who read lag.

Written by one thread (`sampler.py`), read by many. What was never sampled is absent. A partition that stopped
answering while others do loses its figures after a while, because a frozen end would be read as a lag of zero; when
no broker answers at all the figures stay, and their age says so.
"""

import json
import threading
import zlib
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from coordinator_model.lag import DEFAULT_POINTS, DEFAULT_SPAN_MS, Cut, EndOffsetHistory
from streaming.base import atomic_files
from streaming.end_offsets.share_log import ShareLogStatus

FILE_FORMAT: Final = "end-offsets/1"

MOST_CUTS: Final = 4
MOST_FOUND: Final = 256
"""Offsets of one partition that the brokers' answers are kept of: times of records, and gaps."""

STALE_AFTER_MS: Final = 30_000
"""How long one partition may be silent while others answer."""

GONE_AFTER_MS: Final = 30_000
"""How long brokers have to say that there is no such topic: one that is just starting says so of topics that there are.
"""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the brokers describe it.

    Attributes:
        id: 22-character text form of the topic id; None where brokers have none (before 2.8).
        name: its name.
        partitions: how many it has.
        leaders: partition to broker, of those partitions that have a leader.
        leader_epochs: partition to how often it was given a leader, as far as the brokers say; negative if they do not.
    """

    id: str | None
    name: str
    partitions: int
    leaders: Mapping[int, int] = field(default_factory=dict)
    leader_epochs: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recreated:
    """A topic that was deleted and made again under its name.

    `seen_ms` is when it was last described under its former id, 0 where an earlier run was it that did; `noticed_ms`
    when it first was under its new one.
    """

    former_id: str
    id: str
    seen_ms: int
    noticed_ms: int


@dataclass(frozen=True, slots=True)
class LeaderMoves:
    """Changes of a partition's leader since the sampling began: how many, and when the last one was noticed."""

    count: int = 0
    last_ms: int | None = None


NEVER_MOVED: Final = LeaderMoves()


@dataclass(slots=True)
class PartitionEnds:
    """What is known of one partition; `history` is of its high watermark, which lag is to."""

    history: EndOffsetHistory
    high_watermark: int | None = None
    last_stable: int | None = None
    earliest: int | None = None
    sampled_ms: int = 0
    unanswered: tuple[int, int] | None = None
    """(since, until) of the last time, longer than `STALE_AFTER_MS`, in which no leader answered for the partition."""
    open_since_ms: int | None = None
    """Since when the oldest open transaction is: since its first record was written, or was seen; None for none."""
    open_since_is_exact: bool = False
    found: dict[int, int] = field(default_factory=dict)
    """Offset → when the record there was written, in milliseconds, as brokers said; the latest answers last."""
    gaps: dict[int, int] = field(default_factory=dict)
    """Offset → the one up to which no offset holds a record that was committed; itself where it holds one."""
    cuts: tuple[Cut, ...] = ()
    """Where the log was cut off while it was sampled, the latest last."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the groups have to do with: topics by name (commits, subscriptions) and by id (assignments)."""

    names: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()


class EndOffsets:
    """Ends of all sampled partitions, and the topics they belong to.

    Hold `lock` while using a `PartitionEnds`: its history changes under the sampler's hands.

    Attributes:
        share_log: whether the share coordinator's log is read, which lag of share groups is of.
    """

    def __init__(self, history_points: int = DEFAULT_POINTS, history_span_ms: int = DEFAULT_SPAN_MS) -> None:
        self.lock = threading.RLock()
        self.share_log = ShareLogStatus()
        self._history_points = history_points
        self._history_span_ms = history_span_ms
        self._partitions: dict[TopicPartition, PartitionEnds] = {}
        # The same by topic: loops over a topic's partitions find them side by side.
        self._by_topic: dict[str, dict[int, PartitionEnds]] = {}
        self._topics: dict[str, Topic] = {}
        self._sizes: dict[str, Topic] = {}
        self._names: dict[str, str] = {}
        self._former_ids: dict[str, str | None] = {}
        self._moves: dict[TopicPartition, LeaderMoves] = {}
        self._recreated: dict[str, Recreated] = {}
        self._last_ids: dict[str, tuple[str, int]] = {}
        # Name → id under which it was last described, and when; kept while there is no such topic.
        self._absent_ms: dict[str, int] = {}
        self._gone: frozenset[str] = frozenset()
        self._leaders_doubted = False
        self._sampled_ms: int | None = None
        self._asked_for = threading.Event()

    def ask(self) -> None:
        """Have the next round of samples begin now, or with the end of the one under way."""
        self._asked_for.set()

    def doubt_leaders(self) -> None:
        """Have topics described again now: another client met an error that names another leader."""
        self._leaders_doubted = True
        self.ask()

    def take_doubt(self) -> bool:
        """Whether leaders are doubted, once for each time."""
        doubted, self._leaders_doubted = self._leaders_doubted, False
        return doubted

    def await_round(self, seconds: float) -> None:
        """Wait until the next round is due, in so many seconds, or asked for."""
        self._asked_for.wait(seconds)
        self._asked_for.clear()

    @property
    def sampled_ms(self) -> int | None:
        """When the last round of samples came in; None before the first."""
        return self._sampled_ms

    @property
    def topic_names(self) -> Mapping[str, str]:
        """Topic id → name, of every topic ever described. Replaced, never changed."""
        return self._names

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Name → topic, of those last described. Replaced, never changed."""
        return self._topics

    @property
    def sizes(self) -> Mapping[str, Topic]:
        """The same, replaced only when a topic came, went, grew or was recreated: for what is worked out from those."""
        return self._sizes

    @property
    def has_topic_ids(self) -> bool | None:
        """Whether brokers have topic ids, as those since 2.8 do; None before any topic was described."""
        ids = [topic.id for topic in self._topics.values()]
        return any(id_ is not None for id_ in ids) if ids else None

    @property
    def recreated(self) -> Mapping[str, Recreated]:
        """Name → what was last noticed of a topic that was made again. Replaced, never changed."""
        return self._recreated

    @property
    def gone(self) -> frozenset[str]:
        """Names that brokers have said for `GONE_AFTER_MS` are no topics. Replaced, never changed."""
        return self._gone

    def topic(self, name: str) -> Topic | None:
        """The topic of that name, if there is one."""
        return self._topics.get(name)

    def partition(self, topic: str, partition: int) -> PartitionEnds | None:
        """What is known of a partition; None before its first sample."""
        return self._partitions.get((topic, partition))

    def of_topic(self, name: str) -> dict[int, PartitionEnds]:
        """Partition → what is known of it, ascending."""
        topic, known = self._topics.get(name), self.known_of(name)
        return {number: known[number] for number in range(topic.partitions if topic else 0) if number in known}

    def known_of(self, name: str) -> Mapping[int, PartitionEnds]:
        """Partition → what is known of it, whether or not the topic is there; to be read while `lock` is held."""
        return self._by_topic.get(name, {})

    def leader_moves(self, topic: str, partition: int) -> LeaderMoves:
        """How often the partition's leader changed. Of the offsets topic that is: the groups' coordinator moved."""
        return self._moves.get((topic, partition), NEVER_MOVED)

    def age_seconds(self, now_ms: int) -> float | None:
        """Age of the last round of samples; None before the first."""
        return None if self._sampled_ms is None else max(0.0, (now_ms - self._sampled_ms) / 1000)

    def set_topics(
        self, described: Iterable[Topic], asked: Iterable[str], now_ms: int = 0, *, untold: Collection[str] = ()
    ) -> None:
        """Take a description of all topics by the names `asked`: what is not among `described` is gone.

        A topic that came back under another id is another topic: its history begins again.

        Args:
            described: the topics that there are.
            asked: names that were asked for.
            now_ms: when, which is when a leader that changed is said to have changed.
            untold: names of which brokers do not say whether they are topics; what was known of them stays.
        """
        with self.lock:
            former = self._known_ids()
            found = {name: self._topics[name] for name in untold if name in self._topics}
            described = [*described]
            found |= {topic.name: topic for topic in described}
            gone = {*asked, *self._topics} - found.keys() - {*untold}
            self._absent_ms = {name: self._absent_ms.get(name, now_ms) for name in gone}
            self._gone = frozenset(name for name, ms in self._absent_ms.items() if now_ms - ms >= GONE_AFTER_MS)
            recreated = {
                name
                for name, topic in found.items()
                if None not in (topic.id, former.get(name)) and topic.id != former[name]
            }
            for name in found.keys() - recreated:
                self._note_moves(self._topics.get(name), found[name], now_ms)
                self._note_epochs(found[name])
            self._note_ids({topic.name: topic.id for topic in described}, now_ms)
            over = gone | recreated
            self._partitions = {place: ends for place, ends in self._partitions.items() if place[0] not in over}
            self._by_topic = {topic: known for topic, known in self._by_topic.items() if topic not in over}
            self._topics = found
            if _sizes(found) != _sizes(self._sizes):
                self._sizes = found
            self._former_ids = {name: id_ for name, id_ in self._former_ids.items() if name not in found.keys() | gone}
            self._names = {**self._names, **{topic.id: topic.name for topic in found.values() if topic.id is not None}}

    def record(
        self, now_ms: int, high_watermarks: Mapping[TopicPartition, int], last_stable: Mapping[TopicPartition, int]
    ) -> bool:
        """Take one round of samples, asked for in this order and with these two isolation levels.

        Returns whether an end went backwards, which is what a recreated topic does.
        """
        backwards = False
        with self.lock:
            for place in high_watermarks.keys() & last_stable.keys():
                ends = self._partitions.get(place)
                if ends is None:
                    ends = self._partitions[place] = PartitionEnds(self._new_history())
                    self._by_topic.setdefault(place[0], {})[place[1]] = ends
                # Records written between the two questions are in the second answer only.
                end = max(high_watermarks[place], last_stable[place])
                if ends.high_watermark is not None and end < ends.high_watermark:
                    backwards = True
                    ends.cuts = (*ends.cuts[1 - MOST_CUTS :], Cut(end, now_ms))
                    ends.found.clear()
                if end < max(ends.gaps.values(), default=0):
                    ends.gaps.clear()  # of a log that was cut off, perhaps while no monitor sampled
                ends.high_watermark = end
                if ends.high_watermark == last_stable[place]:
                    ends.open_since_ms, ends.open_since_is_exact = None, False
                elif ends.open_since_ms is None or ends.last_stable != last_stable[place]:
                    ends.open_since_ms, ends.open_since_is_exact = now_ms, False
                if 0 < ends.sampled_ms < now_ms - STALE_AFTER_MS:
                    ends.unanswered = ends.sampled_ms, now_ms
                ends.last_stable, ends.sampled_ms = last_stable[place], now_ms
                ends.history.add(now_ms, end)
            for ends in self._partitions.values():
                if now_ms - ends.sampled_ms > STALE_AFTER_MS:
                    ends.high_watermark = ends.last_stable = ends.open_since_ms = None
            self._sampled_ms = now_ms
        return backwards

    def hold(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take the earliest committed offset of each partition that somebody is behind on: its samples are kept."""
        with self.lock:
            for place, ends in self._partitions.items():
                ends.history.hold(offsets.get(place))

    def record_found(self, found: Mapping[TopicPartition, Mapping[int, int]]) -> None:
        """Take when records were written, by offset, in milliseconds."""
        with self.lock:
            for place, times in found.items():
                ends = self._partitions.get(place)
                if ends is not None:
                    ends.found.update(times)
                    for offset in list(ends.found)[:-MOST_FOUND]:
                        del ends.found[offset]

    def record_gaps(self, gaps: Mapping[TopicPartition, tuple[int, int, bool]]) -> None:
        """Take (offset, first one after it that holds a record or was not looked at, whether it holds a record)."""
        with self.lock:
            for place, (offset, upto, is_record) in gaps.items():
                ends = self._partitions.get(place)
                if ends is None:
                    continue
                ends.gaps[offset] = upto
                if is_record:
                    ends.gaps[upto] = upto
                for oldest in list(ends.gaps)[:-MOST_FOUND]:
                    del ends.gaps[oldest]

    def record_cuts(self, ends_of_epochs: Mapping[TopicPartition, Mapping[int, int]]) -> None:
        """Take where epochs of leaders ended, by epoch, where commits of them are beyond that."""
        with self.lock:
            for place, epochs in ends_of_epochs.items():
                ends = self._partitions.get(place)
                # Of commits without an epoch nothing is known: the time of none of them is before 0.
                found = tuple(Cut(end, -1, epoch + 1) for epoch, end in sorted(epochs.items()))
                if ends is not None and not {*found} <= {*ends.cuts}:
                    ends.cuts = (*(cut for cut in ends.cuts if cut not in found), *found)[-MOST_CUTS:]
                    ends.gaps.clear()

    def open_transactions(self, topic: str, before_ms: int) -> dict[TopicPartition, int]:
        """Partition → last stable offset, where a transaction was seen open before then and not asked about yet."""
        with self.lock:
            return {
                (topic, number): ends.last_stable
                for number, ends in self.of_topic(topic).items()
                if ends.last_stable is not None
                and ends.open_since_ms is not None
                and ends.open_since_ms <= before_ms
                and not ends.open_since_is_exact
            }

    def record_open_since(self, stands: Mapping[TopicPartition, int], written_ms: Mapping[TopicPartition, int]) -> None:
        """Take when the records at last stable offsets were written; what is unanswered is not asked about again."""
        with self.lock:
            for place, last_stable in stands.items():
                ends = self._partitions.get(place)
                if ends is not None and ends.open_since_ms is not None and ends.last_stable == last_stable:
                    ends.open_since_ms = written_ms.get(place, ends.open_since_ms)
                    ends.open_since_is_exact = True

    def record_earliest(self, earliest: Mapping[TopicPartition, int]) -> None:
        """Take the first offsets that can still be read."""
        with self.lock:
            for place, offset in earliest.items():
                if place in self._partitions:
                    self._partitions[place].earliest = offset

    def save(self, file: Path) -> None:
        """Write histories and gaps, so that lag in seconds survives a restart; raises OSError."""
        with self.lock:
            ids = self._known_ids()
            places = sorted(place for place in self._partitions if place[0] in ids)
        topics: dict[str, dict[str, Any]] = {}
        for name, partition in places:
            with self.lock:  # again and again, because packing a big cluster takes a second
                ends = self._partitions.get((name, partition))
                dumped = None if ends is None else ends.history.dump()
                gaps = [] if ends is None else [*ends.gaps.items()]
            if dumped is not None:
                held = topics.setdefault(name, {"id": ids[name], "partitions": {}})
                held["partitions"][str(partition)] = b64encode(zlib.compress(dumped, 1)).decode("ascii")
                if gaps:
                    held.setdefault("gaps", {})[str(partition)] = gaps
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.replace(file, json.dumps({"format": FILE_FORMAT, "topics": topics}, separators=(",", ":")))

    def load(self, file: Path) -> None:
        """Inverse of `save`; nothing where there is no file. Raises ValueError, naming what is wrong with it."""
        try:
            held = json.loads(file.read_text("utf-8"))
            if held["format"] != FILE_FORMAT:
                raise ValueError(f"format {held['format']!r}, accepted: {FILE_FORMAT!r}")  # noqa: TRY301 - as below
            loaded = {
                (name, int(partition)): PartitionEnds(
                    self._load_history(history),
                    gaps={int(offset): int(upto) for offset, upto in topic.get("gaps", {}).get(partition, ())},
                )
                for name, topic in held["topics"].items()
                for partition, history in topic["partitions"].items()
            }
            ids = {name: None if topic["id"] is None else str(topic["id"]) for name, topic in held["topics"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
            raise ValueError(f"{file}: not a history of end offsets ({error})") from None
        with self.lock:
            self._partitions.update(loaded)
            for (topic, partition), ends in loaded.items():
                self._by_topic.setdefault(topic, {})[partition] = ends
            self._former_ids = ids
            self._last_ids = {name: (id_, 0) for name, id_ in ids.items() if id_ is not None}

    def _note_ids(self, ids: Mapping[str, str | None], now_ms: int) -> None:
        new: dict[str, Recreated] = {}
        for name, id_ in ids.items():
            if id_ is None:
                continue
            former, seen_ms = self._last_ids.get(name, (id_, now_ms))
            if former != id_:
                new[name] = Recreated(former, id_, seen_ms, now_ms)
            self._last_ids[name] = id_, now_ms
        if new:
            self._recreated = {**self._recreated, **new}

    def _known_ids(self) -> dict[str, str | None]:
        """Name → id that the topic has, or had when it was last described; None where brokers do not say one."""
        return {**self._former_ids, **{topic.name: topic.id for topic in self._topics.values()}}

    def _note_moves(self, former: Topic | None, now: Topic, now_ms: int) -> None:
        """An election that the same broker won counts too: it loads the groups again, and starts their timers."""
        if former is None:
            return
        for partition, leader in now.leaders.items():
            was, epoch = former.leaders.get(partition), now.leader_epochs.get(partition, -1)
            known = former.leader_epochs.get(partition, -1)
            moves = epoch - known if epoch > known >= 0 else int(was not in (None, leader))
            if moves:
                place = (now.name, partition)
                self._moves[place] = LeaderMoves(self._moves.get(place, NEVER_MOVED).count + moves, now_ms)

    def _note_epochs(self, topic: Topic) -> None:
        """The leader that cut a log off is the one in the first description after the cut was noticed."""
        for number, ends in self._by_topic.get(topic.name, {}).items():
            epoch = topic.leader_epochs.get(number, -1)
            if epoch >= 0 and any(cut.leader_epoch is None for cut in ends.cuts):
                ends.cuts = tuple(
                    replace(cut, leader_epoch=epoch) if cut.leader_epoch is None else cut for cut in ends.cuts
                )

    def _new_history(self) -> EndOffsetHistory:
        return EndOffsetHistory(self._history_points, self._history_span_ms)

    def _load_history(self, text: str) -> EndOffsetHistory:
        dumped = zlib.decompress(b64decode(text, validate=True))
        return EndOffsetHistory.load(dumped, self._history_points, self._history_span_ms)


def _sizes(topics: Mapping[str, Topic]) -> dict[str, tuple[str | None, int]]:
    return {name: (topic.id, topic.partitions) for name, topic in topics.items()}
