"""What the stateful step remembers of its partitions besides their groups: one ledger each, and one of them all."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from coordinator_model.replica import Counters


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

    def totals(self) -> dict[str, Any]:
        """What is passed on of it (`batch_update.NO_TOTALS`)."""
        owed = {} if self.owed is None else {"owed": self.owed}
        return {**asdict(self.counters), "last_offset": self.last_offset, **owed}


_BEFORE: Final = {"has_single": True, "is_cut": True, "was_live": True}
"""What earlier releases did not note, as it may have been."""


@dataclass(slots=True)
class TaskLedger:
    """The books of a bundle's partitions, and the one timer kept while any of them waits."""

    partitions: dict[int, PartitionLedger] = field(default_factory=dict)
    timer_ms: int | None = None
    has_partitions: bool = True
    """Whether keys of entries say their partition (`state_keys.py`)."""

    def dump(self) -> str:
        """As text for the state."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> "TaskLedger":
        """Inverse of `dump`."""
        held = json.loads(text)
        ledgers = {
            int(partition): PartitionLedger(**{**_BEFORE, **book, "counters": Counters(**book["counters"])})
            for partition, book in held["partitions"].items()
        }
        return cls(ledgers, held["timer_ms"], held.get("has_partitions", False))
