"""Which rolls a span of time holds, and when to ask for each alone."""

from pathlib import Path
from typing import Any, Final

import pytest

from streaming.recording.file_format import open_recording
from streaming.reports.forms import text
from streaming.reports.rolled import of_records
from streaming.reports.rolls import rolls

RECORDING: Final = Path(__file__).resolve().parents[2] / "recordings" / "4.3.1" / "conversions.ndjson.gz"


def events(*steps: tuple[int, str], **detail: Any) -> list[dict[str, Any]]:
    """Of one group: when (seconds) and what; the detail is that of the last."""
    found: list[dict[str, Any]] = [{"time": second * 1_000, "kind": kind, "detail": {}} for second, kind in steps]
    found[-1]["detail"] = detail
    return found


LEFT: Final = "member_left"
UP: Final = (
    (10, "member_left"),
    (11, "member_joined"),
    (11, "upgrade_started"),
    (20, "member_left"),
    (20, "upgrade_completed"),
    (21, "member_joined"),
    (22, "rebalance_completed"),
)
DOWN: Final = (
    (40, "member_left"),
    (40, "rebalance_started"),
    (42, "downgrade_started"),
    (50, "downgrade_completed"),
    (51, "member_joined"),
)


def spans(*found: dict[str, Any]) -> list[tuple[str, float, float, str | None]]:
    return [(of["direction"], of["since"] / 1_000, of["until"] / 1_000, of["ended"]) for of in found]


def test_a_roll_begins_when_its_first_member_leaves_and_lasts_until_the_next_one_begins() -> None:
    """With a second around it, or half of the time to what was before: the last member's return is the roll's own."""
    both = rolls(events((9, "group_created"), *UP, *DOWN), 0, 60_000)

    assert [("upgrade", 9.5, 23.0, "completed"), ("downgrade", 39.0, 60.0, "completed")] == spans(*both)


def test_no_roll_begins_where_members_that_were_away_are_back() -> None:
    """That is of the same kind as that they went, and of a restart before."""
    before = events((30, "static_member_absent"), cleared=True)

    assert [("downgrade", 39.0, 60.0, "completed")] == spans(*rolls([*before, *events(*DOWN)], 0, 60_000))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (events((5, "member_left"), (6, "rebalance_completed")), []),
        (events(*UP[:3]), [("upgrade", 9.0, 60.0, None)]),
        (events(*UP[:3], (30, "downgrade_started"), turned_round=True), [
            ("upgrade", 9.0, 12.0, "turned_round"), ("downgrade", 29.0, 60.0, None),
        ]),
        (events(*UP, (30, "upgrade_started"), resumed=True), [("upgrade", 9.0, 60.0, None)]),
        (events((1, "member_left"), (1, "group_emptied"), (9, "upgrade_completed")), [
            ("upgrade", 0.5, 60.0, "completed"),
        ]),
        (events((1, LEFT), (2, "member_joined"), (5, LEFT), (8, LEFT), (9, "upgrade_started")), [
            ("upgrade", 4.0, 60.0, None),
        ]),
        (events((9, "rebalance_completed"), (9, "upgrade_started")), [("upgrade", 8.0, 60.0, None)]),
        (events((1, "member_left"), (700, "upgrade_started")), [("upgrade", 699.0, 60.0, None)]),
    ],
    ids=[
        "none", "not-over", "turned-round", "resumed", "offline", "two-at-a-time", "one-more-member",
        "left-long-before",
    ],
)  # fmt: skip
def test_rolls_that_are_not_plain(found: list[dict[str, Any]], expected: list[Any]) -> None:
    """One that goes on is not over; a member that left more than ten minutes before is none of the roll's."""
    assert expected == spans(*rolls(found, 0, 60_000))


@pytest.mark.parametrize("release", ["4.0.2", "4.1.1", "4.2.1", "4.3.1"])
def test_asked_for_alone_each_roll_of_a_recording_is_one(release: str) -> None:
    """Their figures add up to those of both, less what was before the first."""
    with open_recording(RECORDING.parents[1] / release / RECORDING.name) as recording:
        head, records = recording.header, list(recording)
    group = "upgraded-and-downgraded-member-by-member"

    both = of_records(head, records, group, 0)
    up, down = (of_records(head, records, group, each["since"], each["until"]) for each in both["rolls"])
    before = of_records(head, records, group, 0, both["rolls"][0]["since"])

    assert [{"upgrade": 1}, {"downgrade": 1}] == [up["conversions"], down["conversions"]]
    assert [1, 1] == [len(up["rolls"]), len(down["rolls"])]
    for figure in ("rebalances", "partitions_moved"):
        assert both[figure] == before[figure] + up[figure] + down[figure], figure
    assert "\nRolls in this time (the figures are of all: ask for one by its since and until)\n" in text(both)
    assert "\nThe roll in this time\n" in text(up)
