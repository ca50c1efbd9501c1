"""`gate downgrade`: may brokers be rolled back to an older release now (KIP-915)?

Without a target the release is one that knows classic groups alone, and of which nothing else is known. With one,
`broker_releases.py` has what it can deal with:

    reason              effect  holds when
    not_caught_up       unknown the replica is not at the end of the log
    partition_unread    unknown a partition of the log that the group may be in cannot be read
    polled              unknown groups are polled, and the log is not read
    group_type          stop    a group is of a type that the target does not serve
    not_converted       stop    all members of a consumer group use the classic protocol, and it was not converted
    leftover_records    stop    records of a new protocol are live under a classic group; a note if the target passes
                                over types it does not know
    offset_version      stop    committed offsets are in a version that the target cannot read; without a target a note
                                on version 4, which brokers before 3.4.1 cannot
    unknown_records     stop    records of types that this monitor does not know were read; a note if the target passes
                                over them
    log_records         stop    records or tombstones of the new protocols, or values of version 4, are still in the
                                log, live or not, and the target is from before 3.4.1, which fails on them; without a
                                target a note on such releases
                        unknown the log was not scanned for them, or not to its end
    cleaner             note    what makes the cleaner remove them, where any were found
    features            stop    a feature is finalized at a level that the target does not support; without a target
                                a note
                        unknown the brokers do not say, or the feature is not known here
    static_settings     note    brokers have group.coordinator.rebalance.protocols in their files, with names that the
                                target does not know; or they do not say
    unknown_release     unknown nothing is known of the release named
    group_configs       stop    groups have dynamic configurations, and the target does not know such
                        unknown the brokers do not say whether there are any; those before 4.0 know no such thing, so
                        that there are none
    rebalancing         stop    a group is between two targets, or was just now and is being rolled; or, of one named,
                                its last member to be rolled has just left and is not back
    rebalance_stuck     stop    that rebalance is stuck: waiting does not end it
    members_not_back    note    a roll left a group with fewer members than before
    member_away         note    of a group named: a member left, and none came in its place yet
    offsets_changed     stop    committed offsets went back, or went, while the group was downgraded
    assignment_changed  note    the downgrade did not keep the target, or a member had not reached it
    downgraded          note    a group was downgraded, and what was compared is as before
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from coordinator_model.gates.broker_abilities import LISTS_GROUP_CONFIGS, lacking, names_of
from coordinator_model.gates.broker_releases import (
    ACCEPTED,
    RELEASES,
    BrokerRelease,
    highest_level,
    release,
    version_of,
)
from coordinator_model.gates.verdict import (
    NOTE,
    STOP,
    UNKNOWN,
    BrokerSettings,
    Cluster,
    LogScan,
    Reason,
    answer,
    as_polled,
    caught_up,
    moving,
    with_alarms,
)
from coordinator_model.migration import leftover_records, phases
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import CONSUMER, SHARE, STREAMS, ModernGroup

FLEXIBLE_OFFSETS: Final = 4
"""First version of committed offsets that brokers before 3.4.1 cannot read."""

_NAMED_GROUPS: Final = 5

_KEEPS_OFFSETS: Final = (
    "it becomes classic then and keeps its committed offsets. Delete it only if it is not needed: they go with it"
)
_LOST_OF_SHARE: Final = (
    "a share group does not become classic. Lost are where it is in each partition and how often records were "
    "delivered; made again, it begins at its share.auto.offset.reset (latest by default)"
)
_AS_CLASSIC: Final[Mapping[tuple[str, bool], str]] = {
    (CONSUMER, True): "roll its consumers back",
    (CONSUMER, False): f"start one consumer with group.protocol=classic; {_KEEPS_OFFSETS}",
    (STREAMS, True): "stop all instances of the application, then start them with group.protocol=classic",
    (STREAMS, False): f"start one instance of the application with group.protocol=classic; {_KEEPS_OFFSETS}",
    (SHARE, True): f"stop its members, then delete it; {_LOST_OF_SHARE}",
    (SHARE, False): f"delete it; {_LOST_OF_SHARE}",
}
"""(family, whether there are members) → what to do before an older broker. An empty consumer or streams group becomes
classic with its first classic join (GroupMetadataManager.classicGroupJoin); DeleteGroups deletes committed offsets."""


def downgrade_gate(
    groups: Iterable[GroupState],
    cluster: Cluster,
    target: str | None = None,
    named: Collection[str] = (),
    *,
    others: Iterable[str] = (),
) -> dict[str, Any]:
    """Verdict on rolling the brokers back, all their groups being these; `target` is a release, as "3.9".

    `named` are those that were asked about by name. `others` are names of groups that are known to have no reason by
    `of_group`: only their offsets are asked about.

    Beside the reasons: `target_version`; `cluster_id`, None where it is not known; `groups`, how many there are by
    type; `leftover_records` and `unknown_records` by record type; `offset_versions`, live committed offsets by value
    version.
    """
    states = list(groups)
    to = None if target is None else release(target)
    left = sum((Counter(leftover_records.left_over(state.membership)) for state in states), Counter[str]())
    names = {state.name for state in states} | {*others}
    versions: Counter[int] = Counter()
    for name in names:
        versions.update(cluster.offset_versions.get(name, {}))
    reasons = [*caught_up(cluster), *as_polled(cluster, UNKNOWN)]
    for state in states:
        reasons += of_group(state, to, asked=state.name in named, now_ms=cluster.now_ms)
    reasons += of_cluster(cluster, names, to)
    if target is not None:
        reasons += _of_target(cluster, target)
    return answer(
        phases.DOWNGRADE,
        with_alarms(reasons, cluster),
        target_version=target,
        groups=phases.groups_by_type(states),
        leftover_records=dict(sorted(left.items())),
        unknown_records=dict(sorted(cluster.unknown_records.items())),
        offset_versions={str(version): count for version, count in sorted(versions.items())},
        log_scan=_scan_view(cluster.log_scan),
        cluster_id=cluster.settings.cluster_id,
    )


def of_group(
    state: GroupState, to: BrokerRelease | None, *, asked: bool, now_ms: int | None = None
) -> Iterator[Reason]:
    """Reasons that are one group's, but for the versions of its committed offsets; as those of `upgrade.of_group`."""
    modern = state.membership.modern_group
    if modern is not None:
        yield from _type(state, modern, to)
    left = leftover_records.left_over(state.membership)
    if left:
        harmless = to is not None and to.passes_over_unknown_types and modern is None and not _reads(to, state)
        named = ", ".join(f"{count} of {leftover_records.named(type_)}" for type_, count in left.items())
        text = f"records of a new protocol are left over from before its downgrade: {named}"
        yield Reason(NOTE if harmless else STOP, "leftover_records", text, state.name)
    yield from moving(state, now_ms, asked=asked)
    yield from _downgraded(state)


