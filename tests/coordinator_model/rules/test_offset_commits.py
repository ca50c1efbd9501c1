"""Committed offsets (docs/coordinator-log.md): one per group, topic and partition; what goes back, and what goes."""

from typing import Any

import pytest

from coordinator_model.first_reading import FirstReading
from coordinator_model.records.serde import decode_key
from coordinator_model.replica import Replica
from coordinator_model.rules.deletions import SHORTEST_RETENTION_MS
from coordinator_model.state.offsets import BUCKET_PARTITIONS, CommittedOffset, bucket_number
from coordinator_model.wire.primitives import ZERO_UUID
from lab.builders import (
    RecordBytes,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_regular_expression,
    group_metadata,
    group_metadata_tombstone,
    legacy_offset_commit,
    legacy_offset_commit_tombstone,
    member,
    offset_commit,
    offset_commit_tombstone,
    streams_group_epoch,
    streams_group_member,
    streams_group_topology,
    topic_id,
)
from lab.coordinator_events import consumer_join
from tests.histories import History, at, history


def replica_of(log: History) -> Replica:
    """The replica after a history."""
    replica = Replica()
    for record in log.records:
        replica.replay(record.place, record.key, record.value)
    replica.settle()
    return replica


def built_of(log: History) -> FirstReading:
    """The replica whose state is made of a history, without rules."""
    replica = FirstReading()
    for record in log.records:
        replica.build(record.place, decode_key(record.key), record.value, records=1)
    replica.begin()
    return replica


def test_last_commit_of_a_partition_counts() -> None:
    """Whatever it says: offset, leader epoch, metadata, time and topic id are replaced together."""
    reported = history(
        at(0, offset_commit("g", "t", 0, 5, leader_epoch=1, metadata="old")),
        at(1_000, offset_commit("g", "t", 0, 9, leader_epoch=2, metadata="new", timestamp=1_000)),
    ).replayed()

    assert [
        {
            "topic": "t",
            "partition": 0,
            "offset": 9,
            "leader_epoch": 2,
            "metadata": "new",
            "commit_timestamp": 1_000,
            "topic_id": topic_id("t"),
            "subscribed": None,
        }
    ] == reported.view("g")["offsets"]


def test_partitions_committed_in_any_order_are_no_rewind() -> None:
    """Clients send 3, 2, 1, 0 as they like; shown is by topic and partition."""
    reported = history(
        at(0, *(offset_commit("g", "t", partition, 100 * partition) for partition in (3, 2, 1, 0))),
        at(1_000, *(offset_commit("g", "t", partition, 100 * partition + 1) for partition in (3, 2, 1, 0))),
        at(2_000, offset_commit("g", "s", 0, 7)),
    ).replayed()

    assert {"s/0": 7, "t/0": 1, "t/1": 101, "t/2": 201, "t/3": 301} == reported.offsets("g")
    assert ["s/0", "t/0", "t/1", "t/2", "t/3"] == list(reported.offsets("g"))
    assert {0: ["group_created"]} == reported.kinds()


def test_commit_of_the_same_offset_is_no_rewind() -> None:
    """An idle consumer commits where it stands."""
    reported = history(at(0, offset_commit("g", "t", 0, 5)), at(1_000, offset_commit("g", "t", 0, 5))).replayed()

    assert [] == reported.details("offset_rewound")


def test_offset_that_goes_back_is_a_rewind() -> None:
    """A seek, an admin's reset or a zombie: the log does not say who committed."""
    reported = history(
        at(0, READS_T, offset_commit("g", "t", 4, 500)),
        at(1_000, offset_commit("g", "t", 4, 200)),
        at(2_000, offset_commit("g", "t", 4, 300)),
    ).replayed()

    (event,) = (event for event in reported.events if event.kind == "offset_rewound")
    assert (1_000, 2, "warning") == (event.time_ms, event.offset, event.severity)
    assert ("t", 4, 500, 200) == tuple(event.detail[key] for key in ("topic", "partition", "from", "to"))


