"""Streams groups (KIP-1071; docs/coordinator-log.md): tasks of a topology, and a state for not having one."""

import pytest

from lab.builders import (
    RecordBytes,
    new_group_metadata,
    streams_group_current_assignment,
    streams_group_epoch,
    streams_group_member,
    streams_group_target_assignment,
    streams_group_target_assignment_epoch,
    streams_group_topology,
)
from lab.coordinator_events import streams_group_deleted, streams_leave
from tests.histories import RECORDING, at, history, recording

FIRST = at(
    0,
    streams_group_member("w", "a", process_id="p1"),
    streams_group_topology("w", 0, {"sub-0": ["t"], "sub-1": ["t", "u"]}),
    streams_group_epoch("w", 2, validated_topology_epoch=0),
    streams_group_current_assignment("w", "a", epoch=1, previous_epoch=0),
)
"""A new group waits group.streams.initial.rebalance.delay.ms for others: no target yet."""

TARGET = at(
    3_000,
    streams_group_target_assignment("w", "a", active={"sub-0": [0, 1], "sub-1": [0]}),
    streams_group_target_assignment_epoch("w", 2),
)
RUNNING = at(
    3_400,
    streams_group_current_assignment("w", "a", epoch=2, previous_epoch=1, active={"sub-0": [1, 0], "sub-1": [0]}),
)
SECOND = at(
    10_000,
    streams_group_member("w", "b", process_id="p2"),
    streams_group_epoch("w", 3, validated_topology_epoch=0),
    streams_group_target_assignment("w", "b", active={"sub-0": [1]}, standby={"sub-1": [0]}),
    streams_group_target_assignment("w", "a", active={"sub-0": [0], "sub-1": [0]}),
    streams_group_target_assignment_epoch("w", 3),
    streams_group_current_assignment("w", "b", epoch=3, previous_epoch=0, state=3),
)


HELD = ("assigned", "pending_revocation")


def test_new_streams_group_is_assigning_until_the_initial_delay_has_passed() -> None:
    """The target comes alone, from a timer; then the member reconciles at its heartbeat."""
    assert "Assigning 2/1" == history(FIRST).replayed().status("w")
    assert "Reconciling 2/2" == history(FIRST, TARGET).replayed().status("w")
    reported = history(FIRST, TARGET, RUNNING).replayed()
    assert ("streams", "Stable 2/2") == (reported.view("w")["type"], reported.status("w"))
    assert {
        0: ["group_created", "member_joined", "rebalance_started"],
        3_400: ["rebalance_completed"],
    } == reported.kinds()
    assert (3_400, ["join"]) == (
        reported.details("rebalance_completed")[0]["duration_ms"],
        reported.details("rebalance_completed")[0]["causes"],
    )


def test_streams_member_is_shown_with_the_partitions_its_tasks_read() -> None:
    """A task is a subtopology and a number; its partitions are those of the subtopology's source topics."""
    reported = history(FIRST, TARGET, RUNNING).replayed()

    assert {
        "member_id": "a",
        "instance_id": None,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "protocol": "consumer",
        "epoch": 2,
        "state": "Stable",
        "assigned": {"t": [0, 1], "u": [0]},
        "pending_revocation": {},
        "target": {"t": [0, 1], "u": [0]},
        "rack_id": None,
        "topology_epoch": 0,
        "process_id": "p1",
        "user_endpoint": None,
        "client_tags": {},
        "tasks": {"active": {"sub-0": [0, 1], "sub-1": [0]}, "standby": {}, "warmup": {}},
        "tasks_pending_revocation": {"active": {}, "standby": {}, "warmup": {}},
        "target_tasks": {"active": {"sub-0": [0, 1], "sub-1": [0]}, "standby": {}, "warmup": {}},
    } == reported.member("w", "a")


def test_streams_member_is_shown_with_what_it_said_of_its_process() -> None:
    """Topology, process, endpoint for interactive queries, and tags, as the tool's verbose member list has them."""
    said = streams_group_member(
        "w", "a", topology_epoch=1, process_id="p", rack_id="r", endpoint=("h", 8080), tags={"zone": "z", "cloud": "c"}
    )
    member = history(at(0, said)).replayed().member("w", "a")

    assert {
        "topology_epoch": 1,
        "process_id": "p",
        "rack_id": "r",
        "user_endpoint": {"host": "h", "port": 8080},
        "client_tags": {"cloud": "c", "zone": "z"},
    } == {name: member[name] for name in ("topology_epoch", "process_id", "rack_id", "user_endpoint", "client_tags")}


