"""A group in two partitions of the offsets topic, as after the topic was grown: one copy is the group.

`orders` hashes to partition 31 of 50, and to 51 of 60.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.copies import CopyEvent, lives_in, of_the_group
from coordinator_model.log_replica import CopyName, LogReplica
from coordinator_model.recording_clock import Looks
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from lab.builders import group_metadata, group_metadata_tombstone, member, offset_commit, offset_commit_tombstone
from lab.coordinator_events import consumer_gone, consumer_group_deleted, consumer_join, consumer_leave
from tests.histories import TOPIC_NAMES, LogRecord, Moment, at

GROUP: Final = "orders"
OLD, NEW, PARTITIONS = 31, 51, 60
SECOND: Final = 1_000
GROWN_MS: Final = 100 * SECOND

Log = Mapping[int, tuple[Moment, ...]]
"""Partition → what is written there."""


def joined(at_ms: int, member_id: str = "a", group: str = GROUP) -> tuple[Moment, ...]:
    """A member joins a consumer group and commits."""
    return (
        at(at_ms, *consumer_join(group, member_id, epoch=2, targets={member_id: {"t": [0, 1]}})),
        at(at_ms + SECOND, offset_commit(group, "t", 0, at_ms // SECOND, timestamp=at_ms + SECOND)),
    )


def expired(at_ms: int, group: str = GROUP) -> tuple[Moment, ...]:
    """The coordinator of the old partition finds its members gone, and a while later the group."""
    return (
        at(at_ms, *consumer_leave(group, "a", epoch=3)),
        at(at_ms + SECOND, offset_commit_tombstone(group, "t", 0), *consumer_group_deleted(group)),
    )


GROWN: Final[Log] = {
    OLD: (*joined(0), *expired(GROWN_MS + 45 * SECOND)),
    NEW: joined(GROWN_MS, "b"),
}
"""A group whose members went on in its new partition; what was left in the old one expired."""


def lines(log: Log) -> list[LogRecord]:
    """The log partition after partition."""
    return [line for partition in log for line in of_partition(partition, log[partition])]


def of_partition(partition: int, moments: Iterable[Moment]) -> Iterator[LogRecord]:
    """Its records, at consecutive offsets."""
    written = ((moment.time_ms, *record) for moment in moments for record in moment.records)
    for offset, (time_ms, key, value) in enumerate(written):
        yield LogRecord(Position(partition, offset, time_ms), key, value)


def by_time(log: Log) -> list[LogRecord]:
    """The log as it was written."""
    return sorted(lines(log), key=lambda line: (line.place.timestamp_ms, line.place.partition, line.place.offset))


class Replayed:
    """What a replay of these lines comes to, with the clock of the recording, as `replay` has it."""

    def __init__(self, of: Iterable[LogRecord], partitions: int = PARTITIONS) -> None:
        self.replica = LogReplica(partitions)
        looks, events = Looks(self.replica, {}), list[Event]()
        for line in of:
            events += looks.before(line.place)
            events += self.replica.replay(line.place, line.key, line.value)
        events += self.replica.settle()
        events += looks.at_end()
        self.events = sorted(
            self.replica.reported(events), key=lambda event: (event.time_ms, event.partition, event.offset)
        )

    def kinds(self, partition: int) -> list[str]:
        """Kinds of the events reported of a partition."""
        return [event.kind for event in self.events if event.partition == partition]

    def views(self) -> dict[str, dict[str, Any]]:
        """GROUP of each group there is."""
        known = self.replica.living()
        return {
            name: group_view(state, self.replica.offsets(name), TOPIC_NAMES, 0)
            for name, state in known.items()
            if state.exists
        }

    def said(self) -> tuple[str, list[str]]:
        """All of it as text."""
        return json.dumps(self.views(), sort_keys=True), [json.dumps(event_view(event)) for event in self.events]

    def owners(self) -> list[str]:
        """Members of the group."""
        return [each["member_id"] for each in self.views()[GROUP]["members"]]


# -- which copy is the group ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("copies", "partitions", "expected"),
    [
        pytest.param({31: 5, 51: 1}, 60, 51, id="where it hashes to"),
        pytest.param({31: 1, 51: 5}, 50, 31, id="where it hashes to, though the other was written later"),
        pytest.param({7: 5}, 60, 7, id="the only one, wherever it is"),
        pytest.param({7: 5, 8: 6}, 60, 8, id="none is there: the one written last"),
        pytest.param({7: 5, 8: 5}, 60, 8, id="written at once: the higher partition"),
        pytest.param({31: 5, 51: 1}, None, 31, id="partitions not known: the one written last"),
    ],
)
def test_which_copy_is_the_group(copies: dict[int, int], partitions: int | None, expected: int) -> None:
    """Hash decides only where there are several and one is where it says."""
    assert expected == lives_in(GROUP, copies, partitions)


def test_event_of_a_copy_counts_while_that_copy_is_the_group() -> None:
    """Before the other came, and after it went."""
    events = [
        CopyEvent(1, OLD, 0, "group_created"),
        CopyEvent(2, OLD, 1, "member_joined"),
        CopyEvent(3, NEW, 0, "group_created"),
        CopyEvent(4, OLD, 2, "member_left"),
        CopyEvent(5, NEW, 1, "group_deleted"),
        CopyEvent(6, OLD, 3, "group_deleted"),
    ]

    own, (doubled,) = of_the_group(events, (), max)

    assert {0, 1, 2, 4, 5} == own
    assert (2, (OLD, NEW), NEW) == (doubled.shown_by, doubled.partitions, doubled.lives_in)


def test_name_of_a_copy_reads_as_the_groups_and_is_another() -> None:
    """So that two groups of one name can stand in one mapping."""
    copy = CopyName("g", 7)

    assert {"g": 1, copy: 2, CopyName("g", 8): 3} == {CopyName("g", 8): 3, copy: 2, "g": 1}
    assert copy != "g"
    assert copy == CopyName("g", 7)
    assert '"g"' == json.dumps(copy)
    assert "g" == str(copy)
    assert type(str(copy)) is str


# -- a topic that was grown -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(lines(GROWN), id="old first"),
        pytest.param(lines({NEW: GROWN[NEW], OLD: GROWN[OLD]}), id="new first"),
        pytest.param(by_time(GROWN), id="as written"),
    ],
)
def test_expiry_of_the_old_copy_leaves_the_group(of: list[LogRecord]) -> None:
    """It is no end of the group, and none of its members leave; whatever the order of lines."""
    replayed = Replayed(of)

    assert ["b"] == replayed.owners()
    assert [100] == [of["offset"] for of in replayed.views()[GROUP]["offsets"]]
    assert not {"group_deleted", "member_left", "group_emptied"} & {*replayed.kinds(OLD)}
    assert {"group_created", "member_joined", "group_in_two_partitions"} <= {*replayed.kinds(NEW)}
    assert "group_created" in replayed.kinds(OLD)


def test_copy_is_named_once() -> None:
    """By the record with which there were two."""
    (event,) = [event for event in Replayed(lines(GROWN)).events if event.kind == "group_in_two_partitions"]

    assert {
        "id": "51-4-group_in_two_partitions-0",
        "time": GROWN_MS,
        "group": GROUP,
        "kind": "group_in_two_partitions",
        "severity": "info",
        "partition": NEW,
        "offset": 4,
        "detail": {"partitions": [OLD, NEW], "lives_in": NEW},
        "inferred": False,
    } == event_view(event)


def test_group_that_only_commits_stays_when_its_old_offsets_expire() -> None:
    """It was deleted, and a simple group for good."""
    log = {
        OLD: (
            at(0, offset_commit(GROUP, "t", 0, 5, timestamp=0)),
            at(GROWN_MS * 2, offset_commit_tombstone(GROUP, "t", 0)),
        ),
        NEW: joined(GROWN_MS),
    }

    for of in (lines(log), by_time(log)):
        replayed = Replayed(of)

        assert not replayed.views()[GROUP]["simple"]
        assert not {"group_deleted", "offset_deleted"} & {event.kind for event in replayed.events}


def test_old_copy_that_lives_on_is_not_the_group() -> None:
    """Its members, offsets and time are not the group's."""
    log = {OLD: joined(0), NEW: joined(GROWN_MS, "b")}

    for of in (lines(log), by_time(log)):
        assert ["b"] == Replayed(of).owners()


