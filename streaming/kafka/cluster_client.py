"""What watchers ask of a cluster with kafka-python's admin client: a method a question.

Each thread has a client of its own: closing it ends the thread's question, and no other's.
"""

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka import errors
from kafka.admin import ConfigResource, ConfigResourceType

from coordinator_model.gates.verdict import BrokerSettings
from streaming.kafka.broker_apis import asked_each
from streaming.kafka.broker_queries import configurations, settings_of
from streaming.kafka.lazy_admin import AWAY, AdminConnection, error_of
from streaming.kafka.list_offsets import list_offsets

REFUSED_SECONDS: Final = 3_600.0
"""How long configurations are not asked for again that brokers do not say."""

_SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
NOT_LOADED: Final[Mapping[type[errors.KafkaError], str]] = {
    errors.NotCoordinatorError: "NOT_COORDINATOR",
    errors.CoordinatorLoadInProgressError: "COORDINATOR_LOAD_IN_PROGRESS",
}
"""What a leader answers about groups of a partition that it has not loaded."""
_REFUSED: Final = "GroupAuthorizationFailed"
_CODE: Final = re.compile(r"\[Error (\d+)\]")
"""How kafka-python begins what it says of a broker's error."""

Place = tuple[str, int]
"""Topic, partition."""


@dataclass(frozen=True, slots=True)
class ReportedGroup:
    """What a coordinator said of one classic group: its state in Kafka's word and its members, or why it did not.

    Attributes:
        refused: whether we may not know.
        away: whether the broker does not coordinate the group, or not yet.
        not_loaded: the error that says so, as Kafka spells it, where that is all it says: it may be the leader.
    """

    state: str = ""
    members: int = 0
    refused: bool = False
    away: bool = False
    not_loaded: str = ""


class ClusterClient(AdminConnection):
    """All of it. Every method may raise KafkaError, OSError or RuntimeError."""

    _configurations_not_before = 0.0

    def brokers(self) -> BrokerSettings:
        """What brokers that are up can do and allow."""
        answers = self._admin.ask(asked_each)
        now = time.monotonic()
        if now < self._configurations_not_before:
            return settings_of(answers, [])
        held = self._admin.ask(lambda admin: configurations(admin, answers))
        if not held:
            self._configurations_not_before = now + REFUSED_SECONDS
        return settings_of(answers, held)

    def session_timeouts(self, groups: Collection[str]) -> Mapping[str, int]:
        """Group → session timeout of its consumer-protocol members, in ms; without those nothing was said of."""
        asked = [ConfigResource(ConfigResourceType.GROUP, group, {_SESSION_TIMEOUT: None}) for group in groups]
        return self._admin.ask(lambda admin: _timeouts(admin.describe_configs(asked, config_filter="all")))

    def describe(self, groups: Collection[str], broker: int) -> Mapping[str, ReportedGroup]:
        """Classic groups that this broker coordinates; those it knows nothing of are left out."""
        return self._admin.ask(lambda admin: _reported(admin.describe_groups(list(groups), broker)))

    def first_since(
        self, times_ms: Mapping[Place, int], leaders: Mapping[Place, int]
    ) -> tuple[dict[Place, tuple[int, int]], Collection[Place]]:
        """Offset and timestamp of each partition's first record at or after a time, negative where there is none.

        Only of those that answer; the others, which are to be asked again, are the second part. `leaders` maps each
        partition to the broker that leads it.
        """
        listed = list_offsets(self._admin, times_ms, leaders)
        if len(listed.away) == len(times_ms):
            listed.raise_if_none()
        return {place: (of.offset, of.timestamp) for place, of in listed.found.items()}, listed.away


def _timeouts(held: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, int]:
    groups = held.get("group", {})
    return {
        group: int(options[_SESSION_TIMEOUT]["value"])
        for group, options in groups.items()
        if _SESSION_TIMEOUT in options
    }


def _reported(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, ReportedGroup]:
    found = ((name, _reported_group(said)) for name, said in groups.items())
    return {name: reported for name, reported in found if reported is not None}


def _reported_group(said: Mapping[str, Any]) -> ReportedGroup | None:
    error = said.get("error")
    if error:
        code = _CODE.match(error)
        if code is not None and (of := error_of(int(code[1]))) is not None and of in AWAY:
            return ReportedGroup(away=True, not_loaded=NOT_LOADED.get(of, ""))
        return ReportedGroup(refused=True) if _REFUSED in error else None
    return ReportedGroup(state=str(said.get("group_state") or ""), members=len(said.get("members") or ()))