def test_commits_and_rewinds_are_counted_by_bucket() -> None:
    """They go to the checkpoint with the offsets, and so survive a restart."""
    replica = replica_of(
        history(
            at(0, offset_commit("g", "t", 0, 5), offset_commit("g", "t", 1, 5)),
            at(1, offset_commit("g", "t", 0, 4)),
            at(2, offset_commit("g", "t", 1, 6)),
        )
    )

    bucket = replica.buckets["g", "t", 0]
    assert (4, 1) == (bucket.commits, bucket.rewinds)


def test_commit_after_a_tombstone_is_a_first_one() -> None:
    """What was deleted is not gone back from."""
    reported = history(
        at(0, offset_commit("g", "t", 0, 500), offset_commit("g", "t", 1, 1)),
        at(1_000, offset_commit_tombstone("g", "t", 0)),
        at(2_000, offset_commit("g", "t", 0, 3)),
    ).replayed()

    assert {"t/0": 3, "t/1": 1} == reported.offsets("g")
    assert {0: ["group_created"], 1_000: ["offset_deleted"]} == reported.kinds()
    (detail,) = reported.details("offset_deleted")
    assert ("t", 0, 500) == (detail["topic"], detail["partition"], detail["offset"])


def test_tombstone_of_an_offset_that_is_not_there_is_nothing() -> None:
    """Topic deletion may write one twice; a cleaned log begins with some."""
    reported = history(
        at(0, offset_commit("g", "t", 0, 5), offset_commit("g", "t", 1, 5)),
        at(1_000, offset_commit_tombstone("g", "t", 0), offset_commit_tombstone("g", "t", 0)),
        at(2_000, offset_commit_tombstone("g", "never", 0)),
    ).replayed()

    assert {0: ["group_created"], 1_000: ["offset_deleted"]} == reported.kinds()


def test_topic_deleted_under_a_group_with_members_leaves_the_group() -> None:
    """All its offsets go one by one; the members stay."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})])),
        at(1_000, offset_commit("g", "t", 0, 5)),
        at(2_000, offset_commit_tombstone("g", "t", 0)),
    ).replayed()

    assert ("Stable 1", {}) == (reported.status("g"), reported.offsets("g"))
    assert ["offset_deleted"] == reported.kinds()[2_000]


def test_topic_id_is_kept_and_zero_is_none() -> None:
    """It distinguishes a recreated topic from its namesake; commits before 4.1 and in transactions have none."""
    reported = history(
        at(
            0,
            offset_commit("g", "t", 0, 5, id_of_topic=topic_id("former t")),
            offset_commit("g", "t", 1, 5, id_of_topic=ZERO_UUID),
            offset_commit("g", "t", 2, 5, version=3, leader_epoch=4),
            offset_commit("g", "t", 3, 5, version=1, expire_timestamp=99),
        )
    ).replayed()

    assert [(topic_id("former t"), -1), (None, -1), (None, 4), (None, -1)] == [
        (of["topic_id"], of["leader_epoch"]) for of in reported.view("g")["offsets"]
    ]


def test_topic_recreated_takes_the_new_id() -> None:
    """The former topic's offsets are deleted with it; the next commit is of the new one."""
    reported = history(
        at(0, offset_commit("g", "t", 0, 500, id_of_topic=topic_id("t"))),
        at(1_000, offset_commit_tombstone("g", "t", 0), group_metadata("g", generation=0)),
        at(2_000, offset_commit("g", "t", 0, 1, id_of_topic=topic_id("t again"))),
    ).replayed()

    assert [topic_id("t again")] == [of["topic_id"] for of in reported.view("g")["offsets"]]
    assert [] == reported.details("offset_rewound")


def test_offset_that_goes_back_into_another_topic_is_no_rewind() -> None:
    """The commit names another topic id: the topic was recreated, and its tombstones were not written or are gone."""
    reported = history(
        at(0, offset_commit("g", "t", 0, 500, id_of_topic=topic_id("t"))),
        at(1_000, offset_commit("g", "t", 0, 1, id_of_topic=topic_id("t again"))),
    ).replayed()

    assert {("g", "topic_recreated"): 1} == reported.alarms()
    assert [
        {
            "topic": "t",
            "partition": 0,
            "from": 500,
            "to": 1,
            "former_topic_id": topic_id("t"),
            "topic_id": topic_id("t again"),
        }
    ] == reported.details("topic_recreated")