def test_alarm_of_the_old_copy_is_none() -> None:
    """Two members of it own one partition."""
    doubled = at(GROWN_MS * 2, *consumer_join(GROUP, "c", epoch=3, targets={"c": {"t": [1]}}))
    log = {OLD: (*joined(0), doubled), NEW: joined(GROWN_MS, "b")}

    for of in (lines(log), by_time(log)):
        assert [] == [event.kind for event in Replayed(of).events if event.severity != "info"]
    assert {"duplicate_assignment"} == {
        event.kind for event in Replayed(lines({OLD: log[OLD]})).events if event.severity != "info"
    }


def test_where_neither_copy_is_where_it_hashes_to_the_one_written_last_is_the_group() -> None:
    """Brokers that hash otherwise keep working: their topic can be grown, too."""
    log = {7: joined(GROWN_MS, "b"), 8: joined(0)}

    for of in (lines(log), by_time(log)):
        replayed = Replayed(of)

        assert ["b"] == replayed.owners()
        assert [{"partitions": [7, 8], "lives_in": 7}] == [
            dict(event.detail) for event in replayed.events if event.kind == "group_in_two_partitions"
        ]


def test_expiry_as_the_last_record_does_not_make_a_copy_the_group() -> None:
    """Where neither is where it hashes to, and what expires is written last."""
    log = {7: joined(GROWN_MS, "b"), 8: (*joined(0), *expired(GROWN_MS * 5))}

    for of in (lines(log), by_time(log)):
        replayed = Replayed(of)

        assert ["b"] == replayed.owners()
        assert "group_deleted" not in replayed.kinds(8)


