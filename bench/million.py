"""A million groups: all on one machine, and dealt out to the executors of a cluster, one after the other.

There is one machine. A monitor of a million groups runs on it as its users run it (`one_machine`). Of a cluster what
its executors do side by side is done here one after the other (`shares`): the log is dealt out to as many topics as
there are executors, each with its partitions and nothing else; the job's query reads them in turn, in one session, as
an executor of these cores would. What the driver does alone is done with what left all shares, in
a process of its own (`million_board`).

Left out is what only a network has: rows on their way between machines, and a checkpoint on a file system that all
executors reach.
"""

import gc
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from bench import log, truth
from bench.figures import Outcome
from bench.large import MIB, bytes_below, timed_page
from bench.process_tree import Meter, Peak, ProcessTree, Usage
from bench.query import Query, open_session
from bench.stage import Log, Monitored, Stage, note
from bench.steady import add_batches
from bench.writer import Trickle
from streaming.base.batch_rows import Row
from streaming.config.loading import Config
from streaming.query.row_codec import packed_output

SETTINGS: Final[Mapping[str, dict[str, Any]]] = {
    "spark": {"driver_memory": "4g", "trigger_interval_ms": 1_000},
    "source": {"tasks": 2, "max_offsets_per_trigger": 1_000_000},
    "metrics": {"partition_series": False},
    "end_offsets": {"interval_ms": 5_000, "history_points": 120},
    "events": {"window": 50_000},
}
"""What docs/scale.md advises for a million groups on one machine."""

_READY_SECONDS: Final = 1_200.0
_BOARD_SECONDS: Final = 900

_WARM: Final = 100
"""A log of this part of the groups warms a session."""


def one_machine(stage: Stage, size: dict[str, Any]) -> Outcome:
    """A monitor of `groups` groups: until ready, its first page, commits and scrapes for `seconds`, a restart.

    `rate` commits come a second, and a page is asked for every `scrape_seconds`, or when the one before has come.
    """
    outcome = Outcome(size)
    read = stage.log(log.Plan.of(size["groups"], rounds=size["rounds"]))
    monitor = stage.held(read) or _started(outcome, stage, read)
    offsets = monitor.options["metrics"]["partition_series"]
    outcome.add("groups", "groups", len(read.expected.groups))
    outcome.add("offsets", "offsets", read.expected.offsets)
    timed_page(outcome, "first_page", monitor)
    monitor.require(read, offsets=offsets)
    note("the first page is right")
    commits = read.commits(size["active"])
    with Trickle(stage.broker.bootstrap_servers, read.topic, commits, read.expected, size["rate"]):
        time.sleep(size["warm"])
        batches, meter = len(monitor.progress()), Meter(monitor.tree)
        until = time.monotonic() + size["seconds"]
        while (begun := time.monotonic()) < until:
            sent = timed_page(outcome, "page", monitor)
            time.sleep(max(0.0, begun + size["scrape_seconds"] - time.monotonic()))
        used = meter.read()
        add_batches(outcome, monitor.batches_since(batches), used)
        _add_memory(outcome, "pss_mib", monitor.tree.memory())
    outcome.add("state_mib", "MiB", bytes_below(Path(monitor.options["state"]["dir"])) / MIB)
    # As gzip says at its end, for less than 4 GiB: to unpack it for that takes half a minute.
    outcome.add("page_mib", "MiB", int.from_bytes(sent[-4:], "little") / MIB)
    for _ in range(size["restarts"]):
        monitor = _started_again(outcome, stage, monitor)
    monitor.require(read, offsets=offsets)
    return outcome


def _started(outcome: Outcome, stage: Stage, read: Log) -> Monitored:
    """A monitor that has read the log: seconds, processor time and memory until it is ready."""
    outcome.add("records", "records", read.expected.records)
    monitor = stage.start(stage.config(read, **SETTINGS))
    meter = Meter(monitor.tree)
    with Peak(monitor.tree) as peak:
        monitor.await_ready(_READY_SECONDS)
        outcome.add("ready_seconds", "s", time.monotonic() - monitor.started)
    _add_used(outcome, "ready", meter)
    _add_peak(outcome, "ready", peak)
    note(f"ready after {outcome.median('ready_seconds'):.1f} s")
    stage.hold(read, monitor)
    return monitor


def _started_again(outcome: Outcome, stage: Stage, monitor: Monitored) -> Monitored:
    """The same monitor ended and started on its state: seconds to /ready."""
    begun = time.monotonic()
    stage.stop()
    outcome.add("stop_seconds", "s", time.monotonic() - begun)
    monitor = stage.start(monitor.options)
    meter = Meter(monitor.tree)
    with Peak(monitor.tree) as peak:
        monitor.await_ready(_READY_SECONDS)
        outcome.add("restart_seconds", "s", time.monotonic() - monitor.started)
    _add_used(outcome, "restart", meter)
    _add_peak(outcome, "restart", peak)
    note(f"ready again after {outcome.median('restart_seconds'):.1f} s")
    return monitor


