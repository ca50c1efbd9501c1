"""Groups that do not settle: restless for longer than configured, more epochs going by than a roll takes.

A member that flaps makes an epoch every few seconds, and no rebalance of it is ever stuck: each record starts a timer
again. So what is judged is whether the group comes to rest (`rules/settling.py`), and not whether a rebalance is
completed. It is one finding from the record with which it began, and is over when the group has come to rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from coordinator_model.clocked.moment import Moment
from coordinator_model.clocked.stuck import effective_start_ms
from coordinator_model.rules import settling
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.rule_memory import Restless

MOST_SHOWN: Final = 5


def group_unsettled(moment: Moment) -> Iterator[Event]:
    """A group that has not come to rest for too long."""
    state, restless = moment.state, moment.state.restless
    since_ms = unsettled_since_ms(state, moment.now_ms, moment.read_ms)
    if restless is None or since_ms is None:
        return
    unsettled_ms = moment.now_ms - since_ms
    if unsettled_ms <= moment.unsettled_after_ms or not settling.too_many_epochs(restless):
        return
    position = Position(state.partition, restless.offset, restless.since_ms)
    yield from events_of(state.name, position, [Finding("group_unsettled", _shown(state, restless, unsettled_ms))])


def unsettled_since_ms(state: GroupState, now_ms: int, read_ms: int | None = None) -> int | None:
    """Since when the group has not been settled; None if it is."""
    if state.restless is None or not settling.is_restless(state, now_ms):
        return None
    return effective_start_ms(state.restless.since_ms, now_ms, read_ms)


def _shown(state: GroupState, restless: Restless, unsettled_ms: int) -> dict[str, Any]:
    most = sorted(restless.comings.values(), key=lambda of: (-of.joined - of.left, of.client_id, of.client_host))
    return {
        "unsettled_ms": unsettled_ms,
        "epochs": restless.epochs,
        "epochs_per_minute": round(restless.epochs * 60_000 / unsettled_ms, 1),
        "from_epoch": restless.from_epoch,
        "epoch": state.epoch,
        "members": restless.members,
        "joined": restless.joined,
        "left": restless.left,
        "come_and_go": [
            {
                "instance_id": of.instance_id,
                "client_id": of.client_id,
                "client_host": of.client_host,
                "joined": of.joined,
                "left": of.left,
            }
            for of in most[:MOST_SHOWN]
        ],
    }
