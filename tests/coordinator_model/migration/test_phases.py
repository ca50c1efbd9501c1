"""From the classic to the consumer protocol and back (docs/coordinator-log.md; KIP-848 "Upgrade", KIP-915)."""

import pytest

from lab.builders import (
    RecordBytes,
    consumer_group_current_assignment,
    consumer_group_current_assignment_tombstone,
    consumer_group_epoch,
    consumer_group_epoch_tombstone,
    consumer_group_member_subscription,
    consumer_group_member_subscription_tombstone,
    consumer_group_partition_metadata,
    consumer_group_partition_metadata_tombstone,
    consumer_group_regular_expression,
    consumer_group_regular_expression_tombstone,
    consumer_group_target_assignment,
    consumer_group_target_assignment_epoch,
    consumer_group_target_assignment_epoch_tombstone,
    consumer_group_target_assignment_tombstone,
    group_metadata,
    group_metadata_tombstone,
    member,
    new_group_metadata,
    offset_commit,
    streams_group_current_assignment,
    streams_group_epoch,
    streams_group_member,
    streams_group_target_assignment,
    streams_group_target_assignment_epoch,
    streams_group_topology,
)
from lab.coordinator_events import (
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_classic,
    converted_to_consumer,
    retarget,
    share_join,
    speaks_classic,
    static_returns,
    streams_group_deleted,
)
from tests.histories import Moment, Reported, at, history

CLASSIC = at(0, group_metadata("g", generation=7, members=[member("c1", {"t": [0, 1]}), member("c2", {"t": [2, 3]})]))
FIRST_UPGRADES = at(
    1_000,
    *converted_to_consumer("g", generation=7, members={"c2": {"t": [2, 3]}, "c1": {"t": [0, 1]}}),
    *consumer_join(
        "g",
        "n1",
        epoch=8,
        targets={"n1": {"t": [3]}, "c1": {"t": [0, 1]}, "c2": {"t": [2]}},
        assigned={},
    ),
)
C1_LEAVES = at(2_000, *consumer_leave("g", "c1", epoch=9))
N2_JOINS = at(
    3_000,
    *consumer_join("g", "n2", epoch=10, targets={"n2": {"t": [0, 1]}, "c2": {"t": [2]}, "n1": {"t": [3]}}),
)
C2_LEAVES = at(4_000, *consumer_leave("g", "c2", epoch=11))
UPGRADED = (CLASSIC, FIRST_UPGRADES, C1_LEAVES, N2_JOINS, C2_LEAVES)
"""Two classic members replaced one by one, each new one coming before the next old one goes."""

C3_JOINS = at(
    5_000,
    *consumer_join(
        "g",
        "c3",
        epoch=12,
        targets={"c3": {"t": [2]}, "n1": {"t": [3]}, "n2": {"t": [0, 1]}},
        classic=speaks_classic(),
    ),
)
N1_LEAVES = at(6_000, *consumer_leave("g", "n1", epoch=13))
N1_TO_C3 = at(
    6_500,
    *retarget("g", 13, {"c3": {"t": [2, 3]}}),
    *consumer_moves("g", "c3", epoch=13, assigned={"t": [2, 3]}),
)
N2_LEAVES = at(
    7_000,
    *converted_to_classic("g", all_members=["c3", "n2"], generation=14, remaining={"c3": {"t": [2, 3]}}),
)
NEXT_GENERATION = at(8_000, group_metadata("g", generation=15, members=[member("c3", {"t": [0, 1, 2, 3]})]))
DOWNGRADED = (*UPGRADED, C3_JOINS, N1_LEAVES, N1_TO_C3, N2_LEAVES, NEXT_GENERATION)


def migration(reported: Reported) -> tuple[str | None, int, int, int | None]:
    """Phase, members, upgraded members and mixed since, of group g."""
    view = reported.view("g")["migration"]
    return view["phase"], view["members"], view["upgraded_members"], view["mixed_since"]


