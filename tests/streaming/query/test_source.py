"""The source's arithmetic: where micro-batches end, and who reads what."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.query.range_reader import AWAY, LogBounds, LogLostError
from streaming.query.source import (
    LOST_AFTER_SECONDS,
    CoordinatorLogReader,
    Piece,
    next_position,
    pieces_between,
    shared_out,
)


def at(commits: dict[int, int], membership: dict[int, int], cut: Sequence[int] = ()) -> dict[str, Any]:
    """A position, as Spark keeps it."""
    return {
        "commits": {str(p): offset for p, offset in commits.items()},
        "membership": {str(p): offset for p, offset in membership.items()},
        "cut": list(cut),
    }


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

    def test_a_log_shorter_than_what_was_read_is_another_log(self) -> None:
        """It was cut off or recreated: that is an error, and says where."""
        with pytest.raises(LogLostError, match="partition 1 ends at 3, and was read to 4"):
            next_position(at({0: 4, 1: 4}, {0: 4, 1: 4}), {0: 4, 1: 3}, {0: 4, 1: 3}, None)


class TestPieces:
    """What there is to read between two positions."""

    def test_partitions_with_nothing_new_are_not_read(self) -> None:
        """Neither kind has moved."""
        assert [] == pieces_between(at({0: 4}, {0: 7}), at({0: 4}, {0: 7}))

    def test_a_piece_says_both_stretches(self) -> None:
        """Commits from and to, membership from and to."""
        start, end = at({0: 4, 1: 4}, {0: 4, 1: 7}), at({0: 4, 1: 9}, {0: 4, 1: 12})

        assert [(1, 4, 9, 7, 12, False)] == pieces_between(start, end)

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


class Ends:
    """What brokers say one after the other of a log of one partition."""

    def __init__(self, *said: int) -> None:
        self._said = iter(said)

    def ends(self) -> tuple[dict[int, int], dict[int, int]]:
        """As `LogBounds`."""
        end = next(self._said)
        return {0: end}, {0: end}


def test_a_log_that_is_shorter_for_a_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new leader may not know yet how far its log reaches; only what lasts is another log."""
    reader = CoordinatorLogReader('{"committed_only": false}')
    monkeypatch.setattr(reader, "_ends", Ends(3, 3, 5, 3, 3, 3))
    clock = iter((0.0, LOST_AFTER_SECONDS - 1, 100.0, 100 + LOST_AFTER_SECONDS - 1, 100 + LOST_AFTER_SECONDS))
    monkeypatch.setattr("streaming.query.source.time.monotonic", lambda: next(clock))
    start = at({0: 4}, {0: 4})

    said = [reader.latestOffset(start, ReadAllAvailable()) for _ in range(5)]

    assert [start, start, at({0: 5}, {0: 5}), start, start] == said
    with pytest.raises(LogLostError):
        reader.latestOffset(start, ReadAllAvailable())


def admins(monkeypatch: pytest.MonkeyPatch, offset: Callable[[int], int]) -> list[object]:
    """Clients answer with a partition's offset, or fail with what that raises; returns the settings of each made."""

    class Admin:
        def __init__(self, settings: object) -> None:
            made.append(settings)

        def list_topics(self, topic: str, *, timeout: float) -> None:
            """Who leads, which no one looks at."""

        def list_offsets(
            self, asked: dict[TopicPartition, object], **_: object
        ) -> dict[TopicPartition, Future[object]]:
            answers: dict[TopicPartition, Future[object]] = {of: Future() for of in asked}
            for of, future in answers.items():
                try:
                    future.set_result(SimpleNamespace(offset=offset(of.partition)))
                except KafkaException as error:
                    future.set_exception(error)
            return answers

    made: list[object] = []
    monkeypatch.setattr("streaming.query.range_reader.AdminClient", Admin)
    return made


def test_brokers_that_take_leave_are_waited_for_once_they_have_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Having said that a partition has no leader any more, librdkafka finds none: before an answer that is an error."""
    said: list[int | None] = [KafkaError._NOENT]

    def offset(_: int) -> int:
        if said[0] is not None:
            raise KafkaException(KafkaError(said[0]))
        return 7

    made = admins(monkeypatch, offset)
    ends = LogBounds({}, "log", 2, 1.0)

    def error() -> int:
        with pytest.raises(KafkaException) as raised:
            ends.ends()
        code: int = raised.value.args[0].code()
        return code

    assert KafkaError._NOENT == error()
    assert KafkaError._NOENT not in AWAY

    said[0] = None

    assert {0: 7, 1: 7} == ends.first()

    said[0] = KafkaError._NOENT

    assert error() in AWAY
    assert 1 == len(made)
    assert error() in AWAY
    assert 2 == len(made), "the client that has lost them says so for good"

    said[0] = KafkaError.TOPIC_AUTHORIZATION_FAILED

    assert KafkaError.TOPIC_AUTHORIZATION_FAILED == error()


def test_an_end_that_is_no_offset_is_a_leader_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Librdkafka says -1001 of a partition whose leader was killed: nothing is lost, and another client asks again."""
    made = admins(monkeypatch, lambda partition: -1001 if partition == 1 and len(made) == 1 else 7)
    ends = LogBounds({}, "log", 2, 1.0)

    with pytest.raises(KafkaException) as raised:
        ends.ends()
    assert raised.value.args[0].code() in AWAY
    assert ({0: 7, 1: 7}, {0: 7, 1: 7}) == ends.ends()
