"""Entries of a task's state, which are groups and offset buckets: stored singly, or many in a pack.

Spark's state is read and written by key, and each key costs some 80 µs of two processes, however little it holds. A
catch-up, or a storm of rebalances, brings tens of thousands, most of which do not change again for long. So where many
change at once they are written as packs. A pack has entries of one slot of a partition of the log, and a group with its
offsets is in one slot.

    an entry that is     is read                   and written when it changes
    stored singly        from its own key          to its own key
    not stored singly    from its slot's pack      to its own key where few of its slot change, so that a commit does
                                                   not rewrite other entries; else with its slot, as a pack
    to be removed        -                         removed from both

So of two versions of an entry the single one is the newer, and nothing has to be moved between them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from zlib import crc32

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from streaming.query.row_codec import dumped, loaded
from streaming.query.state_pipelining import get_many, put_many

Key = tuple[Any, ...]
"""(group,) of a group; (group, topic, bucket number) of an offset bucket."""

SLOTS: Final = 32
"""Of each partition of the log: of a hundred thousand groups in fifty partitions, sixty are in one."""
PACK_FROM: Final = 8
"""From so many on, a pack costs less than entries one by one: it takes what three of them take, and is read back."""
PACK_SHARE: Final = 1 / 8
"""Of the entries of a pack, so many have to change for it to be rewritten."""

_LAYOUT: Final = pa.schema(
    [("group", pa.string()), ("topic", pa.string()), ("bucket", pa.int32()), ("snapshot", pa.large_string())]
)
"""Of a group, topic and bucket are null."""

_Slot = tuple[int, int]
"""(partition, slot)"""


class StateStore(NamedTuple):
    """State variables that hold entries, as `processor.py` declares them."""

    groups: MapState
    offsets: MapState
    packs: MapState


class StateCache:
    """Entries of some partitions in one call: what is asked for is read once, what changed is written at once.

    Args:
        state: where they are.
        wanted: by partition, keys that will be asked for; others may be.
        with_single: partitions of which entries may be there by themselves; of others none is asked for.
        unknown: partitions of which there is nothing yet.
    """

    def __init__(
        self,
        state: StateStore,
        wanted: Mapping[int, set[Key]],
        *,
        with_single: Collection[int],
        unknown: Collection[int] = (),
    ) -> None:
        self._state = state
        self._with_single = with_single
        self._unknown = unknown
        self._single: dict[Key, str | None] = {}
        self._packs: dict[_Slot, dict[Key, str]] = {}
        self._changed: dict[Key, str] = {}
        self._to_write: set[_Slot] = set()
        self._ask(wanted)
        self._fetch_packs(
            (partition, _slot(key))
            for partition, keys in wanted.items()
            for key in keys
            if self._single.get(key) is None
        )

    def get(self, partition: int, key: Key) -> str | None:
        """The text of an entry, or None."""
        if key not in self._single:
            self._ask({partition: [key]})
        held = self._single[key]
        return self._pack(partition, key).get(key) if held is None else held

    def change(self, partition: int, changed: Mapping[Key, str], deleted: Iterable[Key]) -> bool:
        """Have entries of a partition be these, and others gone, once this is written.

        Returns whether any of them is to be stored singly.
        """
        gone = [key for key in deleted if key not in changed]
        self._ask({partition: [*changed, *gone]})
        for key in gone:
            if self._single[key] is not None:
                self._of(key).removeKey(key)
            if self._pack(partition, key).pop(key, None) is not None:
                self._to_write.add((partition, _slot(key)))
        slots: dict[int, list[Key]] = {}
        for key in changed:
            if self._single[key] is None:
                slots.setdefault(_slot(key), []).append(key)
        packed: set[Key] = set()
        for slot, keys in slots.items():
            pack = self._pack(partition, keys[0])
            if len(keys) >= max(PACK_FROM, len(pack) * PACK_SHARE):
                pack.update((key, changed[key]) for key in keys)
                self._to_write.add((partition, slot))
                packed.update(keys)
        single = {key: text for key, text in changed.items() if key not in packed}
        self._changed |= single
        return bool(single)

    def write(self) -> None:
        """Write all that was changed."""
        put_many(self._state.packs, [(at, (packed_entries(self._packs[at]),)) for at in sorted(self._to_write)])
        for state in (self._state.groups, self._state.offsets):
            put_many(state, [(key, (text,)) for key, text in self._changed.items() if self._of(key) is state])

    def _of(self, key: Key) -> MapState:
        return self._state.groups if len(key) == 1 else self._state.offsets

    def _ask(self, wanted: Mapping[int, Iterable[Key]]) -> None:
        """Read what is stored singly of keys that were not asked for yet."""
        new = {partition: [key for key in keys if key not in self._single] for partition, keys in wanted.items()}
        self._single.update((key, None) for keys in new.values() for key in keys)
        asked = [key for partition, keys in new.items() if partition in self._with_single for key in keys]
        for state in (self._state.groups, self._state.offsets):
            if of_state := [key for key in asked if self._of(key) is state]:
                self._single.update((key, text) for key, (text,) in get_many(state, of_state).items())

    def _pack(self, partition: int, key: Key) -> dict[Key, str]:
        """The pack of an entry's slot."""
        at = partition, _slot(key)
        self._fetch_packs([at])
        return self._packs[at]

    def _fetch_packs(self, slots: Iterable[_Slot]) -> None:
        new = [at for at in dict.fromkeys(slots) if at not in self._packs]
        self._packs.update((at, {}) for at in new)
        if known := [at for at in new if at[0] not in self._unknown]:
            found = get_many(self._state.packs, known)
            self._packs.update((at, dict(unpacked_entries(pack))) for at, (pack,) in found.items())


def packed_entries(entries: Mapping[Key, str]) -> bytes:
    """Entries as what `unpacked_entries` reads."""
    rows = [(*(*key, None, None)[:3], text) for key, text in entries.items()]
    columns = zip(*rows, strict=True) if rows else [()] * len(_LAYOUT)
    arrays = [pa.array(column, of.type) for column, of in zip(columns, _LAYOUT, strict=True)]
    return dumped(pa.Table.from_arrays(arrays, schema=_LAYOUT), compressed=True)


def unpacked_entries(pack: bytes) -> Iterator[tuple[Key, str]]:
    """Entries of a pack: key and text."""
    columns = loaded(pack).columns
    for group, topic, bucket, text in zip(*(column.to_pylist() for column in columns), strict=True):
        yield ((group,) if topic is None else (group, topic, bucket)), text


def _slot(key: Key) -> int:
    return crc32(key[0].encode()) % SLOTS
