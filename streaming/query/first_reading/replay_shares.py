"""A first catch-up in several processes: partitions of which there is no state yet are shared out among them.

At the tail of the log one stateful task costs least, and Python keeps one processor at a time busy; a first catch-up
would leave the others idle. What it replays needs nothing that the JVM has. So a task forks children. They and the task
take shares of the partitions by turns; a child answers once with what is to be written and passed on.

    rows of                           are replayed by
    partitions with state             the task: only it can ask for their state
    partitions without, a few rows    the task: a child costs more than it saves
    partitions without, many rows     the task and its children, each taking another share when it is done with one
"""

import os
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from streaming.base.child_processes import answered_by_children, may_fork, taken_by_turns
from streaming.base.even_shares import even_shares
from streaming.query.ledger import PartitionLedger, TaskLedger
from streaming.query.state_cache import StateStore
from streaming.query.state_pipelining import put_many

WORTH_SHARING: Final = 10_000
"""Rows of partitions without state; a process replays so many in a second or so."""

SHARES_A_PROCESS: Final = 16
"""Rows do not say how long they take, nor how much of its core a process gets: with one share for each of two processes
one waited for the other for a fifth of the time."""

MOST_PROCESSES: Final = 4
"""Of one task. Each holds the groups of some partitions at once, and its answer."""

Items = list[tuple[tuple[Any, ...], tuple[Any, ...]]]
"""(key, value) of a state variable."""


Replay = Callable[[StateStore, TaskLedger, pa.Table], Iterator[bytes]]
"""Replays rows on these entries of the state and this ledger; yields packed output."""


class Answer(NamedTuple):
    """What a child has made of its shares.

    Attributes:
        put_out: packed output.
        written: what is to be written, in the order of the variables of `StateStore`.
        partitions: what is remembered of each partition.
    """

    put_out: list[bytes]
    written: list[Items]
    partitions: dict[int, PartitionLedger]


def processes(tasks: int) -> int:
    """How many processes each of so many stateful tasks may have on this machine."""
    if not may_fork():
        return 1
    return max(1, min(MOST_PROCESSES, len(os.sched_getaffinity(0)) // tasks))


def shares_of(rows: pa.Table, known: Collection[int], most: int) -> list[pa.Table]:
    """Rows by partition and offset, as shares of whole partitions for at most so many processes.

    The first share has all rows of known partitions, and is the only one where sharing is not worth it.
    """
    if most == 1 or rows.num_rows < WORTH_SHARING:
        return [rows]
    of_log = rows["partition"].to_numpy()
    fresh = ~np.isin(of_log, list(known))
    partitions, sizes = np.unique(of_log[fresh], return_counts=True)
    if sizes.sum() < WORTH_SHARING:
        return [rows]
    shares = filter(None, even_shares(sizes.tolist(), [0] * (most * SHARES_A_PROCESS)))
    of_shares = (np.isin(of_log, partitions[share]) for share in shares)
    return [rows.filter(pa.array(mine)) for mine in (~fresh, *of_shares)]


def replayed(replay: Replay, state: StateStore, ledger: TaskLedger, rows: pa.Table, most: int) -> Iterator[bytes]:
    """What is put out of rows, replayed by this process and children of it, as many as are worth it and `most`."""
    own, *others = shares_of(rows, ledger.partitions, most)

    def answer(taken: Callable[[], Iterator[pa.Table]]) -> Answer:
        of_child, written = TaskLedger(), writes_only()
        put_out = [pack for share in taken() for pack in replay(written, of_child, share)]
        return Answer(put_out, what_is_written(written), of_child.partitions)

    children = min(most, len(others)) - 1
    with taken_by_turns(others) as taken, answered_by_children(answer, [taken] * children) as answers:
        for share in chain([own], taken()):
            yield from replay(state, ledger, share)
        for put_out, written, partitions in answers:
            for variable, items in zip(state, written, strict=True):
                put_many(variable, items)
            ledger.partitions |= partitions
            yield from put_out


class _Written:
    """A state variable of a child: what is written to it is kept, and nothing is asked of it."""

    def __init__(self) -> None:
        self.items: Items = []

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:  # noqa: N802 - as Spark's has it
        """Keep it."""
        self.items.append((key, value))


def writes_only() -> StateStore:
    """State variables of which there is nothing yet, for one child."""
    states: list[Any] = [_Written() for _ in StateStore._fields]
    return StateStore(*states)


def what_is_written(entries: StateStore) -> list[Items]:
    """What was written to `writes_only`."""
    states: list[Any] = list(entries)
    return [of.items for of in states]
