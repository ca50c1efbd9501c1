"""Polls the groups and fills the board: one thread, one round of questions every few seconds.

    a group                                        is
    that was described                             shown as it was at that moment
    that is listed, but has no answer this time    shown as it was
    between two generations (classic)              shown with its state, and the members of the last one it was seen in
    that may not be described                      not shown, but counted and named
    that is not listed, and its coordinator has    gone
    no longer
    that is not listed, and no coordinator answers shown as it was; the round is not whole
    whose partition of the log has no leader       shown as it was, under doubt; of a name that is not known, too

When brokers do not answer, the last state stays and its age is shown. What only time shows, as how long partitions are
unassigned, counts from when a poll saw it first: before is not known.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from coordinator_model.migration import phases
from coordinator_model.rules import lasting, partition_holders
from coordinator_model.rules.duplicate_owners import duplicate_assignments
from coordinator_model.rules.lasting import About
from coordinator_model.rules.members import members_of
from coordinator_model.state import snapshot
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.state.offsets import OffsetBucket, bucket_number
from coordinator_model.state.packed_offsets import PackedOffsets, dump_offsets
from coordinator_model.state.rule_memory import Migration
from streaming.base.batch_rows import Row
from streaming.base.errors import first_line
from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Background, Connection
from streaming.board.polls import PollStatus
from streaming.polling.answers import PolledOffsets
from streaming.polling.client import Answered, GroupsClient, Round

NO_PARTITION: Final = -1

UNSEEN: Final = "not described yet: it rebalances since it was first seen"

_STOP_SECONDS: Final = 1.0

_log = get_logger("polling")

BucketKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A group as the last poll left it.

    `step_ms` is when a poll first saw it as it is, `held_ms` when its partitions were first held as they are,
    `mixed_ms` when it first had members of both protocols, `moved_ms` when members last came or went meanwhile; -1 and
    None for before the first poll.
    """

    membership: Membership
    state: str
    text: str
    buckets: Mapping[BucketKey, PackedOffsets]
    offset_count: int
    step_ms: int = -1
    held_ms: int = -1
    mixed_ms: int | None = None
    moved_ms: int | None = None


class GroupPoller:
    """The thread that polls.

    Args:
        connect: makes a client; called again after a failure.
        take: gets the rows of a round, as `Board.apply` does, and the time.
        interval_ms: between the beginnings of two rounds.
        clock_ms: the wall clock.
        set_unread: gets the log's partitions without leader, each since when (ms), and how many it has, as
            `Health.set_unread` does; not called where they may not be asked for.
    """

    def __init__(
        self,
        connect: Callable[[], GroupsClient],
        take: Callable[[Sequence[Row], int], object],
        *,
        interval_ms: int,
        clock_ms: Callable[[], int],
        set_unread: Callable[[Mapping[int, int], int], object] = lambda _unread, _partitions: None,
    ) -> None:
        self._connection = Connection(connect)
        self._take = take
        self._interval_ms = interval_ms
        self._clock_ms = clock_ms
        self._seen: dict[str, _Seen] = {}
        self._set_unread = set_unread
        self._unread: dict[int, int] = {}
        self._status = PollStatus(interval_ms=interval_ms)
        self._refused: frozenset[str] = frozenset()
        self._outage = Outage(_log, "groups", clock_ms)
        self._thread = Background("poller", self._run, stop_seconds=_STOP_SECONDS, interrupt=self._connection.drop)
        self.start, self.stop = self._thread.start, self._thread.stop

    def status(self) -> PollStatus:
        """How it goes; never changed, but replaced."""
        return self._status

    def age_seconds(self) -> float | None:
        """How long ago the last round began that all brokers answered; None for none yet."""
        polled_ms = self._status.polled_ms
        return None if polled_ms is None else max(0, self._clock_ms() - polled_ms) / 1000

    def poll(self) -> bool:
        """One round; returns whether all brokers answered. Never raises."""
        begun_ms = self._clock_ms()
        try:
            found = self._connection.client.ask(self._types())
            self._doubt(found, begun_ms)
            # A round in vain must not pass for the former one: it is taken in before it is counted.
            left_out = self._take_in(found, begun_ms)
        except Exception as error:  # noqa: BLE001 - whatever a client throws must not end the polling
            if not self._thread.stopping.is_set():
                self._outage.failed(error)
            self._connection.drop()
            self._fail(first_line(error), begun_ms)
            return False
        self._log_refused(left_out)
        self._status = replace(self._status, left_out=left_out, lists_all=found.lists_all)
        if found.failure is not None:
            self._outage.failed(RuntimeError(found.failure))
            self._fail(found.failure, begun_ms)
            return False
        self._outage.succeeded()
        self._status = replace(self._status, polled_ms=begun_ms, stale_since_ms=None, failure=None)
        return True

    def _run(self) -> None:
        while not self._thread.stopping.is_set():
            begun = time.monotonic()
            self.poll()
            self._thread.stopping.wait(max(0.0, self._interval_ms / 1000 - (time.monotonic() - begun)))

    def _fail(self, reason: str, now_ms: int) -> None:
        status = self._status
        since_ms = status.stale_since_ms
        if since_ms is None and status.polled_ms is not None:
            # The last answer is the last thing that is known.
            since_ms = status.polled_ms
        self._status = replace(status, stale_since_ms=now_ms if since_ms is None else since_ms, failure=reason)

    def _doubt(self, found: Round, now_ms: int) -> None:
        """Say which partitions have no leader before the round is believed that could not ask for their groups."""
        if found.partitions is not None:
            self._unread = {of: self._unread.get(of, now_ms) for of in found.without_leader}
            self._set_unread(self._unread, found.partitions)

    def _take_in(self, found: Round, now_ms: int) -> dict[str, str]:
        """Hand on what changed; returns what is left out, and why."""
        left_out = dict(found.left_out)
        seen, rows = dict(self._seen), list[Row]()
        for name, answer in found.answered.items():
            former = seen.get(name)
            if answer.described.membership is None and former is None:
                left_out[name] = UNSEEN
                continue
            now = _now(name, former, answer, now_ms)
            rows += _rows(name, former, now)
            seen[name] = now
        for name in seen.keys() & (left_out.keys() | found.gone):
            rows.append(Row(NO_PARTITION, "group_deleted", name))
            del seen[name]
        if rows:
            self._take(rows, now_ms)
        self._seen = seen
        return left_out

    def _types(self) -> dict[str, str]:
        """Groups that are shown → their types."""
        return {name: seen.membership.type for name, seen in self._seen.items()}

    def _log_refused(self, left_out: Mapping[str, str]) -> None:
        """Say it of each group once: it would be missing without a word."""
        names = frozenset(name for name, why in left_out.items() if why != UNSEEN)
        for name in sorted(names - self._refused):
            _log.warning("group_not_described", group=name, reason=left_out[name])
        self._refused = names


