"""What helps where a release does not load a log, tried on brokers of that release.

Of each known fault a log that has it, and the same after its groups were deleted by a coordinator that had them, are
written into the same broker. It is started on them three times:

    as they are        the cleaner off
    with the cleaner   until it went over all of it but the segment that is written to
    cleaned            the cleaner off

Some faults are of a moment: the broker met a log that the cleaner was going over. Of these the whole log is tried, as
it was before that and as it is afterwards.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from coordinator_model.state.shards import offsets_partition
from lab.builders import offset_commit
from streaming.config.kafka_sections import KafkaSection
from streaming.loading import faults
from streaming.loading.loader_words import LoaderSaid
from streaming.loading.log_writer import LogWriter
from streaming.loading.release_broker import ReleaseBroker
from streaming.loading.run import awaited
from streaming.recording.file_format import RecordedRecord
from streaming.recording.recorder import LogRecorder
from streaming.spark import release_jars
from tests import loading_logs as logs
from tests.brokers.releases import BY_NAME

PARTITIONS: Final = 10
"""Of each log."""
PATIENCE_SECONDS: Final = 300.0
ROLL_MS: Final = 8 * 24 * 60 * 60 * 1000
"""Beyond `log.roll.hours`: a record that is later by so much is in a segment of its own."""

_SHORT_MS: Final = "6000"
_SESSIONS: Final[Mapping[str, str]] = {
    f"group.{kind}.{name}": value
    for kind in ("consumer", "streams", "share")
    for name, value in (
        ("min.heartbeat.interval.ms", "500"),
        ("heartbeat.interval.ms", "1000"),
        ("min.session.timeout.ms", "1000"),
        ("session.timeout.ms", _SHORT_MS),
    )
}
_CLEANER: Final[Mapping[str, str]] = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.0",
}

Records = list[RecordedRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A log that some releases do not load.

    Attributes:
        fault: why.
        releases: of which brokers are tried.
        whole: the log as it was written.
        broken: of it what the loader meets.
        deleted_on: the release whose coordinator deletes the groups; None where that is the one that is tried.
        of_a_moment: whether a broker meets it only while the cleaner goes over the log.
    """

    fault: str
    releases: tuple[str, ...]
    whole: Callable[[], Records]
    broken: Callable[[Records], Records]
    deleted_on: str | None = None
    of_a_moment: bool = False


SETTINGS: Final = {"3.9.2": BY_NAME["3.9.2-consumer"].with_consumer}
"""Of releases whose brokers load such groups only with the consumer protocol turned on."""

