"""What only time shows, by the clock of a recording: as a running monitor would have found it, and only that.

Families of simulated histories that differ in how long something lasts; and the live tail, before which nothing is an
alarm.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from coordinator_model.clocked.stuck import GRACE_MS, STALLED_MS
from coordinator_model.recording_clock import Looks
from coordinator_model.replica import Replica
from coordinator_model.state.events import INFO, SEVERITIES, Event
from coordinator_model.state.findings import Position
from lab.builders import REBALANCE_TIMEOUT_MS, group_metadata
from tests.coordinator_model.clocked.test_unassigned_partitions import Topic, topics
from tests.coordinator_model.test_family_unsettled import FEW, flap
from tests.coordinator_model.test_simulated_faults import FAULTS, scene_of
from tests.histories import PARTITION, History, at, history
from tests.side_by_side import VICTIM, Scene, log_of
from tests.simulator import faults

SEEDS: Final = range(20)


def played(
    log: History,
    *,
    until_ms: int | None = None,
    live_from: int | None = None,
    written: Sequence[int] | None = None,
    sizes: Mapping[str, Topic] | None = None,
) -> list[Event]:
    """What the replica and the clock of a recording find; `written` are the times of the whole recording's records."""
    tail = {} if live_from is None else {PARTITION: live_from}
    replica, events = Replica(live_from=tail), list[Event]()
    looks = Looks(replica, sizes or {}, tail, written=None if written is None else lambda: written)
    for of in log.records:
        events += looks.before(of.place)
        events += replica.replay(of.place, of.key, of.value)
    return [*events, *replica.settle(), *looks.at_end(until_ms)]


def kinds_of(events: list[Event], *kinds: str) -> list[str]:
    """Which of these kinds were found of the victim, in order."""
    return [of.kind for of in events if of.group == VICTIM and of.kind in kinds and "cleared" not in of.detail]


def holds_back(scene: Scene) -> None:
    """A member is to revoke partitions for another, and does not."""
    scene.consumer_members(2)
    scene.coordinator.join_consumer(scene.group)
    scene.coordinator.lag(5_000)
    for member in list(scene.group.members.values()):
        scene.coordinator.heartbeat(scene.group, member, let_go=False)


def of_the_alarm(events: list[Event], kind: str) -> list[Event]:
    """What is said of it, but for the warning that comes first where there is too little evidence to wake anybody."""
    own = [of for of in events if of.group == VICTIM and of.kind == kind]
    return [of for of in own if of.severity in (SEVERITIES[kind], INFO)]