def migration_kinds(reported: Reported) -> list[str]:
    """What was reported of the migration, in order."""
    return [event.kind for event in reported.events if event.kind.startswith(("upgrade_", "downgrade_"))]


# -- online upgrade ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moments", "type_", "expected"),
    [
        (1, "classic", ("classic", 2, 0, None)),
        (2, "consumer", ("upgrading", 3, 1, 1_000)),
        (3, "consumer", ("upgrading", 2, 1, 1_000)),
        (4, "consumer", ("upgrading", 3, 2, 1_000)),
        (5, "consumer", ("upgraded", 2, 2, None)),
    ],
)
def test_upgrade_step_by_step(moments: int, type_: str, expected: tuple[str, int, int, int | None]) -> None:
    """The group is a consumer group with its first new member, mixed until the last classic one is gone."""
    reported = history(*UPGRADED[:moments]).replayed()

    assert type_ == reported.view("g")["type"]
    assert expected == migration(reported)


def test_upgrade_is_one_story() -> None:
    """It begins with the conversion, which is no leave and join of those who stay, and ends with how long it took."""
    reported = history(*UPGRADED).replayed()

    assert {
        0: ["group_created", "member_joined", "member_joined"],
        1_000: ["member_joined", "upgrade_started", "rebalance_started"],
        2_000: ["member_left"],
        3_000: ["member_joined"],
        4_000: ["member_left", "upgrade_completed"],
    } == reported.kinds()
    (started,) = reported.details("upgrade_started")
    assert (True, 3, 1, 2) == tuple(started[key] for key in ("online", "members", "upgraded_members", "members_before"))
    assert [
        {"online": True, "mixed_ms": 3_000, "members": 2, "members_before": 2, "replacements_awaited": 0}
    ] == reported.details("upgrade_completed")
    assert {} == reported.alarms()
    assert (1, 0) == (reported.states["g"].counters.upgrades, reported.states["g"].counters.downgrades)


def test_upgrade_keeps_the_epoch_going() -> None:
    """The group epoch starts at the generation and goes on from it."""
    reported = history(CLASSIC, FIRST_UPGRADES).replayed()

    assert "Reconciling 8/8" == reported.status("g")
    assert {"c1": 7, "c2": 7, "n1": 8} == {of["member_id"]: of["epoch"] for of in reported.view("g")["members"]}


def test_members_of_a_mixed_group_say_which_protocol_they_use() -> None:
    """Classic members keep their ids and are marked; their assignments are those of the classic group."""
    reported = history(CLASSIC, FIRST_UPGRADES).replayed()

    assert {"c1": "classic", "c2": "classic", "n1": "consumer"} == {
        of["member_id"]: of["protocol"] for of in reported.view("g")["members"]
    }
    assert {"c1": {"t": [0, 1]}, "c2": {"t": [2, 3]}, "n1": {}} == reported.owners("g")


def test_classic_member_that_rejoins_a_mixed_group_is_the_same_one() -> None:
    """Its embedded metadata changed: type 5 and 8 are written again, nothing else."""
    rejoin = at(
        1_500,
        consumer_group_member_subscription("g", "c2", classic=speaks_classic()),
        *consumer_moves("g", "c2", epoch=7, state=1, assigned={"t": [2]}, pending={"t": [3]}),
    )

    reported = history(CLASSIC, FIRST_UPGRADES, rejoin).replayed()

    assert 1_500 not in reported.kinds()
    assert ("upgrading", 3, 1, 1_000) == migration(reported)


