"""Every kind of alarm that lasts: one row says what is to be known of it, and all else is derived from the row.

    derived                                                        by
    whether a group is at rest                                     `figures/table.py`
    why it needs a look, on page and in the terminal               `streaming/board/attention.py`
    which members it is about, on the page and as a metric         `finding_members.py`
    whether it is still open: now, after a restart, and where      `still_open`
    an expectation that held it back is withdrawn
    what has become of it when nothing is written any more         `endings.py`

What it says when it opens and when it is over stands in `views/event_sentences.py`, its meaning and its severity in
`state/events.py`, by the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from coordinator_model.clocked import endings
from coordinator_model.state.alarms import ONLY, Opened
from coordinator_model.state.group_state import GroupState

RECORD: Final = "record"
TIME: Final = "time"
LOOK: Final = "look"

Detail = Mapping[str, Any]


class Alarm(NamedTuple):
    """One kind.

    Attributes:
        ends: with what: a `RECORD` that is written, or `TIME` in which none is; a `LOOK` alone finds what begins by the
            clock, and its end.
        code: as which the page shows it among the reasons to look; None where it has no reason of its own.
        one, many: what the page says of one, and of `{}` of them.
        metric: in which it can be seen.
        involves: whether its members are named as long as it lasts.
        names: under which names a reported one is open, by the detail of its event.
        shown_as: what shows it where it has no reason of its own: another's reason, or a part of the group's answer.
    """

    ends: str
    code: str | None
    one: str
    many: str
    metric: str
    involves: bool = False
    names: Callable[[Detail], Iterable[str]] = lambda _: (ONLY,)
    shown_as: str = ""

    def text(self, count: int) -> str:
        """What the page says of so many."""
        return self.one if count == 1 else self.many.format(f"{count:,}")


def _instance(detail: Detail) -> Iterable[str]:
    return (detail["instance_id"],)


ALARMS: Final[Mapping[str, Alarm]] = {
    "duplicate_assignment": Alarm(
        RECORD,
        "duplicate_assignment",
        "1 partition owned twice",
        "{} partitions owned twice",
        "kafka_group_duplicate_partitions",
        involves=True,
        names=lambda detail: detail["partitions"],
    ),
    "static_member_contended": Alarm(
        TIME,
        "static_member_contended",
        "1 instance id contended",
        "{} instance ids contended",
        "kafka_group_involved_members",
        involves=True,
        names=_instance,
    ),
    "static_member_restarting": Alarm(
        TIME,
        "static_member_restarting",
        "1 instance id restarting",
        "{} instance ids restarting",
        "kafka_group_involved_members",
        involves=True,
        names=_instance,
    ),
    "rebalance_storm": Alarm(
        TIME, "rebalance_storm", "rebalance storm", "rebalance storm", "kafka_group_rebalances_total"
    ),
    "epoch_anomaly": Alarm(
        RECORD,
        "epoch_anomaly",
        "1 epoch anomaly",
        "{} epoch anomalies",
        "kafka_group_events_total",
        names=lambda detail: (f"{detail['rule']}/{detail['member_id'] or ''}",),
    ),
    "stale_claim": Alarm(
        RECORD,
        "stale_claim",
        "1 member claims what it owned before",
        "{} members claim what they owned before",
        "kafka_group_stale_claims_total",
        names=lambda detail: (detail.get("member_id") or ONLY,),
    ),
    "downgrade_unclean": Alarm(RECORD, None, "", "", "kafka_cluster_leftover_records", shown_as="leftover_records"),
    "upgrade_blocked": Alarm(
        RECORD,
        None,
        "",
        "",
        "kafka_group_upgrade_blockers",
        names=lambda detail: detail["reasons"],
        shown_as="blockers",
    ),
    "rebalance_stuck": Alarm(
        LOOK, "rebalance_stuck", "rebalance stuck", "rebalance stuck", "kafka_group_rebalancing_seconds", involves=True
    ),
    "migration_stalled": Alarm(
        LOOK, "migration_stalled", "roll stalled", "roll stalled", "kafka_group_migration_mixed_seconds"
    ),
    "group_unsettled": Alarm(
        LOOK, "group_unsettled", "does not settle", "does not settle", "kafka_group_unsettled_seconds"
    ),
    "partition_unassigned": Alarm(
        LOOK,
        "unassigned_partitions",
        "1 partition unassigned",
        "{} partitions unassigned",
        "kafka_group_unassigned_partitions",
    ),
}
_ASK_FOR_NO_LOOK: Final = frozenset(kind for kind, row in ALARMS.items() if row.code is None)


def asks_for_a_look(state: GroupState) -> bool:
    """Whether the page has a reason to look at the group in what was reported of it, and is not over."""
    return not state.alarms.keys() <= _ASK_FOR_NO_LOOK


def still_open(state: GroupState, kind: str, now_ms: int) -> dict[str, Opened]:
    """Alarms of a kind, by name, that were reported, and that neither a record nor time has ended."""
    lasts = endings.ENDED_BY_TIME.get(kind)
    return {name: of for name, of in state.open(kind).items() if lasts is None or lasts(state, kind, name, now_ms)}


def is_still_open(state: GroupState, kind: str, detail: Detail, now_ms: int) -> bool:
    """Whether a reported one is."""
    return not still_open(state, kind, now_ms).keys().isdisjoint(ALARMS[kind].names(detail))
