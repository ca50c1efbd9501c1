"""What is expected of groups, as the configuration says: alarms that are none, and one that is worse than usual.

Which kinds an expectation holds back say their rows (`coordinator_model/kinds/table.py`); of `never_downgrades` what is
inferred is held back, and what is certain is critical.

An alarm that is held back stays where it would have been, as information, and says so: its detail has `expected` with
the expectation, its reason, owner and runbook. It is counted (`kafka_group_silenced_total`), and rules of Prometheus
leave out what has that series. What ends is not held back: it is information anyway. What goes on when a configuration
expects it no more is reported once (`watchers/overdue_watch.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from coordinator_model.kinds.table import (
    CRITICAL,
    INFO,
    KINDS,
    NEVER_DOWNGRADES,
    RESTARTS,
    SEEKS_BACK,
    SHARES_PARTITIONS,
    SHRINKS,
)
from streaming.base.name_filter import remembered

HELD_BACK: Final[Mapping[str, tuple[str, ...]]] = {
    expectation: tuple(kind for kind, row in KINDS.items() if row.expected_by == expectation)
    for expectation in (SHARES_PARTITIONS, SEEKS_BACK, RESTARTS, SHRINKS, NEVER_DOWNGRADES)
}
"""Expectation → kinds of events that it holds back."""

EXPECTED: Final = "expected"
"""Key of an event's detail."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of the groups whose names match a pattern."""

    pattern: str
    expectations: frozenset[str]
    reason: str
    owner: str | None = None
    runbook: str | None = None
    note: str | None = None

    def as_json(self, expectation: str) -> dict[str, Any]:
        """One of its expectations, as an event's detail has it."""
        return {"expectation": expectation, "reason": self.reason, "owner": self.owner, "runbook": self.runbook}


class Expectations:
    """The expectations of a configuration; of a group all count whose pattern matches it."""

    def __init__(self, expected: Iterable[Expected] = ()) -> None:
        self._all = tuple(expected)
        self._of = remembered(self._matching)

    def __bool__(self) -> bool:
        return bool(self._all)

    def kinds(self, group: str) -> Mapping[str, dict[str, Any]]:
        """Kind of event → why it is held back for this group."""
        return self._of(group)

    def owner(self, group: str) -> str | None:
        """Whom to ask about a group: the first pattern that matches and names an owner says; None where none does."""
        return next((of.owner for of in self._all if of.owner is not None and fnmatchcase(group, of.pattern)), None)

    def note(self, group: str) -> str | None:
        """What is to be said of a group in a plan, as `owner`."""
        return next((of.note for of in self._all if of.note is not None and fnmatchcase(group, of.pattern)), None)

    def applied(self, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Events as they are reported: those that were expected as information."""
        return [self._event(event) for event in events]

    def _matching(self, group: str) -> Mapping[str, dict[str, Any]]:
        return {
            kind: of.as_json(expectation)
            for of in reversed(self._all)
            if fnmatchcase(group, of.pattern)
            for expectation in of.expectations
            for kind in HELD_BACK[expectation]
        }

    def _event(self, event: Mapping[str, Any]) -> dict[str, Any]:
        why = self.kinds(event["group"]).get(event["kind"])
        if why is None or event["severity"] == INFO:
            return dict(event)
        broken = why["expectation"] == NEVER_DOWNGRADES and not event["inferred"]
        detail = {**event["detail"], EXPECTED: {**why, "broken": True} if broken else why}
        return {**event, "severity": CRITICAL if broken else INFO, "detail": detail}


def is_held_back(event: Mapping[str, Any]) -> bool:
    """Whether an alarm was expected, and is reported as information."""
    return event.get("severity") == INFO and EXPECTED in event.get("detail", {})