@pytest.mark.parametrize("too_long", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_rebalance_that_was_stuck_for_a_while_is_found_though_it_went_on(seed: int, too_long: bool) -> None:
    """Nothing is written while it hangs: the time until the next record shows it, and only beyond the timeout."""
    scene, chance = Scene(seed), Random(seed)
    holds_back(scene)
    over = chance.randint(1_000, 3_600_000) if too_long else -chance.randint(60_000, REBALANCE_TIMEOUT_MS - 20_000)
    scene.coordinator.lag(REBALANCE_TIMEOUT_MS + GRACE_MS + over)
    scene.coordinator.settle(scene.group)
    scene.traffic()
    log = log_of(scene.coordinator)

    events = played(log)

    assert ["rebalance_stuck"] * too_long == kinds_of(events, "rebalance_stuck")
    assert [(of.id, of.detail) for of in events] == [(of.id, of.detail) for of in played(log)]


@pytest.mark.parametrize("too_long", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_roll_that_was_left_for_a_while_is_found_though_it_went_on(seed: int, too_long: bool) -> None:
    """Members of both protocols, and for half an hour none comes or goes."""
    scene, chance = Scene(seed), Random(seed)
    scene.classic_members(2)
    scene.consumer_members(1)
    over = chance.randint(1_000, 7_200_000) if too_long else -chance.randint(120_000, STALLED_MS - 60_000)
    scene.coordinator.lag(STALLED_MS + over)
    scene.coordinator.join_consumer(scene.group)
    scene.coordinator.settle(scene.group)

    assert ["migration_stalled"] * too_long == kinds_of(played(log_of(scene.coordinator)), "migration_stalled")


@pytest.mark.parametrize("seed", SEEDS)
def test_time_up_to_which_is_replayed_is_the_time_of_the_last_look(seed: int) -> None:
    """What hangs at the end of a recording is found as of the time that is asked for, not before its timeout."""
    scene = Scene(seed)
    holds_back(scene)
    log = log_of(scene.coordinator)
    last_ms = log.records[-1].place.timestamp_ms

    assert [] == kinds_of(played(log), "rebalance_stuck")
    assert [] == kinds_of(played(log, until_ms=last_ms + REBALANCE_TIMEOUT_MS), "rebalance_stuck")
    late_ms = last_ms + REBALANCE_TIMEOUT_MS + GRACE_MS + 60_000
    assert ["rebalance_stuck"] == kinds_of(played(log, until_ms=late_ms), "rebalance_stuck")


def flaps(scene: Scene, seed: int) -> None:
    """A member comes and goes for half an hour."""
    scene.consumer_members(2)
    scene.coordinator.lag(120_000)
    flap(scene, Random(seed), for_ms=1_500_000, every_ms=4_000)


def storms(scene: Scene, _: int) -> None:
    scene.classic_members(2)
    faults.rebalance_again_and_again(scene.coordinator, scene.group)


def fights(scene: Scene, _: int) -> None:
    scene.classic_members(2, static=True)
    instance_id = next(of.instance_id or "" for of in scene.group.members.values())
    faults.fight(scene.coordinator, scene.group, instance_id, times=9, every_ms=61_000, hosts=("/a", "/b"))


@pytest.mark.parametrize(
    ("script", "kind", "seed"),
    [
        *((flaps, "group_unsettled", seed) for seed in FEW),
        *((storms, "rebalance_storm", seed) for seed in SEEDS),
        *((fights, "static_member_contended", seed) for seed in SEEDS),
    ],
)
def test_alarm_that_lasted_opens_once_and_is_over_once(
    script: Callable[[Scene, int], None], kind: str, seed: int
) -> None:
    """Though nothing is written of the group when it is over, and whatever is written of it a day later."""
    scene = Scene(seed)
    script(scene, seed)
    scene.coordinator.settle(scene.group)
    scene.coordinator.lag(86_400_000)
    scene.coordinator.join_classic(scene.group)
    scene.coordinator.lag(60_000)

    reported = of_the_alarm(played(log_of(scene.coordinator)), kind)
    assert [None, True] == [of.detail.get("cleared") for of in reported]
    assert [SEVERITIES[kind], INFO] == [of.severity for of in reported]
    assert [kind != "group_unsettled"] * 2 == [of.inferred for of in reported]
    assert reported[0].time_ms < reported[1].time_ms < scene.coordinator.now_ms - 80_000_000


@pytest.mark.parametrize("case", [case for case in FAULTS if case[2]], ids=lambda case: str(case[0].__name__))
@pytest.mark.parametrize("seed", range(3))
def test_nothing_before_the_live_tail_is_an_alarm(seed: int, case: tuple[object, str, dict[str, int]]) -> None:
    """Whatever went wrong is long past: that the log was replayed at last must wake no one."""
    script, protocol, expected = case
    scene = scene_of(seed, protocol)
    script(scene)  # type: ignore[operator]  # a script
    log = log_of(scene.coordinator)

    assert [] == [of.kind for of in played(log, live_from=log.end) if of.severity != INFO]
    assert expected.keys() <= {of.kind for of in played(log, live_from=0)}


def loops(scene: Scene, _: int) -> None:
    scene.classic_members(2, static=True)
    faults.flap(scene.coordinator, scene.group, next(iter(scene.group.members.values())), times=20, every_ms=61_000)


LASTING: Final = [
    (fights, "static_member_contended"),
    (loops, "static_member_restarting"),
    (storms, "rebalance_storm"),
]


def of_victim(log: History) -> list[int]:
    """Offsets of its records."""
    return [of.place.offset for of in log.records if VICTIM.encode() in of.key]


@pytest.mark.parametrize(("script", "kind"), LASTING)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_goes_on_into_the_live_tail_is_reported_there(
    seed: int, script: Callable[[Scene, int], None], kind: str
) -> None:
    """A monitor that is started in the middle of it says so: once, and once that it is over."""
    scene = Scene(seed)
    script(scene, seed)
    scene.coordinator.settle(scene.group)
    scene.coordinator.lag(3_600_000)
    scene.coordinator.join_classic(scene.group)
    scene.coordinator.lag(60_000)
    log = log_of(scene.coordinator)
    offsets = of_victim(log)
    cut = offsets[int(len(offsets) * Random(seed).uniform(0.55, 0.75))]

    reported = of_the_alarm(played(log, live_from=cut), kind)

    assert [None, True] == [of.detail.get("cleared") for of in reported]


@pytest.mark.parametrize(("script", "kind"), LASTING)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_over_before_the_live_tail_is_not_reported_there(
    seed: int, script: Callable[[Scene, int], None], kind: str
) -> None:
    """Looks alike: the group remembers it, is written of again within the hour, and is quiet."""
    scene = Scene(seed)
    script(scene, seed)
    scene.coordinator.settle(scene.group)
    scene.coordinator.lag(900_000)
    cut = log_of(scene.coordinator).end
    scene.coordinator.join_classic(scene.group)
    scene.coordinator.lag(1_200_000)
    scene.coordinator.rebalance(scene.group)

    assert [] == [of.kind for of in played(log_of(scene.coordinator), live_from=cut) if of.kind == kind]


@pytest.mark.parametrize("seed", SEEDS)
def test_live_tail_may_begin_anywhere_in_a_lawful_history(seed: int) -> None:
    """In the middle of an event, too: what its other half brings in order is no alarm."""
    scene, chance = Scene(seed), Random(seed)
    scene.classic_members(3)
    scene.consumer_members(3)
    scene.coordinator.leave(scene.group, next(iter(scene.group.members.values())))
    scene.coordinator.settle(scene.group)
    log = log_of(scene.coordinator)

    for cut in chance.sample(of_victim(log), 12):
        reported = [
            of for of in played(log.compacted(cut), live_from=cut) if of.group == VICTIM and of.severity != INFO
        ]
        assert [] == [(of.kind, of.detail) for of in reported]


def stalls(scene: Scene, _: int) -> None:
    scene.classic_members(2)
    scene.consumer_members(1)
    scene.coordinator.lag(STALLED_MS + 60_000)


def waits_in_vain(scene: Scene, _: int) -> None:
    holds_back(scene)
    scene.coordinator.lag(REBALANCE_TIMEOUT_MS + GRACE_MS + 60_000)


DETAILS: Final = {
    "rebalance_stuck": "epoch assignment_epoch waiting_for members rebalancing_ms silent_ms "
    "members.member_id members.instance_id members.client_id members.client_host members.epoch members.late_ms "
    "members.will_not_release members.awaits members.held_by",
    "migration_stalled": "direction members upgraded_members mixed_ms classic_members",
    "group_unsettled": "unsettled_ms epochs epochs_per_minute from_epoch epoch members joined left come_and_go "
    "come_and_go.instance_id come_and_go.client_id come_and_go.client_host come_and_go.joined come_and_go.left",
    "static_member_contended": "instance_id member_ids client_ids client_hosts partitions replacements since",
    "rebalance_storm": "rebalances window_ms members",
}


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (waits_in_vain, "rebalance_stuck"),
        (stalls, "migration_stalled"),
        (flaps, "group_unsettled"),
        (fights, "static_member_contended"),
        (storms, "rebalance_storm"),
    ],
)
def test_details_have_the_keys_that_others_read(script: Callable[[Scene, int], None], kind: str) -> None:
    """Consumers of events read them by these names, and of each whether it is inferred."""
    scene = Scene(1)
    script(scene, 1)
    until_ms = scene.coordinator.now_ms + 30_000

    *_, event = (  # a contention is said again once it is proven
        of
        for of in played(log_of(scene.coordinator), until_ms=until_ms)
        if (of.group, of.kind) == (VICTIM, kind) and "cleared" not in of.detail
    )
    listed = {name: of for name, of in event.detail.items() if isinstance(of, list) and of and isinstance(of[0], dict)}
    inner = {f"{name}.{key}" for name, of in listed.items() for key in of[0]}
    assert set(DETAILS[kind].split()) == {*event.detail, *inner}
    assert event.inferred is (kind != "group_unsettled")


