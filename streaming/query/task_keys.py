"""Grouping keys that lead each bundle of partitions to a stateful task of its own."""

from typing import Final

from pyspark.sql import SparkSession

_KEYS_TRIED: Final = 4_096
"""Numbers among which a key for every task is searched first; doubled until each has one. The lowest number that leads
to a task is its key, so a longer search finds no other one for a task that has one."""


_keys_by_tasks: Final[dict[int, tuple[int, ...]]] = {1: (0,)}
"""Found once in a process: they are the same in every session, and to find them is a job of Spark, which takes nearly a
second of a start. To one task every number leads."""


def bundle_keys(spark: SparkSession, tasks: int) -> tuple[int, ...]:
    """A grouping key for each of so many stateful tasks, in their order: one bundle a task, and no task without.

    Raises:
        ConnectionError: the JVM ended meanwhile; an answer that is cut short reads as one of no rows.
    """
    known = _keys_by_tasks.get(tasks)
    if known is not None:
        return known
    found: dict[int, int] = {}
    start, end = 0, _KEYS_TRIED
    while len(found) < tasks:
        rows = spark.sql(f"select transform(sequence({start}, {end - 1}), n -> pmod(hash(n), {tasks}))").collect()
        if not rows:
            raise ConnectionError("Spark answered nothing")
        for number, task in enumerate(rows[0][0], start):
            found.setdefault(task, number)
        start, end = end, 2 * end
    keys = _keys_by_tasks[tasks] = tuple(found[task] for task in range(tasks))
    return keys
