"""What the stateful step remembers of its partitions besides their groups: one ledger each, and one of them all."""

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Final

from coordinator_model.replica import Counters

MOST_REMEMBERED: Final = 20
"""Of the batches of a partition that could not be read, so many are remembered one by one."""


@dataclass(slots=True)
class PartitionLedger:
    """What is remembered of a partition of the log besides its groups."""

    counters: Counters = field(default_factory=Counters)
    last_offset: int = -1
    waiting: list[str] = field(default_factory=list)
    """Groups with an open step, rewinds that are not reported yet, or a withheld alarm."""
    last_rows_ms: int = 0
    has_single: bool = False
    """Whether entries of the state may be there singly, and not in packs (`state_cache.py`)."""
    live_from: int = 0
    """Beside `Limits.live_from`: the log's end as a run found it that went on with a log of which records are gone."""
    is_cut: bool = False
    """Whether the last micro-batch that brought rows ended before the log did, perhaps in the middle of an event."""
    log_end: int = 0
    """Beside `Limits.log_end`: the log's end as it was found after a gap in its reading."""
    was_live: bool = False
    """Whether its end was ever reached: what is unknown of what was written later is a gap, not history."""
    owed: list[Any] | None = None
    """The `Note` of rows that were planned and could not be read: from there on it is to be read, and no later rows are
    replayed before."""
    cuts: int = 0
    """How often the log was found cut off."""
    read_before: int = 0
    """Up to where it was read when it was cut off: offsets below are of other records than they were."""
    void_limits: list[int] | None = None
    """`Limits` of the partition, live_from and log_end, that are of the log as it was before it was cut off."""
    unreadable: list[list[int]] = field(default_factory=list)
    """The last batches that could not be read, as `batch_update.Unreadable` has them: of what they held nothing is
    known."""
    unreadable_batches: int = 0
    """How many there were."""
    unreadable_before: int = 0
    """The offset after the last of them: a batch that both readers come by is one."""

    def totals(self) -> dict[str, Any]:
        """What is passed on of it (`batch_update.NO_TOTALS`)."""
        owed = {} if self.owed is None else {"owed": self.owed}
        batches = {"unreadable": self.unreadable, "unreadable_batches": self.unreadable_batches}
        return {
            **asdict(self.counters),
            "last_offset": self.last_offset,
            **owed,
            **(batches if self.unreadable_batches else {}),
        }

    def step_over(self, batches: Sequence[tuple[int, int, str]], now_ms: int) -> list[tuple[int, int, str]]:
        """Remember batches that could not be read; returns those that were not known."""
        new = [batch for batch in batches if batch[1] > self.unreadable_before]
        for first, end, _ in new:
            self.unreadable_batches += 1
            self.unreadable = [*self.unreadable, [self.unreadable_batches, first, end, now_ms]][-MOST_REMEMBERED:]
            self.unreadable_before = end
        return new


_NUMBERS: Final = (
    "last_offset",
    "last_rows_ms",
    "has_single",
    "live_from",
    "is_cut",
    "log_end",
    "was_live",
    "cuts",
    "read_before",
    "unreadable_batches",
    "unreadable_before",
)
_numbers_of: Final = attrgetter("counters.records", *_NUMBERS)
_WORDS: Final = ("waiting", "owed", "void_limits", "unreadable")
_COUNTS: Final = ("unknown_records", "undecodable_records", "newer_value_versions")
"""Of the counters; as those of `_WORDS`, nearly always empty."""


@dataclass(slots=True)
class TaskLedger:
    """The ledgers of a bundle's partitions, and the one timer kept while any of them waits."""

    partitions: dict[int, PartitionLedger] = field(default_factory=dict)
    timer_ms: int | None = None
    share_waits: list[int] = field(default_factory=list)
    """Partitions of the share coordinator's log of which something is to be said when a minute is over."""

    def dump(self) -> bytes:
        """For the state: a line of JSON, which names the numbers that follow, a row of them for each partition."""
        numbers: list[int] = []
        words = {}
        for partition, of in self.partitions.items():
            numbers += (partition, *_numbers_of(of))
            words[partition] = [
                {name: held for name in names if (held := getattr(holder, name))}
                for holder, names in ((of, _WORDS), (of.counters, _COUNTS))
            ]
        head = json.dumps([self.timer_ms, self.share_waits, _NUMBERS, words], separators=(",", ":"))
        return b"%b\n%b" % (head.encode(), struct.pack(f"<{len(numbers)}q", *numbers))

    @classmethod
    def load(cls, held: bytes) -> "TaskLedger":
        """Inverse of `dump`."""
        head, _, packed = held.partition(b"\n")
        timer_ms, share_waits, names, words = json.loads(head)
        found = {}
        for partition, records, *numbers in struct.iter_unpack(f"<{len(names) + 2}q", packed):
            said, counted = words[str(partition)]
            of_names: dict[str, Any] = dict(zip(names, numbers, strict=True))
            found[partition] = PartitionLedger(Counters(records, **counted), **of_names, **said)
        return cls(found, timer_ms, share_waits)
