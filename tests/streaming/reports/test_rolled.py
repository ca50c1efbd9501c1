"""What events alone, and a chart of lag, show of a roll."""

from typing import Any, Final

import pytest

from coordinator_model.views.roll_cost import Cost
from lab.builders import (
    consumer_group_epoch,
    group_metadata,
    member,
    share_group_epoch,
    streams_group_epoch,
    topic_id,
)
from lab.coordinator_events import (
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_consumer,
    retarget,
    static_goes_away,
)
from streaming.recording.file_format import Header, RecordedRecord, RecordedTopic
from streaming.reports.forms import text
from streaming.reports.measure import NO_OWNERS, MeasuredGroup
from streaming.reports.rolled import EVENTS_ONLY, NO_LAG, add_lag, lag_added, of_events, of_records
from tests.histories import Moment, at, history


def event(time_ms: int, kind: str, severity: str = "info", *, inferred: bool = False, **detail: Any) -> dict[str, Any]:
    return {
        "id": str(time_ms), "time": time_ms, "group": "g", "kind": kind, "severity": severity, "partition": 0,
        "offset": time_ms, "detail": detail, "inferred": inferred,
    }  # fmt: skip


def test_events_tell_rebalances_moves_and_alarms_and_no_more() -> None:
    """Seconds without an owner are not among it: they are not invented."""
    report = of_events(
        [
            event(1, "rebalance_completed", partitions_moved=2, causes=["join"]),
            event(2, "rebalance_completed", partitions_moved=1, causes=["join", "leave"]),
            event(3, "upgrade_completed"),
            event(4, "rebalance_stuck", "critical"),
        ],
        "g",
        0,
        9,
    )

    assert (2, 3, {"join": 2, "leave": 1}) == (report["rebalances"], report["partitions_moved"], report["causes"])
    assert ({"upgrade": 1}, ["rebalance_stuck"]) == (report["conversions"], report["verdicts"])
    assert report["ownerless_seconds"] is None
    assert EVENTS_ONLY in report["unknown"]


@pytest.mark.parametrize(
    ("epoch_bumped", "known"),
    [(streams_group_epoch, False), (share_group_epoch, False), (consumer_group_epoch, True)],
)
def test_seconds_without_an_owner_are_not_known_of_groups_whose_partitions_have_none(
    epoch_bumped: Any, known: bool
) -> None:
    """Tasks and shared partitions are not followed: no 0 is shown for them."""
    header = Header(kafka_version="4.3.1", offsets_topic_partitions=50, topics=())
    records = [RecordedRecord(0, at, at, *epoch_bumped("g", epoch)) for at, epoch in ((1, 1), (5, 2))]

    report = of_records(header, records, "g", 2)

    assert known is (report["ownerless_seconds"] is not None)
    assert known is (NO_OWNERS not in report["unknown"])


@pytest.mark.parametrize(
    "silent",
    [
        event(1, "rebalance_stuck", "critical", cleared=True),
        event(1, "downgrade_started", "warning"),
        event(1, "static_member_absent", "warning"),
        event(1, "upgrade_unclean", "warning", inferred=True, wrong=["members"]),
        event(1, "member_left"),
    ],
    ids=lambda each: str(each["kind"]),
)
def test_what_a_roll_brings_with_it_is_no_alarm(silent: dict[str, Any]) -> None:
    """An alarm that ends, a downgrade that was asked for, a member that was stopped."""
    assert [] == of_events([silent], "g", 0, 9)["verdicts"]


@pytest.mark.parametrize(
    ("lag", "expected"),
    [
        ([5, 5, 40, 20, 5], {"records": 35, "gone_after_seconds": 2.5}),
        ([5, 5, 40, 20, 6], {"records": 35, "gone_after_seconds": None}),
        ([5, 5, 4, 3, 5], {"records": 0, "gone_after_seconds": None}),
        ([5, None, 40, None, 2], {"records": 35, "gone_after_seconds": 2.5}),
        ([None, 5, 40, 20, 5], None),
    ],
)
def test_lag_added_is_over_what_there_was_before(lag: list[int | None], expected: dict[str, Any] | None) -> None:
    """Until it is back there; not known where nothing is known from before."""
    times = [1_000, 2_000, 3_000, 4_000, 4_000]

    assert expected == lag_added(times, lag, 1_500, 9_000)


@pytest.mark.parametrize(("kind", "expected"), [("upgrade_started", 35), ("member_left", None)])
def test_lag_added_is_since_the_roll_began(kind: str, expected: int | None) -> None:
    """Nothing is known from before the span that was asked for, and enough from before the roll in it."""
    report = of_events([event(2_500, kind)], "g", 500, 9_000)

    add_lag(report, {"times": [1_000, 2_000, 3_000, 4_000], "lag": [5, 5, 40, 5]})

    assert expected == (report["lag_added"] or {}).get("records")
    assert (expected is None) == (NO_LAG in report["unknown"])


@pytest.mark.parametrize(("in_rebalances", "explained"), [(3, True), (6, False)])
def test_what_moved_outside_of_the_timeline_is_explained(in_rebalances: int, explained: bool) -> None:
    """Where a conversion cut a rebalance off; silent where the sum of the timeline is the total."""
    cost = Cost(since_ms=0, until_ms=9, partitions_moved=6, moved_in_rebalances=in_rebalances)

    notes = MeasuredGroup("g", []).notes(cost)

    said = f"of partitions moved, {in_rebalances} are those of the timeline's rebalances"
    assert explained == any(note.startswith(said) for note in notes)


