"""Two members for one partition: what must wake people, once, and what must not (docs/coordinator-log.md)."""

import pytest

from coordinator_model.kinds.table import sentence
from coordinator_model.replica import Replica
from coordinator_model.state.events import event_view
from lab.builders import (
    RecordBytes,
    consumer_group_member_subscription,
    group_metadata,
    group_metadata_tombstone,
    member,
    new_group_metadata,
    streams_group_current_assignment,
    streams_group_epoch,
    streams_group_member,
    topic_id,
)
from lab.coordinator_events import (
    consumer_gone,
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    consumer_moves,
    share_join,
    static_goes_away,
)
from tests.histories import PARTITION, History, Moment, Reported, at, history

TWO_MEMBERS = (
    at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
    at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={})),
)
B_TAKES_WHAT_A_HOLDS = at(2_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]}))
A_GIVES_UP = at(5_000, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0]}))
T1 = f"{topic_id('t')}/1"


def alarms(reported: Reported) -> list[tuple[int, str, dict[str, object]]]:
    """(time, kind, partitions) of what was reported of duplicates."""
    return [
        (event.time_ms, event.kind, dict(event.detail["partitions"]))
        for event in reported.events
        if event.kind.startswith("duplicate_")
    ]


# -- consumer groups --------------------------------------------------------------------------------------------------


def test_partition_of_two_consumer_members_opens_once_and_clears_once() -> None:
    """KAFKA-16147: a member was given a partition its former owner had not revoked."""
    reported = history(
        *TWO_MEMBERS,
        B_TAKES_WHAT_A_HOLDS,
        at(3_000, consumer_group_member_subscription("g", "b", client_id="noise")),
        at(4_000, consumer_group_member_subscription("g", "b", client_id="more noise")),
        A_GIVES_UP,
        at(6_000, consumer_group_member_subscription("g", "b", client_id="silence")),
    ).replayed()

    assert [
        (2_000, "duplicate_assignment", {T1: ("a", "b")}),
        (5_000, "duplicate_assignment_cleared", {T1: ("a", "b")}),
    ] == alarms(reported)
    assert {("g", "duplicate_assignment"): 1} == reported.alarms()
    assert {} == reported.states["g"].duplicates


def test_partition_yet_to_be_revoked_is_still_held() -> None:
    """Pending revocation is ownership: the former owner may still be processing."""
    reported = history(
        *TWO_MEMBERS,
        at(1_500, *consumer_moves("g", "a", epoch=2, state=1, assigned={"t": [0]}, pending={"t": [1]})),
        B_TAKES_WHAT_A_HOLDS,
    ).replayed()

    assert [(2_000, "duplicate_assignment", {T1: ("a", "b")})] == alarms(reported)
    assert {T1: ("a", "b")} == reported.states["g"].duplicates


def test_static_member_away_still_holds_its_partitions() -> None:
    """No one else may have them until it has expired."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [1]}}, instance_id="i")),
        at(1_000, *static_goes_away("g", "a", assigned={"t": [1]}, previous_epoch=2)),
        at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}})),
    ).replayed()

    assert [(2_000, "duplicate_assignment", {T1: ("a", "b")})] == alarms(reported)


def test_third_partition_is_a_new_alarm_and_the_old_ones_stay_open() -> None:
    """Each partition opens and clears for itself."""
    reported = history(
        *TWO_MEMBERS,
        B_TAKES_WHAT_A_HOLDS,
        at(3_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [0, 1]})),
        at(4_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [0]})),
    ).replayed()

    t0 = f"{topic_id('t')}/0"
    assert [
        (2_000, "duplicate_assignment", {T1: ("a", "b")}),
        (3_000, "duplicate_assignment", {t0: ("a", "b")}),
        (4_000, "duplicate_assignment_cleared", {T1: ("a", "b")}),
    ] == alarms(reported)


def test_duplicate_clears_when_a_holder_goes() -> None:
    """By leaving, or with the whole group."""
    left = history(*TWO_MEMBERS, B_TAKES_WHAT_A_HOLDS, at(6_000, *consumer_leave("g", "a", epoch=4))).replayed()
    gone = history(*TWO_MEMBERS, B_TAKES_WHAT_A_HOLDS, at(6_000, *consumer_group_deleted("g", ["a", "b"]))).replayed()

    assert (6_000, "duplicate_assignment_cleared", {T1: ("a", "b")}) == alarms(left)[-1]
    assert (6_000, "duplicate_assignment_cleared", {T1: ("a", "b")}) == alarms(gone)[-1]


def test_gaining_member_written_before_the_losing_one_is_no_duplicate() -> None:
    """Within one event order means nothing: it is judged at the event's end only."""
    reported = history(
        *TWO_MEMBERS,
        at(
            2_000,
            *consumer_moves("g", "b", epoch=3, assigned={"t": [1]}),
            *consumer_moves("g", "a", epoch=3, assigned={"t": [0]}),
        ),
    ).replayed()

    assert [] == alarms(reported)