@pytest.mark.parametrize(("former", "now"), [(ZERO_UUID, "t"), ("t", ZERO_UUID), (ZERO_UUID, ZERO_UUID)])
def test_offset_that_goes_back_without_an_id_to_compare_is_a_rewind(former: str, now: str) -> None:
    """Old brokers and transactions write none: nothing says it is another topic."""
    ids = [of if of == ZERO_UUID else topic_id(of) for of in (former, now)]
    reported = history(
        at(0, READS_T, offset_commit("g", "t", 0, 500, id_of_topic=ids[0])),
        at(1_000, offset_commit("g", "t", 0, 1, id_of_topic=ids[1])),
    ).replayed()

    assert {("g", "offset_rewound"): 1} == reported.alarms()


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_a_commit_is_read(version: int) -> None:
    """Offset, metadata and time are in all of them."""
    reported = history(at(0, offset_commit("g", "t", 0, 5, metadata="m", timestamp=77, version=version))).replayed()

    (shown,) = reported.view("g")["offsets"]
    assert (5, "m", 77) == (shown["offset"], shown["metadata"], shown["commit_timestamp"])


def test_legacy_commits_are_commits() -> None:
    """Type 0 differs in its number only: the same offset under the same name, and its tombstone ends it."""
    reported = history(
        at(0, legacy_offset_commit("g", "t", 0, 5, metadata="m", timestamp=77), offset_commit("g", "t", 1, 1)),
        at(1_000, offset_commit("g", "t", 0, 6)),
        at(2_000, legacy_offset_commit("g", "t", 1, 3)),
        at(3_000, legacy_offset_commit_tombstone("g", "t", 0)),
    ).replayed()

    assert {"t/1": 3} == reported.offsets("g")
    assert {0: ["group_created"], 3_000: ["offset_deleted"]} == reported.kinds()


# -- why an offset went -----------------------------------------------------------------------------------------------

COMMITTED_MS = 1_000
LATER_MS = COMMITTED_MS + SHORTEST_RETENTION_MS
READS_T = group_metadata("g", generation=1, members=[member("a", {"t": [0]})])
EMPTY = group_metadata("g", generation=2)


@pytest.mark.parametrize(
    ("membership", "topic", "deleted_ms", "may_be"),
    [
        (READS_T, "t", LATER_MS, ["topic_deleted"]),
        (READS_T, "u", LATER_MS, ["topic_deleted", "offset_delete", "expiry"]),
        (READS_T, "u", LATER_MS - 1, ["topic_deleted", "offset_delete"]),
        (EMPTY, "t", LATER_MS, ["topic_deleted", "offset_delete", "expiry"]),
        (None, "t", LATER_MS, ["topic_deleted", "offset_delete", "expiry"]),
    ],
    ids=["subscribed", "unsubscribed", "within the shortest retention", "no members", "group that only commits"],
)
def test_deleted_offset_says_what_may_be_the_cause(
    membership: RecordBytes | None, topic: str, deleted_ms: int, may_be: list[str]
) -> None:
    """A coordinator refuses to delete, and never expires, what a member reads; of the rest no one can tell."""
    reported = history(
        at(0, *([membership] if membership else [])),
        at(COMMITTED_MS, offset_commit("g", topic, 0, 5, timestamp=COMMITTED_MS), offset_commit("g", "v", 0, 5)),
        at(deleted_ms, offset_commit_tombstone("g", topic, 0)),
    ).replayed()

    (detail,) = reported.details("offset_deleted")
    assert (may_be, deleted_ms - COMMITTED_MS) == (detail["may_be"], detail["age_ms"])


DAYS_MS = 10 * 86_400_000


