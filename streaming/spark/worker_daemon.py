"""Spark's daemon of Python workers, less what costs a short task more than its work.

Spark puts its own Python code as archives before everything else on its workers' path. What comes out of an archive is
compiled again in every worker, and with every task a worker reads the archive's directory again: 30 ms.
Where the same packages are installed beside us, they are taken instead.

After every task a worker collects garbage in full: 40 ms after a catch-up, when much is held that is none. Python's
collector runs on its own as objects come, so here that is done after many tasks, or some seconds after tasks that left
much behind. And it runs less often than by default, with which a fifth of a catch-up was its.
"""

import gc
import importlib.util
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from streaming.base import gc_tuning
from streaming.base.resident_memory import HARDLY_BYTES, resident_bytes

IN_EVERY_WORKER: Final = (
    "pandas",
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "streaming.query.source",
    "streaming.query.shard_task",
)
"""What each worker would import for itself: forked workers share what their daemon has imported. Ours are the modules
of what Spark hands to workers, the reader and the replay; they are named here as they are there."""

_ARCHIVES: Final = ("pyspark.zip", "-src.zip")
"""How the names of Spark's archives end: its own code, and py4j's."""

TASKS_A_COLLECTION: Final = 100

GROWN_BYTES: Final = 16 * 1024 * 1024
"""So much more than is usual was needed by a catch-up: it is given back."""

CALM_SECONDS: Final = 5.0
"""After the last task that needed more than the one before; not between those of a storm. Most of what a catch-up left
is with workers that get no task any more, until Spark ends them after a minute."""


class SeldomCollector:
    """In the place of the module `gc` in Spark's daemon: collects when asked for the hundredth time, or much is held.

    Args:
        resident_bytes: how much memory this process has.
        wake_after: have `give_back` called after so many seconds, instead of when it was to be called before.
    """

    def __init__(self, resident_bytes: Callable[[], int], wake_after: Callable[[float], object]) -> None:
        self._asked = 0
        self._resident_bytes = resident_bytes
        self._wake_after = wake_after
        self._usual = self._former = resident_bytes()

    def collect(self) -> None:
        """A task has ended."""
        self._asked += 1
        resident = self._resident_bytes()
        if resident > max(self._usual + GROWN_BYTES, self._former + HARDLY_BYTES):
            self._wake_after(CALM_SECONDS)
        self._former = resident
        if self._asked % TASKS_A_COLLECTION == 0:
            gc.collect()

    def give_back(self, *_: object) -> None:
        """Return what is free to the machine; as the handler of a signal, in a task or while one is waited for."""
        gc_tuning.give_back()
        self._usual = self._former = self._resident_bytes()


def without_archives(path: list[str]) -> list[str]:
    """The search path without Spark's archives."""
    return [entry for entry in path if not entry.endswith(_ARCHIVES)]


def main() -> None:
    """Be the daemon; `sys.argv[1]` is the module of its workers."""
    held = sys.path[:]
    sys.path[:] = without_archives(held)
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("py4j") is None:
        # Under spark-submit the archives may be all there is.
        sys.path[:] = held
    daemon: Any = importlib.import_module("pyspark.daemon")
    daemon.gc = collector = SeldomCollector(resident_bytes, partial(signal.setitimer, signal.ITIMER_REAL))
    signal.signal(signal.SIGALRM, collector.give_back)
    gc_tuning.collect_seldom()
    for name in IN_EVERY_WORKER:
        importlib.import_module(name)
    # A collection writes to every object it looks at, and what is written to is shared no longer.
    gc_tuning.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
