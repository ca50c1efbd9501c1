"""Epochs run one way (docs/coordinator-log.md): what no coordinator writes is reported, what only looks odd is not."""

from collections.abc import Iterable
from typing import Any

import pytest

from coordinator_model.replica import Replica
from lab.builders import (
    RecordBytes,
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_epoch_tombstone,
    consumer_group_member_subscription,
    consumer_group_partition_metadata,
    consumer_group_regular_expression,
    consumer_group_target_assignment_epoch,
    group_metadata,
    group_metadata_tombstone,
    member,
    new_group_metadata,
    share_group_epoch,
    share_group_member_subscription,
    streams_group_epoch,
    streams_group_member,
    streams_group_target_assignment_epoch,
)
from lab.coordinator_events import (
    consumer_gone,
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_classic,
    converted_to_consumer,
    share_join,
    static_goes_away,
    static_returns,
    streams_group_deleted,
    throttled_consumer_join,
)
from tests.histories import Moment, Reported, at, history, recorded

ONE_MEMBER = (at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),)
CLASSIC = (
    at(0, new_group_metadata("g")),
    at(1_000, group_metadata("g", generation=5, members=[member("a", {"t": [0, 1]})])),
)


def anomalies(reported: Reported) -> list[tuple[int, str, str | None, str, str]]:
    """(time, rule, member, expected, found) of every anomaly."""
    return [
        (of.time_ms, of.detail["rule"], of.detail["member_id"], of.detail["expected"], of.detail["found"])
        for of in reported.events
        if of.kind == "epoch_anomaly" and "cleared" not in of.detail
    ]


def after(before: Iterable[Moment], *records: RecordBytes) -> Reported:
    """One more event at 9 s."""
    return history(*before, at(9_000, *records)).replayed()


# -- record by record -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epoch", "also"), [(4, []), (9, []), (1, [("assignment_bound", "at most 1", "2")])])
def test_group_epoch_that_does_not_grow_by_one(epoch: int, also: list[tuple[str, str, str]]) -> None:
    """A jump on an uncleaned tail is records lost; a step back, a coordinator that did not know the last ones."""
    reported = after(ONE_MEMBER, consumer_group_epoch("g", epoch))

    expected = [(9_000, rule, None, wanted, found) for rule, wanted, found in also]
    assert [*expected, (9_000, "group_epoch", None, "3", str(epoch))] == anomalies(reported)
    assert {"warning"} == {event.severity for event in reported.events if event.kind == "epoch_anomaly"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((share_group_member_subscription("g", "s"), share_group_epoch("g", 2)), share_group_epoch("g", 4)),
        ((streams_group_member("g", "s"), streams_group_epoch("g", 2)), streams_group_epoch("g", 4)),
    ],
    ids=["share", "streams"],
)
def test_epochs_of_share_and_streams_groups_too(first: tuple[RecordBytes, ...], second: RecordBytes) -> None:
    """Types 11 and 17 go by the rule of type 3."""
    assert [(9_000, "group_epoch", None, "3", "4")] == anomalies(after([at(0, *first)], second))


def test_generation_that_goes_back() -> None:
    """Rounds may be lost and numbers skipped, never taken again."""
    reported = after(CLASSIC, group_metadata("g", generation=4, members=[member("a", {"t": [0, 1]})]))

    assert [(9_000, "generation", None, "at least 5", "4")] == anomalies(reported)


def test_assignment_epoch_that_goes_back() -> None:
    """Each target is for a later epoch than the one before."""
    reported = after(
        [*ONE_MEMBER, at(5_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}}, assigned={}))],
        consumer_group_target_assignment_epoch("g", 2),
    )

    assert (9_000, "assignment_epoch", None, "at least 3", "2") in anomalies(reported)


def test_member_epoch_that_goes_back() -> None:
    """A member's epoch is what it has reached; only a static one that closes leaves it."""
    reported = after(ONE_MEMBER, *consumer_moves("g", "a", epoch=1, assigned={"t": [0, 1]}))

    assert [(9_000, "member_epoch", "a", "at least 2", "1")] == anomalies(reported)


def test_upgrade_that_lowers_the_epoch_is_an_unclean_upgrade() -> None:
    """Online, the group epoch goes on from the generation; it is reported once, as what it is (`upgrade_unclean`)."""
    reported = after(
        CLASSIC,
        *converted_to_consumer("g", generation=1, members={"a": {"t": [0, 1]}}),
        *consumer_join("g", "n", epoch=2, targets={"n": {"t": [1]}, "a": {"t": [0]}}, assigned={}),
    )

    assert [] == anomalies(reported)
    assert [["epoch"]] == [detail["wrong"] for detail in reported.details("upgrade_unclean")]