def _now(name: str, former: _Seen | None, answer: Answered, now_ms: int) -> _Seen:
    described = answer.described
    membership = described.membership
    if membership is None:
        assert former is not None  # noqa: S101 - the caller leaves out what was never seen
        membership = former.membership
    buckets, offset_count = _buckets(answer.offsets, former)
    is_same = former is not None and former.membership == membership
    step_ms = -1 if former is None else former.step_ms if is_same and former.state == described.state else now_ms
    held_ms = now_ms
    if former is not None and not partition_holders.changed(former.membership, membership):
        held_ms = former.held_ms
    mixed_ms, moved_ms = _mixed(former, membership, now_ms)
    state = GroupState(
        name=name,
        partition=NO_PARTITION,
        membership=membership,
        polled_state=described.state,
        offset_count=offset_count,
        migration=Migration(mixed_since_ms=mixed_ms, changed_ms=moved_ms),
        held_ms=held_ms,
        last_step_ms=step_ms,
    )
    twice = {place: About(members=owners) for place, owners in duplicate_assignments(membership).items()}
    lasting.changes(state, "duplicate_assignment", twice, Position(NO_PARTITION, -1, -1))
    text = snapshot.dump_group(state)
    return _Seen(membership, described.state, text, buckets, offset_count, step_ms, held_ms, mixed_ms, moved_ms)


def _mixed(former: _Seen | None, membership: Membership, now_ms: int) -> tuple[int | None, int | None]:
    """Since when members of both protocols are seen, and when any last came or went since."""
    classic, consumer = phases.members_by_protocol(membership)
    if membership.modern_group is None or not (classic and consumer):
        return None, None
    if former is None or former.mixed_ms is None:
        return now_ms, now_ms
    is_same = members_of(former.membership).keys() == members_of(membership).keys()
    return former.mixed_ms, former.moved_ms if is_same else now_ms


def _buckets(offsets: PolledOffsets | None, former: _Seen | None) -> tuple[Mapping[BucketKey, PackedOffsets], int]:
    """The offset buckets, and how many offsets there are; the former ones where there is no answer."""
    if offsets is None:
        return ({}, 0) if former is None else (former.buckets, former.offset_count)
    made: dict[BucketKey, OffsetBucket] = {}
    for topic, of_topic in offsets.items():
        for partition, committed in sorted(of_topic.items()):
            key = (topic, bucket_number(partition))
            bucket = made.setdefault(key, OffsetBucket(topic=topic, number=key[1]))
            bucket.offsets[partition] = committed
    return {key: dump_offsets(bucket) for key, bucket in made.items()}, sum(map(len, offsets.values()))


def _rows(name: str, former: _Seen | None, now: _Seen) -> Iterator[Row]:
    """What changed of a group, as rows for a board."""
    was = {} if former is None else former.buckets
    is_new = former is None
    if was.keys() - now.buckets.keys():
        # A board takes single buckets, and gives none back but with the group.
        yield Row(NO_PARTITION, "group_deleted", name)
        was, is_new = {}, True
    if is_new or former is None or former.text != now.text:
        yield Row(NO_PARTITION, "group", name, words=now.text)
    for key, packed in now.buckets.items():
        if was.get(key) != packed:
            yield Row(NO_PARTITION, "offsets", name, *packed)
