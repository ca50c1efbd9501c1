"""What is the same before and after a downgrade, compared: assignments and committed offsets (KIP-915, "Test Plan")."""

from itertools import groupby
from typing import Any

import pytest

from coordinator_model.replica import Replica
from coordinator_model.state.rule_memory import Downgrade
from lab.builders import (
    RecordBytes,
    consumer_group_current_assignment,
    consumer_group_target_assignment,
    group_metadata,
    member,
    new_group_metadata,
    offset_commit,
    offset_commit_tombstone,
)
from lab.coordinator_events import (
    Targets,
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_classic,
    converted_to_consumer,
    retarget,
    speaks_classic,
    static_returns,
)
from tests.histories import Moment, Reported, at, history

N_JOINS = at(0, *consumer_join("g", "n", epoch=2, targets={"n": {"t": [0, 1], "u": [0]}}))
COMMITS = at(100, offset_commit("g", "t", 0, 10), offset_commit("g", "t", 1, 20), offset_commit("g", "u", 0, 30))
C_JOINS = at(
    1_000,
    *consumer_join(
        "g",
        "c",
        epoch=3,
        targets={"c": {"t": [1], "u": [0]}, "n": {"t": [0]}},
        assigned={},
        classic=speaks_classic(["t", "u"]),
    ),
)
C_SETTLES = at(
    2_000,
    *consumer_moves("g", "n", epoch=3, previous_epoch=2, assigned={"t": [0]}),
    *consumer_moves("g", "c", epoch=3, assigned={"t": [1], "u": [0]}),
)
BEFORE = (N_JOINS, COMMITS, C_JOINS, C_SETTLES)


def n_leaves(remaining: Targets | None = None, *, time_ms: int = 3_000, **first: Any) -> Moment:
    """The last upgraded member leaves, and the group is classic with these assignments."""
    given = {"c": {"t": [1], "u": [0]}} if remaining is None else remaining
    records: list[RecordBytes] = list(first.get("records", ()))
    converted = converted_to_classic("g", all_members=["c", "n"], generation=4, remaining=given)
    return at(time_ms, *records, *converted)


NEXT_GENERATION = at(
    4_000, group_metadata("g", generation=5, members=[member("c", {"t": [0, 1], "u": [0]}, topics=["t", "u"])])
)


def completed(reported: Reported) -> dict[str, Any]:
    """The detail of the one downgrade."""
    (detail,) = reported.details("downgrade_completed")
    return detail


def compared(reported: Reported) -> tuple[bool, list[str], list[str]]:
    """Whether assignments were kept, who was not given its target, who had not reached it."""
    detail = completed(reported)
    return (
        detail["assignments_kept"],
        detail["members_not_given_their_target"],
        detail["members_not_at_their_target"],
    )


def remembered(reported: Reported) -> Downgrade:
    """What is remembered of the downgrade."""
    downgrade = reported.states["g"].migration.downgrade
    assert downgrade is not None
    return downgrade


# -- assignments ------------------------------------------------------------------------------------------------------


def test_members_that_stay_get_their_targets() -> None:
    """Topics are named there and ids here; the names are known from what was committed."""
    reported = history(*BEFORE, n_leaves()).replayed()

    assert (True, [], []) == compared(reported)
    assert (["n"], {}) == (completed(reported)["last_upgraded_members"], completed(reported)["leftover_records"])
    assert {("g", "downgrade_started"): 1} == reported.alarms()


def test_topics_that_nobody_committed_for_are_matched() -> None:
    """One name for one id throughout."""
    reported = history(N_JOINS, C_JOINS, C_SETTLES, n_leaves()).replayed()

    assert (True, [], []) == compared(reported)


@pytest.mark.parametrize(
    "given",
    [
        {"c": {"t": [1]}},
        {"c": {}},
        {"c": {"t": [0, 1], "u": [0]}},
        {"c": {"t": [1], "u": [1]}},
    ],
)
@pytest.mark.parametrize("names_known", [True, False])
def test_member_that_is_not_given_its_target_is_named(given: Targets, names_known: bool) -> None:
    """Whatever is missing, or too much, or of another topic; the names of topics being known or not."""
    moments = BEFORE if names_known else (N_JOINS, C_JOINS, C_SETTLES)
    reported = history(*moments, n_leaves(given)).replayed()

    assert (False, ["c"]) == compared(reported)[:2]
    assert ("c",) == remembered(reported).differing


def test_topics_that_change_places_are_seen_where_names_are_known() -> None:
    """By their form alone they are the same; of what no one knows nothing can be said."""
    swapped = n_leaves({"c": {"u": [1], "t": [0]}})

    assert (False, ["c"]) == compared(history(*BEFORE, swapped).replayed())[:2]
    assert (True, []) == compared(history(N_JOINS, C_JOINS, C_SETTLES, swapped).replayed())[:2]