def test_downgrade_that_lowers_the_epoch() -> None:
    """Online, the generation goes on from the group epoch."""
    reported = after(
        [*CLASSIC, *upgraded_at(5_000)],
        *converted_to_classic("g", all_members=["a", "n"], generation=1, remaining={"a": {"t": [0]}}),
    )

    assert [(9_000, "conversion_epoch", None, "at least 6", "1")] == anomalies(reported)


def test_epoch_of_a_conversion_goes_on_although_records_are_left_over() -> None:
    """What is left of the consumer group is no group: it ended with its epoch."""
    reported = after(
        [*CLASSIC, *upgraded_at(5_000)],
        *converted_to_classic("g", all_members=["a"], generation=1, remaining={"a": {"t": [0]}}),
    )

    assert (9_000, "conversion_epoch", None, "at least 6", "1") in anomalies(reported)


def test_group_begins_with_its_epoch_and_not_with_its_first_member() -> None:
    """No classic group becomes a streams group: with members in one step its epoch would have to go on."""
    reported = after(
        [at(0, group_metadata("g", generation=9, members=[member("a", {"t": [0]})]))],
        group_metadata_tombstone("g"),
        streams_group_member("g", "s"),
        streams_group_epoch("g", 2),
    )

    assert (9_000, "conversion_epoch", None, "at least 9", "2") in anomalies(reported)


def test_only_what_begins_next_is_compared_with_what_ended() -> None:
    """A share group beside the classic one is one fault, not two: the downgrade before it was in order."""
    reported = after(
        [*CLASSIC, *upgraded_at(5_000)],
        *converted_to_classic("g", all_members=["a", "n"], generation=6, remaining={"a": {"t": [0]}}),
        share_group_epoch("g", 3),
    )

    assert [(9_000, "one_kind", None, "classic", "share")] == anomalies(reported)


def upgraded_at(time_ms: int) -> list[Moment]:
    """The classic group's member and a consumer-protocol one."""
    joined = consumer_join("g", "n", epoch=6, targets={"n": {"t": [1]}, "a": {"t": [0]}}, assigned={})
    return [at(time_ms, *converted_to_consumer("g", generation=5, members={"a": {"t": [0, 1]}}), *joined)]


def test_two_events_of_one_millisecond_are_no_jump() -> None:
    """They are one step, in which the epoch grew twice by one."""
    reported = after(
        ONE_MEMBER,
        *throttled_consumer_join("g", "b", epoch=3, assignment_epoch=2),
        *throttled_consumer_join("g", "c", epoch=4, assignment_epoch=2),
    )

    assert [] == anomalies(reported)


def test_jump_within_a_step_of_many_events_is_one_event() -> None:
    """It is found between two records, wherever the step ends."""
    reported = after(
        ONE_MEMBER, consumer_group_epoch("g", 3), consumer_group_epoch("g", 5), consumer_group_epoch("g", 6)
    )

    assert [(9_000, "group_epoch", None, "4", "5")] == anomalies(reported)


# -- at the end of a step ---------------------------------------------------------------------------------------------


def test_assignment_epoch_beyond_the_group_epoch() -> None:
    """A target for an epoch that the group has not reached."""
    reported = after(ONE_MEMBER, consumer_group_target_assignment_epoch("g", 4))

    assert [(9_000, "assignment_bound", None, "at most 2", "4")] == anomalies(reported)


@pytest.mark.parametrize("epoch", [3, -1, -3])
def test_member_epoch_beyond_the_target(epoch: int) -> None:
    """A member reaches targets that are there; below zero there is only -2."""
    reported = after(
        ONE_MEMBER,
        consumer_group_member_subscription("g", "b"),
        consumer_group_current_assignment("g", "b", epoch=epoch, previous_epoch=0),
        consumer_group_epoch("g", 3),
    )

    assert [(9_000, "member_bound", "b", "-2 or 0 to 2", str(epoch))] == anomalies(reported)


def test_anomaly_that_lasts_is_reported_once() -> None:
    """It opens with the step that showed it, and again only if it went away in between."""
    reported = history(
        *ONE_MEMBER,
        at(1_000, consumer_group_target_assignment_epoch("g", 4)),
        at(2_000, consumer_group_member_subscription("g", "a", rack_id="r")),
        at(3_000, consumer_group_epoch("g", 3)),
        at(4_000, consumer_group_epoch("g", 4)),
        at(5_000, consumer_group_target_assignment_epoch("g", 6)),
    ).replayed()

    assert [(1_000, "at most 2"), (5_000, "at most 4")] == [(of[0], of[3]) for of in anomalies(reported)]


