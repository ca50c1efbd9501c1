"""Offsets that go back, topics recreated under a group, and groups that begin and end by their offsets."""

import pytest

from coordinator_model.clocked.rewinds_awaited import LATE_MS
from coordinator_model.replica import Replica
from coordinator_model.rules.offset_commits import TOPIC_IDS_KEPT
from coordinator_model.rules.rewinds import BACK_MS
from coordinator_model.state.events import Event
from coordinator_model.state.offsets import BUCKET_PARTITIONS
from coordinator_model.wire.primitives import ZERO_UUID
from lab.builders import (
    RecordBytes,
    group_metadata,
    group_metadata_tombstone,
    member,
    offset_commit,
    offset_commit_tombstone,
    share_group_epoch,
    topic_id,
)
from lab.coordinator_events import consumer_join, consumer_leave, converted_to_classic, converted_to_consumer
from tests.histories import PARTITION, History, LogRecord, Moment, Reported, at, history
from tests.moments import overdue

MEMBERS = (group_metadata("g", generation=1, members=[member("a", {"t": [0, 1]})]),)
NO_MEMBERS = (group_metadata("g", generation=2),)


def recreated(reported: Reported) -> list[tuple[int, str, int]]:
    """(time, topic, partition) of each topic reported as recreated."""
    return [
        (of.time_ms, of.detail["topic"], of.detail["partition"])
        for of in reported.events
        if of.kind == "topic_recreated"
    ]


def commit(partition: int, offset: int, topic: str, *, name: str = "t") -> RecordBytes:
    """A commit of the topic `name` as it was made when it had the id of `topic`."""
    return offset_commit("g", name, partition, offset, id_of_topic=topic_id(topic))


# -- offsets that go back ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("membership", "severity"), [(MEMBERS, "warning"), (NO_MEMBERS, "info")], ids=["members", "none"]
)
def test_rewind_of_a_group_without_members_is_a_reset(membership: tuple[RecordBytes, ...], severity: str) -> None:
    """The broker takes an admin's commit only then, and a member's only of members: the one is meant, the other not."""
    reported = history(
        at(0, *membership), at(1_000, offset_commit("g", "t", 0, 500)), at(2_000, offset_commit("g", "t", 0, 200))
    ).replayed()

    (event,) = (event for event in reported.events if event.kind == "offset_rewound")
    assert severity == event.severity
    assert {
        "topic": "t",
        "partition": 0,
        "from": 500,
        "to": 200,
        "partitions": {"t": [0]},
        "offsets": {"t/0": {"from": 500, "to": 200}},
        "group_empty": severity == "info",
    } == event.detail


@pytest.mark.parametrize(
    ("former", "committed", "is_rewind"),
    [(-1, -2, False), (-1, 0, False), (0, 0, False), (0, -1, True), (500, -2, True)],
)
def test_only_from_an_offset_can_be_gone_back(former: int, committed: int, is_rewind: bool) -> None:
    """From -1 or -2, which are none, nothing was read that would be read again; to them everything may be."""
    reported = history(
        at(0, *MEMBERS), at(1_000, offset_commit("g", "t", 0, former)), at(2_000, offset_commit("g", "t", 0, committed))
    ).replayed()

    assert is_rewind == ("offset_rewound" in [event.kind for event in reported.events])


@pytest.mark.parametrize("left", [False, True])
def test_rewind_of_a_consumer_group(left: bool) -> None:
    """By the same rule as a classic group."""
    gone = [at(500, *consumer_leave("g", "a", epoch=3))] if left else []
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
        *gone,
        at(1_000, offset_commit("g", "t", 0, 500)),
        at(2_000, offset_commit("g", "t", 0, 200)),
    ).replayed()

    assert [left] == [detail["group_empty"] for detail in reported.details("offset_rewound")]
    assert left == reported.states["g"].counters.offset_resets


