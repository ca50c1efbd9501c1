"""What the API answers, as plain objects; `server.py` puts them on the wire."""

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from coordinator_model import broker_releases, migration
from coordinator_model.gate import BrokerSettings
from coordinator_model.roster import is_absent, members_of, speaks
from streaming import verdicts
from streaming.board import Board
from streaming.held_group import HeldGroup, total

DEFAULT_EVENTS: Final = 1_000
OVERVIEW_EVENTS: Final = 40
OVERVIEW_SECONDS: Final = 0.5
"""How long an overview is served again, or ten times what making it took, whichever is longer."""


class BadRequestError(ValueError):
    """A parameter is not what is accepted; the message names it, what was found and what is accepted."""


class NotFoundError(LookupError):
    """There is no such thing; the message names it."""


@dataclass(frozen=True, slots=True)
class BrokerAnswers:
    """What only brokers know and gates ask; by default they say nothing.

    Attributes:
        group_configs: names of groups with dynamic GROUP configurations; None while brokers have not said.
        settings: configurations that decide about conversions.
    """

    group_configs: Callable[[], Collection[str] | None] = lambda: None
    settings: Callable[[], BrokerSettings] = BrokerSettings


class Api:
    """Answers from a board.

    Args:
        board: what is shown.
        cluster: name of the cluster.
        brokers: what gates ask the brokers.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(
        self,
        board: Board,
        cluster: str,
        *,
        brokers: BrokerAnswers | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.board = board
        self.cluster = cluster
        self._brokers = brokers or BrokerAnswers()
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._overview = b""
        self._overview_until = 0.0

    def ready(self) -> dict[str, Any]:
        """Whether the board may be believed, and what is missing if not."""
        ready, missing = self.board.ready()
        return {"ready": ready, "missing": missing}

    def groups(self, query: Mapping[str, str]) -> dict[str, Any]:
        """All GROUPs with lag; of one `type` and `state` where the query names them."""
        type_, state = query.get("type") or None, query.get("state") or None
        return {"groups": self.board.group_views(self._clock_ms(), type_=type_, state=state)}

    def group(self, name: str) -> dict[str, Any]:
        """One GROUP with lag; raises NotFoundError."""
        found = self.board.group_view(name, self._clock_ms())
        if found is None:
            raise NotFoundError(f"group: found {name!r}, accepted: a group of this cluster")
        return found

    def events(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The latest EVENTs, oldest first, by `group`, `since` and `limit`; raises BadRequestError."""
        limit = _limit(query.get("limit") or str(DEFAULT_EVENTS), self.board.events.size)
        since_ms = _time_ms(query["since"]) if query.get("since") else None
        return {"events": self.board.latest_events(limit, group=query.get("group") or None, since_ms=since_ms)}

    def gate(self, name: str, groups: Collection[str], query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Verdict of a gate, on the groups named or on all; raises NotFoundError and BadRequestError.

        The upgrade gate takes `max_size`, in place of the brokers' group.consumer.max.size; the downgrade gate
        `target_version`, the release that the brokers are rolled to.
        """
        if name not in (migration.UPGRADE, migration.DOWNGRADE):
            raise NotFoundError(f"gate: found {name!r}, accepted: {migration.UPGRADE} or {migration.DOWNGRADE}")
        shown = self.board.shown
        for group in groups:
            if group not in shown.groups:
                raise NotFoundError(f"group: found {group!r}, accepted: a group of this cluster")
        if name == migration.UPGRADE:
            size = _max_size((query or {}).get("max_size"))
            settings = self._brokers.settings()
            if size is not None:
                settings = replace(settings, consumer_max_size=size)
            return verdicts.upgrade(self.board, groups, settings)
        target = _target_version((query or {}).get("target_version"))
        return verdicts.downgrade(self.board, groups, self._brokers.group_configs(), target)

    def overview(self) -> bytes:
        """What the page shows of the whole cluster, as JSON; made once for all who ask at about the same time."""
        with self._lock:
            begun = time.monotonic()
            if begun >= self._overview_until:
                self._overview = to_json(self._make_overview())
                done = time.monotonic()
                self._overview_until = done + max(OVERVIEW_SECONDS, 10 * (done - begun))
            return self._overview

    def _make_overview(self) -> dict[str, Any]:
        board, now_ms = self.board, self._clock_ms()
        groups = board.shown.groups
        return {
            "cluster": self.cluster,
            "time": now_ms,
            **self.ready(),
            "end_offset_age_seconds": board.ends.age_seconds(now_ms),
            "replica_lag_records": sum(board.replica_lag().values()),
            "open_transaction_records": sum(board.open_transaction_records().values()),
            "groups": [self._summary(held, now_ms) for _, held in sorted(groups.items())],
            "events": board.latest_events(OVERVIEW_EVENTS),
        }

    def _summary(self, held: HeldGroup, now_ms: int) -> dict[str, Any]:
        state = held.state
        members = members_of(state.membership).values()
        sums = total(held.lags(self.board.ends, now_ms))
        consumers = sum(speaks(member) == "consumer" for member in members)
        return {
            "group": state.name,
            "type": state.type,
            "state": held.group_state,
            "simple": state.simple,
            "epoch": state.epoch,
            "classic_members": len(members) - consumers,
            "consumer_members": consumers,
            "absent_members": sum(map(is_absent, members)),
            "phase": migration.phase(state),
            "mixed_since": state.migration.mixed_since_ms,
            "leftovers": state.membership.leftovers(),
            "lag": sums.records,
            "max_lag": sums.max_records,
            "max_lag_seconds": sums.max_seconds,
            "rebalances": state.counters.rebalances,
            "rebalancing_since": None if state.rebalance is None else state.rebalance.since_ms,
            "duplicate_partitions": len(state.duplicates),
            "unassigned_partitions": held.unassigned_partitions(self.board.ends.topics),
        }


def to_json(answer: object) -> bytes:
    """JSON in ASCII: any name there can be in a log is safe in it."""
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode("ascii")


def _max_size(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise BadRequestError(f"max_size: found {text[:40]!r}, accepted: a number of members from 1 to 2147483647")
    return int(text)


def _target_version(text: str | None) -> str | None:
    if text is not None and broker_releases.release(text) is None:
        raise BadRequestError(f"target_version: found {text[:40]!r}, accepted: {broker_releases.ACCEPTED}")
    return text


def _limit(text: str, most: int) -> int:
    try:
        limit = int(text)
    except ValueError:
        limit = 0
    if not 1 <= limit <= most:
        raise BadRequestError(f"limit: found {text[:40]!r}, accepted: a number from 1 to {most}")
    return limit


def _time_ms(text: str) -> int:
    """Milliseconds since 1970 from such a number, or from ISO 8601 (UTC unless it says otherwise)."""
    if text.isascii() and text.isdecimal() and len(text) < 16:  # noqa: PLR2004 - beyond any date
        return int(text)
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadRequestError(
            f"since: found {text[:40]!r}, accepted: milliseconds since 1970, or a time as 2026-01-31T14:03:00Z"
        ) from None
