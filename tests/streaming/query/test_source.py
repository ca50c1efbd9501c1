"""The source's arithmetic: where micro-batches end, who reads what, and how large a value may be."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.base.machine_clock import Instant
from streaming.config.kafka_sections import KafkaSection
from streaming.config.sections import Config
from streaming.kafka.log_bounds import Bounds
from streaming.query.log_continuity import Look, Note
from streaming.query.share_cells import Facts
from streaming.query.source import (
    SETTINGS_OPTION,
    CoordinatorLogReader,
    Known,
    Piece,
    Position,
    coordinator_log,
    late_seconds,
    pieces_between,
    shared_out,
)
from streaming.query.source import next_position as position_after

UNKNOWN = -1


def at(
    commits: dict[int, int],
    membership: dict[int, int],
    cut: Sequence[int] = (),
    epochs: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """A position, as Spark keeps it; no epoch is known unless said."""
    return {
        "commits": {str(p): offset for p, offset in commits.items()},
        "membership": {str(p): offset for p, offset in membership.items()},
        "cut": list(cut),
        "epochs": {str(p): UNKNOWN for p in membership} if epochs is None else dict(epochs),
    }


def next_position(start: Position, stable: dict[int, int], high: dict[int, int], most: int | None) -> dict[str, Any]:
    """Where a micro-batch ends when all partitions can be read."""
    return position_after(start, Look(stable, high), most)


class TestEnd:
    """Where a micro-batch ends."""

    def test_without_open_transactions_both_kinds_are_read_to_the_end(self) -> None:
        """Last stable offset and high watermark are one."""
        assert at({0: 9, 1: 4}, {0: 9, 1: 4}) == next_position(
            at({0: 2, 1: 4}, {0: 2, 1: 4}), {0: 9, 1: 4}, {0: 9, 1: 4}, None
        )

    def test_an_open_transaction_holds_back_commits_alone(self) -> None:
        """Membership goes on to the high watermark."""
        assert at({0: 5}, {0: 9}) == next_position(at({0: 2}, {0: 2}), {0: 5}, {0: 9}, None)

    def test_what_a_transaction_held_back_comes_when_it_ends(self) -> None:
        """Commits catch up with membership, which has nothing new."""
        assert at({0: 9}, {0: 9}) == next_position(at({0: 5}, {0: 9}), {0: 9}, {0: 9}, None)

    @pytest.mark.parametrize(
        ("ends", "most", "read"),
        [
            pytest.param({0: 60, 1: 30, 2: 50}, 100, {0: 0, 1: 30, 2: 50}, id="the one that does not fit waits"),
            pytest.param({0: 900, 1: 30}, 100, {0: 70, 1: 30}, id="more than half is left: the large one goes on"),
            pytest.param({0: 900, 1: 60}, 100, {0: 0, 1: 60}, id="less than half is left: the large one waits"),
            pytest.param({0: 50, 1: 50, 2: 50}, 100, {0: 50, 1: 50, 2: 0}, id="equal ones by number"),
            pytest.param({0: 900}, 100, {0: 100}, id="one that never fits"),
        ],
    )
    def test_a_limit_takes_whole_partitions(self, ends: dict[int, int], most: int, read: dict[int, int]) -> None:
        """A group's records come in one micro-batch where that can be, the small partitions first."""
        cut = [p for p in ends if read[p] < ends[p]]

        assert at(read, read, cut) == next_position(at({}, {}), ends, ends, most)

    def test_under_a_limit_each_partition_gets_to_its_end(self) -> None:
        """Also a large one beside others that go on being written to."""
        ends, position, batches = {0: 1_000, 1: 40, 2: 40}, at({}, {}), 0
        while position["membership"].get("0") != 1_000:
            position = next_position(position, ends, ends, 100)
            ends = ends | {1: ends[1] + 20, 2: ends[2] + 20}
            batches += 1
            assert batches < 20

    def test_a_limit_cuts_commits_where_it_cuts_membership(self) -> None:
        """Commits never run ahead: a batch has both kinds of the same stretch."""
        assert at({0: 10}, {0: 10}, cut=[0]) == next_position(at({0: 0}, {0: 0}), {0: 50}, {0: 100}, 10)

    def test_a_last_stable_offset_that_goes_back_takes_nothing_back(self) -> None:
        """A new leader may know less of it; what was read stays read."""
        assert at({0: 5}, {0: 9}) == next_position(at({0: 5}, {0: 9}), {0: 3}, {0: 9}, None)

    def test_a_new_partition_is_read_from_its_beginning(self) -> None:
        """A position that does not name it has read nothing of it."""
        assert at({0: 4, 1: 2}, {0: 4, 1: 2}) == next_position(at({0: 4}, {0: 4}), {0: 4, 1: 2}, {0: 4, 1: 2}, None)

    def test_a_partition_that_cannot_be_read_stays_where_it_is(self) -> None:
        """The others go on; what was known of its epoch is kept."""
        start = at({0: 4, 1: 4}, {0: 4, 1: 5}, epochs={"0": 2, "1": 3})

        end = position_after(start, Look({0: 9}, {0: 9}, epochs=lambda _partition, _offset: 7), None)

        assert at({0: 9, 1: 4}, {0: 9, 1: 5}, epochs={"0": 7, "1": 3}) == end

    def test_a_partition_that_is_read_again_begins_at_its_beginning(self) -> None:
        """And the position says why: what was known of it is to be forgotten, also if the micro-batch is repeated."""
        start, why = at({0: 90, 1: 4}, {0: 90, 1: 4}), {"from": 70, "to": 90}

        end = position_after(start, Look({0: 80, 1: 6}, {0: 80, 1: 6}, begins={0: (3, 3)}, again={0: why}), None)

        assert {**at({0: 80, 1: 6}, {0: 80, 1: 6}), "begins": {"0": [3, 3]}, "again": {"0": why}} == end

    def test_of_whom_an_uneven_partition_is_read_stays_known(self) -> None:
        """Also while nothing is read of it; it changes with what is read."""
        start = {**at({0: 9, 1: 4}, {0: 9, 1: 4}), "uneven": {"0": [1, 4], "1": [1, 2]}}
        look = Look({0: 12}, {0: 12}, again={0: {"replica": 2}}, begins={0: (0, 0)}, uneven={0: (2, 5)})

        assert {"0": [2, 5], "1": [1, 2]} == position_after(start, look, None)["uneven"]
        assert "uneven" not in position_after(at({0: 9}, {0: 9}), Look({0: 12}, {0: 12}), None)

    @pytest.mark.parametrize(
        ("most", "read"),
        [
            pytest.param(100, {0: 90, 1: 4}, id="fits"),
            pytest.param(50, {0: 0, 1: 4}, id="waits for a micro-batch that has room for it"),
        ],
    )
    def test_what_is_read_again_is_read_whole(self, most: int, read: dict[int, int]) -> None:
        """What was known of it goes in the same micro-batch."""
        look = Look({0: 90, 1: 4}, {0: 90, 1: 4}, begins={0: (0, 0)}, again={0: {"from": 1, "to": 2}})

        end = position_after(at({0: 0, 1: 0}, {0: 0, 1: 0}), look, most)

        assert {str(p): offset for p, offset in read.items()} == end["membership"]

    def test_what_fits_into_no_micro_batch_has_one_of_its_own(self) -> None:
        """It would never be read."""
        look = Look({0: 900}, {0: 900}, begins={0: (0, 0)}, again={0: {"from": 1, "to": 2}})

        assert {"0": 900} == position_after(at({0: 950}, {0: 950}), look, 100)["membership"]

    def test_a_gap_is_said_with_the_records_that_end_it(self) -> None:
        """Whatever is repeated after a kill is judged as it was."""
        end = position_after(at({0: 4}, {0: 4}), Look({0: 9}, {0: 9}, gaps={0: (9, None)}), None)

        assert {"0": [9, None]} == end["gaps"]


