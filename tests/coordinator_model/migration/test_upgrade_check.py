"""What is the same before and after an online upgrade, compared: epoch, members, assignments and committed offsets.

Families of simulated histories: those that must be reported, and lawful ones that look like them and must not.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from coordinator_model.state.events import Event
from lab.builders import (
    SESSION_TIMEOUT_MS,
    RecordBytes,
    consumer_group_current_assignment,
    group_metadata,
    member,
    offset_commit,
    topic_id,
)
from lab.coordinator_events import (
    consumer_join,
    converted_to_classic,
    converted_to_consumer,
    speaks_classic,
    static_returns,
)
from tests.histories import Reported, at, history
from tests.side_by_side import Scene, kinds
from tests.simulator import faults

SEEDS: Final = range(20)
ASSIGNORS: Final = ("range", "sticky", "cooperative-sticky")

WRONG: Final = {
    "epoch_before": ["epoch"],
    "epoch_after": ["epoch"],
    "member": ["members"],
    "assignments": ["assignments"],
    "moved": ["assignments"],
    "offsets": ["offsets"],
}
"""What the coordinator forgets (`faults.convert_uncleanly`) → what is reported to be wrong."""


def scene_of(seed: int) -> Scene:
    """Two or three classic members that commit, dynamic or static, of any assignor."""
    chance = Random(seed)
    scene = Scene(seed, chance.choice(ASSIGNORS))
    scene.classic_members(chance.randint(2, 3), static=chance.random() < 0.3)
    scene.coordinator.commit(scene.group, {("t", 0): 100, ("t", 1): 200})
    scene.traffic()
    return scene


def unclean(scene: Scene) -> list[dict[str, Any]]:
    """Details of what is reported of the victim's upgrades, and that nothing else is."""
    events, _ = scene.reported()
    assert {"upgrade_unclean"} >= kinds(events).keys()
    return [dict(of.detail) for of in events if of.kind == "upgrade_unclean"]


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_upgrade_that_loses_or_moves_something_is_reported_once(seed: int, what: str) -> None:
    """Begun at another epoch than the generation, a member or offset lost, partitions lost or moved."""
    scene = scene_of(seed)
    faults.convert_uncleanly(scene.coordinator, scene.group, what)
    scene.traffic()
    scene.coordinator.settle(scene.group)

    (detail,) = unclean(scene)

    assert WRONG[what] == detail["wrong"]


def upgrades(scene: Scene) -> None:
    scene.consumer_members(2)


def upgrades_offline(scene: Scene) -> None:
    scene.coordinator.leave(scene.group, *list(scene.group.members.values()))
    scene.traffic()
    scene.consumer_members(2)


def upgrades_while_a_member_joins(scene: Scene) -> None:
    scene.coordinator.join_classic(scene.group, syncs=False)
    scene.consumer_members(1)


def upgrades_after_a_lost_round(scene: Scene) -> None:
    scene.coordinator.lose_round(scene.group)
    scene.consumer_members(1)


def upgrades_in_place(scene: Scene) -> None:
    scene.coordinator.leave(scene.group, *list(scene.group.members.values()))
    scene.classic_members(2, static=True)
    for former in list(scene.group.members.values()):
        scene.coordinator.come_back(scene.group, former)
        scene.coordinator.settle(scene.group)


def upgrades_after_its_topic_was_made_again(scene: Scene) -> None:
    scene.coordinator.recreate("t", 4)
    scene.coordinator.rebalance(scene.group)
    scene.consumer_members(1)


def upgrades_and_goes_back_and_upgrades(scene: Scene) -> None:
    for _ in range(2):
        scene.consumer_members(1)
        scene.coordinator.leave(scene.group, *[of for of in scene.group.members.values() if not of.classic])
        scene.traffic()
    scene.consumer_members(1)


def offsets_expire_later(scene: Scene) -> None:
    scene.consumer_members(1)
    scene.coordinator.recreate("t", 6)
    scene.coordinator.settle(scene.group)


