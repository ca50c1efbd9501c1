"""The embedded broker, Kafka's own members and tools, all for real; what the demo does with them is in `tests/demo`."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from streaming.base.errors import CannotTellError
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import Protocol, VerifiableConsumer, create_topics
from tests.group_tool import GroupTool

pytestmark = pytest.mark.broker

PATIENCE_SECONDS: Final = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), offsets_partitions=5) as running:
        yield running


@pytest.fixture(scope="module")
def tool(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroupTool]:
    with GroupTool(broker.bootstrap_servers, log=tmp_path_factory.mktemp("tool") / "tool.log") as running:
        yield running


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.2)
    return holds()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_topic_that_was_created_takes_commits_at_once(broker: EmbeddedBroker) -> None:
    """The controller has it before the broker; who is said that it is there may commit, to every partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "at-once", "log_level": 2})
    for number in range(5):
        create_topics(broker.bootstrap_servers, {(topic := f"at-once-{number}"): 200})
        taken = consumer.commit(offsets=[TopicPartition(topic, each, 1) for each in range(200)], asynchronous=False)
        assert [None] * 200 == [each.error for each in taken or ()]
    consumer.close()


def test_a_member_is_rolled_as_kafka_itself_sees_it(broker: EmbeddedBroker, tool: GroupTool, tmp_path: Path) -> None:
    """A classic group takes in a member of the new protocol; members and Kafka's tool agree on who owns what."""
    create_topics(broker.bootstrap_servers, {"rolled": 4})

    def member(name: str, protocol: Protocol) -> VerifiableConsumer:
        return VerifiableConsumer(
            broker.bootstrap_servers, group="g", topic="rolled", name=name, directory=tmp_path, protocol=protocol
        )

    with member("stays", "classic") as stays:
        stays.await_assigned(at_least=4)
        (before,) = tool.states("g")
        with member("comes", "consumer") as comes:
            comes.await_assigned(at_least=2)

            assert (None, "Stable", 1) == (before["epoch"], before["state"], before["members"])
            assert eventually(lambda: len(stays.owned) == 2)
            assert {"stays": False, "comes": True} == {row["client_id"]: row["upgraded"] for row in tool.members("g")}
            assert {"stays": stays.owned, "comes": comes.owned} == {
                row["client_id"]: {("rolled", number) for number in row["assigned"]["rolled"]}
                for row in tool.members("g")
            }
        assert eventually(lambda: len(stays.owned) == 4)
        assert not is_alive(comes.pid)
    assert eventually(lambda: tool.states("g")[0]["state"] == "Empty")


def test_the_tool_tells_its_errors(tool: GroupTool) -> None:
    """A group that is not there is an error in the tool's own words, and the tool can be asked again."""
    with pytest.raises(CannotTellError, match="no-such-group not found"):
        tool.states("no-such-group")
    assert "no-such-group" not in tool.list_groups()


def test_a_node_that_dies_at_start_is_reported_in_one_line(tmp_path: Path) -> None:
    """What the node said last, without waiting for an answer that never comes; no file that goes with the demo."""
    broker = EmbeddedBroker(tmp_path, properties={"authorizer.class.name": "no.such.Authorizer"})

    with pytest.raises(CannotTellError, match=r"^embedded broker: ended while .*no\.such\.Authorizer") as reported:
        broker.start()
    assert str(tmp_path) not in str(reported.value)
    assert broker.pid is None


def test_a_data_directory_can_be_used_again(tmp_path: Path) -> None:
    """A second node on the directory of a first one that stopped has its topics."""
    with EmbeddedBroker(tmp_path, offsets_partitions=1) as first:
        create_topics(first.bootstrap_servers, {"kept": 1})
        pid = first.pid
    with EmbeddedBroker(tmp_path, offsets_partitions=1) as second:
        topics = AdminClient({"bootstrap.servers": second.bootstrap_servers}).list_topics(timeout=10).topics

    assert 1 == len(topics["kept"].partitions)
    assert pid is not None
    assert not is_alive(pid)