# -- groups that the roll left without members, or without some -------------------------------------------------------

HEADER: Final = Header(
    kafka_version="4.3.1",
    offsets_topic_partitions=50,
    topics=(RecordedTopic(id=topic_id("t"), name="t", partitions=2),),
)
OTHER_MS: Final = 600_000
"""When another group is written of last, so that the log is known up to there."""


def logged(*moments: Moment) -> list[RecordedRecord]:
    """Records of a group, and ten minutes after the beginning one of another."""
    other = at(OTHER_MS, group_metadata("other", generation=1, members=[]))
    return [
        RecordedRecord(of.place.partition, of.place.offset, of.place.timestamp_ms, of.key, of.value)
        for of in history(*moments, other).records
    ]


HOLDS: Final = at(1_000, *consumer_join("g", "a", epoch=1, targets={"a": {"t": [0, 1]}}, instance_id="i"))
IS_GONE: Final = at(10_000, *consumer_leave("g", "a", epoch=2))
SAYS_SO: Final = at(9_000, *static_goes_away("g", "a", assigned={"t": [0, 1]}, previous_epoch=1))


def test_group_that_is_empty_since_has_no_owner_until_the_end_of_the_log() -> None:
    """And not for 0 s, up to its last record; the report says until when."""
    report = of_records(HEADER, logged(HOLDS, SAYS_SO, IS_GONE), "g", 5_000)

    assert (591.0, 1182.0) == tuple(report["ownerless_seconds"][name] for name in ("max", "total"))
    assert ["t/0", "t/1"] == report["ownerless_seconds"]["without_owner"]
    assert OTHER_MS == report["until"]
    assert any(note.startswith("without an owner at the end") and "t/0, t/1" in note for note in report["notes"])


def test_lag_added_of_a_group_that_is_empty_since_is_counted_to_the_end() -> None:
    """It grows while no member reads: what came after the group's last record counts, after the report's not."""
    report = of_records(HEADER, logged(HOLDS, IS_GONE), "g", 5_000)
    times = [1_000, 9_000, 300_000, OTHER_MS, OTHER_MS + 1_000]

    add_lag(report, {"times": times, "lag": [5, 6, 300, 705, 900]})

    assert {"records": 700, "gone_after_seconds": None} == report["lag_added"]
    assert NO_LAG not in report["unknown"]


def test_report_of_a_group_with_all_its_owners_ends_with_its_last_record() -> None:
    """What others write later is no part of it."""
    report = of_records(HEADER, logged(HOLDS), "g", 500)

    assert (1_000, []) == (report["until"], report["ownerless_seconds"]["without_owner"])
    assert [] == report["open_alarms"]


def test_open_alarms_are_listed_though_nothing_is_written() -> None:
    """A roll that lost a member, by the clock of the log."""
    roll = (
        at(0, group_metadata("g", generation=1, members=[member("c1", {}), member("c2", {})])),
        at(60_000, *converted_to_consumer("g", generation=1, members={"c1": {}, "c2": {}})),
        at(60_000, *consumer_join("g", "n1", epoch=2, targets={"n1": {}})),
        at(90_000, *consumer_leave("g", "c1", "c2", epoch=3)),
        at(91_000, *retarget("g", 3, {"n1": {}}), *consumer_moves("g", "n1", epoch=3, assigned={})),
    )
    report = of_records(HEADER, logged(*roll), "g", 0)

    assert ["members_not_back"] == report["open_alarms"]
    assert "members_not_back" in report["verdicts"]
    assert "open at the end" in text({**report, "rehearsal": None})


@pytest.mark.parametrize(
    ("said", "seconds", "shown"),
    [((SAYS_SO,), 11.0, "11.000"), ((), None, "not known")],
    ids=["said so", "killed"],
)
def test_static_member_that_was_killed_has_processed_nothing_for_a_time_that_is_not_known(
    said: tuple[Moment, ...], seconds: float | None, shown: str
) -> None:
    """Its process was gone before its session was; that it was back at once says nothing of that."""
    joins = consumer_join("g", "b", epoch=3, targets={"b": {"t": [0, 1]}}, instance_id="i")
    back = at(20_000 if said else 10_000, *joins)
    report = of_records(HEADER, logged(HOLDS, *said, IS_GONE, back), "g", 5_000)

    assert seconds == report["ownerless_seconds"]["max"]
    assert bool(said) is not any("processed nothing" in each for each in report["unknown"])
    assert f"longest without an owner (s)  {shown}" in text({**report, "rehearsal": None})


def test_of_a_running_monitor_what_began_and_did_not_end_is_open() -> None:
    """Alarms that were held back are not."""
    found = [
        event(1, "rebalance_storm", "warning"),
        event(2, "members_not_back", "warning"),
        event(3, "rebalance_storm", cleared=True),
        event(4, "group_unsettled", expected={}),
        event(5, "duplicate_assignment", "critical"),
        event(6, "duplicate_assignment_cleared"),
    ]

    assert ["members_not_back"] == of_events(found, "g", 0, 9)["open_alarms"]
