"""What a correct coordinator, leader or client never does, one fault at a time.

Each function makes a group's log show one fault, and what the group's memory holds afterwards is what the log says.
Where the fault can be mended, a second function does so as the real one would be.
"""

from dataclasses import replace
from typing import Any, Final

from coordinator_model.records.record_types import RecordType
from lab import builders
from lab.builders import RecordBytes
from tests.simulator import classic, consumer, conversions, streams
from tests.simulator.assignors import Assignment
from tests.simulator.cluster import Place, metadata_hash
from tests.simulator.coordinator import JOIN_MS, ReferenceCoordinator
from tests.simulator.memory import UNREVOKED, Group, Member, by_topic

NEXT_RECORD_TYPE: Final = max(RecordType) + 1
"""The first type that Kafka 4.3.1 does not have."""


def _two(group: Group) -> tuple[Member, Member]:
    """One of the members that have something, and another."""
    giver = max(group.members.values(), key=lambda of: (len(_held(group, of)), of.member_id))
    return giver, group.others(giver)[0]


def _held(group: Group, member: Member) -> set[Place]:
    return set(member.assigned) if group.kind != "classic" else group.assignment.get(member.member_id, set())


# -- leaders ----------------------------------------------------------------------------------------------------------


def assign_twice(coordinator: ReferenceCoordinator, group: Group) -> Place:
    """KAFKA-7026: the leader of a classic group gives one partition to two members.

    Mended by the next round of a leader that does not.
    """
    giver, other = _two(group)
    place = min(_held(group, giver))

    def twice(of: Group, claims: Assignment) -> Assignment:
        given = {member: set(group.assignment.get(member, ())) for member in of.members}
        given[other.member_id].add(place)
        return given

    coordinator.rebalance(group, assignor=twice)
    return place


def hand_over(coordinator: ReferenceCoordinator, group: Group) -> Place:
    """KAFKA-14639: in a cooperative round, a partition goes from one member that claims it straight to another."""
    giver, taker = _two(group)
    place = min(giver.owned)

    def handed(of: Group, claims: Assignment) -> Assignment:
        given = {member: set(group.assignment.get(member, ())) for member in of.members}
        given[giver.member_id].remove(place)
        given[taker.member_id].add(place)
        return given

    coordinator.rebalance(group, assignor=handed)
    return place


def rebalance_again_and_again(coordinator: ReferenceCoordinator, group: Group) -> None:
    """A leader that rejoins all the time."""
    for _ in range(40):
        coordinator.rebalance(group)


# -- clients ----------------------------------------------------------------------------------------------------------


def claim_of_the_past(coordinator: ReferenceCoordinator, group: Group) -> Member:
    """KIP-341: a member is thrown out, its partitions go to others, and it joins again claiming them as its own.

    The leader sees that the claim is old and ignores it. Mended with that: the member has new partitions now.
    """
    paused, _ = _two(group)
    owned, generation = set(paused.owned), paused.owned_generation
    coordinator.leave(group, paused)
    coordinator.lag(JOIN_MS)
    back = replace(paused, member_id=f"{paused.member_id}-again", owned=owned, owned_generation=generation)
    group.members[back.member_id] = back

    def by_the_others(of: Group, claims: Assignment) -> Assignment:
        return classic.assigned(of, {member: claims[member] for member in claims if member != back.member_id})

    coordinator.rebalance(group, assignor=by_the_others)
    return back


def contradict(coordinator: ReferenceCoordinator, group: Group) -> Place:
    """Two members say that one partition is theirs, of one generation. The leader believes the one whose it was."""
    owner, other = _two(group)
    place = min(owner.owned)
    claims = {of.member_id: set(of.owned) for of in group.members.values()}
    other.owned = {*other.owned, place}
    coordinator.rebalance(group, assignor=lambda of, _: classic.assigned(of, claims))
    return place


def flap(coordinator: ReferenceCoordinator, group: Group, member: Member, *, times: int, every_ms: int) -> None:
    """A static member restarts in a loop, or two processes of one instance id throw each other out: it looks alike."""
    for _ in range(times):
        coordinator.lag(every_ms - JOIN_MS)
        coordinator.bounce(group, member)


def fight(
    coordinator: ReferenceCoordinator,
    group: Group,
    instance_id: str,
    *,
    times: int,
    every_ms: int,
    hosts: tuple[str, ...],
) -> None:
    """Two processes of one instance id on the classic protocol throw each other out, and the log names their hosts.

    Of a classic group it does where the successor joins while the group is not Stable.
    """
    for turn in range(times):
        coordinator.lag(every_ms - JOIN_MS)
        member = group.of_instance(instance_id)
        assert member is not None
        if group.kind == "classic":
            member.client_host = hosts[turn % len(hosts)]
            coordinator.bounce(group, member)
        else:
            coordinator.come_back(group, member, as_classic=True, host=hosts[turn % len(hosts)])