class TestPieces:
    """What there is to read between two positions."""

    def test_partitions_with_nothing_new_are_not_read(self) -> None:
        """Neither kind has moved."""
        assert [] == pieces_between(at({0: 4}, {0: 7}), at({0: 4}, {0: 7}))

    def test_a_piece_says_both_stretches(self) -> None:
        """Commits from and to, membership from and to."""
        start, end = at({0: 4, 1: 4}, {0: 4, 1: 7}), at({0: 4, 1: 9}, {0: 4, 1: 12})

        assert [(1, 4, 9, 7, 12, False, None)] == pieces_between(start, end)

    def test_a_piece_begins_where_its_end_says_so(self) -> None:
        """With what is to be said of it; one that is read again is a piece though there is nothing in it."""
        start = at({0: 4, 1: 4}, {0: 4, 1: 4})
        end = {
            **at({0: 9, 1: 0}, {0: 9, 1: 0}),
            "begins": {"0": [2, 3], "1": [0, 0]},
            "again": {"1": {"from": 0, "to": 4}},
            "gaps": {"0": [9, 8]},
        }

        assert [
            Piece(0, 2, 9, 3, 9, note=Note((2, 3), gap=(9, 8))),
            Piece(1, 0, 0, 0, 0, note=Note((0, 0), {"from": 0, "to": 4})),
        ] == pieces_between(start, end)

    def test_a_piece_is_cut_where_its_end_says_so(self) -> None:
        """One that an earlier release noted does not say: it may be cut anywhere."""
        start, end = at({}, {}), at({0: 4, 1: 2}, {0: 4, 1: 2}, cut=[1])
        of_earlier_release = {kind: end[kind] for kind in ("commits", "membership")}

        assert [False, True] == [piece.is_cut for piece in pieces_between(start, end)]
        assert [True, True] == [piece.is_cut for piece in pieces_between(start, of_earlier_release)]

    def test_a_small_batch_is_one_share(self) -> None:
        """However many partitions it is of, and however many processes there may be."""
        (share,) = shared_out([Piece(p, 0, 20, 0, 20) for p in range(50)], 8)

        assert set(range(50)) == {piece[0] for piece in share}

    def test_a_large_batch_is_shared_evenly(self) -> None:
        """Every piece once, and no process with much more than another."""
        pieces = [Piece(p, 0, 1_000 * (p + 1), 0, 1_000 * (p + 1)) for p in range(50)]

        shares = shared_out(pieces, 4)

        assert sorted(pieces) == sorted(piece for share in shares for piece in share)
        assert 4 == len(shares)
        sizes = [sum(piece[2] for piece in share) for share in shares]
        assert max(sizes) - min(sizes) <= 50_000

    def test_nothing_to_read_is_no_share(self) -> None:
        """An empty batch has none."""
        assert [] == shared_out([], 4)


