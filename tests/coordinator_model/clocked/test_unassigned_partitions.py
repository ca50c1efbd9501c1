"""Partitions that no member holds: reported when it lasts, each once, and once that it is over; and never before."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import pytest

from coordinator_model.clocked.unassigned_partitions import (
    LONGEST_REBALANCE_TIMEOUT_MS,
    METADATA_MAX_AGE_MS,
    Unassigned,
    unheld,
)
from coordinator_model.recording_clock import LOOK_EVERY_MS, Looks
from coordinator_model.replica import Replica
from coordinator_model.state.events import WARNING, Event
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from lab.builders import (
    NOW_MS,
    REBALANCE_TIMEOUT_MS,
    consumer_group_current_assignment,
    consumer_group_member_subscription,
    consumer_group_regular_expression,
    first_fields,
    group_metadata,
    group_metadata_tombstone,
    member,
    streams_group_epoch,
    streams_group_member,
    topic_id,
)
from lab.coordinator_events import (
    consumer_join,
    consumer_leave,
    consumer_moves,
    retarget,
    share_join,
    static_goes_away,
)
from streaming.recording.file_format import open_recording
from tests.histories import PARTITION, RECORDING, History, Moment, at, history, recorded

LASTING_MS: Final = METADATA_MAX_AGE_MS + REBALANCE_TIMEOUT_MS


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers, or a recording's header, describe it."""

    id: str | None
    partitions: int


def topics(**partitions: int) -> dict[str, Topic]:
    return {name: Topic(topic_id(name), count) for name, count in partitions.items()}


def replayed(*moments: Moment) -> GroupState:
    replica = Replica()
    for record in history(*moments).records:
        replica.replay(record.place, record.key, record.value)
    replica.settle()
    return replica.groups["g"]


def reported(events: list[Event]) -> list[tuple[bool, dict[str, list[int]]]]:
    """(whether it is over, partitions) of events."""
    return [("cleared" in of.detail, dict(of.detail["partitions"])) for of in events]


TWO_OF_FOUR: Final = at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 2]}}))


# -- what no member holds ---------------------------------------------------------------------------------------------


def classic(*members: Any) -> list[Moment]:
    return [at(0, group_metadata("g", generation=1, members=members))]


UNHELD: dict[str, tuple[list[Moment], dict[str, int], dict[str, tuple[int, ...]] | None]] = {
    "all is held": ([TWO_OF_FOUR], {"t": 1}, {}),
    "partitions of a consumer group": ([TWO_OF_FOUR], {"t": 4}, {"t": (1, 3)}),
    "what is yet to be revoked is held": (
        [TWO_OF_FOUR, at(1, *consumer_moves("g", "a", epoch=2, state=1, assigned={"t": [0]}, pending={"t": [1]}))],
        {"t": 2},
        {},
    ),
    "what a static member has that is away is held": (
        [TWO_OF_FOUR, at(1, *static_goes_away("g", "a", assigned={"t": [0]}, previous_epoch=2))],
        {"t": 1},
        {},
    ),
    "of a classic group": (classic(member("a", {"t": [1]}), member("b", None)), {"t": 2}, {"t": (0,)}),
    "of two topics of one member": (
        classic(member("a", {"t": [0]}, topics=("t", "u"))),
        {"t": 2, "u": 1},
        {"t": (1,), "u": (0,)},
    ),
    "a topic without subscribers does not count": (classic(member("a", {"t": [0]})), {"t": 1, "u": 3}, {}),
    "topics that an expression matches": (
        [
            at(
                0,
                consumer_group_member_subscription("g", "a", topics=(), regex="rx-.*"),
                consumer_group_regular_expression("g", "rx-.*", ["rx-a"]),
                consumer_group_current_assignment("g", "a", epoch=2, assigned={"rx-a": [0]}),
            )
        ],
        {"rx-a": 2},
        {"rx-a": (1,)},
    ),
    "a topic recreated under the name": (
        [at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"u": [0]}}))],
        {"t": 1},
        {"t": (0,)},
    ),
    "of a share group": ([at(0, *share_join("g", "s", epoch=2, targets={"s": {"t": [0]}}))], {"t": 2}, {"t": (1,)}),
    "a topic without a description": ([TWO_OF_FOUR], {}, None),
    "a topic beside it that does not exist": (
        classic(member("a", {"t": [0]}, topics=("t", "no-such-topic")), member("b", {}, topics=("no-such-topic",))),
        {"t": 2},
        {"t": (1,)},
    ),
    "a subscription that does not decode": (
        classic(member("a", {"t": [0]}, subscription_bytes=b"\xff")),
        {"t": 1},
        None,
    ),
    "subscriptions of kafka-go and faust, which end after the fields of version 0": (
        classic(
            member("a", {"t": [0]}, subscription_bytes=first_fields(version=1)),
            member("b", {"u": [1]}, subscription_bytes=first_fields(["u"], version=4)),
        ),
        {"t": 2, "u": 2},
        {"t": (1,), "u": (0,)},
    ),
    "all is held by members of kafka-go": (
        classic(member("a", {"t": [0, 1]}, subscription_bytes=first_fields())),
        {"t": 2},
        {},
    ),
    "one subscription of two that does not decode": (
        classic(member("a", {"t": [0]}), member("b", {"t": [1]}, subscription_bytes=b"\xff")),
        {"t": 3},
        None,
    ),
    "a streams group holds tasks": (
        [at(0, streams_group_member("g", "s"), streams_group_epoch("g", 2))],
        {"t": 1},
        None,
    ),
}


