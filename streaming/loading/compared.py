"""What a release makes of the log, beside what the log holds: what fails, what is lost, what is forgotten by design.

by design    a group of a type that the release does not serve becomes its offsets without members, or nothing where
             it has none (KIP-915)
lost         all else that the replica has and the broker does not answer; of a partition that failed, everything
more         what the broker answers and the replica does not have: shown, and no loss
"""

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.gates import broker_releases
from coordinator_model.records.record_types import RecordType
from coordinator_model.records.serde import Record, UnknownRecord, decode_record
from coordinator_model.state.membership import CLASSIC
from coordinator_model.state.shards import offsets_partition
from streaming.loading import faults
from streaming.loading.asked import AnsweredGroup, Answers
from streaming.loading.loader_words import Failure, LoaderSaid
from streaming.loading.source import ExpectedGroup, Offsets, Source
from streaming.recording.file_format import RecordedRecord

FORMAT: Final = "broker-rehearsal/1"
UNKNOWN_FAULT: Final = "unknown fault"

LoadingJson = dict[str, Any]


def release_view(  # noqa: PLR0913 - what it is made of, all named
    release: str,
    source: Source,
    said: LoaderSaid,
    answers: Answers,
    at: Mapping[int, RecordedRecord],
    seconds: float,
) -> LoadingJson:
    """What `rehearse brokers --json` has of a release.

    Args:
        release: which.
        source: the log.
        said: what its loader said.
        answers: what it answered then.
        at: of each partition that failed, the record at which it did, where that is known.
        seconds: what it took.
    """
    partitions = [
        _partition_view(release, source, partition, said.failed.get(partition), at.get(partition))
        for partition in range(source.header.offsets_topic_partitions)
        if source.records.get(partition) or partition in said.failed
    ]

    def kept(name: str, was: ExpectedGroup) -> Offsets:
        return {} if was.partition in said.failed else answers.offsets.get(name, {})

    def place(name: str) -> int:
        return offsets_partition(name, source.header.offsets_topic_partitions)

    missing: list[str] = []
    changed: list[LoadingJson] = []
    for name, was in source.groups.items():
        found = answers.groups.get(name)
        if was.partition in said.failed or found is None:
            # Of a partition that failed nothing is by design: the release would keep the offsets.
            if was.partition not in said.failed and _is_forgotten(release, was) and not was.offsets:
                changed.append(_change(name, was, None, by_design=True))
            else:
                missing.append(name)
        elif (change := _changed(release, name, was, found)) is not None:
            changed.append(change)
    return {
        "release": release,
        "loads": not said.failed,
        "partitions": partitions,
        "groups_missing": missing,
        "groups_changed": changed,
        "offsets_missing": sum(len(was.offsets.keys() - kept(name, was).keys()) for name, was in source.groups.items()),
        "offsets_different": sum(
            kept(name, was).get(place, of) != of
            for name, was in source.groups.items()
            for place, of in was.offsets.items()
        ),
        "groups_more": sorted(
            name for name in answers.groups.keys() - source.groups.keys() if place(name) not in said.failed
        ),
        "offsets_more": sum(len(kept(name, was).keys() - was.offsets.keys()) for name, was in source.groups.items()),
        "groups": len(source.groups),
        "seconds": round(seconds, 3),
    }


def is_lost(view: LoadingJson) -> bool:
    """Whether a release does not load all, or loses something that it does not forget by design."""
    return bool(
        not view["loads"]
        or view["groups_missing"]
        or view["offsets_missing"]
        or view["offsets_different"]
        or any(not of["by_design"] for of in view["groups_changed"])
    )


def _partition_view(
    release: str, source: Source, partition: int, failure: Failure | None, record: RecordedRecord | None
) -> LoadingJson:
    here = [of for of in source.groups.values() if of.partition == partition]
    group, type_ = (None, None) if record is None else named(record)
    fault = None if failure is None else faults.known(failure.text, release, source.classic.__contains__)
    return {
        "partition": partition,
        "records": source.records.get(partition, 0),
        "loaded": failure is None,
        "at_offset": None if record is None else record.offset,
        "time": None if record is None else record.timestamp_ms,
        "group": group,
        "record_type": type_,
        "said": None if failure is None else failure.said,
        "known": None if fault is None else fault.number,
        "seen_on": [] if fault is None else list(fault.seen_on),
        "mended_in": [] if fault is None else list(fault.mended_in),
        "remedies": [] if fault is None else fault.remedies(release),
        "groups": len(here),
        "offsets": sum(len(of.offsets) for of in here),
    }


def named(record: RecordedRecord) -> tuple[str | None, str]:
    """The group that a record is of, where its key tells, and its type: its name, or its number if it has none here."""
    number = int.from_bytes(record.key[:2], signed=True)
    try:
        type_ = RecordType(number).name
    except ValueError:
        type_ = str(number)
    decoded = decode_record(record.key, None)
    return (decoded.group_name if isinstance(decoded, Record | UnknownRecord) else None), type_


def _is_forgotten(release: str, was: ExpectedGroup) -> bool:
    row = broker_releases.release(release)
    return row is not None and was.type not in row.serves


def _changed(release: str, name: str, was: ExpectedGroup, found: AnsweredGroup) -> LoadingJson | None:
    if was.type != found.type:
        by_design = found.type == CLASSIC and not found.members and _is_forgotten(release, was)
        return _change(name, was, found, by_design=by_design)
    # A member whose own session is over by now is none that was lost; with each that goes an epoch begins.
    gone = 0 if found.members is None else was.members - found.members
    sessions = was.members if was.type == CLASSIC else was.own_sessions
    epoch = not gone and None not in (was.epoch, found.epoch) and was.epoch != found.epoch
    return _change(name, was, found, by_design=False) if epoch or not 0 <= gone <= sessions else None


def _change(name: str, was: ExpectedGroup, found: AnsweredGroup | None, *, by_design: bool) -> LoadingJson:
    return {"group": name, "was": _words(was), "is": None if found is None else _words(found), "by_design": by_design}


def _words(of: ExpectedGroup | AnsweredGroup) -> str:
    words = [of.type]
    if of.members is not None:
        words.append(f"{of.members} member{'' if of.members == 1 else 's'}")
    if of.epoch is not None:
        words.append(f"epoch {of.epoch}")
    return ", ".join(words)
