"""Logs of the group coordinator that brokers of some releases do not load, each as the cleaner may leave it.

Made of recordings of real brokers, with each group renamed so that a log has partitions to itself:

    well                 classic, consumer and streams groups as 4.3.1 writes them
    share                share groups as 4.3.1 writes them
    early_offsets        the offsets of a streams group stand before its other records
    no_upgrade           a group was upgraded and downgraded; the tombstone of the upgrade is cleaned away
    read_while_cleaned   the first records were read before the cleaner went over them, the others after it
    last_tombstone       of the tombstones of a member that left, the same was so for all but the last
    cleaned              consumer groups of 3.9 after the cleaner went over all of it: each key's last record
    classic              classic groups alone, as 4.1 and later write them
    of_3_9               classic groups as 3.9 writes them
    own                  all that a broker of the release wrote itself, where there is a recording of it
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from coordinator_model.state.shards import offsets_partition
from streaming.recording.file_format import Header, RecordedRecord, open_new_recording, open_recording

RECORDINGS: Final = Path(__file__).parent / "recordings"
PARTITIONS: Final = 10
"""Of each log."""
IN_ALL: Final = 10 * PARTITIONS
"""Of one recording of all of them."""

Change = Callable[[list[RecordedRecord]], list[RecordedRecord]]

_READ_BEFORE: Final = 7
"""Records after which a static member has a partition that its next incarnation is given further on."""

_OFFSET_COMMIT: Final = b"\x00\x01"
GROUP_METADATA: Final = b"\x00\x02"
_ASSIGNMENTS: Final = (b"\x00\x07", b"\x00\x08")
"""Of a member of a consumer group: its target, and what it has."""


def records_of(*files: str) -> list[RecordedRecord]:
    """Records of recordings, one after the other."""
    found = []
    for file in files:
        with open_recording(RECORDINGS / file) as recording:
            found += list(recording)
    return found


def group_of(record: RecordedRecord) -> str:
    """Whose record it is."""
    size = int.from_bytes(record.key[2:4])
    return record.key[4 : 4 + size].decode("utf-8")


def renamed(record: RecordedRecord, group: str) -> RecordedRecord:
    """The same record of another group."""
    former, name = int.from_bytes(record.key[2:4]), group.encode("utf-8")
    return replace(record, key=record.key[:2] + len(name).to_bytes(2) + name + record.key[4 + former :])


def numbered(records: Iterable[RecordedRecord]) -> Iterator[RecordedRecord]:
    """The same records at the offsets that they have when they are all there is in their partitions."""
    ends = Counter[int]()
    for record in records:
        yield replace(record, offset=ends[record.partition])
        ends[record.partition] += 1


def of_group(records: Iterable[RecordedRecord], group: str) -> list[RecordedRecord]:
    """Records of one group."""
    return [record for record in records if group_of(record) == group]


def by_group(records: list[RecordedRecord]) -> list[list[RecordedRecord]]:
    """The records of each group."""
    return [of_group(records, group) for group in dict.fromkeys(map(group_of, records))]


def offsets_first(records: list[RecordedRecord]) -> list[RecordedRecord]:
    """Commits before all else, as the cleaner leaves a group that committed before its records were last written."""
    return sorted(records, key=lambda record: record.key[:2] != _OFFSET_COMMIT)


def without_upgrade_tombstone(records: list[RecordedRecord]) -> list[RecordedRecord]:
    """Without tombstones of the classic group."""
    return [record for record in records if not (record.key[:2] == GROUP_METADATA and record.value is None)]


def read_while_cleaned(records: list[RecordedRecord]) -> list[RecordedRecord]:
    """Of a group: its first records as they were, and of the others the last of each key."""
    return [*records[:_READ_BEFORE], *cleaned(records[_READ_BEFORE:])]


def last_tombstones(records: list[RecordedRecord]) -> list[RecordedRecord]:
    """Members that left go with the last of their tombstones alone."""
    return [record for record in records if not (record.key[:2] in _ASSIGNMENTS and record.value is None)]


def cleaned(records: list[RecordedRecord]) -> list[RecordedRecord]:
    """The last record of each key, tombstones as well."""
    last = {record.key: number for number, record in enumerate(records)}
    return [record for number, record in enumerate(records) if last[record.key] == number]


def in_partitions(
    records: Iterable[RecordedRecord], partitions: int, places: range, prefix: str
) -> list[RecordedRecord]:
    """The records with their groups renamed, so that each is in one of these partitions of a log with so many."""
    names: dict[str, str] = {}
    found = []
    for record in records:
        group = group_of(record)
        if group not in names:
            named = (f"{prefix}-{group}-{number}" for number in range(10_000))
            names[group] = next(name for name in named if offsets_partition(name, partitions) in places)
        partition = offsets_partition(names[group], partitions)
        found.append(replace(renamed(record, names[group]), partition=partition))
    return list(numbered(found))


def streams_log() -> list[RecordedRecord]:
    """Records of a streams group that committed."""
    return _of_type(b"\x00\x11")


def share_log() -> list[RecordedRecord]:
    """Records of share groups."""
    return _of_type(b"\x00\x0b")


def _of_type(of_epoch: bytes) -> list[RecordedRecord]:
    """Records of the groups that have an epoch in a record of this type."""
    records = records_of("4.3.1/share-and-streams.ndjson.gz")
    groups = {group_of(record) for record in records if record.key[:2] == of_epoch}
    return [record for record in records if group_of(record) in groups]


def static_members() -> list[RecordedRecord]:
    """Records of consumer groups whose static members went and came back."""
    records = records_of("4.3.1/consumer.ndjson.gz")
    return [record for record in records if group_of(record) in ("static-instances-return", "static-instance-is-away")]


def left() -> list[RecordedRecord]:
    """Records of a consumer group of 3.9 that a member left while others stayed."""
    return of_group(records_of("3.9.1/consumer.ndjson.gz"), "members-come-and-go")


def migrated() -> list[RecordedRecord]:
    """Records of groups that were upgraded online and came back."""
    records = records_of("4.3.1/conversions.ndjson.gz")
    tombstones = {group_of(of) for of in records if of.key[:2] == GROUP_METADATA and of.value is None}
    back = {group_of(of) for of in records if of.key[:2] == b"\x00\x03" and of.value is None}
    return [record for record in records if group_of(record) in tombstones & back]


def classic(folder: str) -> list[RecordedRecord]:
    records = records_of(f"{folder}/classic.ndjson.gz")
    return [record for record in records if record.key[:2] in (_OFFSET_COMMIT, GROUP_METADATA)]


def logs(release: str = "") -> dict[str, tuple[range, list[RecordedRecord]]]:
    """Log → its partitions of the `IN_ALL` that one recording of all has, and its records.

    `own` is that of a release; without one, or a recording of it, there is none.
    """
    made = {
        "well": [*records_of(*(f"4.3.1/{of}.ndjson.gz" for of in ("classic", "consumer", "offsets"))), *streams_log()],
        "share": share_log(),
        "early_offsets": offsets_first(streams_log()),
        "no_upgrade": without_upgrade_tombstone(migrated()),
        "read_while_cleaned": [of for records in by_group(static_members()) for of in read_while_cleaned(records)],
        "last_tombstone": last_tombstones(left()),
        "cleaned": [of for records in by_group(records_of("3.9.1/consumer.ndjson.gz")) for of in cleaned(records)],
        "classic": classic("4.3.1"),
        "of_3_9": classic("3.9.1"),
    }
    if release and (recordings := sorted((RECORDINGS / release).glob("*.ndjson.gz"))):
        of_4_3_1 = ["scenarios.ndjson"] if release == "4.3.1" else []
        made["own"] = records_of(*(f"{release}/{file.name}" for file in recordings), *of_4_3_1)
    found = {}
    for number, (name, records) in enumerate(made.items()):
        places = range(number * PARTITIONS, (number + 1) * PARTITIONS)
        found[name] = places, in_partitions(records, IN_ALL, places, name)
    return found


def write(file: Path, *names: str, release: str = "") -> Path:
    """A recording of these logs, or of all; returns where it is."""
    made = logs(release)
    header = Header(kafka_version="4.3.1", offsets_topic_partitions=IN_ALL, topics=())
    with open_new_recording(file, header) as recording:
        for name in names or made:
            for record in made[name][1]:
                recording.write(record)
    return file