LAWFUL: Final[list[Callable[[Scene], None]]] = [
    upgrades,
    upgrades_offline,
    upgrades_while_a_member_joins,
    upgrades_after_a_lost_round,
    upgrades_in_place,
    upgrades_after_its_topic_was_made_again,
    upgrades_and_goes_back_and_upgrades,
    offsets_expire_later,
]


@pytest.mark.parametrize("script", LAWFUL, ids=lambda script: script.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_lawful_upgrade_is_clean(seed: int, script: Callable[[Scene], None]) -> None:
    """Online or offline, while a round is under way, by static members in place, after a downgrade, of a new topic."""
    scene = scene_of(seed)

    script(scene)
    events, _ = scene.reported()

    assert [] == [of.detail for of in events if of.kind == "upgrade_unclean"]
    assert "upgrade_completed" in {of.kind for of in events} or "upgrade_started" in {of.kind for of in events}


# -- word for word ----------------------------------------------------------------------------------------------------

CLASSIC: Final = at(
    0,
    group_metadata("g", generation=5, members=[member("a", {"t": [0, 1]}), member("b", {"t": [2], "u": [0]})]),
    offset_commit("g", "t", 0, 7),
)


def upgraded(members: dict[str, dict[str, list[int]]], *, generation: int = 5, live_from: int = 0) -> Reported:
    """The group as it was carried over, and the first upgraded member."""
    converted = converted_to_consumer("g", generation=generation, members=members)
    joined = consumer_join(
        "g", "n", epoch=generation + 1, targets={"n": {"t": [0]}}, assigned={}, server_assignor="uniform"
    )
    return history(CLASSIC, at(9_000, *converted, *joined)).replayed(live_from=live_from)


def test_upgrade_names_both_assignors_and_what_was_kept() -> None:
    """The classic group's assignor, and the server assignor that members prefer."""
    reported = upgraded({"a": {"t": [0, 1]}, "b": {"t": [2], "u": [0]}})

    (started,) = reported.details("upgrade_started")
    assert {"assignor_before": "range", "assignor_after": "uniform", "generation": 5, "first_epoch": 5} == {
        key: started[key] for key in ("assignor_before", "assignor_after", "generation", "first_epoch")
    }
    assert (True, 1) == (started["assignments_kept"], started["offsets"])
    assert [] == reported.details("upgrade_unclean")
    shown = reported.view("g")["migration"]["upgrade"]
    assert (9_000, 5, 5, "range", "uniform", [], [], [], {}) == tuple(shown.values())


def test_unclean_upgrade_says_in_what() -> None:
    """Who was not carried over is inferred: it may have left just then; what moved is not."""
    lost = upgraded({"a": {"t": [0, 1]}})
    moved = upgraded({"a": {"t": [0]}, "b": {"t": [1, 2], "u": [0]}}, generation=3)

    (missing,) = (of for of in lost.events if of.kind == "upgrade_unclean")
    assert [False] == [of["assignments_kept"] for of in lost.details("upgrade_started")]
    assert (True, "info", ["members"], ["b"]) == (
        missing.inferred,
        missing.severity,
        missing.detail["wrong"],
        missing.detail["members_not_carried_over"],
    )
    (other,) = (of for of in moved.events if of.kind == "upgrade_unclean")
    assert (False, "warning", ["epoch", "assignments"], ["a", "b"]) == (
        other.inferred,
        other.severity,
        other.detail["wrong"],
        other.detail["members_with_other_partitions"],
    )


@pytest.mark.parametrize(
    ("epoch", "carried", "found"),
    [
        pytest.param(6, {"a": {"t": [0, 1]}}, (True, "info", ["epoch", "members"]), id="the next round, one left"),
        pytest.param(7, {"a": {"t": [0, 1]}}, (False, "warning", ["epoch", "members"]), id="no round is two later"),
        pytest.param(4, {"a": {"t": [0, 1]}}, (False, "warning", ["epoch", "members"]), id="nor is one earlier"),
        pytest.param(6, {"a": {"t": [0, 1]}, "b": {"t": [2], "u": [0]}}, (False, "warning", ["epoch"]), id="none left"),
    ],
)
def test_next_epoch_without_a_member_is_a_round_that_it_left_in(
    epoch: int, carried: dict[str, dict[str, list[int]]], found: tuple[bool, str, list[str]]
) -> None:
    """One leaves, the others have rejoined, and a member converts the group before the leader has sent assignments."""
    (event,) = (of for of in upgraded(carried, generation=epoch).events if of.kind == "upgrade_unclean")

    assert found == (event.inferred, event.severity, event.detail["wrong"])


STATIC: Final = at(
    0,
    group_metadata(
        "g", generation=5, members=[member("a", {"t": [0]}), member("b", {"t": [1]}, instance_id="i")], timestamp=0
    ),
)


def upgraded_static(at_ms: int, *joined: RecordBytes, carried: dict[str, dict[str, list[int]]]) -> list[Event]:
    """What is said of the upgrade of a dynamic and a static member, both with a session of 45 s."""
    converted = converted_to_consumer("g", generation=5, members=carried)
    reported = history(STATIC, at(at_ms, *converted, *joined)).replayed()
    return [of for of in reported.events if of.kind == "upgrade_unclean"]


@pytest.mark.parametrize(
    ("at_ms", "found"), [(SESSION_TIMEOUT_MS - 1, (False, "warning")), (SESSION_TIMEOUT_MS, (True, "info"))]
)
def test_static_member_is_missing_for_a_reason_only_once_its_session_may_have_ended(
    at_ms: int, found: tuple[bool, str]
) -> None:
    """A static member that stops stays in its group until its session ends: one that is missing earlier was lost."""
    joined = consumer_join("g", "n", epoch=6, targets={"n": {"t": [1]}}, assigned={}, server_assignor="uniform")

    (event,) = upgraded_static(at_ms, *joined, carried={"a": {"t": [0]}})

    assert (*found, ["i"]) == (event.inferred, event.severity, event.detail["members_not_carried_over"])


def test_static_member_that_comes_after_its_session_is_a_new_one() -> None:
    """A pod away for longer than its session converts the group, and gets other partitions: it moved from no one."""
    joined = consumer_join("g", "n", epoch=6, targets={"n": {"t": [0]}, "a": {"t": [1]}}, instance_id="i")

    (event,) = upgraded_static(191_000, *joined, carried={"a": {"t": [0]}})

    assert (True, "info", ["members"]) == (event.inferred, event.severity, event.detail["wrong"])
    assert (["i"], []) == (event.detail["members_not_carried_over"], event.detail["members_with_other_partitions"])


def test_static_member_that_is_upgraded_in_its_session_is_judged_by_what_its_former_id_was_given() -> None:
    """It takes over what was carried over under its former id, or that is an alarm."""
    replaced = static_returns("g", old="b", new="n", instance_id="i", epoch=5, assigned={"t": [1]})

    clean = upgraded_static(9_000, *replaced, carried={"a": {"t": [0]}, "b": {"t": [1]}})
    (moved,) = upgraded_static(9_000, *replaced, carried={"a": {"t": [1]}, "b": {"t": [0]}})

    assert [] == clean
    assert ("warning", ["assignments"], ["a", "i"]) == (
        moved.severity,
        moved.detail["wrong"],
        moved.detail["members_with_other_partitions"],
    )


def test_topic_that_nobody_has_any_more_was_deleted() -> None:
    """Where other topics are carried over; where nothing is, it was lost."""
    assert [] == upgraded({"a": {"t": [0, 1]}, "b": {"t": [2]}}).details("upgrade_unclean")
    assert ["assignments"] == upgraded({"a": {}, "b": {}}).details("upgrade_unclean")[0]["wrong"]


def test_upgrade_before_the_live_tail_is_not_judged() -> None:
    """The log may have been cleaned while it was read."""
    assert [] == upgraded({"a": {"t": [0, 1]}}, live_from=1_000).details("upgrade_unclean")


def test_members_that_had_rejoined_explain_what_the_log_lacks() -> None:
    """Their subscriptions name the generation itself: a round was under way, which is written when it is over."""
    rejoined = speaks_classic(["t"], generation_id=5)
    reported = history(
        CLASSIC,
        at(
            9_000,
            *converted_to_consumer("g", generation=6, members={"a": {"t": [0, 1]}}, classic=rejoined),
            *consumer_join("g", "n", epoch=7, targets={"n": {"t": [0]}}, assigned={}),
        ),
    ).replayed()

    assert [] == reported.details("upgrade_unclean")


@pytest.mark.parametrize(("claimed", "wrong"), [(3, [["epoch"]]), (-1, [])])
def test_member_that_had_rejoined_as_if_it_were_new_explains_a_later_epoch(claimed: int, wrong: list[Any]) -> None:
    """Its subscription names no generation, where that of the last round did: it has joined again since."""
    reported = history(
        at(0, group_metadata("g", generation=6, members=[member("a", {"t": [0]}, owned_generation=3)])),
        at(
            9_000,
            *converted_to_consumer(
                "g",
                generation=7,
                members={"a": {"t": [0]}},
                classic=speaks_classic(["t"], generation_id=claimed),
            ),
            *consumer_join("g", "n", epoch=8, targets={"n": {}}, assigned={}),
        ),
    ).replayed()

    assert wrong == [of["wrong"] for of in reported.details("upgrade_unclean")]


@pytest.mark.parametrize(("completed", "wrong"), [(False, []), (True, [["epoch"]])])
def test_round_that_a_downgrade_begins_explains_a_later_epoch(completed: bool, wrong: list[Any]) -> None:
    """Until a generation is complete the log still has the one that the downgrade wrote."""
    member_a = {"a": {"t": [0]}}
    joined = consumer_join("g", "n", epoch=6, targets={**member_a, "n": {"t": [1]}}, assigned={})
    back = converted_to_classic("g", all_members=["a", "n"], generation=6, remaining=member_a)
    since = [group_metadata("g", generation=7, members=[member("a", {"t": [0]})])] if completed else []
    again = 8 if completed else 7

    reported = history(
        at(0, group_metadata("g", generation=5, members=[member("a", {"t": [0]})])),
        at(1_000, *converted_to_consumer("g", generation=5, members=member_a), *joined),
        at(20_000, *back),
        at(30_000, *since),
        at(40_000, *converted_to_consumer("g", generation=again, members=member_a)),
        at(40_000, *consumer_join("g", "m", epoch=again + 1, targets={"m": {}}, assigned={})),
    ).replayed()

    assert wrong == [of["wrong"] for of in reported.details("upgrade_unclean")]


def test_member_that_is_carried_over_by_half_did_not_leave() -> None:
    """Of a member that left nothing is written. This one has metadata and a target, and no current assignment."""
    *converted, last = converted_to_consumer("g", generation=5, members={"a": {"t": [0, 1]}, "b": {"t": [2], "u": [0]}})
    joined = consumer_join("g", "n", epoch=6, targets={"n": {"t": [0]}}, assigned={})

    reported = history(CLASSIC, at(9_000, *converted, *joined)).replayed()

    assert last == consumer_group_current_assignment("g", "b", epoch=5, assigned={"t": [2], "u": [0]})
    (event,) = (of for of in reported.events if of.kind == "upgrade_unclean")
    assert (False, "warning", ["b"]) == (event.inferred, event.severity, event.detail["members_not_carried_over"])


@pytest.mark.parametrize(("known", "expected"), [({}, 0), ({"t": topic_id("t"), "u": topic_id("u")}, 1)])
def test_partitions_of_one_topic_for_those_of_another(known: dict[str, str], expected: int) -> None:
    """The log names both topics before the upgrade, and both ids after it, and may not say which is which."""
    classic = group_metadata("g", generation=5, members=[member("a", {"t": [0, 1]}), member("b", {"u": [0, 1]})])
    converted = converted_to_consumer("g", generation=5, members={"a": {"u": [0, 1]}, "b": {"t": [0, 1]}})
    joined = consumer_join("g", "n", epoch=6, targets={"n": {}}, assigned={})

    reported = history(at(0, classic), at(9_000, *converted, *joined)).replayed(topic_ids=known)

    assert [["assignments"]] * expected == [of["wrong"] for of in reported.details("upgrade_unclean")]
