"""Making the topics that are written to, by what the brokers can do."""

import pytest

from streaming.sinks import topic_setup
from streaming.sinks.topic_setup import DELETE, SinkTopic
from tests.streaming.kafka.brokers_of_a_release import BrokerOfARelease, client_of


@pytest.mark.parametrize("release", [(2, 0), (2, 3)])
def test_brokers_before_2_4_choose_no_number_of_partitions(release: tuple[int, int]) -> None:
    """They make no topic of which it is not said: that is what is in the way, and no error of the client."""
    topic = SinkTopic("kafka_sink.events_topic", "events", DELETE)
    hindrance = topic_setup._make(client_of(BrokerOfARelease(release)), topic)

    assert hindrance is not None
    assert "fail" == hindrance.status
    assert "found no 'events', and brokers before 2.4, on which `check` makes none, accepted: " in hindrance.detail
    assert hindrance.detail.endswith("--config cleanup.policy=delete --partitions N --replication-factor N)")