def test_classic_record_that_stays_under_a_consumer_group() -> None:
    """The upgrade forgot its tombstone: after a restart the broker would find two groups under one name."""
    reported = after(CLASSIC, *consumer_join("g", "n", epoch=6, targets={"n": {"t": [0]}}))

    assert [(9_000, "one_kind", None, "classic", "consumer")] == anomalies(reported)


def test_group_of_one_family_ousted_by_another() -> None:
    """A share group's records among those of a live consumer group."""
    reported = after(ONE_MEMBER, *share_join("g", "s", epoch=2, targets={"s": {"t": [0]}}))

    assert [(9_000, "one_kind", None, "consumer", "share")] == anomalies(reported)


# -- what must stay quiet ---------------------------------------------------------------------------------------------

LEGAL: dict[str, list[Moment]] = {
    "first epoch of a 4.3 broker": [*ONE_MEMBER],
    "first epoch up to 4.2": [at(0, *consumer_join("g", "a", epoch=1, targets={"a": {"t": [0]}}))],
    "empty group whose epoch stays ahead (KAFKA-20442)": [*ONE_MEMBER, at(1_000, *consumer_leave("g", "a", epoch=3))],
    "throttled joins": [
        *ONE_MEMBER,
        at(1_000, *throttled_consumer_join("g", "b", epoch=3, assignment_epoch=2)),
        at(1_500, *throttled_consumer_join("g", "c", epoch=4, assignment_epoch=2)),
        at(5_000, consumer_group_target_assignment_epoch("g", 4)),
    ],
    "member waiting for its expression to be resolved": [
        at(
            0,
            consumer_group_member_subscription("g", "a", topics=(), regex="rx-.*"),
            consumer_group_current_assignment("g", "a", epoch=1),
        ),
        at(50, consumer_group_regular_expression("g", "rx-.*", ["rx-a"]), consumer_group_epoch("g", 2)),
    ],
    "member at an older epoch": [
        *ONE_MEMBER,
        at(1_000, *consumer_join("g", "b", epoch=3, targets={"a": {"t": [0]}, "b": {"t": [1]}}, assigned={})),
        at(
            2_000,
            *consumer_moves("g", "a", epoch=2, assigned={"t": [0]}, pending={"t": [1]}, previous_epoch=2, state=1),
        ),
    ],
    "record written again": [
        *ONE_MEMBER,
        at(1_000, consumer_group_epoch("g", 2, metadata_hash=7)),
        at(2_000, *consumer_moves("g", "a", epoch=2, previous_epoch=2, assigned={"t": [0, 1]})),
    ],
    "static member away and back": [
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}, instance_id="i")),
        at(1_000, *static_goes_away("g", "a", assigned={"t": [0]}, previous_epoch=1)),
        at(2_000, *static_returns("g", old="a", new="b", instance_id="i", epoch=2, assigned={"t": [0]})),
    ],
    "generations lost": [
        *CLASSIC,
        at(2_000, group_metadata("g", generation=9, members=[member("a", {"t": [0, 1]}, instance_id="i")])),
        at(3_000, group_metadata("g", generation=9, members=[member("b", {"t": [0, 1]}, instance_id="i")])),
    ],
    "online there and back": [
        *CLASSIC,
        *upgraded_at(2_000),
        at(3_000, *converted_to_classic("g", all_members=["a", "n"], generation=6, remaining={"a": {"t": [0]}})),
        at(4_000, group_metadata("g", generation=7, members=[member("a", {"t": [0, 1]})])),
    ],
    "online upgrade in a later generation than was written": [
        *CLASSIC,
        at(
            2_000,
            *converted_to_consumer("g", generation=8, members={"a": {}}),
            *consumer_join("g", "n", epoch=9, targets={"n": {"t": [0, 1]}}),
        ),
    ],
    "online upgrade of a group that never completed a generation": [
        at(0, new_group_metadata("g")),
        at(
            1_000,
            *converted_to_consumer("g", generation=0, members={"a": {}}),
            *consumer_join("g", "n", epoch=1, targets={"n": {"t": [0, 1]}}),
        ),
    ],
    "offline there and back": [
        *CLASSIC,
        at(2_000, group_metadata("g", generation=6, members=[])),
        at(
            3_000,
            group_metadata_tombstone("g"),
            *consumer_join("g", "n", epoch=2, targets={"n": {"t": [0]}}),
        ),
        at(4_000, *consumer_leave("g", "n", epoch=3)),
        at(5_000, *consumer_group_deleted("g"), new_group_metadata("g")),
    ],
    "consumer group recreated": [
        *ONE_MEMBER,
        at(1_000, *consumer_leave("g", "a", epoch=3)),
        at(2_000, *consumer_group_deleted("g")),
        at(3_000, *consumer_join("g", "b", epoch=2, targets={"b": {"t": [0]}})),
    ],
    "streams group whose target comes from a timer, ended, and classic": [
        at(0, streams_group_member("g", "s"), streams_group_epoch("g", 2, validated_topology_epoch=0)),
        at(3_000, streams_group_target_assignment_epoch("g", 2)),
        at(4_000, *streams_group_deleted("g", ["s"]), new_group_metadata("g")),
    ],
}


