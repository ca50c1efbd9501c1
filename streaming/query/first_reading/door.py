"""The one way into this room.

    who asks                          for
    the source, of a first reading    records without those that say nothing of the state
    who starts the query              how many processes a task may have
    a task with partitions that       its rows replayed by several processes
    have no state yet                 offsets of groups made of whole columns, and the rest of the rows
                                      the replica of a partition some of whose state is made so

What needs the model is loaded when it is asked for: a process that plans does without.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from streaming.query.first_reading.last_records import without_history

if TYPE_CHECKING:
    import pyarrow as pa

    from coordinator_model.first_reading import FirstReading
    from streaming.query.first_reading.commit_seeds import Seed, Seeds
    from streaming.query.first_reading.replay_shares import Replay
    from streaming.query.ledger import TaskLedger
    from streaming.query.state_cache import StateStore

__all__ = ["Seeds", "processes", "replayed", "replica_of", "seeds_of", "without_history"]


def processes(tasks: int) -> int:
    """How many processes each of so many stateful tasks may have on this machine."""
    from streaming.query.first_reading import replay_shares

    return replay_shares.processes(tasks)


def replayed(
    replay: "Replay", state: "StateStore", ledger: "TaskLedger", rows: "pa.Table", most: int
) -> Iterator[bytes]:
    """What is put out of rows, replayed by this process and children of it, as many as are worth it and `most`."""
    from streaming.query.first_reading import replay_shares

    return replay_shares.replayed(replay, state, ledger, rows, most)


def seeds_of(rows: "pa.Table", known: Collection[int]) -> "tuple[Seeds, pa.Table]":
    """Offsets that follow from whole columns, and the rows that are still to be replayed.

    Args:
        rows: of `row_codec.unpacked_table`.
        known: partitions of the log of which there is something already; all their rows are left.
    """
    from streaming.query.first_reading import commit_seeds

    return commit_seeds.seeds_of(rows, known)


def replica_of(
    partition: int,
    seeds: "Mapping[str, Seed]",
    below: Collection[int],
    *arguments: Any,  # noqa: ANN401 - the replica's
    **settings: Any,  # noqa: ANN401 - likewise
) -> "FirstReading":
    """The replica of a partition, with groups that are seeded, and of records at some offsets state alone is made.

    Further arguments are those of `Replica`.
    """
    from coordinator_model.first_reading import FirstReading

    replica = FirstReading(*arguments, below=below, **settings)
    for name, seed in seeds.items():
        replica.seed(name, partition, seed.buckets, seed.topic_ids, records=seed.records)
    return replica
