"""What /metrics says of each group's state: tables from a metric's name to where its samples come from.

Samples are columns: whose they are, what labels they have besides, and the values. What a metric says of a group's
offsets stands in `offset_metrics.py`; what becomes of the columns in `page.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from coordinator_model.clocked.finding_members import involved_members
from coordinator_model.clocked.stuck import effective_start_ms
from coordinator_model.figures.rows import NONE
from coordinator_model.figures.table import GroupWords
from coordinator_model.figures.topics import GroupTopics
from coordinator_model.migration import phases
from coordinator_model.rules import rebalance_storm
from coordinator_model.rules.rebalance_storm import STORM_WINDOW_MS
from coordinator_model.rules.settling import AT_REST_MS
from coordinator_model.state.membership import CLASSIC, CONSUMER, SHARE
from coordinator_model.state.rule_memory import REBALANCE_DURATION_BUCKETS_MS
from streaming.board import gates
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.board.group_columns import Flags, GroupColumns, Integers
from streaming.board.lag_columns import Lags, measure, table_of
from streaming.board.share_partitions import ShareLag
from streaming.board.totals import LeftOut
from streaming.metrics.text_format import label, labelled

Figures = npt.NDArray[Any]
"""Integers or floating-point numbers."""


class GroupShard(NamedTuple):
    """One of some shares of all groups, by name: the same one in every process."""

    number: int = 0
    shares: int = 1

    def of(self, groups: Mapping[str, BoardGroup]) -> Iterable[BoardGroup]:
        """Its groups."""
        if self.shares == 1:
            return groups.values()
        number = self.number % self.shares
        return (
            of for name, of in groups.items() if crc32(name.encode("utf-8", "surrogatepass")) % self.shares == number
        )


ALL_GROUPS: Final = GroupShard()


class Moment:
    """What a scrape is of: everything is read of the same board at the same time."""

    def __init__(
        self, board: Board, now_ms: int, exported: LeftOut | None = None, shard: GroupShard = ALL_GROUPS
    ) -> None:
        """Of what `exported` has in scope, and by default of all that the board shows; of groups, of one share."""
        self.board = board
        self.polls = board.health.polls()
        self.exported = exported or LeftOut(board.scope)
        self.topics = self.exported.scope.topics
        self.now_ms = now_ms
        self.shown, self.standing = self.of_board = board.moment()
        self.sums = board.sums_of(self.shown.groups)
        self.groups = GroupColumns(shard.of(self.shown.groups))
        self.lags: Lags = measure(table_of(self.groups), board.ends, now_ms)
        self.shares: Mapping[int, list[ShareLag]] = self.lags.of_shares
        self.stuck = board.findings.overdue["rebalance_stuck"]
        self.not_back = board.findings.not_back
        self.read_ms = board.findings.read_ms
        self.event_counts = board.events.counts_by_group()
        self.silenced = board.events.silenced_by_group()
        self.expectations = board.expectations
        self.sizes = board.ends.sizes
        self.topic_names = board.ends.topic_names
        self.partition_series = True
        """Whether there are series per partition."""

    @cached_property
    def in_scope(self) -> Flags:
        """Whether a group has series of its own."""
        chosen = self.exported.scope.groups
        if chosen.takes_all:
            return np.ones(len(self.groups), np.bool_)
        return np.array(list(map(chosen, self.groups.names)), np.bool_)

    @cached_property
    def gates(self) -> Mapping[str, tuple[str, Mapping[tuple[str, str], int]]]:
        """As `gates.offline`."""
        return gates.offline(self.board, self.sums, self.now_ms, self.of_board)


class Samples(NamedTuple):
    """Samples of one metric: of the groups in these places, with further labels, and with these values.

    `labels` is one text for all, or those that there are and of each sample the place among them.
    """

    groups: Integers
    labels: str | tuple[Sequence[str], Integers]
    values: Figures


Source = Callable[[Moment], Iterable[Samples]]


def of_groups(moment: Moment, where: Flags | bool, values: Figures | float, labels: str = "") -> Samples:
    """One sample of each group in scope where that holds, with its value of a column."""
    places = np.flatnonzero(where & moment.in_scope)
    return Samples(places, labels, values[places] if isinstance(values, np.ndarray) else np.full(len(places), values))


def _number(name: str) -> Source:
    return lambda moment: [of_groups(moment, moment.groups.has(name), moment.groups[name])]


def _counted(name: str, labels: str = "") -> Source:
    """A counter begins with its first count: `kafka_group_info` says that the group is known, so none means 0."""
    return lambda moment: [of_groups(moment, moment.groups[name] > 0, moment.groups[name], labels)]


def _if_migrating(name: str) -> Source:
    return lambda moment: [of_groups(moment, _is_migrating(moment), moment.groups[name])]


def _is_migrating(moment: Moment) -> Flags:
    return moment.groups.by_words(_may_migrate)


def _may_migrate(words: GroupWords) -> bool:
    """Whether the way from the classic to the consumer protocol concerns groups of this type at all."""
    return words.type in (CLASSIC, CONSUMER)


def _ages(moment: Moment, name: str, *, of_none: float = np.nan) -> npt.NDArray[np.float64]:
    """Seconds since a time that is one of the groups' numbers, or since it was read where it is not to be believed."""
    groups, now_ms = moment.groups, moment.now_ms
    since_ms = groups[name]
    ages = np.where(since_ms == NONE, of_none, np.maximum(0, now_ms - np.maximum(since_ms, 0)) / 1000)
    for group, read_ms in moment.read_ms.items():
        place = groups.places.get(group)
        if place is not None and since_ms[place] != NONE:
            ages[place] = age(now_ms, effective_start_ms(int(since_ms[place]), now_ms, read_ms))
    return ages