def test_upgrade_of_static_members_by_replacement() -> None:
    """A static member that comes back with the consumer protocol replaces itself: no leave, no join."""
    reported = history(
        at(0, group_metadata("g", generation=7, members=[member("c1", {"t": [0]}, instance_id="i")])),
        at(
            1_000,
            *converted_to_consumer("g", generation=7, members={"c1": {"t": [0]}}, instance_ids={"c1": "i"}),
            *static_returns("g", old="c1", new="n1", instance_id="i", epoch=7, assigned={"t": [0]}),
        ),
    ).replayed()

    assert "Stable 7/7" == reported.status("g")
    assert ("upgraded", 1, 1, None) == migration(reported)
    assert ["static_member_replaced", "upgrade_started", "upgrade_completed"] == [
        kind for kind in reported.kinds()[1_000] if not kind.startswith("rebalance_")
    ]


def test_upgrade_of_an_empty_group_is_offline() -> None:
    """Nothing is mixed; the new incarnation starts at the first epoch, 2."""
    reported = history(
        at(0, group_metadata("g", generation=3)),
        at(1_000, group_metadata_tombstone("g"), *consumer_join("g", "n1", epoch=2, targets={"n1": {"t": [0]}})),
    ).replayed()

    assert "Stable 2/2" == reported.status("g")
    assert ("upgraded", 1, 1, None) == migration(reported)
    assert [{"online": False, "members": 1, "members_before": 0, "replacements_awaited": 0}] == reported.details(
        "upgrade_completed"
    )
    assert [] == reported.details("upgrade_started")
    assert {} == reported.alarms()


def test_group_of_the_consumer_protocol_from_the_start_never_migrated() -> None:
    """It counts as upgraded, and nothing is reported of an upgrade; nor where it only had committed before."""
    for before in ([], [at(0, offset_commit("g", "t", 0, 1))]):
        reported = history(
            *before, at(1_000, *consumer_join("g", "n1", epoch=2, targets={"n1": {"t": [0]}}))
        ).replayed()

        assert "upgraded" == migration(reported)[0]
        assert [] == migration_kinds(reported)
        assert 0 == reported.states["g"].counters.upgrades


def test_old_embedded_protocol_is_no_blocker() -> None:
    """Brokers convert members of any embedded version; only what they refuse is listed."""
    reported = history(
        at(
            0,
            group_metadata(
                "g", generation=1, members=[member("c", {"t": [0]}, subscription_bytes=b"\0\0\0\0\0\0\xff\xff\xff\xff")]
            ),
        )
    ).replayed()

    assert ("classic", []) == (migration(reported)[0], reported.view("g")["migration"]["blockers"])


# -- online downgrade -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moments", "type_", "expected"),
    [
        (6, "consumer", ("downgrading", 3, 2, 5_000)),
        (7, "consumer", ("downgrading", 2, 1, 5_000)),
        (9, "classic", ("downgraded", 1, 0, None)),
        (10, "classic", ("downgraded", 1, 0, None)),
    ],
)
def test_downgrade_step_by_step(moments: int, type_: str, expected: tuple[str, int, int, int | None]) -> None:
    """A classic member joins, consumer-protocol ones leave; with the last of them the group is classic again."""
    reported = history(*DOWNGRADED[:moments]).replayed()

    assert type_ == reported.view("g")["type"]
    assert expected == migration(reported)


def test_downgrade_is_one_story() -> None:
    """Its start is a warning, as it may not be meant; its end says how long the group was mixed."""
    reported = history(*DOWNGRADED).replayed()

    assert {
        5_000: ["member_joined", "downgrade_started"],
        6_000: ["member_left"],
        7_000: ["member_left", "downgrade_completed"],
        8_000: ["rebalance_completed"],
    } == {
        time: [kind for kind in kinds if kind != "rebalance_started"]
        for time, kinds in reported.kinds().items()
        if time >= 5_000
    }
    (started,) = reported.details("downgrade_started")
    assert (True, 3, 2) == tuple(started[name] for name in ("online", "members", "upgraded_members"))
    (joined,) = (event.detail for event in reported.events if event.time_ms == 5_000 and event.kind == "member_joined")
    assert [joined] == started["begun_by"]
    (completed,) = reported.details("downgrade_completed")
    assert (True, 1, 2_000, ["n2"]) == tuple(
        completed[key] for key in ("online", "members", "mixed_ms", "last_upgraded_members")
    )
    assert {("g", "downgrade_started"): 1} == reported.alarms()
    assert (1, 1) == (reported.states["g"].counters.upgrades, reported.states["g"].counters.downgrades)