def test_rewinds_of_one_moment_are_one_event_as_of_the_last_record() -> None:
    """All that went back; what went back furthest stands first."""
    reported = history(
        at(0, *MEMBERS, *(offset_commit("g", "t", of, 500) for of in (0, 1))),
        at(2_000, offset_commit("g", "t", 1, 100), offset_commit("g", "t", 0, 200)),
    ).replayed()

    (event,) = (event for event in reported.events if event.kind == "offset_rewound")
    assert (2_000, 4) == (event.time_ms, event.offset)
    assert (1, {"t": [0, 1]}) == (event.detail["partition"], event.detail["partitions"])


def test_rewind_of_a_group_that_only_commits_is_information() -> None:
    """Its committer decides where it goes on, as MirrorMaker's syncs do: no alarm."""
    reported = history(at(0, offset_commit("g", "t", 0, 500)), at(1_000, offset_commit("g", "t", 0, 200))).replayed()

    assert {} == reported.alarms()
    assert ["t"] == [detail["topic"] for detail in reported.details("offset_rewound")]
    assert "group_empty" not in reported.details("offset_rewound")[0]


def test_partitions_that_go_back_at_one_moment_are_one_event() -> None:
    """What went back furthest stands first; what goes back later is another."""
    forward = [commit(partition, 500, "t") for partition in range(3)]
    back = [commit(0, 400, "t"), commit(1, 100, "t"), commit(2, 600, "t")]
    reported = history(at(0, *MEMBERS, *forward), at(1_000, *back), at(2_000, commit(0, 300, "t"))).replayed()

    first, second = reported.details("offset_rewound")
    assert ("t", 1, 500, 100, {"t": [0, 1]}) == tuple(
        first[key] for key in ("topic", "partition", "from", "to", "partitions")
    )
    assert {"t/0": {"from": 500, "to": 400}, "t/1": {"from": 500, "to": 100}} == first["offsets"]
    assert {"t": [0]} == second["partitions"]


def test_moment_of_rewinds_is_one_event_wherever_the_log_is_cut() -> None:
    """What is not reported yet is kept with the group."""
    forward = [commit(partition, 500, "t") for partition in range(3)]
    log = history(at(0, *MEMBERS, *forward), at(1_000, commit(0, 4, "t"), commit(1, 1, "t")), at(2_000, *NO_MEMBERS))
    whole = log.replayed()

    assert 1 == len(whole.details("offset_rewound"))
    for position in range(len(log) + 1):
        assert whole.event_texts() == log.replayed_in_batches([position]).event_texts()


def test_rewinds_are_reported_when_the_batch_is_over() -> None:
    """Nothing may come after them for a day."""
    replica, events = Replica(), []
    for record in history(at(0, *MEMBERS, commit(0, 5, "t")), at(1_000, commit(0, 4, "t"))).records:
        events += replica.replay(record.place, record.key, record.value)

    assert [] == [event for event in events if event.kind == "offset_rewound"]
    assert ["offset_rewound"] == [event.kind for event in replica.settle()]
    assert [] == replica.open_steps()


# -- offsets that are back at once ------------------------------------------------------------------------------------


def out_of_order(*later: Moment) -> History:
    """A group whose member commits 500, goes back to 200 after a second, and what comes then."""
    return history(at(0, *MEMBERS, commit(0, 500, "t"), commit(1, 500, "t")), at(1_000, commit(0, 200, "t")), *later)