@pytest.mark.parametrize("moments", LEGAL.values(), ids=LEGAL.keys())
def test_legal_history_is_no_anomaly(moments: list[Moment]) -> None:
    """What docs/coordinator-log.md, "Invariants", names as legal, whole and as any prefix of it."""
    for end in range(1, len(moments) + 1):
        assert [] == anomalies(history(*moments[:end]).replayed())


@pytest.mark.parametrize("moments", LEGAL.values(), ids=LEGAL.keys())
def test_legal_history_compacted_anywhere_is_no_anomaly(moments: list[Moment]) -> None:
    """A cleaned log may lack any record but the last of a key."""
    log = history(*moments)

    for before in range(len(log) + 1):
        assert [] == anomalies(log.compacted(before).replayed())


def test_recording_of_a_real_broker_is_no_anomaly() -> None:
    """Every kind of conversion and static member, written by Kafka 4.3.1; whole and compacted anywhere."""
    log = recorded()

    for before in range(0, len(log) + 1, 5):
        assert [] == anomalies(log.compacted(before).replayed())


# -- the live tail ----------------------------------------------------------------------------------------------------

JUMP = (*ONE_MEMBER, at(1_000, consumer_group_epoch("g", 7)))
BEYOND = (*ONE_MEMBER, at(1_000, consumer_group_target_assignment_epoch("g", 4)))


def test_jump_before_the_live_tail_is_never_reported() -> None:
    """Reading while the cleaner runs skips epochs (KAFKA-19862); what comes after goes on from there."""
    log = history(*JUMP, at(2_000, consumer_group_epoch("g", 8)))

    assert [] == anomalies(log.replayed(live_from=len(log) - 1))


def test_anomaly_that_lasts_into_the_live_tail_is_reported_there() -> None:
    """It was withheld while catching up, and is as real at the end of the log."""
    log = history(*BEYOND)
    replica = Replica(live_from=len(log))
    for record in log.records:
        replica.replay(record.place, record.key, record.value)
    replica.settle()

    assert replica.groups["g"].withheld
    assert ["epoch_anomaly"] == [event.kind for event in replica.judge("g")]
    assert [] == replica.judge("g")


@pytest.mark.parametrize("moments", [JUMP, BEYOND], ids=["jump", "beyond"])
def test_anomaly_is_the_same_wherever_the_log_is_cut(moments: tuple[Moment, ...]) -> None:
    """What neighbouring records showed is kept with the open step."""
    log = history(*moments, at(2_000, consumer_group_member_subscription("g", "a")))
    whole: list[Any] = log.replayed().event_texts()

    for position in range(len(log) + 1):
        assert whole == log.replayed_in_batches([position]).event_texts()


def test_group_of_which_only_counts_of_partitions_are_known_is_of_its_kind() -> None:
    """Up to 4.0 consumer groups have such a record: a share group's epoch beside it is a fault."""
    reported = history(
        at(0, consumer_group_partition_metadata("g", {"t": 2})), at(9_000, share_group_epoch("g", 3))
    ).replayed()

    assert [(9_000, "one_kind", None, "consumer", "share")] == anomalies(reported)


def test_group_of_the_name_of_one_that_left_a_record_starts_afresh() -> None:
    """What is left over of the former one is compared with nothing."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=9, targets={"a": {"t": [0]}})),
        at(1_000, *consumer_gone("g", "a"), consumer_group_epoch_tombstone("g")),
        at(2_000, consumer_group_target_assignment_epoch("g", 1), consumer_group_epoch("g", 1)),
    ).replayed()

    assert [] == anomalies(reported)
