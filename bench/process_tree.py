"""What a process and all below it use: processor time and memory, as Linux counts them in /proc.

Workers of Spark come and go. When one ends, Linux adds its processor time to that of the parent that waits for it; if
no parent waits, as Spark's daemon of workers does not, only what was seen of it before its end is counted (`Meter`).
Memory of forked workers is shared: the proportional share (PSS) of all processes adds up to what the machine has less,
the resident size (RSS) does not.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CPUS: Final = os.cpu_count() or 1
_LOOK_SECONDS: Final = 1.0
_TICKS_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one process, in bytes."""

    name: str
    rss_bytes: int
    pss_bytes: int


class Ticks(NamedTuple):
    """Processor time of a process so far, in clock ticks: its own, and that of ended ones which it has waited for."""

    parent: int
    own: int
    waited: int

    @property
    def total(self) -> int:
        """Both."""
        return self.own + self.waited


class ProcessTree:
    """A process and everything it started, but for branches that are not to count."""

    def __init__(self, root: int, without: Collection[int] = ()) -> None:
        """Look at `root` and below, leaving out the processes `without` and what is below them."""
        self._root = root
        self._without = set(without)

    def ticks(self) -> dict[int, Ticks]:
        """Process id → processor time so far."""
        found = {}
        for pid in self.pids():
            with suppress(OSError):
                stat = _stat(pid)
                user, system, waited_user, waited_system = map(int, stat[11:15])
                found[pid] = Ticks(int(stat[1]), user + system, waited_user + waited_system)
        return found

    def memory(self) -> list[Usage]:
        """What each process has in memory now, the largest first."""
        found = []
        for pid in self.pids():
            with suppress(OSError):
                sizes = _sizes(pid)
                found.append(Usage(_name(pid), sizes.get("Rss", 0), sizes.get("Pss", 0)))
        return sorted(found, key=lambda usage: -usage.pss_bytes)

    def pss_bytes(self) -> int:
        """What all of them have in memory now."""
        return sum(each.pss_bytes for each in self.memory())

    def pids(self) -> list[int]:
        """The processes there are."""
        children = defaultdict(list)
        for entry in _PROC.glob("[0-9]*"):
            # One that ends while it is looked at is no longer of interest.
            with suppress(OSError):
                children[int(_stat(int(entry.name))[1])].append(int(entry.name))
        return list(self._below(self._root, children))

    def _below(self, pid: int, children: dict[int, list[int]]) -> Iterator[int]:
        if pid not in self._without:
            yield pid
            for child in children.get(pid, ()):
                yield from self._below(child, children)


class Meter:
    """Wall time and processor time from its making on: of a tree, and of everything else on the machine.

    A thread reads the counters of all processes four times a second, until `read`. Of a process that its parent never
    waits for, at most the last quarter of a second is missing.
    """

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._used = 0
        self._wall, self._ticks, self._busy = time.monotonic(), tree.ticks(), _busy_seconds()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="meter", daemon=True)
        self._thread.start()

    def read(self) -> dict[str, float]:
        """`wall_seconds`, `cpu_seconds`, and `others_share`: processor time of others as a share of the machine's.

        To be called once; it ends the looking.
        """
        self._over.set()
        self._thread.join()
        self._look()
        wall = time.monotonic() - self._wall
        cpu = self._used / _TICKS
        others = max(0.0, _busy_seconds() - self._busy - cpu)
        return {"wall_seconds": wall, "cpu_seconds": cpu, "others_share": others / max(wall * _CPUS, 1e-9)}

    def _watch(self) -> None:
        while not self._over.wait(_TICKS_SECONDS):
            self._look()

    def _look(self) -> None:
        now = self._tree.ticks()
        self._used += ticks_between(self._ticks, now)
        self._ticks = now


def ticks_between(before: Mapping[int, Ticks], after: Mapping[int, Ticks]) -> int:
    """Clock ticks that a tree used from one moment to another.

    The parent that waited for an ended process has all of its ticks, those from before the first moment too: these are
    left out. If no parent waited, the ticks since the first moment are lost.
    """
    used = sum(now.own - (before[pid].own if pid in before else 0) for pid, now in after.items())
    waited = {pid: now.waited - (before[pid].waited if pid in before else 0) for pid, now in after.items()}
    for pid in sorted(before.keys() - after.keys(), key=lambda pid: before[pid].total, reverse=True):
        heir = before[pid].parent
        while heir in before and heir not in after:
            heir = before[heir].parent
        if waited.get(heir, 0) >= before[pid].total:
            waited[heir] -= before[pid].total
    return used + sum(waited.values())


class Peak:
    """The most memory that a tree has at once, while this is entered: looked at once a second.

    Attributes:
        pss_bytes: of all its processes together.
        by_name: of each by name, at its own worst moment.
    """

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak", daemon=True)
        self.pss_bytes = 0
        self.by_name: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        now: dict[str, int] = defaultdict(int)
        for usage in self._tree.memory():
            now[usage.name] += usage.pss_bytes
        self.pss_bytes = max(self.pss_bytes, sum(now.values()))
        for name, size in now.items():
            self.by_name[name] = max(size, self.by_name.get(name, 0))


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on: the second, a name in brackets, may hold anything."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _name(pid: int) -> str:
    """What a process is to us."""
    words = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    if Path(words[0]).name == "java":
        return "Spark (JVM)"
    if any(word.startswith("pyspark.") for word in words):
        return "Spark's Python workers"
    if "streaming" in words or any(word.endswith("group-monitor") for word in words):
        return "monitor (Python)"
    return Path(words[0]).name or "?"


def _sizes(pid: int) -> dict[str, int]:
    lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
    return {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}


def _busy_seconds() -> float:
    """Processor time of the whole machine but for what it waited or was idle."""
    words = (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, words)
    return (user + nice + system + irq + softirq) / _TICKS