def test_downgrade_goes_on_from_the_group_epoch_with_the_targets() -> None:
    """The generation is the group epoch; assignments are the targets, not what members owned."""
    reported = history(*DOWNGRADED[:9]).replayed()

    assert "Stable 14" == reported.status("g")
    assert {"c3": {"t": [2, 3]}} == reported.owners("g")
    assert 0 == reported.view("g")["migration"]["leftovers"]


def test_rebalance_under_way_does_not_outlive_the_downgrade() -> None:
    """Members that had not reached their target are members of a classic group now."""
    before = history(*DOWNGRADED[:8]).replayed()
    after = history(*DOWNGRADED[:9]).replayed()

    assert before.states["g"].rebalance is not None
    assert after.states["g"].rebalance is None


def test_downgrade_given_up_and_begun_again_is_reported_twice() -> None:
    """In between the group was of consumer-protocol members only, and so on no way at all."""
    static = consumer_join("g", "n1", epoch=5, targets={"n1": {"t": [0]}}, instance_id="i")
    reported = history(
        at(0, *static),
        at(1_000, *consumer_join("g", "c1", epoch=6, targets={"c1": {}}, classic=speaks_classic())),
        at(2_000, *consumer_leave("g", "c1", epoch=7)),
        at(
            3_000,
            *static_returns(
                "g", old="n1", new="c2", instance_id="i", epoch=7, assigned={"t": [0]}, classic=speaks_classic()
            ),
            *converted_to_classic(
                "g", all_members=["c2"], generation=7, remaining={"c2": {"t": [0]}}, instance_ids={"c2": "i"}
            ),
        ),
    ).replayed()

    assert ["downgrade_started", "upgrade_completed", "downgrade_started", "downgrade_completed"] == (
        migration_kinds(reported)
    )


def test_downgrade_by_static_replacement() -> None:
    """A classic instance replaces the last consumer-protocol one: replaced, converted, neither left nor joined."""
    reported = history(
        at(0, *consumer_join("g", "n1", epoch=5, targets={"n1": {"t": [0]}}, instance_id="i")),
        at(
            1_000,
            *static_returns(
                "g", old="n1", new="c1", instance_id="i", epoch=5, assigned={"t": [0]}, classic=speaks_classic()
            ),
            *converted_to_classic(
                "g", all_members=["c1"], generation=5, remaining={"c1": {"t": [0]}}, instance_ids={"c1": "i"}
            ),
        ),
    ).replayed()

    assert "Stable 5" == reported.status("g")
    assert ("downgraded", 1, 0, None) == migration(reported)
    assert ["static_member_replaced", "downgrade_started", "downgrade_completed"] == reported.kinds()[1_000]


def test_offline_downgrade_restarts_the_epoch() -> None:
    """A classic member joins an empty consumer group: generation 0, and that is no anomaly."""
    reported = history(
        at(0, *consumer_join("g", "n1", epoch=2, targets={"n1": {"t": [0]}})),
        at(1_000, *consumer_leave("g", "n1", epoch=3)),
        at(2_000, *consumer_group_deleted("g"), new_group_metadata("g")),
        at(3_000, group_metadata("g", generation=1, members=[member("c", {"t": [0]})])),
    ).replayed()

    assert "Stable 1" == reported.status("g")
    assert ("downgraded", 1, 0, None) == migration(reported)
    assert ["downgrade_completed"] == reported.kinds()[2_000]
    assert [
        {
            "online": False,
            "members": 0,
            "last_upgraded_members": [],
            "leftover_records": {},
            "offsets": 0,
            "offsets_back": {},
        }
    ] == reported.details("downgrade_completed")
    assert reported.states["g"].membership.modern is None
    assert ["member_joined", "rebalance_completed"] == reported.kinds()[3_000]
    assert {} == reported.alarms()


