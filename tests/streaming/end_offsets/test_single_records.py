"""The time of a single record, by a real client of a broker that librdkafka itself plays."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from streaming.end_offsets.open_transactions import RecordTimes
from tests import hostile_batches
from tests.hostile_batches import UNKNOWN_CODEC, batch

TOPIC = "orders"
HOSTILE, WHOLE = (TOPIC, 0), (TOPIC, 1)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Of a topic in which a client has written a batch that cannot be read to one partition."""
    client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (found,) = client.list_topics(timeout=10).brokers.values()
    address = f"{found.host}:{found.port}"
    client.list_topics(TOPIC, timeout=10)
    hostile_batches.write(address, *HOSTILE, batch([(b"k", b"v")] * 3, codec=UNKNOWN_CODEC))
    hostile_batches.write(address, *WHOLE, batch([(b"k", b"v")]))
    yield address
    del client


def test_a_batch_that_cannot_be_read_keeps_no_other_partition_from_its_answer(servers: str) -> None:
    """Of its own transaction the age counts from when it was first seen."""
    times, now_ms = RecordTimes({"bootstrap.servers": servers}), time.time_ns() // 1_000_000
    found = times.written_ms({HOSTILE: 0, WHOLE: 0})
    times.close()

    assert [WHOLE] == [*found]
    assert 0 <= now_ms - found[WHOLE] < 600_000
