"""Members on the classic protocol in a consumer group, as KIP-848 lets the coordinator drive each of them on its own.

The history is a roll of two classic members, c1 and c2, that begins with the first upgraded one, n1.
"""

from typing import Any

import pytest

from coordinator_model.records.consumer_group import ClassicMemberMetadata
from coordinator_model.views.group_view import group_view
from lab.builders import (
    REBALANCE_TIMEOUT_MS,
    classic_member_metadata,
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_member_subscription,
    group_metadata,
    member,
    subscription,
)
from lab.coordinator_events import (
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_classic,
    converted_to_consumer,
    retarget,
    speaks_classic,
    static_returns,
)
from tests.histories import TOPIC_NAMES, Reported, at, history

COOPERATIVE = classic_member_metadata(cooperative_sticky=subscription(["t"], owned={"t": [2, 3]}, generation_id=7))
REVOKED = classic_member_metadata(cooperative_sticky=subscription(["t"], owned={"t": [2]}, generation_id=7))

CLASSIC = at(0, group_metadata("g", generation=7, members=[member("c1", {"t": [0, 1]}), member("c2", {"t": [2, 3]})]))
FIRST_UPGRADES = at(
    1_000,
    *converted_to_consumer("g", generation=7, members={"c1": {"t": [0, 1]}, "c2": {"t": [2, 3]}}),
    *consumer_join("g", "n1", epoch=8, targets={"n1": {"t": [3]}, "c1": {"t": [0, 1]}, "c2": {"t": [2]}}, assigned={}),
)
C2_REJOINS = at(
    4_000,
    consumer_group_member_subscription("g", "c2", classic=COOPERATIVE),
    *consumer_moves("g", "c2", epoch=7, state=1, assigned={"t": [2]}, pending={"t": [3]}),
)
C2_REVOKED = at(
    6_000,
    consumer_group_member_subscription("g", "c2", classic=REVOKED),
    *consumer_moves("g", "c2", epoch=8, previous_epoch=7, assigned={"t": [2]}),
)


def progress(reported: Reported, member_id: str, *, now_ms: int | None = None) -> dict[str, Any]:
    """What is shown of a classic member, at the last record or later."""
    state = reported.states["g"]
    (found,) = (of for of in group_view(state, (), TOPIC_NAMES, now_ms)["members"] if of["member_id"] == member_id)
    return dict(found["classic_protocol"])


def machine(reported: Reported, member_id: str, *, now_ms: int | None = None) -> tuple[str, bool, str]:
    """State, whether it is inferred, and situation of a classic member."""
    shown = progress(reported, member_id, now_ms=now_ms)
    return shown["state"], shown["inferred"], shown["situation"]


# -- the machine ------------------------------------------------------------------------------------------------------


def test_conversion_asks_every_classic_member_to_rejoin() -> None:
    """The group epoch has moved on and theirs have not: their heartbeats are answered with REBALANCE_IN_PROGRESS."""
    reported = history(CLASSIC, FIRST_UPGRADES).replayed()

    assert ("PrepareRebalance", False, "behind") == machine(reported, "c1")
    assert ("PrepareRebalance", False, "behind") == machine(reported, "c2", now_ms=600_000)
    assert 1_000 == progress(reported, "c2")["since"]


def test_member_on_the_consumer_protocol_has_no_such_state() -> None:
    """No one translates for it."""
    reported = history(CLASSIC, FIRST_UPGRADES).replayed()

    assert "classic_protocol" not in reported.member("g", "n1")
    assert "classic_protocol" in reported.member("g", "c1")
    assert "classic_protocol" not in history(CLASSIC).replayed().member("g", "c1")


def test_cooperative_member_revokes_and_rejoins_twice() -> None:
    """It keeps assigned ∩ target, gives up the rest, and comes back for its new epoch."""
    reported = history(CLASSIC, FIRST_UPGRADES, C2_REJOINS).replayed()
    shown = progress(reported, "c2")

    assert ("CompletingRebalance", True, "revoking") == machine(reported, "c2")
    assert ("PrepareRebalance", False, "revoking") == machine(reported, "c2", now_ms=7_001)
    assert ({"t": [2]}, {"t": [3]}, {}) == (shown["keeps"], shown["revokes"], shown["waits_for"])
    assert ("cooperative", False, 4_000) == (
        shown["rebalance_protocol"],
        shown["rebalance_protocol_inferred"],
        shown["since"],
    )

    settled = history(CLASSIC, FIRST_UPGRADES, C2_REJOINS, C2_REVOKED).replayed()

    assert ("CompletingRebalance", True, "settled") == machine(settled, "c2")
    assert ("Stable", True, "settled") == machine(settled, "c2", now_ms=9_001)
    assert {} == progress(settled, "c2")["revokes"]