@pytest.mark.parametrize(("moments", "sizes", "expected"), UNHELD.values(), ids=UNHELD.keys())
def test_what_nobody_holds(
    moments: list[Moment], sizes: dict[str, int], expected: dict[str, tuple[int, ...]] | None
) -> None:
    """Partitions of subscribed topics less what members hold; None is "not known"."""
    assert expected == unheld(replayed(*moments).membership, topics(**sizes))


# -- looks ------------------------------------------------------------------------------------------------------------


def test_partition_that_nobody_holds_for_long_is_reported_once_with_who_asks_for_it() -> None:
    """Not before a grown topic must have been noticed and a rebalance must be over; then once."""
    state, watch = replayed(TWO_OF_FOUR), Unassigned()
    rest = {"t": (1, 3)}

    assert [] == watch.look(state, rest, NOW_MS)
    assert [] == watch.look(state, rest, NOW_MS + LASTING_MS)
    assert ({"g"}, set()) == (watch.followed, watch.overdue)
    (event,) = watch.look(state, rest, NOW_MS + LASTING_MS + 1)
    assert [] == watch.look(state, rest, NOW_MS + 2 * LASTING_MS)

    assert {"g"} == watch.overdue
    assert ("partition_unassigned", "warning", True) == (event.kind, event.severity, event.inferred)
    assert {
        "partitions": {"t": [1, 3]},
        "unassigned_ms": LASTING_MS + 1,
        "subscribed_members": 1,
        "members": ["a"],
    } == event.detail


def test_partition_handed_out_in_time_is_never_reported() -> None:
    """Between two owners it rests; that is how a cooperative rebalance goes."""
    state, watch = replayed(TWO_OF_FOUR), Unassigned()

    watch.look(state, {"t": (1,)}, NOW_MS)
    watch.look(state, {}, NOW_MS + LASTING_MS)
    watch.look(state, {"t": (1,)}, NOW_MS + LASTING_MS + 1)

    assert [] == watch.look(state, {"t": (1,)}, NOW_MS + 2 * LASTING_MS)
    assert {"g"} == watch.followed


def test_each_partition_opens_and_clears_for_itself() -> None:
    """One that joins later has its own time, and its own event; ids differ although no record came between."""
    state, watch, events = replayed(TWO_OF_FOUR), Unassigned(), list[Event]()
    later_ms = NOW_MS + LASTING_MS

    for rest, now_ms in (
        ({"t": (1,)}, NOW_MS),
        ({"t": (1, 3)}, later_ms),
        ({"t": (1, 3)}, later_ms + 1),
        ({"t": (1, 3)}, later_ms + LASTING_MS + 1),
        ({"t": (3,)}, later_ms + LASTING_MS + 2),
        ({}, later_ms + LASTING_MS + 3),
    ):
        events += watch.look(state, rest, now_ms)

    assert [
        (False, {"t": [1]}),
        (False, {"t": [3]}),
        (True, {"t": [1]}),
        (True, {"t": [3]}),
    ] == reported(events)
    assert ["warning", "warning", "info", "info"] == [of.severity for of in events]
    assert 4 == len({of.id for of in events})
    assert set() == watch.followed


