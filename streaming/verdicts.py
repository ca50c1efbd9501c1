"""The gates asked about what a board shows: for the API, which also asks the brokers, and for the metrics."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from coordinator_model import downgrade_gate, migration, upgrade_gate
from coordinator_model.downgrade_gate import FLEXIBLE_OFFSETS
from coordinator_model.gate import BrokerSettings, Cluster, caught_up, verdict
from streaming.board import Board
from streaming.held_group import HeldGroup
from streaming.tally import Sums


def upgrade(board: Board, groups: Collection[str], settings: BrokerSettings) -> dict[str, Any]:
    """Verdict of the upgrade gate with its reasons.

    Args:
        board: what is shown; it has all groups that are named.
        groups: whom it is asked about; none for all.
        settings: what the brokers' configurations allow.
    """
    cluster = Cluster(not_caught_up=_missing(board), settings=settings)
    chosen = _chosen(board, groups)
    if groups:
        return upgrade_gate.upgrade_gate((held.state for held in chosen), cluster, groups)
    # Of most groups there is nothing to say. One that could be rolled has to be among them: then brokers are asked too.
    most = settings.consumer_max_size
    concerned = [
        held
        for held in chosen
        if held.summary.upgrade_reasons
        or (held.summary.to_upgrade and most is not None and held.summary.members > most)
    ]
    if not any(held.summary.to_upgrade for held in concerned):
        concerned += [held for held in chosen if held.summary.to_upgrade][:1]
    answer = upgrade_gate.upgrade_gate((held.state for held in concerned), cluster)
    return {**answer, "groups": _by_type(chosen)}


def downgrade(
    board: Board, groups: Collection[str], group_configs: Collection[str] | None, target: str | None = None
) -> dict[str, Any]:
    """Verdict of the downgrade gate with its reasons.

    Args:
        board: as above.
        groups: as above.
        group_configs: names of groups with dynamic GROUP configurations, None where brokers did not say.
        target: release the brokers are rolled to, as `coordinator_model.broker_releases.release` takes it.
    """
    chosen = _chosen(board, groups)
    cluster = Cluster(
        not_caught_up=_missing(board),
        unknown_records=_unknown_records(board),
        group_configs=group_configs,
        offset_versions={held.name: held.offset_versions for held in chosen},
    )
    # Without a target there are all reasons that there could be with one.
    concerned = [held for held in chosen if held.summary.downgrade_reasons]
    others = cluster.offset_versions.keys()
    answer = downgrade_gate.downgrade_gate((held.state for held in concerned), cluster, target, others=others)
    return {**answer, "groups": _by_type(chosen)}


def offline(board: Board, sums: Sums) -> dict[str, tuple[str, Mapping[tuple[str, str], int]]]:
    """Gate → verdict on all groups and its reasons by (effect, code), without a question to the brokers.

    For metrics, from sums: what brokers would say is left out, and no group is looked at.
    """
    cluster = Cluster(
        not_caught_up=_missing(board),
        unknown_records=_unknown_records(board),
        group_configs=(),
        # Whether there are such offsets is all that counts, so one name stands for all groups that have any.
        offset_versions={"": {FLEXIBLE_OFFSETS: sums.flexible}} if sums.flexible else {},
    )
    brokers = upgrade_gate.of_brokers(BrokerSettings()) if sums.to_upgrade else ()
    of_gates = {
        migration.UPGRADE: (sums.upgrade_reasons, [*caught_up(cluster), *brokers]),
        migration.DOWNGRADE: (
            sums.downgrade_reasons,
            [*caught_up(cluster), *downgrade_gate.of_cluster(cluster, cluster.offset_versions, None)],
        ),
    }
    found: dict[str, tuple[str, Mapping[tuple[str, str], int]]] = {}
    for gate, (of_groups, others) in of_gates.items():
        reasons = Counter([(reason.effect, reason.code) for reason in others])
        reasons.update(of_groups)
        found[gate] = (verdict(effect for effect, _ in reasons), reasons)
    return found


def _unknown_records(board: Board) -> Counter[str]:
    unknown: Counter[str] = Counter()
    for shard in board.shown.shards.values():
        unknown.update(shard.unknown_records)
    return unknown


def _chosen(board: Board, groups: Collection[str]) -> list[HeldGroup]:
    shown = board.shown.groups
    return [shown[group] for group in sorted(groups or shown)]


def _by_type(chosen: Iterable[HeldGroup]) -> dict[str, int]:
    return dict(sorted(Counter(held.summary.type for held in chosen).items()))


def _missing(board: Board) -> list[str]:
    return [str(missing["reason"]) for missing in board.ready()[1]]
