"""When a demo that was given a time ends, and with what."""

import re
import threading
import time
from collections.abc import Callable

import pytest

from streaming.base.errors import CheckFailed
from streaming.demo import run
from streaming.demo.run import TimeUp

NEVER = 10_000.0


def ended(
    missing: Callable[[], list[str]], *, seconds: float = 0.0, stopped: threading.Event | None = None
) -> tuple[TimeUp, list[str]]:
    """One that is over, and what it said."""
    said: list[str] = []
    stopped = stopped or threading.Event()
    time_up = TimeUp(seconds, time.monotonic(), missing, stopped, said.append)
    time_up.run()
    assert stopped.is_set()
    return time_up, said


def test_where_all_is_shown_it_ends_with_its_time() -> None:
    """Without a word; what is done in that moment and not shown yet is of no account."""
    answers = [[], ["upgrade"]]
    time_up, said = ended(lambda: answers.pop(0))
    time_up.judge()

    assert [] == said


def test_where_not_all_is_shown_it_goes_on_until_it_is() -> None:
    """It says so, once."""
    answers = [["downgrade"], ["downgrade"], []]
    time_up, (line,) = ended(lambda: answers.pop(0))
    time_up.judge()

    assert "not all is shown after 0 s: going on until it is, for 60 s at most" == line
    assert [] == answers


def test_it_does_not_go_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line at its end names what is missing, and what a slow machine needs."""
    monkeypatch.setattr(run, "LEAST_MORE_SECONDS", 0.0)
    time_up, said = ended(lambda: ["downgrade (done 0, seen 0)", "group g"])

    assert 1 == len(said)
    expected = "the demo did not show in 0 s: downgrade (done 0, seen 0); group g (a slow machine needs more than 0 s: "
    with pytest.raises(CheckFailed, match=re.escape(expected)):
        time_up.judge()


@pytest.mark.parametrize("shown", [True, False])
def test_who_stops_it_earlier_gets_what_is_so_then(shown: bool) -> None:
    """Ctrl-C, or the query's end."""
    stopped = threading.Event()
    stopped.set()
    time_up, said = ended(lambda: [] if shown else ["upgrade"], seconds=NEVER, stopped=stopped)

    assert [] == said
    if shown:
        time_up.judge()
    else:
        with pytest.raises(CheckFailed, match="upgrade"):
            time_up.judge()
