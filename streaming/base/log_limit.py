"""How much one thing may say in the log: so many lines of a kind a minute, then one with how many were left out.

What can be caused from outside, a record that does not decode or a connection that cannot be taken, would otherwise
write as many lines as somebody likes. Nothing that a command puts out on standard output goes this way.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

LINES: Final = 60
"""Of one kind in a minute: one a second, which no progress of a start exceeds."""

MINUTE_SECONDS: Final = 60.0

LEFT_OUT: Final = "lines_left_out"

_LONGEST_KIND: Final = 100
"""Characters of another library's line by which its kind is named."""

_Later = Callable[[float, Callable[[], object]], object]


@dataclass(slots=True)
class _Kind:
    """One kind's minute."""

    logger: str
    what: str
    began: float
    lines: int = 0

    @property
    def left_out(self) -> int:
        return max(0, self.lines - LINES)


class LineLimit(logging.Filter):
    """Lets the first lines of each kind through in any minute; a kind's minute begins with its first line.

    A kind is an event of one of our loggers, of one cluster; of another library, the place in its code that writes.

    Args:
        report: says how many lines were left out: the logger's name, the kind in words, how many.
        clock: seconds that only grow.
        later: calls a function after so many seconds, in a thread of its own.
    """

    def __init__(
        self,
        report: Callable[[str, str, int], object],
        clock: Callable[[], float] = time.monotonic,
        later: _Later | None = None,
    ) -> None:
        super().__init__()
        self._report = report
        self._clock = clock
        self._later = later or _call_later
        self._kinds: dict[Hashable, _Kind] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written."""
        of, what = _kind(record)
        if what == LEFT_OUT:
            return True
        now = self._clock()
        with self._lock:
            kind = self._kinds.get(of)
            over = None if kind is None or now - kind.began < MINUTE_SECONDS else self._kinds.pop(of)
            if kind is None or over is not None:
                kind = self._kinds[of] = _Kind(record.name, what, now)
            kind.lines += 1
            is_first_left_out = kind.left_out == 1
            is_left_out = kind.left_out > 0
        if over is not None:
            self._tell(over)
        if is_first_left_out:
            # Nothing more of this kind may come.
            self._later(kind.began + MINUTE_SECONDS - now, lambda: self._close(of, kind))
        return not is_left_out

    def close(self) -> None:
        """Say at once what was left out so far: nothing is written any more."""
        with self._lock:
            kinds, self._kinds = list(self._kinds.values()), {}
        for kind in kinds:
            self._tell(kind)

    def _close(self, of: Hashable, kind: _Kind) -> None:
        with self._lock:
            if self._kinds.get(of) is not kind:
                return
            del self._kinds[of]
        self._tell(kind)

    def _tell(self, kind: _Kind) -> None:
        if kind.left_out:
            self._report(kind.logger, kind.what, kind.left_out)


def _kind(record: logging.LogRecord) -> tuple[Hashable, str]:
    """What a line is one of, and that in words."""
    if isinstance(record.msg, dict):
        event = str(record.msg.get("event"))
        return (record.name, record.levelno, event, record.msg.get("cluster")), event
    # A library may make up another text for each line.
    what = str(record.msg).partition("\n")[0][:_LONGEST_KIND]
    return (record.name, record.levelno, record.pathname, record.lineno), what


def _call_later(seconds: float, call: Callable[[], object]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