def test_targets_that_overlap_are_no_duplicate() -> None:
    """A target is what will be: worth a warning, and no partition is held twice."""
    reported = history(
        *TWO_MEMBERS[:1], at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [0, 1]}}, assigned={}))
    ).replayed()

    assert [] == alarms(reported)
    assert {("g", "epoch_anomaly"): 1} == reported.alarms()


def test_member_replaced_in_one_event_is_no_duplicate() -> None:
    """Its partitions pass from its old id to its new one."""
    reported = history(
        *TWO_MEMBERS[:1],
        at(
            1_000,
            *consumer_join("g", "a2", epoch=3, targets={"a2": {"t": [0, 1]}}),
            *consumer_gone("g", "a"),
        ),
    ).replayed()

    assert [] == alarms(reported)


# -- classic groups ---------------------------------------------------------------------------------------------------


def _classic(generation: int, a: list[int], b: list[int], protocol: str = "sticky") -> RecordBytes:
    members = [member("a", {"t": a}), member("b", {"t": b})]
    return group_metadata("g", generation=generation, members=members, protocol=protocol)


def test_partition_assigned_twice_in_one_generation_of_a_classic_group() -> None:
    """KAFKA-7026: the old sticky assignor believed a member that came back with a claim of long ago."""
    reported = history(
        at(0, _classic(1, [0], [1])),
        at(1_000, _classic(2, [0, 1], [1])),
        at(2_000, _classic(3, [0, 1], [1])),
        at(3_000, _classic(4, [0], [1])),
    ).replayed()

    assert [
        (1_000, "duplicate_assignment", {"t/1": ("a", "b")}),
        (3_000, "duplicate_assignment_cleared", {"t/1": ("a", "b")}),
    ] == alarms(reported)


def test_groups_of_other_protocol_types_have_no_partitions_to_own_twice() -> None:
    """What connect workers get is not partitions."""
    members = [member("a", {"t": [0]}), member("b", {"t": [0]})]

    reported = history(at(0, group_metadata("g", generation=1, members=members, protocol_type="connect"))).replayed()

    assert {} == reported.alarms()


# -- share and streams groups -----------------------------------------------------------------------------------------


