"""Who was away for longer than the log keeps tombstones reads no end of the groups that were deleted meanwhile.

The topic is really compacted, with a retention of seconds. The monitor must notice, and read the log from its
beginning; that nothing in the log shows the deleted group any more is seen to first.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from lab import builders
from tests.faults import compaction, results
from tests.faults.coordinator_log import Events, Log, Write
from tests.faults.disturbed import Disturbed
from tests.faults.results import Result
from tests.left_out import asked_for, needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    asked_for("FAULTS"),
    needs_kafka_jars,
]

START_MS: Final = 1_790_000_000_000


def born(group: str) -> Events:
    return [
        Write(0, START_MS, *builders.offset_commit(group, "t", 0, 5, timestamp=START_MS)),
        Write(0, START_MS, *builders.new_group_metadata(group, timestamp=START_MS)),
    ]


def deleted(group: str) -> Events:
    return [
        Write(0, START_MS + 1, *builders.offset_commit_tombstone(group, "t", 0)),
        Write(0, START_MS + 1, *builders.group_metadata_tombstone(group)),
    ]


def test_group_deleted_while_nobody_looked_is_no_ghost(servers: str, tmp_path: Path) -> None:
    """The state is read again, which is logged; what is in the log is shown, nothing else is; no event comes twice."""
    with ExitStack() as stack:
        log = Log(servers, "cleaned-log", settings=compaction.COMPACTED)
        disturbed = Disturbed(stack, tmp_path, log)
        monitor = disturbed.start()
        disturbed.await_ready(monitor)
        log.write(born("ghost"), born("survivor"))
        before = disturbed.await_reported()
        assert {"ghost", "survivor"} == before.groups.keys()
        # What is not noted yet is reported again by who reads all again, under the same ids.
        disturbed.await_noted()
        disturbed.end(monitor)

        log.write(deleted("ghost"))
        compaction.clean_away(log, "ghost")
        monitor = disturbed.start()
        disturbed.await_ready(monitor)

        assert {"survivor", *compaction.FILLERS} == monitor.groups().keys()
        (line,) = [line for line in monitor.error_lines() if "event=state_rebuilt" in line]
        assert "delete_retention_seconds=4" in line
        new = [of["group"] for of in monitor.events() if of["id"] not in before.events]
        assert {*compaction.FILLERS} == set(new)
        assert 1 == monitor.samples()["group_monitor_rebuilds_total"][(("cluster", "tested"),)]
        reported = disturbed.await_reported()
        assert not reported.twice
        assert "ghost" not in {of["group"] for name, of in reported.events.items() if name not in before.events}
        disturbed.end(monitor)
    results.save_if_asked(
        [
            Result(
                fault="away for longer than tombstones are kept",
                done="a group deleted while no monitor runs, and all its records cleaned away; the log is read again",
                times=1,
                records=sum(log.ends().values()),
                events=len(reported.events),
                lost=0,
                repeated=len(reported.twice),
                wrong=len(reported.contradicted),
            )
        ]
    )