def test_what_cannot_be_known_neither_opens_nor_clears() -> None:
    """The brokers do not answer for a while: nothing was handed out by that."""
    state, watch = replayed(TWO_OF_FOUR), Unassigned()
    watch.look(state, {"t": (1,)}, NOW_MS)

    assert [] == watch.look(state, None, NOW_MS + LASTING_MS + 1)
    assert [(False, {"t": [1]})] == reported(watch.look(state, {"t": (1,)}, NOW_MS + LASTING_MS + 2))
    assert [] == watch.look(state, None, NOW_MS + LASTING_MS + 3)
    assert [] == watch.look(state, {"t": (1,)}, NOW_MS + LASTING_MS + 4)


def test_group_without_members_lacks_no_owner() -> None:
    """It says so itself (`group_emptied`); what was reported before is over."""
    state, watch = replayed(TWO_OF_FOUR), Unassigned()
    empty = replayed(TWO_OF_FOUR, at(1, *consumer_leave("g", "a", epoch=3)))
    watch.look(state, {"t": (1,)}, NOW_MS)
    watch.look(state, {"t": (1,)}, NOW_MS + LASTING_MS + 1)

    assert [(True, {"t": [1]})] == reported(watch.look(empty, {"t": (0, 1, 2)}, NOW_MS + LASTING_MS + 2))
    assert [] == watch.look(empty, {"t": (0, 1, 2)}, NOW_MS + 9 * LASTING_MS)


def test_members_that_wait_for_ever_are_not_waited_for() -> None:
    """Some clients state the largest number there is as their rebalance timeout."""
    joined = consumer_group_member_subscription("g", "a", rebalance_timeout_ms=2**31 - 1)
    state, watch = replayed(TWO_OF_FOUR, at(1, joined)), Unassigned()
    watch.look(state, {"t": (1,)}, NOW_MS)
    longest_ms = METADATA_MAX_AGE_MS + LONGEST_REBALANCE_TIMEOUT_MS

    assert [] == watch.look(state, {"t": (1,)}, NOW_MS + longest_ms)
    assert [(False, {"t": [1]})] == reported(watch.look(state, {"t": (1,)}, NOW_MS + longest_ms + 1))


def test_event_is_the_same_after_a_restart() -> None:
    """It belongs to the record that last changed who holds what, whatever else was written since."""
    before = replayed(TWO_OF_FOUR)
    after = replayed(TWO_OF_FOUR, at(1, consumer_group_member_subscription("g", "a", rack_id="r")))

    def found(state: GroupState, start_ms: int) -> list[Event]:
        watch = Unassigned()
        watch.look(state, {"t": (1,)}, start_ms)
        return watch.look(state, {"t": (1,)}, start_ms + LASTING_MS + 1)

    (first,), (again,) = found(before, NOW_MS), found(after, NOW_MS + 3_600_000)
    assert first.id == again.id
    assert (PARTITION, 4, 0) == (first.partition, first.offset, first.time_ms)


def test_other_alarms_of_before_a_restart_are_no_partitions_without_an_owner() -> None:
    """All that was reported is taken up in one go."""
    watch = Unassigned()
    watch.resume([Event(time_ms=5, group="g", kind="rebalance_stuck", severity=WARNING, partition=0, offset=7)])

    assert set() == watch.followed


def test_what_was_reported_before_a_restart_is_neither_reported_again_nor_forgotten() -> None:
    """Partitions that were reported since to be held are over; the others are when they are."""
    state, before = replayed(TWO_OF_FOUR), Unassigned()
    before.look(state, {"t": (1, 3)}, NOW_MS)
    opened = before.look(state, {"t": (1, 3)}, NOW_MS + LASTING_MS + 1)
    cleared = before.look(state, {"t": (3,)}, NOW_MS + LASTING_MS + 2)
    watch = Unassigned()
    watch.resume([*opened, *cleared])

    assert {"g"} == watch.overdue
    assert [] == watch.look(state, {"t": (3,)}, NOW_MS + 2 * LASTING_MS)
    over = watch.look(state, {}, NOW_MS + 2 * LASTING_MS)
    assert [(True, {"t": [3]})] == reported(over)
    assert all(of.inferred for of in (*opened, *cleared, *over))
    again = Unassigned()
    again.resume([*opened, *cleared, *over])
    assert set() == again.followed


