"""How a demo ended."""

import time
from dataclasses import dataclass
from pathlib import Path

from lab.monitor_process import CommandProcess


@dataclass(frozen=True)
class Ended:
    """A demo that is over: how, after what time, what it said, and what it left."""

    status: int
    seconds: float
    lines: list[str]
    error_lines: list[str]
    left: list[str]
    scratch: list[Path]


def ended(demo: CommandProcess, scratch: Path, begun: float, patience_seconds: float) -> Ended:
    """How it ended, once it has; `begun` is when the time to measure began, `scratch` where its files are."""
    status = demo.await_end(patience_seconds)
    return Ended(
        status=status,
        seconds=time.monotonic() - begun,
        lines=demo.output_lines(),
        error_lines=demo.error_lines(),
        left=demo.left_over(),
        scratch=list(scratch.glob("group-monitor-demo-*")),
    )