def test_stable_is_known_once_a_member_that_had_not_synced_would_be_gone() -> None:
    """A sync is not written; the removal of who does not sync within its rebalance timeout is."""
    reported = history(CLASSIC, FIRST_UPGRADES, C2_REJOINS, C2_REVOKED).replayed()

    assert ("Stable", True) == machine(reported, "c2", now_ms=6_000 + REBALANCE_TIMEOUT_MS)[:2]
    assert ("Stable", False) == machine(reported, "c2", now_ms=6_001 + REBALANCE_TIMEOUT_MS)[:2]


def test_member_waits_for_what_others_have_yet_to_give_up() -> None:
    """It is at its epoch with what is free, and is not asked to rejoin until the rest is; then it is."""
    swap = at(
        9_000,
        consumer_group_epoch("g", 9),
        *retarget("g", 9, {"c1": {"t": [0, 3]}, "c2": {"t": [1, 2]}, "n1": {}}),
        *consumer_moves("g", "c1", epoch=9, state=2, assigned={"t": [0]}),
    )
    n1_has_it = at(8_000, *consumer_moves("g", "n1", epoch=8, assigned={"t": [3]}))
    base = (CLASSIC, FIRST_UPGRADES, C2_REJOINS, C2_REVOKED, n1_has_it, swap)
    waiting = history(*base).replayed()
    released = history(*base, at(10_000, *consumer_moves("g", "n1", epoch=9, assigned={}))).replayed()

    assert ("Stable", True, "waiting") == machine(waiting, "c1", now_ms=13_000)
    assert {"n1": {"t": [3]}} == progress(waiting, "c1")["waits_for"]
    assert ("PrepareRebalance", False, "behind") == machine(waiting, "c2")
    assert ("PrepareRebalance", False, "released") == machine(released, "c1")
    assert (10_000, {}) == (progress(released, "c1")["since"], progress(released, "c1")["waits_for"])


def test_pending_revocation_of_another_member_is_waited_for() -> None:
    """What a member has yet to give up is not free."""
    reported = history(
        CLASSIC,
        FIRST_UPGRADES,
        C2_REJOINS,
        at(
            5_000,
            *retarget("g", 8, {"c1": {"t": [0, 1, 3]}}),
            *consumer_moves("g", "c1", epoch=8, previous_epoch=7, state=2, assigned={"t": [0, 1]}),
        ),
    ).replayed()

    assert {"c2": {"t": [3]}} == progress(reported, "c1")["waits_for"]


def test_member_whose_group_waits_for_a_target_is_asked_to_rejoin_by_old_brokers_only() -> None:
    """Since KIP-1263 the target may come later than the epoch; what a heartbeat then says depends on the release."""
    reported = history(
        CLASSIC, FIRST_UPGRADES, C2_REJOINS, C2_REVOKED, at(9_500, *consumer_leave("g", "n1", "c1", epoch=9))
    ).replayed()

    assert ("PrepareRebalance", True, "awaiting_target") == machine(reported, "c2")


def test_sync_of_a_member_that_was_left_behind_is_refused() -> None:
    """The group moved on right after it rejoined: it has to rejoin, not to sync."""
    reported = history(
        CLASSIC,
        FIRST_UPGRADES,
        C2_REJOINS,
        C2_REVOKED,
        at(6_500, *consumer_join("g", "n2", epoch=9, targets={"n2": {"t": [2]}, "c2": {}}, assigned={})),
    ).replayed()

    assert ("PrepareRebalance", False, "behind") == machine(reported, "c2")


def test_replacement_of_a_static_member_asks_nobody_to_rejoin() -> None:
    """No epoch moved: the other classic member stays as it was, which records do not show to have synced."""
    reported = history(
        at(
            0,
            group_metadata(
                "g",
                generation=7,
                members=[member("c1", {"t": [0]}, instance_id="i"), member("c2", {"t": [1]}, instance_id="j")],
            ),
        ),
        at(
            1_000,
            *converted_to_consumer(
                "g", generation=7, members={"c1": {"t": [0]}, "c2": {"t": [1]}}, instance_ids={"c1": "i", "c2": "j"}
            ),
            *static_returns("g", old="c1", new="n1", instance_id="i", epoch=7, assigned={"t": [0]}),
        ),
    ).replayed()

    assert ("Stable", True, "settled") == machine(reported, "c2")
    assert ("Stable", True, "settled") == machine(reported, "c2", now_ms=10**9)


def test_classic_member_that_joins_a_consumer_group_has_rejoined_then() -> None:
    """The way down: its first JoinGroup is what its records show."""
    reported = history(
        at(0, *consumer_join("g", "n1", epoch=2, targets={"n1": {"t": [0, 1]}})),
        at(
            1_000,
            *consumer_join(
                "g", "c1", epoch=3, targets={"c1": {"t": [1]}, "n1": {"t": [0]}}, assigned={}, classic=speaks_classic()
            ),
        ),
    ).replayed()

    assert ("CompletingRebalance", True, "waiting") == machine(reported, "c1")
    assert ("Stable", True, "waiting") == machine(reported, "c1", now_ms=4_001)
    assert {"n1": {"t": [1]}} == progress(reported, "c1")["waits_for"]


