"""Never wrong: a monitor that is killed, starved and cheated shows, counts and reports what an undisturbed one would.

One log, one story, played once in `reported`. While it is written the monitor is killed at stages of a micro-batch, its
workers are killed, its disk is full for a while. Then its checkpoint is damaged in several ways, and rebuilt. The
whole matrix, with its rounds, is `make faults`; what it found is in docs/faults.md.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import pytest

from lab.monitor_process import contents, until
from streaming.checkpoint.identity import REBUILD
from tests.faults import damage, results
from tests.faults.coordinator_log import Log, Writing, story
from tests.faults.disk import SmallDisk
from tests.faults.disturbed import Disturbed
from tests.faults.processes_of import kill_workers
from tests.faults.reported import REBUILT, Difference, Reported, reported_in
from tests.faults.results import Result
from tests.faults.trial import row
from tests.left_out import SMALL_DISK, needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(1800),
    needs_kafka_jars,
]

KILLED_AT: Final[tuple[str, ...]] = ("delivered:2",)
"""In this order; the other stages are `make faults`'."""

DAMAGES: Final = (damage.lose_checkpoint, damage.cut_offsets, damage.older_layout)
"""Those found out before Spark starts; as above."""

PATIENCE_SECONDS: Final = 600.0
"""More than it takes until a stream that stands still is started again, on a machine with other work to do."""

PER_SECOND: Final = 8.0
"""Slowly, so that something is left to arrive however long a micro-batch takes; what is left is written at once."""
NOTHING: Final = Difference(
    events_lost=(), events_added=(), events_changed=(), events_twice=(), groups=(), offsets=(), shards=()
)


@dataclass
class Seen:
    """What was seen while the story was played."""

    differences: dict[str, Difference] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    untouched: dict[str, bool] = field(default_factory=dict)
    reported: Reported = field(default_factory=Reported)
    disk_was_full: bool = False


@pytest.fixture(scope="module")
def seen(servers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    directory = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:
        log = Log(servers)
        disk = stack.enter_context(SmallDisk(directory / "monitor" / "state"))
        disturbed = Disturbed(stack, directory / "monitor", log)
        yield tell(log, disturbed, disk)


def tell(log: Log, disturbed: Disturbed, disk: SmallDisk) -> Seen:
    """From an empty log to a rebuilt monitor."""
    seen, events = Seen(), story()
    share = len(events) // (len(KILLED_AT) + 2)
    parts = [events[start : start + share] for start in range(0, len(events), share)]
    first, later = KILLED_AT[0], KILLED_AT[1:]
    monitor = disturbed.start(at=first)
    disturbed.await_ready(monitor)
    opening, delivered_last, *rest = parts.pop(0)
    # Each is of one group, so it is one micro-batch. When that of the second is read again, the log goes on behind it.
    log.write(opening)
    until(lambda: bool(reported_in(disturbed.reported_file).batches), PATIENCE_SECONDS, "no sink was given anything")
    log.write(delivered_last)
    disturbed.await_death(monitor)
    log.write(*rest)
    for stage in later:
        log.write(*parts.pop(0))
        disturbed.start_and_die(stage)
    monitor = disturbed.start()
    disturbed.await_ready(monitor)
    with Writing(log, parts.pop(0), PER_SECOND):
        kill_workers(monitor)
    if disk.is_mounted:
        disk.fill()
        with Writing(log, parts.pop(0), PER_SECOND):
            until(
                lambda: "event=disk_full" in "".join(monitor.error_lines()), PATIENCE_SECONDS, "no word of a full disk"
            )
        seen.disk_was_full = True
        disk.make_room()
    log.write(*[event for part in parts for event in part])
    seen.differences["killed"] = disturbed.difference(monitor)
    seen.lines["killed"] = monitor.error_lines()
    seen.reported = reported_in(disturbed.reported_file)
    disturbed.await_noted()
    disturbed.end(monitor)
    for break_it in DAMAGES:
        name = break_it.__name__
        with damage.done(disturbed.state, break_it):
            before = contents(disturbed.state)
            seen.refusals[name] = disturbed.refused()
            seen.untouched[name] = {**before, **damage.WRITTEN} == {**contents(disturbed.state), **damage.WRITTEN}
    damage.lose_checkpoint(disturbed.state)
    monitor = disturbed.start("--rebuild")
    seen.differences["rebuilt"] = disturbed.difference(monitor, compared=REBUILT)
    disturbed.end(monitor)
    write_down(seen, sum(log.ends().values()))
    return seen


def write_down(seen: Seen, records: int) -> None:
    """Rows of the page, if they are asked for."""

    def found(name: str, done: str, times: int, when: str) -> Result:
        return row(name, done, times, records, seen.reported, seen.differences[when], {})

    full_disk = [found("disk full", "the disk of the checkpoint full to the last byte for a while", 1, "killed")]
    results.save_if_asked(
        [
            found("killed after delivery", "`kill -9` of the driver between its sinks and Spark's note", 1, "killed"),
            found("workers killed at once", "`kill -9` of all Python workers of Spark", 1, "killed"),
            *(full_disk if seen.disk_was_full else []),
            found("checkpoint lost or cut", "lost, cut, of an older layout; refused, then `--rebuild`", 3, "rebuilt"),
        ]
    )


@pytest.mark.parametrize("when", ["killed", "rebuilt"])
def test_nothing_is_lost_repeated_or_changed(seen: Seen, when: str) -> None:
    """Every event once under its id, every group, offset and counter as a replay of the log in one piece has them."""
    assert NOTHING == seen.differences[when]


def test_it_was_disturbed(seen: Seen) -> None:
    """Several processes had a part in it, and batches came twice to the sinks: those whose end no one recorded."""
    assert len(KILLED_AT) <= len(seen.reported.processes)
    assert seen.reported.repeated >= 1
    assert len(seen.reported.events) > 900


def test_full_disk_is_reported_once_and_waited_for(seen: Seen) -> None:
    """The stream goes on on its own once there is room."""
    if not seen.disk_was_full:
        SMALL_DISK.skip()
    happened = [line.partition("event=")[2].split()[0] for line in seen.lines["killed"]]

    assert 1 == happened.count("disk_full") == happened.count("disk_has_room_again")


@pytest.mark.parametrize("name", [of.__name__ for of in DAMAGES])
def test_damage_is_reported_with_the_way_out(seen: Seen, name: str) -> None:
    """One line that names the option and `--rebuild`; and not a byte of what is left is changed."""
    assert seen.refusals[name].startswith("error: state.dir: found ")
    assert REBUILD in seen.refusals[name]
    assert seen.untouched[name]