class _Kept:
    """A sink that keeps what leaves the stateful step, as the driver gets it."""

    def __init__(self) -> None:
        self.batches: list[Sequence[Row]] = []

    def apply(self, _batch_id: int, rows: Sequence[Row], _now_ms: int) -> None:
        """Keep them; nothing is done with them while somebody waits."""
        self.batches.append(rows)


def shares(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Catch up on `groups` groups dealt out to `shares` executors, share by share; then the driver with all of them."""
    outcome = Outcome(size)
    plan = log.Plan.of(size["groups"], rounds=size["rounds"])
    dealt = stage.shares(plan, size["shares"])
    directory = stage.directory / "shares"
    directory.mkdir()
    with open_session(Config.model_validate(stage.config(dealt[0]))) as spark:
        # So that the first one does not pay for what is loaded once.
        _caught_up(Outcome(size), stage, spark, stage.log(log.Plan.of(size["groups"] // _WARM, rounds=size["rounds"])))
        for number, share in enumerate(dealt):
            kept = _caught_up(outcome, stage, spark, share)
            packs = [packed_output(rows) for rows in kept.batches]
            outcome.add("share_rows_mib", "MiB", sum(map(len, packs)) / MIB)
            (directory / f"rows-{number:02d}").write_bytes(pickle.dumps(packs))
            (directory / f"truth-{number:02d}").write_bytes(pickle.dumps(share.expected))
            del kept, packs
    _add_driver(outcome, size, directory)
    return outcome


def _caught_up(outcome: Outcome, stage: Stage, spark: SparkSession, share: Log) -> _Kept:
    """One share read to its end, and what left it, which is compared when it is on the board of all shares."""
    config = Config.model_validate(stage.config(share))
    tree, kept = ProcessTree(os.getpid(), without=[stage.broker.pid or -1]), _Kept()
    gc.collect()
    with Query(config, spark, sinks=[kept]) as query:
        meter = Meter(tree)
        begun = time.monotonic()
        with query.caught_up():
            outcome.add("share_seconds", "s", query.seconds - begun)
            _add_used(outcome, "share", meter)
    note(f"share of {len(share.expected.groups)} groups: {outcome.figures['share_seconds'].values[-1]:.1f} s")
    outcome.add("share_groups", "groups", len(share.expected.groups))
    outcome.add("share_records", "records", share.expected.records)
    outcome.add("share_state_mib", "MiB", bytes_below(Path(config.state.dir)) / MIB)
    return kept


def _add_driver(outcome: Outcome, size: Mapping[str, Any], directory: Path) -> None:
    """What the driver does with all shares, and the catch-up of the whole that follows."""
    reported = subprocess.run(  # noqa: S603 - our own module
        [
            sys.executable,
            "-m",
            "bench.million_board",
            str(directory),
            *(str(size[name]) for name in ("groups", "rounds", "active", "batches")),
        ],
        capture_output=True,
        text=True,
        timeout=_BOARD_SECONDS,
        check=False,
    )
    if reported.returncode != 0:
        raise truth.WrongResult(f"the board of all shares: {reported.stderr.strip()[-1_000:]}")
    for name, (unit, values) in json.loads(reported.stdout).items():
        outcome.add(name, unit, *values)
    # An executor's time has the way of its own rows to a board in it; the driver has to take those of all the others.
    taken = outcome.figures["driver_share_seconds"].values
    others = [sum(taken) - own for own in taken]
    composed = [of + more for of, more in zip(outcome.figures["share_seconds"].values, others, strict=True)]
    outcome.add("composed_catch_up_seconds", "s", max(composed))


def _add_used(outcome: Outcome, figure: str, meter: Meter) -> None:
    used = meter.read()
    outcome.add(f"{figure}_cpu_seconds", "s", used["cpu_seconds"])
    outcome.add(f"{figure}_others_share", "1", used["others_share"])


def _add_memory(outcome: Outcome, figure: str, usage: Sequence[Usage]) -> None:
    outcome.add(figure, "MiB", sum(each.pss_bytes for each in usage) / MIB)
    for name in dict.fromkeys(each.name for each in usage):
        outcome.add(f"{figure} of {name}", "MiB", sum(each.pss_bytes for each in usage if each.name == name) / MIB)


def _add_peak(outcome: Outcome, figure: str, peak: Peak) -> None:
    outcome.add(f"{figure}_peak_mib", "MiB", peak.pss_bytes / MIB)
    for name, size in peak.by_name.items():
        outcome.add(f"{figure}_peak_mib of {name}", "MiB", size / MIB)