def test_members_of_a_share_group_share() -> None:
    """The same partition with two members is what a share group is for."""
    reported = history(
        at(0, *share_join("s", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
        at(1_000, *share_join("s", "b", epoch=3, targets={"b": {"t": [0, 1]}})),
    ).replayed()

    assert [] == alarms(reported)


def test_active_task_of_two_streams_members_is_a_duplicate() -> None:
    """Active tasks are exclusive; standby and warm-up tasks replicate by design."""
    reported = history(
        at(0, streams_group_epoch("g", 2), streams_group_member("g", "a"), streams_group_member("g", "b")),
        at(1_000, streams_group_current_assignment("g", "a", epoch=2, active={"sub": [0]}, standby={"sub": [1]})),
        at(2_000, streams_group_current_assignment("g", "b", epoch=2, active={"sub": [1]}, warmup={"sub": [0]})),
        at(3_000, streams_group_current_assignment("g", "b", epoch=2, active={"sub": [0, 1]})),
    ).replayed()

    assert [(3_000, "duplicate_assignment", {"sub/0": ("a", "b")})] == alarms(reported)
    (event,) = (event for event in reported.events if event.kind == "duplicate_assignment")
    assert "Owned twice: sub_0 by" in sentence(event_view(event))


def test_owners_are_named_with_client_and_host() -> None:
    """Who is woken by it has to find both processes."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [1]}})),
        at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}}, instance_id="b-1")),
    ).replayed()
    (event,) = (event for event in reported.events if event.kind == "duplicate_assignment")

    assert [("a", None), ("b", "b-1")] == [(of["member_id"], of["instance_id"]) for of in event.detail["members"]]
    for of in event.detail["members"]:
        assert f"of {of['client_id']} on {of['client_host']}" in sentence(event_view(event)) or (
            f"{of['client_id']} · a on {of['client_host']}" in sentence(event_view(event))
        )


# -- the live tail ----------------------------------------------------------------------------------------------------

PAST: tuple[Moment, ...] = (*TWO_MEMBERS, B_TAKES_WHAT_A_HOLDS)


def _end(*moments: Moment) -> int:
    return len(history(*moments))


def test_duplicate_before_the_live_tail_is_withheld() -> None:
    """A cleaned log, or one read while the cleaner runs, shows owners that never were at one time (KAFKA-19862)."""
    reported = history(*PAST).replayed(live_from=_end(*PAST))

    assert [] == alarms(reported)
    assert reported.states["g"].withheld


def test_withheld_duplicate_that_resolves_before_the_live_tail_is_never_reported() -> None:
    """It was an artefact, or is history."""
    whole = (*PAST, A_GIVES_UP)

    reported = history(*whole, at(9_000, consumer_group_member_subscription("g", "b"))).replayed(live_from=_end(*whole))

    assert [] == alarms(reported)
    assert not reported.states["g"].withheld


def test_duplicate_that_lasts_into_the_live_tail_is_reported_with_the_next_record() -> None:
    """The first step at or beyond the end as it was at the start judges the group."""
    next_step = at(9_000, consumer_group_member_subscription("g", "b"))

    reported = history(*PAST, next_step).replayed(live_from=_end(*PAST))

    assert [(9_000, "duplicate_assignment", {T1: ("a", "b")})] == alarms(reported)


def test_step_that_reaches_the_live_tail_counts_as_live() -> None:
    """Its last record decides."""
    log = history(*PAST)

    assert [(2_000, "duplicate_assignment", {T1: ("a", "b")})] == alarms(log.replayed(live_from=len(log) - 1))


def _caught_up(log: History) -> Replica:
    replica = Replica(live_from=len(log))
    for record in log.records:
        replica.replay(record.place, record.key, record.value)
    replica.settle()
    return replica


def test_group_that_writes_nothing_more_is_judged_when_asked() -> None:
    """The duplicate is as real if no one writes: it is reported of the record that showed it, at that record's time."""
    log = history(*PAST)
    replica = _caught_up(log)

    (event,) = replica.judge("g")

    assert ("duplicate_assignment", 2_000, len(log) - 1, PARTITION) == (
        event.kind,
        event.time_ms,
        event.offset,
        event.partition,
    )
    assert [] == replica.judge("g")


def test_groups_judged_together_are_distinguished() -> None:
    """Events of two groups never share an id, or one of them would be dropped as a repeat."""
    both = [
        at(
            0,
            *consumer_join(name, "a", epoch=2, targets={"a": {"t": [1]}}),
            *consumer_join(name, "b", epoch=3, targets={"b": {"t": [1]}}),
        )
        for name in ("g", "h")
    ]
    replica = _caught_up(history(*both))

    reported = [*replica.judge("g"), *replica.judge("h")]

    assert ["g", "h"] == [event.group for event in reported]
    assert 2 == len({event.id for event in reported})


def test_clearing_is_reported_although_the_monitor_was_away_meanwhile() -> None:
    """Reported before a restart and resolved before it caught up again: it must not stay open for ever."""
    opened = history(*PAST)
    log = history(*PAST, A_GIVES_UP)
    replica = Replica()
    for record in opened.records:
        replica.replay(record.place, record.key, record.value)
    replica.settle()
    restarted = Replica(live_from=len(log))
    restarted.groups["g"] = replica.groups["g"]
    for record in log.records[len(opened) :]:
        restarted.replay(record.place, record.key, record.value)
    restarted.settle()

    assert restarted.groups["g"].withheld
    assert ["duplicate_assignment_cleared"] == [event.kind for event in restarted.judge("g")]
    assert not restarted.groups["g"].withheld


@pytest.mark.parametrize("live_from", [0, 1_000_000])
def test_clean_group_is_never_withheld(live_from: int) -> None:
    """There is nothing to judge again."""
    ended = (new_group_metadata("g"), group_metadata_tombstone("g"))
    reported = history(at(0, *ended), *PAST[:1]).replayed(live_from=live_from)

    assert not reported.states["g"].withheld


def test_judging_a_group_that_is_clean_says_nothing() -> None:
    """Nor does asking after a unknown group make one."""
    replica = _caught_up(history(*TWO_MEMBERS))

    assert [] == replica.judge("g")
    assert [] == replica.judge("nobody")
    assert ["g"] == list(replica.groups)
