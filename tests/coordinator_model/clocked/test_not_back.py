"""Rolls that leave a group with fewer members than before, and what only looks like them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Final

import pytest

from coordinator_model.migration import roll_members
from coordinator_model.recording_clock import Looks
from coordinator_model.replica import Replica
from coordinator_model.state.events import Event
from lab.builders import RecordBytes, group_metadata, member
from lab.coordinator_events import (
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_classic,
    converted_to_consumer,
    retarget,
    speaks_classic,
    static_returns,
)
from tests.histories import Moment, at, history
from tests.moments import overdue

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
DAY: Final = 24 * 60 * MINUTE
RESTART: Final = roll_members.RESTART_MS


def classic(generation: int, *members: str, session_ms: int = 45_000) -> RecordBytes:
    """A generation of classic members without partitions."""
    of = [replace(member(name, {}, client_id=f"of-{name}"), session_timeout=session_ms) for name in members]
    return group_metadata("g", generation=generation, members=of)


def converts(
    generation: int, old: Iterable[str], new: str, client_ids: Mapping[str, str] | None = None
) -> list[RecordBytes]:
    """The first upgraded member joins."""
    called = client_ids or {}
    return [
        *converted_to_consumer("g", generation=generation, members={name: {} for name in old}, client_ids=called),
        *consumer_join("g", new, epoch=generation + 1, targets={new: {}}, client_id=called.get(new, "client")),
    ]


def joins(epoch: int, name: str, *, as_classic: bool = False) -> list[RecordBytes]:
    """A member joins the consumer group."""
    return consumer_join("g", name, epoch=epoch, targets={name: {}}, classic=speaks_classic() if as_classic else None)


def leaves(epoch: int, *names: str) -> list[RecordBytes]:
    """Members leave the consumer group, or expire."""
    return consumer_leave("g", *names, epoch=epoch)


def played(*moments: Moment, until_ms: int) -> list[Event]:
    """What is reported of it, by records and by the clock, until then."""
    replica = Replica()
    looks = Looks(replica, {})
    events: list[Event] = []
    for record in history(*moments).records:
        events += looks.before(record.place)
        events += replica.replay(record.place, record.key, record.value)
    events += replica.settle()
    return [*events, *looks.at_end(until_ms)]


def not_back(*moments: Moment, until_ms: int) -> list[Event]:
    """What is said of members that are missing after a roll."""
    return [of for of in played(*moments, until_ms=until_ms) if of.kind == "members_not_back"]


HURRIED: Final = (
    at(0, classic(1, "c1", "c2")),
    at(60 * SECOND, *converts(1, ("c1", "c2"), "n1")),
    at(105 * SECOND, *leaves(3, "c1", "c2")),
    at(106 * SECOND, *retarget("g", 3, {"n1": {}}), *consumer_moves("g", "n1", epoch=3, assigned={})),
)
"""Both were killed, and one process came back before the sessions of the former ones were over."""
LOST_AT: Final = 105 * SECOND


# -- must speak -------------------------------------------------------------------------------------------------------


def test_member_lost_in_a_hurried_roll_is_reported_once_with_what_is_known_of_it() -> None:
    """Of two, one: the page said "upgraded 1/1", and no alarm was raised."""
    assert [] == not_back(*HURRIED, until_ms=LOST_AT + RESTART)
    (event,) = not_back(*HURRIED, until_ms=LOST_AT + 60 * MINUTE)

    assert (LOST_AT, "warning", False) == (event.time_ms, event.severity, event.inferred)
    assert (2, 1, 1) == tuple(event.detail[name] for name in ("members_before", "members", "missing"))
    assert ["client"] == [of["client_id"] for of in event.detail["missing_members"]]


@pytest.mark.parametrize("expired", ["c1 c2 c3", "c3 c2 c1", "c2 c1 c3", "c3 c1 c2"])
@pytest.mark.parametrize("lost", ["c2", "c2 c3", "c1 c2 c3"])
def test_member_lost_is_named_in_whatever_order_sessions_end(lost: str, expired: str) -> None:
    """All were killed at once: who took their place came before the coordinator noticed, and may be gone, too."""
    client_ids = {name: f"of-{name[1]}" for name in ("c1", "c2", "c3", "n1", "n2", "n3")}
    back = [f"n{number}" for number in (1, 2, 3) if number == 1 or f"c{number}" not in lost]
    epoch, moments = (
        count(3),
        [at(0, classic(1, "c1", "c2", "c3")), at(10 * SECOND, *converts(1, ("c1", "c2", "c3"), "n1", client_ids))],
    )
    moments += [
        at(11 * SECOND, *consumer_join("g", of, epoch=next(epoch), targets={of: {}}, client_id=client_ids[of]))
        for of in back[1:]
    ]
    gone = [*expired.split(), *(["n1"] if "c1" in lost else [])]
    moments += [at(40 * SECOND + number * SECOND, *leaves(next(epoch), of)) for number, of in enumerate(gone)]

    (event,) = not_back(*moments, until_ms=60 * MINUTE)

    assert {client_ids[of] for of in lost.split()} == {of["client_id"] for of in event.detail["missing_members"]}
    assert len(lost.split()) == event.detail["missing"]
    assert 40 * SECOND <= event.time_ms < 50 * SECOND


def test_alarm_ends_when_as_many_are_there_and_says_so() -> None:
    """By any member that comes."""
    _, end = not_back(*HURRIED, at(LOST_AT + 10 * MINUTE, *joins(4, "n2")), until_ms=LOST_AT + 20 * MINUTE)

    assert {"cleared": True, "why": "members_back"} == end.detail
    assert end.time_ms > LOST_AT + 9 * MINUTE


def test_alarm_ends_with_the_group_and_says_so() -> None:
    """It was empty, and an admin deleted it."""
    gone = at(LOST_AT + 10 * MINUTE, *leaves(4, "n1"))
    deleted = at(LOST_AT + 11 * MINUTE, *consumer_group_deleted("g"))
    other = at(LOST_AT + 30 * MINUTE, group_metadata("h", generation=1, members=[]))
    _, end = not_back(*HURRIED, gone, deleted, other, until_ms=LOST_AT + 31 * MINUTE)

    assert {"cleared": True, "why": "group_deleted"} == end.detail


def test_alarm_is_closed_after_a_day_and_the_members_stay_missing() -> None:
    """Whoever plans or rolls is told of them still."""
    _, end = not_back(*HURRIED, until_ms=LOST_AT + 2 * DAY)
    state = history(*HURRIED).replayed().states["g"]

    assert {"cleared": True, "why": "one_day"} == end.detail
    assert LOST_AT == roll_members.not_back_since_ms(state, LOST_AT + 30 * DAY)
    assert 1 == roll_members.missing(state)


def test_group_that_the_roll_emptied_is_reported() -> None:
    """The one upgraded member crashed as well, in the middle."""
    (event,) = not_back(*HURRIED[:2], at(LOST_AT, *leaves(3, "c1", "c2", "n1")), until_ms=LOST_AT + 60 * MINUTE)

    assert (2, 0, 2) == tuple(event.detail[name] for name in ("members_before", "members", "missing"))


def test_group_that_converts_while_it_is_empty_is_rolled_too() -> None:
    """All were stopped at once, and one of three was started."""
    moments = (
        at(0, classic(1, "c1", "c2", "c3")),
        at(10 * SECOND, classic(2)),
        at(30 * SECOND, *converted_to_consumer("g", generation=2, members={}), *joins(3, "n1")),
    )
    (event,) = not_back(*moments, until_ms=60 * MINUTE)

    assert (10 * SECOND, 3, 1) == (event.time_ms, event.detail["members_before"], event.detail["members"])


def test_process_that_was_killed_and_is_still_counted_is_no_member_that_is_back() -> None:
    """Two of one place: the roll seems complete, until the session of the killed one is over."""
    moments = (
        at(0, classic(1, "c1", "c2")),
        at(60 * SECOND, *converts(1, ("c1", "c2"), "n1")),
        at(70 * SECOND, *joins(3, "n1-again")),
        at(75 * SECOND, *leaves(4, "c1", "c2")),
        at(105 * SECOND, *leaves(5, "n1")),
    )

    assert [105 * SECOND] == [of.time_ms for of in not_back(*moments, until_ms=60 * MINUTE)]


def test_member_lost_on_the_way_down_is_reported() -> None:
    """Brokers' downgrades lose members as upgrades do."""
    moments = (
        *(at(turn * SECOND, *joins(turn, f"n{turn}")) for turn in (1, 2, 3)),
        at(10 * MINUTE, *leaves(4, "n1", "n2")),
        at(10 * MINUTE + 5 * SECOND, *joins(5, "c1", as_classic=True)),
        at(
            11 * MINUTE,
            *converted_to_classic("g", all_members=("n3", "c1"), generation=6, remaining={"c1": {}}),
        ),
        at(11 * MINUTE + 5 * SECOND, classic(7, "c1", "c3")),
    )
    (event,) = not_back(*moments, until_ms=60 * MINUTE)

    assert (3, 2) == (event.detail["members_before"], event.detail["members"])


