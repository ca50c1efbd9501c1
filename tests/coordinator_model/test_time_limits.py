"""The time limits of the rules, each as a number of its own: a rule's constant that changes is found here.

Other tests take the limits from the rules, and so cannot see what they are. Here stands, of each, what is so up to the
last millisecond and no longer with the next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest

from coordinator_model.clocked import described, hang_suspicion
from coordinator_model.clocked.lasting import LastingAlarms
from coordinator_model.clocked.unassigned_partitions import Unassigned
from coordinator_model.state.events import WARNING, Event
from coordinator_model.state.group_state import GroupState
from lab.builders import (
    RecordBytes,
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_target_assignment,
    consumer_group_target_assignment_epoch,
    group_metadata,
    member,
    offset_commit,
    offset_commit_tombstone,
    streams_group_epoch,
    streams_group_member,
    streams_group_target_assignment_epoch,
)
from lab.coordinator_events import speaks_classic
from tests.histories import Moment, at, history
from tests.moments import overdue, suspicion

MINUTE: Final = 60_000
HOUR: Final = 3_600_000
Says = Callable[[int], bool]
"""So many milliseconds after what it counts from: whether the rule says it."""


def state(*moments: Moment) -> GroupState:
    return history(*moments).replayed().states["g"]


def looks(kind: str, *moments: Moment, since_ms: int = 0) -> Says:
    """Whether a look finds this kind so long after."""
    of = state(*moments)
    return lambda ms: kind in {event.kind for event in overdue(of, since_ms + ms) if "cleared" not in event.detail}


def ends(kind: str, *moments: Moment, since_ms: int) -> Says:
    """Whether a look finds that it is over."""
    of = state(*moments)
    return lambda ms: kind in {event.kind for event in overdue(of, since_ms + ms) if "cleared" in event.detail}


def generation(number: int, *names: str, **instance_ids: str) -> RecordBytes:
    """A classic generation of these members, each with a partition."""
    members = [member(of, {"t": [n]}, instance_id=instance_ids.get(of)) for n, of in enumerate(names)]
    return group_metadata("g", generation=number, members=members)


def revokes(timeout_ms: int) -> list[RecordBytes]:
    """A member that is to give up a partition."""
    return [
        consumer_group_member_subscription("g", "a", topics=["t"], rebalance_timeout_ms=timeout_ms),
        consumer_group_epoch("g", 3),
        consumer_group_target_assignment("g", "a", {"t": [0]}),
        consumer_group_target_assignment_epoch("g", 3),
        consumer_group_current_assignment(
            "g", "a", epoch=2, state=1, assigned={"t": [0]}, pending_revocation={"t": [1]}
        ),
    ]


AWAITS_TARGET: Final = at(
    0,
    consumer_group_member_subscription("g", "a", topics=["t"], rebalance_timeout_ms=HOUR),
    consumer_group_target_assignment_epoch("g", 2),
    consumer_group_current_assignment("g", "a", epoch=2),
    consumer_group_epoch("g", 3),
)
STREAMS: Final = at(
    0,
    streams_group_epoch("g", 3),
    streams_group_member("g", "a", rebalance_timeout_ms=HOUR),
    streams_group_target_assignment_epoch("g", 2),
)
MIXED: Final = at(
    0,
    consumer_group_member_subscription("g", "a", classic=speaks_classic()),
    consumer_group_member_subscription("g", "b"),
    consumer_group_epoch("g", 2),
    consumer_group_target_assignment_epoch("g", 2),
    consumer_group_current_assignment("g", "a", epoch=2),
    consumer_group_current_assignment("g", "b", epoch=2),
)
RESTLESS_MS: Final = tuple(range(1_000, 601_001, 60_000))
RESTLESS: Final = (at(0, generation(1, "a")), *(at(ms, generation(2 + 9 * n, "a")) for n, ms in enumerate(RESTLESS_MS)))
LATEST_REST: Final = at(620_000, generation(900, "a"))


def never_at_rest(ms: int) -> bool:
    return looks("group_unsettled", *RESTLESS, since_ms=1_000)(ms)


def rests(ms: int) -> bool:
    return looks("group_unsettled", *RESTLESS, LATEST_REST, since_ms=620_000)(ms)


def unheld(timeout_ms: int) -> Says:
    """A partition that no member holds, in a group of a member with this rebalance timeout."""
    joined = at(
        0,
        consumer_group_epoch("g", 2),
        consumer_group_member_subscription("g", "a", topics=["t"], rebalance_timeout_ms=timeout_ms),
    )
    of = state(joined)

    def says(ms: int) -> bool:
        watch = Unassigned()
        watch.look(of, {"t": (1,)}, 0)
        return bool(watch.look(of, {"t": (1,)}, ms))

    return says


def asked(*records: RecordBytes, committed_ms: int | None = None, lags: bool = False) -> Says:
    """Whether a coordinator is asked about a classic group."""
    of = state(*(at(0, record) for record in records))
    return lambda ms: suspicion(of, committed_ms, ms, lags=lags) is not None


def answers_in_a_row(ms: int) -> bool:
    first = hang_suspicion.described(None, described.PREPARING, 2, 0, 0)
    return hang_suspicion.described(first, described.PREPARING, 2, 0, ms).since_ms == 0


def open_after_a_look_that_missed_it(ms: int) -> bool:
    alarms = LastingAlarms()
    opened = Event(time_ms=0, group="g", kind="rebalance_stuck", severity=WARNING, partition=0, offset=7)
    assert [] == alarms.ended([opened], 0)
    return not alarms.ended([], ms)


def takeovers(*times_ms: int, hosts: tuple[str, ...] = ("/a",)) -> list[Moment]:
    """An instance id that another member takes at each of these times, from one of these hosts after the other."""
    return [
        at(
            ms,
            group_metadata(
                "g",
                generation=1 + n,
                members=[member(f"i-{n}", {"t": [0]}, instance_id="i", client_host=hosts[n % len(hosts)])],
            ),
        )
        for n, ms in enumerate(times_ms)
    ]


FIGHT: Final = takeovers(*range(0, 50_000, 5_000), hosts=("/a", "/b"))
FOUGHT_MS: Final = 45_000
STORM: Final = [at(1_000, generation(n, "a")) for n in range(1, 41)]


def retried(ms: int) -> bool:
    """Whether a take-over so long after another is that one again."""
    return state(*takeovers(0, 1_000, 1_000 + ms)).instances["i"].restarts == 1


def retried_again(ms: int) -> bool:
    """The same of a row of them."""
    return state(*takeovers(0, *range(1_000, 60_000, 1_500), 1_000 + ms)).instances["i"].restarts == 1


def end_may_be_reported(ms: int) -> bool:
    """Of a fight that ended before another take-over, and was not looked at until then."""
    over_ms = FOUGHT_MS + 10 * MINUTE  # the fight's end is when it has not gone on for so long
    later = takeovers(*[0] * len(FIGHT), 30 * MINUTE, over_ms + ms)[len(FIGHT) :]
    return ends("static_member_contended", *FIGHT, *later, since_ms=over_ms + ms)(0)


def scaled_up_at_once(ms: int) -> bool:
    of = state(
        at(0, generation(1, "a")), at(1_000, generation(2, "a", "b")), at(1_000 + ms, generation(3, "a", "b", "c"))
    )
    return of.scaling is not None and of.scaling.changed > 1


HANDED: Final = (
    at(0, generation(1, "a", "b")),
    at(1_000, group_metadata("g", generation=2, members=[member("b", {"t": [0, 1]}), member("a", {})])),
)


def rewind_after_handover(ms: int) -> bool:
    first, back = offset_commit("g", "t", 0, 9), offset_commit("g", "t", 0, 3)
    (detail,) = history(*HANDED, at(1_000, first), at(1_000 + ms, back)).replayed().details("offset_rewound")
    return "after_handover" in detail


def owner_remembered(ms: int) -> bool:
    """Whether a partition that comes to another member so long after its owner lost it was moved."""
    lost = at(1_000, group_metadata("g", generation=2, members=[member("b", {"t": [1]}), member("a", {})]))
    taken = at(1_000 + ms, group_metadata("g", generation=3, members=[member("b", {"t": [0, 1]}), member("a", {})]))
    return state(HANDED[0], lost, taken).counters.partitions_moved == 1


def cannot_have_expired(ms: int) -> bool:
    """Of a topic that no member reads: whether a tombstone so long after the commit was none of its retention."""
    reads = at(0, generation(1, "a"))
    reported = history(
        reads,
        at(1_000, offset_commit("g", "u", 0, 5, timestamp=1_000)),
        at(1_000 + ms, offset_commit_tombstone("g", "u", 0)),
    ).replayed()
    return "expiry" not in reported.details("offset_deleted")[0]["may_be"]


@dataclass(frozen=True, slots=True)
class Limit:
    """Up to `ms` it is one thing, and a millisecond later `later`."""

    ms: int
    says: Says
    later: bool


LIMITS: Final = {
    "a member that is late": Limit(40_000, looks("rebalance_stuck", at(0, *revokes(30_000))), later=True),
    "a member that names no timeout": Limit(310_000, looks("rebalance_stuck", at(0, *revokes(-1))), later=True),
    "a target that is not computed": Limit(MINUTE, looks("rebalance_stuck", AWAITS_TARGET), later=True),
    "a streams group that begins": Limit(6 * MINUTE, looks("rebalance_stuck", STREAMS), later=True),
    "a roll that stalls": Limit(30 * MINUTE, looks("migration_stalled", MIXED), later=True),
    "a group that does not settle": Limit(10 * MINUTE, never_at_rest, later=True),
    "a group that comes to rest": Limit(MINUTE, rests, later=False),
    "a partition without an owner": Limit(330_000, unheld(30_000), later=True),
    "one of a member that names no timeout": Limit(10 * MINUTE, unheld(-1), later=True),
    "one of a member that waits for ever": Limit(35 * MINUTE, unheld(2**31 - 1), later=True),
    "a group that commits no more": Limit(15_000, asked(generation(1, "a"), committed_ms=0, lags=True), later=True),
    "a round that was lost": Limit(15_000, asked(generation(1, "a"), generation(3, "a")), later=True),
    "a round lost long ago": Limit(15 * MINUTE, asked(generation(1, "a"), generation(3, "a")), later=False),
    "a group just emptied": Limit(15_000, asked(group_metadata("g", generation=2)), later=True),
    "a group emptied long ago": Limit(15 * MINUTE, asked(group_metadata("g", generation=2)), later=False),
    "answers of one row": Limit(MINUTE, answers_in_a_row, later=False),
    "an alarm that looks miss": Limit(MINUTE, open_after_a_look_that_missed_it, later=False),
    "a fight that goes on": Limit(10 * MINUTE, ends("static_member_contended", *FIGHT, since_ms=FOUGHT_MS), later=True),
    "a join that is retried": Limit(2_000, retried, later=False),
    "a join that is retried for long": Limit(MINUTE, retried_again, later=False),
    "the end of a former fight": Limit(HOUR, end_may_be_reported, later=False),
    "a storm that goes on": Limit(5 * MINUTE, ends("rebalance_storm", *STORM, since_ms=1_000), later=True),
    "members that come one after another": Limit(5 * MINUTE, scaled_up_at_once, later=False),
    "a rewind after a hand-over": Limit(5 * MINUTE, rewind_after_handover, later=False),
    "the last owner of a partition": Limit(10 * MINUTE, owner_remembered, later=False),
    "an offset too young to expire": Limit(MINUTE - 1, cannot_have_expired, later=False),
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_limit_is_the_number_that_it_was(limit: Limit) -> None:
    """So it is up to the last millisecond, and otherwise with the next."""
    assert (not limit.later, limit.later) == (limit.says(limit.ms), limit.says(limit.ms + 1))