def _type(state: GroupState, modern: ModernGroup, to: BrokerRelease | None) -> Iterator[Reason]:
    if to is not None and modern.family in to.serves:
        return
    classic, other = phases.members_by_protocol(state.membership)
    if modern.family == CONSUMER and classic and not other:
        text = (
            f"all of its {classic} members use the classic protocol, and it was not converted: "
            "group.consumer.migration.policy or group.max.size does not allow it, or its last member of the other kind "
            "left a member whose subscription does not decode"
        )
        yield Reason(STOP, "not_converted", text, state.name)
        return
    what = f"{other} of {classic + other} members use the new protocol" if modern.members else "it has no members"
    remedy = _AS_CLASSIC[modern.family, bool(modern.members)]
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
        text = (
            f"{len(changed)} committed offsets went back or were deleted in its downgrade, and are not there again: "
            f"{named}"
        )
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
            "downgraded: assignments were the targets that members had reached, no committed offset went back or was "
            "deleted"
        )
        yield Reason(NOTE, "downgraded", text, state.name)


def of_cluster(cluster: Cluster, names: Iterable[str], to: BrokerRelease | None) -> Iterator[Reason]:
    """All other reasons but `caught_up`, these groups being asked about."""
    yield from _offset_versions(cluster, set(names), to)
    yield from _cluster(cluster, to)
    if to is None:
        yield from _features_noted(cluster)
        text = (
            "brokers before 3.4.1 fail on records and tombstones of the new protocols that are still in the log, live "
            "or not (KIP-915): name such a release (target version) to have the log scanned for them"
        )
        yield Reason(NOTE, "log_records", text)
    elif not to.passes_over_unknown_types:
        yield from _log_records(cluster.log_scan)


