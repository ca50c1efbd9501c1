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
as what it was made of. Nothing has to be moved between slots and keys.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple
from zlib import crc32

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from coordinator_model.state import snapshot
from streaming.query.row_codec import dumped, loaded
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
LEDGER: Final = (-1, 2)
"""Where the task's ledger is, which is no pack."""
RECENT_BYTES: Final = 500_000
"""Of all entries in either: some 1,000. To read and write them takes 5 ms."""
LONG_BYTES: Final = 16_000
"""An entry this long is in neither: its length is what it costs, not its key."""

_LAYOUT: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("bucket", pa.int32()),
        ("payload", pa.large_binary()),
        ("words", pa.large_string()),
    ]
)

Key = tuple[Any, ...]
"""(group,) of a group; (group, topic, bucket number) of an offset bucket."""

StoredKey = tuple[Any, ...]
"""(partition of the log, group, topic, bucket number): a group in two partitions has nothing to do with itself."""

_OWN: Final = ("", (1 << 31) - 1)
"""In the place of topic and bucket, what a group has there: numbers of buckets are of 25 bits and a sign."""

Entry = tuple[bytes, str]
"""(payload, words) of a group or an offset bucket, as `batch_rows.Row` has them."""

_Slot = tuple[int, int]
"""(partition, slot)"""

UNKNOWN_PARTITION: Final = -1
"""Partition of what a state up to layout 5 has beside packs: its keys do not say it, and there is one copy of each."""
_FORMER_GROUP: Final = (1 << 31) - 1
_FORMER_BUCKET: Final = 1 << 30
_FORMER_LEAST: Final = 1 << 29
"""In keys of layout 6, numbers in the place of a bucket's; the least of them. The topic is "PARTITION/topic" there."""


class StateStore(NamedTuple):
    """State variables that hold entries, as `processor.py` declares them."""

    entries: MapState
    """Those stored singly."""
    packs: MapState


def stored(partition: int, key: Key) -> StoredKey:
    """The key in the state of an entry of a partition."""
    return (partition, *key) if len(key) > 1 else (partition, *key, *_OWN)


def key_of(place: StoredKey) -> Key:
    """Inverse of `stored`, without the partition."""
    return place[1:] if place[2:] != _OWN else place[1:2]


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
        self._single: dict[StoredKey, Entry | None] = {}
        self._packs: dict[_Slot, dict[StoredKey, Entry]] = {}
        self._changed: dict[StoredKey, Entry] = {}
        self._to_write: set[_Slot] = set()
        self._lately, self._copies = _Recent(LATELY), _Recent(COPIES)
        if wanted:
            recent = get_many(state.packs, [LATELY, COPIES])
            self._lately, self._copies = (_Recent(at, *recent.get(at, ())) for at in (LATELY, COPIES))
        keys_of = {of: {stored(of, key) for key in keys} for of, keys in wanted.items()}
        older = {of: keys - self._lately.keys() - self._copies.keys() for of, keys in keys_of.items()}
        self._ask(older)
        self._fetch_packs(_slot(key) for keys in older.values() for key in keys if self._single[key] is None)

    def get(self, partition: int, key: Key) -> Entry | None:
        """An entry, or None."""
        place = stored(partition, key)
        held = self._lately.get(place) or self._copies.get(place)
        if held is None:
            self._ask({partition: [place]})
            held = self._single[place] or self._pack(place).get(place)
            if held is not None and _size(held) < LONG_BYTES:
                self._copies.put(place, held)
        return held

    def change(self, partition: int, changed: Mapping[Key, Entry], deleted: Iterable[Key]) -> bool:
        """Have entries of a partition be these, and others gone, once this is written.

        Returns whether any of them is stored singly, or may come to be.
        """
        new = {stored(partition, key): entry for key, entry in changed.items()}
        gone = [place for of in deleted if (place := stored(partition, of)) not in new]
        older = [place for place in new if place not in self._lately]
        self._ask({partition: [*older, *gone]})
        for recent in (self._lately, self._copies):
            recent.drop([*new, *gone])
        for place in gone:
            if self._single[place] is not None:
                self._state.entries.removeKey(place)
            if self._pack(place).pop(place, None) is not None:
                self._to_write.add(_slot(place))
        packed = self._pack_where_many({place: new[place] for place in older if self._single[place] is None})
        others = {place: entry for place, entry in new.items() if place not in packed}
        for place, entry in others.items():
            if partition in self._unknown or _size(entry) >= LONG_BYTES:
                self._changed[place] = entry
            else:
                self._lately.put(place, entry)
        return bool(others)

    def write(self) -> None:
        """Write all that was changed."""
        self._changed |= self._lately.shorten()
        self._copies.shorten()
        written = {at: self._packs[at] for at in sorted(self._to_write)}
        written |= {at: of for at, of in ((LATELY, self._lately), (COPIES, self._copies)) if of.is_changed}
        put_many(self._state.packs, [(at, (packed_entries(pack),)) for at, pack in written.items()])
        put_many(self._state.entries, self._changed.items())

    def _pack_where_many(self, changed: Mapping[StoredKey, Entry]) -> set[StoredKey]:
        """Change those in their packs of which many are in one; returns which."""
        slots: dict[_Slot, list[StoredKey]] = {}
        for place in changed:
            slots.setdefault(_slot(place), []).append(place)
        packed: set[StoredKey] = set()
        for slot, places in slots.items():
            if len(places) >= PACK_FROM:
                pack = self._pack(places[0])
                if len(places) >= len(pack) * PACK_SHARE:
                    pack.update((place, changed[place]) for place in places)
                    self._to_write.add(slot)
                    packed.update(places)
        return packed

    def _ask(self, wanted: Mapping[int, Iterable[StoredKey]]) -> None:
        """Read what is stored singly of keys that were not asked for yet."""
        new = {partition: [key for key in keys if key not in self._single] for partition, keys in wanted.items()}
        self._single.update((key, None) for keys in new.values() for key in keys)
        asked = [key for partition, keys in new.items() if partition in self._with_single for key in keys]
        if asked:
            self._single.update((key, _entry(*held)) for key, held in get_many(self._state.entries, asked).items())

    def _pack(self, place: StoredKey) -> dict[StoredKey, Entry]:
        """The pack of an entry's slot."""
        at = _slot(place)
        self._fetch_packs([at])
        return self._packs[at]

    def _fetch_packs(self, slots: Iterable[_Slot]) -> None:
        new = [at for at in dict.fromkeys(slots) if at not in self._packs]
        self._packs.update((at, {}) for at in new)
        if known := [at for at in new if at[0] not in self._unknown]:
            found = get_many(self._state.packs, known)
            self._packs.update((at, dict(unpacked_entries(at, pack))) for at, (pack,) in found.items())


