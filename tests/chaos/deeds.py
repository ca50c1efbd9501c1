"""What is done to brokers, and meanwhile to groups, topics and the monitor; each ends as it began, but for losses."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lab.monitor_process import until
from tests.chaos.scene import COMMITTED, MAY_BE_LOST, OFFSETS_HELD_BY, TOPICS, Scene, say
from tests.faults.processes_of import stopped

Deed = Callable[[Scene, Random], None]
SHOWN_SECONDS: Final = 90.0
"""No one waits longer for a commit after a leader's move."""


def broker_killed(scene: Scene, chance: Random) -> None:
    """A broker fails, and is started again."""
    node = chance.choice(scene.brokers.followers)
    node.kill()
    scene.wait(chance.uniform(3, 15))
    node.start()


def broker_frozen(scene: Scene, chance: Random) -> None:
    """A broker stands still (SIGSTOP), and goes on as if nothing had been."""
    node = chance.choice(scene.brokers.followers)
    node.freeze()
    scene.wait(chance.uniform(2, 15))
    node.thaw()


def broker_rolled(scene: Scene, chance: Random) -> None:
    """A broker, the controller or another, is stopped and started; then leadership goes back to it."""
    node = chance.choice([*scene.brokers.nodes.values()])
    node.stop()
    scene.wait(chance.uniform(0, 3))
    node.start()
    preferred = {of: held[0] for of, held in scene.leaders.replicas().items() if held[0] == node.number}
    until(lambda: preferred.items() <= scene.leaders.now().items(), 60, "leadership does not go back")
    if preferred:  # what it held may have been given to others
        _measure(scene, chance.choice([*preferred]), time.monotonic(), f"went back to broker {node.number}")


def two_brokers_killed(scene: Scene, chance: Random) -> None:
    """Both other brokers fail, so that what only they hold has no leader for a while; one of them leads it then."""
    nodes = chance.sample(scene.brokers.followers, 2)
    for node in nodes:
        node.kill()
        scene.wait(chance.uniform(0, 4))
    # Long enough for answers to be asked for after the time that noticing may take.
    time.sleep(chance.uniform(14, 20))
    for node in nodes:
        node.start()


def leader_elected(scene: Scene, chance: Random) -> None:
    """The leader of an offsets partition moves by preferred election; the old one lives."""
    partition = chance.randrange(len(OFFSETS_HELD_BY))
    first, other = scene.leaders.replicas()[partition]
    scene.leaders.reassign({partition: [other, first]})
    scene.leaders.elect_preferred(partition)
    scene.leaders.await_led({partition: other})
    _measure(scene, partition, time.monotonic(), f"partition {partition} elected {other}")


def leader_reassigned(scene: Scene, chance: Random) -> None:
    """An offsets partition is held by other brokers, and the one that led it does so no more; it lives."""
    partition = chance.choice(sorted(set(range(len(OFFSETS_HELD_BY))) - MAY_BE_LOST))
    first, other = scene.leaders.replicas()[partition]
    (third,) = {1, 2, 3} - {first, other}
    # One of the two is the broker that is never killed, so nothing is lost here.
    wanted = [other, third] if first != 1 else [third, first]
    scene.leaders.reassign({partition: wanted})
    scene.leaders.await_led({partition: wanted[0]})
    _measure(scene, partition, time.monotonic(), f"partition {partition} reassigned to {wanted}")


def tail_lost(scene: Scene, chance: Random) -> None:
    """An unclean election: a broker that was away leads, and what the other had taken meanwhile is lost."""
    first, second = chance.sample(scene.brokers.followers, 2)
    second.stop()
    scene.wait(chance.uniform(4, 14))
    first.kill()
    second.start()
    lost = [of for of in MAY_BE_LOST if set(scene.leaders.replicas()[of]) == {2, 3}]
    until(lambda: all(scene.leaders.now()[of] == second.number for of in lost), 60, "no unclean election")
    scene.wait(chance.uniform(0, 12))
    first.start()


