"""The reference coordinator and the replica, side by side: what tests of both have in common.

A `Scene` is a group of which the test decides what happens to it, among others to which anything lawful may happen.
"""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any, Final

from coordinator_model.events import INFO, Event
from tests.histories import History, at, history
from tests.simulator.coordinator import ReferenceCoordinator
from tests.simulator.driver import DEEDS, happen, history_of
from tests.simulator.memory import Group

GROUPS: Final = (("g", "range"), ("h", "cooperative-sticky"), ("s", "sticky"))
BY_DESIGN: Final = {"downgrade_started", "rebalance_rounds_lost", "static_member_absent"}
"""Kinds that a lawful history is worth a warning for, besides an offset that goes back."""

Views = dict[str, dict[str, Any]]


def log_of(coordinator: ReferenceCoordinator) -> History:
    """What it wrote, as a history."""
    return history(*(at(written.time_ms, *written.records) for written in coordinator.log))


COMPARED: Final = {
    "members": frozenset(
        "member_id instance_id client_id client_host protocol epoch state assigned pending_revocation target".split()  # noqa: SIM905 - a list literal takes a line a word
    ),
    "offsets": frozenset("topic partition offset leader_epoch metadata commit_timestamp topic_id".split()),  # noqa: SIM905 - as above
    "migration": frozenset("phase members upgraded_members mixed_since blockers leftovers".split()),  # noqa: SIM905 - as above
}
"""Part of a GROUP → what is fact of it; the rest is concluded from these."""


def comparable(views: Views) -> Views:
    """GROUP views without what is concluded.

    A mixed group is mixed, whichever way it is going: the simulator does not call it.
    """
    ways = ("upgrading", "downgrading")
    return {
        name: {
            **view,
            "members": [_only(COMPARED["members"], member) for member in view["members"]],
            "offsets": [_only(COMPARED["offsets"], offset) for offset in view["offsets"]],
            "migration": {
                **_only(COMPARED["migration"], view["migration"]),
                "phase": "mixed" if view["migration"]["phase"] in ways else view["migration"]["phase"],
            },
        }
        for name, view in views.items()
    }


def _only(names: frozenset[str], part: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in part.items() if name in names}


def without_past(views: Views) -> Views:
    """The same without what only the past tells, which a cleaned log does not hold."""
    lost = ("phase", "mixed_since")
    return {
        name: {**view, "migration": {key: item for key, item in view["migration"].items() if key not in lost}}
        for name, view in views.items()
    }


def is_by_design(event: Event, groups: dict[str, Group]) -> bool:
    """Whether a lawful history may show it.

    A sticky assignor remembers across a downgrade what a member had in the consumer group, where each moves on alone.
    """
    group = groups.get(event.group)
    remembered = group is not None and group.protocol == "sticky" and group.was_downgraded
    return event.kind in BY_DESIGN or event.kind == "offset_rewound" or (event.kind == "stale_claim" and remembered)


def alarms(events: list[Event]) -> Counter[tuple[str, str]]:
    """(group, kind) → how many events beyond information that no lawful history shows."""
    lawful = {*BY_DESIGN, "offset_rewound"}
    return Counter((of.group, of.kind) for of in events if of.severity != INFO and of.kind not in lawful)


def cleaned(log: History, before: int, *, drop_tombstones: bool) -> History:
    """As the cleaner leaves it: up to `before` the last record of each key, tombstones for a day only."""
    compacted = log.compacted(before)
    kept = (of for of in compacted.records if of.value is not None or of.place.offset >= before or not drop_tombstones)
    return replace(compacted, records=tuple(kept))


def lawful(seed: int) -> ReferenceCoordinator:
    """A history of some dozens of events, half of them in one group."""
    chance = Random(seed)
    return history_of(chance, *chance.sample(GROUPS, 2), length=chance.randint(5, 60))


VICTIM: Final = "victim"


class Scene:
    """A coordinator with traffic of other groups before, between and after what happens to one."""

    def __init__(self, seed: int, protocol: str = "range") -> None:
        self._chance = Random(seed)
        self.coordinator = ReferenceCoordinator()
        for name, of in GROUPS:
            self.coordinator.open(name, protocol=of)
        self.group = self.coordinator.open(VICTIM, protocol=protocol)
        self.traffic()

    def traffic(self) -> None:
        """Some things happen to other groups."""
        for _ in range(self._chance.randint(0, 6)):
            group = self.coordinator.groups[self._chance.choice(GROUPS)[0]]
            happen(self.coordinator, group, self._chance.choice(list(DEEDS)), self._chance)
        self.coordinator.lag(5_000)

    def classic_members(self, number: int, *, static: bool = False) -> None:
        for _ in range(number):
            self.coordinator.join_classic(self.group, static=static)
            self.traffic()
        self.coordinator.rebalance(self.group)  # a cooperative group's second round
        self.traffic()

    def consumer_members(self, number: int) -> None:
        for _ in range(number):
            self.coordinator.join_consumer(self.group)
            self.coordinator.settle(self.group)
            self.traffic()

    def told(self) -> tuple[list[Event], History]:
        """What a replica tells of the victim; it holds what the coordinator holds, and nobody else alarmed."""
        self.traffic()
        log = log_of(self.coordinator)
        told = log.replayed()
        assert self.coordinator.views() == comparable(told.views)
        assert {VICTIM} >= {group for group, kind in alarms(told.events) if kind != "stale_claim"}
        return [of for of in told.events if of.group == VICTIM], log


def kinds(events: list[Event]) -> Counter[str]:
    """Alarms of the victim, and what says that one is over."""
    over = {"duplicate_assignment_cleared"}
    return Counter(of.kind for of in events if of.kind in over or (of.severity != INFO and of.kind not in BY_DESIGN))