def severity(reported: Reported) -> list[str]:
    """Of each rewind."""
    return [event.severity for event in reported.events if event.kind == "offset_rewound"]


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([at(1_000, commit(0, 500, "t"))], "info"),
        ([at(1_300, commit(0, 520, "t"))], "info"),
        ([at(1_300, commit(0, 400, "t")), at(1_600, commit(0, 500, "t"))], "info"),
        ([at(3_000, commit(0, 500, "t"))], "info"),
        ([at(3_001, commit(0, 500, "t"))], "warning"),
        ([at(1_300, commit(0, 499, "t")), at(9_000, commit(0, 499, "t"))], "warning"),
        ([at(1_300, commit(1, 520, "t"))], "warning"),
        ([at(1_300, offset_commit_tombstone("g", "t", 0)), at(1_400, commit(0, 300, "t"))], "warning"),
        ([], "warning"),
    ],
    ids=[
        "same moment", "a moment later", "by steps", "two seconds", "too late", "one short of it", "another partition",
        "deleted", "never",
    ],
)  # fmt: skip
def test_rewind_that_is_back_within_two_seconds_is_information(later: list[Moment], expected: str) -> None:
    """A client that sends its waiting commits out of order reads nothing again; one that seeks back does."""
    reported = out_of_order(*later).replayed()

    (event,) = (event for event in reported.events if event.kind == "offset_rewound")
    assert (expected, 1_000) == (event.severity, event.time_ms)
    assert (expected == "info") == ("back_ms" in event.detail)
    assert (expected == "info") == reported.states["g"].counters.offset_resets
    assert f"{PARTITION}-3-offset_rewound-0" == event.id


def test_rewind_of_which_a_part_is_back_is_of_the_rest() -> None:
    """What is not back stands first, though the other went back further."""
    reported = out_of_order(
        at(1_500, commit(0, 100, "t"), commit(1, 400, "t")), at(2_000, commit(0, 500, "t")), at(9_000, *NO_MEMBERS)
    ).replayed()
    first, second = (event for event in reported.events if event.kind == "offset_rewound")

    assert ("info", 1_000) == (first.severity, first.detail["back_ms"])
    assert ("warning", 1, {"t": [0, 1]}, {"t": [0]}) == (
        second.severity,
        *(second.detail[name] for name in ("partition", "partitions", "back")),
    )


def test_rewind_after_a_rewind_is_back_where_both_began() -> None:
    """Above the second one's beginning alone the member still reads again."""
    back = [at(1_500, commit(0, 100, "t")), at(1_600, commit(0, 250, "t")), at(9_000, commit(0, 900, "t"))]

    assert ["warning", "warning"] == severity(out_of_order(*back).replayed())
    assert ["info", "info"] == severity(out_of_order(*back[:2], at(1_700, commit(0, 500, "t"))).replayed())


def test_rewind_is_judged_by_the_log_wherever_it_is_cut() -> None:
    """What is awaited is kept with the group."""
    for later in (at(1_300, commit(0, 500, "t")), at(4_000, commit(0, 500, "t"))):
        log = out_of_order(later, at(9_000, *NO_MEMBERS))
        whole = log.replayed()

        for position in range(len(log) + 1):
            assert whole.event_texts() == log.replayed_in_batches([position]).event_texts()


@pytest.mark.parametrize("membership", [MEMBERS, NO_MEMBERS, ()], ids=["members", "empty", "only commits"])
@pytest.mark.parametrize("live", [True, False], ids=["live", "history"])
def test_rewind_is_the_same_event_wherever_a_micro_batch_ends(membership: tuple[RecordBytes, ...], live: bool) -> None:
    """Also where it was meant, or is history: both are reported at once, and await no commit that follows."""
    moments = [
        at(0, *membership, commit(0, 500, "t")),
        at(1_000, commit(0, 200, "t")),
        at(1_300, commit(0, 500, "t")),
        at(9_000, commit(0, 600, "t")),
    ]
    log = history(*moments)
    live_from = 0 if live else log.end
    replica, settled = Replica(live_from=live_from), list[Event]()
    for number in range(len(moments)):
        batch = [record for record in log.records if record.place.timestamp_ms == moments[number].time_ms]
        for record in batch:
            settled += replica.replay(record.place, record.key, record.value)
        settled += replica.settle(now_ms=batch[-1].place.timestamp_ms)
    whole = log.replayed(live_from=live_from)

    assert [of for of in whole.events if of.kind == "offset_rewound"] == [
        of for of in settled if of.kind == "offset_rewound"
    ]
    assert whole.states["g"].counters == replica.groups["g"].counters


