"""What events alone, and a chart of lag, show of a roll."""

from typing import Any

import pytest

from coordinator_model.views.roll_cost import Cost
from streaming.recording.file_format import Header, RecordedRecord
from streaming.reports.measure import NO_OWNERS, MeasuredGroup
from streaming.reports.rolled import EVENTS_ONLY, NO_LAG, add_lag, lag_added, of_events, of_records
from tests.builders import consumer_group_epoch, share_group_epoch, streams_group_epoch


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
