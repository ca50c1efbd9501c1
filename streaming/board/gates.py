"""The gates asked about what a board shows: for the API, which also asks the brokers, and for the metrics.

What only a look with a clock finds is a reason of both, as `alarms` says:

    rebalance_stuck     stops the roll of its group: it says whom the rebalance waits for, and since when
    members_not_back    stops the next wave, whichever groups are asked about, but for those of another owner; brokers
                        may be rolled
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import cast

from coordinator_model.clocked.moment import Moment
from coordinator_model.clocked.not_back import KIND as NOT_BACK
from coordinator_model.clocked.stuck import rebalance_stuck
from coordinator_model.gates.downgrade import FLEXIBLE_OFFSETS, downgrade_gate, of_cluster
from coordinator_model.gates.upgrade import ALLOWING, of_brokers, upgrade_gate
from coordinator_model.gates.verdict import (
    NOTE,
    STOP,
    STUCK,
    UNKNOWN,
    BrokerSettings,
    Cluster,
    Reason,
    as_polled,
    caught_up,
    unsettled,
    verdict,
)
from coordinator_model.kinds.table import sentence
from coordinator_model.kinds.words import counted, duration
from coordinator_model.migration import phases
from coordinator_model.state.events import event_view
from streaming.base.answers import GateAnswer
from streaming.base.doubt import said
from streaming.board.batch_update import BoardSnapshot
from streaming.board.board import Board, BoardMoment
from streaming.board.board_group import BoardGroup
from streaming.board.totals import Sums


def upgrade(board: Board, groups: Collection[str], asked: Cluster, moment: BoardMoment) -> GateAnswer:
    """Verdict of the upgrade gate with its reasons.

    Args:
        board: what is shown; it has all groups that are named.
        groups: whom it is asked about; none for all.
        asked: what the brokers said, and when it is asked.
        moment: what is shown, of an earlier moment than that.
    """
    cluster, settings = _as_shown(asked, board, moment, groups), asked.settings
    cluster = replace(cluster, alarms=[*alarms(board, moment, groups, asked.now_ms, not_back=STOP)])
    chosen = _chosen(moment.shown.groups, groups)
    if groups:
        return cast(GateAnswer, upgrade_gate((held.state for held in chosen), cluster, groups))
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
    return cast(GateAnswer, {**answer, "groups": _by_type(chosen)})


def downgrade(
    board: Board, groups: Collection[str], asked: Cluster, moment: BoardMoment, target: str | None = None
) -> GateAnswer:
    """Verdict of the downgrade gate with its reasons.

    Args:
        board: as above.
        groups: as above.
        asked: as above.
        moment: as above.
        target: release the brokers are rolled to, as `coordinator_model.gates.broker_releases.release` takes it.
    """
    chosen = _chosen(moment.shown.groups, groups)
    cluster = _as_shown(asked, board, moment, groups)
    cluster = replace(cluster, alarms=[*alarms(board, moment, groups, asked.now_ms, not_back=NOTE)])
    if not cluster.polled:
        cluster = replace(cluster, offset_versions={held.name: held.offset_versions for held in chosen})
    # Without a target there are all reasons that there could be with one.
    concerned = [held for held in chosen if groups or held.words.downgrade_reasons or held.summary.mixed]
    others = cluster.offset_versions.keys()
    # What a broker is rolled back to reads all that is in the log.
    states = [*(held.state for held in concerned), *board.copies.states(groups)]
    answer = downgrade_gate(states, cluster, target, groups, others=others)
    return cast(GateAnswer, {**answer, "groups": _by_type(chosen)})


def alarms(
    board: Board, moment: BoardMoment, groups: Collection[str], now_ms: int | None, *, not_back: str
) -> Iterator[Reason]:
    """What is alarmed by the clock and decides, of these groups or all; `not_back` is what missing members do."""
    shown = moment.shown.groups
    for name in sorted(board.findings.overdue[STUCK] & shown.keys()):
        if not groups or name in groups:
            yield Reason(STOP, STUCK, _stuck(board, shown[name], now_ms), name)
    owners = {board.expectations.owner(name) for name in groups}
    for name, of in sorted(board.findings.not_back.items()):
        if name not in shown or NOT_BACK in board.expectations.kinds(name):
            continue
        owner = board.expectations.owner(name)
        of_others = bool(groups) and name not in groups and owner is not None and owner not in owners
        since = "" if now_ms is None else f" for {duration(max(0, now_ms - of.since_ms) / 1_000)}"
        text = (
            f"{counted(of.missing, 'member')} did not come back after its roll, missing{since}: find out why before "
            "more is rolled, or say that it is meant to be smaller (alarms.expectations: shrinks)"
        )
        yield Reason(NOTE if of_others else not_back, NOT_BACK, text, name)


def _stuck(board: Board, held: BoardGroup, now_ms: int | None) -> str:
    """What is said of a rebalance that is stuck: of a classic group the log does not show what it waits for."""
    end = ". Waiting does not end it"
    if now_ms is None:
        return f"the rebalance is stuck: it takes longer than its members may{end}"
    moved_ms = board.ends.leader_moves(board.offsets_topic, held.partition).last_ms
    read_ms = board.findings.read_ms.get(held.name)
    look = Moment(state=held.state, now_ms=now_ms, moved_ms=moved_ms, read_ms=read_ms)
    event = next(iter(rebalance_stuck(look)), None)
    if event is not None:
        return f"{sentence(event_view(event))}{end}"
    since_ms = held.summary.rebalancing_since_ms
    since = "" if since_ms is None else f" for {duration(max(0, now_ms - since_ms) / 1_000)}"
    return f"the rebalance is stuck: it has been rebalancing{since}, longer than its members may take{end}"


def offline(
    board: Board, sums: Sums, now_ms: int, moment: BoardMoment
) -> dict[str, tuple[str, Mapping[tuple[str, str], int]]]:
    """Gate → verdict on all groups and its reasons by (effect, code), without a question to the brokers.

    For metrics, from sums: of what brokers would say there is what they said lately, which the board has, and only
    groups that are not at rest are looked at.
    """
    between = _between_restarts(moment.shown, sums, now_ms)
    # Whether there are such offsets is all that counts, so one name stands for all groups that have any.
    flexible = {"": {FLEXIBLE_OFFSETS: sums.flexible}} if sums.flexible else {}
    cluster = _as_shown(Cluster(group_configs=(), offset_versions=flexible), board, moment, ())
    allowing = _else_allowing(board.findings.brokers)
    brokers = of_brokers(allowing) if sums.to_upgrade else ()
    of_gates = {
        phases.UPGRADE: (sums.upgrade_reasons, [*caught_up(cluster), *as_polled(cluster, NOTE), *brokers]),
        phases.DOWNGRADE: (
            sums.downgrade_reasons,
            [*caught_up(cluster), *as_polled(cluster, UNKNOWN), *of_cluster(cluster, cluster.offset_versions, None)],
        ),
    }
    found: dict[str, tuple[str, Mapping[tuple[str, str], int]]] = {}
    for gate, (of_groups, others) in of_gates.items():
        reasons = Counter([(reason.effect, reason.code) for reason in others])
        reasons.update(of_groups)
        if between:
            reasons[STOP, "rebalancing"] += between
        for reason in alarms(board, moment, (), now_ms, not_back=STOP if gate == phases.UPGRADE else NOTE):
            reasons[reason.effect, reason.code] += 1
            words = moment.shown.groups[reason.group or ""].words
            said_of_group = words.upgrade_reasons if gate == phases.UPGRADE else words.downgrade_reasons
            if reason.code == STUCK and (STOP, "rebalancing") in said_of_group:
                reasons[STOP, "rebalancing"] -= 1
        reasons = +reasons
        found[gate] = (verdict(effect for effect, _ in reasons), reasons)
    return found


def _else_allowing(said: BrokerSettings) -> BrokerSettings:
    """What brokers said; of what they did not say, that they allow it."""
    known = {of.name: value for of in fields(said) if (value := getattr(said, of.name)) is not None}
    return replace(ALLOWING, **known)


def _between_restarts(shown: BoardSnapshot, sums: Sums, now_ms: int) -> int:
    """Groups of a new protocol that are being rolled, and rest for the moment only."""
    groups, count = shown.groups, 0
    for name in sums.unsteady:
        held = groups.get(name)
        if held is not None and held.words.is_modern and (STOP, "rebalancing") not in held.words.downgrade_reasons:
            of = held.summary
            count += unsettled(now_ms, of.last_step_ms, mixed=of.mixed)
    return count


def _as_shown(asked: Cluster, board: Board, moment: BoardMoment, groups: Collection[str]) -> Cluster:
    """With what the board shows, and what of it these groups, or all, may be in without being read."""
    unread, held = moment.standing.unread, moment.shown.groups
    concerned = {unread.partition_of(name, held.get(name)) for name in groups} if groups else {*unread.doubts}
    unknown: Counter[str] = Counter()
    for totals in moment.shown.shards.values():
        unknown.update(totals["unknown_records"])
    standing = moment.standing
    # What is not ready yet is under doubt at least, and what is under doubt may be ready still.
    missing = standing.missing_of_all or ([] if standing.doubt is None else [standing.doubt])
    return replace(
        asked,
        not_caught_up=[said(each) for each in missing],
        unread=[said(doubt) for number, doubt in unread.doubts.items() if number in concerned],
        polled=board.health.polls() is not None,
        unknown_records=unknown,
    )


def _chosen(shown: Mapping[str, BoardGroup], groups: Collection[str]) -> list[BoardGroup]:
    return [shown[group] for group in sorted(groups or shown)]


def _by_type(chosen: Iterable[BoardGroup]) -> dict[str, int]:
    return dict(sorted(Counter(held.words.type for held in chosen).items()))