def test_rewind_after_which_nothing_is_written_is_said_by_the_clock() -> None:
    """It is the event that the log's next record would have shown."""
    replica, events = Replica(), []
    for record in out_of_order().records:
        events += replica.replay(record.place, record.key, record.value)
    events += replica.settle(now_ms=1_000)
    state = replica.groups["g"]

    assert [] == [event for event in events if event.kind == "offset_rewound"]
    assert [] == overdue(state, 1_000 + BACK_MS + LATE_MS)
    (found,) = overdue(state, 1_001 + BACK_MS + LATE_MS)
    (at_end,) = replica.settle()
    assert (found, "warning", []) == (at_end, at_end.severity, overdue(state, 1_001 + BACK_MS + LATE_MS))


def test_rewind_from_before_the_live_tail_is_not_awaited() -> None:
    """It is history, by the clock as well."""
    log = out_of_order()
    replica = Replica(live_from=log.end)
    for record in log.records:
        replica.replay(record.place, record.key, record.value)
    replica.settle(now_ms=1_000)

    assert [] == overdue(replica.groups["g"], 86_400_000)


def test_group_that_ends_is_awaited_no_longer() -> None:
    """What went back is said before what goes with it."""
    gone = [offset_commit_tombstone("g", "t", 0), offset_commit_tombstone("g", "t", 1), group_metadata_tombstone("g")]
    reported = out_of_order(at(1_300, *gone)).replayed()

    assert ["warning"] == severity(reported)
    kinds = [event.kind for event in reported.events]
    assert kinds.index("offset_rewound") < kinds.index("group_deleted")


def test_rewind_read_after_a_later_membership_is_not_judged_by_it() -> None:
    """Commits come from another reader than memberships, and may come late: who was in the group then is unknown."""
    log = history(
        at(0, *MEMBERS),
        at(1_000, offset_commit("g", "t", 0, 500)),
        at(2_000, offset_commit("g", "t", 0, 200)),
        at(3_000, *NO_MEMBERS),
    )
    late = History((*log.records[:2], log.records[3], log.records[2]))

    (event,) = (event for event in late.replayed().events if event.kind == "offset_rewound")
    assert ("warning", False) == (event.severity, "group_empty" in event.detail)


# -- recreated topics -------------------------------------------------------------------------------------------------


def test_topic_recreated_is_reported_once_for_all_its_partitions() -> None:
    """The first commit that names the new id shows it, though it goes forward."""
    reported = history(
        at(0, *(commit(partition, 5, "t") for partition in (0, 1, BUCKET_PARTITIONS))),
        at(1_000, *(commit(partition, 9, "t anew") for partition in (1, 0, BUCKET_PARTITIONS))),
        at(2_000, commit(2, 1, "t anew")),
    ).replayed()

    assert [(1_000, "t", 1)] == recreated(reported)
    ids = {"former_topic_id": topic_id("t"), "topic_id": topic_id("t anew")}
    assert [{"topic": "t", "partition": 1, "from": 5, "to": 9, **ids}] == reported.details("topic_recreated")


def test_topic_recreated_after_its_offsets_are_gone() -> None:
    """Deleting a topic deletes its offsets; the group that stays still knows what the topic was."""
    reported = history(
        at(0, *MEMBERS, commit(0, 500, "t")),
        at(1_000, offset_commit_tombstone("g", "t", 0)),
        at(2_000, commit(0, 1, "t anew")),
    ).replayed()

    ids = {"former_topic_id": topic_id("t"), "topic_id": topic_id("t anew")}
    assert [{"topic": "t", "partition": 0, "to": 1, **ids}] == reported.details("topic_recreated")


def test_partition_that_goes_back_after_its_topic_was_reported_is_no_rewind() -> None:
    """Its former offset is of the former topic, whichever partition came first."""
    reported = history(
        at(0, commit(0, 500, "t"), commit(1, 500, "t")), at(1_000, commit(0, 1, "t anew"), commit(1, 1, "t anew"))
    ).replayed()

    assert {("g", "topic_recreated"): 1} == reported.alarms()


