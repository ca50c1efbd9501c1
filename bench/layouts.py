"""Other ways to lay out the state of a bundle, to be measured beside the one that stands (`state_layout.py`).

    layout       variable    key                      one value holds
    standing     -           -                        as `streaming/query/state_cache.py`: single entries, and packs
    single       groups      group                    one group
                 offsets     group, topic, bucket     up to 64 offsets
    topic        groups      group                    one group
                 offsets     group, topic             all offsets of the topic
    halves       groups      partition                all groups of a partition of the offsets topic
                 offsets     partition                all offsets of theirs
    partition    all         partition                both
    bundle       all         -                        both, of all the bundle's partitions

Every one has the book besides, and is the product's own processor and bundle on entries that are kept in another way. A
value that holds many texts is a dict of them, dumped by one compiled call and compressed: what is large on its way to
the JVM costs more than its compression. Of what is read, only the texts that are asked for are parsed; a value is
written only if a text in it is another, once in a call of the task, and as many as there are to read or write are at
once. None of them is read back at a restart.
"""

import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from streaming.query.processor import CoordinatorShards
from streaming.query.schemas import BOOK_STATE, BUCKET_KEY, GROUP_KEY, GROUPS_STATE, OFFSETS_STATE, SNAPSHOT
from streaming.query.state_pipelining import get_many, put_many

if TYPE_CHECKING:
    from streaming.query.shard_task import ShardTask

Key = tuple[Any, ...]
Place = Callable[[int, Key], Key]
"""(partition, key of an entry) → key of the value that holds it."""

PLACE_KEY: Final = StructType([StructField("place", IntegerType(), nullable=False)])
TOPIC_KEY: Final = StructType([StructField(name, StringType(), nullable=False) for name in ("group", "topic")])
BLOB: Final = StructType([StructField("texts", BinaryType(), nullable=False)])
_ALL_STATE: Final = "all"
_SIZE_BYTES: Final = 8
_CODEC: Final = "lz4"


class Values:
    """A state variable whose values hold the texts of one entry or of many.

    Args:
        state: the variable.
        place: where an entry is.
        is_blob: whether values are of `BLOB`, and not one text.
        of_partition: whether one holds nothing of other partitions.
    """

    def __init__(self, state: MapState, place: Place, *, is_blob: bool = True, of_partition: bool = True) -> None:
        self._state = state
        self._place = place
        self._packed: Callable[[dict[str, str]], Any]
        self._unpacked: Callable[[Any], dict[str, str]]
        self._packed, self._unpacked = (_packed, _unpacked) if is_blob else (_only_text, _one_text)
        self._name = _name if is_blob else _no_name
        self._of_partition = of_partition
        self._held: dict[Key, dict[str, str]] = {}
        self._changed: set[Key] = set()
        self._unknown: set[int] = set()

    def open(self, wanted: Iterable[tuple[int, Key]], unknown: Iterable[int] = ()) -> None:
        """Have the values of (partition, key) that will be asked for, all at once; of unknown partitions is nothing."""
        if self._of_partition:
            self._unknown.update(unknown)
        missing = {place: of for of, key in wanted if (place := self._place(of, key)) not in self._held}
        self._held.update((place, {}) for place in missing)
        if asked := [place for place, of in missing.items() if of not in self._unknown]:
            found = get_many(self._state, asked)
            self._held.update((place, self._unpacked(value)) for place, (value,) in found.items())

    def get(self, partition: int, key: Key) -> str | None:
        """The text of an entry, or None."""
        self.open([(partition, key)])
        return self._held[self._place(partition, key)].get(self._name(key))

    def put(self, partition: int, key: Key, text: str | None) -> None:
        """Have an entry be this, or gone, once it is written."""
        self.open([(partition, key)])
        place = self._place(partition, key)
        if text is not None:
            self._held[place][self._name(key)] = text
            self._changed.add(place)
        elif self._held[place].pop(self._name(key), None) is not None:
            self._changed.add(place)

    def write(self) -> None:
        """Write the values in which anything is another."""
        held = self._held
        put_many(self._state, [(place, (self._packed(held[place]),)) for place in self._changed if held[place]])
        for place in self._changed:
            if not held[place]:
                self._state.removeKey(place)
        self._changed.clear()


class OtherEntries:
    """What a bundle takes for `entries.StateStore`, and for the entries it opens: the same in every part of a call.

    All is written with the book, which is last: what is in one value of many partitions is written once.
    """

    def __init__(self, groups: Values, offsets: Values) -> None:
        self._groups, self._offsets = groups, offsets

    def open(self, wanted: Mapping[int, Iterable[Key]], *, unknown: Iterable[int] = (), **_: object) -> "OtherEntries":
        """Read by partition, at once, what will be asked for."""
        unknown = set(unknown)
        for values in dict.fromkeys((self._groups, self._offsets)):
            keys = ((partition, key) for partition, held in wanted.items() for key in held if self._of(key) is values)
            values.open(keys, unknown)
        return self

    def get(self, partition: int, key: Key) -> str | None:
        """The text of an entry, or None."""
        return self._of(key).get(partition, key)

    def change(self, partition: int, changed: Mapping[Key, str], deleted: Iterable[Key]) -> bool:
        """Have entries of a partition be these, and others gone."""
        self.open({partition: changed})
        for key in deleted:
            self._of(key).put(partition, key, None)
        for key, text in changed.items():
            self._of(key).put(partition, key, text)
        return False

    def write(self) -> None:
        """Not yet."""

    def write_all(self) -> None:
        """Write what was changed."""
        for values in dict.fromkeys((self._groups, self._offsets)):
            values.write()

    def _of(self, key: Key) -> Values:
        return self._groups if len(key) == 1 else self._offsets


