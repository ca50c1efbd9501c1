"""A topic that groups read is deleted and recreated, on a real broker: lag does not lie about it.

What is committed on the former topic says nothing of the new one. Brokers delete such offsets with the topic; but a
consumer that still runs has its position, and commits it again: an offset beyond the end of a topic that is nearly
empty. No lag follows from that, not even one of 0, until something is committed that is there.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from coordinator_model.lag import BEYOND_END
from lab.monitor_process import MonitorProcess, until
from streaming.demo.verifiable_consumer import create_topics
from tests.faults import results
from tests.faults.results import Result
from tests.left_out import asked_for, needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    asked_for("FAULTS"),
    needs_kafka_jars,
]

TOPIC: Final = "orders"
GROUP: Final = "reader"
PATIENCE_SECONDS: Final = 120.0


class Story:
    """The topic, who reads it, and the monitor."""

    def __init__(self, servers: str, stack: ExitStack, directory: Path) -> None:
        self._servers, self._stack, self._directory = servers, stack, directory
        self._runs = 0
        self.monitor = self.start()

    def start(self) -> MonitorProcess:
        """A monitor, on the state directory of the one before."""
        self._runs += 1
        directory = self._directory / f"run-{self._runs}"
        self.monitor = self._stack.enter_context(
            MonitorProcess(directory, self._servers, state=self._directory / "state")
        )
        self.monitor.await_ready()
        return self.monitor

    def make_topic(self, records: int) -> None:
        """Make it, with so many records."""
        create_topics(self._servers, {TOPIC: 1})
        producer = Producer({"bootstrap.servers": self._servers, "log_level": 2})
        for number in range(records):
            producer.produce(TOPIC, str(number).encode(), partition=0)
        assert 0 == producer.flush(30)

    def remove_topic(self) -> None:
        """Delete it, and wait until its brokers have forgotten it."""
        admin = AdminClient({"bootstrap.servers": self._servers, "log_level": 2})
        admin.delete_topics([TOPIC], operation_timeout=30)[TOPIC].result(30)
        until(lambda: TOPIC not in admin.list_topics(timeout=10).topics, 60, "the topic stays")

    def commit(self, offset: int) -> None:
        """As a consumer that assigns partitions itself."""
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": GROUP, "log_level": 2})
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
        consumer.close()

    def offset(self) -> dict[str, Any]:
        """What is shown of the one committed offset; nothing where none is."""
        offsets = self.monitor.groups().get(GROUP, {"offsets": []})["offsets"]
        return dict(offsets[0]) if offsets else {}

    def await_lag(self, offset: int, lag: int | None) -> None:
        """Wait until it is shown with this lag."""
        wanted = {"offset": offset, "lag": lag}
        until(lambda: wanted.items() <= self.offset().items(), PATIENCE_SECONDS, lambda: f"{self.offset()}, {wanted}")

    def records(self) -> int:
        """Written to the coordinator's log so far, which has one partition."""
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": GROUP, "log_level": 2})
        _, end = consumer.get_watermark_offsets(TopicPartition("__consumer_offsets", 0), timeout=10)
        consumer.close()
        return int(end)

    def series(self) -> dict[str, float]:
        """Lag on /metrics: name → value, of those that there are."""
        samples = self.monitor.samples()
        names = ("kafka_consumergroup_group_lag", "kafka_consumergroup_group_sum_lag", "kafka_partition_latest_offset")
        return {
            name: value
            for name in names
            for labels, value in samples.get(name, {}).items()
            if dict(labels).get("group", GROUP) == GROUP and dict(labels).get("topic", TOPIC) == TOPIC
        }


@pytest.fixture
def story(servers: str, tmp_path: Path) -> Iterator[Story]:
    with ExitStack() as stack:
        yield Story(servers, stack, tmp_path)


def test_lag_of_a_topic_recreated_is_of_the_new_one_or_of_none(story: Story) -> None:
    """Under a running monitor, and while none runs: never the old offset against the new end, and right in the end."""
    until_reported = 0.0
    for away in (False, True):
        story.make_topic(500)
        story.commit(400)
        story.await_lag(400, 100)
        if away:
            story.monitor.terminate()
            assert 0 == story.monitor.await_end(60)
        story.remove_topic()
        story.make_topic(3)
        story.commit(401)
        if away:
            story.start()
        begun = time.monotonic()
        until(lambda: story.offset().get("lag_method") == BEYOND_END, PATIENCE_SECONDS, lambda: str(story.offset()))
        until_reported = max(until_reported, time.monotonic() - begun)
        story.await_lag(401, None)
        assert {"kafka_partition_latest_offset": 3.0} == story.series()

        story.commit(1)
        story.await_lag(1, 2)
        assert 2.0 == story.series()["kafka_consumergroup_group_lag"]
        story.remove_topic()
    results.save_if_asked(
        [
            Result(
                fault="consumed topic recreated",
                done="A topic that a group reads is deleted and recreated, under a monitor and while none runs; the "
                "position of before is committed again, and has no lag.",
                times=2,
                records=story.records(),
                events=len(story.monitor.events(group=GROUP)),
                lost=0,
                repeated=0,
                wrong=0,
                figures={"longest time until no lag is shown, s": round(until_reported, 1)},
            )
        ]
    )
