"""Share groups (KIP-932; docs/coordinator-log.md): members share, nothing is revoked, and states are two."""

import pytest

from lab.builders import (
    share_group_current_assignment,
    share_group_epoch,
    share_group_member_subscription,
    share_group_state_partition_metadata,
    share_group_state_partition_metadata_tombstone,
    share_group_target_assignment,
    share_group_target_assignment_epoch,
)
from lab.coordinator_events import share_group_deleted, share_join, share_leave
from tests.histories import at, history

FIRST = at(
    0,
    *share_join("s", "a", epoch=2, targets={"a": {}}),
    share_group_state_partition_metadata("s", initializing={"t": [0, 1]}),
)
INITIALIZED = at(100, share_group_state_partition_metadata("s", initialized={"t": [0, 1]}))
ASSIGNED = at(
    5_000,
    share_group_epoch("s", 3),
    share_group_target_assignment("s", "a", {"t": [0, 1]}),
    share_group_target_assignment_epoch("s", 3),
    share_group_current_assignment("s", "a", epoch=3, previous_epoch=2, assigned={"t": [0, 1]}),
)
SECOND = at(9_000, *share_join("s", "b", epoch=4, targets={"b": {"t": [0, 1]}}))


def test_share_group_is_stable_as_soon_as_it_has_members() -> None:
    """Only Empty and Stable are states; partitions come once their delivery state is initialized."""
    reported = history(FIRST).replayed()

    assert ("share", "Stable 2/2") == (reported.view("s")["type"], reported.status("s"))
    assert {"a": {}} == reported.owners("s")
    assert {0: ["group_created", "member_joined", "rebalance_started", "rebalance_completed"]} == reported.kinds()


def test_initialized_partitions_are_assigned_with_the_next_epoch() -> None:
    """The state of partitions says nothing on its own; the epoch after it is a rebalance."""
    reported = history(FIRST, INITIALIZED, ASSIGNED).replayed()

    assert 100 not in reported.kinds()
    assert ["rebalance_started", "rebalance_completed"] == reported.kinds()[5_000]
    assert {
        "member_id": "a",
        "instance_id": None,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "protocol": "consumer",
        "epoch": 3,
        "state": "Stable",
        "assigned": {"t": [0, 1]},
        "pending_revocation": {},
        "target": {"t": [0, 1]},
        "rack_id": None,
        "subscribed_topics": ["t"],
    } == reported.member("s", "a")


def test_topics_are_shown_with_how_far_their_delivery_state_is() -> None:
    """Initializing, initialized and being deleted, by topic name; nothing once the record is gone."""
    moments = [
        at(0, share_group_state_partition_metadata("s", initializing={"t": [0, 1], "u": [0]})),
        at(1, share_group_state_partition_metadata("s", initializing={"u": [0]}, initialized={"t": [0, 1]})),
        at(2, share_group_state_partition_metadata("s", initialized={"t": [0, 1]}, deleting=["u"])),
        at(3, share_group_epoch("s", 2), share_group_state_partition_metadata_tombstone("s")),
    ]

    assert [
        {"initializing": {"t": [0, 1], "u": [0]}, "initialized": {}, "deleting": []},
        {"initializing": {"u": [0]}, "initialized": {"t": [0, 1]}, "deleting": []},
        {"initializing": {}, "initialized": {"t": [0, 1]}, "deleting": ["u"]},
        {"initializing": {}, "initialized": {}, "deleting": []},
    ] == [history(*moments[: read + 1]).replayed().view("s")["delivery_state"] for read in range(len(moments))]


def test_second_member_shares_the_firsts_partitions() -> None:
    """Targets and assignments overlap by design; the group is Stable though members stand at different epochs."""
    reported = history(FIRST, INITIALIZED, ASSIGNED, SECOND).replayed()

    assert {"a": {"t": [0, 1]}, "b": {"t": [0, 1]}} == reported.owners("s")
    assert "Stable 4/4" == reported.status("s")
    assert ["member_joined", "rebalance_started"] == reported.kinds()[9_000]
    assert {} == reported.alarms()


def test_rebalance_ends_when_every_member_has_the_new_epoch() -> None:
    """Members follow at their own heartbeat."""
    reported = history(
        FIRST, INITIALIZED, ASSIGNED, SECOND, at(9_800, share_group_current_assignment("s", "a", epoch=4))
    ).replayed()

    assert ["rebalance_completed"] == reported.kinds()[9_800]
    assert 800 == reported.details("rebalance_completed")[-1]["duration_ms"]


def test_share_group_empties_and_is_deleted() -> None:
    """Deletion of the delivery state is a batch of its own; a group of tombstones is no group."""
    reported = history(
        FIRST,
        at(10_000, *share_leave("s", "a", epoch=3)),
        at(20_000, share_group_state_partition_metadata("s", deleting=["t"])),
        at(20_050, *share_group_deleted("s")),
    ).replayed()

    assert "Empty 3/2" == history(FIRST, at(10_000, *share_leave("s", "a", epoch=3))).replayed().status("s")
    assert {10_000: ["member_left", "group_emptied"], 20_050: ["group_deleted"]} == {
        time: kinds for time, kinds in reported.kinds().items() if time
    }
    assert {} == reported.views


def test_tombstones_of_unknown_share_records_are_nothing() -> None:
    """They may come first or alone."""
    reported = history(at(0, *share_leave("s", "a", epoch=9)[:3], *share_group_deleted("s"))).replayed()

    assert ({}, {}) == (reported.views, reported.kinds())


@pytest.mark.parametrize(
    "record",
    [
        share_group_epoch("s", 5),
        share_group_member_subscription("s", "a"),
        share_group_target_assignment_epoch("s", 5),
        share_group_target_assignment("s", "a", {"t": [0]}),
        share_group_current_assignment("s", "a", epoch=5),
        share_group_state_partition_metadata("s"),
    ],
)
def test_any_value_record_makes_a_share_group(record: tuple[bytes, bytes]) -> None:
    """A cleaned log may begin with any."""
    assert "share" == history(at(0, record)).replayed().view("s")["type"]


def test_delivery_state_alone_keeps_a_group_until_its_tombstone() -> None:
    """It is a live record like any other."""
    record = at(0, share_group_state_partition_metadata("s", initialized={"t": [0]}))

    assert "Empty 1/1" == history(record).replayed().status("s")
    ended = history(record, at(1, share_group_state_partition_metadata_tombstone("s"))).replayed()
    assert {0: ["group_created"], 1: ["group_deleted"]} == ended.kinds()