def test_alarm_of_one_roll_is_one_though_members_come_and_others_stay_away() -> None:
    """Of four two are lost; one is back after ten minutes."""
    moments = (
        at(0, classic(1, "c1", "c2", "c3", "c4")),
        at(60 * SECOND, *converts(1, ("c1", "c2", "c3", "c4"), "n1")),
        at(LOST_AT, *leaves(3, "c1", "c2", "c3", "c4")),
        at(LOST_AT + 10 * SECOND, *joins(4, "n2")),
        at(LOST_AT + 10 * MINUTE, *joins(5, "n3")),
    )

    assert 1 == len(not_back(*moments, until_ms=60 * MINUTE))


# -- looks like it ----------------------------------------------------------------------------------------------------


def test_member_that_is_away_for_four_minutes_restarts() -> None:
    """An image is pulled; it may be the last one of the roll."""
    back = at(LOST_AT + 4 * MINUTE, *joins(4, "n2"))

    assert [] == not_back(*HURRIED, back, until_ms=DAY)


def test_member_within_a_long_session_may_be_away_for_as_long() -> None:
    """Whoever sets half an hour expects restarts that take it."""
    moments = (at(0, classic(1, "c1", "c2", session_ms=30 * MINUTE)), *HURRIED[1:])

    assert [] == not_back(*moments, until_ms=LOST_AT + 30 * MINUTE)
    assert 1 == len(not_back(*moments, until_ms=LOST_AT + 40 * MINUTE))


