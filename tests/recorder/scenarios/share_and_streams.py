"""Share groups (KIP-932) and streams groups (KIP-1071), which no client but Kafka's own joins."""

from typing import Final

from tests.recorder.clients import Member, StreamsMember
from tests.recorder.scene import Scenario, Scene, eventually

_NAMES: Final = ("first", "second", "third")


def share_members_come_and_go(scene: Scene) -> None:
    """Two members read the same partitions; a third comes and leaves."""
    topic = scene.topic(3)
    *_, third = (_shares(scene, name, topic, count) for count, name in enumerate(_NAMES, 1))
    third.close()
    _settled(scene, "Share", 2)


def share_group_that_empties(scene: Scene) -> None:
    """The only member leaves."""
    _shares(scene, "member", scene.topic(1)).close()
    _settled(scene, "Share", 0)


def share_group_that_is_deleted(scene: Scene) -> None:
    """And the group is deleted, its delivery state with it."""
    share_group_that_empties(scene)
    eventually(lambda: scene.cluster.jvm.delete_modern("Share", scene.group))


def streams_members_come_and_go(scene: Scene) -> None:
    """An application of two instances grows by one and shrinks again; its state has standbys."""
    topic = scene.topic(3)
    scene.configure("streams.num.standby.replicas", "1")
    *_, third = (_streams(scene, name, topic, count) for count, name in enumerate(_NAMES, 1))
    third.close()
    _settled(scene, "Streams", 2)


def streams_group_that_empties(scene: Scene) -> None:
    """The only instance ends."""
    _streams(scene, "member", scene.topic(1)).close()
    _settled(scene, "Streams", 0)


def streams_group_that_is_deleted(scene: Scene) -> None:
    """And the group is deleted."""
    streams_group_that_empties(scene)
    eventually(lambda: scene.cluster.jvm.delete_modern("Streams", scene.group))


def _shares(scene: Scene, name: str, topic: str, members: int = 1) -> Member:
    member = scene.join_share(name, topic)
    _settled(scene, "Share", members)
    return member


def _streams(scene: Scene, name: str, topic: str, members: int = 1) -> StreamsMember:
    member = scene.join_streams(name, topic)
    member.await_running()
    _settled(scene, "Streams", members)
    return member


def _settled(scene: Scene, kind: str, members: int) -> None:
    expected = ("Stable" if members else "Empty", members)

    def holds() -> bool:
        try:
            return scene.cluster.jvm.described(kind, scene.group) == expected
        except LookupError:
            return False

    eventually(holds, lambda: f"{scene.group}: expected {expected}")


SCENARIOS: Final = (
    Scenario(play=share_members_come_and_go, since=(4, 0)),
    Scenario(play=share_group_that_empties, since=(4, 0)),
    # The client of 4.0 cannot delete one.
    Scenario(play=share_group_that_is_deleted, since=(4, 1)),
    Scenario(play=streams_members_come_and_go, since=(4, 1)),
    Scenario(play=streams_group_that_empties, since=(4, 1)),
    Scenario(play=streams_group_that_is_deleted, since=(4, 1)),
)
