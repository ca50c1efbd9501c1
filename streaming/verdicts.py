"""The gates asked about what a board shows: for the API, which also asks the brokers, and for the metrics."""

from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from coordinator_model import gate
from streaming.board import Board

GATES: Final = {gate.UPGRADE: gate.upgrade_gate, gate.DOWNGRADE: gate.downgrade_gate}
"""Name → the question."""


def verdict(
    board: Board, name: str, groups: Collection[str] = (), *, group_configs: Collection[str] | None
) -> dict[str, Any]:
    """Verdict of a gate with its reasons.

    Args:
        board: what is shown; it has all groups that are named.
        name: of `GATES`.
        groups: whom it is asked about; none for all.
        group_configs: names of groups with dynamic GROUP configurations, None where brokers did not say.
    """
    shown = board.shown
    unknown: Counter[str] = Counter()
    for shard in shown.shards.values():
        unknown.update(shard.unknown_records)
    cluster = gate.Cluster(
        not_caught_up=[missing["reason"] for missing in board.ready()[1]],
        unknown_records=unknown,
        group_configs=group_configs,
    )
    return GATES[name]((shown.groups[group].state for group in sorted(groups or shown.groups)), cluster)