def commit_of_a_zombie(coordinator: ReferenceCoordinator, group: Group, place: Place) -> None:
    """A member that lost a partition commits where it stood: behind where the one that has it now is."""
    coordinator.commit(group, {place: 500})
    coordinator.lag(5_000)
    coordinator.commit(group, {place: 200})


# -- coordinators -----------------------------------------------------------------------------------------------------


def own_twice(coordinator: ReferenceCoordinator, group: Group) -> Place:
    """KAFKA-16147: a partition moves on, and its new owner gets it before the former one has given it up."""
    owner, taker = _two(group)
    place = min(owner.assigned)
    group.targets[owner.member_id].remove(place)
    group.targets.setdefault(taker.member_id, set()).add(place)
    group.epoch = group.assignment_epoch = group.epoch + 1
    group.assignment_ms = coordinator.now_ms + 1
    taker.previous_epoch, taker.epoch = taker.epoch, group.epoch
    taker.assigned[place] = group.epoch
    targets = {of.member_id: by_topic(group.targets[of.member_id]) for of in (owner, taker)}
    coordinator.write(
        group,
        [
            builders.consumer_group_epoch(group.name, group.epoch, metadata_hash=metadata_hash(group.metadata)),
            *(builders.consumer_group_target_assignment(group.name, of, parts) for of, parts in targets.items()),
            builders.consumer_group_target_assignment_epoch(group.name, group.epoch, timestamp=group.assignment_ms),
            consumer.current(group, taker),
        ],
    )
    return place


def run_twice(coordinator: ReferenceCoordinator, group: Group) -> Place:
    """The same of a streams group: an active task runs on two processes.

    Mended by heartbeats, in which the former owner gives it up.
    """
    owner, taker = _two(group)
    task = min(owner.assigned)
    group.targets[owner.member_id].remove(task)
    group.targets[taker.member_id].add(task)
    group.epoch = group.assignment_epoch = group.epoch + 1
    group.assignment_ms = coordinator.now_ms + 1
    taker.previous_epoch, taker.epoch = taker.epoch, group.epoch
    taker.assigned[task] = group.epoch
    targets = {of.member_id: by_topic(group.targets[of.member_id]) for of in (owner, taker)}
    coordinator.write(
        group,
        [
            builders.streams_group_epoch(
                group.name, group.epoch, metadata_hash=metadata_hash(group.metadata), validated_topology_epoch=0
            ),
            *(builders.streams_group_target_assignment(group.name, of, active=tasks) for of, tasks in targets.items()),
            builders.streams_group_target_assignment_epoch(group.name, group.epoch, timestamp=group.assignment_ms),
            streams.current(group, taker),
        ],
    )
    return task


def own_once(coordinator: ReferenceCoordinator, group: Group, place: Place) -> None:
    """The former owner gives the partition up, in two steps: to be revoked it is still its own."""
    owner = next(of for of in group.members.values() if of.epoch < group.epoch and place in of.assigned)
    owner.pending = {place: owner.assigned.pop(place)}
    owner.state, owner.previous_epoch = UNREVOKED, owner.epoch
    coordinator.write(group, [consumer.current(group, owner)])
    coordinator.lag(5_000)
    owner.pending, owner.state, owner.epoch = {}, 0, group.epoch
    coordinator.write(group, [consumer.current(group, owner)])


def keep_revoking(coordinator: ReferenceCoordinator, group: Group) -> Member:
    """No fault: a member comes, and one that is to give up something for it does not let go yet."""
    coordinator.join_consumer(group)
    coordinator.lag(5_000)
    for member in list(group.members.values()):
        coordinator.heartbeat(group, member, let_go=False)
    return next(member for member in group.members.values() if member.pending)


def own_what_is_revoked(coordinator: ReferenceCoordinator, group: Group, owner: Member) -> None:
    """KAFKA-16147: the coordinator gives a partition out before its owner has let go.

    Mended by the owner letting go.
    """
    place = min(owner.pending)
    taker = next(member for member in group.members.values() if place in group.targets[member.member_id])
    taker.assigned[place] = taker.epoch
    coordinator.write(group, [consumer.current(group, taker)])


