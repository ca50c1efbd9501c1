"""Classic groups (docs/coordinator-log.md, "Classic groups"): one record a rebalance, and nothing in between."""

import pytest

from lab.builders import (
    NOW_MS,
    assignment,
    first_fields,
    group_metadata,
    group_metadata_tombstone,
    member,
    new_group_metadata,
    offset_commit,
    offset_commit_tombstone,
    sticky_user_data,
    subscription,
    topic_id,
)
from tests.histories import at, history


def test_first_record_makes_an_empty_group_of_generation_0() -> None:
    """A JoinGroup answered with MEMBER_ID_REQUIRED already leaves a group: Empty, generation 0, no protocol."""
    reported = history(at(0, new_group_metadata("g"))).replayed()

    assert {
        "group": "g",
        "type": "classic",
        "state": "Empty",
        "epoch": 0,
        "assignment_epoch": None,
        "protocol": None,
        "protocol_type": None,
        "simple": False,
        "members": [],
        "offsets": [],
        "migration": {
            "phase": "classic",
            "members": 0,
            "upgraded_members": 0,
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
    assert {0: ["group_created"]} == reported.kinds()


def test_leaders_sync_shows_every_member_with_its_assignment() -> None:
    """The record of a generation holds all members; each is Stable at the generation, its target what it has."""
    reported = history(
        at(0, new_group_metadata("g")),
        at(
            3_000,
            group_metadata(
                "g",
                generation=1,
                members=[member("b", {"t": [2]}, client_id="cb"), member("a", {"t": [1, 0], "u": [0]})],
                timestamp=2_980,
            ),
        ),
    ).replayed()

    assert "Stable 1" == reported.status("g")
    assert "range" == reported.view("g")["protocol"]
    assert ["a", "b"] == [shown["member_id"] for shown in reported.view("g")["members"]]
    assert {
        "member_id": "a",
        "instance_id": None,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "protocol": "classic",
        "epoch": 1,
        "state": "Stable",
        "assigned": {"t": [0, 1], "u": [0]},
        "pending_revocation": {},
        "target": {"t": [0, 1], "u": [0]},
        "subscription": {"topics": ["t"], "regex": None, "regex_topics": None},
        "rack_id": None,
        "assignor": "range",
        "rebalance_timeout_ms": 300_000,
        "session_timeout_ms": 45_000,
        "claims": [{"assignor": "range", "version": 3, "generation": None, "owned": {}, "user_data_bytes": None}],
        "leader": False,
        "assignment_epochs": {},
        "waiting": None,
    } == reported.member("g", "a")
    assert {0: ["group_created"], 3_000: ["member_joined", "member_joined", "rebalance_completed"]} == reported.kinds()


def test_sync_phase_is_what_the_log_tells_of_a_rebalances_duration() -> None:
    """Record time less currentStateTimestamp is how long the leader took to assign, and goes to the histogram."""
    reported = history(
        at(NOW_MS, new_group_metadata("g")),
        at(NOW_MS + 4_000, group_metadata("g", generation=1, members=[member("a", {})], timestamp=NOW_MS + 3_700)),
    ).replayed()

    assert [300] == [detail["sync_ms"] for detail in reported.details("rebalance_completed")]
    counters = reported.states["g"].counters
    assert (1, 300, [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]) == (
        counters.rebalances,
        counters.duration_sum_ms,
        counters.duration_buckets,
    )


def test_member_left_out_by_the_leader_owns_nothing() -> None:
    """An assignment of zero bytes, without even a version, is legal: the leader's answer lacked the member."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]}), member("b", None)]))
    ).replayed()

    assert {"a": {"t": [0]}, "b": {}} == reported.owners("g")
    assert [] == reported.view("g")["migration"]["blockers"]


def test_gap_between_generations_is_rounds_that_never_completed() -> None:
    """Generation 2 to 5: two rounds were begun and lost, which no record says but the number does."""
    reported = history(
        at(0, new_group_metadata("g")),
        at(1_000, group_metadata("g", generation=1, members=[member("a", {"t": [0]})])),
        at(2_000, group_metadata("g", generation=2, members=[member("a", {"t": [0]})])),
        at(9_000, group_metadata("g", generation=5, members=[member("a", {"t": [0]})])),
    ).replayed()

    assert ["rebalance_rounds_lost", "rebalance_completed"] == reported.kinds()[9_000]
    assert [{"from_generation": 2, "to_generation": 5, "rounds_lost": 2}] == reported.details("rebalance_rounds_lost")
    assert [True] == [event.inferred for event in reported.events if event.kind == "rebalance_rounds_lost"]
    assert (3, 2) == (reported.states["g"].counters.rebalances, reported.states["g"].counters.rounds_lost)


@pytest.mark.parametrize(
    ("generation", "joined", "severity"),
    [
        pytest.param(3, ["b"], "info", id="one joined between join and sync"),
        pytest.param(4, ["b", "c"], "info", id="two did, one after the other"),
        pytest.param(4, ["b"], "warning", id="one round more"),
        pytest.param(3, [], "warning", id="nobody joined"),
    ],
)
def test_round_that_is_lost_to_a_member_that_joins_is_information(
    generation: int, joined: list[str], severity: str
) -> None:
    """It comes after the others have joined and before the leader has answered, and all begin again."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})])),
        at(9_000, group_metadata("g", generation=generation, members=[member(of, {}) for of in ("a", *joined)])),
    ).replayed()

    assert [severity] == [of.severity for of in reported.events if of.kind == "rebalance_rounds_lost"]


def test_round_that_its_last_member_left_is_information() -> None:
    """A member joins an empty group and leaves before the leader, itself, has answered."""
    reported = history(
        at(0, group_metadata("g", generation=4)), at(1_000, group_metadata("g", generation=6))
    ).replayed()

    assert ["info"] == [of.severity for of in reported.events if of.kind == "rebalance_rounds_lost"]


def test_first_generation_ever_seen_is_no_gap() -> None:
    """A compacted log begins with whatever generation the group has reached: nothing is known to be lost."""
    reported = history(at(0, group_metadata("g", generation=41, members=[member("a", {"t": [0]})]))).replayed()

    assert {0: ["group_created", "member_joined"]} == reported.kinds()
    assert 0 == reported.states["g"].counters.rounds_lost


def test_last_member_leaving_is_a_generation_without_members() -> None:
    """Empty is reached by a generation of its own: no protocol, no leader, and not a rebalance completed."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})])),
        at(5_000, group_metadata("g", generation=2)),
    ).replayed()

    assert "Empty 2" == reported.status("g")
    assert reported.view("g")["protocol"] is None
    assert ["member_left", "group_emptied"] == reported.kinds()[5_000]
    assert 0 == reported.states["g"].counters.rebalances


def test_partitions_moved_are_those_with_another_owner_than_before() -> None:
    """What had no owner, or keeps its own, has not moved."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0, 1, 2]})])),
        at(1_000, group_metadata("g", generation=2, members=[member("a", {"t": [0, 1]}), member("b", {"t": [2, 3]})])),
    ).replayed()

    assert [1] == [detail["partitions_moved"] for detail in reported.details("rebalance_completed")]
    assert 1 == reported.states["g"].counters.partitions_moved