def test_end_carries_its_own_time_and_not_that_of_the_beginning() -> None:
    """Of the record that gave it an owner; of the look where none did, as of a topic that is gone."""
    watch, state = Unassigned(), replayed(TWO_OF_FOUR)
    watch.look(state, {"t": (3,)}, 0)
    (opened,) = watch.look(state, {"t": (3,)}, LASTING_MS + 1)
    late_ms, later_ms = 2 * LASTING_MS, 3 * LASTING_MS
    given = replayed(TWO_OF_FOUR, at(late_ms, *consumer_moves("g", "a", epoch=2, assigned={"t": [0, 2, 3]})))
    (gone,) = deepcopy(watch).look(state, {}, later_ms)
    (owned,) = watch.look(given, {}, later_ms)

    assert (0, later_ms, late_ms) == (opened.time_ms, gone.time_ms, owned.time_ms)


def test_group_that_is_gone_is_forgotten() -> None:
    """One of its name that comes later starts again."""
    state, watch = replayed(TWO_OF_FOUR), Unassigned()
    watch.look(state, {"t": (1,)}, NOW_MS)
    watch.forget(["g"])

    assert set() == watch.followed
    assert [] == watch.look(state, {"t": (1,)}, NOW_MS + LASTING_MS + 1)


# -- a recording's own clock ------------------------------------------------------------------------------------------


def looked_at(log: History, sizes: dict[str, Topic]) -> list[Event]:
    """What looks at a recording tell."""
    replica = Replica()
    looks, events = Looks(replica, sizes), list[Event]()
    for record in log.records:
        events += looks.before(record.place)
        replica.replay(record.place, record.key, record.value)
    replica.settle()
    return lacking(events + looks.at_end())


def lacking(events: list[Event]) -> list[Event]:
    """Of partitions without an owner: looks close steps, too."""
    return [of for of in events if of.kind == "partition_unassigned"]


