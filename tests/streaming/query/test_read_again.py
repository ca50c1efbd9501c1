"""A partition that is read again from its beginning, or with a gap: what is kept, what is said, what stays silent."""

import json
from typing import Any, Final

import pytest

from lab.builders import RecordBytes, offset_commit, offset_commit_tombstone, topic_id
from lab.coordinator_events import consumer_join, consumer_leave, consumer_moves
from streaming.base.batch_rows import Row
from streaming.board.batch_update import BatchUpdate, BoardSnapshot
from streaming.query.log_continuity import Note
from tests.histories import PARTITION, at, history
from tests.streaming.shard import Shard

OWNED_TWICE: Final = (
    at(1_000, *consumer_join("doubled", "a", epoch=2, targets={"a": {"t": [1]}})),
    at(2_000, *consumer_join("doubled", "b", epoch=3, targets={"b": {"t": [1]}})),
)
WELL: Final = (
    at(3_000, *consumer_join("well", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
    at(4_000, offset_commit("well", "t", 0, 50), offset_commit("well", "t", 1, 60)),
)


def cut(*, begins: int = 0, from_offset: int, to_offset: int) -> Note:
    """What the source says of a partition whose log was cut off."""
    return Note((begins, begins), again={"from": from_offset, "to": to_offset})


def unread(seconds: int) -> Note:
    """What it says of one that was unread for longer than tombstones are kept."""
    return Note((0, 0), again={"unread_seconds": seconds})


def shown(shard: Shard) -> dict[str, dict[tuple[str, int], Any]]:
    """What a board makes of all rows put out: group → committed offsets."""
    board = BoardSnapshot()
    for row in shard.rows:
        update = BatchUpdate(board)
        update.take([row])
        board = update.shown()
    return {
        name: {key: bucket for bucket in held.buckets for key in [bucket.key]}
        for name, held in sorted(board.groups.items())
    }


class TestCutOff:
    """A log that lost its tail."""

    def test_what_the_lost_tail_did_is_undone(self) -> None:
        """Groups, members and offsets are what the log says now, in the state and in what is put out."""
        kept = history(*WELL, *OWNED_TWICE)
        lost = history(
            at(5_000, *consumer_join("phantom", "p", epoch=2, targets={"p": {"t": [0]}})),
            at(5_000, offset_commit("well", "t", 0, 99), offset_commit("well", "u", 0, 7)),
            at(6_000, *consumer_leave("well", "a", epoch=3)),
            start=kept.end,
        )
        shard = Shard()
        shard.batch(kept)
        shard.batch(lost)
        assert {"doubled", "phantom", "well"} == set(shard.groups())

        shard.batch(kept, note=cut(from_offset=kept.end, to_offset=lost.end))

        whole = Shard()
        whole.batch(kept)
        assert {name: of.membership for name, of in whole.groups().items()} == {
            name: of.membership for name, of in shard.groups().items()
        }
        assert {at: of.offsets for at, of in whole.buckets().items()} == {
            at: of.offsets for at, of in shard.buckets().items()
        }
        assert {"doubled", "well"} == set(shown(shard))

    def test_one_event_says_so(self) -> None:
        """Of no group, with what was lost and the groups that are other than they were; nothing else is raised."""
        kept = history(*WELL)
        lost = history(at(5_000, offset_commit("well", "t", 0, 99)), start=kept.end)
        shard = Shard()
        shard.batch(kept)
        shard.batch(lost)
        before = len(shard.events())

        shard.batch(kept, note=cut(from_offset=kept.end, to_offset=lost.end))

        (event,) = shard.events()[before:]
        assert ("log_truncated", "", "warning", PARTITION) == tuple(
            event[name] for name in ("kind", "group", "severity", "partition")
        )
        assert {
            "partition": PARTITION,
            "from_offset": kept.end,
            "to_offset": lost.end,
            "groups": ["well"],
        } == event["detail"]

    def test_other_records_at_the_same_offsets_are_other_events(self) -> None:
        """What dropped their repeats would lose an alarm; beyond what was read ids are as ever."""
        kept, lost = history(*WELL), history(*OWNED_TWICE, start=history(*WELL).end)
        shard = Shard()
        shard.batch(kept)
        shard.batch(lost)
        shard.batch(kept, note=cut(from_offset=kept.end, to_offset=lost.end))

        shard.batch(lost)
        beyond = history(at(9_000, *consumer_join("late", "a", epoch=2, targets={"a": {"t": [0]}})), start=lost.end)
        shard.batch(beyond)

        ids = [event["id"] for event in shard.events()]
        assert len(set(ids)) == len(ids)
        assert 2 == shard.kinds().count("duplicate_assignment")
        assert f"{PARTITION}-{beyond.end - 1}-group_created-0" in ids

    def test_a_second_loss_is_an_event_of_its_own(self) -> None:
        """Though it is found at the same place."""
        kept = history(*WELL)
        shard = Shard()
        shard.batch(kept)
        for _ in range(2):
            shard.batch(kept, note=cut(from_offset=kept.end, to_offset=kept.end + 1))

        assert 2 == len({event["id"] for event in shard.events() if event["kind"] == "log_truncated"})

    def test_an_alarm_that_still_holds_stays_open(self) -> None:
        """It is reported no more, and its end is when it comes."""
        kept = history(*OWNED_TWICE)
        shard = Shard()
        shard.batch(kept)
        assert ["duplicate_assignment"] == [kind for kind in shard.kinds() if kind.startswith("duplicate")]

        shard.batch(kept, note=cut(from_offset=kept.end, to_offset=kept.end + 3))
        assert ["duplicate_assignment"] == [kind for kind in shard.kinds() if kind.startswith("duplicate")]

        shard.batch(history(at(9_000, *consumer_leave("doubled", "b", epoch=4)), start=kept.end))
        assert "duplicate_assignment_cleared" in shard.kinds()

    def test_an_alarm_that_the_lost_tail_had_opened_is_cleared(self) -> None:
        """The second owner is not there any more."""
        kept, lost = history(OWNED_TWICE[0]), history(OWNED_TWICE[1], start=history(OWNED_TWICE[0]).end)
        shard = Shard()
        shard.batch(kept)
        shard.batch(lost)

        shard.batch(kept, note=cut(from_offset=kept.end, to_offset=lost.end))

        assert ["duplicate_assignment", "duplicate_assignment_cleared"] == [
            kind for kind in shard.kinds() if kind.startswith("duplicate")
        ]

    def test_an_alarm_of_a_group_that_is_gone_is_cleared(self) -> None:
        """It was in the lost tail as a whole."""
        kept, lost = history(*WELL), history(*OWNED_TWICE, start=history(*WELL).end)
        shard = Shard()
        shard.batch(kept)
        shard.batch(lost)

        shard.batch(kept, note=cut(from_offset=kept.end, to_offset=lost.end))

        assert "duplicate_assignment_cleared" == [kind for kind in shard.kinds() if kind.startswith("duplicate")][-1]

    def test_counters_go_on(self) -> None:
        """A counter that falls looks like a monitor that was restarted."""
        shard = Shard()
        log = history(*WELL, at(5_000, *consumer_leave("well", "a", epoch=3)))
        shard.batch(log)
        counted = {name: of.counters for name, of in shard.groups().items()}

        shard.batch(history(*WELL), note=cut(from_offset=history(*WELL).end, to_offset=log.end))

        assert counted == {name: of.counters for name, of in shard.groups().items()}

    def test_a_log_that_is_empty_now_has_no_group(self) -> None:
        """An empty broker came back under the same id."""
        shard = Shard()
        shard.batch(history(*WELL, *OWNED_TWICE))

        shard.batch([], note=cut(from_offset=0, to_offset=history(*WELL, *OWNED_TWICE).end))

        assert ({}, {}, {}) == (shard.groups(), shard.buckets(), shown(shard))

    def test_what_comes_after_is_live(self) -> None:
        """Though it stands before where the log ended when the run began, or where it had been read to."""
        kept = history(*WELL)
        lost = history(*(at(5_000 + n, offset_commit("well", "t", 0, 99 + n)) for n in range(90)), start=kept.end)
        shard = Shard(live_from=lost.end)
        shard.batch([*kept.records, *lost.records])
        shard.batch(kept, log_end=kept.end, note=cut(from_offset=kept.end, to_offset=lost.end))
        after = history(*OWNED_TWICE, start=kept.end)

        shard.batch(after, log_end=after.end)

        assert "duplicate_assignment" in shard.kinds()

    def test_groups_of_other_partitions_stay(self) -> None:
        """Those that changed lately, or are stored singly, are of all partitions of the bundle."""
        shard = Shard()
        shard.batch(history(*WELL))
        other = shard.beside(PARTITION + 1)
        other.batch(history(*OWNED_TWICE))
        assert ["doubled", "well"] == list(shard.groups())

        other.batch([], note=cut(from_offset=0, to_offset=9))

        assert ["well"] == list(shard.groups())
        assert {("well", "t", 0)} == set(shard.buckets())

    @pytest.mark.parametrize("count", [3, 40])
    def test_many_groups(self, count: int) -> None:
        """Whether their entries are stored singly or in packs."""
        kept = history(*(at(n, offset_commit(f"g{n}", "t", n, n)) for n in range(count)))
        lost = history(*(at(n, offset_commit(f"g{n}", "t", n, 900)) for n in range(count + 5)), start=kept.end)
        shard = Shard()
        shard.batch(kept)
        shard.batch(lost)

        shard.batch(kept, note=cut(from_offset=kept.end, to_offset=lost.end))

        assert {(f"g{n}", "t", 0): {n: n} for n in range(count)} == {
            at: {partition: of.offset for partition, of in bucket.offsets.items()}
            for at, bucket in shard.buckets().items()
        }


class TestUnreadForLong:
    """A log that was unread for longer than it keeps tombstones."""

    def test_what_ended_meanwhile_is_reported_as_inferred(self) -> None:
        """Its tombstones are gone; the group is, too."""
        log = history(*WELL, at(5_000, offset_commit("simple", "t", 0, 5), offset_commit("simple", "t", 1, 5)))
        left = history(*WELL)
        shard = Shard()
        shard.batch(log)
        before = len(shard.events())

        shard.batch(left, note=unread(90_000))

        assert [("group_deleted", "simple", True)] == [
            (event["kind"], event["group"], event["inferred"]) for event in shard.events()[before:]
        ]
        assert ["well"] == list(shard.groups()) == list(shown(shard))

    def test_offsets_that_went_or_went_back_are_reported(self) -> None:
        """One event for all that went back."""
        shard = Shard()
        shard.batch(history(at(5_000, *(offset_commit("simple", "t", n, 50) for n in range(3)))))
        before = len(shard.events())

        shard.batch(
            history(at(9_000, offset_commit("simple", "t", 1, 10)), at(9_500, offset_commit("simple", "t", 2, 60))),
            note=unread(90_000),
        )

        deleted, back = shard.events()[before:]
        assert ("offset_deleted", 0, True) == (deleted["kind"], deleted["detail"]["partition"], deleted["inferred"])
        assert ("offset_rewound", {"t/1": {"from": 50, "to": 10}}, True) == (
            back["kind"],
            back["detail"]["offsets"],
            back["inferred"],
        )

    def test_a_topic_that_was_made_again_is_reported_as_inferred(self) -> None:
        """Its commits name another id, whatever their offsets are; one of the same id that went on is silent."""
        present = topic_id("made again")
        shard = Shard()
        shard.batch(history(at(5_000, *(offset_commit("simple", of, 0, 50) for of in ("t", "u")))))
        before = len(shard.events())

        left = (offset_commit("simple", "t", 0, 70, id_of_topic=present), offset_commit("simple", "u", 0, 60))
        shard.batch(history(at(9_000, *left)), note=unread(90_000))

        (made,) = shard.events()[before:]
        assert ("topic_recreated", "simple", True) == (made["kind"], made["group"], made["inferred"])
        assert {
            "topic": "t", "partition": 0, "from": 50, "to": 70, "former_topic_id": topic_id("t"), "topic_id": present
        } == made["detail"]  # fmt: skip


def test_another_replica_of_a_log_that_was_cut_off_is_shown_as_its_coordinator_loads_it() -> None:
    """It kept a commit that the one before had cleaned away, and lacks another: no tail is said to be lost."""
    first, other = (
        history(*WELL, at(5_000, offset_commit("well", topic, 0, 70), offset_commit("cleaned", topic, 0, 7)))
        for topic in ("here", "there")
    )
    shard, whole = Shard(), Shard()
    shard.batch(first)
    before = len(shard.events())

    shard.batch(other, note=Note((0, 0), again={"replica": 2}))
    whole.batch(other)

    assert {at: of.offsets for at, of in whole.buckets().items()} == {
        at: of.offsets for at, of in shard.buckets().items()
    }
    on_board = {name: {topic for (topic, _), of in held.items() if of.count} for name, held in shown(shard).items()}
    assert {"cleaned": {"there"}, "well": {"t", "there"}} == on_board
    assert not [of["kind"] for of in shard.events()[before:] if of["kind"] == "log_truncated" or not of["inferred"]]


@pytest.mark.parametrize("why", [cut(from_offset=9, to_offset=20), unread(90_000)], ids=["cut off", "unread for long"])
def test_a_type_that_was_reported_is_no_news(why: Note) -> None:
    """It was counted when it was read first; one that is met only now is reported, and from then on is none."""
    known, new = unknown_type(99), unknown_type(98)
    first = history(at(1_000, known), at(2_000, known))
    shard = Shard()
    shard.batch(first)
    assert ["99"] == reported_types(shard)

    shard.batch(history(at(1_000, known), at(2_000, known), at(3_000, new)), note=why)
    shard.batch(history(at(4_000, known, new), start=3))

    assert ["99", "98"] == reported_types(shard)
    assert {"99": 3, "98": 2} == shard.book().counters.unknown_records


def unknown_type(number: int) -> RecordBytes:
    """A record of a type that this release does not know."""
    return number.to_bytes(2) + b"key", b"value"


def reported_types(shard: Shard) -> list[str]:
    """Types of records that were reported to be unknown, in their order."""
    return [str(event["detail"]["record_type"]) for event in shard.events() if event["kind"] == "unknown_record"]


class TestGaps:
    """Records that were cleaned away before they were read."""

    def test_what_was_cleaned_away_raises_no_alarm(self) -> None:
        """What is left shows states that never were: an epoch that jumps, partitions with two owners."""
        log = history(*WELL)
        shard = Shard()
        shard.batch(log)
        left = history(
            at(8_000, *consumer_join("well", "b", epoch=8, targets={"a": {"t": [0]}, "b": {"t": [1]}})),
            at(9_000, *consumer_moves("well", "a", epoch=8, previous_epoch=8, assigned={"t": [0]})),
            at(9_500, offset_commit("well", "t", 0, 70)),
            start=log.end + 40,
        )

        seen = Shard()
        seen.batch(log)
        seen.batch(left)
        assert {"duplicate_assignment", "epoch_anomaly"} <= set(seen.kinds()), "this is what it looks like"

        shard.batch(left, note=Note((log.end, log.end), gap=(left.end, None)))

        assert [] == [event for event in shard.events() if event["severity"] != "info"]

    def test_a_gap_in_which_nothing_is_missing_is_judged(self) -> None:
        """An alarm that came while the leader was away is raised."""
        log = history(*WELL)
        shard = Shard()
        shard.batch(log)
        after = history(*OWNED_TWICE, start=log.end)

        shard.batch(after, note=Note((log.end, log.end), gap=(after.end, None)))

        assert "duplicate_assignment" in shard.kinds()

    def test_an_offset_that_went_back_in_the_gap_is_reported_as_inferred(self) -> None:
        """The commits between are gone; before and after are not."""
        log = history(*WELL)
        shard = Shard()
        shard.batch(log)
        end = log.end + 40
        left = history(at(9_000, offset_commit("well", "t", 0, 20)), start=end - 1)

        shard.batch(left, note=Note((log.end, log.end), gap=(end, None)))

        (back,) = (event for event in shard.events() if event["kind"] == "offset_rewound")
        assert (True, 50, 20) == (back["inferred"], back["detail"]["from"], back["detail"]["to"])

    def test_what_the_log_says_is_not_said_twice(self) -> None:
        """Tombstones are still there: they are events of their own."""
        log = history(at(1_000, offset_commit("simple", "t", 0, 5)))
        shard = Shard()
        shard.batch(log)
        end = log.end + 40
        left = history(at(9_000, offset_commit_tombstone("simple", "t", 0)), start=end - 1)

        shard.batch(left, note=Note((log.end, log.end), gap=(end, None)))

        assert {"offset_deleted": 1, "group_deleted": 1} == {
            kind: shard.kinds().count(kind) for kind in ("offset_deleted", "group_deleted")
        }
        assert [False, False] == [of["inferred"] for of in shard.events() if of["kind"].endswith("_deleted")]

    def test_history_is_compared_with_nothing(self) -> None:
        """A first catch-up in several micro-batches: what goes back in it is long past."""
        past = history(*(at(n, offset_commit("simple", "t", 0, offset)) for n, offset in enumerate((9, 5, 8, 3))))
        shard = Shard(live_from=past.end)

        shard.batch(list(past.records[:2]))
        shard.batch(list(past.records[2:]))

        assert [] == [of for of in shard.events() if of["inferred"]]


class TestOwed:
    """Records that were planned, and could not be read."""

    def test_later_rows_wait_for_what_is_owed(self) -> None:
        """Else the group would be what never was; it is in the totals that something is owed."""
        log = history(*WELL)
        shard = Shard()
        shard.batch(log)
        later = history(at(6_000, *consumer_leave("well", "a", epoch=4)), start=log.end + 5)

        rows = shard.batch([], note=Note((log.end, log.end), unread=True))
        shard.batch(later)

        assert [[log.end, log.end], None, None, True, []] == _totals(rows)["owed"]
        assert ["a"] == list(shard.groups()["well"].membership.modern_group.members)  # type: ignore[union-attr]

    def test_what_is_read_again_has_what_is_owed_in_it(self) -> None:
        """The leader went before the records were read, and its log was cut off."""
        kept = history(*WELL)
        shard = Shard()
        shard.batch(kept)
        shard.batch([], note=Note((kept.end, kept.end), unread=True))

        rows = shard.batch(history(*WELL, *OWNED_TWICE), note=cut(from_offset=kept.end - 1, to_offset=kept.end + 2))

        assert ["doubled", "well"] == list(shard.groups())
        assert "owed" not in _totals(rows)

    def test_what_is_owed_is_paid(self) -> None:
        """From where it was planned on, with all that came since."""
        log = history(*WELL)
        shard = Shard()
        shard.batch(log)
        shard.batch([], note=Note((log.end, log.end), unread=True))
        rest = history(at(6_000, *consumer_leave("well", "a", epoch=4)), start=log.end)

        rows = shard.batch(rest, note=Note((log.end, log.end)))

        assert "owed" not in _totals(rows)
        assert "group_emptied" in shard.kinds()


def _totals(rows: list[Row]) -> dict[str, Any]:
    (row,) = (row for row in rows if row.kind == "shard")
    found: dict[str, Any] = json.loads(row.payload)
    return found