class TestReadLate:
    """A micro-batch that was planned before everything stood still, and read after it."""

    DAY = 86_400.0

    @pytest.mark.parametrize(
        ("seconds", "note"),
        [
            pytest.param(4.9, None, id="nothing is cleaned away so soon"),
            pytest.param(5.0, Note((2, 3), gap=(9, None)), id="the live tail goes on; records may be missing"),
            pytest.param(301.0, Note((2, 3), gap=(9, 9)), id="who comes so late cannot know what was cleaned"),
            pytest.param(DAY, Note((2, 3), {"unread_seconds": 86_400}, unread=True), id="what ended may be gone"),
        ],
    )
    def test_it_is_judged_as_if_it_had_been_planned_after_it(self, seconds: float, note: Note | None) -> None:
        """The cleaner does not ask who is about to read."""
        assert note == Piece(0, 2, 9, 3, 9).read_late(seconds, self.DAY)

    def test_it_takes_in_the_gap_before_its_plan(self) -> None:
        """Two gaps, one after the other, are one that lasts from the first to the end of the second."""
        piece = Piece(0, 2, 9, 3, 9, note=Note((2, 3), gap=(7, 7)))

        assert Note((2, 3), gap=(9, 7)) == piece.read_late(5.0, self.DAY)

    def test_what_comes_from_the_beginning_is_no_tail(self) -> None:
        """It is compared with what was known anyway."""
        note = Note((0, 0), {"from": 0, "to": 4})

        assert note == Piece(0, 0, 9, 0, 9, note=note).read_late(self.DAY, self.DAY)

    def test_a_clock_of_another_machine_is_not_compared(self) -> None:
        """There the time that the reading took is what is known."""
        began, ended = Instant("here", 100.0), Instant("here", 107.0)

        assert [27.0, 7.0, 7.0] == [
            late_seconds(looked, began, ended) for looked in (Instant("here", 80.0), Instant("there", 80.0), None)
        ]