def _epoch(moment: Moment) -> Iterator[Samples]:
    epochs = moment.groups["epoch"]
    yield of_groups(moment, epochs >= 0, epochs)  # of a polled classic group it is not known


def _duplicates(moment: Moment) -> Iterator[Samples]:
    counts = moment.groups["duplicates"]
    if moment.polls is None:
        yield of_groups(moment, moment.groups.by_words(lambda words: words.type != SHARE), counts)
    else:
        yield of_groups(moment, counts > 0, counts)  # what is yet to be revoked is not polled


def _unassigned(moment: Moment) -> Iterator[Samples]:
    def count(topics: GroupTopics) -> int:
        unheld = topics.unheld(moment.sizes)
        return NONE if unheld is None else sum(map(len, unheld.values()))

    counts = moment.groups.by_topics(count)
    yield of_groups(moment, counts != NONE, counts)


def _rebalancing_seconds(moment: Moment) -> Iterator[Samples]:
    is_known = moment.groups.by_words(lambda words: words.type != CLASSIC)  # the log of a classic group does not tell
    yield of_groups(moment, is_known, _ages(moment, "rebalancing_since_ms", of_none=0.0))


def _mixed_seconds(moment: Moment) -> Iterator[Samples]:
    mixed = moment.groups.by_words(lambda words: phases.is_mixed(words.type, words.phase))
    unknown = mixed & ~moment.groups.has("mixed_since_ms")
    yield of_groups(moment, _is_migrating(moment) & ~unknown, _ages(moment, "mixed_since_ms", of_none=0.0))


def _is_unsettled(moment: Moment) -> Flags:
    """Groups that have not come to rest (`coordinator_model.rules.settling.is_yet`)."""
    groups = moment.groups
    under_way, last_ms = groups["unsettled_under_way"] > 0, groups["unsettled_last_ms"]
    lately: Flags = np.abs(moment.now_ms - np.maximum(last_ms, 0)) <= AT_REST_MS
    found: Flags = groups.has("unsettled_since_ms") & (under_way | lately)
    return found


def _storm(moment: Moment) -> Iterator[Samples]:
    groups, now_ms = moment.groups, moment.now_ms
    last_ms = groups["last_rebalance_ms"]
    lately = groups.has("last_rebalance_ms") & (np.abs(now_ms - np.maximum(last_ms, 0)) <= STORM_WINDOW_MS)
    counts = lately.astype(np.int64)
    # The last of them may be of a clock ahead of ours, and those before it within the window.
    for place in np.flatnonzero(last_ms >= now_ms - STORM_WINDOW_MS).tolist():
        several_ms = groups.held[place].several_rebalances_ms
        if several_ms is not None:
            counts[place] = rebalance_storm.storm_rebalances(several_ms, now_ms)
    yield of_groups(moment, True, counts)