def _of_target(cluster: Cluster, target: str) -> Iterator[Reason]:
    """Reasons that depend on the very release, not on its row alone."""
    version, to = version_of(target), release(target)
    if version is None or to is None:
        text = f"nothing is known of release {target}: its brokers may fail on what is in the log. Known is {ACCEPTED}"
        yield Reason(UNKNOWN, "unknown_release", text)
        return
    features = cluster.settings.features
    if features is None:
        text = (
            "the brokers do not say which features are finalized (metadata.version, group.version and others), and "
            "brokers do not start where a level is beyond theirs"
        )
        yield Reason(UNKNOWN, "features", text)
    for feature, level in sorted((features or {}).items()):
        highest = highest_level(feature, version)
        if highest is None:
            text = f"{feature} is finalized at level {level}, and this monitor does not know what brokers support of it"
            yield Reason(UNKNOWN, "features", text)
        elif level > highest:
            text = (
                f"{feature} is finalized at level {level}, and brokers of {target} support up to {highest}: they would "
                f"not start. Lower it first (kafka-features.sh downgrade --feature {feature}={highest}), where the "
                "controller allows that"
            )
            yield Reason(STOP, "features", text)
    yield from _static_settings(cluster.settings.static_protocols, to)


def _static_settings(protocols: Iterable[str] | None, to: BrokerRelease) -> Iterator[Reason]:
    """What has to go from the brokers' own files (KIP-915): only the operator can take it back."""
    name = "group.coordinator.rebalance.protocols"
    unserved = sorted({*(protocols or ())} - {*to.serves})
    if protocols is None:
        text = f"the brokers do not say whether {name} is in their files: take back there what the target does not know"
        yield Reason(NOTE, "static_settings", text)
    elif unserved:
        text = (
            f"{name} lists {', '.join(unserved)} in the brokers' files: take it back before a broker is rolled. One "
            "that knows the setting but not the name does not start; one that does not know the setting passes over it"
        )
        yield Reason(NOTE, "static_settings", text)


def _features_noted(cluster: Cluster) -> Iterator[Reason]:
    finalized = {name: level for name, level in (cluster.settings.features or {}).items() if level}
    if finalized:
        named = ", ".join(f"{name}={level}" for name, level in sorted(finalized.items()))
        text = (
            f"features are finalized: {named}. Brokers that do not support a level do not start; name the release "
            "(target version) to have that decided"
        )
        yield Reason(NOTE, "features", text)


def _log_records(scan: LogScan | None) -> Iterator[Reason]:
    """What a broker before 3.4.1 meets while it loads, live or not."""
    fails = "a broker before 3.4.1 fails on those while it loads, live or not (KIP-915)"
    if scan is not None and not scan.clean:
        of_types = sorted({*scan.records, *scan.tombstones})
        found = [
            f"type {type_}: {scan.records.get(type_, 0)} records and {scan.tombstones.get(type_, 0)} tombstones"
            for type_ in of_types
        ]
        found += [f"{count} values of version {version}" for version, count in sorted(scan.value_versions.items())]
        yield Reason(STOP, "log_records", f"still in the log: {_some(found)}; {fails}")
        text = (
            "the cleaner removes them: a tombstone goes delete.retention.ms (a day) after it was cleaned first, and "
            "the active segment is never cleaned. On the offsets topic lower segment.ms, min.cleanable.dirty.ratio, "
            "max.compaction.lag.ms and delete.retention.ms for the time, wait, ask again, and take that back"
        )
        yield Reason(NOTE, "cleaner", text)
    elif scan is None:
        text = f"the log was not scanned for records and tombstones of the new protocols; {fails}"
        yield Reason(UNKNOWN, "log_records", text)
    elif scan.under_way:
        text = f"the log is being scanned for records and tombstones of the new protocols ({_percent(scan)}): ask again"
        yield Reason(UNKNOWN, "log_records", text)
    elif scan.unreadable:
        text = (
            f"{scan.unreadable} batches or values of the log cannot be read, and what is in them is not known "
            f"(the scan for records and tombstones of the new protocols found none elsewhere); {fails}"
        )
        yield Reason(UNKNOWN, "log_records", text)
    elif not scan.complete:
        text = (
            f"the scan for records and tombstones of the new protocols read {_percent(scan)} of the log in "
            f"{scan.seconds:.0f} s, and found none there; {fails}"
        )
        yield Reason(UNKNOWN, "log_records", text)


