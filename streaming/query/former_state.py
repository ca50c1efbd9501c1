"""State as former releases left it (layouts 3 to 6), made what this one goes on from.

Text was all that their variables held. Packs stay as they are until they are written again:

    variable    key                                          of
    groups      group                                        a group, up to layout 5
    offsets     group, topic, bucket                         an offset bucket, up to layout 5
                group, "PARTITION/", GROUP                   a group, in layout 6
                group, "PARTITION/topic", FIRST + bucket     an offset bucket, in layout 6
    book        -                                            the ledger
    packs       partition, slot                              as those of today, with keys as above
"""

import json
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from pyspark.sql.streaming.stateful_processor import MapState, ValueState

from coordinator_model.replica import Counters
from coordinator_model.state.snapshot import load_group
from streaming.query.ledger import PartitionLedger, TaskLedger
from streaming.query.row_codec import loaded
from streaming.query.state_cache import (
    COPIES,
    LATELY,
    UNKNOWN_PARTITION,
    Entry,
    StateStore,
    StoredKey,
    former_entry,
    key_of,
    packed_entries,
    unpacked_entries,
)
from streaming.query.state_pipelining import get_many, put_many

_NOT_NOTED: Final = {"has_single": True, "is_cut": True, "was_live": True}
"""What a ledger of an earlier release does not say, as it may have been."""


class FormerState(NamedTuple):
    """The variables of former releases: what a task has in them is carried over when its state is first used."""

    groups: MapState
    offsets: MapState
    book: ValueState

    def carried_over(self, state: StateStore) -> TaskLedger:
        """The ledger of a task that has none of this release's; its entries are in `state` from here on."""
        held = self.book.get()
        if held is None:
            return TaskLedger()
        with_partitions = json.loads(held[0]).get("has_partitions", False)
        packs = dict(get_many(state.packs, [LATELY, COPIES]) if with_partitions else state.packs.iterator())
        single = dict(self._single())
        recent = {at: dict(unpacked_entries(at, packs[at][0])) for at in (LATELY, COPIES) if at in packs}
        if not with_partitions:
            of = {
                group: at[0]
                for at, (pack,) in packs.items()
                if at[0] >= 0
                for group in set(loaded(pack).column("group").to_pylist())
            }
            for entries in (single, *recent.values()):
                groups = (load_group(words) for place, (_, words) in entries.items() if len(key_of(place)) == 1)
                of |= {state.name: state.partition for state in groups}
            # Of a bucket without a group there is nothing to say.
            single, *found = (
                {(of[place[1]], *place[1:]): entry for place, entry in entries.items() if place[1] in of}
                for entries in (single, *recent.values())
            )
            recent = dict(zip(recent, found, strict=True))
        put_many(state.entries, single.items())
        put_many(state.packs, [(at, (packed_entries(entries),)) for at, entries in recent.items()])
        for variable in self:
            variable.clear()
        return ledger_of(held[0])

    def _single(self) -> Iterator[tuple[StoredKey, Entry]]:
        for key, (text,) in chain(self.groups.iterator(), self.offsets.iterator()):
            yield former_entry(UNKNOWN_PARTITION, key, text)


def ledger_of(text: str) -> TaskLedger:
    """A ledger that was text."""
    held = json.loads(text)
    return TaskLedger(
        {
            int(partition): PartitionLedger(**{**_NOT_NOTED, **of, "counters": Counters(**of["counters"])})
            for partition, of in held["partitions"].items()
        },
        held["timer_ms"],
    )
