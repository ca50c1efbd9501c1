"""What a catch-up needed is given back to the machine when it is over."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streaming.base import gc_tuning
from streaming.base.places import ROOT
from streaming.base.resident_memory import resident_bytes
from streaming.spark.worker_daemon import CALM_SECONDS, GROWN_BYTES, TASKS_A_COLLECTION, SeldomCollector

PIECES = 100_000
PIECE_BYTES = 2_000
USUAL = 100 * 1024 * 1024


@contextmanager
def full_collections() -> Iterator[list[str]]:
    """Full collections of garbage meanwhile."""
    found: list[str] = []

    def note(phase: str, of: dict[str, Any]) -> None:
        if phase == "start" and of["generation"] == 2:
            found.append(phase)

    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)


def printed(program: str) -> str:
    """What a Python program prints, in a process of its own."""
    ran = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return ran.stdout


def test_what_is_free_between_what_stays_goes_back_to_the_machine() -> None:
    """Of memory let go but for one piece in fifty, most leaves the process."""
    held = [bytes(PIECE_BYTES) for _ in range(PIECES)]
    stays = held[::50]
    del held
    before = resident_bytes()

    gc_tuning.give_back()

    assert resident_bytes() < before - PIECES * PIECE_BYTES // 2
    assert PIECES // 50 == len(stays)


def test_what_a_thread_needed_goes_back_to_the_machine() -> None:
    """The C library keeps what is free at the end of a thread's own arena, so threads of ours have the main one."""
    program = (
        "import threading\n"
        "from streaming.base import gc_tuning, resident_memory\n"
        "gc_tuning.share_fairly()\n"
        "bytes(30_000_000)  # freed, it has the library keep twice as much at the end of each arena\n"
        "needed, free, given_back = (threading.Event() for _ in range(3))\n"
        "def need():\n"
        "    held = [bytes(30_000) for _ in range(1_500)]\n"
        "    needed.set()\n"
        "    free.wait()\n"
        "    held.clear()\n"
        "    needed.set()\n"
        "    given_back.wait()\n"
        "thread = threading.Thread(target=need)\n"
        "thread.start()\n"
        "needed.wait()\n"
        "before = resident_memory.resident_bytes()\n"
        "needed.clear()\n"
        "free.set()\n"
        "needed.wait()\n"
        "gc_tuning.give_back()\n"
        "print(resident_memory.resident_bytes() < before - 40_000_000)\n"
        "given_back.set()\n"
    )

    assert "True\n" == printed(program)


def test_a_worker_gives_back_once_tasks_that_need_much_are_over() -> None:
    """Each task that needs more puts it off; what is left then is usual, and not given back again."""
    waits: list[float] = []
    needed = USUAL + GROWN_BYTES
    growing = [needed + of * GROWN_BYTES for of in range(1, 20)]
    sizes = iter([USUAL, *growing, *growing[-1:] * 10, needed, *[needed + GROWN_BYTES] * 10])
    collector = SeldomCollector(lambda: next(sizes), waits.append)

    for _ in growing:
        collector.collect()
    assert [CALM_SECONDS] * len(growing) == waits
    with full_collections() as found:
        for _ in range(10):
            collector.collect()
        assert 0 == len(found)
        collector.give_back()
        assert 1 == len(found)
        for _ in range(10):
            collector.collect()
    assert len(growing) == len(waits)


def test_a_worker_that_does_not_grow_collects_seldom() -> None:
    """Of tasks like those before them, every hundredth ends with a collection."""
    collector = SeldomCollector(lambda: USUAL, lambda _: None)

    with full_collections() as found:
        for _ in range(TASKS_A_COLLECTION - 1):
            collector.collect()
        assert 0 == len(found)
        collector.collect()
        assert 1 == len(found)


def test_a_worker_that_waits_for_its_next_task_gives_back() -> None:
    """The daemon's workers are woken while they read from a socket on which nothing comes, and read on."""
    program = (
        "import os, socket, pyspark.daemon\n"
        "from streaming.base import resident_memory\n"
        "from streaming.spark import worker_daemon\n"
        "worker_daemon.CALM_SECONDS, worker_daemon.GROWN_BYTES = 0.1, 0\n"
        "given_back, note = os.pipe()\n"
        "give_back = worker_daemon.SeldomCollector.give_back\n"
        "def noted(*given):\n"
        "    give_back(*given)\n"
        "    os.write(note, b'1')\n"
        "worker_daemon.SeldomCollector.give_back = noted\n"
        "def worker():\n"
        "    ours, theirs = socket.socketpair()\n"
        "    if os.fork() == 0:\n"
        "        held = [bytes(2_000) for _ in range(100_000)]\n"
        "        stays = held[::50]\n"
        "        pyspark.daemon.gc.collect()\n"
        "        before = resident_memory.resident_bytes()\n"
        "        del held\n"
        "        theirs.recv(1)\n"
        "        print(resident_memory.resident_bytes() < before - 100_000_000, flush=True)\n"
        "        os._exit(0)\n"
        "    os.read(given_back, 1)\n"
        "    ours.send(b'1')\n"
        "    os.wait()\n"
        "pyspark.daemon.manager = worker\n"
        "worker_daemon.main()\n"
    )

    assert "True\n" == printed(program)


def test_a_daemon_has_imported_what_each_worker_would() -> None:
    """Before it forks the first one; and what it holds is exempt from collections, which would make copies of it."""
    program = (
        "import gc, sys, pyspark.daemon\n"
        "from streaming.base import resident_memory\n"
        "from streaming.spark import worker_daemon\n"
        "pyspark.daemon.manager = lambda: print({*worker_daemon.IN_EVERY_WORKER} <= {*sys.modules}, "
        "gc.get_freeze_count() > 10_000)\n"
        "worker_daemon.main()\n"
    )

    assert "True True\n" == printed(program)
