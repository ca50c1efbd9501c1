"""Committed offsets: simple commits, transactions, deletions, expiry."""

import time
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.recorder.scene import Scenario, Scene, eventually


def simple_commits(scene: Scene) -> None:
    """The group has no member; offsets go forward and, by an admin's reset, back."""
    topic = scene.topic(2)
    scene.commit(topic, {0: 5, 1: 6})
    scene.commit(topic, {0: 8})
    scene.commit(topic, {0: 2})


def transactional_commits(scene: Scene) -> None:
    """Offsets committed with a transaction that commits, that aborts, and of both in one partition."""
    topic = scene.topic(3)
    scene.commit(topic, {0: 1, 1: 1, 2: 1})
    for number, (offsets, commits) in enumerate((({0: 5, 1: 5}, True), ({0: 9, 1: 9}, False), ({1: 7}, True))):
        _transaction(scene, topic, number, offsets, commits=commits)


def transaction_overtaken(scene: Scene) -> None:
    """Before a transaction ends, a plain commit replaces one of its offsets and a deletion removes another."""
    topic = scene.topic(3)
    scene.commit(topic, {0: 1, 1: 1, 2: 1})
    producer = _begun(scene, topic, 0, {0: 5, 1: 5, 2: 5})
    scene.commit(topic, {0: 3})
    scene.tool("--delete-offsets", "--topic", f"{topic}:1")
    producer.commit_transaction()


def offsets_that_are_deleted(scene: Scene) -> None:
    """An admin deletes the offsets of one topic of two."""
    gone, kept = scene.topic(2, "-gone"), scene.topic(1, "-kept")
    scene.commit(gone, {0: 5, 1: 5})
    scene.commit(kept, {0: 5})
    scene.tool("--delete-offsets", "--topic", gone)


def offsets_of_a_deleted_topic(scene: Scene) -> None:
    """A topic with committed offsets is deleted, and recreated."""
    topic, kept = scene.topic(2), scene.topic(1, "-kept")
    scene.commit(topic, {0: 9, 1: 8})
    scene.commit(kept, {0: 3})
    scene.delete_topic(topic)
    eventually(lambda: [kept] == [row["topic"] for row in scene.cluster.tool.offsets(scene.group)])
    scene.topic(2)
    scene.commit(topic, {0: 4, 1: 4})


def retention_of_an_old_client(scene: Scene) -> None:
    """An old client says how long its commit shall be kept: a record of an old layout."""
    topic = scene.topic(2)
    with scene.old_client() as old:
        old.commit(scene.group, topic, {0: 5, 1: 6}, retention_ms=86_400_000)


def offsets_that_expire(scene: Scene) -> None:
    """The same with a retention that is soon over: offsets and group vanish."""
    topic = scene.topic(2)
    with scene.old_client() as old:
        old.commit(scene.group, topic, {0: 5}, retention_ms=1_000)
    time.sleep(1)
    eventually(lambda: scene.state() is None)


def offsets_deleted_with_their_group(scene: Scene) -> None:
    """A group that only commits is deleted, and commits again."""
    topic = scene.topic(1)
    scene.commit(topic, {0: 5})
    scene.cluster.tool.delete(scene.group)
    scene.commit(topic, {0: 1})


def metadata_of_a_commit(scene: Scene) -> None:
    """A commit carries text of the application's own."""
    topic = scene.topic(1)
    simple = Consumer({"bootstrap.servers": scene.cluster.servers, "group.id": scene.group, "log_level": 2})
    simple.commit(offsets=[TopicPartition(topic, 0, 7, metadata="épreuve № 1")], asynchronous=False)
    simple.close()


def _begun(scene: Scene, topic: str, number: int, offsets: dict[int, int]) -> Producer:
    settings = {"bootstrap.servers": scene.cluster.servers, "log_level": 2}
    producer = Producer({**settings, "transactional.id": f"{scene.group}-{number}"})
    producer.init_transactions()
    producer.begin_transaction()
    reader = Consumer({**settings, "group.id": scene.group})
    positions = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    producer.send_offsets_to_transaction(positions, reader.consumer_group_metadata())
    reader.close()
    return producer


def _transaction(scene: Scene, topic: str, number: int, offsets: dict[int, int], *, commits: bool) -> None:
    producer = _begun(scene, topic, number, offsets)
    if commits:
        producer.commit_transaction()
    else:
        producer.abort_transaction()


SCENARIOS: Final = (
    Scenario(play=simple_commits),
    Scenario(play=transactional_commits),
    Scenario(play=transaction_overtaken),
    Scenario(play=offsets_that_are_deleted),
    # Since 4.3 a broker writes the topic's id whether or not the client names it.
    Scenario(play=offsets_of_a_deleted_topic, alarms=frozenset({"topic_recreated"}), told_since=(4, 3)),
    Scenario(play=retention_of_an_old_client),
    Scenario(play=offsets_that_expire),
    Scenario(play=offsets_deleted_with_their_group),
    Scenario(play=metadata_of_a_commit),
)