def test_second_upgrade_after_a_downgrade_counts_again() -> None:
    """Downgraded is a phase, not an end."""
    reported = history(
        *DOWNGRADED,
        at(
            9_000,
            *converted_to_consumer("g", generation=15, members={"c3": {"t": [0, 1, 2, 3]}}),
            *consumer_join("g", "n9", epoch=16, targets={"n9": {}, "c3": {"t": [0, 1, 2, 3]}}),
        ),
    ).replayed()

    assert ("upgrading", 2, 1, 9_000) == migration(reported)
    assert (2, 1) == (reported.states["g"].counters.upgrades, reported.states["g"].counters.downgrades)
    assert [
        "upgrade_started",
        "upgrade_completed",
        "downgrade_started",
        "downgrade_completed",
        "upgrade_started",
    ] == migration_kinds(reported)


# -- a roll that turns round ------------------------------------------------------------------------------------------


def test_roll_that_turns_round_half_way_is_a_downgrade() -> None:
    """On the way up a new member left and a classic one came in its place: the direction is an inference, said so."""
    reported = history(
        *UPGRADED[:4],
        at(5_000, *consumer_leave("g", "n2", epoch=11)),
        at(
            6_000,
            *consumer_join(
                "g", "c4", epoch=12, targets={"c4": {"t": [0, 1]}, "c2": {"t": [2]}}, classic=speaks_classic()
            ),
        ),
    ).replayed()

    assert ("downgrading", 3, 1, 1_000) == migration(reported)
    (turned,) = (event for event in reported.events if event.kind == "downgrade_started")
    assert (6_000, True) == (turned.time_ms, turned.inferred)
    begun_by = turned.detail["begun_by"]
    assert {
        "online": True,
        "turned_round": True,
        "members": 3,
        "upgraded_members": 1,
        "begun_by": begun_by,
    } == turned.detail
    assert ["c4"] == [of["member_id"] for of in begun_by]


def test_downgrade_that_turns_round_is_an_upgrade_again() -> None:
    """The mirror image, and information only: it goes where it was to go."""
    reported = history(
        *UPGRADED,
        C3_JOINS,
        at(6_000, *consumer_leave("g", "c3", epoch=13)),
    ).replayed()
    back = history(
        *UPGRADED,
        C3_JOINS,
        at(5_100, *consumer_join("g", "c4", epoch=13, targets={"c4": {}}, classic=speaks_classic())),
        at(6_000, *consumer_leave("g", "c3", epoch=14)),
        at(7_000, *consumer_join("g", "n4", epoch=15, targets={"n4": {"t": [2]}})),
    ).replayed()

    assert ("upgraded", 2, 2, None) == migration(reported)
    assert ("upgrading", 4, 3, 5_000) == migration(back)
    assert ["upgrade_started", "upgrade_completed", "downgrade_started", "upgrade_started"] == migration_kinds(back)


def test_turning_round_once_is_reported_once() -> None:
    """From there on what counts is how far it gets in the new direction."""
    old = ("c1", "c2", "c3")
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member(name, {}) for name in old])),
        at(
            1_000,
            *converted_to_consumer("g", generation=1, members={name: {} for name in old}),
            *consumer_join("g", "n1", epoch=2, targets={"n1": {}}),
        ),
        at(2_000, *consumer_leave("g", "c1", epoch=3)),
        at(3_000, *consumer_join("g", "n2", epoch=4, targets={"n2": {}})),
        at(4_000, *consumer_leave("g", "n2", epoch=5)),
        at(5_000, *consumer_join("g", "c4", epoch=6, targets={"c4": {}}, classic=speaks_classic())),
        at(6_000, *consumer_join("g", "n3", epoch=7, targets={"n3": {}})),
    ).replayed()

    assert ("downgrading", 5, 2, 1_000) == migration(reported)
    assert ["upgrade_started", "downgrade_started"] == migration_kinds(reported)


