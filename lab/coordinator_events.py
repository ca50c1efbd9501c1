"""What a Kafka 4.3 coordinator writes for one thing that happens: record sequences of docs/coordinator-log.md.

Each function returns the records of one event in the order of the log; `histories.at` gives them a time.
"""

from collections.abc import Iterable, Mapping

from coordinator_model.records.consumer_group import ClassicMemberMetadata
from lab import builders
from lab.builders import Partitions, RecordBytes

Targets = Mapping[str, Partitions]
"""Member id → partitions."""


# -- consumer groups --------------------------------------------------------------------------------------------------


def speaks_classic(topics: Iterable[str] = ("t",), *, generation_id: int = -1) -> ClassicMemberMetadata:
    """Marks a member of a consumer group that uses the classic protocol with the range assignor."""
    return builders.classic_member_metadata(range=builders.subscription(topics, generation_id=generation_id))


def consumer_join(
    group: str,
    member_id: str,
    *,
    epoch: int,
    targets: Targets,
    assigned: Partitions | None = None,
    state: int | None = None,
    instance_id: str | None = None,
    classic: ClassicMemberMetadata | None = None,
    server_assignor: str | None = None,
    client_id: str = "client",
) -> list[RecordBytes]:
    """A member joins and the target is computed at once; it owns `assigned`, its whole target by default."""
    target = targets[member_id]
    owned = target if assigned is None else assigned
    return [
        builders.consumer_group_member_subscription(
            group,
            member_id,
            instance_id=instance_id,
            classic=classic,
            server_assignor=server_assignor,
            client_id=client_id,
        ),
        builders.consumer_group_epoch(group, epoch),
        *retarget(group, epoch, targets),
        builders.consumer_group_current_assignment(
            group,
            member_id,
            epoch=epoch,
            previous_epoch=0,
            state=(0 if dict(owned) == dict(target) else 2) if state is None else state,
            assigned=owned,
        ),
    ]


def throttled_consumer_join(group: str, member_id: str, *, epoch: int, assignment_epoch: int) -> list[RecordBytes]:
    """A member joins too soon after the last target: it has none yet and stands at the old epoch (KIP-1263)."""
    return [
        builders.consumer_group_member_subscription(group, member_id),
        builders.consumer_group_epoch(group, epoch),
        builders.consumer_group_current_assignment(group, member_id, epoch=assignment_epoch, previous_epoch=0),
    ]


def retarget(group: str, epoch: int, targets: Targets) -> list[RecordBytes]:
    """The target is computed: of those it changes for, then its epoch."""
    return [
        *(builders.consumer_group_target_assignment(group, member, parts) for member, parts in targets.items()),
        builders.consumer_group_target_assignment_epoch(group, epoch, timestamp=builders.NOW_MS),
    ]


def consumer_moves(
    group: str,
    member_id: str,
    *,
    epoch: int,
    assigned: Partitions,
    pending: Partitions | None = None,
    previous_epoch: int | None = None,
    state: int = 0,
) -> list[RecordBytes]:
    """A heartbeat moves a member."""
    return [
        builders.consumer_group_current_assignment(
            group,
            member_id,
            epoch=epoch,
            previous_epoch=previous_epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending,
        )
    ]


def consumer_gone(group: str, member_id: str) -> list[RecordBytes]:
    """The records of one member, ended."""
    return [
        builders.consumer_group_current_assignment_tombstone(group, member_id),
        builders.consumer_group_target_assignment_tombstone(group, member_id),
        builders.consumer_group_member_subscription_tombstone(group, member_id),
    ]


def consumer_leave(group: str, *member_ids: str, epoch: int) -> list[RecordBytes]:
    """Members leave or expire; no target is computed again yet."""
    gone = [record for member_id in member_ids for record in consumer_gone(group, member_id)]
    return [*gone, builders.consumer_group_epoch(group, epoch)]


def static_goes_away(group: str, member_id: str, *, assigned: Partitions, previous_epoch: int) -> list[RecordBytes]:
    """A static member closes with "remain": epoch -2, its partitions kept."""
    return [
        builders.consumer_group_current_assignment(
            group, member_id, epoch=-2, previous_epoch=previous_epoch, assigned=assigned
        )
    ]


def static_returns(
    group: str,
    *,
    old: str,
    new: str,
    instance_id: str,
    epoch: int,
    assigned: Partitions,
    classic: ClassicMemberMetadata | None = None,
) -> list[RecordBytes]:
    """A static member is back under another member id: no epoch moves."""
    joined = builders.consumer_group_member_subscription(group, new, instance_id=instance_id, classic=classic)
    return [
        *consumer_gone(group, old),
        joined,
        builders.consumer_group_target_assignment(group, new, assigned),
        builders.consumer_group_current_assignment(group, new, epoch=0, previous_epoch=0, assigned=assigned),
        joined,
        builders.consumer_group_current_assignment(group, new, epoch=epoch, previous_epoch=0, assigned=assigned),
    ]


