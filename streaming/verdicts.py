"""The gates asked about what a board shows: for the API, which also asks the brokers, and for the metrics."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from coordinator_model import migration
from coordinator_model.downgrade_gate import downgrade_gate
from coordinator_model.gate import BrokerSettings, Cluster
from coordinator_model.upgrade_gate import upgrade_gate
from streaming.board import Board
from streaming.held_group import HeldGroup


def upgrade(board: Board, groups: Collection[str], settings: BrokerSettings) -> dict[str, Any]:
    """Verdict of the upgrade gate with its reasons.

    Args:
        board: what is shown; it has all groups that are named.
        groups: whom it is asked about; none for all.
        settings: what the brokers' configurations allow.
    """
    cluster = Cluster(not_caught_up=_missing(board), settings=settings)
    return upgrade_gate((held.state for held in _chosen(board, groups)), cluster, groups)


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
    unknown: Counter[str] = Counter()
    for shard in board.shown.shards.values():
        unknown.update(shard.unknown_records)
    chosen = _chosen(board, groups)
    cluster = Cluster(
        not_caught_up=_missing(board),
        unknown_records=unknown,
        group_configs=group_configs,
        offset_versions={held.state.name: held.offset_versions for held in chosen},
    )
    return downgrade_gate((held.state for held in chosen), cluster, target)


OFFLINE: Final[Mapping[str, Callable[[Board], dict[str, Any]]]] = {
    migration.UPGRADE: lambda board: upgrade(board, (), BrokerSettings()),
    migration.DOWNGRADE: lambda board: downgrade(board, (), ()),
}
"""Gate → its verdict on all groups without a question to the brokers, for metrics: what they would say is left out."""


def _chosen(board: Board, groups: Collection[str]) -> list[HeldGroup]:
    shown = board.shown.groups
    return [shown[group] for group in sorted(groups or shown)]


def _missing(board: Board) -> list[str]:
    return [str(missing["reason"]) for missing in board.ready()[1]]
