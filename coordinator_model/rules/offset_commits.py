"""What a commit, and the end of one, does to a group's offsets, and what it shows.

    record                                              shows
    first offset of a group that has none               that the group came to be
    an offset below the one before                      `offset_rewound`, once its moment is over (`rewinds.py`)
    a topic id that no commit of the group named yet    `topic_recreated`, where others named one before
    an offset without an id, below the one before       as the next table has it
    a tombstone of an offset that is held               `offset_deleted`, once its moment is over (`deletions.py`), and
                                                        the group's end where it was the last

The record names no author (OffsetCommitValue.json): who committed is inferred from the membership, or not at all.

Brokers before 4.1 write no topic id with a commit, no broker does in a transaction, and a topic that was deleted and
made again looks like offsets that go back. What is known of the topic tells them apart, by the first row that holds:

    the topic of a commit without an id                                                     an offset below the former
    the group read it when its offset went: that was the topic's deletion, within a day     `topic_recreated`, inferred
    its id now, as the caller knows it, is the former commit's                              `offset_rewound`
    its id now is another one than the former commit's                                      `topic_recreated`, inferred
    nothing of this                                                                         `offset_rewound`, and it
                                                                                            `may_be_recreated`

After its deletion a consumer may commit once more where it was; that is not yet the new topic.

A plain commit, the offset having gone forward, shows nothing and leaves everything but its bucket as it was: that is
what a log is full of, and it takes the short way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from coordinator_model.migration import downgrade_check, upgrade_check
from coordinator_model.records.serde import Record
from coordinator_model.rules import deletions, existence, rewinds
from coordinator_model.state.clocks import within
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import ZERO_TOPIC_ID, CommittedOffset, OffsetBucket, goes_back, other_version
from coordinator_model.state.rule_memory import Deleted, LostOffsets

LOST_FOR_MS: Final = 86_400_000
"""How long after a topic's deletion a lower offset is taken for one of the topic that came after it; and how old an
offset may be that goes with it: up to 2.0 those of topics that members read expired, too, after a day at least."""

MOST_LOST: Final = 10_000
"""Offsets of a topic that are remembered when it is deleted."""

TOPIC_IDS_KEPT: Final = 4
"""Ids of a topic that are remembered: a commit to the former one may yet come, many topics ago none does."""


class Taken(NamedTuple):
    """What a commit did to the state.

    Attributes:
        former: the partition's offset before it.
        known_ids: of the topic, before it; None where it names none that is new.
        goes_back: whether it is a rewind.
    """

    former: CommittedOffset | None
    known_ids: tuple[str, ...] | None
    goes_back: bool


def is_plain(state: GroupState, bucket: OffsetBucket, record: Record) -> bool:
    """Whether a record is a plain commit: it changes its bucket alone, whatever the group is doing.

    Forward from an offset there is, of a topic that is known, and nothing is waited for since a downgrade.
    """
    value: Any = record.value
    former = bucket.offsets.get(record.key.partition)
    if former is None or value is None or value.offset < former.offset or state.migration.downgrade is not None:
        return False
    topic_id = getattr(value, "topic_id", ZERO_TOPIC_ID)
    return topic_id == ZERO_TOPIC_ID or topic_id in state.topic_ids.get(bucket.topic, ())


def take(
    state: GroupState, bucket: OffsetBucket, record: Record, commits: int, *, is_other: bool = False
) -> Taken | None:
    """What a commit does to the state, whether rules follow the group or not; None where it changes the bucket alone.

    Args:
        state: of the group.
        bucket: of the partition.
        record: the commit, which has a value.
        commits: how many of its key it stands for.
        is_other: whether the former offset is known to be of a topic that is gone.
    """
    topic, partition = bucket.topic, record.key.partition
    former, committed = bucket.offsets.get(partition), offset_of(record)
    bucket.offsets[partition] = committed
    bucket.commits += commits
    named, known = committed.topic_id, state.topic_ids.get(topic, ())
    is_back = former is not None and goes_back(former.offset, committed.offset)
    if former is not None and not is_back and (named is None or named in known):
        return None
    if former is not None and is_back and not is_other:
        id_now = named or known_id(state, topic)
        if None not in (former.topic_id, id_now) and former.topic_id != id_now:
            # Offsets of two topics of one name: none of them was gone back on.
            is_other, named = True, id_now
    is_new = named is not None and named not in known
    if named is not None and is_new:
        note_id(state, topic, named)
    if former is None:
        count_first(state, topic, bucket.number)
    is_back = is_back and not is_other and not (is_new and known)
    bucket.rewinds += is_back
    return Taken(former, known if is_new else None, is_back)


def commit(
    state: GroupState, bucket: OffsetBucket, place: Position, record: Record, commits: int
) -> list[Finding] | None:
    """Apply one offset commit, which has a value; None where nothing but the bucket changed."""
    topic, partition = bucket.topic, record.key.partition
    former, committed = bucket.offsets.get(partition), offset_of(record).offset
    downgraded = state.migration.downgrade is not None
    back_again = downgraded and downgrade_check.offset_came(state, topic, partition, committed)
    shown = _after_deletion(state, place, topic, former, record) if topic in state.lost_offsets else None
    taken = take(state, bucket, record, commits, is_other=shown is not None)
    first = list(existence.announce(state)) if former is None and state.step is None else []
    if shown is not None:
        return [*first, *shown]
    if taken is None:
        return [] if back_again else None
    recreated = list(_recreated(state, taken, bucket, partition))
    if former is None or not taken.goes_back:
        return [*first, *recreated]
    downgrade_check.offset_went(state, topic, partition, former.offset)
    upgrade_check.offset_went(state, place, topic, partition, former.offset)
    is_clear = None not in (former.topic_id, bucket.offsets[partition].topic_id or known_id(state, topic))
    rewinds.note(
        state,
        place,
        (topic, partition),
        before=former.offset,
        to=committed,
        unclear_since_ms=None if is_clear else former.commit_timestamp_ms,
    )
    return []


def drop(state: GroupState, bucket: OffsetBucket, partition: int) -> CommittedOffset:
    """What the tombstone of an offset that is held does to the state; returns the offset."""
    state.offset_count -= 1
    return bucket.offsets.pop(partition)


def delete(state: GroupState, bucket: OffsetBucket, place: Position, partition: int) -> list[Finding]:
    """Apply the tombstone of an offset that is held. A group that only committed may be gone with it."""
    deleted = drop(state, bucket, partition)
    downgrade_check.offset_went(state, bucket.topic, partition, deleted.offset)
    upgrade_check.offset_went(state, place, bucket.topic, partition, deleted.offset)
    age_ms, may_be = None, list[str]()
    if deleted.commit_timestamp_ms >= 0:
        age_ms = max(0, place.timestamp_ms - deleted.commit_timestamp_ms)
    if not rewinds.membership_is_later(state, place):
        may_be = deletions.may_be(state.membership, bucket.topic, age_ms)
        if may_be == [deletions.TOPIC_DELETED] and deleted.topic_id is None:
            _note_lost(state, place, bucket.topic, partition, deleted)
    went = Deleted(offset=deleted.offset, age_ms=age_ms, may_be=tuple(may_be))
    deletions.note(state, place, (bucket.topic, partition), went)
    return list(existence.announce(state)) if state.step is None and not state.exists else []


def ends_step(state: GroupState, place: Position, bucket: OffsetBucket, record: Record) -> bool:
    """Whether the membership's open step has to be concluded before this offset, because it was over by then.

    The group begins or ends with the offset, and what begins again is another group; or a conversion is to say how many
    offsets it found; or the offset goes back or goes, or comes back again, which is judged by what the group is since.
    """
    step, value, partition = state.step, record.value, record.key.partition
    if step is None or step.timestamp_ms == place.timestamp_ms or step.last_offset >= place.offset:
        return False
    former = bucket.offsets.get(partition)
    if former is not None and (value is None or value.offset < former.offset):
        return True
    converted = state.membership.type != step.before.type
    begins = not state.membership.exists and state.offset_count == 0
    return converted or begins or downgrade_check.is_missed(state, bucket.topic, partition)


def offset_of(record: Record) -> CommittedOffset:
    """The offset of a record that has a value, of any version."""
    value: Any = record.value
    named_id = getattr(value, "topic_id", ZERO_TOPIC_ID)
    topic_id = None if named_id == ZERO_TOPIC_ID else named_id
    return CommittedOffset(
        value.offset,
        getattr(value, "leader_epoch", -1),
        value.metadata,
        value.commit_timestamp,
        topic_id,
        other_version(record.value_version or 0, topic_id),
    )


def _recreated(state: GroupState, taken: Taken, bucket: OffsetBucket, partition: int) -> Iterator[Finding]:
    """A commit that names an id which none of the group did before: the topic was deleted and recreated.

    Once per id, whichever partition commits first, and also where the former topic's offsets are gone already.
    Commits without an id, as all in transactions are, say nothing.
    """
    if taken.known_ids:
        committed, topic = bucket.offsets[partition], bucket.topic
        detail = {"topic": topic, "partition": partition, "to": committed.offset}
        if taken.former is not None:
            detail["from"] = taken.former.offset
        ids = {"former_topic_id": taken.known_ids[-1], "topic_id": state.topic_ids[topic][-1]}
        yield Finding("topic_recreated", {**detail, **ids}, inferred=committed.topic_id is None)


def known_id(state: GroupState, topic: str) -> str | None:
    """The topic's id now, as the caller knows it beside the log; None where it does not."""
    return state.known_ids.get(topic)