def test_rewind_within_the_new_topic_is_one() -> None:
    """From then on the new topic's offsets are compared."""
    reported = history(
        at(0, *MEMBERS, commit(0, 500, "t")), at(1_000, commit(0, 9, "t anew")), at(2_000, commit(0, 1, "t anew"))
    ).replayed()

    assert {("g", "topic_recreated"): 1, ("g", "offset_rewound"): 1} == reported.alarms()


def test_commits_without_an_id_tell_nothing_and_hide_nothing() -> None:
    """Transactions write none; the id is remembered across them."""
    reported = history(
        at(0, commit(0, 5, "t")),
        at(1_000, offset_commit("g", "t", 0, 6, id_of_topic=ZERO_UUID)),
        at(2_000, commit(0, 7, "t")),
        at(3_000, offset_commit("g", "t", 0, 8, id_of_topic=ZERO_UUID)),
        at(4_000, commit(0, 3, "t anew")),
    ).replayed()

    assert {("g", "topic_recreated"): 1} == reported.alarms()
    assert [(4_000, "t", 0)] == recreated(reported)


def test_late_commit_of_the_former_topic_tells_nothing() -> None:
    """Its id is known; and the next of the new topic is no third topic."""
    reported = history(
        at(0, commit(0, 5, "t")),
        at(1_000, commit(0, 6, "t anew")),
        at(2_000, commit(0, 7, "t")),
        at(3_000, commit(0, 8, "t anew")),
    ).replayed()

    assert [(1_000, "t", 0)] == recreated(reported)


def test_topic_recreated_again_and_again_is_reported_each_time() -> None:
    """Only the last few ids are kept, whatever number there were."""
    number = 3 * TOPIC_IDS_KEPT
    reported = history(*(at(time, commit(0, time, f"t {time}")) for time in range(number))).replayed()

    assert [(time, "t", 0) for time in range(1, number)] == recreated(reported)
    assert TOPIC_IDS_KEPT == len(reported.states["g"].topic_ids["t"])


def test_ids_are_of_a_topic_and_of_a_group() -> None:
    """Another topic, another group and a group recreated under the name start without."""
    reported = history(
        at(0, commit(0, 5, "t"), commit(0, 5, "u", name="u"), offset_commit("h", "t", 0, 1, id_of_topic=topic_id("w"))),
        at(1_000, offset_commit_tombstone("g", "t", 0), offset_commit_tombstone("g", "u", 0)),
        at(2_000, commit(0, 1, "t anew")),
    ).replayed()

    assert [] == recreated(reported)


def test_topic_recreated_is_reported_wherever_the_log_is_cut() -> None:
    """What a group knows of its topics is kept with it."""
    log = history(
        at(0, share_group_epoch("g", 2), commit(0, 5, "t")),
        at(1_000, offset_commit_tombstone("g", "t", 0)),
        at(2_000, commit(0, 6, "t anew"), commit(1, 6, "t anew")),
    )
    whole = log.replayed()

    assert [(2_000, "t", 0)] == recreated(whole)
    for position in range(len(log) + 1):
        assert whole.event_texts() == log.replayed_in_batches([position]).event_texts()
    assert whole.event_texts() == log.replayed_in_batches([1] * len(log)).event_texts()


# -- groups that begin and end by offsets -----------------------------------------------------------------------------

ENDS = (at(0, *MEMBERS), at(1_000, *NO_MEMBERS), at(2_000, group_metadata_tombstone("g")))


@pytest.mark.parametrize("settled", [False, True])
def test_group_that_is_deleted_and_begins_again_by_a_commit(settled: bool) -> None:
    """Whether its end was concluded before the commit is read or by it: it is another group, and reported as such."""
    replica = Replica()
    events = []
    for record in history(*ENDS, at(3_000, commit(0, 5, "t"))).records:
        events += replica.replay(record.place, record.key, record.value)
        events += replica.settle() if settled else []

    assert [("group_created", 0), ("group_deleted", 2_000), ("group_created", 3_000)] == [
        (event.kind, event.time_ms)
        for event in events
        if event.kind.startswith("group_") and "emptied" not in event.kind
    ]
    assert 0 == replica.groups["g"].counters.rebalances