def test_cooperative_rebalance_takes_two_generations() -> None:
    """The first leaves what moves unassigned, the second gives it out: the second is the follow-up of the first."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0, 1]})], protocol="cooperative-sticky")),
        at(
            1_000,
            group_metadata(
                "g",
                generation=2,
                members=[
                    member("a", {"t": [0]}, owned={"t": [0, 1]}, owned_generation=1),
                    member("b", {}),
                ],
                protocol="cooperative-sticky",
            ),
        ),
        at(
            1_020,
            group_metadata(
                "g",
                generation=3,
                members=[
                    member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=2),
                    member("b", {"t": [1]}, owned_generation=2),
                ],
                protocol="cooperative-sticky",
            ),
        ),
    ).replayed()

    assert {1_000: ["member_joined", "rebalance_completed"], 1_020: ["rebalance_completed"]} == {
        time: kinds for time, kinds in reported.kinds().items() if time
    }
    assert [["join"], ["follow_up"]] == [detail["causes"] for detail in reported.details("rebalance_completed")]
    assert {} == reported.alarms()


def test_group_of_another_protocol_type_is_opaque_but_counted() -> None:
    """Kafka Connect's assignments are not the consumer protocol's: members are shown, partitions are not guessed."""
    reported = history(
        at(
            0,
            group_metadata(
                "connect",
                generation=1,
                protocol_type="connect",
                protocol="sessioned",
                members=[member("w1", {"t": [0]}), member("w2", {"t": [0]})],
            ),
        )
    ).replayed()

    assert {"w1": {}, "w2": {}} == reported.owners("connect")
    migration = reported.view("connect")["migration"]
    assert ("classic", [], "protocol_type") == tuple(migration[of] for of in ("phase", "blockers", "out_of_scope"))
    assert "connect" == reported.view("connect")["protocol_type"]
    assert {} == reported.alarms()


@pytest.mark.parametrize("garbage", [b"\x00", b"\xff\xff\xff\xff", b"\x00\x03\x7f\xff\xff\xff"])
def test_embedded_bytes_that_do_not_decode_are_opaque(garbage: bytes) -> None:
    """As Kafka does: the member stands, without topics or partitions, and a broker would refuse to convert it."""
    reported = history(
        at(
            0,
            group_metadata(
                "g",
                generation=1,
                members=[member("a", subscription_bytes=garbage, assignment_bytes=garbage), member("b", {"t": [1]})],
            ),
        )
    ).replayed()

    assert {"a": {}, "b": {"t": [1]}} == reported.owners("g")
    assert ["malformed_embedded_protocol"] == reported.view("g")["migration"]["blockers"]


def test_topics_and_user_data_of_kafka_gos_members_are_read() -> None:
    """Their subscription names version 1 and ends after the fields of version 0; what they own is in the user data."""
    claims = sticky_user_data({"t": [0]}, generation=4)
    of_kafka_go = member("a", {"t": [0]}, subscription_bytes=first_fields(["t", "u"], user_data=claims))
    reported = history(at(0, group_metadata("g", generation=5, protocol="sticky", members=[of_kafka_go]))).replayed()

    (shown,) = reported.view("g")["members"]
    assert ["t", "u"] == shown["subscription"]["topics"]
    assert [(1, 4, {"t": [0]})] == [(of["version"], of["generation"], of["owned"]) for of in shown["claims"]]
    assert ["malformed_embedded_protocol"] == reported.view("g")["migration"]["blockers"]


def test_custom_assignors_user_data_blocks_the_upgrade() -> None:
    """A broker refuses to convert a group whose assignment carries user data."""
    reported = history(
        at(
            0,
            group_metadata(
                "g", generation=1, members=[member("a", assignment_bytes=assignment({"t": [0]}, user_data=b"x"))]
            ),
        )
    ).replayed()

    assert {"a": {"t": [0]}} == reported.owners("g")
    assert ("blocked", ["assignment_user_data"]) == (
        reported.view("g")["migration"]["phase"],
        reported.view("g")["migration"]["blockers"],
    )


@pytest.mark.parametrize(("version", "timeout_ms"), [(0, 45_000), (1, 300_000), (2, 300_000), (3, 300_000)])
def test_every_version_of_the_record_is_read(version: int, timeout_ms: int) -> None:
    """The first has no rebalance timeout, so the session's counts; instance ids came with the last."""
    record = group_metadata(
        "g", generation=1, members=[member("a", {"t": [0]}, instance_id="i" if version == 3 else None)], version=version
    )

    reported = history(at(0, record)).replayed()

    assert {"a": {"t": [0]}} == reported.owners("g")
    group = reported.states["g"].membership.classic
    assert group is not None
    assert timeout_ms == group.members["a"].rebalance_timeout_ms


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_version_of_the_embedded_protocol_is_read(version: int) -> None:
    """Old clients' subscriptions and assignments say less, not something else."""
    old = member(
        "a",
        subscription_bytes=subscription(("t", "u"), version=version),
        assignment_bytes=assignment({"t": [0]}, version=version),
    )

    reported = history(at(0, group_metadata("g", generation=1, members=[old]))).replayed()

    assert {"a": {"t": [0]}} == reported.owners("g")