def downgrade_and_forget(coordinator: ReferenceCoordinator, group: Group, leaver: Member) -> list[RecordBytes]:
    """KIP-915's fear: the downgrade by the last consumer-protocol member leaves records of it behind.

    Returns the tombstones that it forgot.
    """
    forgotten = [
        builders.consumer_group_target_assignment_tombstone(group.name, leaver.member_id),
        builders.consumer_group_member_subscription_tombstone(group.name, leaver.member_id),
    ]
    del group.members[leaver.member_id]
    records = conversions.downgraded_online(group, coordinator.now_ms + 1, gone=[leaver.member_id])
    group.leftovers = len(forgotten)
    coordinator.write(group, [record for record in records if record not in forgotten])
    return forgotten


def remember(coordinator: ReferenceCoordinator, group: Group, forgotten: list[RecordBytes]) -> None:
    """The tombstones that a downgrade forgot are written after all."""
    group.leftovers = 0
    coordinator.write(group, forgotten)


def skip_epochs(coordinator: ReferenceCoordinator, group: Group, by: int) -> None:
    """The group epoch of a consumer group moves by more than one, as if records were lost."""
    group.epoch += by
    coordinator.write(group, [builders.consumer_group_epoch(group.name, group.epoch)])


def go_back(coordinator: ReferenceCoordinator, group: Group) -> None:
    """A coordinator that lost its leadership writes on: a member is where it was before."""
    member = next(iter(group.members.values()))
    member.epoch, member.previous_epoch = member.epoch - 1, member.epoch - 1
    member.assigned = dict.fromkeys(member.assigned, member.epoch)
    coordinator.write(group, [consumer.current(group, member)])


def go_back_a_generation(coordinator: ReferenceCoordinator, group: Group) -> None:
    """The same of a classic group."""
    group.generation = group.written_generation - 1
    coordinator.write(group, classic.written(group, group.assignment, joined_ms=coordinator.now_ms))


def convert_and_forget(coordinator: ReferenceCoordinator, group: Group) -> list[RecordBytes]:
    """An empty streams group becomes a classic one, and its topology stays behind. Returns the forgotten tombstone."""
    forgotten = [builders.streams_group_topology_tombstone(group.name)]
    records = conversions.downgraded_offline(group, coordinator.now_ms + 1)
    group.leftovers = len(forgotten)
    coordinator.write(group, [record for record in records if record not in forgotten])
    return forgotten


def write_newer(coordinator: ReferenceCoordinator, group: Group, record_type: int, version: int) -> None:
    """What a newer broker writes of a known type: the record as it is, under a later version of its value."""
    key, value = next(
        (key, value)
        for written in reversed(coordinator.log)
        if written.group == group.name
        for key, value in written.records
        if int.from_bytes(key[:2], "big") == record_type and value is not None
    )
    assert value is not None
    coordinator.write(group, [(key, version.to_bytes(2, "big") + value[2:])])


def convert_uncleanly(coordinator: ReferenceCoordinator, group: Group, what: str) -> None:
    """An online upgrade that goes on from something else than what the log has of the classic group.

    `what` is lost or moved: `epoch_before`, `epoch_after`, `member`, `assignments`, `moved` or `offsets`.
    """
    giver, other = _two(group)
    offsets: list[RecordBytes] = []
    if what == "epoch_before":
        group.generation -= 1
    elif what == "epoch_after":
        group.generation += 3
    elif what == "member":
        del group.members[giver.member_id]
    elif what == "assignments":
        group.assignment = {}
    elif what == "moved":
        place = min(_held(group, giver))
        group.assignment = {**group.assignment, giver.member_id: _held(group, giver) - {place}}
        group.assignment[other.member_id] = {*_held(group, other), place}
    else:
        topic, partition = next(iter(group.offsets))
        del group.offsets[topic, partition]
        offsets = [builders.offset_commit_tombstone(group.name, topic, partition)]
    member = Member(member_id="first-upgraded")
    converted = conversions.upgraded_online(group)
    commits: dict[Place, dict[str, Any] | None] = {(topic, partition): None} if offsets else {}
    joined = consumer.joined(group, member, coordinator.now_ms + 1)
    coordinator.write(group, [*offsets, *converted, *joined], commits=commits)


def write_unknown(coordinator: ReferenceCoordinator, group: Group, record_type: int = NEXT_RECORD_TYPE) -> None:
    """A record of a newer broker (KIP-915)."""
    name = group.name.encode()
    key = record_type.to_bytes(2, "big") + len(name).to_bytes(2, "big") + name
    coordinator.write(group, [(key, b"\0\0\0")])