@pytest.mark.parametrize("settled", [False, True])
def test_group_that_ends_with_its_last_offset(settled: bool) -> None:
    """Its record went before; it is gone when the offset is."""
    replica = Replica()
    events = []
    moments = (ENDS[0], at(500, commit(0, 5, "t")), *ENDS[1:], at(3_000, offset_commit_tombstone("g", "t", 0)))
    for record in history(*moments).records:
        events += replica.replay(record.place, record.key, record.value)
        events += replica.settle() if settled else []

    assert [3_000] == [event.time_ms for event in events if event.kind == "group_deleted"]


def test_offset_within_an_event_does_not_end_it() -> None:
    """DeleteGroups writes the offsets' tombstones first, all of one time."""
    reported = history(
        at(0, *MEMBERS),
        at(1_000, commit(0, 5, "t")),
        at(2_000, group_metadata_tombstone("g"), offset_commit_tombstone("g", "t", 0), *NO_MEMBERS),
    ).replayed()

    assert [] == [event for event in reported.events if event.kind == "group_deleted"]


def test_commit_read_late_does_not_end_a_step() -> None:
    """It was written before the step began."""
    log = history(at(0, *MEMBERS), at(1_000, commit(0, 5, "t")), at(2_000, group_metadata_tombstone("g")))
    late = History((log.records[0], log.records[2], log.records[1]))

    assert {"t/0": 5} == late.replayed().offsets("g")
    assert [] == [event for event in late.replayed().events if event.kind == "group_deleted"]


@pytest.mark.parametrize("settled", [False, True])
def test_downgrade_tells_the_offsets_it_found(settled: bool) -> None:
    """What is committed after it is not among them, whether it was concluded before that commit is read or by it."""
    replica = Replica()
    events = []
    targets = {"new": {"t": [0]}, "old": {"t": [1]}}
    log = history(
        at(0, *converted_to_consumer("g", generation=5, members={"old": {"t": [0, 1]}})),
        at(1_000, *consumer_join("g", "new", epoch=6, targets=targets)),
        at(2_000, commit(0, 5, "t")),
        at(
            3_000,
            *converted_to_classic("g", all_members=["new", "old"], generation=7, remaining={"old": {"t": [1]}}),
        ),
        at(4_000, commit(1, 5, "t")),
    )
    for record in log.records:
        events += replica.replay(record.place, record.key, record.value)
        events += replica.settle() if settled and record.place.timestamp_ms >= 3_000 and ends(log, record) else []

    assert [1] == [event.detail["offsets"] for event in events if event.kind == "downgrade_completed"]


def ends(log: History, record: LogRecord) -> bool:
    """Whether it is the last one of its time."""
    return record is [of for of in log.records if of.place.timestamp_ms == record.place.timestamp_ms][-1]


# -- commits without a topic id: brokers before 4.1, and transactions --------------------------------------------------


def old_commit(partition: int, offset: int, topic: str = "t", *, timestamp: int = 0) -> RecordBytes:
    """A commit as brokers before 4.1 write it."""
    return offset_commit("g", topic, partition, offset, version=3, timestamp=timestamp)


FORWARD = at(1_000, *(old_commit(of, 500, timestamp=1_000) for of in (0, 1)))
DELETED = at(2_000, *(offset_commit_tombstone("g", "t", of) for of in (0, 1)))


