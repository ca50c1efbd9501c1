"""What of the state is kept in packs, what singly, what with all that changed lately: it is the same state."""

from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import given, strategies
from pyspark.sql.streaming.stateful_processor import MapState

from lab.builders import offset_commit, offset_commit_tombstone
from streaming.query import state_cache, state_pipelining
from streaming.query.state_cache import (
    PACK_FROM,
    RECENT_BYTES,
    SLOTS,
    Entry,
    StateCache,
    StateStore,
    all_entries,
    key_of,
    packed_entries,
    unpacked_entries,
)
from tests.histories import PARTITION, History, at, history
from tests.streaming.shard import Shard

GROUPS = [f"g{number}" for number in range(40 * SLOTS)]
"""So many that each slot has several times what is worth a pack."""
CATCH_UP = history(*(at(n, offset_commit(name, "t", 0, 10)) for n, name in enumerate(GROUPS)))


@pytest.fixture
def shard() -> Shard:
    """One that has caught up with a commit of each group."""
    caught_up = Shard()
    caught_up.batch(CATCH_UP)
    return caught_up


def commits(names: list[str], offset: int, *, after: History = CATCH_UP) -> History:
    """A commit of each group, behind what there is."""
    return history(*(at(5_000, offset_commit(name, "t", 0, offset)) for name in names), start=after.end)


def offsets(shard: Shard) -> dict[str, tuple[int, int]]:
    """Group → what it committed last, and how often it did."""
    return {group: (of.offsets[0].offset, of.commits) for (group, _, _), of in shard.buckets().items()}


def test_what_a_catch_up_brings_is_in_packs(shard: Shard) -> None:
    """One access to the state for each slot instead of two for each group."""
    assert {} == shard.single()
    assert SLOTS == len(shard.packs())
    assert set(GROUPS) == set(shard.groups())
    assert dict.fromkeys(GROUPS, (10, 1)) == offsets(shard)
    assert not shard.book().has_single


def test_commit_leaves_packs_as_they_are(shard: Shard) -> None:
    """It would rewrite the entries of every other group of its slot; what changed lately is the newer."""
    before = shard.packs()

    shard.batch(commits(["g7"], 11))
    shard.batch(commits(["g7", "g8"], 12))

    assert before == shard.packs()
    assert {("g7", "t", 0), ("g8", "t", 0)} == shard.lately().keys()
    assert {} == shard.single()
    assert dict.fromkeys(GROUPS, (10, 1)) | {"g7": (12, 3), "g8": (12, 2)} == offsets(shard)
    assert shard.book().has_single


def test_what_a_storm_changes_is_packed_again(shard: Shard) -> None:
    """But for what changed lately: its pack must not become the newer one."""
    shard.batch(commits(["g7"], 11))

    shard.batch(commits(GROUPS, 12))

    assert {("g7", "t", 0)} == shard.lately().keys()
    assert dict.fromkeys(GROUPS, (12, 2)) | {"g7": (12, 3)} == offsets(shard)
    shard.batch(commits(GROUPS, 13))
    assert dict.fromkeys(GROUPS, (13, 3)) | {"g7": (13, 4)} == offsets(shard)


def test_state_is_asked_once_for_all_partitions(shard: Shard) -> None:
    """However many a batch is about: each time the state is asked, two processes wait for each other.

    And it is asked once for all that changed, or was looked at, lately.
    """
    names = [f"of {partition}" for partition in range(20)]
    batches = [
        [(n, of, 1_000, *offset_commit(name, "t", 0, of)) for n, name in enumerate(names, PARTITION + 1)]
        for of in range(3)
    ]
    asked: list[int] = []

    def get_many(state: MapState, keys: list[Any]) -> dict[Any, Any]:
        asked.append(len(keys))
        return state_pipelining.get_many(state, keys)

    with patch.multiple(state_cache, get_many=get_many):
        shard.read(batches[:1])
        assert [] == asked
        shard.read(batches[1:2])
        assert [2, 2 * len(names)] == asked
        shard.read(batches[2:])
        assert [2] == asked[2:]

    assert dict.fromkeys(names, (2, 3)) == {group: of for group, of in offsets(shard).items() if group in names}


