"""Recordings of real brokers as the cleaner would leave them: what is missing shows nothing that never was.

Each partition is cleaned up to a place of its own, chosen by a seed, and tombstones are kept or not. What it shows must
show in the whole recording too: alarms by the log and by its clock, and causes and costs of rebalances.
"""

from collections import Counter, defaultdict
from random import Random
from typing import Final

import pytest

from coordinator_model.recording_clock import Looks
from coordinator_model.replica import Replica
from coordinator_model.state.events import INFO, Event
from streaming.recording.file_format import open_recording
from tests.histories import History, LogRecord, recording
from tests.recorder.recordings import PATHS, name_of

ALL: Final = PATHS
SEEDS: Final = range(5)
HOUR_MS: Final = 3_600_000


def cleaned_by_partition(log: History, chance: Random) -> list[LogRecord]:
    """Of each partition the first records as cleaned; each partition up to another one."""
    by_partition = defaultdict[int, list[LogRecord]](list)
    for record in log.records:
        by_partition[record.place.partition].append(record)
    left: list[LogRecord] = []
    for records in by_partition.values():
        dirty, drop = chance.randint(0, len(records)), chance.random() < 0.5
        last = {record.key: record for record in records[:dirty]}
        kept = (of for of in last.values() if of.value is not None or not drop)
        left += [*sorted(kept, key=lambda of: of.place.offset), *records[dirty:]]
    return left


def reported(records: list[LogRecord], topics: dict[str, object], *, slowly: int = 1) -> list[Event]:
    """What the replica and the recording's clock find; `slowly` is how many times as long everything takes."""
    replica, events = Replica(), list[Event]()
    looks = Looks(replica, topics)  # type: ignore[arg-type]  # topics of a recording have what is needed
    first_ms = min((of.place.timestamp_ms for of in records), default=0)
    for of in records:
        place = of.place._replace(timestamp_ms=first_ms + slowly * (of.place.timestamp_ms - first_ms))
        events += looks.before(place)
        events += replica.replay(place, of.key, of.value)
    return [*events, *replica.settle(), *looks.at_end()]


def conclusions(events: list[Event]) -> Counter[tuple[str, str]]:
    """Alarms by group and kind, and what is said of rebalances that a gap may make up."""
    found = Counter((of.group, of.kind) for of in events if of.severity != INFO)
    found.update((of.group, "scaling") for of in events if "scaling" in of.detail)
    found.update((of.group, "grown") for of in events if "partition_count" in of.detail.get("causes", ()))
    return found


@pytest.mark.parametrize("path", ALL, ids=name_of)
@pytest.mark.parametrize("slowly", [1, 100])
def test_cleaned_recording_shows_nothing_that_never_was(path: object, slowly: int) -> None:
    """Five random places a recording, at its own pace and at one where each pause is beyond every timeout."""
    log = recording(path)  # type: ignore[arg-type]  # a path
    with open_recording(path) as opened:  # type: ignore[arg-type]  # a path
        topics: dict[str, object] = {topic.name: topic for topic in opened.header.topics}
    whole = conclusions(reported(list(log.records), topics, slowly=slowly))

    for seed in SEEDS:
        cleaned = conclusions(reported(cleaned_by_partition(log, Random(seed)), topics, slowly=slowly))

        assert {} == {name: count for name, count in cleaned.items() if name not in whole}, seed