class _Book:
    """The bundle's book; what is to be kept with it is written before it."""

    def __init__(self, state: ValueState, entries: OtherEntries) -> None:
        self._state = state
        self._entries = entries

    def get(self) -> tuple[Any, ...] | None:
        """What was kept."""
        held: tuple[Any, ...] | None = self._state.get()
        return held

    def update(self, book: tuple[Any, ...]) -> None:
        """Keep it."""
        self._entries.write_all()
        self._state.update(book)


class _OtherLayout(CoordinatorShards):
    """The product's processor on entries that are kept in another way."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        self._handle = handle
        self._book = handle.getValueState(BOOK_STATE, SNAPSHOT)

    def _entries(self) -> OtherEntries:
        """Entries for one call."""
        raise NotImplementedError

    def _bundle(self) -> "ShardTask":
        from streaming.query.shard_task import Limits, ShardTask, Variables

        entries: Any = self._entries()
        book: Any = _Book(self._book, entries)
        return ShardTask(Variables(self._handle, entries, book), Limits(self._live_from, self._log_end, self._reported))


class EntriesByThemselves(_OtherLayout):
    """Every entry in a value of its own."""

    offsets_key: StructType = BUCKET_KEY

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        super().init(handle)
        self._groups = handle.getMapState(GROUPS_STATE, GROUP_KEY, SNAPSHOT)
        self._offsets = handle.getMapState(OFFSETS_STATE, self.offsets_key, self._offsets_layout())

    def _offsets_layout(self) -> StructType:
        return SNAPSHOT

    def _entries(self) -> OtherEntries:
        return OtherEntries(Values(self._groups, _itself, is_blob=False), self._values())

    def _values(self) -> Values:
        return Values(self._offsets, _itself, is_blob=False)


class OffsetsByTopic(EntriesByThemselves):
    """All offsets of a group and topic in one value."""

    offsets_key = TOPIC_KEY

    def _offsets_layout(self) -> StructType:
        return BLOB

    def _values(self) -> Values:
        return Values(self._offsets, _topic)


class PartitionInHalves(_OtherLayout):
    """All groups of a partition in one value, all their offsets in another."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        super().init(handle)
        self._groups = handle.getMapState(GROUPS_STATE, PLACE_KEY, BLOB)
        self._offsets = handle.getMapState(OFFSETS_STATE, PLACE_KEY, BLOB)

    def _entries(self) -> OtherEntries:
        return OtherEntries(Values(self._groups, _partition), Values(self._offsets, _partition))


class PartitionAsOne(_OtherLayout):
    """All of a partition in one value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        super().init(handle)
        self._all = handle.getMapState(_ALL_STATE, PLACE_KEY, BLOB)

    def _entries(self) -> OtherEntries:
        values = Values(self._all, _partition)
        return OtherEntries(values, values)


class BundleAsOne(PartitionAsOne):
    """All of a bundle in one value."""

    def _entries(self) -> OtherEntries:
        values = Values(self._all, _everything, of_partition=False)
        return OtherEntries(values, values)


LAYOUTS: Final[Mapping[str, type[CoordinatorShards]]] = {
    "standing": CoordinatorShards,
    "single": EntriesByThemselves,
    "topic": OffsetsByTopic,
    "halves": PartitionInHalves,
    "partition": PartitionAsOne,
    "bundle": BundleAsOne,
}


def _itself(_partition: int, key: Key) -> Key:
    return key


def _topic(_partition: int, key: Key) -> Key:
    return key[:2]


def _partition(partition: int, _key: Key) -> Key:
    return (partition,)


def _everything(_partition: int, _key: Key) -> Key:
    return (0,)


def _name(key: Key) -> str:
    """The key as one text: a dict of such is dumped in half the time of one of tuples."""
    return key[0] if len(key) == 1 else "\0".join(map(str, key))


def _no_name(_key: Key) -> str:
    return ""


def _only_text(texts: dict[str, str]) -> str:
    return texts[""]


def _one_text(text: str) -> dict[str, str]:
    return {"": text}


def _packed(texts: dict[str, str]) -> bytes:
    dumped = pickle.dumps(texts, protocol=5)
    compressed: bytes = pa.compress(dumped, codec=_CODEC, asbytes=True)
    return len(dumped).to_bytes(_SIZE_BYTES, "big") + compressed


def _unpacked(blob: bytes) -> dict[str, str]:
    size = int.from_bytes(blob[:_SIZE_BYTES], "big")
    texts: dict[str, str] = pickle.loads(pa.decompress(blob[_SIZE_BYTES:], size, codec=_CODEC, asbytes=True))  # noqa: S301 - our own
    return texts