def test_member_that_had_not_reached_its_target_is_named() -> None:
    """It gets at once what another had yet to give up: lawful, and no downgrade of the same assignment."""
    reported = history(N_JOINS, COMMITS, C_JOINS, n_leaves()).replayed()

    assert (True, [], ["c"]) == compared(reported)
    assert ("c",) == remembered(reported).unsettled


def test_partitions_yet_to_be_revoked_are_held() -> None:
    """A member that keeps more than its target has not reached it."""
    revoking = at(
        2_500,
        *retarget("g", 3, {"c": {"t": [1]}}),
        *consumer_moves("g", "c", epoch=3, state=1, assigned={"t": [1]}, pending={"u": [0]}),
    )
    reported = history(*BEFORE, revoking, n_leaves({"c": {"t": [1]}})).replayed()

    assert (True, [], ["c"]) == compared(reported)


def test_target_that_is_written_in_the_same_step_is_the_one_that_counts() -> None:
    """Two events of one millisecond are one step, in the middle of which a target was computed."""
    reported = history(
        *BEFORE,
        n_leaves(
            {"c": {"t": [0, 1], "u": [0]}},
            records=[consumer_group_target_assignment("g", "c", {"t": [0, 1], "u": [0]})],
        ),
    ).replayed()

    assert (True, []) == compared(reported)[:2]


def test_static_member_is_compared_with_the_one_it_replaces() -> None:
    """The last upgraded one comes back as a classic one, and so converts the group."""
    reported = history(
        at(0, *consumer_join("g", "n", epoch=5, targets={"n": {"t": [0]}}, instance_id="i")),
        at(
            1_000,
            *static_returns(
                "g", old="n", new="c", instance_id="i", epoch=5, assigned={"t": [0]}, classic=speaks_classic()
            ),
            *converted_to_classic(
                "g", all_members=["c"], generation=5, remaining={"c": {"t": [0]}}, instance_ids={"c": "i"}
            ),
        ),
    ).replayed()

    assert (True, [], []) == compared(reported)
    assert ["n"] == completed(reported)["last_upgraded_members"]


def test_member_that_nothing_is_known_of_is_not_judged() -> None:
    """It came in the step that converted the group, and left no target."""
    reported = history(*BEFORE, n_leaves({"c": {"t": [1], "u": [0]}, "new": {"t": [5]}})).replayed()

    assert (True, [], []) == compared(reported)


def test_member_without_a_target_gets_nothing() -> None:
    """It joined too soon after another for a target of its own."""
    reported = history(
        N_JOINS,
        at(
            1_000,
            *consumer_join("g", "c", epoch=3, targets={"c": {}}, classic=speaks_classic())[:2],
            consumer_group_current_assignment("g", "c", epoch=2),
        ),
        n_leaves({"c": {}}),
    ).replayed()

    assert (True, [], []) == compared(reported)


# -- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_that_stay_or_go_forward_are_kept() -> None:
    """Their number is reported with the downgrade."""
    reported = history(*BEFORE, at(2_500, offset_commit("g", "t", 0, 11)), n_leaves()).replayed()

    assert (3, {}) == (completed(reported)["offsets"], completed(reported)["offsets_back"])


def test_offsets_that_went_back_or_went_during_a_downgrade_are_reported() -> None:
    """From the first classic member on."""
    reported = history(
        *BEFORE, at(2_500, offset_commit("g", "t", 0, 7), offset_commit_tombstone("g", "u", 0)), n_leaves()
    ).replayed()

    assert (2, {"t/0": 10, "u/0": 30}) == (completed(reported)["offsets"], completed(reported)["offsets_back"])


def test_offsets_are_watched_to_the_first_generation_of_the_classic_group() -> None:
    """What a member does with them later is its own affair, as it was before."""
    during = history(*BEFORE, n_leaves(), at(3_500, offset_commit("g", "t", 0, 1)), NEXT_GENERATION).replayed()
    later = history(*BEFORE, n_leaves(), NEXT_GENERATION, at(5_000, offset_commit("g", "t", 0, 1))).replayed()
    before = history(
        N_JOINS, COMMITS, at(500, offset_commit("g", "t", 0, 1)), C_JOINS, C_SETTLES, n_leaves()
    ).replayed()

    assert {"t/0": 10} == remembered(during).offsets_back
    assert {} == remembered(later).offsets_back
    assert {} == remembered(before).offsets_back
    assert (True, False) == (
        remembered(history(*BEFORE, n_leaves()).replayed()).watching,
        remembered(later).watching,
    )


