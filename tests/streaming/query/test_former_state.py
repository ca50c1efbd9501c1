"""State of former releases is gone on from: text, under keys that said less and less the older they are."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.streaming.stateful_processor import MapState, ValueState

from coordinator_model.figures import stored
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import CommittedOffset, OffsetBucket
from coordinator_model.state.packed_offsets import dump_offsets
from coordinator_model.state.snapshot import dump_group, text_of_offsets
from streaming.query.former_state import FormerState, ledger_of
from streaming.query.ledger import PartitionLedger, TaskLedger
from streaming.query.row_codec import dumped
from streaming.query.state_cache import COPIES, LATELY, Entry, StateStore, all_entries, key_of

GROUP, FIRST_BUCKET = (1 << 31) - 1, 1 << 30
PACK = pa.schema(
    [("group", pa.string()), ("topic", pa.string()), ("bucket", pa.int32()), ("snapshot", pa.large_string())]
)
OF = {"single": 3, "packed": 4, "lately": 5}
"""Group → its partition."""


class Held(dict[Any, Any]):
    """A map state in memory."""

    getValue, updateValue = dict.get, dict.__setitem__  # noqa: N815 - Spark's names
    iterator = dict.items


class Book:
    """A value state in memory."""

    def __init__(self, text: str | None) -> None:
        self.held = None if text is None else (text,)

    def get(self) -> tuple[str] | None:
        return self.held

    def clear(self) -> None:
        self.held = None


def pack(entries: Mapping[Any, str]) -> tuple[bytes]:
    """As layouts 4 to 6 put entries together."""
    rows = [(*(*key, None, None)[:3], text) for key, text in entries.items()]
    columns = zip(*rows, strict=True) if rows else [()] * len(PACK)
    arrays = [pa.array(column, of.type) for column, of in zip(columns, PACK, strict=True)]
    return (dumped(pa.Table.from_arrays(arrays, schema=PACK), compressed=True),)


def text_of(state: GroupState) -> str:
    """A group with its figures, in lines behind the snapshot."""
    return f"{dump_group(state)}\n7\n{stored.dump(state)!r}"


STATES = {name: GroupState(name=name, partition=of, offset_count=1) for name, of in OF.items()}
BUCKETS = {
    number: dump_offsets(OffsetBucket(topic="t", number=number, offsets={number * 64: CommittedOffset(number)}))
    for number in range(7)
}
TEXTS = {number: text_of_offsets(of) for number, of in BUCKETS.items()}


def layout_5(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of an entry of a group, where it did not say its partition."""
    return key


def layout_6(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same where the topic's place said it, for groups of which it is known."""
    group, *where = key
    partition = OF.get(group, 9)
    return (group, f"{partition}/{where[0]}", FIRST_BUCKET + where[1]) if where else (group, f"{partition}/", GROUP)


@pytest.fixture(params=[layout_5, layout_6])
def left(request: pytest.FixtureRequest) -> tuple[StateStore, FormerState]:
    """What a task left: singly, in a pack of its slot, and among what changed lately."""
    key = request.param
    says = key is layout_6
    groups = {("single",): text_of(STATES["single"])}
    offsets = {key(("single", "t", 1)): TEXTS[1], key(("packed", "t", 2)): TEXTS[2]}
    if says:
        offsets |= {key(of): text for of, text in groups.items()}
    else:
        offsets[("nobody", "t", 3)] = TEXTS[3]
    packs: dict[Any, dict[Any, str]] = {
        (4, 0): {("packed",): text_of(STATES["packed"]), ("packed", "t", 4): TEXTS[4], ("packed", "t", 6): TEXTS[0]},
        LATELY: {("lately",): text_of(STATES["lately"]), ("lately", "t", 5): TEXTS[5], ("packed", "t", 6): TEXTS[6]},
        COPIES: {("packed",): text_of(STATES["packed"])},
    }
    book: dict[str, Any] = {"counters": {"records": 7}, "last_offset": 8, "waiting": ["lately"], "last_rows_ms": 9}
    ledger = {"partitions": {"5": book}, "timer_ms": 10} | ({"has_partitions": True} if says else {})
    state = StateStore(
        cast("MapState", Held()),
        cast("MapState", Held({at: pack({key(of): text for of, text in held.items()}) for at, held in packs.items()})),
    )
    former = FormerState(
        cast("MapState", Held({} if says else {of: (text,) for of, text in groups.items()})),
        cast("MapState", Held({of: (text,) for of, text in offsets.items()})),
        cast("ValueState", Book(json.dumps(ledger))),
    )
    return state, former


def entries(state: StateStore) -> Iterator[tuple[Any, Entry]]:
    packs = [(at, pack) for at, (pack,) in cast("Held", state.packs).items()]
    return all_entries(packs, cast("Held", state.entries).items())


def test_all_of_it_is_carried_over(left: tuple[StateStore, FormerState]) -> None:
    """Each in its newest version, under its partition; figures are worked out again. What held it is empty then."""
    state, former = left

    ledger = former.carried_over(state)

    expected: dict[Any, Entry] = {
        **{(of, name): (b"", dump_group(STATES[name])) for name, of in OF.items()},
        **{
            (OF[name], name, "t", number): BUCKETS[number]
            for name, numbers in (("single", (1,)), ("packed", (2, 4, 6)), ("lately", (5,)))
            for number in numbers
        },
    }
    assert expected == {(place[0], *key_of(place)): entry for place, entry in entries(state)}
    assert (10, [5], ["lately"], 8) == (
        ledger.timer_ms,
        list(ledger.partitions),
        ledger.partitions[5].waiting,
        ledger.partitions[5].last_offset,
    )
    assert [{}, {}] == [cast("Held", of) for of in former[:2]]
    assert TaskLedger() == former.carried_over(state)


def test_a_new_task_has_nothing_to_carry_over() -> None:
    """Its ledger is empty."""
    nothing = FormerState(cast("MapState", Held()), cast("MapState", Held()), cast("ValueState", Book(None)))

    assert TaskLedger() == nothing.carried_over(StateStore(cast("MapState", Held()), cast("MapState", Held())))


def test_what_a_ledger_did_not_say_may_have_been() -> None:
    """Entries may be stored singly; the last micro-batch may have been cut; the end may have been reached."""
    book = {"counters": {"records": 1}, "last_offset": 0, "waiting": [], "last_rows_ms": 0}

    found = ledger_of(json.dumps({"partitions": {"3": book}, "timer_ms": None})).partitions[3]

    assert (True, True, True) == (found.has_single, found.is_cut, found.was_live)


def test_a_ledger_is_read_back() -> None:
    """Every field of it, and one without any."""
    ledger = PartitionLedger(
        last_offset=1,
        waiting=["g"],
        last_rows_ms=2,
        has_single=True,
        live_from=3,
        is_cut=True,
        log_end=4,
        was_live=True,
        owed=[[1, 2], None],
        cuts=5,
        read_before=6,
        void_limits=[0, 7],
        unreadable=[[1, 2, 3, 4]],
        unreadable_batches=8,
        unreadable_before=9,
    )
    ledger.counters.records, ledger.counters.unknown_records["99"] = 1 << 40, 2
    held = TaskLedger({3: ledger, 0: PartitionLedger()}, 1 << 41)

    assert held == TaskLedger.load(held.dump())
    assert TaskLedger() == TaskLedger.load(TaskLedger().dump())