def _of_words(moment: Moment, of: Callable[[GroupWords], str | None]) -> Samples:
    """A sample of 1 with the label that a group's words have; none for none."""
    words, words_of = moment.groups.words
    labels = list(map(of, words))
    has_one = np.array([text is not None for text in labels], np.bool_)[words_of]
    places = np.flatnonzero(has_one & moment.in_scope)
    return Samples(places, ([text or "" for text in labels], words_of[places]), np.ones(len(places), int))


def _phase(moment: Moment) -> Iterator[Samples]:
    yield _of_words(
        moment,
        lambda words: label(phase=words.phase) if words.phase is not None and _may_migrate(words) else None,
    )


def _blockers(moment: Moment) -> Iterator[Samples]:
    for reason in sorted({reason for words in moment.groups.words[0] for reason in words.blockers}):

        def is_blocked(words: GroupWords, reason: str = reason) -> bool:
            return _may_migrate(words) and reason in words.blockers

        yield of_groups(moment, moment.groups.by_words(is_blocked), 1, label(reason=reason))


def _members(moment: Moment) -> Iterator[Samples]:
    for protocol in ("classic", "consumer"):
        yield of_groups(moment, True, moment.groups[f"{protocol}_members"], label(protocol=protocol))


def _assigned(moment: Moment) -> Iterator[Samples]:
    each, topics_of = moment.groups.topics
    of_topics = [list(_topics_assigned(moment, topics)) for topics in each]
    labels = [text for each in of_topics for text, _ in each]
    counts = np.array([count for each in of_topics for _, count in each], np.int64)
    lengths = np.array(list(map(len, of_topics)), np.int64)
    firsts = np.cumsum(lengths) - lengths
    places = np.flatnonzero(moment.in_scope)
    times = lengths[topics_of[places]]
    # A group has as many samples in a row as its topics have labels in a row.
    into = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    at = np.repeat(firsts[topics_of[places]], times) + into
    yield Samples(np.repeat(places, times), (labels, at), counts[at])


def _topics_assigned(moment: Moment, topics: GroupTopics) -> Iterator[tuple[str, int]]:
    """(label, partitions that are held) of topics that have series."""
    for topic, partitions in topics.assigned.items():
        name = moment.topic_names.get(topic) if topics.by_id else topic
        if name is not None and moment.topics(name):
            yield label(topic=name), len(partitions)


def _by_kind(moment: Moment, counts: Iterable[tuple[str, str, int]]) -> Iterator[Samples]:
    """(group, kind, count) as samples by kind."""
    of_kinds: dict[str, tuple[list[int], list[int]]] = {}
    in_scope = moment.in_scope
    for group, kind, count in counts:
        place = moment.groups.places.get(group)
        if place is not None and in_scope[place]:
            places, values = of_kinds.setdefault(kind, ([], []))
            places.append(place)
            values.append(count)
    for kind, (places, values) in sorted(of_kinds.items()):
        yield Samples(np.array(places, np.int64), label(kind=kind), np.array(values, np.int64))


def _events(moment: Moment) -> Iterator[Samples]:
    counts = moment.event_counts.items()
    return _by_kind(moment, ((group, kind, count) for group, of in counts for kind, count in of.items()))


def _silenced(moment: Moment) -> Iterator[Samples]:
    """From 0 on for each kind that is expected: alert rules leave out what has this series."""
    if not moment.expectations:
        return iter(())
    counts, names = moment.silenced, moment.groups.places
    return _by_kind(
        moment,
        (
            (group, kind, counts.get(group, _NO_COUNTS).get(kind, 0))
            for group in names
            for kind in moment.expectations.kinds(group)
        ),
    )


def _not_back(moment: Moment) -> Iterator[Samples]:
    found = {name: of.missing for name, of in moment.not_back.items() if of.is_open}
    missing = np.zeros(len(moment.groups), np.int64)
    for name, count in found.items():
        if name in moment.groups.places:
            missing[moment.groups.places[name]] = count
    yield of_groups(moment, missing > 0, missing)


def _involved(moment: Moment) -> Iterator[Samples]:
    board = moment.board
    restless = moment.groups.by_words(lambda words: not words.steady)
    for place in np.flatnonzero(restless & moment.in_scope).tolist():
        held = moment.groups.held[place]
        moved_ms = board.ends.leader_moves(board.offsets_topic, held.summary.partition).last_ms
        found = [
            labelled(
                finding=finding,
                member_id=member.member_id,
                instance_id=member.instance_id or "",
                client_id=member.client_id,
                client_host=member.client_host,
            )
            for finding, member in involved_members(held.state, moment.now_ms, moved_ms, moment.read_ms.get(held.name))
        ]
        if found:
            yield Samples(np.full(len(found), place), (found, np.arange(len(found))), np.ones(len(found), np.int64))


