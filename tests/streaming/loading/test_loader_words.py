"""What loaders say, in the form that a rehearsal's broker logs it."""

import pytest

from streaming.loading import faults
from streaming.loading.loader_words import said, unknown_version

LOADED = (
    "@INFO [GroupCoordinator id=1] Finished loading of metadata from __consumer_offsets-7 with epoch 1 in 12ms where "
    "1ms was spent in the scheduler. Loaded 3 records which total to 300 bytes.\n"
)
OLD_LOADED = (
    "@INFO [GroupMetadataManager brokerId=1] Finished loading offsets and group metadata from __consumer_offsets-7 in "
    "30 milliseconds for epoch 1, of which 2 milliseconds was spent in the scheduler.\n"
)
FAILED = """@ERROR [GroupCoordinator id=1] Failed to load metadata from __consumer_offsets-12 with epoch 2 due to \
Replaying record CoordinatorRecord(key=x) from __consumer_offsets-12 at offset 4 with producer id -1 and producer \
epoch -1 failed..
java.lang.RuntimeException: Replaying record CoordinatorRecord(key=x) from __consumer_offsets-12 at offset 4 with \
producer id -1 and producer epoch -1 failed.
\tat org.apache.kafka.coordinator.common.runtime.CoordinatorLoaderImpl.doLoad(CoordinatorLoaderImpl.java:275)
Caused by: java.lang.IllegalStateException: Group g is not a consumer group
\tat org.apache.kafka.coordinator.group.GroupMetadataManager.replay(GroupMetadataManager.java:1)
"""
OLD_FAILED = """@ERROR [GroupMetadataManager brokerId=1] Error loading offsets from __consumer_offsets-3
java.lang.IllegalStateException: Unknown offset message version: 4
\tat kafka.coordinator.group.GroupMetadataManager$.readOffsetMessageValue(GroupMetadataManager.scala:1)
"""


@pytest.mark.parametrize("text", [LOADED, OLD_LOADED])
def test_a_partition_that_loaded(text: str) -> None:
    """By the words of both coordinators."""
    found = said("@WARN something else of __consumer_offsets-9\n" + text)

    assert ({7}, {}) == (found.loaded, found.failed)


def number_of(text: str, release: str) -> str | None:
    """Of the known fault, in a log that has `g` as a classic group."""
    return getattr(faults.known(text, release, {"g"}.__contains__), "number", None)


def test_a_failure_with_its_offset() -> None:
    """The innermost cause in one line, and the offset in the broker's own log."""
    found = said(LOADED + FAILED + LOADED)

    assert {7, 12} == found.heard_of
    failure = found.failed[12]
    assert ("IllegalStateException: Group g is not a consumer group", 4) == (failure.said, failure.offset)
    assert "KAFKA-21117" == number_of(failure.text, "4.3.1")


def test_a_failure_without_a_stack() -> None:
    """Its first line says where, and what there is to say; that is no known fault."""
    failure = said(FAILED.splitlines()[0] + "\n").failed[12]

    assert 4 == failure.offset
    assert failure.said.startswith("Replaying record CoordinatorRecord(key=x)")
    assert number_of(failure.text, "4.3.1") is None


def test_a_record_that_is_not_decoded() -> None:
    """4.0 meets a share group as 4.1 and later write it: the offset is in other words, the cause stands last."""
    failure = said(
        "@ERROR [GroupCoordinator id=1] Failed to load metadata from __consumer_offsets-9 with epoch 1 due to "
        "java.lang.RuntimeException: Deserializing record DefaultRecord(offset=105, timestamp=7, key=37 bytes, "
        "value=15 bytes) from __consumer_offsets-9 failed due to: Could not read record with version 0 from value's "
        "buffer due to: Error reading byte array of 6090 byte(s): only 2 byte(s) available.\n"
    ).failed[9]

    assert 105 == failure.offset
    assert failure.said.startswith("Could not read record with version 0 from value's buffer due to: Error reading")


@pytest.mark.parametrize("after", ["", OLD_LOADED.replace("offsets-7", "offsets-3")])
def test_a_failure_of_the_former_coordinator(after: str) -> None:
    """It says no offset, but what it did not know; whatever it says of that partition afterwards."""
    found = said(OLD_FAILED + after)

    failure = found.failed[3]
    assert (set(), None) == (found.loaded, failure.offset)
    assert "IllegalStateException: Unknown offset message version: 4" == failure.said
    assert (False, 4) == unknown_version(failure)
    assert "KAFKA-14869" == number_of(failure.text, "3.4.0")


def test_a_record_type_that_was_not_known() -> None:
    """It is spoken of as a version of group metadata."""
    failure = said(OLD_FAILED.replace("offset message version: 4", "group metadata message version: 17")).failed[3]

    assert (True, 17) == unknown_version(failure)


@pytest.mark.parametrize("text", ["", "no entry", "@INFO Loading group metadata", LOADED.replace("Finished", "Begun")])
def test_what_says_nothing_of_a_partition(text: str) -> None:
    """It is not heard of, which is not the same as loaded."""
    assert set() == said(text).heard_of


STREAMS = "Group g is not a streams group"
CONSUMER = "Group g is not a consumer group"
SIMPLE = "Group only commits is not a consumer group"
ABSENT = "Member m is not a member of group g"
UNKNOWN = "Consumer group g not found"
SIBLINGS = "Received a tombstone record to delete member m but did not receive XValue tombstone"
OWNED = "Cannot set the epoch of x-0 to 3 because the partition is still owned at epoch 2"


@pytest.mark.parametrize(
    ("text", "release", "number"),
    [
        (STREAMS, "4.1.1", "KAFKA-20254"),
        (STREAMS, "4.2.0", "KAFKA-20254"),
        (STREAMS, "4.2.1", None),
        (STREAMS, "4.3.1", None),
        (CONSUMER, "4.0.0", "KAFKA-21117"),
        (CONSUMER, "4.3.1", "KAFKA-21117"),
        (CONSUMER, "5.0.0", "KAFKA-21117"),
        (CONSUMER, "3.9.2", "KAFKA-21117"),
        (SIMPLE, "3.9.2", "KAFKA-17306"),
        (SIMPLE, "4.0.0", "KAFKA-21117"),
        (ABSENT, "3.8.1", "KAFKA-17306"),
        (ABSENT, "4.0.0", None),
        (UNKNOWN, "3.9.0", "KAFKA-17306"),
        (UNKNOWN, "4.3.1", None),
        (SIBLINGS, "3.9.2", "KAFKA-21102"),
        (SIBLINGS, "4.3.1", "KAFKA-21102"),
        (SIBLINGS.replace("delete member", "delete share group member"), "4.3.1", "KAFKA-21102"),
        (OWNED, "4.0.1", "KAFKA-19862"),
        (OWNED, "4.0.2", None),
        (OWNED, "4.1.0", "KAFKA-19862"),
        (OWNED, "4.1.2", None),
        (OWNED, "4.2.0", None),
        (OWNED, "4.3.0", None),
        ("Unknown offset message version: 4", "3.4.1", None),
        ("Unknown offset message version: 4", "3.5.0", None),
        ("Unknown offset message version: 5", "4.0.0", None),
        ("something else", "4.3.1", None),
    ],
)
def test_known_faults_by_release(text: str, release: str, number: str | None) -> None:
    """A release that mends a fault says the same for another reason: that is not known.

    Of a group that only committed, 3.9 says what it says of one that was classic; the log tells which it is.
    """
    assert number == number_of(text, release)
