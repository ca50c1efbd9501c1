"""`gate downgrade`: may brokers be rolled back to an older release now (KIP-915)?

Without a target the release is one that knows classic groups alone, and of which nothing else is known. With one,
`broker_releases.py` tells what it can deal with:

    reason              effect  holds when
    not_caught_up       unknown the replica is not at the end of the log
    group_type          stop    a group is of a type that the target does not serve
    not_converted       stop    all members of a consumer group use the classic protocol, and it was not converted
    leftover_records    stop    records of a new protocol are live under a classic group; a note if the target passes
                                over types it does not know
    offset_version      stop    committed offsets are in a version that the target cannot read; without a target a note
                                on version 4, which brokers before 3.4.1 cannot
    unknown_records     stop    records of types that this monitor does not know were read; a note if the target passes
                                over them
    group_configs       stop    groups have dynamic configurations, and the target does not know such
                        unknown the brokers do not say whether there are any
    rebalancing         stop    a group is between two targets
    offsets_changed     stop    committed offsets went back, or went, while the group was downgraded
    assignment_changed  note    the downgrade did not keep the target, or a member had not reached it
    downgraded          note    a group was downgraded, and what was compared is as before
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from coordinator_model import leftovers, migration, rebalances
from coordinator_model.broker_releases import RELEASES, BrokerRelease, release
from coordinator_model.gate import NOTE, STOP, UNKNOWN, Cluster, Reason, answer, caught_up
from coordinator_model.group_state import CONSUMER, GroupState, ModernGroup

FLEXIBLE_OFFSETS: Final = 4
"""First version of committed offsets that brokers before 3.4.1 cannot read."""

_NAMED_GROUPS: Final = 5


def downgrade_gate(
    groups: Iterable[GroupState], cluster: Cluster, target: str | None = None, *, others: Iterable[str] = ()
) -> dict[str, Any]:
    """Verdict on rolling the brokers back, all their groups being these; `target` is a release, as "3.9".

    `others` are names of groups that are known to have no reason by `of_group`: only their offsets are asked about.

    Beside the reasons: `target_version`; `groups`, how many there are by type; `leftover_records` and `unknown_records`
    by record type; `offset_versions`, live committed offsets by value version.
    """
    states = list(groups)
    to = None if target is None else release(target)
    left = sum((Counter(leftovers.left_over(state.membership)) for state in states), Counter[str]())
    names = {state.name for state in states} | {*others}
    versions: Counter[int] = Counter()
    for name in names:
        versions.update(cluster.offset_versions.get(name, {}))
    reasons = [*caught_up(cluster)]
    for state in states:
        reasons += of_group(state, to)
    reasons += of_cluster(cluster, names, to)
    return answer(
        migration.DOWNGRADE,
        reasons,
        target_version=target,
        groups=migration.groups_by_type(states),
        leftover_records=dict(sorted(left.items())),
        unknown_records=dict(sorted(cluster.unknown_records.items())),
        offset_versions={str(version): count for version, count in sorted(versions.items())},
    )


def of_group(state: GroupState, to: BrokerRelease | None) -> Iterator[Reason]:
    """Reasons that are one group's, but for the versions of its committed offsets."""
    modern = state.membership.modern_group
    if modern is not None:
        yield from _type(state, modern, to)
    left = leftovers.left_over(state.membership)
    if left:
        harmless = to is not None and to.passes_over_unknown_types and modern is None and not _reads(to, state)
        named = ", ".join(f"{count} of {leftovers.named(type_)}" for type_, count in left.items())
        text = f"records of a new protocol are left over from before its downgrade: {named}"
        yield Reason(NOTE if harmless else STOP, "leftover_records", text, state.name)
    if modern is not None and rebalances.under_way(modern):
        yield Reason(STOP, "rebalancing", "a rebalance is under way: wait for its end", state.name)
    yield from _downgraded(state)


