"""What is alarmed of a group and is not over yet: one record, in one place, written by `rules/lasting.py` alone.

    kind                        its alarms are named by
    duplicate_assignment        topic/partition
    stale_claim                 member id; no name where claims contradict each other
    epoch_anomaly               rule/member id
    upgrade_blocked             reason
    downgrade_unclean           no name: there is one
    rebalance_storm             no name
    static_member_absent        instance id
    static_member_contended     instance id
    static_member_restarting    instance id
    poll_interval_exceeded      client id and host

What only a look with a clock finds has no record that began it, and is kept by who looks (`clocked/lasting.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from coordinator_model.kinds.table import ONLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An alarm that was reported, and whose end was not.

    Attributes:
        since_ms, offset: of the record that showed it; -1 where an earlier release reported it.
        members: ids of the members it is about now.
        detail: what it is about beside its name. Another alarm of the same name has another detail.
    """

    since_ms: int = -1
    offset: int = -1
    members: tuple[str, ...] = ()
    detail: str = ""


Open = Mapping[str, Opened]
"""By name."""

NOTHING_OPEN: Final[Open] = {}

FORMER_FIELDS: Final = (
    "storm",
    "open_claims",
    "duplicates",
    "anomalies",
    "open_alarms",
    "leftovers_reported",
    "blockers_reported",
    "contended",
    "restarting",
)
"""Where releases before 0.2 kept what is open: fields of a group, of its migration, and of its static members."""


def of_former_release(group: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is open by these fields of a group's snapshot, as `GroupState.alarms` has it there: kind → name → fields."""
    migration = group.get("migration", {})
    histories = {**group.get("departed", {}), **group.get("instances", {})}
    found: dict[str, dict[str, Any]] = {
        "rebalance_storm": {ONLY: {}} if group.get("storm") else {},
        "stale_claim": {
            whose: {"detail": claimed, "members": [whose] if whose else []}
            for whose, claimed in group.get("open_claims", {}).items()
        },
        "duplicate_assignment": {place: {"members": owners} for place, owners in group.get("duplicates", {}).items()},
        "epoch_anomaly": {name: {} for name in group.get("anomalies", ())},
        "downgrade_unclean": {ONLY: {}} if migration.get("leftovers_reported") else {},
        "upgrade_blocked": {reason: {} for reason in migration.get("blockers_reported", ())},
    }
    for kind, flag in (("static_member_contended", "contended"), ("static_member_restarting", "restarting")):
        found[kind] = {instance: {"members": [of["member_id"]]} for instance, of in histories.items() if of.get(flag)}
    for kind, names in group.get("open_alarms", {}).items():
        found[kind] = {name: {} for name in names} | found.get(kind, {})
    return {kind: names for kind, names in found.items() if names}


def away_of_former_release(group: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Fields of a snapshot of releases before 0.2, in which a static member is away: they said so, and kept no alarm.

    It is shown as one from before the live tail: that it is back is reported, as there.
    """
    away = {
        instance: history
        for instance, history in group.get("instances", {}).items()
        if history.get("absent_since_ms") is not None
    }
    if not away:
        return {}
    times = [history["absent_since_ms"] for history in away.values()]
    alarms = {
        instance: {"since_ms": history["absent_since_ms"], "members": [history["member_id"]]}
        for instance, history in away.items()
    }
    absences = {
        "since_ms": min(times),
        "offset": -1,
        "changed_ms": max(times),
        "instance_ids": [*away],
        "reported": True,
        "before_live_tail": True,
    }
    return {"absences": absences, "alarms": group.get("alarms", {}) | {"static_member_absent": alarms}}
