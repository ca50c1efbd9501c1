"""Spark's daemon of Python workers, without the archives in front of the packages.

Spark puts its own Python code as archives before everything else on its workers' path. What comes out of an archive is
compiled again in every worker, and with every task a worker reads the archive's directory anew: 30 ms of processor time
a task, when a task of ours is at work for ten. Where the same packages are installed beside us, they are taken instead.
"""

import importlib.util
import sys
from typing import Final

_ARCHIVES: Final = ("pyspark.zip", "-src.zip")
"""How the names of Spark's archives end: its own code, and that of py4j."""


def without_archives(path: list[str]) -> list[str]:
    """The search path without Spark's archives."""
    return [entry for entry in path if not entry.endswith(_ARCHIVES)]


def main() -> None:
    """Be the daemon; `sys.argv[1]` is the module of its workers."""
    held = sys.path[:]
    sys.path[:] = without_archives(held)
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("py4j") is None:
        # On machines of a cluster the archives may be all there is.
        sys.path[:] = held
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