@pytest.mark.parametrize("stale", [(), (0,), (0, 1)], ids=["nothing", "once more", "of both"])
def test_topic_made_again_is_told_from_a_rewind_by_what_went_with_it(stale: tuple[int, ...]) -> None:
    """Offsets of a topic that members read go with the topic alone; what is lower then is of another one.

    A consumer that has yet to hear of it may commit once more where it was. It is said once, however many partitions.
    """
    late = [at(3_000, *(old_commit(of, 500, timestamp=3_000) for of in stale))] if stale else []
    back = [at(9_000, old_commit(0, 3, timestamp=9_000)), at(9_500, old_commit(1, 4, timestamp=9_500))]
    log = history(at(0, *MEMBERS), FORWARD, DELETED, *late, *back, at(14_000, old_commit(0, 5, timestamp=14_000)))
    reported = log.replayed()

    assert [(9_000, "t", 0)] == recreated(reported)
    assert [] == reported.details("offset_rewound")
    (event,) = (of for of in reported.events if of.kind == "topic_recreated")
    assert (True, 500, 3, None) == (event.inferred, event.detail["from"], event.detail["to"], event.detail["topic_id"])
    assert {"t/0": 5, "t/1": 4} == reported.offsets("g")
    in_batches = log.replayed_in_batches([1] * len(log))
    assert reported.event_texts() == in_batches.event_texts()


def test_offset_that_goes_back_in_the_new_topic_is_a_rewind() -> None:
    """Each offset that went tells of one commit of the new topic; what goes back after that is gone back on."""
    later = [(9_000, 3), (14_000, 90), (20_000, 10)]
    reported = history(
        at(0, *MEMBERS), FORWARD, DELETED, *(at(ms, old_commit(0, to, timestamp=ms)) for ms, to in later)
    ).replayed()

    assert [(9_000, "t", 0)] == recreated(reported)
    assert [{"t": [0]}] == [of["partitions"] for of in reported.details("offset_rewound")]


@pytest.mark.parametrize("how", ["nothing went", "nobody reads it", "a day later"])
def test_rewind_that_only_looks_like_a_new_topic_may_be_one(how: str) -> None:
    """Nothing says that the topic is another one, nor that it is not: a warning that says so."""
    reads = group_metadata("g", generation=1, members=[member("a", {}, topics=["u"])])
    later_ms = 86_400_000 if how == "a day later" else 3_000
    deleted = [] if how == "nothing went" else [DELETED]
    reported = history(
        at(0, *((reads,) if how == "nobody reads it" else MEMBERS)),
        FORWARD,
        *deleted,
        at(2_500, old_commit(0, 500, timestamp=2_500)),
        at(2_500 + later_ms, old_commit(0, 3, timestamp=2_500 + later_ms)),
    ).replayed()

    (event,) = (of for of in reported.events if of.kind == "offset_rewound")
    assert "warning" == event.severity
    assert (["t"], 2_500) == (event.detail["may_be_recreated"], event.detail["former_commit"])
    assert [] == recreated(reported)


@pytest.mark.parametrize("now", ["t", "t again", "zeros"])
def test_id_that_a_topic_has_now_tells_what_a_commit_without_one_is_of(now: str) -> None:
    """The caller knows it beside the log, as from the header of a recording. All zeros are no id."""
    id_now = ZERO_UUID if now == "zeros" else topic_id(now)
    reported = history(
        at(0, *MEMBERS),
        at(1_000, *(commit(of, 500, "t") for of in (0, 1))),
        at(2_000, offset_commit("g", "t", 0, 3, id_of_topic=ZERO_UUID)),
        at(3_000, offset_commit("g", "t", 1, 3, id_of_topic=ZERO_UUID)),
    ).replayed(topic_ids={"t": id_now})

    rewound = [detail.get("may_be_recreated") for detail in reported.details("offset_rewound")]
    assert ([] if now == "t again" else [["t"] if now == "zeros" else None] * 2) == rewound
    assert ([(2_000, "t", 0)] if now == "t again" else []) == recreated(reported)
    if now == "t again":
        (detail,) = reported.details("topic_recreated")
        assert (topic_id("t"), topic_id("t again")) == (detail["former_topic_id"], detail["topic_id"])