def test_unknown_member_state_is_not_guessed_at() -> None:
    """A state of a newer broker, or a member of whom a compacted log holds the metadata alone."""
    newer = history(
        CLASSIC,
        FIRST_UPGRADES,
        at(2_000, consumer_group_current_assignment("g", "c1", epoch=7, state=9, assigned={"t": [0]})),
    ).replayed()
    metadata_alone = history(
        at(0, consumer_group_member_subscription("g", "c1", classic=speaks_classic()), consumer_group_epoch("g", 5))
    ).replayed()

    assert ("Unknown", True, "unknown") == machine(newer, "c1")
    assert ("Unknown", True, "unknown") == machine(metadata_alone, "c1")


def test_nothing_is_remembered_of_a_group_that_is_classic_again() -> None:
    """Nor of a member that has gone."""
    gone = history(CLASSIC, FIRST_UPGRADES, at(2_000, *consumer_leave("g", "c1", epoch=9))).replayed()
    back = history(
        CLASSIC,
        FIRST_UPGRADES,
        at(
            2_000,
            *converted_to_classic(
                "g", all_members=["c1", "c2", "n1"], generation=9, remaining={"c1": {"t": [0, 1]}, "c2": {"t": [2]}}
            ),
        ),
    ).replayed()

    assert {"c2"} == gone.states["g"].migration.classic_members.keys()
    assert {} == back.states["g"].migration.classic_members


@pytest.mark.parametrize("size", [1, 3, 7])
def test_machine_is_the_same_whatever_the_batches(size: int) -> None:
    """When a member joined and since when it waits survive a checkpoint at any record."""
    log = history(CLASSIC, FIRST_UPGRADES, C2_REJOINS, C2_REVOKED)
    whole = log.replayed()
    pieces = log.replayed_in_batches([size] * (len(log) // size))

    assert whole.states["g"].migration.classic_members == pieces.states["g"].migration.classic_members
    assert whole.view("g") == pieces.view("g")


# -- eager or cooperative ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "expected", "inferred"),
    [
        # What a member claims to own is evidence: an eager one has revoked everything before it joins.
        (classic_member_metadata(cooperative_sticky=subscription(owned={"t": [0]})), "cooperative", False),
        (classic_member_metadata(own=subscription(owned={"t": [0]})), "cooperative", False),
        # Names are not: of several assignors the client does what all of them can.
        (classic_member_metadata(range=subscription()), "eager", True),
        (classic_member_metadata(range=subscription(), cooperative_sticky=subscription()), "eager", True),
        (classic_member_metadata(own=subscription(), roundrobin=subscription()), "eager", True),
        (classic_member_metadata(cooperative_sticky=subscription()), "cooperative", True),
        (classic_member_metadata(own=subscription()), None, False),
        (classic_member_metadata(own=subscription(), cooperative_sticky=subscription()), None, False),
        (classic_member_metadata(own=b"?"), None, False),
    ],
)
def test_rebalance_protocol_of_a_member(metadata: ClassicMemberMetadata, expected: str | None, inferred: bool) -> None:
    """By what it claimed to own, else by the names of its assignors, else not known."""
    reported = history(at(0, *_joins(metadata))).replayed()
    shown = progress(reported, "c1")

    assert (expected, inferred) == (shown["rebalance_protocol"], shown["rebalance_protocol_inferred"])


def test_user_data_of_the_sticky_assignor_is_no_claim_of_a_cooperative_member() -> None:
    """The sticky assignor remembers what its member owned before it revoked all of it."""
    remembers = b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\0\0\0\7"
    metadata = classic_member_metadata(sticky=subscription(user_data=remembers))
    shown = progress(history(at(0, *_joins(metadata))).replayed(), "c1")

    assert ("eager", True, ["sticky"], 3) == (
        shown["rebalance_protocol"],
        shown["rebalance_protocol_inferred"],
        shown["assignors"],
        shown["embedded_version"],
    )


def test_embedded_version_is_the_lowest_a_member_joined_with() -> None:
    """None where none of its subscriptions decodes."""
    old = classic_member_metadata(range=subscription(version=1), own=subscription(version=2))
    opaque = classic_member_metadata(own=b"?")

    assert 1 == progress(history(at(0, *_joins(old))).replayed(), "c1")["embedded_version"]
    assert None is progress(history(at(0, *_joins(opaque))).replayed(), "c1")["embedded_version"]


def _joins(metadata: ClassicMemberMetadata) -> list[Any]:
    return consumer_join("g", "c1", epoch=2, targets={"c1": {"t": [0]}}, classic=metadata)
