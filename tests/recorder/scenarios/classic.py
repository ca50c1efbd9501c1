"""Classic groups."""

from typing import Final

from tests.recorder.clients import Member
from tests.recorder.scene import Scenario, Scene, eventually

_NO_FAREWELL: Final = {"internal.leave.group.on.close": "false"}
"""Kafka Streams' own way to close a consumer that may come back."""


def range_assignor_with_a_member_that_dies(scene: Scene) -> None:
    """Three members of the range assignor join one by one; one leaves, one dies and its session expires."""
    topic = scene.topic(6)
    doomed = scene.doomed()
    dies = scene.join("dies", topic, jvm=doomed)
    dies.await_owned(6)
    leaves = scene.join("leaves", topic)
    leaves.await_owned(3)
    stays = scene.join("stays", topic)
    stays.await_owned(2)
    stays.commit()
    leaves.close()
    stays.await_owned(3)
    doomed.kill()
    stays.await_owned(6)
    stays.commit()


def sticky_assignor(scene: Scene) -> None:
    """Members of the sticky assignor, which carry what they had in their user data, join and leave."""
    _three_come_and_one_goes(scene, "sticky")


def cooperative_sticky_assignor(scene: Scene) -> None:
    """The same of the cooperative one: partitions are given up in one generation and taken over in the next."""
    _three_come_and_one_goes(scene, "cooperative-sticky")


def roundrobin_assignor(scene: Scene) -> None:
    """The same of the round-robin assignor."""
    _three_come_and_one_goes(scene, "roundrobin")


def _three_come_and_one_goes(scene: Scene, assignor: str) -> None:
    topic = scene.topic(6)
    first, second, third = (_joined(scene, name, topic, assignor, owned) for name, owned in _SHARES)
    third.commit()
    second.close()
    first.await_owned(3)
    third.await_owned(3)
    first.commit()


_SHARES: Final = (("first", 6), ("second", 3), ("third", 2))


def _joined(scene: Scene, name: str, topic: str, assignor: str, owned: int) -> Member:
    member = scene.join(name, topic, assignor=assignor)  # type: ignore[arg-type]  # one of the literals above
    member.await_owned(owned)
    return member


def static_members_bounce(scene: Scene) -> None:
    """Two static members; one closes and comes back within its session, without a rebalance, and twice."""
    topic = scene.topic(4)
    first = scene.join("first", topic, instance_id="one")
    first.await_owned(4)
    scene.join("second", topic, instance_id="two").await_owned(2)
    first.commit()
    for _ in range(2):
        first.close()
        first = scene.join("first", topic, instance_id="one")
        first.await_owned(2)
    first.commit()


def static_member_stays_away(scene: Scene) -> None:
    """One of two static members closes for longer than its session lasts."""
    topic = scene.topic(4)
    first = scene.join("first", topic, instance_id="one")
    first.await_owned(4)
    second = scene.join("second", topic, instance_id="two")
    second.await_owned(2)
    second.close()
    first.await_owned(4)
    first.commit()


def round_that_is_lost(scene: Scene) -> None:
    """The first member joins and never syncs, so its generation is never written; the next one is."""
    topic = scene.topic(2)
    with scene.old_client() as old:
        assert 1 == old.join(scene.group, topic, rebalance_timeout_ms=2_000)
        # The group waits for who does not come back as long as the most patient of its members.
        member = scene.join("member", topic, settings={"max.poll.interval.ms": "3000"})
        member.await_owned(2)
        member.commit()


def topic_that_grows(scene: Scene) -> None:
    """A topic gets more partitions, and a wildcard subscription a further topic: the leader begins a rebalance."""
    topic = scene.topic(2)
    first = scene.join("first", pattern=f"{scene.group}-topic.*")
    first.await_owned(2)
    scene.join("second", pattern=f"{scene.group}-topic.*").await_owned(1)
    scene.add_partitions(topic, 4)
    first.await_owned(2)
    scene.topic(2, "-more")
    first.await_owned(3)
    first.commit()


def subscription_that_changes(scene: Scene) -> None:
    """Members of one group subscribe to different topics, and one changes its mind."""
    some, others = scene.topic(2, "-some"), scene.topic(3, "-others")
    first = scene.join("first", some)
    first.await_owned(2)
    second = scene.join("second", others)
    second.await_owned(3)
    second.do(lambda consumer: consumer.subscribe(scene.cluster.jvm.list_of(some, others)))
    first.await_owned(1)
    second.await_owned(4)
    second.commit()


def clients_of_three_makes(scene: Scene) -> None:
    """Java's, librdkafka's and kafka-python's members agree on the range assignor; each says more or less of itself."""
    topic = scene.topic(3)
    java = scene.join("java", topic)
    java.await_owned(3)
    scene.join_librdkafka(topic)
    scene.join_kafka_python("python", topic)
    java.await_owned(1)
    scene.settled(3)
    java.commit()


def group_that_empties(scene: Scene) -> None:
    """All members leave; what they committed stays."""
    topic = scene.topic(2)
    member = scene.join("member", topic)
    member.await_owned(2)
    member.commit()
    member.close()
    scene.settled(0, "Empty")


def group_that_is_deleted(scene: Scene) -> None:
    """An empty group is deleted, its offsets with it."""
    group_that_empties(scene)
    scene.cluster.tool.delete(scene.group)


def group_that_nobody_needs(scene: Scene) -> None:
    """An empty group without offsets vanishes at the coordinator's next round."""
    topic = scene.topic(2)
    member = scene.join("member", topic)
    member.await_owned(2)
    member.close()
    eventually(lambda: scene.state() is None)


def streams_application(scene: Scene) -> None:
    """Kafka Streams of the classic protocol: a group whose assignor is `stream`, its tasks in the user data."""
    topic = scene.topic(2)
    for name in ("first", "second"):
        scene.join_streams(name, topic, protocol="classic", standbys=1).await_running()


SCENARIOS: Final = (
    Scenario(play=range_assignor_with_a_member_that_dies),
    Scenario(play=sticky_assignor),
    Scenario(play=cooperative_sticky_assignor),
    Scenario(play=roundrobin_assignor),
    Scenario(play=static_members_bounce),
    Scenario(play=static_member_stays_away),
    Scenario(play=round_that_is_lost),  # one round, as a member joined in it: information
    Scenario(play=topic_that_grows),
    Scenario(play=subscription_that_changes),
    Scenario(play=clients_of_three_makes),
    Scenario(play=group_that_empties),
    Scenario(play=group_that_is_deleted),
    Scenario(play=group_that_nobody_needs),
    Scenario(play=streams_application),
)