def test_classic_member_that_joins_early_in_an_upgrade_does_not_turn_it() -> None:
    """A restarting old instance is no change of direction as long as no new member has gone."""
    reported = history(
        *UPGRADED[:2],
        at(
            2_000,
            *consumer_join("g", "c9", epoch=9, targets={"c9": {}}, classic=speaks_classic()),
        ),
    ).replayed()

    assert ("upgrading", 4, 1, 1_000) == migration(reported)
    assert [] == reported.details("downgrade_started")


def test_mixed_group_that_empties_is_not_mixed_any_more() -> None:
    """Neither way was it completed."""
    reported = history(*UPGRADED[:2], at(2_000, *consumer_leave("g", "c1", "c2", "n1", epoch=9))).replayed()

    assert ("upgraded", 0, 0, None) == migration(reported)
    assert ["upgrade_started"] == migration_kinds(reported)


# -- what is left over ------------------------------------------------------------------------------------------------


def _unclean(at_ms: int = 2_000) -> Moment:
    """An offline downgrade that forgets the tombstone of a regular expression."""
    return at(at_ms, *consumer_group_deleted("g"), new_group_metadata("g"))


REGEX_LEFT = (
    at(0, *consumer_join("g", "n1", epoch=2, targets={"n1": {"t": [0]}})),
    at(500, consumer_group_regular_expression("g", "rx-.*", ["rx-a"])),
    at(1_000, *consumer_leave("g", "n1", epoch=3)),
)


def test_records_left_over_by_a_downgrade_are_reported_once() -> None:
    """KIP-915: the next broker down would still meet them."""
    reported = history(
        *REGEX_LEFT, _unclean(), at(3_000, group_metadata("g", generation=1, members=[member("c", {"t": [0]})]))
    ).replayed()

    assert "classic" == reported.view("g")["type"]
    assert 1 == reported.view("g")["migration"]["leftovers"]
    assert [{"leftover_records": 1, "record_types": {"16": 1}}] == reported.details("downgrade_unclean")
    assert 2_000 == next(event.time_ms for event in reported.events if event.kind == "downgrade_unclean")


def test_left_over_records_are_gone_with_their_tombstones() -> None:
    """Then nothing of the new protocol is live, and a broker downgrade would not meet any."""
    reported = history(*REGEX_LEFT, _unclean(), at(3_000, *consumer_group_deleted("g", regexes=["rx-.*"]))).replayed()

    assert "Empty 0" == reported.status("g")
    assert 0 == reported.view("g")["migration"]["leftovers"]


def test_nothing_is_left_of_a_group_whose_last_left_over_record_has_ended() -> None:
    """Whichever record that was: the next group of the name begins without any of it."""
    for left, ended in (
        (consumer_group_regular_expression("g", "rx", []), consumer_group_regular_expression_tombstone("g", "rx")),
        (consumer_group_partition_metadata("g", {}), consumer_group_partition_metadata_tombstone("g")),
        (consumer_group_target_assignment("g", "x", {}), consumer_group_target_assignment_tombstone("g", "x")),
        (consumer_group_target_assignment_epoch("g", 2), consumer_group_target_assignment_epoch_tombstone("g")),
        (consumer_group_member_subscription("g", "x"), consumer_group_member_subscription_tombstone("g", "x")),
        (consumer_group_current_assignment("g", "x", epoch=2), consumer_group_current_assignment_tombstone("g", "x")),
    ):
        unclean = (
            at(0, consumer_group_epoch("g", 2), left),
            at(1, consumer_group_epoch_tombstone("g"), new_group_metadata("g")),
        )

        assert 1 == history(*unclean).replayed().view("g")["migration"]["leftovers"]
        clean = history(*unclean, at(2, ended)).replayed()
        assert 0 == clean.view("g")["migration"]["leftovers"]
        assert clean.states["g"].membership.modern is None


