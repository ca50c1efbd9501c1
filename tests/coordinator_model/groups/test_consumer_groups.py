"""Consumer groups (docs/coordinator-log.md): joins, reconciliation, leaves, regular expressions, ends."""

import pytest

from lab.builders import (
    consumer_group_current_assignment,
    consumer_group_current_assignment_tombstone,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_partition_metadata,
    consumer_group_partition_metadata_tombstone,
    consumer_group_regular_expression,
    consumer_group_regular_expression_tombstone,
    consumer_group_target_assignment,
    consumer_group_target_assignment_epoch,
    consumer_group_target_assignment_tombstone,
    offset_commit,
    offset_commit_tombstone,
    topic_id,
)
from lab.coordinator_events import (
    consumer_gone,
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    consumer_moves,
    retarget,
    throttled_consumer_join,
)
from tests.histories import Moment, at, history

ALONE = at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}}))
"""Member a is alone and owns t/0 and t/1."""

SECOND_JOINS = at(
    2_000,
    # b, who gains t/1, is written before a, who loses it
    *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={}),
)
REVOKING = at(
    3_000,
    *consumer_moves("g", "a", epoch=2, previous_epoch=2, state=1, assigned={"t": [0]}, pending={"t": [1]}),
)
REVOKED = at(4_000, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0]}))
RECEIVED = at(5_000, *consumer_moves("g", "b", epoch=3, previous_epoch=3, assigned={"t": [1]}))
TWO_MEMBERS = (ALONE, SECOND_JOINS, REVOKING, REVOKED, RECEIVED)
"""Member b joined and took t/1 over from a."""


def test_first_join_makes_a_stable_group_at_epoch_2() -> None:
    """A 4.3 broker's memory starts at epoch 1, so the first on the log is 2; target and assignment come with it."""
    reported = history(ALONE).replayed()

    assert {
        "group": "g",
        "type": "consumer",
        "state": "Stable",
        "epoch": 2,
        "assignment_epoch": 2,
        "protocol": None,
        "protocol_type": None,
        "simple": False,
        "members": [
            {
                "member_id": "a",
                "instance_id": None,
                "client_id": "client",
                "client_host": "/127.0.0.1",
                "protocol": "consumer",
                "epoch": 2,
                "state": "Stable",
                "assigned": {"t": [0, 1]},
                "pending_revocation": {},
                "target": {"t": [0, 1]},
                "subscription": {"topics": ["t"], "regex": None, "regex_topics": None},
                "rack_id": None,
                "assignor": None,
                "rebalance_timeout_ms": 300_000,
                "session_timeout_ms": None,
                "claims": [],
                "assignment_epochs": {"t": {"0": 2, "1": 2}},
                "waiting": None,
            }
        ],
        "regexes": {},
        "offsets": [],
        "migration": {
            "phase": "upgraded",
            "members": 1,
            "upgraded_members": 1,
            "mixed_since": None,
            "blockers": [],
            "out_of_scope": None,
            "leftovers": 0,
            "leftover_types": {},
            "conversions": {"upgrade": 0, "downgrade": 0},
            "members_before": None,
            "downgrade": None,
            "upgrade": None,
        },
    } == reported.view("g")
    assert {0: ["group_created", "member_joined", "rebalance_started", "rebalance_completed"]} == reported.kinds()