def test_offset_that_goes_right_after_the_conversion_counts_whether_or_not_that_step_is_closed() -> None:
    """A log read in one go, where nothing ends the step yet, shows what one read live shows."""
    log = history(
        N_JOINS,
        COMMITS,
        at(1_000, *consumer_leave("g", "n", epoch=3)),
        at(2_000, *consumer_group_deleted("g"), new_group_metadata("g")),
        at(2_500, offset_commit_tombstone("g", "u", 0)),
    )

    live = Replica()
    for _, event in groupby(log.records, key=lambda record: record.place.timestamp_ms):
        for record in event:
            live.replay(record.place, record.key, record.value)
        live.settle()

    assert {"u/0": 30} == remembered(log.replayed()).offsets_back
    assert live.groups["g"].migration == log.replayed().states["g"].migration


def test_offset_that_is_there_again_is_no_loss() -> None:
    """Committed at or beyond where it was, during the downgrade or later."""
    went_back = at(2_500, offset_commit("g", "t", 0, 7), offset_commit("g", "t", 1, 5))
    reported = history(
        *BEFORE, went_back, n_leaves(), NEXT_GENERATION, at(5_000, offset_commit("g", "t", 0, 10))
    ).replayed()

    assert {"t/1": 20} == remembered(reported).offsets_back


def test_offset_that_goes_back_twice_counts_from_where_it_was_first() -> None:
    """So it is there again only with that."""
    reported = history(
        *BEFORE,
        at(2_500, offset_commit("g", "t", 0, 7)),
        at(2_600, offset_commit("g", "t", 0, 8)),
        at(2_700, offset_commit("g", "t", 0, 3)),
        at(2_800, offset_commit("g", "t", 0, 9)),
        n_leaves(),
    ).replayed()

    assert {"t/0": 10} == completed(reported)["offsets_back"]


def test_offline_downgrade_tells_of_offsets_alone() -> None:
    """There is no one whose assignment could be compared."""
    reported = history(
        N_JOINS,
        COMMITS,
        at(1_000, *consumer_leave("g", "n", epoch=3)),
        at(2_000, *consumer_group_deleted("g"), new_group_metadata("g")),
    ).replayed()

    assert {
        "online": False,
        "members": 0,
        "last_upgraded_members": [],
        "leftover_records": {},
        "offsets": 3,
        "offsets_back": {},
    } == completed(reported)


# -- how long it is remembered ----------------------------------------------------------------------------------------


def test_nothing_is_remembered_of_a_downgrade_that_was_given_up() -> None:
    """The classic member left again, or the roll turned round."""
    given_up = history(*BEFORE, at(3_000, *consumer_leave("g", "c", epoch=4))).replayed()

    assert None is given_up.states["g"].migration.downgrade
    assert None is not history(*BEFORE).replayed().states["g"].migration.downgrade


def test_nothing_is_remembered_of_a_group_that_was_upgraded_again() -> None:
    """Nor of one that never was downgraded."""
    reported = history(
        *BEFORE,
        n_leaves(),
        NEXT_GENERATION,
        at(
            9_000,
            *converted_to_consumer("g", generation=5, members={"c": {"t": [0, 1], "u": [0]}}),
            *consumer_join("g", "n9", epoch=6, targets={"n9": {}, "c": {"t": [0, 1], "u": [0]}}),
        ),
    ).replayed()

    assert None is reported.states["g"].migration.downgrade
    assert None is history(N_JOINS).replayed().states["g"].migration.downgrade


@pytest.mark.parametrize("size", [1, 3, 8])
def test_comparison_is_the_same_whatever_the_batches(size: int) -> None:
    """What was before, and what went back since, survive a checkpoint at any record."""
    log = history(
        *BEFORE,
        at(2_500, offset_commit("g", "t", 0, 7)),
        n_leaves({"c": {}}),
        at(3_500, offset_commit("g", "t", 0, 12)),
        NEXT_GENERATION,
    )
    whole, pieces = log.replayed(), log.replayed_in_batches([size] * (len(log) // size))

    assert whole.event_texts() == pieces.event_texts()
    assert remembered(whole) == remembered(pieces)


def test_downgrade_is_shown_with_the_group() -> None:
    """From its beginning until the group is upgraded again; beside how often the group was converted."""
    went_back = at(2_500, offset_commit("g", "t", 0, 7))
    before = history(N_JOINS).replayed().view("g")["migration"]
    during = history(*BEFORE, went_back).replayed().view("g")["migration"]
    after = history(*BEFORE, went_back, n_leaves({"c": {}})).replayed().view("g")["migration"]

    assert (None, {"upgrade": 0, "downgrade": 0}) == (before["downgrade"], before["conversions"])
    assert (1_000, None, {"t/0": 10}) == tuple(
        during["downgrade"][key] for key in ("begun", "completed", "offsets_back")
    )
    assert {
        "begun": 1_000,
        "completed": 3_000,
        "members_not_given_their_target": ["c"],
        "members_not_at_their_target": [],
        "offsets_back": {"t/0": 10},
    } == after["downgrade"]
    assert ({"upgrade": 0, "downgrade": 1}, None) == (after["conversions"], after["members_before"])
