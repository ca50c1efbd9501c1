"""The log that is rehearsed, and what the replica says that a broker is to have of it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lab.builders import RecordBytes, group_metadata, group_metadata_tombstone, member, offset_commit
from lab.coordinator_events import consumer_join, converted_to_consumer
from streaming.loading import source
from streaming.loading.source import Source
from streaming.recording.file_format import Header, RecordedRecord, open_new_recording
from tests.loading_logs import RECORDINGS

SHARE: Final = "4.0.2/share-and-streams.ndjson.gz"


def read(file: Path) -> Source:
    return source.of_recording(file, lambda _share: None)


def made(directory: Path, *records: Iterable[RecordBytes]) -> Source:
    """A log of one partition."""
    file = directory / "log.ndjson"
    with open_new_recording(file, Header(kafka_version="4.3.1", offsets_topic_partitions=1, topics=())) as recording:
        for offset, (key, value) in enumerate(of for some in records for of in some):
            recording.write(RecordedRecord(0, offset, offset, key, value))
    return read(file)


def test_what_is_expected_of_each_type_of_group(tmp_path: Path) -> None:
    """Members, the epoch where a broker says it, offsets; which groups the log knows as classic ones."""
    seen = made(
        tmp_path,
        [group_metadata("a", generation=3, members=[member("m", {"t": [0]})]), offset_commit("a", "t", 0, 7)],
        consumer_join("b", "n", epoch=2, targets={"n": {"t": [0]}}),
        [offset_commit("c", "t", 1, 9), group_metadata_tombstone("d")],
    )

    found = {name: (of.type, of.members, of.epoch, len(of.offsets)) for name, of in seen.groups.items()}
    assert {"a": ("classic", 1, None, 1), "b": ("consumer", 1, 2, 0), "c": ("classic", 0, None, 1)} == found
    assert (["a"], []) == (sorted(seen.classic), list(seen.not_compared))


def test_members_with_sessions_of_their_own(tmp_path: Path) -> None:
    """In the middle of an online upgrade those that speak the classic protocol have them."""
    seen = made(
        tmp_path,
        converted_to_consumer("g", generation=5, members={"c": {"t": [0, 1]}}),
        consumer_join("g", "n", epoch=6, targets={"c": {"t": [0]}, "n": {"t": [1]}}, assigned={}),
    )

    assert (2, 1) == (seen.groups["g"].members, seen.groups["g"].own_sessions)


def test_an_epoch_that_does_not_decode_is_not_known_and_named() -> None:
    """Brokers of 4.0 wrote the epoch of a share group in another layout: no number is made up for it."""
    seen = read(RECORDINGS / SHARE)

    share = seen.groups["share-members-come-and-go"]
    assert ("share", 2, None) == (share.type, share.members, share.epoch)
    assert (
        "the epoch of 1 group (share-members-come-and-go): no record that decodes here says it",
        "6 records of type 11, which do not decode here",
        "4 records of type 9, which do not decode here",
    ) == seen.not_compared