class _Recent(dict[StoredKey, Entry]):
    """Entries of one value of the state, the latest last."""

    def __init__(self, at: _Slot, pack: bytes | None = None) -> None:
        super().__init__(() if pack is None else unpacked_entries(at, pack))
        self.is_changed = False

    def put(self, place: StoredKey, entry: Entry) -> None:
        """Have it be the latest."""
        self[place] = entry
        self.is_changed = True

    def drop(self, places: Iterable[StoredKey]) -> None:
        """Have them no more."""
        for place in self.keys() & places:
            del self[place]
            self.is_changed = True

    def shorten(self) -> dict[StoredKey, Entry]:
        """Give up, and return, those put longest ago, where all take more than `RECENT_BYTES`."""
        size = sum(map(_size, self.values()))
        given_up = {}
        for place, entry in list(self.items()):
            if size <= RECENT_BYTES:
                break
            given_up[place] = self.pop(place)
            size -= _size(entry)
        return given_up


def all_entries(
    packs: Collection[tuple[_Slot, bytes]], single: Iterable[tuple[StoredKey, Entry]]
) -> Iterator[tuple[StoredKey, Entry]]:
    """Every entry once, in its newest version.

    Args:
        packs: all packs of one or several tasks, by where they are.
        single: what is stored singly; asked for after the packs of what changed lately.
    """
    seen: set[StoredKey] = set()
    lately = (entry for at, pack in packs if at == LATELY for entry in unpacked_entries(at, pack))
    for place, entry in chain(lately, single):
        if place not in seen:
            seen.add(place)
            yield place, entry
    # What a release up to layout 5 stored singly does not say of which partition it is.
    of_any = {place[1:] for place in seen if place[0] == UNKNOWN_PARTITION}
    for at, pack in packs:
        if at[0] >= 0:
            found = unpacked_entries(at, pack)
            yield from (each for each in found if each[0] not in seen and not (of_any and each[0][1:] in of_any))


def entries_of(state: StateStore, partition: int, *, with_single: bool) -> dict[Key, Entry]:
    """Every entry of one partition, in its newest version; `with_single` says whether any may be stored singly.

    What is stored singly, and what changed lately, is looked through whole.
    """
    slots = get_many(state.packs, [*((partition, slot) for slot in range(SLOTS)), LATELY])
    lately = dict(unpacked_entries(LATELY, slots.pop(LATELY)[0])) if LATELY in slots else {}
    found = {place: entry for at, (pack,) in slots.items() for place, entry in unpacked_entries(at, pack)}
    if with_single:
        found.update((tuple(place), _entry(*held)) for place, held in state.entries.iterator())
    return {key_of(place): entry for place, entry in (found | lately).items() if place[0] == partition}


def packed_entries(entries: Mapping[StoredKey, Entry]) -> bytes:
    """Entries as what `unpacked_entries` reads."""
    rows = [(*place, *entry) for place, entry in entries.items()]
    columns = zip(*rows, strict=True) if rows else [()] * len(_LAYOUT)
    arrays = [pa.array(column, of.type) for column, of in zip(columns, _LAYOUT, strict=True)]
    return dumped(pa.Table.from_arrays(arrays, schema=_LAYOUT), compressed=True)


def unpacked_entries(at: _Slot, pack: bytes) -> Iterator[tuple[StoredKey, Entry]]:
    """Entries of a pack that is there."""
    table = loaded(pack)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    if table.schema.names[0] != _LAYOUT.names[0]:
        return (former_entry(at[0], row[:3], row[3]) for row in rows)
    return ((row[:4], row[4:]) for row in rows)


def former_entry(partition: int, key: Sequence[Any], text: str) -> tuple[StoredKey, Entry]:
    """An entry of a state layout before 7, which was text; its key says its partition in layout 6 alone."""
    group, topic, bucket = (*key, None, None)[:3]
    if bucket is not None and bucket >= _FORMER_LEAST:
        of, _, topic = topic.partition("/")
        partition, bucket = int(of), None if bucket == _FORMER_GROUP else bucket - _FORMER_BUCKET
    if bucket is None:
        # Its figures, in the lines that follow, are worked out again.
        return stored(partition, (group,)), (b"", text.partition("\n")[0])
    return stored(partition, (group, topic, bucket)), snapshot.offsets_of_text(text)


def _entry(payload: bytes | bytearray, words: str) -> Entry:
    """As the state has it: Spark's binary values come as they can be changed."""
    return bytes(payload), words


def _size(entry: Entry) -> int:
    payload, words = entry
    return len(payload) + len(words)


def _slot(place: StoredKey) -> _Slot:
    return place[0], crc32(place[1].encode()) % SLOTS