@pytest.mark.parametrize(
    ("moments", "status", "members"),
    [
        (1, "Stable 2/2", {"a": ("Stable", 2, {"t": [0, 1]}, {})}),
        (2, "Reconciling 3/3", {"a": ("Stable", 2, {"t": [0, 1]}, {}), "b": ("UnreleasedPartitions", 3, {}, {})}),
        (
            3,
            "Reconciling 3/3",
            {"a": ("UnrevokedPartitions", 2, {"t": [0]}, {"t": [1]}), "b": ("UnreleasedPartitions", 3, {}, {})},
        ),
        (4, "Reconciling 3/3", {"a": ("Stable", 3, {"t": [0]}, {}), "b": ("UnreleasedPartitions", 3, {}, {})}),
        (5, "Stable 3/3", {"a": ("Stable", 3, {"t": [0]}, {}), "b": ("Stable", 3, {"t": [1]}, {})}),
    ],
    ids=["alone", "second joins", "first revokes", "first has revoked", "second has received"],
)
def test_reconciliation_step_by_step(
    moments: int, status: str, members: dict[str, tuple[str, int, dict[str, list[int]], dict[str, list[int]]]]
) -> None:
    """Members give up before others receive, each at its own pace; the group reconciles until all are there."""
    reported = history(*TWO_MEMBERS[:moments]).replayed()

    assert status == reported.status("g")
    assert members == {
        of["member_id"]: (of["state"], of["epoch"], of["assigned"], of["pending_revocation"])
        for of in reported.view("g")["members"]
    }


def test_reconciliation_is_one_rebalance() -> None:
    """It begins with the join and ends when the last member is there; the steps between say nothing."""
    reported = history(*TWO_MEMBERS).replayed()

    assert {2_000: ["member_joined", "rebalance_started"], 5_000: ["rebalance_completed"]} == {
        time: kinds for time, kinds in reported.kinds().items() if time
    }
    assert {
        "epoch": 3,
        "members": 2,
        "duration_ms": 3_000,
        "partitions_moved": 1,
        "partitions_kept": 1,
        "stickiness": 0.5,
        "causes": ["join"],
    } == {key: item for key, item in reported.details("rebalance_completed")[-1].items() if key != "scaling"}
    assert {} == reported.alarms()


def test_target_is_shown_beside_what_is_owned() -> None:
    """The partition on its way is still the old owner's, and already the new one's target."""
    reported = history(*TWO_MEMBERS[:2]).replayed()

    assert ({"t": [0, 1]}, {"t": [0]}) == (reported.member("g", "a")["assigned"], reported.member("g", "a")["target"])
    assert ({}, {"t": [1]}) == (reported.member("g", "b")["assigned"], reported.member("g", "b")["target"])


def test_throttled_join_has_no_target_yet() -> None:
    """Within a second of the last target the group is Assigning; the newcomer stands at the old epoch, empty."""
    waiting = at(500, *throttled_consumer_join("g", "b", epoch=3, assignment_epoch=2))

    reported = history(ALONE, waiting).replayed()

    assert "Assigning 3/2" == reported.status("g")
    assert ("Stable", 2, {}, {}) == tuple(
        reported.member("g", "b")[name] for name in ("state", "epoch", "assigned", "target")
    )
    assert ["member_joined", "rebalance_started"] == reported.kinds()[500]


def test_throttled_join_gets_its_target_later_without_a_new_epoch() -> None:
    """A later heartbeat computes the target of the epoch that waited for it: still the same rebalance."""
    reported = history(
        ALONE,
        at(500, *throttled_consumer_join("g", "b", epoch=3, assignment_epoch=2)),
        at(
            5_500,
            *retarget("g", 3, {"a": {"t": [0]}, "b": {"t": [1]}}),
            *consumer_moves("g", "a", epoch=2, state=1, assigned={"t": [0]}, pending={"t": [1]}),
        ),
        at(6_000, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0]})),
        at(6_500, *consumer_moves("g", "b", epoch=3, previous_epoch=2, assigned={"t": [1]})),
    ).replayed()

    assert "Stable 3/3" == reported.status("g")
    assert ["group_created", "member_joined", "rebalance_started", "rebalance_completed"] == reported.kinds()[0]
    assert {500: ["member_joined", "rebalance_started"], 6_500: ["rebalance_completed"]} == {
        time: kinds for time, kinds in reported.kinds().items() if time
    }
    assert 6_000 == reported.details("rebalance_completed")[-1]["duration_ms"]