class Said:
    """What brokers say one after the other."""

    def __init__(self, *said: Bounds) -> None:
        self._said = iter(said)

    def ends(self) -> Bounds:
        """As `LogBounds`."""
        return next(self._said)

    def first(self, partitions: Sequence[int]) -> dict[int, int]:
        """As `LogBounds`."""
        return dict.fromkeys(partitions, 0)


def test_nothing_new_is_the_position_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark compares texts: a position that says how it was come to is the same while nothing is to be read."""
    reader = CoordinatorLogReader('{"committed_only": false, "known": {}, "share_groups": false}')
    monkeypatch.setattr(reader, "_bounds", Said(Bounds({0: 4}, {0: 4}), Bounds({0: 4, 1: 2}, {0: 4, 1: 2})))
    start = {**at({0: 4}, {0: 4}, cut=[0]), "gaps": {"0": [4, None]}}

    assert start == reader.latestOffset(start, ReadAllAvailable())
    assert at({0: 4, 1: 2}, {0: 4, 1: 2})["membership"] == reader.latestOffset(start, ReadAllAvailable())["membership"]


class Shares:
    """A second log with two records."""

    def look(self, start: Mapping[str, Any]) -> Look:
        return Look({0: 2}, {0: 2}, begins={} if "0" in start["membership"] else {0: (0, 0)})

    def planned(self, partitions: Collection[int]) -> None:
        """Nothing to remember."""

    def facts(self) -> Facts:
        return Facts({"": 5})


def test_news_of_the_second_log_alone_make_a_micro_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the first ones; where there are none the position stays as it was."""
    reader = CoordinatorLogReader('{"committed_only": false, "known": {}, "share_groups": true}')
    monkeypatch.setattr(reader, "_bounds", Said(*[Bounds({0: 4}, {0: 4})] * 2))
    monkeypatch.setattr(reader, "_share_log", Shares())
    end = reader.latestOffset(at({0: 4}, {0: 4}), ReadAllAvailable())

    assert {"0": 2} == end["share"]["membership"]
    assert end == reader.latestOffset(end, ReadAllAvailable())
    plan = reader._share_plan(at({0: 4}, {0: 4}), end)
    assert plan is not None
    assert [(0, 0, 2)] == [(of.partition, of.membership, of.membership_end) for of in plan.pieces]
    assert None is reader._share_plan(end, end)


@pytest.mark.parametrize(("of_topic", "expected"), [(0, 1_000), (999, 1_000), (1_001, 1_001)])
def test_no_value_is_too_large_that_the_topic_takes(of_topic: int, expected: int) -> None:
    """Below its max.message.bytes, which is 0 where brokers do not say, a lawful record would be undecodable."""
    spark = MagicMock()
    coordinator_log(spark, Config(kafka=KafkaSection(max_record_bytes=1_000)), [0], Known(largest_batch_bytes=of_topic))

    (name, settings) = spark.readStream.format.return_value.option.call_args.args
    assert SETTINGS_OPTION == name
    assert expected == json.loads(settings)["max_record_bytes"]
