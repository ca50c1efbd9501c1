"""Killed while it catches up on a log so long that only state is made of it: nothing is lost, repeated or wrong.

The log is there before the monitor, which reads it in several micro-batches and is killed in the first of them. The
number of records from which on a log is reduced is lowered, and all else is as it is. What went by before the start is
not reported; how things are, and all that happens after it, is what a replay of every record says.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pytest

from coordinator_model.state.offsets import OffsetBucket
from streaming.checkpoint import resume_file
from tests.faults import results, victim
from tests.faults.coordinator_log import Answer, Log, story
from tests.faults.disturbed import Disturbed
from tests.faults.reported import WITH_GAPS, Difference, Reported, reported_in
from tests.faults.trial import row
from tests.left_out import asked_for, needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(1200),
    asked_for("FAULTS"),
    needs_kafka_jars,
]

KILLED_AT: Final = ("delivered",)
"""Of each run, a stage of its first micro-batch: its state is kept, sinks have its rows, and all of it comes again."""
RECORDS_A_BATCH: Final = 1_500
OF_OFFSETS: Final = {"offset_rewound", "offset_deleted", "topic_recreated"}


@dataclass
class Seen:
    """What came of it.

    Attributes:
        live_from: by partition of the log, where it ended when the monitor was first started.
        built_until: what the state directory says of that.
        answer: of a replay of all records.
    """

    live_from: dict[int, int]
    built_until: Mapping[int, int]
    reported: Reported
    answer: Answer
    difference: Difference

    def after_start(self, events: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Events of offsets that a record from after the start shows."""
        return {
            name: of
            for name, of in events.items()
            if of["kind"] in OF_OFFSETS and of["offset"] >= self.live_from[of["partition"]]
        }


@pytest.fixture(scope="module")
def seen(servers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with ExitStack() as stack:
        log = Log(servers, "log-of-a-catch-up")
        settings = f"source.max_offsets_per_trigger={RECORDS_A_BATCH}"
        environment = {victim.BUILT_FROM: "1"}
        directory = tmp_path_factory.mktemp("catch-up")
        disturbed = Disturbed(stack, directory, log, settings, environment=environment)
        events = story(60)
        before, after = events[: len(events) * 4 // 5], events[len(events) * 4 // 5 :]
        log.write(*before)
        live_from = log.ends()
        for stage in KILLED_AT:
            disturbed.start_and_die(stage)
        monitor = disturbed.start()
        disturbed.await_ready(monitor)
        left = resume_file.load(disturbed.state)
        log.write(*after)
        found = disturbed.difference(monitor, live_from, WITH_GAPS)
        reported = reported_in(disturbed.reported_file)
        disturbed.end(monitor)
        done = "`kill -9` of the driver while it catches up on a log of which only state is made"
        records = sum(log.ends().values())
        results.save_if_asked([row("killed while catching up", done, len(KILLED_AT), records, reported, found, {})])
        built_until: Mapping[int, int] = {} if left is None else left.built_until
        yield Seen(live_from, built_until, reported, log.undisturbed(live_from), found)


def test_state_and_alarms_are_those_of_every_record(seen: Seen) -> None:
    """Groups, members and committed offsets; no alarm that those records do not raise, no event twice."""
    assert not seen.difference
    assert not seen.reported.contradicted


def test_all_that_was_committed_is_counted(seen: Seen) -> None:
    """Records by partition, commits by bucket; but of groups that ended, of which an end may not be seen."""
    ended = {of["group"] for of in seen.answer.events.values() if of["kind"] == "group_deleted"}

    def commits(offsets: dict[tuple[str, str, int], OffsetBucket]) -> dict[tuple[str, str, int], int]:
        return {at: of.commits for at, of in offsets.items() if at[0] in seen.answer.groups and at[0] not in ended}

    totals = {
        partition: {name: of for name, of in totals.items() if name != "last_offset"}
        for partition, totals in seen.reported.shards.items()
    }
    assert commits(seen.answer.offsets) == commits(seen.reported.offsets)
    assert len(commits(seen.answer.offsets)) > 20
    assert seen.answer.shards == totals


def test_what_offsets_do_after_the_start_is_reported(seen: Seen) -> None:
    """Whatever the micro-batches that were killed and came again had made of the offsets before."""
    expected = seen.after_start(seen.answer.events)

    assert len(expected) > 20
    assert expected.keys() == seen.after_start(seen.reported.events).keys()


def test_the_log_was_reduced_and_the_monitor_killed(seen: Seen) -> None:
    """Of groups that began before the start none is reported as new."""
    new = [of for of in seen.reported.events.values() if of["kind"] == "group_created"]

    assert seen.live_from == seen.built_until
    assert sum(seen.live_from.values()) > RECORDS_A_BATCH
    assert not [of for of in new if of["group"].startswith("commits-")]
    assert seen.reported.repeated > 0
