"""Whether groups that no broker lists any more are gone.

That no broker lists a group does not say so. A broker that shuts down lists the groups of the partitions that it still
has, without an error; a coordinator that moves is between two brokers, and one whose partition has no leader is at
none. So each missing group is asked for by name:

    its coordinator says            the group is
    no such group, or Dead          gone
    it may not be described         refused, as one that is listed
    anything of the group           there: it is listed the next time
    an error, or there is none      not known: shown as it was, and the round is not whole
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from kafka.errors import KafkaError
from kafka.protocol.metadata import FindCoordinatorRequest

from streaming.base.errors import first_line
from streaming.kafka.lazy_admin import LazyAdmin, error_of
from streaming.polling.answers import DEAD

GROUPS_AT_ONCE: Final = 100
"""In one request."""

TOPIC_REFUSED: Final = 29
GROUP_REFUSED: Final = 30
NOT_FOUND: Final = 69
"""GROUP_ID_NOT_FOUND; before version 6 of DescribeGroups the answer is the state *Dead* instead (KIP-1043)."""

_OF_GROUPS: Final = 0
"""`KeyType` of FindCoordinator."""
_MANY_KEYS: Final = 4
"""Version of FindCoordinator from which on one request may be about several groups (KIP-699, brokers from 3.0 on)."""


@dataclass(slots=True)
class Missing:
    """Asks for missing groups by name.

    Args:
        admin: asks for their coordinators.
        describe: asks a broker about groups of one type; an answer of each. Raises KafkaError.

    Attributes:
        gone: groups that are not there any more.
        refused: group → code of `REFUSALS`.
        unanswered: group → why it is not known whether it is there.
    """

    admin: LazyAdmin
    describe: Callable[[str, Sequence[str], int], Sequence[Any]]
    gone: set[str] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
    unanswered: dict[str, str] = field(default_factory=dict)

    def ask(self, missing: Mapping[str, str], broker: int) -> None:
        """Ask for groups (name → type), for their coordinators by way of a broker. Never raises KafkaError."""
        for names in lots(missing):
            by_place: dict[tuple[int, str], list[str]] = {}
            for name, place in self._coordinators(names, broker).items():
                by_place.setdefault((place, missing[name]), []).append(name)
            for (place, type_), there in by_place.items():
                try:
                    groups = self.describe(type_, there, place)
                except KafkaError as error:
                    self.unanswered |= dict.fromkeys(there, first_line(error))
                    continue
                for group in groups:
                    self._take(group)

    def failure(self) -> str | None:
        """What is not known, with one of the groups; None for nothing."""
        if not self.unanswered:
            return None
        name, why = next(iter(self.unanswered.items()))
        return (
            f"groups listed before without an answer of their coordinator: {len(self.unanswered)}, as {name!r}: {why}"
        )

    def _coordinators(self, names: Sequence[str], broker: int) -> dict[str, int]:
        places = {}
        try:
            for name, answer in self._places(names, broker):
                if not self._is_error(name, answer.error_code):
                    places[name] = answer.node_id
        except KafkaError as error:
            self.unanswered |= {name: first_line(error) for name in names if name not in places}
        return places

    def _places(self, names: Sequence[str], broker: int) -> Iterator[tuple[str, Any]]:
        version = self.admin.ask(lambda client: client.get_broker_version_data(broker)).api_version(
            FindCoordinatorRequest
        )
        if version >= _MANY_KEYS:
            request = FindCoordinatorRequest(key_type=_OF_GROUPS, coordinator_keys=list(names), min_version=_MANY_KEYS)
            for answer in self.admin.send(request, broker).coordinators:
                yield answer.key, answer
            return
        for name in names:
            request = FindCoordinatorRequest(key=name, key_type=_OF_GROUPS, max_version=_MANY_KEYS - 1)
            yield name, self.admin.send(request, broker)

    def _take(self, group: Any) -> None:  # noqa: ANN401 - kafka-python has no types
        name, code = group.group_id, group.error_code
        if code == NOT_FOUND or (not code and group.group_state == DEAD):
            self.gone.add(name)
        else:
            self._is_error(name, code)

    def _is_error(self, name: str, code: int) -> bool:
        """Whether the code is one; it is noted."""
        kind = error_of(code)
        if code in (TOPIC_REFUSED, GROUP_REFUSED):
            self.refused[name] = code
        elif kind is not None:
            self.unanswered[name] = kind.__name__
        return kind is not None


def lots(names: Iterable[str]) -> Iterator[list[str]]:
    """Names, as many at a time as one request may ask for."""
    rest = iter(names)
    while lot := list(islice(rest, GROUPS_AT_ONCE)):
        yield lot