CASES: Final = (
    Case(
        fault="KAFKA-14869",
        releases=("3.4.0",),
        whole=lambda: logs.classic("4.3.1"),
        broken=lambda records: records,
        deleted_on="4.3.1",
    ),
    Case(
        fault="KAFKA-17306",
        releases=("3.9.2",),
        whole=lambda: logs.records_of("3.9.1/consumer.ndjson.gz"),
        broken=logs.cleaned,
    ),
    Case(
        fault="KAFKA-19862",
        releases=("4.0.0", "4.1.1"),
        whole=logs.static_members,
        broken=logs.read_while_cleaned,
        of_a_moment=True,
    ),
    Case(
        fault="KAFKA-20254",
        releases=("4.1.1", "4.2.0"),
        whole=logs.streams_log,
        broken=logs.offsets_first,
    ),
    Case(
        fault="KAFKA-21102",
        releases=("3.9.2", "4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
        whole=logs.left,
        broken=logs.last_tombstones,
        of_a_moment=True,
    ),
    Case(
        fault="KAFKA-21117",
        releases=("4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
        whole=logs.migrated,
        broken=logs.without_upgrade_tombstone,
    ),
)
AGAIN: Final = tuple(dict.fromkeys(release for case in CASES if case.of_a_moment for release in case.releases))
RELEASES: Final = tuple(dict.fromkeys(release for case in CASES for release in case.releases))


def tried(release: str, scratch: Path) -> list[dict[str, Any]]:
    """What brokers of a release make of each log that it does not load: rows of `loading.json`."""
    cases = [case for case in CASES if release in case.releases]
    partitions = 2 * PARTITIONS * len(cases)
    places = {
        (case.fault, deleted): range(first, first + PARTITIONS)
        for number, case in enumerate(cases)
        for deleted, first in ((False, 2 * number * PARTITIONS), (True, (2 * number + 1) * PARTITIONS))
    }
    written: list[Records] = []
    by_deleter: dict[str, dict[str, Records]] = {}
    for case in cases:
        whole = case.whole()
        written.append(_broken(case, logs.in_partitions(whole, partitions, places[case.fault, False], "as")))
        named = logs.in_partitions(whole, partitions, places[case.fault, True], "deleted")
        by_deleter.setdefault(case.deleted_on or release, {})[case.fault] = named
    deleted: dict[str, Records] = {}
    for number, (deleter, of_faults) in enumerate(by_deleter.items()):
        deleted |= _after_deletion(deleter, scratch / f"deleter-{number}", partitions, of_faults)
    written += [
        _broken(case, deleted[case.fault], len(by_deleter[case.deleted_on or release][case.fault])) for case in cases
    ]
    records = [of for log in written for of in log]
    classic = {logs.group_of(of) for of in records if of.key[:2] == logs.GROUP_METADATA and of.value is not None}
    found = _as_is_and_cleaned(release, scratch / "broker", partitions, records)
    return [
        {
            "release": release,
            "fault": case.fault,
            **{
                f"{'deleted' if is_deleted else 'kept'}_{when}": _words(
                    said, places[case.fault, is_deleted], release, classic
                )
                for is_deleted in (False, True)
                for when, said in found.items()
            },
        }
        for case in cases
    ]


def loaded_again(release: str, scratch: Path) -> list[dict[str, str]]:
    """What brokers of a release make of the whole logs of faults of a moment: rows of `loading.json`."""
    cases = [case for case in CASES if case.of_a_moment and release in case.releases]
    partitions = PARTITIONS * len(cases)
    places = [range(first, first + PARTITIONS) for first in range(0, partitions, PARTITIONS)]
    written = [
        of
        for case, where in zip(cases, places, strict=True)
        for of in logs.in_partitions(case.whole(), partitions, where, "again")
    ]
    found = _as_is_and_cleaned(release, scratch / "again", partitions, written)
    return [
        {
            "release": release,
            "fault": case.fault,
            **{f"whole_{when}": _words(said, where, release, set()) for when, said in found.items()},
        }
        for case, where in zip(cases, places, strict=True)
    ]


def _broken(case: Case, records: Records, whole: int | None = None) -> Records:
    """What the loader meets of the first records, group by group, and then the others."""
    first, others = records[:whole], records[len(records) if whole is None else whole :]
    of_groups = [of for of_group in logs.by_group(first) for of in case.broken(of_group)]
    return list(logs.numbered([*of_groups, *others]))


def _broker(release: str, directory: Path, partitions: int, properties: Mapping[str, str]) -> ReleaseBroker:
    return ReleaseBroker(
        directory,
        jars_dir=release_jars.place(release),
        offsets_partitions=partitions,
        properties={**SETTINGS.get(release, {}), **properties},
    )


def _after_deletion(
    release: str, directory: Path, partitions: int, of_faults: Mapping[str, Records]
) -> dict[str, Records]:
    """The logs after a coordinator deleted their groups: as they were, and what it wrote then."""
    records = [of for log in of_faults.values() for of in log]
    with _broker(release, directory, partitions, {}) as broker, LogWriter(broker) as writer:
        for record in records:
            writer.write(record)
    with _broker(release, directory, partitions, _SESSIONS) as broker:
        said = awaited(broker, {of.partition for of in records}, partitions)
        assert not said.failed, said.failed
        _delete(broker.bootstrap_servers, set(map(logs.group_of, records)))
        with closing(
            LogRecorder(KafkaSection(bootstrap_servers=broker.bootstrap_servers), list(range(partitions)))
        ) as log:
            after = list(log.records())
    written = {(of.partition, of.offset) for of in records}
    found = {}
    for fault, log_of in of_faults.items():
        own = {of.partition for of in log_of}
        more = [of for of in after if of.partition in own and (of.partition, of.offset) not in written]
        found[fault] = [*log_of, *more]
    return found


def _delete(bootstrap_servers: str, groups: set[str]) -> None:
    """Delete groups once they have no members; those that there are not any more are passed over."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while groups:
        assert time.monotonic() < deadline, groups
        for group, answer in admin.delete_consumer_groups(sorted(groups), request_timeout=30).items():
            try:
                answer.result()
                groups = groups - {group}
            except KafkaException as error:
                if error.args[0].name() == "GROUP_ID_NOT_FOUND":
                    groups = groups - {group}
        time.sleep(0.5)


def _as_is_and_cleaned(release: str, directory: Path, partitions: int, records: Records) -> dict[str, LoaderSaid]:
    lengths: dict[int, int] = {}
    latest: dict[int, int] = {}
    for record in records:
        lengths[record.partition] = lengths.get(record.partition, 0) + 1
        latest[record.partition] = max(latest.get(record.partition, 0), record.timestamp_ms)
    with _broker(release, directory, partitions, {}) as broker, LogWriter(broker) as writer:
        for record in records:
            writer.write(record)
        writer.flush()
        for partition, end in lengths.items():
            key, value = offset_commit(_filler(partition, partitions), "t", 0, 1, version=3)
            writer.write(RecordedRecord(partition, end, latest[partition] + ROLL_MS, key, value))
    found = {}
    with _broker(release, directory, partitions, {}) as broker:
        found["as_is"] = awaited(broker, set(lengths), partitions)
    with _broker(release, directory, partitions, _CLEANER) as broker:
        awaited(broker, set(lengths), partitions)
        _await_cleaner(directory / "log" / "cleaner-offset-checkpoint", lengths)
    with _broker(release, directory, partitions, {}) as broker:
        found["cleaned"] = awaited(broker, set(lengths), partitions)
    return found


def _filler(partition: int, partitions: int) -> str:
    return next(
        name for name in (f"later-{of}" for of in range(10_000)) if offsets_partition(name, partitions) == partition
    )


def _await_cleaner(checkpoint: Path, lengths: Mapping[int, int]) -> None:
    """Wait until the cleaner went over so many records of each partition."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        lines = checkpoint.read_text("ascii").splitlines() if checkpoint.is_file() else []
        cleaned = {int(of[1]): int(of[2]) for of in map(str.split, lines) if of[:1] == ["__consumer_offsets"]}
        if all(cleaned.get(partition, 0) >= length for partition, length in lengths.items()):
            return
        assert time.monotonic() < deadline, cleaned
        time.sleep(0.2)


def _words(said: LoaderSaid, places: Iterable[int], release: str, classic: set[str]) -> str:
    """`loads`, or the faults with which it fails."""
    failed = [said.failed[partition] for partition in places if partition in said.failed]
    known = {getattr(faults.known(of.text, release, classic.__contains__), "number", of.said) for of in failed}
    return ", ".join(sorted(known)) or "loads"
