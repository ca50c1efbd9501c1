"""Times that records carry are of brokers' clocks, and a clock may be set, or wrong for a while.

    a time before the one it is counted from            no time has passed, and never less than none
    a time ahead of now in a window of the latest       not of the latest
    the group's next step is earlier than its last      the clock was wrong before or is now: a rebalance it fell into
                                                        has no known duration
    a rebalance of more than a week                     as above: no coordinator waits for so long

A rebalance whose duration is not known is counted and reported without one.
"""

from __future__ import annotations

from typing import Final

SLACK_MS: Final = 60_000
"""Brokers whose clocks are so far apart are called synchronous, and a coordinator may move from one to another."""

LONGEST_REBALANCE_MS: Final = 7 * 86_400_000


def elapsed_ms(since_ms: int, until_ms: int) -> int:
    """How long it was; never negative."""
    return max(0, until_ms - since_ms)


def within(window_ms: int, time_ms: int, now_ms: int) -> bool:
    """Whether a time is of the latest `window_ms`; one well ahead of now is not."""
    return abs(now_ms - time_ms) <= window_ms


def went_back(former_ms: int, time_ms: int) -> bool:
    """Whether a time that was written later is earlier than two brokers may disagree; -1 is no time."""
    return former_ms >= 0 and time_ms < former_ms - SLACK_MS


def rebalance_ms(since_ms: int, until_ms: int, *, jumped: bool) -> int | None:
    """How long a rebalance took; None where the clock jumped in between."""
    taken_ms = elapsed_ms(since_ms, until_ms)
    return None if jumped or taken_ms > LONGEST_REBALANCE_MS else taken_ms