def test_left_over_records_are_counted_until_the_last() -> None:
    """One of two has ended: a broker downgrade would still meet the other."""
    reported = history(
        at(0, *(consumer_group_regular_expression("g", regex, []) for regex in ("rx-1", "rx-2"))),
        at(1, *consumer_group_deleted("g"), new_group_metadata("g")),
        at(2, consumer_group_regular_expression_tombstone("g", "rx-1")),
    ).replayed()

    assert 1 == reported.view("g")["migration"]["leftovers"]
    assert [{"leftover_records": 2, "record_types": {"16": 2}}] == reported.details("downgrade_unclean")


def test_left_over_records_are_reported_when_reading_has_caught_up() -> None:
    """In a log being caught up with, a tombstone may only be further on."""
    moments = (*REGEX_LEFT, _unclean())
    end = len(history(*moments))

    caught_up_with = history(*moments).replayed(live_from=end)
    later = history(*moments, at(3_000, group_metadata("g", generation=1, members=[member("c", {"t": [0]})]))).replayed(
        live_from=end
    )

    assert [] == caught_up_with.details("downgrade_unclean")
    assert caught_up_with.states["g"].withheld
    assert [{"leftover_records": 1, "record_types": {"16": 1}}] == later.details("downgrade_unclean")


def test_classic_record_over_live_consumer_records_makes_a_classic_group() -> None:
    """The last word counts: a downgrade without its tombstones is one all the same, and all of it is left over."""
    reported = history(
        at(0, *consumer_join("g", "n1", epoch=2, targets={"n1": {"t": [0]}})),
        at(1_000, group_metadata("g", generation=3, members=[member("c", {"t": [0]})])),
    ).replayed()

    assert ("classic", "Stable 3", {"c": {"t": [0]}}) == (
        reported.view("g")["type"],
        reported.status("g"),
        reported.owners("g"),
    )
    assert 5 == reported.view("g")["migration"]["leftovers"]
    types = {"3": 1, "5": 1, "6": 1, "7": 1, "8": 1}
    assert [{"leftover_records": 5, "record_types": types}] == reported.details("downgrade_unclean")


def test_consumer_records_over_a_live_classic_record_make_a_consumer_group() -> None:
    """A classic group whose tombstone is missing, as a log read while it is cleaned may show."""
    reported = history(
        at(0, group_metadata("g", generation=3, members=[member("c", {"t": [0]})])),
        at(1_000, *consumer_join("g", "n1", epoch=4, targets={"n1": {"t": [0]}})),
    ).replayed()

    assert ("consumer", "Stable 4/4", {"n1": {"t": [0]}}) == (
        reported.view("g")["type"],
        reported.status("g"),
        reported.owners("g"),
    )
    assert 0 == reported.view("g")["migration"]["leftovers"]


def test_epochs_tombstone_ends_the_group_whatever_else_is_live() -> None:
    """A member whose tombstones are missing is not a member of the group that comes next."""
    reported = history(
        at(0, *consumer_join("g", "n1", epoch=2, targets={"n1": {"t": [0]}})),
        at(1_000, consumer_group_epoch_tombstone("g")),
        at(2_000, consumer_group_epoch("g", 2)),
    ).replayed()

    assert [] == reported.view("g")["members"]
    assert "Empty 2/1" == reported.status("g")


