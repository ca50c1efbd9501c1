"""Groups of the consumer protocol (KIP-848)."""

from typing import Any, Final

from tests.recorder.clients import Member
from tests.recorder.scene import Scenario, Scene


def members_come_and_go(scene: Scene) -> None:
    """Three members join one by one, the second leaves, all commit."""
    topic = scene.topic(6)
    first = _joined(scene, "first", topic, owned=6)
    second = _joined(scene, "second", topic, owned=3)
    third = _joined(scene, "third", topic, owned=2)
    third.commit()
    second.close()
    first.await_owned(3)
    third.await_owned(3)
    scene.settled(2)
    first.commit()


def member_that_dies(scene: Scene) -> None:
    """One of two members dies, and its session expires."""
    topic = scene.topic(4)
    scene.configure("consumer.session.timeout.ms", "5000")
    doomed = scene.doomed()
    dies = scene.join("dies", topic, protocol="consumer", jvm=doomed)
    dies.await_owned(4)
    stays = _joined(scene, "stays", topic, owned=2)
    doomed.kill()
    stays.await_owned(4)
    stays.commit()
    scene.settled(1)


def range_chosen_on_the_broker(scene: Scene) -> None:
    """Members ask for the broker's range assignor, and one later for its uniform one."""
    topic = scene.topic(4)
    asked = {"group.remote.assignor": "range"}
    first = scene.join("first", topic, protocol="consumer", settings=asked)
    first.await_owned(4)
    second = scene.join("second", topic, protocol="consumer", settings=asked)
    second.await_owned(2)
    second.close()
    first.await_owned(4)
    scene.join("third", topic, protocol="consumer", settings={"group.remote.assignor": "uniform"}).await_owned(2)
    scene.settled(2)
    first.commit()


def regular_expression_on_the_broker(scene: Scene) -> None:
    """Members subscribe to a regular expression that the broker resolves; a topic that it matches comes later."""
    scene.topic(2)
    pattern = f"{scene.group}-topic.*"
    first = scene.join("first", protocol="consumer", pattern=pattern)
    first.await_owned(2)
    second = scene.join("second", protocol="consumer", pattern=pattern)
    second.await_owned(1)
    scene.topic(2, "-more")
    first.await_owned(2)
    second.await_owned(2)
    scene.settled(2)
    second.close()
    first.await_owned(4)
    _subscribe(scene, first, f"{scene.group}-topic")
    scene.settled(1)
    first.commit()


def static_instances_return(scene: Scene) -> None:
    """A static member closes and comes back within its session; it has another member id then, and no epoch moved."""
    topic = scene.topic(4)
    first = scene.join("first", topic, protocol="consumer", instance_id="one")
    first.await_owned(4)
    scene.join("second", topic, protocol="consumer", instance_id="two").await_owned(2)
    scene.settled(2)
    first.close()
    first = scene.join("first", topic, protocol="consumer", instance_id="one")
    first.await_owned(2)
    scene.settled(2)
    first.commit()


def static_instance_is_away(scene: Scene) -> None:
    """A static member has closed and keeps its partitions for the rest of its session: the group is Reconciling."""
    topic = scene.topic(4)
    first = scene.join("first", topic, protocol="consumer", instance_id="one")
    first.await_owned(4)
    scene.join("second", topic, protocol="consumer", instance_id="two").await_owned(2)
    scene.settled(2)
    first.close()
    scene.settled(2, "Reconciling")


def revocation_that_takes_its_time(scene: Scene) -> None:
    """A member that does not poll does not give up what it shall, and another waits for it.

    Up to 4.1 clients gave it up in the background, so that there is nothing left to wait for at the end.
    """
    topic = scene.topic(4)
    busy = _joined(scene, "busy", topic, owned=4)
    busy.commit()
    busy.pause()
    scene.join("waits", topic, protocol="consumer")
    scene.settled(2, "Reconciling")


def subscribed_topic_grows(scene: Scene) -> None:
    """Partitions are added to a subscribed topic; then the member subscribes to a further one, and lets go of both."""
    topic, more = scene.topic(2), scene.topic(1, "-more")
    first = _joined(scene, "first", topic, owned=2)
    scene.add_partitions(topic, 3)
    first.await_owned(3)
    jvm = scene.cluster.jvm
    first.do(lambda consumer: consumer.subscribe(jvm.list_of(topic, more)))
    first.await_owned(4)
    first.do(lambda consumer: consumer.subscribe(jvm.list_of(more)))
    first.await_owned(1)
    scene.settled(1)
    first.commit()


def subscribed_topic_made_anew(scene: Scene) -> None:
    """A subscribed topic is deleted and another of its name takes its place."""
    topic = scene.topic(2)
    first = _joined(scene, "first", topic, owned=2)
    first.commit()
    scene.delete_topic(topic)
    first.await_owned(0)
    scene.topic(3)
    first.await_owned(3)
    first.commit()
    scene.settled(1)


def consumer_group_that_empties(scene: Scene) -> None:
    """The last member leaves: the group's epoch is ahead of its target, and it is Empty all the same."""
    topic = scene.topic(2)
    member = _joined(scene, "member", topic, owned=2)
    member.commit()
    member.close()
    scene.settled(0, "Empty")


def consumer_group_that_is_deleted(scene: Scene) -> None:
    """An empty group is deleted: every record of it gets its tombstone."""
    consumer_group_that_empties(scene)
    scene.cluster.tool.delete(scene.group)


def _joined(scene: Scene, name: str, topic: str, *, owned: int) -> Member:
    member = scene.join(name, topic, protocol="consumer")
    member.await_owned(owned)
    return member


def _subscribe(scene: Scene, member: Member, pattern: str) -> None:
    def subscribe(consumer: Any) -> None:
        consumer.subscribe(scene.cluster.jvm.kafka.clients.consumer.SubscriptionPattern(pattern))

    member.do(subscribe)
    member.await_owned(2)


SCENARIOS: Final = (
    Scenario(play=members_come_and_go),
    # Brokers of 3.9 have no configurations of groups, and so no short session for one of them.
    Scenario(play=member_that_dies, since=(4, 0)),
    Scenario(play=range_chosen_on_the_broker),
    Scenario(play=regular_expression_on_the_broker, since=(4, 0)),
    Scenario(play=static_instances_return, alarms=frozenset({"static_member_absent"})),
    Scenario(play=static_instance_is_away, alarms=frozenset({"static_member_absent"})),
    Scenario(play=revocation_that_takes_its_time),
    Scenario(play=subscribed_topic_grows),
    # Kafka's own client names the topic's id in its commits since 4.2.
    Scenario(play=subscribed_topic_made_anew, alarms=frozenset({"topic_recreated"})),
    Scenario(play=consumer_group_that_empties),
    Scenario(play=consumer_group_that_is_deleted),
)