@pytest.mark.parametrize(
    ("membership", "gone", "deleted_ms", "cause", "may_be"),
    [
        (EMPTY, [0, 1, "g"], 3_600_000, "group_deleted", ["expiry", "group_deleted"]),
        (EMPTY, [0, 1, "g"], DAYS_MS, None, ["expiry", "group_deleted"]),
        (EMPTY, [0, 1, "g"], COMMITTED_MS + 1, "group_deleted", ["group_deleted"]),
        (EMPTY, [0], 3_600_000, "offset_delete", ["offset_delete", "expiry"]),
        (EMPTY, [0], DAYS_MS, None, ["offset_delete", "expiry"]),
        (EMPTY, [0, 1], 3_600_000, None, ["topic_deleted", "offset_delete", "expiry"]),
        (READS_T, [0, 1], DAYS_MS, "topic_deleted", ["topic_deleted"]),
    ],
    ids=[
        "with their group", "with a group that was long empty", "too soon to expire", "one of two", "one, after days",
        "all of a topic", "of a topic that is read",
    ],
)  # fmt: skip
def test_offsets_that_go_at_once_are_one_event_with_their_cause(
    membership: RecordBytes, gone: list[Any], deleted_ms: int, cause: str | None, may_be: list[str]
) -> None:
    """What was written beside them, and what was left, tells most causes."""
    tombstones = [group_metadata_tombstone("g") if of == "g" else offset_commit_tombstone("g", "t", of) for of in gone]
    reported = history(
        at(0, membership),
        at(COMMITTED_MS, *(offset_commit("g", "t", of, 5, timestamp=COMMITTED_MS) for of in (0, 1))),
        at(deleted_ms, *tombstones),
    ).replayed()

    (event,) = (event for event in reported.events if event.kind == "offset_deleted")
    partitions = [of for of in gone if of != "g"]
    assert (cause, may_be, {"t": partitions}) == tuple(event.detail[name] for name in ("cause", "may_be", "partitions"))
    assert 3 + len(partitions) - 1 == event.offset
    kinds = reported.kinds()[deleted_ms]
    assert ["offset_deleted", *(["group_deleted"] if "g" in gone else [])] == kinds[:2]


def test_offsets_that_go_at_two_moments_are_two_events() -> None:
    """Also where a commit of the same moment stands between them."""
    reported = history(
        at(0, READS_T, *(offset_commit("g", "t", of, 5) for of in range(4))),
        at(
            1_000,
            offset_commit_tombstone("g", "t", 0),
            offset_commit("g", "t", 3, 6),
            offset_commit_tombstone("g", "t", 1),
        ),
        at(2_000, offset_commit_tombstone("g", "t", 2)),
    ).replayed()

    assert [{"t": [0, 1]}, {"t": [2]}] == [of["partitions"] for of in reported.details("offset_deleted")]


def test_moment_of_deletions_is_one_event_wherever_the_log_is_cut() -> None:
    """What is not reported yet is kept with the group."""
    log = history(
        at(0, EMPTY, *(offset_commit("g", "t", of, 5) for of in range(3))),
        at(1_000, *(offset_commit_tombstone("g", "t", of) for of in range(3)), group_metadata_tombstone("g")),
    )
    whole = log.replayed()

    for position in range(len(log) + 1):
        assert whole.event_texts() == log.replayed_in_batches([position]).event_texts()


def test_deletion_read_after_a_later_membership_is_not_explained_by_it() -> None:
    """Commits come from another reader than memberships, and may come late."""
    log = history(
        at(0, EMPTY, offset_commit("g", "t", 0, 5)), at(1_000, offset_commit_tombstone("g", "t", 0)), at(2_000, READS_T)
    )
    late = History((*log.records[:2], log.records[3], log.records[2]))

    assert "may_be" not in late.replayed().details("offset_deleted")[0]