def test_quick_joins_share_one_rebalance() -> None:
    """Epochs that move on while members are on their way belong to the rebalance under way."""
    reported = history(
        ALONE,
        at(100, *throttled_consumer_join("g", "b", epoch=3, assignment_epoch=2)),
        at(200, *throttled_consumer_join("g", "c", epoch=4, assignment_epoch=2)),
        at(
            1_200,
            *retarget("g", 4, {"a": {"t": [0, 1]}, "b": {}, "c": {}}),
            *consumer_moves("g", "a", epoch=4, previous_epoch=2, assigned={"t": [0, 1]}),
        ),
        at(1_300, *consumer_moves("g", "b", epoch=4, previous_epoch=2, assigned={})),
        at(1_400, *consumer_moves("g", "c", epoch=4, previous_epoch=2, assigned={})),
    ).replayed()

    assert {100: ["member_joined", "rebalance_started"], 200: ["member_joined"], 1_400: ["rebalance_completed"]} == {
        time: kinds for time, kinds in reported.kinds().items() if time
    }


def test_record_that_changes_only_the_previous_epoch_says_nothing() -> None:
    """Members that wait may be written again with another previousMemberEpoch."""
    again = at(2_500, *consumer_moves("g", "b", epoch=3, previous_epoch=3, state=2, assigned={}))

    reported = history(*TWO_MEMBERS[:2], again).replayed()

    assert 2_500 not in reported.kinds()
    assert history(*TWO_MEMBERS[:2]).replayed().views == reported.views


def test_leave_bumps_the_epoch_and_leaves_targets_for_later() -> None:
    """No target is computed until some member's next heartbeat: the group is Assigning so long."""
    reported = history(*TWO_MEMBERS, at(9_000, *consumer_leave("g", "b", epoch=4))).replayed()

    assert "Assigning 4/3" == reported.status("g")
    assert {"a": {"t": [0]}} == reported.owners("g")
    assert ["member_left", "rebalance_started"] == reported.kinds()[9_000]
    assert ["leave"] == reported.details("rebalance_started")[-1]["causes"]


def test_expiry_of_several_members_at_once_is_one_event_each() -> None:
    """LeaveGroup with several members, or an expiry: all their tombstones, then a single epoch."""
    reported = history(*TWO_MEMBERS, at(9_000, *consumer_leave("g", "a", "b", epoch=4))).replayed()

    assert "Empty 4/3" == reported.status("g")
    assert ["member_left", "member_left", "group_emptied"] == reported.kinds()[9_000]


def test_empty_group_ahead_of_its_target_is_empty_and_not_rebalancing() -> None:
    """Group epoch above assignment epoch for ever is legal without a member to compute a target for."""
    reported = history(ALONE, at(1_000, *consumer_leave("g", "a", epoch=3))).replayed()

    assert "Empty 3/2" == reported.status("g")
    assert reported.states["g"].rebalance is None
    assert ["member_left", "group_emptied"] == reported.kinds()[1_000]
    assert {} == reported.alarms()


def test_leave_during_a_rebalance_of_two_ends_it_for_the_other() -> None:
    """The one that waited receives once the other is gone; it is still one rebalance."""
    reported = history(
        *TWO_MEMBERS[:2],
        at(3_000, *consumer_leave("g", "a", epoch=4)),
        at(4_000, *retarget("g", 4, {"b": {"t": [0, 1]}}), *consumer_moves("g", "b", epoch=4, assigned={"t": [0, 1]})),
    ).replayed()

    assert "Stable 4/4" == reported.status("g")
    assert {
        2_000: ["member_joined", "rebalance_started"],
        3_000: ["member_left"],
        4_000: ["rebalance_completed"],
    } == {time: kinds for time, kinds in reported.kinds().items() if time}
    assert ["join", "leave"] == reported.details("rebalance_completed")[-1]["causes"]


def test_change_of_subscription_is_a_rebalance_without_joins() -> None:
    """The member's metadata is written again, the epoch moves on, and the target follows at once."""
    reported = history(
        ALONE,
        at(
            5_000,
            consumer_group_member_subscription("g", "a", topics=["u"]),
            consumer_group_epoch("g", 3),
            *retarget("g", 3, {"a": {"u": [0]}}),
            *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"u": [0]}),
        ),
    ).replayed()

    assert ["rebalance_started", "rebalance_completed"] == reported.kinds()[5_000]
    assert ["subscription"] == reported.details("rebalance_started")[-1]["causes"]
    assert {"a": {"u": [0]}} == reported.owners("g")


