"""Whether each partition of the log is still the one that was read, and read without a gap.

    of a partition it is seen that                          it is
    it has no leader, or its leader does not answer         left where it is; the others go on
    its leader is as before                                 read on
    another leads, who has all that was read                read on
    another leads, who has less, or other records           read again from its beginning: its log was cut off
    it ends before what was read, for half a minute         read again from its beginning, where epochs are not known
    it was not looked at for `GAP_SECONDS`                  read on, and judged as after a restart (`shard_task.py`)
    it was read `GAP_SECONDS` or more after it was planned  the same
    either lasted for as long as tombstones stay            read again from its beginning: what ended may be gone
    it was cut off once, and has a leader of a later epoch  read again from its beginning: its replicas may differ
    it was not there before                                 read from its beginning

A leader has an epoch, and so has each record. The position says of which epoch the last record is that was read; each
new leader, and each at a start, is asked where that epoch ends (KIP-320) before anything is read of it. Brokers before
2.1 name no epochs, and message formats before 2 keep none: there a log is missed only while it is shorter.

Replicas of a log that was cut off may differ for good, at offsets where each was cleaned separately: one dropped a
record for a later one of its key, which it then lost, and the other still has it. A coordinator loads what its own
broker has. No epoch tells, so such a partition is uneven from then on, and is read again of each broker that comes to
lead it. One that leads it as before, with a later epoch, may have followed another, unseen, meanwhile: it is read
again, too.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from streaming.base import machine_clock
from streaming.kafka.log_bounds import Bounds
from streaming.query.progress import COMMITS, MEMBERSHIP

GAP_SECONDS: Final = 5.0
"""Beyond what a look takes. The cleaner takes closed segments only: no shorter gap lacks records."""

SAME_TAIL_MS: Final = 300_000
"""The cleaner takes closed segments only, and the coordinator's are 100 MB: what was written within minutes of being
read is as whole to who comes back as it was to who stayed."""

SHORT_SECONDS: Final = 30.0
"""So long a log may end before what was read: a leader that has just been made one may not know how far its own
reaches."""

EPOCHS: Final = "epochs"
BEGINS: Final = "begins"
AGAIN: Final = "again"
GAPS: Final = "gaps"
UNEVEN: Final = "uneven"

REPLICA: Final = "replica"
"""Key of the reason why a partition is read again: the broker whose log it is read of from now on."""

_UNKNOWN: Final = -1

Position = Mapping[str, Any]


class Note(NamedTuple):
    """What a micro-batch says of a partition beside its records.

    Attributes:
        begins: first offset of commits, and of membership.
        again: why it is read again from its beginning: what was known of it is to be forgotten.
        gap: the log's end as it was found after a gap, and from where on it is live, None for as before.
        unread: whether it could not be read, and is owed.
        stepped_over: batches that could not be read, each with its first offset, the one after it, and why.
    """

    begins: tuple[int, int]
    again: Mapping[str, Any] | None = None
    gap: tuple[int, int | None] | None = None
    unread: bool = False
    stepped_over: Sequence[tuple[int, int, str]] = ()

    @classmethod
    def of(cls, held: Sequence[Any]) -> "Note":
        """Inverse of what JSON makes of it."""
        # A former release has not noted the last.
        begins, again, gap, unread, stepped_over = (*held, ()) if len(held) < len(cls._fields) else held
        of_batches = tuple((first, end, why) for first, end, why in stepped_over)
        return cls((begins[0], begins[1]), again, None if gap is None else (gap[0], gap[1]), unread, of_batches)


def gap_of(away_seconds: float, end: int) -> tuple[int, int | None]:
    """What is said of a live tail that was away for so long, and of which this end was found."""
    return end, None if away_seconds * 1_000 <= SAME_TAIL_MS else end


class EpochEnd(Protocol):
    """What a leader answers to an epoch (`streaming.kafka.leader_epochs`)."""

    @property
    def epoch(self) -> int:
        """The last that is no later than the one asked about; -1 where none is known."""
        ...

    @property
    def offset(self) -> int:
        """Where it ends."""
        ...


Ask = Callable[[Collection[tuple[int, int]], Mapping[int, int]], Mapping[tuple[int, int], EpochEnd]]
"""(partition, epoch)s and leaders → where the epochs end, of those that answer."""


@dataclass(frozen=True, slots=True)
class Look:
    """What may be read now.

    Attributes:
        stable, high: last stable offsets and high watermarks, of partitions that may be read.
        begins: partition → next offset of commits and of membership, where that is not what the position says.
        again: partition → why it is read again from its beginning, as the position has it.
        gaps: partition → the log's end as it was found after a gap, and from where on it is live, None for as before.
        epochs: partition → leader epoch of the last record before an offset, as far as known.
        uneven: partition → the broker it is read of and its leader epoch, where another one's log may differ.
    """

    stable: Mapping[int, int]
    high: Mapping[int, int]
    begins: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    again: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    gaps: Mapping[int, tuple[int, int | None]] = field(default_factory=dict)
    epochs: Callable[[int, int], int] = lambda _partition, _offset: _UNKNOWN
    uneven: Mapping[int, tuple[int, int]] = field(default_factory=dict)


class _Epoch(NamedTuple):
    """The epoch of a leader, where it begins, and the last one before it that has records."""

    epoch: int
    begins: int
    before: int

    def last_before(self, offset: int) -> int:
        """Epoch of the last record below an offset."""
        return self.epoch if offset > self.begins else self.before


class LogContinuity:
    """Follows the partitions from look to look; used by one thread.

    Args:
        ask: asks leaders about epochs; those that do not answer are left out.
        live_from: partitions of which the run knew at its start where the log ended, or the one before it did; None for
            all.
        unread_seconds: how long before the start the log was not read, as far as known.
        tombstone_seconds: how long the log keeps tombstones.
        owed: partition → what was planned of it, and could not be read.
        clock: seconds that go on while the machine sleeps.
    """

    def __init__(  # noqa: PLR0913 - what is known at a start, all named
        self,
        ask: Ask,
        *,
        live_from: Collection[int] | None = None,
        unread_seconds: float = 0.0,
        tombstone_seconds: float = 86_400.0,
        owed: Mapping[int, Note] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._ask = ask
        self._live_from = None if live_from is None else frozenset(live_from)
        self._unread_seconds = unread_seconds
        self._tombstone_seconds = tombstone_seconds
        self._owed = dict(owed or {})
        self._clock = clock or machine_clock.seconds
        self._began = self._clock()
        self._known_partitions: int | None = None
        self._seen: dict[int, float] = {}
        self._epochs: dict[int, _Epoch] = {}
        self._short_since: dict[int, float] = {}
        self._again: dict[int, Mapping[str, Any]] = {}
        """Read again from their beginning, and not yet planned."""
        self._gaps: dict[int, tuple[int, int | None]] = {}
        """The same of gaps."""

    def look(self, start: Position, bounds: Bounds, first: Callable[[Collection[int]], Mapping[int, int]]) -> Look:
        """What may be read from `start` on.

        Args:
            start: the position reached.
            bounds: where the log ends now.
            first: asks for the first offsets of partitions.
        """
        now = self._clock()
        is_first = self._known_partitions is None
        if self._known_partitions is None:
            self._known_partitions = bounds.partitions
        self._note_owed(start)
        readable = set()
        for partition in self._followed(start, bounds):
            high = bounds.high[partition]
            if self._is_short(partition, high, start, now):
                continue
            readable.add(partition)
            if is_first or str(partition) in start[MEMBERSHIP]:
                self._note_gap(partition, high, start, now, is_first=is_first)
            elif partition not in self._seen and partition < self._known_partitions:
                # It was there and had no leader: what it holds is from before this run looked.
                self._gaps[partition] = high, high
            self._seen[partition] = now
        leads = {of: (leader, bounds.epochs.get(of, _UNKNOWN)) for of, leader in bounds.leaders.items()}
        uneven = self._uneven(start, {of: by for of, by in leads.items() if of in readable})
        begins = self._begins(start, readable, first)
        # What is to be read from its beginning waits until that is known.
        readable -= {
            of for of in readable if of not in begins and (of in self._again or str(of) not in start[MEMBERSHIP])
        }
        return Look(
            stable={of: bounds.stable[of] for of in readable},
            high={of: bounds.high[of] for of in readable},
            begins={of: at for of, at in begins.items() if of in readable},
            again={of: why for of, why in self._again.items() if of in readable},
            gaps={of: gap for of, gap in self._gaps.items() if of in readable},
            epochs=self._last_epoch,
            uneven=uneven,
        )

    def planned(self, partitions: Collection[int]) -> None:
        """These are read in a micro-batch whose end says all that was found of them."""
        for partition in partitions:
            self._again.pop(partition, None)
            self._gaps.pop(partition, None)
            self._owed.pop(partition, None)

    def _note_owed(self, start: Position) -> None:
        """What is owed comes with what was found of it."""
        for partition, note in list(self._owed.items()):
            if start.get(BEGINS, {}).get(str(partition)) == list(note.begins):
                # The micro-batch that was under way when this run began has brought it.
                del self._owed[partition]
            elif note.again is not None:
                self._again.setdefault(partition, note.again)
            elif note.gap is not None:
                self._gaps.setdefault(partition, note.gap)

    def _is_short(self, partition: int, high: int, start: Position, now: float) -> bool:
        """Whether a log ends before what was read, and may yet turn out to be longer."""
        read_to = _read_to(start, partition)
        if partition in self._again or high >= read_to:
            self._short_since.pop(partition, None)
            return False
        if now - self._short_since.setdefault(partition, now) < SHORT_SECONDS:
            return True
        self._again[partition] = {"from": high, "to": read_to}
        return False

    def _uneven(self, start: Position, leads: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """Partitions whose replicas may differ, and who leads them; notes those that have another leader."""
        read_of: dict[str, int | Sequence[int]] = start.get(UNEVEN, {})
        for partition, (leader, epoch) in leads.items():
            if str(partition) in read_of and _is_another(read_of[str(partition)], leader, epoch):
                self._again.setdefault(partition, {REPLICA: leader})
        cut = {of for of, why in self._again.items() if "from" in why}
        return {of: by for of, by in leads.items() if of in cut or str(of) in read_of}

    def _last_epoch(self, partition: int, offset: int) -> int:
        known = self._epochs.get(partition)
        return _UNKNOWN if known is None else known.last_before(offset)

    def _followed(self, start: Position, bounds: Bounds) -> set[int]:
        """Partitions whose leader is known to have what was read, or not to know epochs; notes those that are cut."""
        held: dict[str, int] = start.get(EPOCHS, {})
        changed = {
            partition: epoch
            for partition, epoch in bounds.epochs.items()
            if epoch >= 0 and (partition not in self._epochs or self._epochs[partition].epoch != epoch)
        }
        last_read: dict[int, int] = {}
        for partition in changed:
            known = self._epochs.get(partition)
            read_to = _read_to(start, partition)
            last_read[partition] = held.get(str(partition), _UNKNOWN) if known is None else known.last_before(read_to)
        asked = {
            partition: {(partition, of) for of in (last_read[partition], epoch - 1) if of >= 0}
            for partition, epoch in changed.items()
        }
        every = set().union(*asked.values())
        answers = self._ask(every, bounds.leaders) if every else {}
        followed = set(bounds.high)
        for partition, epoch in changed.items():
            if not asked[partition] <= answers.keys():
                followed.discard(partition)
                continue
            if last_read[partition] >= 0 and str(partition) in start[MEMBERSHIP]:
                self._compare(partition, last_read[partition], answers[partition, last_read[partition]], start)
            self._epochs[partition] = _epoch_of(epoch, answers.get((partition, epoch - 1)))
        return followed

    def _compare(self, partition: int, epoch: int, end: EpochEnd, start: Position) -> None:
        """See whether the new leader has the last record that was read, which is of this epoch."""
        if end.offset < 0:
            return
        read_to = _read_to(start, partition)
        if end.offset < read_to or end.epoch < epoch:
            self._again[partition] = {"from": min(end.offset, read_to), "to": read_to}

    def _note_gap(self, partition: int, high: int, start: Position, now: float, *, is_first: bool) -> None:
        seen = self._seen.get(partition)
        if is_first:
            if not self._knew(partition) and high > _read_to(start, partition):
                self._gaps[partition] = high, high
            return  # what the run found at its start is what it judges by
        away = now - seen if seen is not None else now - self._began + self._unread_seconds
        if away < GAP_SECONDS or high <= _read_to(start, partition) or partition in self._again:
            return
        if away >= self._tombstone_seconds:
            self._again[partition] = {"unread_seconds": round(away)}
            return
        knows_tail = seen is not None or self._knew(partition)
        self._gaps[partition] = gap_of(away, high) if knows_tail else (high, high)

    def _knew(self, partition: int) -> bool:
        return self._live_from is None or partition in self._live_from

    def _begins(
        self, start: Position, readable: Collection[int], first: Callable[[Collection[int]], Mapping[int, int]]
    ) -> dict[int, tuple[int, int]]:
        """Where partitions are read from that are not read on."""
        from_beginning = {of for of in readable if of in self._again or str(of) not in start[MEMBERSHIP]}
        begins = {of: (offset, offset) for of, offset in (first(from_beginning) if from_beginning else {}).items()}
        return begins | {
            of: note.begins for of, note in self._owed.items() if of in readable and of not in from_beginning
        }


def _is_another(read_of: int | Sequence[int], leader: int, epoch: int) -> bool:
    """Whether a leader is not the one that was read of; a position of a former release has its broker alone."""
    broker, known = (read_of, _UNKNOWN) if isinstance(read_of, int) else read_of
    return broker != leader or (known >= 0 and epoch > known)


_NEVER: Final = (1 << 63) - 1
"""No offset is beyond: no record is known to be of the epoch."""


def _epoch_of(epoch: int, before: EpochEnd | None) -> _Epoch:
    """The epoch of a leader, by where the one before it ends; None where there is none before."""
    if before is None:
        return _Epoch(epoch, 0, _UNKNOWN)
    if before.offset < 0:
        return _Epoch(epoch, _NEVER, _UNKNOWN)
    return _Epoch(epoch, before.offset, before.epoch)


def _read_to(start: Position, partition: int) -> int:
    name = str(partition)
    read_to: int = max(start[MEMBERSHIP].get(name, 0), start[COMMITS].get(name, 0))
    return read_to