def test_few_of_a_large_pack_are_not_worth_writing_it(shard: Shard) -> None:
    """Nor are few of none: a monitor of some groups has no packs at all."""
    with patch.multiple(state_cache, PACK_SHARE=0.9):
        shard.batch(commits(GROUPS[: len(GROUPS) // 2], 11))
    small = Shard()
    small.batch(CATCH_UP.cut(PACK_FROM // 2))

    assert len(GROUPS) // 2 == len(shard.lately())
    assert ([], PACK_FROM) == (small.packs(), len(small.single()))


def test_what_changed_longest_ago_is_put_aside_where_much_does(shard: Shard) -> None:
    """Singly, and is the newer one there; when it changes again it is with the others again, and newer still."""
    with patch.multiple(state_cache, RECENT_BYTES=500):
        shard.batch(commits(["g1", "g2"], 11))
        ((numbers, words), _) = shard.lately().values()
        few = 500 // (len(numbers) + len(words))
        shard.batch(commits(GROUPS[2 : 2 + few], 12))

        assert {("g1", "t", 0)} == shard.single().keys() - {(name, "t", 0) for name in GROUPS[2 : 2 + few]}
        assert {(name, "t", 0) for name in GROUPS[2 : 2 + few]} == shard.lately().keys()
        shard.batch(commits(["g1"], 13))
        assert ("g1", "t", 0) in shard.lately()
    expected = dict.fromkeys(GROUPS, (10, 1)) | dict.fromkeys(GROUPS[2 : 2 + few], (12, 2))
    assert expected | {"g1": (13, 3), "g2": (12, 3)} == offsets(shard)


def test_long_entry_is_stored_singly(shard: Shard) -> None:
    """It would be written again with each of the others; once it is short again, it is one of them."""
    with patch.multiple(state_cache, LONG_BYTES=10):
        shard.batch(commits(["g7"], 11))
        assert ([], [("g7", "t", 0)]) == (list(shard.lately()), list(shard.single()))
    shard.batch(commits(["g7"], 12))
    assert {("g7", "t", 0)} == shard.lately().keys()
    with patch.multiple(state_cache, LONG_BYTES=10):
        shard.batch(commits(["g7"], 13))
    assert {} == shard.lately()
    assert dict.fromkeys(GROUPS, (10, 1)) | {"g7": (13, 4)} == offsets(shard)


@pytest.mark.parametrize("most", [None, RECENT_BYTES, 0])
def test_group_that_ends_goes_from_wherever_it_is(shard: Shard, most: int | None) -> None:
    """Its pack, what is stored singly, and what changed lately; one that comes under its name begins with nothing."""
    if most is not None:
        shard.batch(commits(["g7"], 11))
        with patch.multiple(state_cache, RECENT_BYTES=most):
            shard.batch(commits(["g7"], 12, after=commits(["g7"], 11)))
        shard.batch(commits(["g7"], 13, after=commits(["g7"], 12, after=commits(["g7"], 11))))

    shard.batch(history(at(6_000, offset_commit_tombstone("g7", "t", 0)), start=CATCH_UP.end + 3))

    rest = dict.fromkeys(GROUPS, (10, 1))
    del rest["g7"]
    assert (rest, set(rest)) == (offsets(shard), set(shard.groups()))
    left = (*shard.packs(), shard.single(), shard.lately(), shard.copies())
    assert [] == [key for kept in left for key in kept if key[0] == "g7"]
    shard.batch(history(at(7_000, offset_commit("g7", "t", 0, 3)), start=CATCH_UP.end + 4))
    assert rest | {"g7": (3, 1)} == offsets(shard)


def test_group_that_ends_and_begins_in_one_batch_has_nothing_of_the_former(shard: Shard) -> None:
    """Its other offsets are not there, although it is."""
    shard.batch(history(at(6_000, offset_commit("g7", "u", 64, 1)), start=CATCH_UP.end))
    ends = (offset_commit_tombstone("g7", "t", 0), offset_commit_tombstone("g7", "u", 64))

    shard.batch(history(at(7_000, *ends), at(8_000, offset_commit("g7", "u", 64, 2)), start=CATCH_UP.end + 1))

    held = {place: of.commits for place, of in shard.buckets().items() if place[0] == "g7"}
    assert {("g7", "u", 1): 1} == held


class _Held(dict[Any, Any]):
    """A map state in memory."""

    getValue, updateValue, removeKey = dict.get, dict.__setitem__, dict.__delitem__  # noqa: N815 - Spark's names
    iterator = dict.items


KEYS = [(name, *of) for name in ("a", "b", "c", "d") for of in ((), ("t", 0), ("t", 1))]
BATCHES = strategies.lists(
    strategies.tuples(
        strategies.dictionaries(strategies.sampled_from(KEYS), strategies.integers(1, 90)),
        strategies.sets(strategies.sampled_from(KEYS)),
        strategies.sets(strategies.sampled_from(KEYS)),
    ),
    max_size=12,
)
"""Of each batch: which entries change, to texts of what length, which are removed, and which are looked at."""


@given(batches=BATCHES)
def test_whatever_changes_is_found_again(batches: list[tuple[dict[Any, int], set[Any], set[Any]]]) -> None:
    """Wherever it is put: each entry is what it was changed to last, by key and as all are read back at a start."""
    state, has_single = StateStore(*(cast("MapState", _Held()) for _ in StateStore._fields)), False
    expected: dict[Any, Entry] = {}
    with patch.multiple(state_cache, SLOTS=2, PACK_FROM=2, RECENT_BYTES=150, LONG_BYTES=70):
        for number, (lengths, removed, looked_at) in enumerate(batches):
            entries = StateCache(
                state,
                {0: lengths.keys() | looked_at} if number else {},
                with_single=[0] if has_single else [],
                unknown=[] if number else [0],
            )
            assert all(entries.get(0, key) == expected.get(key) for key in looked_at)
            changed = {key: (bytes(length), f"{number}") for key, length in lengths.items()}
            has_single |= entries.change(0, changed, sorted(removed))
            entries.write()
            expected = {key: of for key, of in expected.items() if key not in removed} | changed
            assert expected == _all_of(state)


def _all_of(state: StateStore) -> dict[Any, Entry]:
    """Every entry, as it is read back at a start."""
    single, packs = (cast("_Held", of) for of in state)
    found = list(all_entries([(at, pack) for at, (pack,) in packs.items()], single.items()))
    assert len(found) == len(dict(found))
    return {key_of(place): entry for place, entry in found}


def test_slots_that_are_emptied_are_read_as_empty() -> None:
    """A pack without entries is one; so is none."""
    shard = Shard()
    names = GROUPS[: 2 * PACK_FROM]
    with patch.multiple(state_cache, SLOTS=1):
        shard.batch(commits(names, 10))
        shard.batch(history(*(at(6_000, offset_commit_tombstone(name, "t", 0)) for name in names), start=9_000))
        assert ([{}], {}, {}) == (shard.packs(), shard.single(), shard.groups())
        shard.batch(history(at(7_000, offset_commit("g1", "t", 0, 1)), start=9_900))
        assert {"g1": (1, 1)} == offsets(shard)


def test_groups_of_one_name_in_two_partitions_are_kept_apart() -> None:
    """Singly, in packs, and among what changed lately: the topic was grown, and one task has both partitions."""
    shard, old, new = Shard(), PARTITION, PARTITION + 1
    names = GROUPS[: 2 * PACK_FROM]

    def commit(partition: int, offset: int, at: int, *of: str) -> list[Any]:
        return [(partition, at + n, 1_000, *offset_commit(name, "t", 0, offset)) for n, name in enumerate(of)]

    with patch.multiple(state_cache, SLOTS=1, RECENT_BYTES=1_000):
        shard.read([[*commit(old, 10, 0, *names), *commit(new, 20, 0, *names)]])
        shard.read([[*commit(old, 11, 100, "g1", "g2"), *commit(new, 21, 100, "g1")]])
        shard.read([[*commit(new, 22, 200, "g1")], commit(old, 12, 200, "g3")])
        shard.read([[(new, 300, 1_000, *offset_commit_tombstone("g2", "t", 0))]])

    of_old, of_new = (
        {group: of.offsets[0].offset for (group, _, _), of in shard.buckets(partition).items() if of.offsets}
        for partition in (old, new)
    )
    assert dict.fromkeys(names, 10) | {"g1": 11, "g2": 11, "g3": 12} == of_old
    assert {name: 20 for name in names if name != "g2"} | {"g1": 22} == of_new
    assert (set(names), {*names} - {"g2"}) == (set(shard.groups(old)), set(shard.groups(new)))
    assert [{old}, {new}] == [{of.partition for of in shard.groups(at).values()} for at in (old, new)]


@pytest.mark.parametrize(
    "held",
    [
        {},
        {(3, "g", "", 2**31 - 1): (b"", "[1,{}]")},
        {
            (0, "", "", 0): (b"", ""),
            (-1, "\u00fc\0\U0001f600", "t.\u00e4", -1): (b"\xff\0", "\u00fc" * 100_000),
        },
    ],
)
def test_entries_come_out_of_a_pack_as_they_went_in(held: dict[Any, Entry]) -> None:
    """Names may be anything that UTF-8 can write."""
    assert list(held.items()) == list(unpacked_entries((0, 0), packed_entries(held)))
