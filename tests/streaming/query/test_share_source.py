"""The share coordinator's log as it is planned and read: where it is not, may not be read, or is deleted meanwhile."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException

from streaming.kafka.log_bounds import Bounds
from streaming.kafka.range_reader import Columns, LogLostError, Ranges
from streaming.query import share_source
from streaming.query.log_continuity import Note
from streaming.query.share_cells import Pruned
from streaming.query.share_source import LOOK_SECONDS, ShareLog, ShareReader
from streaming.query.source import NOTHING_READ, next_position

SETTINGS: Final[Mapping[str, Any]] = {
    "client": {},
    "fetch": {},
    "kafka": "",
    "max_record_bytes": 1,
    "known": {"share_owed": {}},
}


class Brokers:
    """What brokers answer: whether the topic is there and readable, where it begins and ends, and its records."""

    def __init__(self, found: tuple[bool, bool] = (True, True)) -> None:
        self.found = found
        self.looks = 0
        self.begin, self.end = {0: 0, 1: 0}, {0: 4, 1: 9}
        self.refuses: KafkaException | None = None
        self.unreadable: set[int] = set()

    def look_for(self, _: Mapping[str, Any]) -> tuple[bool, bool]:
        self.looks += 1
        return self.found

    def first(self, partitions: Collection[int]) -> dict[int, int]:
        return {of: self.begin[of] for of in partitions}

    def ends(self) -> Bounds:
        if self.refuses is not None:
            raise self.refuses
        return Bounds(dict(self.end), dict(self.end), partitions=len(self.end))

    def read(self, ranges: Ranges, left_out: set[int], _: dict[int, Any]) -> Iterator[Columns]:
        """As a `RangeReader`: a partition whose begin is deleted, or that cannot be read, is left out."""
        for partition, (start, end) in ranges.items():
            if partition in self.unreadable or start < self.begin[partition]:
                left_out.add(partition)
                continue
            offsets = [*range(start, end)]
            yield Columns([partition] * len(offsets), offsets, offsets, [b"k"] * len(offsets), [b"v"] * len(offsets))


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    found = Brokers()
    monkeypatch.setattr(share_source, "look_for", found.look_for)
    monkeypatch.setattr(share_source, "LogBounds", lambda *_: found)
    monkeypatch.setattr(share_source, "RangeReader", lambda *_, **__: found)
    return found


class Clock:
    """Seconds that are set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def planned(log: ShareLog, start: Mapping[str, Any]) -> dict[str, Any] | None:
    """Where the next micro-batch ends."""
    look = log.look(start)
    return None if look is None else next_position(start, look, None)


# -- planned ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [(False, False), (True, False)])
def test_a_topic_that_is_not_there_or_may_not_be_read_is_looked_for_once_a_minute(
    brokers: Brokers, found: tuple[bool, bool]
) -> None:
    """And read as soon as it may be, without anything started again."""
    brokers.found, clock = found, Clock()
    log = ShareLog(SETTINGS, lambda *_: {}, clock)
    for second in range(int(LOOK_SECONDS)):
        clock.seconds = second
        assert None is log.look(NOTHING_READ)
    assert 1 == brokers.looks

    brokers.found, clock.seconds = (True, True), LOOK_SECONDS
    end = planned(log, NOTHING_READ)
    assert end is not None
    assert {"0": 4, "1": 9} == end["membership"]
    assert 2 == brokers.looks


def test_of_a_log_that_was_there_what_was_written_before_is_no_alarm(brokers: Brokers) -> None:
    """Its end as it is found is where the live tail begins."""
    end = planned(ShareLog(SETTINGS, lambda *_: {}), NOTHING_READ)

    assert end is not None
    assert {"0": [4, 4], "1": [9, 9]} == end["gaps"]


