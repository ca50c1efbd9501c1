"""One fault, tried: a log is written while it is done to a monitor of it, and what came of it is put in figures."""

import json
import random
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from lab.monitor_process import MonitorProcess
from streaming.demo.embedded_broker import EmbeddedBroker
from tests.faults.coordinator_log import Events, Log, Writing, story
from tests.faults.disturbed import Disturbed
from tests.faults.reported import REBUILT, WHOLLY, Comparison, Difference, Reported, reported_in
from tests.faults.results import Result
from tests.faults.three_brokers import ThreeBrokers

PER_SECOND = 10.0


@dataclass
class Trial:
    """What a fault is done with.

    Attributes:
        stack: ends what is started.
        directory: of this trial alone.
        log: what is written and read.
        disturbed: the monitors.
        monitor: the one that runs now.
        broker: the one there is, or the three.
        rounds: how often the fault is to be done.
        chance: seeded by the trial's name.
        figures: what is measured, by words that say what.
        times: how often the fault was done.
        live_from: by partition, the log's end when it began to be read; None for an empty log.
        compared: how what was reported is compared with what follows from the log.
    """

    stack: ExitStack
    directory: Path
    log: Log
    disturbed: Disturbed
    monitor: MonitorProcess
    broker: "Broker"
    rounds: int
    chance: random.Random
    events: list[Events]
    figures: dict[str, float] = field(default_factory=dict)
    times: int = 0
    live_from: dict[int, int] | None = None
    compared: Comparison = WHOLLY

    def writing(self, share: float, only: Collection[int] | None = None) -> Writing:
        """Go on writing this share of all events until left; `only` those of some partitions, the others later."""
        count = max(1, int(share * self.total))
        part, self.events = self.events[:count], self.events[count:]
        if only is not None:
            kept = [[of for of in event if of.partition not in only] for event in part]
            part = [[of for of in event if of.partition in only] for event in part]
            self.events[:0] = [event for event in kept if event]
        return Writing(self.log, [event for event in part if event], PER_SECOND)

    def worst(self, figure: str, value: float) -> None:
        """Keep the largest of a figure."""
        self.figures[figure] = round(max(value, self.figures.get(figure, 0.0)), 1)

    def restart(self, *arguments: str) -> None:
        """Start the next monitor and wait until it may be believed; how long that takes is measured."""
        begun = time.monotonic()
        if "--rebuild" in arguments and self.compared is WHOLLY:
            self.compared = REBUILT
        self.monitor = self.disturbed.start(*arguments)
        self.disturbed.await_ready(self.monitor)
        self.worst("longest time from start to ready, s", time.monotonic() - begun)

    @property
    def total(self) -> int:
        """How many events there are to write in all."""
        return self._total

    def __post_init__(self) -> None:
        self._total = len(self.events)


Fault = Callable[[Trial], None]
Broker = EmbeddedBroker | ThreeBrokers


def tried(
    name: str,
    fault: Fault,
    broker: Broker,
    directory: Path,
    rounds: int,
    *,
    options: Sequence[str] = (),
    placed: Sequence[Sequence[int]] | None = None,
    log_settings: Mapping[str, str] | None = None,
) -> Result:
    """Try one fault on a log of its own, with these settings, so placed; raises AssertionError where it stays away."""
    with ExitStack() as stack:
        replicas = 3 if isinstance(broker, ThreeBrokers) else 1
        log = Log(broker.bootstrap_servers, f"log-{name}", replicas=replicas, placed=placed, settings=log_settings)
        disturbed = Disturbed(stack, directory / name, log, *options)
        monitor = disturbed.start()
        disturbed.await_ready(monitor)
        trial = Trial(
            stack,
            directory / name,
            log,
            disturbed,
            monitor,
            broker,
            rounds,
            random.Random(name),
            story(60 * max(2, rounds)),
        )
        try:
            fault(trial)
            log.write(*trial.events)
            found = disturbed.difference(trial.monitor, trial.live_from, trial.compared)
        except AssertionError as error:
            error.add_note("\n".join(["the monitor said:", *trial.monitor.error_lines()[-20:]]))
            raise
        disturbed.end(trial.monitor)
        return result(name, (fault.__doc__ or "").strip(), trial, found)


def result(name: str, done: str, trial: Trial, found: Difference) -> Result:
    """A row of the page."""
    reported = reported_in(trial.disturbed.reported_file)
    if found:
        added = [reported.events[of] for of in found.events_added]
        changed = [reported.events[of] for of in found.events_changed[:3]]
        sys.stdout.write(f"{name}: {found}\nadded: {json.dumps(added)}\nchanged: {json.dumps(changed)}\n")
    if reported.repeated:
        trial.figures["batches that sinks were given again"] = reported.repeated
    records = sum(trial.log.ends().values())
    return row(name, done, trial.times, records, reported, found, trial.figures)


def row(
    name: str, done: str, times: int, records: int, reported: Reported, found: Difference, figures: dict[str, float]
) -> Result:
    """The same of what was seen elsewhere."""
    return Result(
        fault=name,
        done=done,
        times=times,
        records=records,
        events=len(reported.events),
        lost=len(found.events_lost) + len(found.groups) + len(found.offsets) + len(found.shards),
        repeated=len(found.events_twice) + len(found.events_added),
        wrong=len(found.events_changed),
        figures=figures,
    )