@pytest.mark.parametrize("rest_ms", [MINUTE + 1, 3 * MINUTE, 60 * MINUTE])
def test_scale_in_before_the_roll_is_none_of_its_losses(rest_ms: int) -> None:
    """From four to two, the group comes to rest, and then the two are rolled."""
    moments = (
        at(0, classic(1, "c1", "c2", "c3", "c4")),
        at(SECOND, classic(2, "c1", "c2")),
        at(SECOND + rest_ms, classic(3, "c2")),
        at(20 * SECOND + rest_ms, *converts(3, ("c2",), "n1")),
        at(40 * SECOND + rest_ms, *leaves(5, "c2")),
        at(60 * SECOND + rest_ms, *joins(6, "n2")),
    )

    assert [] == not_back(*moments, until_ms=DAY)


def test_scale_in_before_static_members_are_rolled_in_place_is_none_of_its_losses() -> None:
    """No one left but those who were scaled in."""
    ids = {"c1": "i1", "c2": "i2"}
    of = [member(name, {}, instance_id=instance) for name, instance in ids.items()]
    extra = member("c3", {}, instance_id="i3")
    moments = (
        at(0, group_metadata("g", generation=1, members=[*of, extra])),
        at(MINUTE, group_metadata("g", generation=2, members=of)),
        at(
            4 * MINUTE,
            *converted_to_consumer("g", generation=2, members={"c1": {}, "c2": {}}, instance_ids=ids),
            *static_returns("g", old="c1", new="n1", instance_id="i1", epoch=3, assigned={}),
        ),
        at(5 * MINUTE, *static_returns("g", old="c2", new="n2", instance_id="i2", epoch=4, assigned={})),
    )

    assert [] == not_back(*moments, until_ms=DAY)


def test_scale_in_after_the_roll_is_none_of_its_losses() -> None:
    """All were back, and a minute later one is not needed."""
    back = (at(LOST_AT + 10 * SECOND, *joins(4, "n2")), at(LOST_AT + 90 * SECOND, *leaves(5, "n2")))

    assert [] == not_back(*HURRIED, *back, until_ms=DAY)


def test_restarts_that_overlap_are_none_that_last() -> None:
    """Of twenty somebody is away for half an hour, and none for longer than two minutes."""
    names = [f"c{number}" for number in range(20)]
    epochs = count(2)
    changes = [(60 * SECOND * number, f"c{number}", False) for number in range(20)]
    changes += [(60 * SECOND * number + 110 * SECOND, f"n{number}", True) for number in range(20)]
    moments = [at(0, classic(1, *names)), at(SECOND, *converts(1, names, "first")), at(2 * SECOND, *leaves(3, "c0"))]
    next(epochs), next(epochs)
    for time_ms, name, comes in sorted(changes)[1:]:
        happens = joins if comes else leaves
        moments.append(at(time_ms + 3 * SECOND, *happens(next(epochs), name)))

    assert [] == not_back(*moments, until_ms=DAY)


def test_new_processes_that_come_before_the_former_ones_go_leave_nothing_missing() -> None:
    """A deployment that surges."""
    moments = (
        at(0, classic(1, "c1", "c2")),
        at(10 * SECOND, *converts(1, ("c1", "c2"), "n1")),
        at(20 * SECOND, *leaves(3, "c1")),
        at(30 * SECOND, *joins(4, "n2")),
        at(40 * SECOND, *leaves(5, "c2")),
    )

    assert [] == not_back(*moments, until_ms=DAY)


def test_next_roll_begins_with_those_that_there_are_once_a_day_is_over() -> None:
    """The first one's losses are no news in a month."""
    again = (
        at(30 * DAY, *joins(4, "c9", as_classic=True)),
        at(30 * DAY + SECOND, *leaves(5, "n1")),
        at(30 * DAY + SECOND + 1, *joins(6, "c8", as_classic=True)),
    )
    state = history(*HURRIED, *again).replayed().states["g"]

    assert 0 == roll_members.missing(state)
    assert None is roll_members.not_back_since_ms(state, 31 * DAY)


def test_state_of_a_former_release_knows_no_roll() -> None:
    """Nothing is made up of it."""
    state = history(*HURRIED).replayed().states["g"]
    state.migration.roll = None

    assert [] == [of.kind for of in overdue(state, LOST_AT + DAY) if of.kind == "members_not_back"]
    assert 0 == roll_members.missing(state)