@pytest.mark.parametrize(
    ("membership", "expected"),
    [
        ([READS_T], {"t": True, "u": False}),
        ([EMPTY], {"t": None, "u": None}),
        ([], {"t": None, "u": None}),
        ([group_metadata("g", generation=1, members=[member("a", subscription_bytes=b"?")])], {"t": None, "u": None}),
        (consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}), {"t": True, "u": False}),
        (
            [consumer_group_member_subscription("g", "a", topics=["t"], regex="u.*"), consumer_group_epoch("g", 2)],
            {"t": True, "u": None},
        ),
        (
            [
                consumer_group_member_subscription("g", "a", topics=[], regex="u.*"),
                consumer_group_regular_expression("g", "u.*", ["u"]),
                consumer_group_epoch("g", 2),
            ],
            {"t": False, "u": True},
        ),
        (
            [streams_group_member("g", "a"), streams_group_topology("g", 0, {"0": ["t"]}), streams_group_epoch("g", 2)],
            {"t": True, "u": False},
        ),
        ([streams_group_member("g", "a"), streams_group_epoch("g", 2)], {"t": None, "u": None}),
    ],
    ids=[
        *("classic", "no members", "only commits", "undecodable", "consumer", "expression to be resolved"),
        *("expression", "streams", "no topology"),
    ],
)
def test_offset_of_a_topic_that_no_member_reads_is_distinguished(
    membership: list[RecordBytes], expected: dict[str, bool | None]
) -> None:
    """Its lag grows with every record written, and no one has to do anything about it."""
    reported = history(
        at(0, *membership), at(1_000, *(offset_commit("g", topic, 0, 5) for topic in ("t", "u")))
    ).replayed()

    assert expected == {shown["topic"]: shown["subscribed"] for shown in reported.view("g")["offsets"]}


# -- buckets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("partition", "number"), [(0, 0), (63, 0), (64, 1), (127, 1), (128, 2), (9_999, 156)])
def test_bucket_holds_64_neighbouring_partitions(partition: int, number: int) -> None:
    """Its number is the partition's, divided by 64."""
    assert number == bucket_number(partition)


def test_offsets_on_both_sides_of_a_bucket_border_are_one_groups() -> None:
    """They are kept apart and shown together, in order."""
    log = history(at(0, *(offset_commit("g", "t", partition, partition) for partition in (64, 128, 63, 0, 127, 65))))
    replica = replica_of(log)

    assert {("g", "t", 0): {0, 63}, ("g", "t", 1): {64, 65, 127}, ("g", "t", 2): {128}} == {
        place: set(bucket.offsets) for place, bucket in replica.buckets.items()
    }
    assert {"t": (0, 1, 2)} == replica.groups["g"].buckets
    assert [0, 63, 64, 65, 127, 128] == [partition for _, partition, _ in replica.offsets("g")]


@pytest.mark.parametrize(
    "record",
    [offset_commit("g", "t", 70, 2), offset_commit("g", "t", 70, 2, id_of_topic=ZERO_UUID)],
    ids=["names the topic's id", "in a transaction"],
)
def test_commit_changes_its_own_bucket_only(record: RecordBytes) -> None:
    """A group of 10,000 partitions is not rewritten for one of them, nor is its membership."""
    log = history(at(0, *(offset_commit("g", "t", partition, 1) for partition in range(2 * BUCKET_PARTITIONS))))
    replica = replica_of(log)
    replica.take_changes()

    (commit,) = history(at(1, record), start=len(log)).records
    replica.replay(commit.place, commit.key, commit.value)

    changes = replica.take_changes()
    assert ({("g", "t", 1)}, set(), {}) == (changes.buckets, changes.groups, changes.deleted)


def test_emptied_bucket_keeps_its_totals_as_long_as_the_group_lives() -> None:
    """Totals only grow; they go with the group."""
    moments = (
        at(0, offset_commit("g", "t", 0, 5), offset_commit("g", "t", 64, 5)),
        at(1, offset_commit("g", "t", 0, 4)),
        at(2, offset_commit_tombstone("g", "t", 0)),
    )
    replica = replica_of(history(*moments))
    gone = replica_of(history(*moments, at(3, offset_commit_tombstone("g", "t", 64))))

    assert (2, 1, {}) == (
        replica.buckets["g", "t", 0].commits,
        replica.buckets["g", "t", 0].rewinds,
        replica.buckets["g", "t", 0].offsets,
    )
    assert ({}, {}) == (gone.buckets, gone.groups)
    assert {"g": {("t", 0), ("t", 1)}} == gone.take_changes().deleted