def _percent(scan: LogScan) -> str:
    return f"{scan.thousandths // 10} %"


def _scan_view(scan: LogScan | None) -> dict[str, Any] | None:
    if scan is None:
        return None
    return {
        "complete": scan.complete,
        "under_way": scan.under_way,
        "share": scan.thousandths / 1_000,
        "seconds": round(scan.seconds, 1),
        "unreadable": scan.unreadable,
        "records": {str(type_): count for type_, count in sorted(scan.records.items())},
        "tombstones": {str(type_): count for type_, count in sorted(scan.tombstones.items())},
        "value_versions": {str(version): count for version, count in sorted(scan.value_versions.items())},
    }


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
        f"{count} committed offsets are in value version {versions}, of {len(beyond)} group"
        f"{'' if len(beyond) == 1 else 's'}: {_some(list(beyond))}. "
    )
    if to is None:
        readers = ".".join(map(str, next(row.since for row in RELEASES if row.highest_offset_version > highest)))
        text += f"Brokers before {readers} cannot read it; name the release (target version) to have that decided"
        yield Reason(NOTE, "offset_version", text)
    else:
        text += f"The target reads up to version {highest}, and would not load partitions that hold others"
        yield Reason(STOP, "offset_version", text)


def _cluster(cluster: Cluster, to: BrokerRelease | None) -> Iterator[Reason]:
    if to is None or not to.knows_group_configs:
        if cluster.group_configs is None:
            yield Reason(UNKNOWN, "group_configs", _unsaid_configs(cluster.settings))
        for name in sorted(cluster.group_configs or ()):
            text = "dynamic GROUP configurations are set, which an older controller does not know: remove them"
            yield Reason(STOP, "group_configs", text, name)
    harmless = to is not None and to.passes_over_unknown_types
    for record_type, count in sorted(cluster.unknown_records.items()):
        text = f"{count} records of type {record_type}, unknown to this monitor, were read: "
        text += "the target passes over them with a warning" if harmless else "older brokers may fail on them"
        yield Reason(NOTE if harmless else STOP, "unknown_records", text)


def _unsaid_configs(settings: BrokerSettings) -> str:
    """Why it is not known whether groups have configurations, and what to do about it."""
    text = "the brokers do not say whether dynamic GROUP configurations exist: "
    if not settings.asked:
        return text + "here are none to ask; ask a monitor that has them"
    if settings.brokers is None:
        return text + "they do not answer"
    silent = lacking(settings.brokers, LISTS_GROUP_CONFIGS)
    if silent:
        return (
            f"{text}{names_of(silent)} does not list them (4.1 does). kafka-configs.sh --describe --entity-type groups "
            "--entity-name GROUP shows those of one group: remove what you have set"
        )
    return text + "let the monitor read them (DESCRIBE_CONFIGS on the cluster)"


def _some(names: Mapping[str, Any] | Iterable[str]) -> str:
    """The first few, and how many more."""
    listed = list(names)
    more = len(listed) - _NAMED_GROUPS
    return ", ".join(listed[:_NAMED_GROUPS]) + (f" and {more} more" if more > 0 else "")