def test_downgraded_group_that_only_commits_afterwards_is_classic() -> None:
    """Its members' record is gone, its offsets are not: nothing is left to have been downgraded."""
    reported = history(
        *REGEX_LEFT[:1],
        at(1_000, *consumer_leave("g", "n1", epoch=3), offset_commit("g", "t", 0, 5)),
        at(2_000, *consumer_group_deleted("g"), new_group_metadata("g")),
        at(3_000, group_metadata_tombstone("g")),
    ).replayed()

    assert (True, "classic") == (reported.view("g")["simple"], migration(reported)[0])


def test_roll_that_begins_again_is_measured_from_there() -> None:
    """How far a former roll of the group got says nothing about where the next one is going."""
    both = at(
        9_000,
        *consumer_join("g", "n9", epoch=21, targets={"n9": {}}),
        *consumer_join("g", "c9", epoch=22, targets={"c9": {}}, classic=speaks_classic()),
    )
    reported = history(
        *UPGRADED[:4],
        at(5_000, *consumer_leave("g", "c2", "n1", "n2", epoch=20)),
        both,
        at(9_500, *consumer_join("g", "c8", epoch=23, targets={"c8": {}}, classic=speaks_classic())),
    ).replayed()

    assert ("upgrading", 3, 1, 9_000) == migration(reported)


# -- other families ---------------------------------------------------------------------------------------------------


def test_empty_streams_group_becomes_classic_and_back() -> None:
    """They convert when empty, like consumer groups; it is not an upgrade to the consumer protocol."""
    reported = history(
        at(
            0,
            streams_group_member("g", "s"),
            streams_group_topology("g", 0, {"sub": ["t"]}),
            streams_group_epoch("g", 2),
            streams_group_target_assignment("g", "s", active={"sub": [0]}),
            streams_group_target_assignment_epoch("g", 2),
            streams_group_current_assignment("g", "s", epoch=2, active={"sub": [0]}),
        ),
        at(1_000, *streams_group_deleted("g", ["s"]), new_group_metadata("g")),
        at(2_000, group_metadata("g", generation=1)),
        at(3_000, group_metadata_tombstone("g"), streams_group_epoch("g", 2)),
    ).replayed()

    assert "streams" == reported.view("g")["type"]
    assert [] == migration_kinds(reported)
    assert {} == reported.alarms()


@pytest.mark.parametrize(
    ("protocol", "joins"),
    [
        ("share", share_join("g", "s", epoch=2, targets={"s": {"t": [0]}})),
        (
            "streams",
            [
                streams_group_member("g", "s"),
                streams_group_epoch("g", 2, validated_topology_epoch=0),
                streams_group_target_assignment("g", "s", active={"0": [0]}),
                streams_group_target_assignment_epoch("g", 2),
                streams_group_current_assignment("g", "s", epoch=2, active={"0": {0: 2}}),
            ],
        ),
    ],
)
def test_members_of_a_share_or_streams_group_are_of_its_own_protocol(protocol: str, joins: list[RecordBytes]) -> None:
    """All of them: there is no such group in the classic protocol, and none is upgraded to its own."""
    reported = history(at(0, *joins)).replayed()

    assert (None, 1, 1, None) == migration(reported)
    assert [protocol] == [of["protocol"] for of in reported.details("member_joined")]
    assert [] == migration_kinds(reported)


def test_upgrade_of_a_group_that_never_completed_a_round_is_online() -> None:
    """Its members have joined and nothing was written of them; they come with the conversion, with nothing assigned."""
    reported = history(
        at(0, new_group_metadata("g")),
        at(
            1_000,
            *converted_to_consumer("g", generation=1, members={"c": {}}),
            *consumer_join("g", "n", epoch=2, targets={"n": {"t": [1]}, "c": {"t": [0]}}),
        ),
    ).replayed()

    assert ("upgrading", 2, 1, 1_000) == migration(reported)
    assert [{"online": True, "members": 2, "upgraded_members": 1, "members_before": 1}] == reported.details(
        "upgrade_started"
    )
    assert [] == reported.details("upgrade_completed")