def test_change_of_topic_metadata_is_a_rebalance_of_that_cause() -> None:
    """A replica moved to another rack: a heartbeat bumps the epoch; old brokers' type 4 is ended once."""
    reported = history(
        ALONE,
        at(
            5_000,
            consumer_group_epoch("g", 3, metadata_hash=77),
            consumer_group_partition_metadata_tombstone("g"),
            *retarget("g", 3, {"a": {"t": [0, 1]}}),
            *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0, 1]}),
        ),
    ).replayed()

    assert ["rebalance_started", "rebalance_completed"] == reported.kinds()[5_000]
    assert ["metadata"] == reported.details("rebalance_started")[-1]["causes"]


def test_change_of_other_member_fields_is_silent_and_shown() -> None:
    """Rack, client, host, server assignor and timeout change without an epoch."""
    reported = history(
        ALONE,
        at(
            1_000,
            consumer_group_member_subscription(
                "g", "a", client_id="renamed", client_host="/10.0.0.9", rack_id="r", server_assignor="range"
            ),
        ),
    ).replayed()

    assert 1_000 not in reported.kinds()
    assert ("renamed", "/10.0.0.9") == (
        reported.member("g", "a")["client_id"],
        reported.member("g", "a")["client_host"],
    )
    assert "range" == reported.view("g")["protocol"]


def test_protocol_is_the_assignor_most_members_ask_for() -> None:
    """T5.serverAssignor is a preference; the majority's counts, and without one it is the broker's default."""
    reported = history(
        at(0, consumer_group_member_subscription("g", "a", server_assignor="uniform")),
        at(1, consumer_group_member_subscription("g", "b", server_assignor="range")),
        at(2, consumer_group_member_subscription("g", "c", server_assignor="range")),
        at(3, consumer_group_member_subscription("g", "d")),
    ).replayed()

    assert "range" == reported.view("g")["protocol"]


def test_partition_lists_are_shown_ascending() -> None:
    """Records hold them in the order they were assigned in, e.g. 0, 4, 1."""
    reported = history(
        at(
            0,
            consumer_group_member_subscription("g", "a"),
            consumer_group_target_assignment("g", "a", {"t": [4, 0, 1]}),
            consumer_group_current_assignment("g", "a", epoch=4, assigned={"t": {0: 2, 4: 4, 1: 2}}),
        )
    ).replayed()

    assert ({"t": [0, 1, 4]}, {"t": [0, 1, 4]}) == (
        reported.member("g", "a")["assigned"],
        reported.member("g", "a")["target"],
    )


def test_topic_without_a_name_stands_under_its_id() -> None:
    """Its name is not in the log; the cluster may have forgotten it too."""
    reported = history(at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"deleted": [0]}}))).replayed()

    assert {"a": {topic_id("deleted"): [0]}} == reported.owners("g")


def test_member_state_of_a_newer_broker_is_unknown() -> None:
    """Any other code than 0, 1, 2 is UNKNOWN (127): the member is not Stable, the group reconciles."""
    reported = history(ALONE, at(1, *consumer_moves("g", "a", epoch=2, state=9, assigned={"t": [0, 1]}))).replayed()

    assert "Unknown" == reported.member("g", "a")["state"]
    assert "Reconciling 2/2" == reported.status("g")


# -- regular expressions ----------------------------------------------------------------------------------------------


def _joins_by_regex(member_id: str, regex: str) -> Moment:
    return at(
        0,
        consumer_group_member_subscription("g", member_id, topics=(), regex=regex),
        consumer_group_current_assignment("g", member_id, epoch=1, previous_epoch=0),
    )


