"""The gates asked about what a board shows: for the API, which also asks the brokers, and for the metrics."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator_model.gates.downgrade import FLEXIBLE_OFFSETS, downgrade_gate, of_cluster
from coordinator_model.gates.upgrade import of_brokers, upgrade_gate
from coordinator_model.gates.verdict import (
    NOTE,
    STOP,
    UNKNOWN,
    BrokerSettings,
    Cluster,
    LogScan,
    as_polled,
    caught_up,
    unsettled,
    verdict,
)
from coordinator_model.migration import phases
from streaming.base.doubt import said
from streaming.board.batch_update import BoardSnapshot
from streaming.board.board import Board, BoardMoment
from streaming.board.board_group import BoardGroup
from streaming.board.readiness import Standing
from streaming.board.totals import Sums


def upgrade(
    board: Board,
    groups: Collection[str],
    settings: BrokerSettings,
    now_ms: int | None = None,
    moment: BoardMoment | None = None,
) -> dict[str, Any]:
    """Verdict of the upgrade gate with its reasons.

    Args:
        board: what is shown; it has all groups that are named.
        groups: whom it is asked about; none for all.
        settings: what the brokers' configurations allow.
        now_ms: the moment of the question; None for what holds at any.
        moment: what is shown, of an earlier moment than now.
    """
    shown, standing = moment or board.moment()
    cluster = Cluster(not_caught_up=_missing(standing), polled=_polled(board), settings=settings, now_ms=now_ms)
    chosen = _chosen(shown.groups, groups)
    if groups:
        return upgrade_gate((held.state for held in chosen), cluster, groups)
    # Of most groups there is nothing to say. One that could be rolled has to be among them: then brokers are asked too.
    most = settings.consumer_max_size
    concerned = [
        held
        for held in chosen
        if held.words.upgrade_reasons or (held.words.to_upgrade and most is not None and held.summary.members > most)
    ]
    if not any(held.words.to_upgrade for held in concerned):
        concerned += [held for held in chosen if held.words.to_upgrade][:1]
    answer = upgrade_gate((held.state for held in concerned), cluster)
    return {**answer, "groups": _by_type(chosen)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the brokers were asked for the downgrade gate; see `Cluster`, which has the same."""

    group_configs: Collection[str] | None = None
    settings: BrokerSettings = field(default_factory=BrokerSettings)
    log_scan: LogScan | None = None


def downgrade(  # noqa: PLR0913 - a question, and the moment it is of
    board: Board,
    groups: Collection[str],
    asked: Asked,
    target: str | None = None,
    now_ms: int | None = None,
    moment: BoardMoment | None = None,
) -> dict[str, Any]:
    """Verdict of the downgrade gate with its reasons.

    Args:
        board: as above.
        groups: as above.
        asked: what the brokers said.
        target: release the brokers are rolled to, as `coordinator_model.gates.broker_releases.release` takes it.
        now_ms: as above.
        moment: as above.
    """
    shown, standing = moment or board.moment()
    chosen = _chosen(shown.groups, groups)
    cluster = Cluster(
        not_caught_up=_missing(standing),
        polled=_polled(board),
        unknown_records=_unknown_records(shown),
        group_configs=asked.group_configs,
        settings=asked.settings,
        log_scan=asked.log_scan,
        now_ms=now_ms,
        offset_versions={} if _polled(board) else {held.name: held.offset_versions for held in chosen},
    )
    # Without a target there are all reasons that there could be with one.
    concerned = [held for held in chosen if groups or held.words.downgrade_reasons or held.summary.mixed]
    others = cluster.offset_versions.keys()
    answer = downgrade_gate((held.state for held in concerned), cluster, target, groups, others=others)
    return {**answer, "groups": _by_type(chosen)}


def offline(
    board: Board, sums: Sums, now_ms: int, moment: BoardMoment | None = None
) -> dict[str, tuple[str, Mapping[tuple[str, str], int]]]:
    """Gate → verdict on all groups and its reasons by (effect, code), without a question to the brokers.

    For metrics, from sums: what brokers would say is left out, and only groups that are not at rest are looked at.
    """
    shown, standing = moment or board.moment()
    between = _between_restarts(shown, sums, now_ms)
    cluster = Cluster(
        not_caught_up=_missing(standing),
        polled=_polled(board),
        unknown_records=_unknown_records(shown),
        group_configs=(),
        # Whether there are such offsets is all that counts, so one name stands for all groups that have any.
        offset_versions={"": {FLEXIBLE_OFFSETS: sums.flexible}} if sums.flexible else {},
    )
    brokers = of_brokers(BrokerSettings()) if sums.to_upgrade else ()
    of_gates = {
        phases.UPGRADE: (sums.upgrade_reasons, [*caught_up(cluster), *as_polled(cluster, NOTE), *brokers]),
        phases.DOWNGRADE: (
            sums.downgrade_reasons,
            [
                *caught_up(cluster),
                *as_polled(cluster, UNKNOWN),
                *of_cluster(cluster, cluster.offset_versions, None),
            ],
        ),
    }
    found: dict[str, tuple[str, Mapping[tuple[str, str], int]]] = {}
    for gate, (of_groups, others) in of_gates.items():
        reasons = Counter([(reason.effect, reason.code) for reason in others])
        reasons.update(of_groups)
        if between:
            reasons[STOP, "rebalancing"] += between
        found[gate] = (verdict(effect for effect, _ in reasons), reasons)
    return found


def _between_restarts(shown: BoardSnapshot, sums: Sums, now_ms: int) -> int:
    """Groups of a new protocol that are being rolled, and rest for the moment only."""
    groups, count = shown.groups, 0
    for name in sums.unsteady:
        held = groups.get(name)
        if held is not None and held.words.is_modern and (STOP, "rebalancing") not in held.words.downgrade_reasons:
            of = held.summary
            count += unsettled(now_ms, of.last_step_ms, mixed=of.mixed)
    return count


def _unknown_records(shown: BoardSnapshot) -> Counter[str]:
    unknown: Counter[str] = Counter()
    for shard in shown.shards.values():
        unknown.update(shard.unknown_records)
    return unknown


def _chosen(shown: Mapping[str, BoardGroup], groups: Collection[str]) -> list[BoardGroup]:
    return [shown[group] for group in sorted(groups or shown)]


def _by_type(chosen: Iterable[BoardGroup]) -> dict[str, int]:
    return dict(sorted(Counter(held.words.type for held in chosen).items()))


def _polled(board: Board) -> bool:
    return board.polls() is not None


def _missing(standing: Standing) -> list[str]:
    return [said(missing) for missing in standing.missing]