def test_tasks_of_every_role_are_shown_as_held_wanted_and_to_be_given_up() -> None:
    """Standby and warm-up tasks too; partitions are those of the active ones."""
    member = history(
        FIRST,
        at(1, streams_group_target_assignment("w", "a", active={"sub-0": [0]}, standby={"sub-1": [0]})),
        at(
            2,
            streams_group_current_assignment(
                "w",
                "a",
                epoch=1,
                state=2,
                active={"sub-0": [0]},
                warmup={"sub-1": [1]},
                active_pending_revocation={"sub-0": [1]},
                standby_pending_revocation={"sub-0": [2]},
                warmup_pending_revocation={"sub-1": [2]},
            ),
        ),
    ).replayed().member("w", "a")  # fmt: skip

    assert {
        "assigned": {"t": [0]},
        "pending_revocation": {"t": [1]},
        "target": {"t": [0]},
        "tasks": {"active": {"sub-0": [0]}, "standby": {}, "warmup": {"sub-1": [1]}},
        "tasks_pending_revocation": {"active": {"sub-0": [1]}, "standby": {"sub-0": [2]}, "warmup": {"sub-1": [2]}},
        "target_tasks": {"active": {"sub-0": [0]}, "standby": {"sub-1": [0]}, "warmup": {}},
    } == {name: item for name, item in member.items() if "task" in name or "target" in name or name in HELD}


def test_topology_is_shown_with_its_epochs_and_topics() -> None:
    """The one the members were started with, and the one last found valid."""
    shown = history(FIRST).replayed().view("w")["topology"]

    assert (0, 0, ["sub-0", "sub-1"]) == (shown["epoch"], shown["validated_epoch"], list(shown["subtopologies"]))
    assert {
        "source_topics": ["t", "u"],
        "repartition_source_topics": [],
        "repartition_sink_topics": [],
        "state_changelog_topics": [],
    } == shown["subtopologies"]["sub-1"]
    assert {"epoch": None, "validated_epoch": None, "subtopologies": {}} == (
        history(at(0, streams_group_epoch("w", 2))).replayed().view("w")["topology"]
    )


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ((), "Empty"),
        ((streams_group_member("w", "a"),), "NotReady"),
        ((streams_group_member("w", "a"), streams_group_topology("w", 1, {})), "NotReady"),
        (
            (
                streams_group_epoch("w", 2, validated_topology_epoch=0),
                streams_group_member("w", "a"),
                streams_group_topology("w", 1, {}),
            ),
            "NotReady",
        ),
        (
            (
                streams_group_epoch("w", 2, validated_topology_epoch=1),
                streams_group_member("w", "a"),
                streams_group_topology("w", 1, {}),
            ),
            "Assigning",
        ),
        (
            (
                streams_group_epoch("w", 2, validated_topology_epoch=1),
                streams_group_target_assignment_epoch("w", 2),
                streams_group_member("w", "a"),
                streams_group_topology("w", 1, {}),
                streams_group_current_assignment("w", "a", epoch=2, state=2),
            ),
            "Reconciling",
        ),
        (
            (
                streams_group_epoch("w", 2, validated_topology_epoch=1),
                streams_group_target_assignment_epoch("w", 2),
                streams_group_member("w", "a"),
                streams_group_topology("w", 1, {}),
                streams_group_current_assignment("w", "a", epoch=2, state=1),
            ),
            "Stable",
        ),
    ],
    ids=["empty", "no topology", "never validated", "another one validated", "assigning", "reconciling", "stable"],
)
def test_first_state_that_holds_is_shown(records: tuple[RecordBytes, ...], state: str) -> None:
    """Empty, then NotReady, then Assigning, then Reconciling, then Stable."""
    reported = history(at(0, streams_group_epoch("w", 2), *records)).replayed()

    assert state == reported.view("w")["state"]


@pytest.mark.parametrize(
    ("code", "state"), [(1, "Stable"), (2, "UnrevokedTasks"), (3, "UnreleasedTasks"), (0, "Unknown")]
)
def test_streams_member_states_have_codes_of_their_own(code: int, state: str) -> None:
    """1, 2, 3, where consumer groups have 0, 1, 2."""
    reported = history(at(0, streams_group_current_assignment("w", "a", epoch=2, state=code))).replayed()

    assert state == reported.member("w", "a")["state"]


def test_task_moves_from_one_member_to_another() -> None:
    """The old owner gives up first; standby tasks come as they like."""
    reported = history(
        FIRST,
        TARGET,
        RUNNING,
        SECOND,
        at(
            11_000,
            streams_group_current_assignment(
                "w",
                "a",
                epoch=2,
                state=2,
                active={"sub-0": [0], "sub-1": [0]},
                active_pending_revocation={"sub-0": [1]},
            ),
        ),
        at(12_000, streams_group_current_assignment("w", "a", epoch=3, active={"sub-0": [0], "sub-1": [0]})),
        at(13_000, streams_group_current_assignment("w", "b", epoch=3, active={"sub-0": [1]}, standby={"sub-1": [0]})),
    ).replayed()

    assert "Stable 3/3" == reported.status("w")
    assert {"active": {"sub-0": [1]}, "standby": {"sub-1": [0]}, "warmup": {}} == reported.member("w", "b")["tasks"]
    assert {10_000: ["member_joined", "rebalance_started"], 13_000: ["rebalance_completed"]} == {
        time: kinds for time, kinds in reported.kinds().items() if time > 5_000
    }
    assert 1 == reported.details("rebalance_completed")[-1]["partitions_moved"]
    assert {} == reported.alarms()