GROUP_METRICS: Final[Mapping[str, Source]] = {
    "kafka_group_info": lambda moment: [
        _of_words(moment, lambda words: label(type=words.type, protocol=words.protocol or ""))
    ],
    "kafka_group_state": lambda moment: [_of_words(moment, lambda words: label(state=words.group_state))],
    "kafka_group_epoch": _epoch,
    "kafka_group_assignment_epoch": _number("assignment_epoch"),
    "kafka_group_members": _members,
    "kafka_group_rebalances_total": _counted("rebalances"),
    "kafka_group_rebalance_rounds_lost_total": _counted("rounds_lost"),
    "kafka_group_rebalances_avoidable_total": _counted("rebalances_avoidable"),
    "kafka_group_partitions_moved_total": _counted("partitions_moved"),
    "kafka_group_partitions_kept_total": _counted("partitions_kept"),
    "kafka_group_rebalancing_seconds": _rebalancing_seconds,
    "kafka_group_rebalance_stuck": lambda moment: [
        of_groups(moment, True, moment.groups.named(moment.stuck).astype(np.int64))
    ],
    "kafka_group_members_not_back": _not_back,
    "kafka_group_unsettled_seconds": lambda moment: [
        of_groups(moment, _is_unsettled(moment), _ages(moment, "unsettled_since_ms"))
    ],
    "kafka_group_unsettled_epochs": lambda moment: [
        of_groups(moment, _is_unsettled(moment), moment.groups["unsettled_epochs"])
    ],
    "kafka_group_storm_rebalances": _storm,
    "kafka_group_events_total": _events,
    "kafka_group_silenced_total": _silenced,
    "kafka_group_duplicate_partitions": _duplicates,
    "kafka_group_assigned_partitions": _assigned,
    "kafka_group_unassigned_partitions": _unassigned,
    "kafka_group_stale_claims_total": _counted("stale_claims"),
    "kafka_group_static_members": _number("static_members"),
    "kafka_group_static_members_absent": _number("absent_members"),
    "kafka_group_static_member_replacements_total": _counted("static_replacements"),
    "kafka_group_static_member_returns_total": _counted("static_returns"),
    "kafka_group_rebalances_saved_total": _counted("rebalances_saved"),
    "kafka_group_involved_members": _involved,
    "kafka_group_migration_phase": _phase,
    "kafka_group_migration_upgraded_members": _if_migrating("upgraded_members"),
    "kafka_group_migration_mixed_seconds": _mixed_seconds,
    "kafka_group_conversions_total": lambda moment: [
        of_groups(moment, _is_migrating(moment) & (moment.groups[name] > 0), moment.groups[name], label(direction=way))
        for way, name in ((phases.UPGRADE, "upgrades"), (phases.DOWNGRADE, "downgrades"))
    ],
    "kafka_group_leftover_records": _if_migrating("leftovers"),
    "kafka_group_upgrade_blockers": _blockers,
    "kafka_group_offset_resets_total": _counted("offset_resets"),
}
"""Metrics of a group's state, of the clock and of what is found beside the log."""

DURATION: Final = "kafka_group_rebalance_duration_seconds"
DURATION_BOUNDS: Final = tuple(bound / 1000 for bound in REBALANCE_DURATION_BUCKETS_MS)

_NO_COUNTS: Final[Mapping[str, int]] = {}


def durations(moment: Moment) -> tuple[Integers, Integers, Figures]:
    """Groups' places, and of each the counts of its rebalances by duration, and the sum of those in seconds."""
    places = np.flatnonzero(moment.in_scope)
    found = [moment.groups.held[place].durations or _NO_DURATIONS for place in places.tolist()]
    columns = np.array(found, np.int64).reshape(-1, len(_NO_DURATIONS))
    return places, columns[:, :-1], columns[:, -1] / 1000


_NO_DURATIONS: Final = (0,) * (len(DURATION_BOUNDS) + 2)


def age(now_ms: int, since_ms: int) -> float:
    """Seconds since then, 0 for what the brokers' clocks say is yet to come."""
    return max(0, now_ms - since_ms) / 1000