def _note_lost(state: GroupState, place: Position, topic: str, partition: int, deleted: CommittedOffset) -> None:
    """Remember an offset that went with its topic."""
    if not 0 <= place.timestamp_ms - deleted.commit_timestamp_ms <= LOST_FOR_MS:
        return
    lost = state.lost_offsets.get(topic)
    if lost is None or lost.recreated:
        lost = state.lost_offsets[topic] = LostOffsets(time_ms=place.timestamp_ms)
    lost.time_ms = place.timestamp_ms
    if len(lost.offsets) < MOST_LOST:
        lost.offsets[str(partition)] = deleted.offset


def _after_deletion(
    state: GroupState, place: Position, topic: str, former: CommittedOffset | None, record: Record
) -> list[Finding] | None:
    """What a commit to a topic that was deleted shows; None where it shows nothing of that."""
    partition, committed = record.key.partition, offset_of(record)
    lost = state.lost_offsets[topic]
    before = lost.offsets.get(str(partition))
    is_late = committed.topic_id is not None or not within(LOST_FOR_MS, lost.time_ms, place.timestamp_ms)
    if before is None or is_late or committed.offset >= (before if former is None else former.offset):
        if is_late:
            del state.lost_offsets[topic]
        return None
    del lost.offsets[str(partition)]
    was_reported, lost.recreated = lost.recreated, True
    if not lost.offsets:
        del state.lost_offsets[topic]
    if was_reported:
        return []
    detail = {"topic": topic, "partition": partition, "to": committed.offset, "from": before}
    ids = {"former_topic_id": None, "topic_id": known_id(state, topic)}
    return [Finding("topic_recreated", {**detail, **ids}, inferred=True)]


def count_first(state: GroupState, topic: str, number: int, count: int = 1) -> None:
    """Note that so many partitions of a bucket have an offset that had none."""
    state.offset_count += count
    numbers = state.buckets.get(topic, ())
    if number not in numbers:
        state.buckets[topic] = tuple(sorted((*numbers, number)))


def note_id(state: GroupState, topic: str, topic_id: str) -> None:
    """Remember that a commit named an id of the topic that none did before."""
    state.topic_ids[topic] = (*state.topic_ids.get(topic, ()), topic_id)[-TOPIC_IDS_KEPT:]