def monitor_killed(scene: Scene, chance: Random) -> None:
    """`kill -9` of the monitor, which is started again."""
    with scene.monitor.in_hand:
        scene.monitor.process.kill()
        scene.wait(chance.choice([0, 0, 1, 5, 12]))
        scene.monitor.start()


def monitor_frozen(scene: Scene, chance: Random) -> None:
    """The monitor stands still (SIGSTOP)."""
    with scene.monitor.in_hand, stopped(scene.monitor.process):
        scene.wait(chance.uniform(2, 20))


def offsets_reset(scene: Scene, chance: Random) -> None:
    """Offsets of a group without members are set by an administrator."""
    group = scene.committers[chance.choice([*scene.committers])].group
    scene.apart.ask(_set_back, group)


def group_deleted(scene: Scene, chance: Random) -> None:
    """A group without members is deleted by an administrator, and is there again with its next commit."""
    group = scene.committers[chance.choice([*scene.committers])].group
    scene.apart.ask(_delete, group)


def _set_back(admin: AdminClient, group: str) -> None:
    places = [TopicPartition(COMMITTED, number, 0) for number in range(3)]
    asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)], request_timeout=10)
    asked[group].result()


def _delete(admin: AdminClient, group: str) -> None:
    admin.delete_consumer_groups([group], request_timeout=10)[group].result()


def topic_made_again(scene: Scene, chance: Random) -> None:
    """A topic that groups read is deleted, and made again under its name."""
    topic = chance.choice(TOPICS)
    scene.admin.delete_topics([topic], operation_timeout=10)[topic].result(20)
    scene.wait(chance.uniform(0, 5))
    with suppress(KafkaException):
        scene.make_topics()


def member_restarted(scene: Scene, chance: Random) -> None:
    """A member leaves, and another takes its place; a static one comes back."""
    chance.choice(chance.choice([*scene.members.values()])).restart()


TO_BROKERS: Final[Mapping[Deed, int]] = {
    broker_killed: 3,
    broker_frozen: 2,
    broker_rolled: 2,
    two_brokers_killed: 2,
    leader_elected: 3,
    leader_reassigned: 2,
    tail_lost: 3,
}
"""One after the other → how often each."""

TO_OTHERS: Final[Mapping[Deed, int]] = {
    monitor_killed: 2,
    monitor_frozen: 1,
    offsets_reset: 4,
    group_deleted: 3,
    topic_made_again: 2,
    member_restarted: 5,
}
"""The same, at the same time."""


class Doing:
    """Does one deed after the other on a thread, until `Scene.calm`; use as a context manager."""

    def __init__(self, scene: Scene, deeds: Mapping[Deed, int], chance: Random, pause: tuple[float, float]) -> None:
        self._scene, self._deeds, self._chance, self._pause = scene, deeds, chance, pause
        self._thread = threading.Thread(target=self._run, name="deeds", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        while not self._scene.calm.is_set():
            (deed,) = self._chance.choices([*self._deeds], [*self._deeds.values()])
            say(f"  {deed.__name__}")
            # What a cluster cannot do now it is not asked for again: another deed comes. All is healed in the end.
            try:
                deed(self._scene, self._chance)
            except (KafkaException, AssertionError, OSError) as error:
                say(f"  {deed.__name__}: {str(error)[:150]}")
            self._scene.wait(self._chance.uniform(*self._pause))


def _measure(scene: Scene, partition: int, moved: float, what: str) -> None:
    """How long it takes from a leader's move until a commit that came after it is shown, if the monitor was ready."""
    with scene.monitor.in_hand:
        if not scene.monitor.is_ready():
            return
        commit = scene.first_commit_after(partition, moved)
        begun = time.monotonic()
        until(
            lambda: scene.shown_number(partition) >= commit.number or time.monotonic() - begun > SHOWN_SECONDS,
            2 * SHOWN_SECONDS,
            "",
        )
        # The time that the coordinator needed to take a commit again is Kafka's own.
        seconds = time.monotonic() - max(moved, commit.acknowledged)
    scene.moved.append((seconds, what))
    say(f"  {what}: a new commit shown after {seconds:.1f} s")