HOUR_MS: Final = 3_600_000
ONLY_LOOKS: Final = ("rebalance_stuck", "migration_stalled", "group_unsettled", "partition_unassigned")


def rolls(seed: int) -> History:
    """A lawful roll, up and half-way down again, that takes a few minutes."""
    scene = Scene(seed)
    scene.classic_members(2)
    scene.consumer_members(2)
    scene.coordinator.leave(scene.group, next(iter(scene.group.members.values())))
    scene.coordinator.settle(scene.group)
    scene.coordinator.join_classic(scene.group)
    scene.coordinator.settle(scene.group)
    scene.traffic()
    return log_of(scene.coordinator)


def set_back(log: History, cuts: tuple[int, int]) -> History:
    """The log as written by a clock that is an hour back between two offsets."""
    records = []
    for of in log.records:
        back_ms = HOUR_MS if of.place.offset in range(*cuts) else 0
        records.append(replace(of, place=of.place._replace(timestamp_ms=of.place.timestamp_ms - back_ms)))
    return replace(log, records=tuple(records))


def of_looks(log: History) -> list[tuple[str, str, int]]:
    """(group, kind, offset) of what looks find."""
    return [(of.group, of.kind, of.offset) for of in played(log) if of.kind in ONLY_LOOKS]


@pytest.mark.parametrize("comes_back", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_clock_that_is_set_back_makes_no_alarm(seed: int, comes_back: bool) -> None:
    """At whatever record it is, for good or for a while: what holds anyhow may be reported, and nothing else."""
    log, chance = rolls(seed), Random(seed)
    held = set(of_looks(log))
    _, *events = sorted({of.place.timestamp_ms: of.place.offset for of in reversed(log.records)}.values())
    for _ in range(12):
        since, until = sorted(chance.sample(events, 2))
        cuts = (since, until if comes_back else log.end)
        assert held >= {*of_looks(set_back(log, cuts))}, cuts


@pytest.mark.parametrize("back_to", ["the old time", "a new time"])
def test_what_hangs_after_the_clock_was_set_back_is_reported_by_the_time_after_it(back_to: str) -> None:
    """What the set-back clock itself counts is believed; a recording only ends earlier by what it went back."""
    scene = Scene(1)
    scene.classic_members(2)
    first = log_of(scene.coordinator).end
    scene.consumer_members(1)
    scene.coordinator.lag(10_000)
    scene.coordinator.join_classic(scene.coordinator.groups["g"])
    last = log_of(scene.coordinator).end
    log = set_back(log_of(scene.coordinator), (first, last if back_to == "a new time" else last - 1))
    end_ms = log.records[-1].place.timestamp_ms + (HOUR_MS if back_to == "a new time" else 0)

    def stalled(after_ms: int) -> list[str]:
        return kinds_of(played(log, until_ms=end_ms + after_ms), "migration_stalled")

    assert [] == stalled(STALLED_MS)
    assert ["migration_stalled"] == stalled(HOUR_MS + STALLED_MS + 1)


def test_clock_of_one_partition_that_was_set_back_makes_no_time_pass_in_another() -> None:
    """Which of the brokers was right is not known: the end is as far as both may be believed."""
    scene = Scene(1)
    scene.classic_members(2)
    scene.consumer_members(1)
    log = log_of(scene.coordinator)
    ahead = [
        replace(of, place=Position(3, number, of.place.timestamp_ms + (HOUR_MS if number < 2 else 0)))
        for number, of in enumerate(history(*[at(ms, group_metadata("h", generation=ms)) for ms in (1, 2, 3)]).records)
    ]
    assert [] == kinds_of(played(replace(log, records=(*log.records, *ahead))), "migration_stalled")
    assert ["migration_stalled"] == kinds_of(
        played(replace(log, records=(*log.records, *ahead[:2]))), "migration_stalled"
    )


def lets_go_after(scene: Scene, jump_ms: int, *, leaves: bool) -> History:
    """A member is to revoke, and does so, or leaves, seconds later; meanwhile the clock of all brokers went forward."""
    holds_back(scene)
    scene.coordinator.lag(jump_ms + 5_000)
    if leaves:
        scene.coordinator.leave(scene.group, next(of for of in scene.group.members.values() if of.pending))
    scene.coordinator.settle(scene.group)
    return log_of(scene.coordinator)


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_clock_that_is_set_forward_makes_no_alarm(seed: int, leaves: bool) -> None:
    """Hours without a record of anyone: no timer ran, so the member lets go in time or leaves, and was not removed."""
    log = lets_go_after(Scene(seed), Random(seed).randint(3 * HOUR_MS, 9_000 * HOUR_MS), leaves=leaves)
    times = [of.place.timestamp_ms for of in log.records]

    assert [] == kinds_of(played(log, written=times, sizes=topics(t=6)), *ONLY_LOOKS, "member_fenced")


@pytest.mark.parametrize("seed", SEEDS)
def test_partition_that_rests_while_the_clock_is_set_forward_is_no_alarm(seed: int) -> None:
    """Its owner has let go, the next one calls in seconds later, and a look in between saw it without an owner."""
    scene = Scene(seed)
    holds_back(scene)
    scene.coordinator.lag(5_000)
    for member in [of for of in scene.group.members.values() if of.pending]:
        scene.coordinator.heartbeat(scene.group, member)
    scene.coordinator.lag(2_000)
    scene.traffic()
    scene.coordinator.lag(Random(seed).randint(3 * HOUR_MS, 9_000 * HOUR_MS))
    scene.coordinator.settle(scene.group)
    log = log_of(scene.coordinator)
    times = [of.place.timestamp_ms for of in log.records]

    assert [] == kinds_of(played(log, written=times, sizes=topics(t=6)), *ONLY_LOOKS)
    assert "partition_unassigned" in kinds_of(played(log, sizes=topics(t=6)), *ONLY_LOOKS)


@pytest.mark.parametrize("seed", SEEDS)
def test_rebalance_that_was_stuck_for_hours_is_found_where_others_wrote_meanwhile(seed: int) -> None:
    """Looks alike: the time did pass, as records of another partition show; or it was less than hours."""
    scene, chance = Scene(seed), Random(seed)
    log = lets_go_after(scene, chance.randint(3 * HOUR_MS, 30 * HOUR_MS), leaves=False)
    of_others = [*range(0, scene.coordinator.now_ms, HOUR_MS)]
    sooner = lets_go_after(Scene(seed), chance.randint(HOUR_MS // 2, 2 * HOUR_MS - 10_000), leaves=False)

    assert ["rebalance_stuck"] == kinds_of(played(log, written=of_others), "rebalance_stuck")
    assert ["rebalance_stuck"] == kinds_of(played(sooner, written=()), "rebalance_stuck")


@pytest.mark.parametrize("seed", SEEDS)
def test_recording_ends_where_its_clocks_agree(seed: int) -> None:
    """One broker's clock is a day ahead: what another one's groups are about at the end is not a day late."""
    scene = Scene(seed)
    holds_back(scene)
    log = log_of(scene.coordinator)
    ahead_ms = log.records[-1].place.timestamp_ms + 24 * HOUR_MS
    of_another = replace(log.records[-1], place=Position(PARTITION + 1, 0, ahead_ms), key=b"\0\x63")
    whole = replace(log, records=(*log.records, of_another))
    times = [of.place.timestamp_ms for of in whole.records]

    assert [] == kinds_of(played(whole, written=times), "rebalance_stuck")
    assert ["rebalance_stuck"] == kinds_of(
        played(whole, written=[*range(times[0], ahead_ms, HOUR_MS)]), "rebalance_stuck"
    )