def test_any_change_of_a_streams_member_is_a_new_epoch() -> None:
    """Unlike in consumer groups; the group rebalances for it."""
    reported = history(
        FIRST,
        TARGET,
        RUNNING,
        at(
            20_000,
            streams_group_member("w", "a", process_id="p1", client_id="renamed"),
            streams_group_epoch("w", 3, validated_topology_epoch=0),
        ),
    ).replayed()

    assert "Assigning 3/2" == reported.status("w")
    assert ["rebalance_started"] == reported.kinds()[20_000]


def test_streams_member_leaves() -> None:
    """The last one leaves the group Empty."""
    reported = history(FIRST, TARGET, RUNNING, at(20_000, *streams_leave("w", "a", epoch=3))).replayed()

    assert "Empty 3/2" == reported.status("w")
    assert ["member_left", "group_emptied"] == reported.kinds()[20_000]


def test_topology_goes_last_when_a_streams_group_is_deleted() -> None:
    """Its tombstone follows the epoch's: in between, and if both never meet, nothing is left over."""
    deleted = streams_group_deleted("w", ["a"])
    reported = history(FIRST, TARGET, RUNNING, at(20_000, *deleted)).replayed()
    torn = history(FIRST, TARGET, RUNNING, at(20_000, *deleted[:-1]), at(20_001, deleted[-1])).replayed()

    assert ({}, {}) == (reported.views, torn.views)
    assert {} == torn.alarms()
    assert 1 == len(reported.details("group_deleted"))
    assert 1 == len(torn.details("group_deleted"))


def test_nothing_of_a_deleted_streams_group_is_left_over() -> None:
    """A classic group takes its place in the same event, as when it converts."""
    reported = history(
        FIRST, TARGET, RUNNING, at(20_000, *streams_group_deleted("w", ["a"]), new_group_metadata("w"))
    ).replayed()

    assert ("classic", 0) == (reported.view("w")["type"], reported.view("w")["migration"]["leftovers"])
    assert reported.states["w"].membership.modern is None


def test_tombstones_of_unknown_streams_records_are_nothing() -> None:
    """They may come first or alone."""
    reported = history(at(0, *streams_group_deleted("w", ["a"]))).replayed()

    assert ({}, {}) == (reported.views, reported.kinds())


def test_broker_of_4_1_does_not_say_whether_the_topology_is_valid() -> None:
    """It gives tasks for one that is: so a target with tasks shows it."""
    first = (streams_group_member("w", "a"), streams_group_topology("w", 0, {"s": ["t"]}), streams_group_epoch("w", 1))
    nothing = streams_group_target_assignment("w", "a")
    tasks = streams_group_target_assignment("w", "a", active={"s": [0]})
    waits = streams_group_epoch("w", 1, configs={"num.standby.replicas": "0"})

    assert ["NotReady", "NotReady", "Assigning", "NotReady"] == [
        history(at(0, *first, *more)).replayed().view("w")["state"]
        for more in ((), (nothing,), (tasks,), (tasks, waits))
    ]


def test_memory_of_brokers_up_to_4_2_starts_at_0() -> None:
    """Their first epoch is 1, and no target is computed for it yet; the first of 4.3 is 2."""
    assert ["Empty 1/0", "Empty 2/1"] == [
        history(at(0, streams_group_epoch("w", epoch))).replayed().status("w") for epoch in (1, 2)
    ]


def test_topics_that_a_topology_makes_for_itself_are_reported_from_its_sources() -> None:
    """A real application with a repartition and a count: what one subtopology sinks into, another reads."""
    path = RECORDING.parent / "4.3.1" / "share-and-streams.ndjson.gz"
    topology = recording(path).replayed().view("streams-members-come-and-go")["topology"]
    (sink,) = topology["subtopologies"]["0"]["repartition_sink_topics"]

    assert [sink] == topology["subtopologies"]["1"]["repartition_source_topics"]
    assert [] == topology["subtopologies"]["1"]["source_topics"]
    assert ["streams-members-come-and-go-topic"] == topology["subtopologies"]["0"]["source_topics"]
    assert 1 == len(topology["subtopologies"]["1"]["state_changelog_topics"])
