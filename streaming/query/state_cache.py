"""Entries of a task's state, which are groups and offset buckets: stored singly, or many together.

Spark's state is read and written by key, and each key costs some 80 µs of two processes, however little it holds. So
entries that change at once, or again and again, are kept together:

- A catch-up, or a storm of rebalances, brings tens of thousands, most of which do not change again for long. They are
  written as packs. A pack has entries of one slot of a partition of the log, and a group with its offsets is in one.
- Members commit every few seconds. What changed lately, in any partition, is one more pack, written whole each time.
  Groups do not change when they commit, but are looked at: copies of those looked at lately are another pack, written
  when others come to it.

    an entry that is         is read                   and written when it changes
    among those of lately    with them                 with them; with its own key once it is long, or once others have
                                                       changed since and they take too much
    stored singly            from its copy, or its     with those of lately
                             own key
    neither                  from its copy, or its     with those of lately where few of its slot change, so that a
                             slot's pack               commit does not rewrite other entries; else with its slot
    to be removed            -                         removed from wherever it is

So of versions of an entry the one of lately is the newest, then the single one, then that of its slot, and a copy is
as what it was made of. Nothing has to be moved between slots and keys. A key says of which partition it is
(`state_keys.py`): two may have groups of one name.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple
from zlib import crc32

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from coordinator_model.state import snapshot
from streaming.query.row_codec import dumped, loaded
from streaming.query.state_keys import SHARE_LOG, Key, is_stored, place_of, stored
from streaming.query.state_pipelining import get_many, put_many

SLOTS: Final = 32
"""Of each partition of the log: of a hundred thousand groups in fifty partitions, sixty are in one."""
PACK_FROM: Final = 8
"""From so many on, a pack costs less than entries one by one: it takes what three of them take, and is read back."""
PACK_SHARE: Final = 1 / 8
"""Of the entries of a pack, so many have to change for it to be rewritten."""

LATELY: Final = (-1, 0)
"""Where the entries that changed lately are, among the packs; those are of (partition, slot)."""
COPIES: Final = (-1, 1)
"""Where copies of the entries looked at lately are."""
RECENT_CHARACTERS: Final = 500_000
"""Of all entries in either: some 1,000. To read and write them takes 5 ms."""
LONG_CHARACTERS: Final = 16_000
"""An entry this long is in neither: its length is what it costs, not its key."""

_LAYOUT: Final = pa.schema(
    [("group", pa.string()), ("topic", pa.string()), ("bucket", pa.int32()), ("snapshot", pa.large_string())]
)
"""Of a group of a release up to layout 5, topic and bucket are null."""

_Slot = tuple[int, int]
"""(partition, slot)"""


class StateStore(NamedTuple):
    """State variables that hold entries, as `processor.py` declares them."""

    groups: MapState
    """Of a release up to layout 5; none is put there any more."""
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
        self._lately = _Recent()
        self._copies = _Recent()
        if wanted:
            recent = get_many(state.packs, [LATELY, COPIES])
            self._lately, self._copies = (_Recent(*recent.get(at, ())) for at in (LATELY, COPIES))
        keys_of = {of: {stored(of, key) for key in keys} for of, keys in wanted.items()}
        older = {of: keys - self._lately.keys() - self._copies.keys() for of, keys in keys_of.items()}
        self._ask(older)
        self._fetch_packs(
            (partition, _slot(key)) for partition, keys in older.items() for key in keys if self._single[key] is None
        )

    def get(self, partition: int, key: Key) -> str | None:
        """The text of an entry, or None."""
        key = stored(partition, key)
        held = self._lately.get(key) or self._copies.get(key)
        if held is None:
            self._ask({partition: [key]})
            held = self._single[key] or self._pack(partition, key).get(key)
            if held is not None and len(held) < LONG_CHARACTERS:
                self._copies.put(key, held)
        return held

    def change(self, partition: int, changed: Mapping[Key, str], deleted: Iterable[Key]) -> bool:
        """Have entries of a partition be these, and others gone, once this is written.

        Returns whether any of them is stored singly, or may come to be.
        """
        changed = {stored(partition, key): text for key, text in changed.items()}
        gone = [key for of in deleted if (key := stored(partition, of)) not in changed]
        older = [key for key in changed if key not in self._lately]
        self._ask({partition: [*older, *gone]})
        for recent in (self._lately, self._copies):
            recent.drop([*changed, *gone])
        for key in gone:
            if self._single[key] is not None:
                self._state.offsets.removeKey(key)
            if self._pack(partition, key).pop(key, None) is not None:
                self._to_write.add((partition, _slot(key)))
        packed = self._pack_where_many(partition, {key: changed[key] for key in older if self._single[key] is None})
        others = {key: text for key, text in changed.items() if key not in packed}
        for key, text in others.items():
            if partition in self._unknown or len(text) >= LONG_CHARACTERS:
                self._changed[key] = text
            else:
                self._lately.put(key, text)
        return bool(others)

    def write(self) -> None:
        """Write all that was changed."""
        self._changed |= self._lately.shorten()
        self._copies.shorten()
        written = {at: self._packs[at] for at in sorted(self._to_write)}
        written |= {at: of for at, of in ((LATELY, self._lately), (COPIES, self._copies)) if of.is_changed}
        put_many(self._state.packs, [(at, (packed_entries(pack),)) for at, pack in written.items()])
        put_many(self._state.offsets, [(key, (text,)) for key, text in self._changed.items()])

    def _pack_where_many(self, partition: int, changed: Mapping[Key, str]) -> set[Key]:
        """Change those in their packs of which many are in one; returns which."""
        slots: dict[int, list[Key]] = {}
        for key in changed:
            slots.setdefault(_slot(key), []).append(key)
        packed: set[Key] = set()
        for slot, keys in slots.items():
            if len(keys) >= PACK_FROM:
                pack = self._pack(partition, keys[0])
                if len(keys) >= len(pack) * PACK_SHARE:
                    pack.update((key, changed[key]) for key in keys)
                    self._to_write.add((partition, slot))
                    packed.update(keys)
        return packed

    def _ask(self, wanted: Mapping[int, Iterable[Key]]) -> None:
        """Read what is stored singly of keys that were not asked for yet."""
        new = {partition: [key for key in keys if key not in self._single] for partition, keys in wanted.items()}
        self._single.update((key, None) for keys in new.values() for key in keys)
        asked = [key for partition, keys in new.items() if partition in self._with_single for key in keys]
        if asked:
            self._single.update((key, text) for key, (text,) in get_many(self._state.offsets, asked).items())

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
            self._packs.update((at, _of_slot(at, pack)) for at, (pack,) in found.items())


class _Recent(dict[Key, str]):
    """Entries of one value of the state, the latest last."""

    def __init__(self, pack: bytes | None = None) -> None:
        super().__init__(() if pack is None else unpacked_entries(pack))
        self.is_changed = False

    def put(self, key: Key, text: str) -> None:
        """Have it be the latest."""
        self[key] = text
        self.is_changed = True

    def drop(self, keys: Iterable[Key]) -> None:
        """Have them no more."""
        for key in self.keys() & keys:
            del self[key]
            self.is_changed = True

    def shorten(self) -> dict[Key, str]:
        """Give up, and return, those put longest ago, where all take more than `RECENT_CHARACTERS`."""
        characters = sum(map(len, self.values()))
        given_up = {}
        for key, text in list(self.items()):
            if characters <= RECENT_CHARACTERS:
                break
            given_up[key] = self.pop(key)
            characters -= len(text)
        return given_up


def all_entries(packs: Collection[tuple[_Slot, bytes]], single: Iterable[tuple[Key, str]]) -> Iterator[tuple[Key, str]]:
    """Every entry once, in its newest version.

    Args:
        packs: all packs of one or several tasks, by where they are.
        single: what is stored singly; asked for after the packs of what changed lately.
    """
    seen: set[Key] = set()
    lately = (entry for at, pack in packs if at == LATELY for entry in unpacked_entries(pack))
    for key, text in chain(lately, single):
        if key not in seen:
            seen.add(key)
            yield key, text
    # What a release up to layout 5 stored singly does not say of which partition it is.
    old = {key for key in seen if not is_stored(key)}
    for at, pack in packs:
        if at not in (LATELY, COPIES):
            found = _of_slot(at, pack).items()
            yield from (entry for entry in found if entry[0] not in seen and not (old and place_of(entry[0])[1] in old))


def with_partitions(state: StateStore) -> None:
    """Have all keys of a task's state say their partition; those of a release up to layout 5 do not.

    Packs of slots are of one partition, and need no change. Of the others the group's state says it.
    """
    packs = {at: pack for at, (pack,) in list(state.packs.iterator())}
    lately = dict(unpacked_entries(packs[LATELY])) if LATELY in packs else {}
    single = {key: text for of in (state.groups, state.offsets) for key, (text,) in list(of.iterator())}
    partitions = {
        group: at[0]
        for at, pack in packs.items()
        if 0 <= at[0] < SHARE_LOG
        for group in set(loaded(pack).column(0).to_pylist())
    }
    for entries in (single, lately):
        groups = {key[0]: snapshot.load_group(text) for key, text in entries.items() if len(key) == 1}
        partitions.update((name, of.partition) for name, of in groups.items())
    for key in single:
        (state.groups if len(key) == 1 else state.offsets).removeKey(key)
    # Of a bucket without a group there is nothing to say.
    kept, recent = (
        {stored(partitions[key[0]], key): text for key, text in entries.items() if key[0] in partitions}
        for entries in (single, lately)
    )
    put_many(state.offsets, [(key, (text,)) for key, text in kept.items()])
    put_many(state.packs, [(at, (packed_entries(of),)) for at, of in ((LATELY, recent), (COPIES, {})) if at in packs])


def entries_of(state: StateStore, partition: int, *, with_single: bool) -> dict[Key, str]:
    """Every entry of one partition, in its newest version; `with_single` says whether any may be stored singly.

    What is stored singly, and what changed lately, is looked through whole.
    """
    slots = get_many(state.packs, [LATELY, *((partition, slot) for slot in range(SLOTS))])
    lately = dict(unpacked_entries(slots.pop(LATELY)[0])) if LATELY in slots else {}
    found: dict[Key, str] = {}
    for at, (pack,) in slots.items():
        found |= _of_slot((at[0], at[1]), pack)
    if with_single:
        found.update((tuple(key), text) for key, (text,) in state.offsets.iterator())
    places = ((*place_of(key), text) for key, text in (found | lately).items())
    return {key: text for of, key, text in places if of == partition}


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


def _of_slot(at: _Slot, pack: bytes) -> dict[Key, str]:
    """Entries of the pack of a slot."""
    return {stored(at[0], key): text for key, text in unpacked_entries(pack)}


def _slot(key: Key) -> int:
    return crc32(key[0].encode()) % SLOTS