def _type(state: GroupState, modern: ModernGroup, to: BrokerRelease | None) -> Iterator[Reason]:
    if to is not None and modern.family in to.serves:
        return
    classic, other = migration.members_by_protocol(state.membership)
    if modern.family == CONSUMER and classic and not other:
        text = (
            f"all of its {classic} members use the classic protocol, and it was not converted: "
            "group.consumer.migration.policy or group.max.size does not allow it, or its last member of the other kind "
            "left a member whose subscription does not decode"
        )
        yield Reason(STOP, "not_converted", text, state.name)
        return
    what = f"{other} of {classic + other} members use the new protocol" if modern.members else "it has no members"
    remedy = "roll its consumers back" if modern.family == CONSUMER and modern.members else "delete it"
    yield Reason(STOP, "group_type", f"the group is of type {modern.family} ({what}): {remedy}", state.name)


def _reads(to: BrokerRelease, state: GroupState) -> bool:
    """Whether the target knows the records that are left over, and so would make a group of them."""
    modern = state.membership.modern
    return modern is not None and modern.family in to.serves


def _downgraded(state: GroupState) -> Iterator[Reason]:
    downgrade = state.migration.downgrade
    if downgrade is None or downgrade.completed_ms is None or state.membership.classic_group is None:
        return
    changed = downgrade.offsets_back
    if changed:
        named = _some([f"{place} was at {offset}" for place, offset in sorted(changed.items())])
        text = f"{len(changed)} committed offsets went back or went in its downgrade, and are not there again: {named}"
        yield Reason(STOP, "offsets_changed", text, state.name)
    odd = []
    if downgrade.differing:
        odd.append(f"members were not given their targets: {_some(downgrade.differing)}")
    if downgrade.unsettled:
        odd.append(f"members had not reached their targets, which they were given: {_some(downgrade.unsettled)}")
    if odd:
        yield Reason(NOTE, "assignment_changed", "; ".join(odd), state.name)
    elif not changed:
        text = (
            "downgraded: assignments were the targets that members had reached, no committed offset went back or went"
        )
        yield Reason(NOTE, "downgraded", text, state.name)


def of_cluster(cluster: Cluster, names: Iterable[str], to: BrokerRelease | None) -> Iterator[Reason]:
    """All other reasons but `caught_up`, these groups being asked about."""
    yield from _offset_versions(cluster, set(names), to)
    yield from _cluster(cluster, to)


def _offset_versions(cluster: Cluster, names: set[str], to: BrokerRelease | None) -> Iterator[Reason]:
    highest = FLEXIBLE_OFFSETS - 1 if to is None else to.highest_offset_version
    beyond = {
        name: {version: count for version, count in cluster.offset_versions.get(name, {}).items() if version > highest}
        for name in sorted(names)
    }
    beyond = {name: counts for name, counts in beyond.items() if counts}
    if not beyond:
        return
    count = sum(sum(counts.values()) for counts in beyond.values())
    versions = ", ".join(str(version) for version in sorted({of for counts in beyond.values() for of in counts}))
    text = (
        f"{count} committed offsets are in value version {versions}, of {len(beyond)} groups: {_some(list(beyond))}. "
    )
    if to is None:
        readers = ".".join(map(str, next(row.since for row in RELEASES if row.highest_offset_version > highest)))
        text += f"Brokers before {readers} cannot read it; name the release (--target-version) to have that decided"
        yield Reason(NOTE, "offset_version", text)
    else:
        text += f"The target reads up to version {highest}, and would not load partitions that hold others"
        yield Reason(STOP, "offset_version", text)


def _cluster(cluster: Cluster, to: BrokerRelease | None) -> Iterator[Reason]:
    if to is None or not to.knows_group_configs:
        if cluster.group_configs is None:
            text = "the brokers do not say whether dynamic GROUP configurations exist"
            yield Reason(UNKNOWN, "group_configs", text)
        for name in sorted(cluster.group_configs or ()):
            text = "dynamic GROUP configurations are set, which an older controller does not know: remove them"
            yield Reason(STOP, "group_configs", text, name)
    harmless = to is not None and to.passes_over_unknown_types
    for record_type, count in sorted(cluster.unknown_records.items()):
        text = f"{count} records of type {record_type}, unknown to this monitor, were read: "
        text += "the target passes over them with a warning" if harmless else "older brokers may fail on them"
        yield Reason(NOTE if harmless else STOP, "unknown_records", text)


def _some(names: Mapping[str, Any] | Iterable[str]) -> str:
    """The first few, and how many more."""
    listed = list(names)
    more = len(listed) - _NAMED_GROUPS
    return ", ".join(listed[:_NAMED_GROUPS]) + (f" and {more} more" if more > 0 else "")