def test_group_without_members_and_offsets_goes_at_the_next_check() -> None:
    """The tombstone alone ends it: not in the groups, said once."""
    reported = history(
        at(0, new_group_metadata("g")),
        at(600_000, group_metadata_tombstone("g")),
    ).replayed()

    assert {} == reported.views
    assert {0: ["group_created"], 600_000: ["group_deleted"]} == reported.kinds()


def test_delete_groups_takes_the_offsets_first() -> None:
    """DeleteGroups: every offset's tombstone, then the group's, in one batch."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0, 1]})])),
        at(1_000, offset_commit("g", "t", 0, 5), offset_commit("g", "t", 1, 6)),
        at(2_000, group_metadata("g", generation=2)),
        at(
            3_000,
            offset_commit_tombstone("g", "t", 0),
            offset_commit_tombstone("g", "t", 1),
            group_metadata_tombstone("g"),
        ),
    ).replayed()

    assert {} == reported.views
    assert ["offset_deleted", "group_deleted"] == reported.kinds()[3_000]


def test_tombstone_of_the_membership_leaves_a_group_with_offsets_simple() -> None:
    """Its offsets still stand: to a broker it is a group that only commits."""
    reported = history(
        at(0, new_group_metadata("g"), offset_commit("g", "t", 0, 5)),
        at(1_000, group_metadata_tombstone("g")),
    ).replayed()

    assert reported.view("g")["simple"]
    assert "Empty 0" == reported.status("g")
    assert {0: ["group_created"]} == reported.kinds()


def test_group_of_a_deleted_groups_name_inherits_nothing() -> None:
    """Counters and offsets belong to the group that is gone."""
    reported = history(
        at(0, new_group_metadata("g")),
        at(1_000, group_metadata("g", generation=1, members=[member("a", {"t": [0]})])),
        at(2_000, offset_commit("g", "t", 0, 5)),
        at(3_000, group_metadata("g", generation=2)),
        at(4_000, offset_commit_tombstone("g", "t", 0), group_metadata_tombstone("g")),
        at(5_000, new_group_metadata("g")),
    ).replayed()

    assert "Empty 0" == reported.status("g")
    assert {} == reported.offsets("g")
    assert 0 == reported.states["g"].counters.rebalances
    assert ["group_created"] == reported.kinds()[5_000]


# -- simple groups ----------------------------------------------------------------------------------------------------


def test_group_that_only_commits_is_classic_empty_and_simple() -> None:
    """No type 2 record is ever written for it; Kafka's tools list it as Classic, Empty."""
    reported = history(
        at(1_000, offset_commit("s", "t", 0, 5, leader_epoch=3, metadata="md", timestamp=900))
    ).replayed()

    assert {
        "group": "s",
        "type": "classic",
        "state": "Empty",
        "epoch": 0,
        "assignment_epoch": None,
        "protocol": None,
        "protocol_type": None,
        "simple": True,
        "members": [],
        "offsets": [
            {
                "topic": "t",
                "partition": 0,
                "offset": 5,
                "leader_epoch": 3,
                "metadata": "md",
                "commit_timestamp": 900,
                "topic_id": topic_id("t"),
                "subscribed": None,
            }
        ],
        "migration": {
            "phase": "classic",
            "members": 0,
            "upgraded_members": 0,
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
    } == reported.view("s")
    assert [("group_created", {"type": "classic", "simple": True})] == [
        (event.kind, dict(event.detail)) for event in reported.events
    ]


def test_simple_group_ends_with_its_last_offset() -> None:
    """Its offsets expired: gone, and the tombstone of a record that never was changes nothing."""
    reported = history(
        at(0, offset_commit("s", "t", 0, 5), offset_commit("s", "t", 1, 5)),
        at(1_000, offset_commit_tombstone("s", "t", 0)),
        at(2_000, offset_commit_tombstone("s", "t", 1), group_metadata_tombstone("s")),
    ).replayed()

    assert {} == reported.views
    assert {
        0: ["group_created"],
        1_000: ["offset_deleted"],
        2_000: ["offset_deleted", "group_deleted"],
    } == reported.kinds()


def test_simple_group_that_members_join_is_the_same_group() -> None:
    """It is not created a second time, and keeps its offsets."""
    reported = history(
        at(0, offset_commit("g", "t", 0, 5)),
        at(1_000, group_metadata("g", generation=1, members=[member("a", {"t": [0]})])),
    ).replayed()

    assert {0: ["group_created"], 1_000: ["member_joined"]} == reported.kinds()
    assert (False, {"t/0": 5}) == (reported.view("g")["simple"], reported.offsets("g"))


def test_tombstones_of_what_is_not_known_are_nothing() -> None:
    """A cleaned log may hold a tombstone alone."""
    reported = history(at(0, group_metadata_tombstone("g")), at(1_000, offset_commit_tombstone("g", "t", 0))).replayed()

    assert ({}, {}) == (reported.views, reported.kinds())