def test_join_with_an_unresolved_regex_waits_for_its_resolution() -> None:
    """First the member at epoch 1 with nothing, then the topics and the epoch, then target and assignment."""
    joined = _joins_by_regex("a", "rx-.*")
    resolved = at(100, consumer_group_regular_expression("g", "rx-.*", ["rx-a", "rx-b"]), consumer_group_epoch("g", 2))
    received = at(
        3_000,
        *retarget("g", 2, {"a": {"rx-a": [0]}}),
        *consumer_moves("g", "a", epoch=2, previous_epoch=1, assigned={"rx-a": [0]}),
    )

    assert "Stable 1/1" == history(joined).replayed().status("g")
    assert "Assigning 2/1" == history(joined, resolved).replayed().status("g")
    reported = history(joined, resolved, received).replayed()
    assert "Stable 2/2" == reported.status("g")
    assert {"a": {"rx-a": [0]}} == reported.owners("g")
    assert {
        0: ["group_created", "member_joined"],
        100: ["rebalance_started"],
        3_000: ["rebalance_completed"],
    } == reported.kinds()
    assert {} == reported.alarms()


def test_refresh_of_a_regex_without_new_topics_is_silent() -> None:
    """It is rewritten even if equal."""
    reported = history(
        _joins_by_regex("a", "rx-.*"),
        at(100, consumer_group_regular_expression("g", "rx-.*", ["rx-a"], version=5)),
        at(600_100, consumer_group_regular_expression("g", "rx-.*", ["rx-a"], version=9)),
    ).replayed()

    assert {0: ["group_created", "member_joined"]} == reported.kinds()
    assert {"rx-.*": ("rx-a",)} == reported.states["g"].membership.modern_group.regexes  # type: ignore[union-attr]


def test_last_user_of_a_regex_takes_it_along() -> None:
    """Its tombstone comes with the member's."""
    reported = history(
        _joins_by_regex("a", "rx-.*"),
        at(100, consumer_group_regular_expression("g", "rx-.*", ["rx-a"]), consumer_group_epoch("g", 2)),
        at(
            200,
            *consumer_gone("g", "a"),
            consumer_group_regular_expression_tombstone("g", "rx-.*"),
            consumer_group_epoch("g", 3),
        ),
    ).replayed()

    assert {} == reported.states["g"].membership.modern_group.regexes  # type: ignore[union-attr]
    assert "Empty 3/1" == reported.status("g")
    assert ["member_left", "group_emptied"] == reported.kinds()[200]


# -- the end of a group -----------------------------------------------------------------------------------------------


def test_deletion_ends_every_record_and_says_so_once() -> None:
    """The type 4 tombstone is among them although no such record ever was."""
    reported = history(
        ALONE,
        at(1_000, offset_commit("g", "t", 0, 3)),
        at(2_000, *consumer_leave("g", "a", epoch=3)),
        at(3_000, offset_commit_tombstone("g", "t", 0), *consumer_group_deleted("g")),
    ).replayed()

    assert {} == reported.views
    assert ["offset_deleted", "group_deleted"] == reported.kinds()[3_000]


def test_expired_group_may_be_taken_down_in_pieces() -> None:
    """Periodic clean-up is not atomic: its tombstones may span batches, which is not a group left over."""
    whole = consumer_group_deleted("g", ["a"], regexes=["rx-.*"])

    for cut in range(len(whole)):
        reported = history(
            ALONE,
            at(500, consumer_group_regular_expression("g", "rx-.*", ["rx-a"])),
            at(1_000, *whole[:cut]),
            at(1_001, *whole[cut:]),
        ).replayed()

        assert {} == reported.views
        assert 1 == sum(kinds.count("group_deleted") for kinds in reported.kinds().values())
        assert {} == reported.alarms()


def test_group_recreated_after_its_deletion_starts_without_the_old_ones_epoch() -> None:
    """The next incarnation begins at epoch 2 again, and says nothing of an epoch that went back."""
    reported = history(
        ALONE,
        at(1_000, *consumer_leave("g", "a", epoch=3)),
        at(2_000, *consumer_group_deleted("g")),
        at(3_000, *consumer_join("g", "b", epoch=2, targets={"b": {"t": [0]}})),
    ).replayed()

    assert "Stable 2/2" == reported.status("g")
    assert ["group_created", "member_joined", "rebalance_started", "rebalance_completed"] == reported.kinds()[3_000]
    assert {} == reported.alarms()