def test_offsets_are_read_bucket_by_bucket() -> None:
    """(topic, partition, committed offset), by topic and partition; none of a group that is not known."""
    replica = replica_of(history(at(0, offset_commit("g", "t", 64, 1, timestamp=9), offset_commit("g", "a", 1, 2))))

    assert [
        ("a", 1, CommittedOffset(2, -1, "", 1_795_236_417_050, topic_id("a"))),
        ("t", 64, CommittedOffset(1, -1, "", 9, topic_id("t"))),
    ] == list(replica.offsets("g"))
    assert [] == list(replica.offsets("nobody"))
    assert ["g"] == list(replica.groups)


def test_version_of_a_later_commit_is_the_offsets_version() -> None:
    """A former release wrote it, after a downgrade: who can read it is what the gate asks."""
    without_id = at(0, offset_commit("g", "t", 0, 5, id_of_topic=ZERO_UUID, version=3))
    older = at(1_000, offset_commit("g", "t", 0, 6, id_of_topic=ZERO_UUID, version=1))
    replica = Replica()
    for record in history(without_id, older).records:
        replica.replay(record.place, record.key, record.value)

    assert [(6, 1)] == [(of.offset, of.value_version) for _, _, of in replica.offsets("g")]


@pytest.mark.parametrize(
    ("commits", "rewinds"),
    [
        ([500, 300], 1),
        ([500, 500], 0),
        ([300, 500], 0),
    ],
)
def test_state_that_is_made_of_the_log_counts_rewinds_as_replaying_does(commits: list[int], rewinds: int) -> None:
    """A smaller offset is one, the same and a larger one are none."""
    log = history(*(at(1_000 * turn, offset_commit("g", "t", 0, offset)) for turn, offset in enumerate(commits)))
    bucket = built_of(log).buckets["g", "t", 0]
    assert (len(commits), rewinds) == (bucket.commits, bucket.rewinds)
    assert bucket == replica_of(log).buckets["g", "t", 0]


def test_state_that_is_made_of_the_log_forgets_a_topic_with_the_group_s_last_offset() -> None:
    """What is committed then is of another group, as in replaying: the former topic was not recreated in it."""
    log = history(
        at(0, offset_commit("g", "t", 0, 5)),
        at(1_000, offset_commit_tombstone("g", "t", 0)),
        at(2_000, offset_commit("g", "t", 0, 5, id_of_topic=topic_id("u"))),
    )

    assert {"t": (topic_id("u"),)} == built_of(log).groups["g"].topic_ids == replica_of(log).groups["g"].topic_ids


def test_commit_of_a_broker_before_0_9_names_neither_leader_epoch_nor_topic_id() -> None:
    """As any commit without them: epoch -1, and no id."""
    (shown,) = history(at(0, legacy_offset_commit("g", "t", 0, 5))).replayed().view("g")["offsets"]

    assert (5, -1, None) == (shown["offset"], shown["leader_epoch"], shown["topic_id"])


def test_state_that_is_made_of_the_log_keeps_a_topic_while_an_offset_is_left() -> None:
    """The group goes on: another id of the topic is that of a recreated one."""
    log = history(
        at(0, offset_commit("g", "t", 0, 5), offset_commit("g", "t", 1, 5)),
        at(1_000, offset_commit_tombstone("g", "t", 0)),
        at(2_000, offset_commit("g", "t", 0, 5, id_of_topic=topic_id("u"))),
    )

    both = {"t": (topic_id("t"), topic_id("u"))}
    assert both == built_of(log).groups["g"].topic_ids == replica_of(log).groups["g"].topic_ids


def test_state_that_is_made_of_the_log_counts_no_rewind_between_two_topics_of_one_name() -> None:
    """Also where another partition was the first to name the recreated one."""
    log = history(
        at(0, offset_commit("g", "t", 0, 500), offset_commit("g", "t", 1, 500)),
        at(1_000, offset_commit("g", "t", 1, 1, id_of_topic=topic_id("u"))),
        at(2_000, offset_commit("g", "t", 0, 300, id_of_topic=topic_id("u"))),
        at(3_000, offset_commit("g", "t", 0, 200, id_of_topic=topic_id("u"))),
    )

    assert 1 == built_of(log).buckets["g", "t", 0].rewinds == replica_of(log).buckets["g", "t", 0].rewinds
