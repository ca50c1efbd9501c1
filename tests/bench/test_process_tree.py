"""What a tree of processes uses, however they end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.process_tree import Meter, ProcessTree, Ticks, ticks_between
from lab.monitor_process import until

BEFORE = {1: Ticks(0, 100, 40), 2: Ticks(1, 700, 5), 3: Ticks(2, 300, 0)}
"""A process, its child, and that one's."""


@pytest.mark.parametrize(
    ("after", "used"),
    [
        pytest.param(BEFORE, 0, id="nothing happened"),
        pytest.param({**BEFORE, 2: Ticks(1, 710, 8), 4: Ticks(2, 6, 0)}, 19, id="one works, has waited, and began one"),
        pytest.param({**BEFORE, 1: Ticks(0, 101, 44)}, 5, id="one that came and went"),
        pytest.param({1: Ticks(0, 100, 40), 2: Ticks(1, 700, 309)}, 4, id="one ended that is waited for"),
        pytest.param({1: Ticks(0, 100, 40), 2: Ticks(1, 703, 5)}, 3, id="one ended without a wait"),
        pytest.param({1: Ticks(0, 100, 1_052)}, 7, id="one ended after it had waited for its own"),
        pytest.param({1: Ticks(0, 100, 749)}, 4, id="one ended, its own without a wait"),
        pytest.param({1: Ticks(0, 102, 40)}, 2, id="two ended without a wait"),
    ],
)
def test_what_was_used_is_never_what_was_used_before(after: dict[int, Ticks], used: int) -> None:
    """A worker that ends when there is nothing to do takes nothing from what the others use, and adds nothing."""
    assert used == ticks_between(BEFORE, after)


def test_a_child_counts_after_its_end() -> None:
    """Its parent has waited for it."""
    meter = Meter(ProcessTree(os.getpid()))
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True, timeout=60)

    assert 0.2 <= meter.read()["cpu_seconds"] < 30


def test_a_child_that_nobody_waits_for_counts_but_for_its_last_moment() -> None:
    """Spark's daemon of workers ignores their ends, and Linux then forgets what they have used."""
    program = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    while time.process_time() < 1: pass\n"
        "    os._exit(0)\n"
        "input()\n"
    )
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], stdin=subprocess.PIPE, text=True
    ) as parent:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        meter = Meter(ProcessTree(parent.pid))
        until(lambda: children.read_text() != "", 10, "no child came")
        until(lambda: children.read_text() == "", 60, "the child did not end")
        used = meter.read()["cpu_seconds"]
        parent.communicate("\n")

    assert 0.5 <= used < 30