NOBODY_HAS_1: Final = at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})]))
SOMEBODY_HAS_1: Final = at(2 * LASTING_MS, group_metadata("g", generation=2, members=[member("a", {"t": [0, 1]})]))
ANOTHER_GROUP: Final = [at(ms, group_metadata("h", generation=ms)) for ms in range(1, 3 * LASTING_MS, LASTING_MS // 3)]


@pytest.mark.parametrize(("held", "expected"), [([0], [(False, {"t": [1]})]), ([0, 1], [])])
def test_group_of_kafka_go_lacks_an_owner_as_any_other(held: list[int], expected: list[Any]) -> None:
    """What its members ask for is read, though no broker could convert it; one that holds all lacks none."""
    of_kafka_go = member("a", {"t": held}, subscription_bytes=first_fields())

    assert expected == reported(
        looked_at(history(at(0, group_metadata("g", generation=1, members=[of_kafka_go])), *ANOTHER_GROUP), topics(t=2))
    )


def test_recording_tells_by_its_own_time() -> None:
    """It opens although the group writes nothing meanwhile, and clears with the record that hands the partition out."""
    events = looked_at(
        history(NOBODY_HAS_1, SOMEBODY_HAS_1, at(3 * LASTING_MS, group_metadata("h", generation=1))), topics(t=2)
    )

    assert [(False, {"t": [1]}), (True, {"t": [1]})] == reported(events)
    assert [0, 2 * LASTING_MS] == [of.time_ms for of in events]


def test_other_groups_make_time_pass() -> None:
    """Looks go on with every record of the partition, and end with the recording."""
    events = looked_at(history(NOBODY_HAS_1, *ANOTHER_GROUP), topics(t=2))

    assert [(False, {"t": [1]})] == reported(events)


def test_partitions_of_the_offsets_topic_stand_in_any_order() -> None:
    """One after another or interleaved: each has its own clock, and ends with the latest."""
    late = [at(2 * LASTING_MS, group_metadata("h", generation=1))]
    other = [(Position(3, of.place.offset, of.place.timestamp_ms), of.key, of.value) for of in history(*late).records]
    replica = Replica()
    looks, events = Looks(replica, topics(t=2)), list[Event]()
    own = [(of.place, of.key, of.value) for of in history(NOBODY_HAS_1).records]
    for place, key, value in (*other, *own):
        events += looks.before(place)
        replica.replay(place, key, value)
    replica.settle()

    assert [] == events
    assert [(False, {"t": [1]})] == reported(looks.at_end())


@pytest.mark.parametrize(
    "moments",
    [
        [NOBODY_HAS_1, at(LASTING_MS, group_metadata("g", generation=2, members=[member("a", {"t": [0, 1]})]))],
        [NOBODY_HAS_1, at(LASTING_MS, group_metadata("h", generation=1))],
        [NOBODY_HAS_1, at(9, group_metadata_tombstone("g")), *ANOTHER_GROUP],
        [NOBODY_HAS_1, at(9, group_metadata("g", generation=2)), *ANOTHER_GROUP],
        [
            TWO_OF_FOUR,
            at(1_000, *retarget("g", 2, {"a": {"t": [0, 1, 2, 3]}})),
            at(2_000, *consumer_moves("g", "a", epoch=2, assigned={"t": [0, 1, 2, 3]})),
            *ANOTHER_GROUP,
        ],
    ],
    ids=["handed out in time", "ends too soon", "deleted", "emptied", "handed out at once"],
)
def test_recording_without_a_lasting_lack_tells_nothing(moments: list[Moment]) -> None:
    """As a running monitor would not."""
    assert [] == looked_at(history(*moments), topics(t=4) if moments[0] is TWO_OF_FOUR else topics(t=2))


@pytest.mark.parametrize("is_handed_out", [True, False])
def test_partition_that_a_cleaned_log_shows_without_an_owner_may_be_handed_out_and_rest_again(
    is_handed_out: bool,
) -> None:
    """The live tail begins while it rests; hours later its new owner leaves, and another one has it in a moment."""
    both = {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}
    rests = [
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": both["a"]})),
        at(2_000, *consumer_join("g", "b", epoch=3, targets=both, assigned={}, state=2)),
        at(3_000, *consumer_moves("g", "a", epoch=3, assigned=both["a"])),
    ]
    owned = [at(4_000, *consumer_moves("g", "b", epoch=3, assigned=both["b"], previous_epoch=0))]
    leaves = [
        at(3 * LASTING_MS, *consumer_leave("g", "b", epoch=4)),
        at(3 * LASTING_MS + 3_000, *retarget("g", 4, {"a": {"t": [0, 1, 2, 3]}})),
        at(3 * LASTING_MS + 4_000, *consumer_moves("g", "a", epoch=4, assigned={"t": [0, 1, 2, 3]})),
        at(4 * LASTING_MS, group_metadata("h", generation=1)),
    ]
    cut = len(history(*rests))
    log = history(*rests, *(owned if is_handed_out else [at(4_000)]), *leaves).compacted(cut)
    replica, events = Replica(live_from={PARTITION: cut}), list[Event]()
    looks = Looks(replica, topics(t=4), {PARTITION: cut})
    for of in log.records:
        events += looks.before(of.place)
        events += replica.replay(of.place, of.key, of.value)
    events += [*replica.settle(), *looks.at_end()]

    lacked = [(False, {"t": [2, 3]}), (True, {"t": [2, 3]})]
    assert ([] if is_handed_out else lacked) == reported(lacking(events))


def test_a_topic_without_an_id_is_of_no_consumer_group() -> None:
    """Its members hold partitions by topic id; a classic group's do so by name."""
    nameless = {"t": Topic(None, 4)}

    assert unheld(replayed(TWO_OF_FOUR).membership, nameless) is None
    assert {"t": (0, 2, 3)} == unheld(replayed(*classic(member("a", {"t": [1]}))).membership, nameless)


def test_recording_of_a_real_broker_lacks_no_owner() -> None:
    """Its groups handed out all their partitions, each time within the time it takes."""
    with open_recording(RECORDING) as recording:
        sizes = {topic.name: Topic(topic.id, topic.partitions) for topic in recording.header.topics}

    assert [] == looked_at(recorded(), sizes)


def test_looks_are_taken_every_second_of_the_log() -> None:
    """Not with every record: a busy partition has thousands a second."""
    replica = Replica()
    looks = Looks(replica, topics(t=2))
    first = history(NOBODY_HAS_1).records[0]
    looks.before(Position(PARTITION, 0, 0))
    replica.replay(first.place, first.key, first.value)
    replica.settle()

    looks.before(Position(PARTITION, 1, LOOK_EVERY_MS - 1))
    assert {"g"} == replica.take_changes().groups