def test_of_a_log_that_came_while_it_was_looked_for_all_is_live(brokers: Brokers) -> None:
    """What its first group gave up is news."""
    brokers.found, clock = (False, False), Clock()
    log = ShareLog(SETTINGS, lambda *_: {}, clock)
    assert None is log.look(NOTHING_READ)
    brokers.found, clock.seconds = (True, True), LOOK_SECONDS
    end = planned(log, NOTHING_READ)

    assert end is not None
    assert "gaps" not in end


def test_after_a_restart_what_came_meanwhile_is_live(brokers: Brokers) -> None:
    """Records that were given up are, however late that is read."""
    start = next_position(NOTHING_READ, _look(ShareLog(SETTINGS, lambda *_: {})), None)
    brokers.end = {0: 7, 1: 9}
    end = planned(ShareLog(SETTINGS, lambda *_: {}), start)

    assert end is not None
    assert {"0": 7, "1": 9} == end["membership"]
    assert "gaps" not in end


def _look(log: ShareLog) -> Any:
    found = log.look(NOTHING_READ)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("code", "is_read_at_once"),
    [(KafkaError.NOT_LEADER_FOR_PARTITION, True), (KafkaError.TOPIC_AUTHORIZATION_FAILED, False)],
)
def test_what_brokers_refuse_is_waited_for(brokers: Brokers, code: int, is_read_at_once: bool) -> None:
    """A leader that moves for the next look, a permission that was taken away for a minute; neither ends anything."""
    clock = Clock()
    log = ShareLog(SETTINGS, lambda *_: {}, clock)
    brokers.refuses = KafkaException(KafkaError(code))
    assert None is log.look(NOTHING_READ)

    brokers.refuses = None
    assert is_read_at_once == (log.look(NOTHING_READ) is not None)
    clock.seconds = LOOK_SECONDS
    assert log.look(NOTHING_READ) is not None


def test_what_is_owed_is_read_from_there(brokers: Brokers) -> None:
    """Though the position is beyond it."""
    start = next_position(NOTHING_READ, _look(ShareLog(SETTINGS, lambda *_: {})), None)
    owed = {"known": {"share_owed": {"1": list(Note((5, 5), unread=True))}}}
    found = ShareLog({**SETTINGS, **owed}, lambda *_: {}).look(start)

    assert found is not None
    assert {1: (5, 5)} == found.begins


# -- read -------------------------------------------------------------------------------------------------------------


def read(ranges: Ranges, *, may_leave_out: bool = True) -> tuple[list[tuple[int, int]], dict[int, Pruned], set[int]]:
    """(partition, offset) of what is read, what was deleted, and what could not be read."""
    left_out: set[int] = set()
    rows, pruned = ShareReader(SETTINGS, 1.0, lambda *_: None).read(ranges, left_out, {}, may_leave_out=may_leave_out)
    found = sorted(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))
    return found, pruned, left_out


@pytest.mark.parametrize("may_leave_out", [True, False])
def test_what_is_deleted_by_now_is_read_from_the_log_s_start(brokers: Brokers, may_leave_out: bool) -> None:
    """And it is said where the log ends, up to which all that lives is written again."""
    brokers.begin[1], brokers.end[1] = 6, 12

    assert ([(0, 2), (0, 3), (1, 6), (1, 7)], {1: Pruned(6, 12)}, set()) == read(
        {0: (2, 4), 1: (3, 8)}, may_leave_out=may_leave_out
    )


def test_where_all_of_it_is_deleted_nothing_is_read(brokers: Brokers) -> None:
    """The next micro-batch goes on behind it."""
    brokers.begin[1], brokers.end[1] = 9, 12

    assert ([], {1: Pruned(9, 12)}, set()) == read({1: (3, 8)})


def test_a_partition_that_cannot_be_read_is_left_out(brokers: Brokers) -> None:
    """The others are read; where none may be left out, that is an error, for who can wait longer."""
    brokers.unreadable = {1}

    assert ([(0, 2), (0, 3)], {}, {1}) == read({0: (2, 4), 1: (3, 8)})
    with pytest.raises(LogLostError, match=r"cannot be read: \[1\]"):
        read({0: (2, 4), 1: (3, 8)}, may_leave_out=False)