def test_only_copy_is_the_group_wherever_it_is() -> None:
    """A broker that hashes otherwise: nothing is named, all is reported."""
    replayed = Replayed(lines({7: (*joined(0), *expired(GROWN_MS))}))

    assert {} == replayed.views()
    assert {"group_created", "member_joined", "group_deleted"} <= {*replayed.kinds(7)}
    assert "group_in_two_partitions" not in replayed.kinds(7)


def test_old_copy_is_the_group_again_when_the_living_one_ends() -> None:
    """There is one only then."""
    log = {
        OLD: joined(0),
        NEW: (
            *joined(GROWN_MS, "b"),
            at(
                GROWN_MS * 2,
                offset_commit_tombstone(GROUP, "t", 0),
                *consumer_gone(GROUP, "b"),
                *consumer_group_deleted(GROUP),
            ),
        ),
    }

    for of in (lines(log), by_time(log)):
        replayed = Replayed(of)

        assert ["a"] == replayed.owners()
        assert "group_deleted" in replayed.kinds(NEW)


def test_new_copy_whose_old_one_had_gone_is_just_a_group() -> None:
    """One after the other: both are reported, and none is named."""
    log = {OLD: (*joined(0), *expired(10 * SECOND)), NEW: joined(GROWN_MS, "b")}

    for of in (lines(log), by_time(log)):
        kinds = [event.kind for event in Replayed(of).events]

        assert (2, 1) == (kinds.count("group_created"), kinds.count("group_deleted"))
        assert "group_in_two_partitions" not in kinds


def test_classic_group_of_a_grown_topic() -> None:
    """Likewise; its coordinator's tombstone comes when the old one has no member left."""
    log = {
        OLD: (
            at(0, group_metadata(GROUP, generation=7, members=[member("a", {"t": [0]})], timestamp=0)),
            at(GROWN_MS * 2, group_metadata(GROUP, generation=8, members=[], timestamp=GROWN_MS * 2)),
            at(GROWN_MS * 3, group_metadata_tombstone(GROUP)),
        ),
        NEW: (
            at(GROWN_MS, group_metadata(GROUP, generation=1, members=[member("b", {"t": [0]})], timestamp=GROWN_MS)),
        ),
    }

    for of in (lines(log), by_time(log)):
        replayed = Replayed(of)

        assert ["b"] == replayed.owners()
        assert 1 == replayed.views()[GROUP]["epoch"]
        assert not {"group_deleted", "group_emptied", "epoch_anomaly"} & {event.kind for event in replayed.events}


def test_three_copies_are_each_named() -> None:
    """A topic that was grown twice."""
    log = {OLD: joined(0), NEW: joined(GROWN_MS, "b"), 3: joined(GROWN_MS * 2, "c")}

    assert [[OLD, NEW], [3, OLD, NEW]] == [
        event.detail["partitions"] for event in Replayed(lines(log)).events if event.kind == "group_in_two_partitions"
    ]


# -- whatever the order -----------------------------------------------------------------------------------------------


@st.composite
def grown_logs(draw: st.DrawFn) -> tuple[Log, list[LogRecord]]:
    """Groups with copies here and there, and the lines in an order in which partitions are mixed."""
    log: dict[int, list[Moment]] = {}
    clock_ms = 0
    for _ in range(draw(st.integers(1, 6))):
        group, partition = draw(st.sampled_from(["orders", "billing"])), draw(st.sampled_from([3, 31, 49, 51]))
        clock_ms += draw(st.sampled_from([SECOND, 10 * SECOND]))
        moments = log.setdefault(partition, [])
        moments += joined(clock_ms, group=group) if draw(st.booleans()) else expired(clock_ms, group=group)
        clock_ms += 2 * SECOND
    queues = {partition: list(of_partition(partition, moments)) for partition, moments in log.items()}
    mixed: list[LogRecord] = []
    while queues:
        partition = draw(st.sampled_from(sorted(queues)))
        mixed.append(queues[partition].pop(0))
        if not queues[partition]:
            del queues[partition]
    return {partition: tuple(moments) for partition, moments in log.items()}, mixed


@given(grown_logs())
def test_order_of_partitions_changes_nothing(of: tuple[Log, list[LogRecord]]) -> None:
    """Neither groups nor events: partitions stand in a recording in any order."""
    log, mixed = of

    expected = Replayed(by_time(log)).said()

    assert expected == Replayed(lines(log)).said()
    assert expected == Replayed(mixed).said()
