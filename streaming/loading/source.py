"""The log that is rehearsed: from a recording, or read from the brokers into one that goes with the rehearsal.

What the two readers of the log deliver is what a broker ends with: committed offsets without those of aborted
transactions, and all membership. Commits of a transaction that is open are not among them, which is said.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from coordinator_model.kinds.words import counted, listed
from coordinator_model.log_replica import LogReplica
from coordinator_model.records.record_types import RecordType
from coordinator_model.records.serde import KnownKey, decode_key
from coordinator_model.state.findings import Position
from coordinator_model.state.membership import CLASSIC
from streaming.base.errors import CannotTellError
from streaming.base.times import now_ms
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.broker_queries import cluster_id
from streaming.kafka.client_settings import admin_client
from streaming.recording.file_format import Header, RecordedRecord, open_new_recording, open_recording
from streaming.recording.recorder import LogRecorder, header_of

_GROUP_METADATA: Final = RecordType.GROUP_METADATA.to_bytes(2)

Advance = Callable[[float], None]

Offsets = Mapping[tuple[str, int], tuple[int, int, str]]
"""Topic and partition → committed offset, its leader epoch, and its metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedGroup:
    """A group as the replica has it.

    Attributes:
        type: `classic`, `consumer`, `share` or `streams`.
        partition: of the log.
        members: how many.
        epoch: of a group that is not classic, else None: a broker does not say a generation. None also where no record
            that decodes here says it, as of share groups of 4.0, which wrote another layout.
        offsets: committed.
        own_sessions: how many of its members, of the classic protocol in a consumer group, have in their records how
            long they may be silent.
    """

    type: str
    partition: int
    members: int
    epoch: int | None
    offsets: Offsets
    own_sessions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A log to rehearse.

    Attributes:
        file: the recording.
        option: what named the file.
        header: its first line.
        cluster_id: of the brokers that it was read from; None of a recording, which does not say.
        read_at_ms: when.
        records: partition → how many there are.
        groups: name → the group at the end.
        classic: groups that the log has a record of as classic ones, and not its tombstone alone.
        not_rehearsed: what is left out, a sentence each.
        not_compared: what is not known here of what the log holds, a sentence each.
    """

    file: Path
    option: str
    header: Header
    cluster_id: str | None
    read_at_ms: int
    records: Mapping[int, int]
    groups: Mapping[str, ExpectedGroup]
    classic: frozenset[str] = frozenset()
    not_rehearsed: tuple[str, ...] = field(default=())
    not_compared: tuple[str, ...] = field(default=())

    def read(self) -> Iterator[RecordedRecord]:
        """All records, in the file's order."""
        with open_recording(self.file, self.option) as recording:
            yield from recording


def of_recording(file: Path, advance: Advance, option: str = "--from") -> Source:
    """A recording as a source. Raises UsageError: it is none."""
    with open_recording(file, option) as recording:
        replica, records = LogReplica(recording.header.offsets_topic_partitions), Counter[int]()
        classic = set[str]()
        for record in recording:
            replica.replay(Position(record.partition, record.offset, record.timestamp_ms), record.key, record.value)
            records[record.partition] += 1
            if record.key[:2] == _GROUP_METADATA and record.value is not None:
                key = decode_key(record.key)
                classic.update([key.key.group_name] if isinstance(key, KnownKey) else [])
            if not records[record.partition] % 1000:
                advance(recording.fraction_read)
    replica.settle()
    groups = _expected(replica)
    return Source(
        file=file,
        option=option,
        header=recording.header,
        cluster_id=None,
        read_at_ms=now_ms(),
        records=records,
        groups=groups,
        classic=frozenset(classic),
        not_compared=tuple(_unknown(groups, replica)),
    )


def of_brokers(kafka: KafkaSection, file: Path, advance: Advance) -> Source:
    """The log of a cluster, read into `file`.

    Raises:
        CannotTellError: it cannot be read to its end.
    """
    with admin_client(kafka, "rehearsal") as admin:
        found = cluster_id(admin)
    header = header_of(kafka)
    left_out = []
    with closing(LogRecorder(kafka, list(range(header.offsets_topic_partitions)))) as recorder:
        left_out += [
            f"partition {partition}: offset commits of an open transaction, among its last {count} offsets"
            for partition, count in sorted(recorder.open_transactions.items())
        ]
        with open_new_recording(file, header, "--bootstrap-server") as recording:
            for record in recorder.records(advance):
                recording.write(record)
        if recorder.stepped_over:
            partition = min(recorder.stepped_over)
            raise CannotTellError(
                f"{kafka.offsets_topic} partition {partition}: found a batch that cannot be read, accepted: none such"
            )
    return replace(
        of_recording(file, lambda _share: None, "--bootstrap-server"), cluster_id=found, not_rehearsed=tuple(left_out)
    )


def _expected(replica: LogReplica) -> dict[str, ExpectedGroup]:
    found = {}
    for name, state in sorted(replica.living().items()):
        if not state.exists:
            continue
        modern, classic = state.membership.modern_group, state.membership.classic_group
        members = modern.members if modern is not None else classic.members if classic is not None else ()
        found[name] = ExpectedGroup(
            type=state.type,
            partition=state.partition,
            members=len(members),
            epoch=modern.epoch if modern is not None and modern.epoch_live else None,
            # What is below 0 a broker does not answer.
            offsets={
                (topic, partition): (of.offset, of.leader_epoch, of.metadata)
                for topic, partition, of in replica.offsets(name)
                if of.offset >= 0
            },
            own_sessions=0 if modern is None else sum(of.uses_classic_protocol for of in modern.members.values()),
        )
    return found


def _unknown(groups: Mapping[str, ExpectedGroup], replica: LogReplica) -> Iterator[str]:
    """What a broker may have read that was not read here."""
    epochs = [name for name, of in groups.items() if of.type != CLASSIC and of.epoch is None]
    if epochs:
        yield f"the epoch of {counted(len(epochs), 'group')} ({listed(epochs)}): no record that decodes here says it"
    unread = replica.counters.unknown_records, replica.counters.undecodable_records
    for type_, count in sorted(of for counts in unread for of in counts.items()):
        yield f"{counted(count, 'record')} of type {type_}, which {'does' if count == 1 else 'do'} not decode here"
