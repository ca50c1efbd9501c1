"""A clock that is set makes no one's rebalance overdue."""

import pytest
from structlog.testing import capture_logs

from streaming.watchers.clock_doubt import JUMP_MS, SETTLE_SECONDS, ClockJumps

NOW_MS = 1_790_000_000_000
DAY_MS = 86_400_000


class Clocks:
    """A wall clock and one that cannot be set, both by hand."""

    def __init__(self) -> None:
        self.wall_ms, self.elapsed = NOW_MS, 100.0
        self.jumps = ClockJumps(lambda: self.elapsed)

    def after(self, seconds: float, jump_ms: int = 0) -> bool:
        self.elapsed += seconds
        self.wall_ms += int(1000 * seconds) + jump_ms
        return self.jumps.settling(self.wall_ms)


@pytest.mark.parametrize("jump_ms", [DAY_MS, -DAY_MS, JUMP_MS + 1, -JUMP_MS - 1])
def test_after_a_jump_it_is_waited_once(jump_ms: int) -> None:
    """In either direction, said in one line; after a while the clock is believed as it is."""
    clocks = Clocks()
    with capture_logs() as lines:
        settling = [clocks.after(0), clocks.after(1), clocks.after(1, jump_ms), clocks.after(1)]
        later = [clocks.after(SETTLE_SECONDS - 2), clocks.after(1), clocks.after(1)]

    assert [False, False, True, True] == settling
    assert [True, False, False] == later
    assert [("clock_jumped", round(jump_ms / 1000))] == [(line["event"], line["seconds"]) for line in lines]


@pytest.mark.parametrize("seconds", [0.1, 1, 3_600])
def test_late_look_is_no_jump(seconds: float) -> None:
    """A machine that is busy, or stopped the process, let both clocks go on."""
    clocks = Clocks()

    assert [False, False, False] == [clocks.after(0), clocks.after(seconds), clocks.after(seconds, JUMP_MS - 10)]