def consumer_group_deleted(
    group: str, member_ids: Iterable[str] = (), *, regexes: Iterable[str] = ()
) -> list[RecordBytes]:
    """A consumer group ends: by DeleteGroups, by expiry, or by becoming a classic one."""
    members = tuple(member_ids)
    return [
        *(builders.consumer_group_current_assignment_tombstone(group, member) for member in members),
        *(builders.consumer_group_target_assignment_tombstone(group, member) for member in members),
        builders.consumer_group_target_assignment_epoch_tombstone(group),
        *(builders.consumer_group_member_subscription_tombstone(group, member) for member in members),
        *(builders.consumer_group_regular_expression_tombstone(group, regex) for regex in regexes),
        builders.consumer_group_partition_metadata_tombstone(group),
        builders.consumer_group_epoch_tombstone(group),
    ]


# -- conversions ------------------------------------------------------------------------------------------------------


def converted_to_consumer(
    group: str,
    *,
    generation: int,
    members: Targets,
    instance_ids: Mapping[str, str] | None = None,
    classic: ClassicMemberMetadata | None = None,
    client_ids: Mapping[str, str] | None = None,
) -> list[RecordBytes]:
    """First half of an online upgrade: the classic group as a consumer group of the same epoch."""
    named, called = instance_ids or {}, client_ids or {}
    return [
        builders.group_metadata_tombstone(group),
        *(
            builders.consumer_group_member_subscription(
                group,
                member,
                instance_id=named.get(member),
                classic=classic or speaks_classic(),
                client_id=called.get(member, "client"),
            )
            for member in members
        ),
        builders.consumer_group_epoch(group, generation),
        *(builders.consumer_group_target_assignment(group, member, parts) for member, parts in members.items()),
        builders.consumer_group_target_assignment_epoch(group, generation),
        *(
            builders.consumer_group_current_assignment(group, member, epoch=generation, assigned=parts)
            for member, parts in members.items()
        ),
    ]


def converted_to_classic(
    group: str,
    *,
    all_members: Iterable[str],
    generation: int,
    remaining: Targets,
    instance_ids: Mapping[str, str] | None = None,
) -> list[RecordBytes]:
    """Second half of an online downgrade: tombstones for all, then the classic group with the targets of who remain."""
    named = instance_ids or {}
    members = [builders.member(member, parts, instance_id=named.get(member)) for member, parts in remaining.items()]
    return [
        *consumer_group_deleted(group, all_members),
        builders.group_metadata(group, generation=generation, members=members),
    ]


# -- share groups -----------------------------------------------------------------------------------------------------


def share_join(group: str, member_id: str, *, epoch: int, targets: Targets) -> list[RecordBytes]:
    """A member joins a share group."""
    return [
        builders.share_group_member_subscription(group, member_id),
        builders.share_group_epoch(group, epoch),
        *(builders.share_group_target_assignment(group, member, parts) for member, parts in targets.items()),
        builders.share_group_target_assignment_epoch(group, epoch),
        builders.share_group_current_assignment(
            group, member_id, epoch=epoch, previous_epoch=0, assigned=targets[member_id]
        ),
    ]


def share_leave(group: str, member_id: str, *, epoch: int) -> list[RecordBytes]:
    """A member leaves a share group."""
    return [
        builders.share_group_current_assignment_tombstone(group, member_id),
        builders.share_group_target_assignment_tombstone(group, member_id),
        builders.share_group_member_subscription_tombstone(group, member_id),
        builders.share_group_epoch(group, epoch),
    ]


def share_group_deleted(group: str) -> list[RecordBytes]:
    """An empty share group ends, once its delivery state is being taken down."""
    return [
        builders.share_group_target_assignment_epoch_tombstone(group),
        builders.share_group_state_partition_metadata_tombstone(group),
        builders.share_group_epoch_tombstone(group),
    ]


# -- streams groups ---------------------------------------------------------------------------------------------------


def streams_leave(group: str, member_id: str, *, epoch: int) -> list[RecordBytes]:
    """A member leaves a streams group."""
    return [
        builders.streams_group_current_assignment_tombstone(group, member_id),
        builders.streams_group_target_assignment_tombstone(group, member_id),
        builders.streams_group_member_tombstone(group, member_id),
        builders.streams_group_epoch(group, epoch, validated_topology_epoch=0),
    ]


def streams_group_deleted(group: str, member_ids: Iterable[str] = ()) -> list[RecordBytes]:
    """A streams group ends; its topology goes last, after the epoch."""
    members = tuple(member_ids)
    return [
        *(builders.streams_group_current_assignment_tombstone(group, member) for member in members),
        *(builders.streams_group_target_assignment_tombstone(group, member) for member in members),
        builders.streams_group_target_assignment_epoch_tombstone(group),
        *(builders.streams_group_member_tombstone(group, member) for member in members),
        builders.streams_group_epoch_tombstone(group),
        builders.streams_group_topology_tombstone(group),
    ]
