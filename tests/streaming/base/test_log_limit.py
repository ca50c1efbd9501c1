"""What is written of one thing in a minute, and how what is left out is made up for."""

import json
import logging
from collections.abc import Callable, Iterator

import pytest

from streaming.base import log_limit, logging_setup
from streaming.base.log_limit import LINES, LineLimit

Reported = list[tuple[str, str, int]]


class Minute:
    """A limit with a clock and timers that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], object]]] = []
        self.reported: Reported = []
        self.limit = LineLimit(
            lambda *said: self.reported.append(said),
            lambda: self.now,
            lambda seconds, call: self.timers.append((self.now + seconds, call)),
        )

    def written(self, lines: int, event: str = "undecodable_record", **fields: str) -> int:
        """How many of so many lines of one of our events get through."""
        return sum(self.limit.filter(of_our_own(event, **fields)) for _ in range(lines))

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        due, self.timers = (
            [call for at, call in self.timers if at <= self.now],
            [each for each in self.timers if each[0] > self.now],
        )
        for call in due:
            call()


def of_our_own(event: str, **fields: str) -> logging.LogRecord:
    record = logging.LogRecord("streaming.sink", logging.WARNING, "", 0, "", (), None)
    record.msg = {"event": event, **fields}  # as structlog hands it on
    return record


def of_a_library(message: str, line: int) -> logging.LogRecord:
    return logging.LogRecord("asyncio", logging.ERROR, "base_events.py", line, message, (), None)


def test_so_many_lines_of_a_kind_are_written_in_a_minute() -> None:
    """Then no more, and at the minute's end one that says how many there were; and so again in the next one."""
    minute = Minute()

    assert LINES == minute.written(396_194)
    minute.pass_(59)
    assert (0, []) == (minute.written(6), minute.reported)
    minute.pass_(1)
    assert [("streaming.sink", "undecodable_record", 396_200 - LINES)] == minute.reported
    assert (LINES, []) == (minute.written(LINES), minute.timers)
    minute.pass_(60)
    assert (1, 1) == (minute.written(1), len(minute.reported))


def test_the_next_line_may_come_before_the_timer() -> None:
    """What was left out is said once, whichever thread is first."""
    minute = Minute()
    minute.written(LINES + 3)
    minute.now = 61.0
    minute.written(1)
    minute.pass_(0)

    assert [3] == [lines for *_, lines in minute.reported]


def test_kinds_do_not_count_for_each_other() -> None:
    """Another event, another cluster, another logger's line: each has a minute of its own."""
    minute = Minute()
    minute.written(LINES + 1)

    assert 1 == minute.written(1, "record_refused")
    assert 1 == minute.written(1, cluster="east")
    assert minute.limit.filter(of_a_library("Task exception was never retrieved", 7))


def test_a_librarys_kind_is_the_place_that_writes() -> None:
    """Its words may be others each time: asyncio names the socket that it cannot accept from."""
    minute = Minute()
    words = [f"socket.accept() out of system resource\nsocket: {number}" for number in range(LINES + 5)]
    written = [minute.limit.filter(of_a_library(each, 1744)) for each in words]
    minute.pass_(60)

    assert LINES == sum(written)
    assert [("asyncio", "socket.accept() out of system resource", 5)] == minute.reported


def test_lines_that_say_what_was_left_out_are_not_left_out() -> None:
    """There is one for each kind."""
    minute = Minute()

    assert 3 * LINES == minute.written(3 * LINES, log_limit.LEFT_OUT)


@pytest.fixture
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before


@pytest.mark.usefixtures("root_logger_as_before")
def test_the_log_is_so_limited(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours and a library's lines; what the process leaves out to its end is said at its end."""
    logging_setup.configure(log_format="json")
    for number in range(LINES + 7):
        logging_setup.get_logger("sink").warning("undecodable_record", partition=number)
        logging.getLogger("kafka.net").warning("connection %s lost", number)
    logging.getLogger().handlers[0].close()

    *written, ours, theirs = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert 2 * LINES == len(written)
    assert [("lines_left_out", "streaming.sink", "undecodable_record", 7)] == [
        (ours["event"], ours["of"], ours["kind"], ours["lines"])
    ]
    assert ("kafka.net", "connection %s lost", 7) == (theirs["of"], theirs["kind"], theirs["lines"])