# -- older brokers ----------------------------------------------------------------------------------------------------


def test_first_epoch_of_older_brokers_is_1() -> None:
    """Up to 4.2 memory starts at 0; up to 4.0 the partition counts are a record; up to 4.2 there are no epochs."""
    reported = history(
        at(
            0,
            consumer_group_member_subscription("g", "a"),
            consumer_group_epoch("g", 1),
            consumer_group_partition_metadata("g", {"t": 2}),
            consumer_group_target_assignment("g", "a", {"t": [0, 1]}),
            consumer_group_target_assignment_epoch("g", 1),
            consumer_group_current_assignment(
                "g", "a", epoch=1, previous_epoch=0, assigned={"t": [0, 1]}, epochs=False
            ),
        )
    ).replayed()

    assert "Stable 1/1" == reported.status("g")
    assert {"a": {"t": [0, 1]}} == reported.owners("g")
    assert {0: ["group_created", "member_joined", "rebalance_started", "rebalance_completed"]} == reported.kinds()


def test_partition_metadata_of_older_brokers_alone_makes_no_difference() -> None:
    """A type 4 record, written and ended, is part of the group and nothing more."""
    reported = history(
        ALONE,
        at(1_000, consumer_group_partition_metadata("g", {"t": 2})),
        at(2_000, consumer_group_partition_metadata_tombstone("g")),
    ).replayed()

    assert history(ALONE).replayed().views == reported.views
    assert {0} == set(reported.kinds())


# -- a cleaned log ----------------------------------------------------------------------------------------------------


def test_any_value_record_makes_a_group() -> None:
    """A cleaned log may begin with any of a group's records; epochs are 1 until a record has them."""
    for record in (
        consumer_group_epoch("g", 5),
        consumer_group_partition_metadata("g", {"t": 1}),
        consumer_group_member_subscription("g", "a"),
        consumer_group_target_assignment_epoch("g", 5),
        consumer_group_target_assignment("g", "a", {"t": [0]}),
        consumer_group_current_assignment("g", "a", epoch=5),
        consumer_group_regular_expression("g", "rx-.*", []),
    ):
        reported = history(at(0, record)).replayed()

        assert "consumer" == reported.view("g")["type"]
        assert "group_created" == reported.kinds()[0][0]


def test_tombstones_of_unknown_consumer_records_are_nothing() -> None:
    """They may come first or alone, also for a classic group of the name."""
    reported = history(at(0, *consumer_group_deleted("g", ["a"], regexes=["rx-.*"]))).replayed()

    assert ({}, {}) == (reported.views, reported.kinds())


def test_member_known_by_one_record_is_a_member() -> None:
    """Assignment before metadata, or the other way round: it is put together as records come."""
    reported = history(
        at(0, consumer_group_current_assignment("g", "a", epoch=7, assigned={"t": [0]})),
        at(1, consumer_group_member_subscription("g", "a", client_id="c")),
        at(2, consumer_group_epoch("g", 7)),
        at(3, consumer_group_target_assignment_epoch("g", 7)),
    ).replayed()

    assert "Stable 7/7" == reported.status("g")
    assert ("c", {"t": [0]}) == (reported.member("g", "a")["client_id"], reported.member("g", "a")["assigned"])
    assert 1 == len(reported.details("member_joined"))


def test_members_records_may_be_ended_one_by_one() -> None:
    """It is gone with the last of them; its target may outlive it without making it a member."""
    reported = history(
        ALONE,
        at(1_000, consumer_group_current_assignment_tombstone("g", "a")),
        at(2_000, *consumer_gone("g", "a")[2:]),
    ).replayed()

    assert [] == reported.view("g")["members"]
    assert ["member_left", "group_emptied"] == reported.kinds()[2_000]
    assert (
        []
        == history(
            ALONE, at(1_000, *consumer_gone("g", "a")), at(2_000, consumer_group_target_assignment_tombstone("g", "a"))
        )
        .replayed()
        .view("g")["members"]
    )
