"""Groups that change their protocol, online and while they are empty."""

from typing import Final

from tests.recorder.clients import Member
from tests.recorder.scene import Scenario, Scene

_DOWNGRADED: Final = frozenset({"downgrade_started"})


def upgraded_member_by_member(scene: Scene) -> None:
    """Two cooperative members are replaced by members of the new protocol, one after the other."""
    _upgraded(scene, "cooperative-sticky")


def upgraded_from_range(scene: Scene) -> None:
    """The same of members of the range assignor."""
    _upgraded(scene, "range")


def upgraded_and_downgraded_member_by_member(scene: Scene) -> None:
    """There and back again: the last member of the new protocol leaves to a classic one."""
    topic, members = _upgraded(scene, "cooperative-sticky")
    members[0].close()
    members[1].await_owned(4)
    first = scene.join("first", topic, assignor="cooperative-sticky")
    first.await_owned(2)
    members[1].close()
    first.await_owned(4)
    scene.settled(1)
    scene.join("second", topic, assignor="cooperative-sticky").await_owned(2)
    scene.settled(2)
    first.commit()


def upgrade_half_way(scene: Scene) -> None:
    """A classic group that has taken in a member of the new protocol, and stays mixed."""
    topic = scene.topic(4)
    old = scene.join("old", topic, assignor="cooperative-sticky")
    old.await_owned(4)
    scene.join("new", topic, protocol="consumer").await_owned(2)
    old.await_owned(2)
    scene.settled(2)
    old.commit()


def downgraded_by_leaving(scene: Scene) -> None:
    """A consumer group takes in a classic member, and its own last member leaves."""
    topic = scene.topic(4)
    new = scene.join("new", topic, protocol="consumer")
    new.await_owned(4)
    old = scene.join("old", topic, assignor="cooperative-sticky")
    old.await_owned(2)
    new.await_owned(2)
    new.commit()
    new.close()
    old.await_owned(4)
    scene.settled(1)


def static_members_upgraded_in_place(scene: Scene) -> None:
    """Each static member comes back under its instance id with the new protocol."""
    topic = scene.topic(4)
    members = _static_members(scene, topic)
    for name, member in members.items():
        member.close()
        members[name] = scene.join(name, topic, protocol="consumer", instance_id=name)
        members[name].await_owned(2)
    scene.settled(2)
    members["one"].commit()


def static_members_downgraded_in_place(scene: Scene) -> None:
    """And each back again: the last one's replacement ends the consumer group."""
    topic = scene.topic(4)
    members = _static_members(scene, topic, protocol="consumer")
    for name, member in members.items():
        member.close()
        members[name] = scene.join(name, topic, instance_id=name)
        members[name].await_owned(2)
    scene.settled(2)
    members["one"].commit()


def upgraded_while_empty(scene: Scene) -> None:
    """All classic members leave before the first of the new protocol comes: epochs begin again."""
    topic = scene.topic(2)
    old = scene.join("old", topic)
    old.await_owned(2)
    old.commit()
    old.close()
    scene.settled(0, "Empty")
    scene.join("new", topic, protocol="consumer").await_owned(2)
    scene.settled(1)


def downgraded_while_empty(scene: Scene) -> None:
    """The same the other way."""
    topic = scene.topic(2)
    new = scene.join("new", topic, protocol="consumer")
    new.await_owned(2)
    new.commit()
    new.close()
    scene.settled(0, "Empty")
    scene.join("old", topic).await_owned(2)
    scene.settled(1)


def upgrade_that_is_refused(scene: Scene) -> None:
    """A group of classic Kafka Streams cannot take in a member of the consumer protocol: its user data block it."""
    topic = scene.topic(2)
    scene.join_streams("application", topic, protocol="classic").await_running()
    refused = scene.join("refused", topic, protocol="consumer")
    scene.settled(1)
    refused.close()


def _upgraded(scene: Scene, assignor: str) -> tuple[str, list[Member]]:
    topic = scene.topic(4)
    old = [scene.join(f"old-{number}", topic, assignor=assignor) for number in range(2)]  # type: ignore[arg-type]  # a literal
    for member in old:
        member.await_owned(2)
    old[0].commit()
    new = []
    for number, member in enumerate(old):
        member.close()
        new.append(scene.join(f"new-{number}", topic, protocol="consumer"))
        new[-1].await_owned(2)
    scene.settled(2)
    new[0].commit()
    return topic, new


def _static_members(scene: Scene, topic: str, protocol: str = "classic") -> dict[str, Member]:
    members = {
        name: scene.join(name, topic, protocol=protocol, instance_id=name)  # type: ignore[arg-type]  # a literal
        for name in ("one", "two")
    }
    for member in members.values():
        member.await_owned(2)
    scene.settled(2)
    members["two"].commit()
    return members


SCENARIOS: Final = (
    Scenario(play=upgraded_member_by_member),
    Scenario(play=upgraded_from_range),
    Scenario(play=upgraded_and_downgraded_member_by_member, alarms=_DOWNGRADED),
    Scenario(play=upgrade_half_way),
    Scenario(play=downgraded_by_leaving, alarms=_DOWNGRADED),
    Scenario(play=static_members_upgraded_in_place, since=(4, 0)),
    Scenario(play=static_members_downgraded_in_place, since=(4, 0), alarms=_DOWNGRADED | {"static_member_absent"}),
    Scenario(play=upgraded_while_empty),
    Scenario(play=downgraded_while_empty),
    Scenario(play=upgrade_that_is_refused),
)
