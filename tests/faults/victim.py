"""The command line with a fault in it: the real job, killed at one stage of one micro-batch as a machine kills.

Run as `python -m tests.faults.victim run …`; what happens is in the environment, and the job knows nothing of it.

    FAULT_AT      `STAGE` or `STAGE:N`: end by SIGKILL when the N-th batch of this process comes there (the first if not
                  said)
    FAULT_TOLD    file to which a sink of its own appends the rows of every batch, as something outside would keep them
    FAULT_BUILT   records of a log from which on a first reading makes only state of them (the job's own number)
    FAULT_STALL   seconds without a micro-batch after which a stream is started again (the job's own number)

A batch's way: Spark writes down what it is to read (planned), the replicas replay it and their state is committed
(replayed), the board shows it (shown), the other sinks have it (delivered), Spark writes down that it is done
(finished).
"""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from streaming.__main__ import main
from streaming.base.batch_rows import Row
from streaming.board import stall
from streaming.checkpoint import contents, resume_file
from streaming.monitor import query_supervisor
from streaming.query.foreach_batch import BatchSink, BatchWriter
from streaming.query.progress import Progress

AT: Final = "FAULT_AT"
REPORTED: Final = "FAULT_TOLD"
BUILT_FROM: Final = "FAULT_BUILT"
PATIENCE: Final = "FAULT_STALL"

STAGES: Final = {
    "resuming": "the board is being filled from the checkpoint",
    "planned": "Spark has written down what the batch is to read",
    "replayed": "the state of the batch is committed, no sink has its rows",
    "shown": "the board has its rows, no other sink",
    "delivered": "all sinks have its rows, Spark does not know it",
    "finished": "Spark has written down that it is finished",
}
"""Where a monitor can be killed → what has happened by then."""

_been: Final = Counter[str]()


def strike(stage: str) -> None:
    """End here if it is the time."""
    wanted, _, number = os.environ.get(AT, "").partition(":")
    _been[stage] += 1
    if stage == wanted and _been[stage] == int(number or 1):
        os.kill(os.getpid(), signal.SIGKILL)


class Strike:
    """A sink in whose place the monitor may end."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:
        strike(self._stage)


class Teller:
    """A sink that writes down what it was given: a line a batch, on the disk before it returns."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:
        written = [(*row[:3], row.payload.hex(), row.words) for row in rows]
        line = json.dumps({"process": os.getpid(), "batch": batch_id, "rows": written})
        with self._file.open("a", encoding="utf-8") as reported:
            # What a kill has torn before stays a line of its own.
            reported.write(f"\n{line}\n")
            reported.flush()
            os.fsync(reported.fileno())


class FaultyWriter(BatchWriter):
    """The job's, with a place to end between any two of its steps."""

    def __init__(self, sinks: Sequence[BatchSink], *arguments: Any, **further: Any) -> None:
        board, *others = sinks
        teller = [Teller(Path(os.environ[REPORTED]))] if REPORTED in os.environ else []
        faulty = [Strike("replayed"), board, Strike("shown"), *others, *teller, Strike("delivered")]
        super().__init__(faulty, *arguments, **further)

    def call(self, dataset: Any, batch_id: int) -> None:
        strike("planned")
        super().call(dataset, batch_id)


def arm() -> None:
    """Put the places to end into the job."""
    vars(resume_file)["BUILT_FROM"] = int(os.environ.get(BUILT_FROM, resume_file.BUILT_FROM))
    vars(query_supervisor)["BatchWriter"] = FaultyWriter
    vars(query_supervisor)["LEAST_SECONDS"] = float(os.environ.get(PATIENCE, stall.LEAST_SECONDS))
    stored_rows, on_progress = contents.stored_rows, query_supervisor.QuerySupervisor._on_progress

    def resuming(spark: SparkSession, checkpoint: str, batch: int | None = None) -> Iterator[Row]:
        for row in stored_rows(spark, checkpoint, batch):
            strike("resuming")
            yield row

    def finished(of_run: query_supervisor.QuerySupervisor, progress: Progress) -> None:
        strike("finished")
        on_progress(of_run, progress)

    contents.stored_rows = resuming
    query_supervisor.QuerySupervisor._on_progress = finished  # type: ignore[method-assign, assignment]  # a place to end before it


if __name__ == "__main__":
    arm()
    sys.exit(main())
