"""The reference coordinator and the replica, side by side: what tests of both have in common.

A `Scene` is a group of which the test decides what happens to it, among others to which anything lawful may happen.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any, Final

from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Position
from tests.histories import PARTITION, History, LogRecord, shown
from tests.simulator import readers
from tests.simulator.cluster import RELEASES, Cluster
from tests.simulator.coordinator import ReferenceCoordinator
from tests.simulator.driver import DEEDS, happen, history_of

GROUPS: Final = (
    ("g", "range", "consumer"),
    ("h", "cooperative-sticky", "consumer"),
    ("s", "sticky", "consumer"),
    ("q", "range", "share"),
    ("w", "range", "streams"),
)
"""Name, assignor of its classic members, and what it may become besides classic."""
BY_DESIGN: Final = {
    "downgrade_started",
    "member_fenced",
    "rebalance_rounds_lost",
    "static_member_absent",
    "topic_recreated",
}
"""Kinds that a lawful history is worth a warning for, besides an offset that goes back."""

Views = dict[str, dict[str, Any]]


def log_of(coordinator: ReferenceCoordinator) -> History:
    """What it wrote, as a recording holds it; where Hypothesis finds a test failing, it is shown."""
    return shown(history_read(readers.recorded(coordinator.log), coordinator))


def history_read(read: Iterable[readers.Read], coordinator: ReferenceCoordinator) -> History:
    """What a reader got, with the names of the topics that there are now."""
    records = (LogRecord(Position(PARTITION, of.offset, of.time_ms), *of.record) for of in read)
    return History(tuple(records), coordinator.cluster.topic_names())


def comparable(views: Views, known: Views) -> Views:
    """GROUP views with what the coordinator's have of each, which is no inference of the model's.

    A mixed group is mixed, whichever way it is going.
    """
    return {name: _as_known(view, known[name]) if name in known else view for name, view in views.items()}


def _as_known(view: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {key: view.get(key) for key in known}
    for part in known.keys() & {"migration", "topology"}:
        shown[part] = {key: view[part].get(key) for key in known[part]}
    for part in ("members", "offsets"):
        keys = known[part][0].keys() if known[part] else ()
        shown[part] = [{key: item.get(key) for key in keys} for item in view[part]]
    if view["type"] == "consumer" and shown["migration"]["phase"] in ("upgrading", "downgrading", None):
        shown["migration"]["phase"] = "mixed"
    return shown


def without_past(views: Views) -> Views:
    """The same without what only the past shows, which a cleaned log does not hold.

    That is the way a mixed group goes, and since when, how often it was converted and what came of it; who stood for an
    instance id; who came or went when; when a member on the classic protocol rejoined; and whether the memory of a
    broker that has computed no target yet started at 0 or 1.
    """
    lost = ("phase", "mixed_since", "conversions", "members_before", "downgrade", "upgrade")
    return {
        name: {
            **{key: item for key, item in view.items() if key not in ("static_members", "scaling")},
            "assignment_epoch": None if view["assignment_epoch"] is None else max(view["assignment_epoch"], 1),
            "members": [{key: of[key] for key in of if key != "classic_protocol"} for of in view["members"]],
            "migration": {key: item for key, item in view["migration"].items() if key not in lost},
        }
        for name, view in views.items()
    }


def is_by_design(event: Event, coordinator: ReferenceCoordinator) -> bool:
    """Whether a lawful history may show it.

    A sticky assignor remembers across a downgrade what a member had in the consumer group, where each moves on alone.
    A custom one's data blocks an upgrade.
    """
    group = coordinator.groups[event.group]
    if event.kind == "stale_claim":
        return event.group in coordinator.downgraded and group.protocol == "sticky"
    if event.kind == "upgrade_blocked":
        return group.custom_assignor
    return event.kind in BY_DESIGN or event.kind == "offset_rewound"


def oddities_said(events: list[Event]) -> readers.Oddities:
    """What events say of offsets that went back, each of them, and of topics that were made again."""
    rewinds = [
        (of.group, *partition_of(name), offsets["from"], offsets["to"])
        for of in events
        if of.kind == "offset_rewound"
        for name, offsets in of.detail["offsets"].items()
    ]
    recreated = [(of.group, of.detail["topic"]) for of in events if of.kind == "topic_recreated"]
    return readers.Oddities(sorted(rewinds), sorted(recreated))


def partition_of(name: str) -> tuple[str, int]:
    """`topic/partition` in its parts."""
    topic, _, partition = name.rpartition("/")
    return topic, int(partition)


def alarms(events: list[Event]) -> Counter[tuple[str, str]]:
    """(group, kind) → how many events beyond information that no lawful history shows."""
    lawful = {*BY_DESIGN, "offset_rewound"}
    return Counter((of.group, of.kind) for of in events if of.severity != INFO and of.kind not in lawful)


def cleaned(log: History, before: int, *, drop_tombstones: bool) -> History:
    """As the cleaner leaves it: of the first `before` records the last of each key, tombstones for a day only."""
    kept = log.compacted(before).records
    dirty = {of.place.offset for of in log.records[before:]}
    live = (of for of in kept if of.value is not None or of.place.offset in dirty or not drop_tombstones)
    return replace(log, records=tuple(live))


def cleaned_while_read(log: History, read: int, first: int, then: int, *, drop_tombstones: bool) -> History:
    """The first `read` records as they were cleaned up to `first`, what follows as it was cleaned up to `then`.

    What was read is there for good; of what follows, records are missing that later ones replace (KAFKA-19862).
    """
    early = {of.place.offset for of in log.records[:read]}
    before = (
        of for of in cleaned(log, min(first, read), drop_tombstones=drop_tombstones).records if of.place.offset in early
    )
    after = (of for of in cleaned(log, then, drop_tombstones=False).records if of.place.offset not in early)
    return replace(log, records=(*before, *after))


def lawful(seed: int) -> ReferenceCoordinator:
    """A history of some dozens of events, half of them in one group, of brokers of any release."""
    chance = Random(seed)
    coordinator = ReferenceCoordinator(cluster=Cluster(release=chance.choice(list(RELEASES.values()))))
    if chance.random() < 0.3:
        del coordinator.cluster.partitions["v"]  # a source topic that streams applications wait for
    for name, protocol, family in chance.sample(GROUPS, 2):
        coordinator.open(name, protocol=protocol, family=family).standbys = chance.randint(0, 1)
    return history_of(coordinator, chance, length=chance.randint(5, 80))


VICTIM: Final = "victim"
OF_THE_CLUSTER: Final = ("grow", "recreate", "upgrade_brokers", "commit_in_transaction")
"""What would happen to the victim, too, or would keep it from being read."""


class Scene:
    """A coordinator with traffic of other groups before, between and after what happens to one."""

    def __init__(self, seed: int, protocol: str = "range", family: str = "consumer") -> None:
        self._chance = Random(seed)
        self.coordinator = ReferenceCoordinator()
        for name, of, may_become in GROUPS:
            self.coordinator.open(name, protocol=of, family=may_become)
        self.group = self.coordinator.open(VICTIM, protocol=protocol, family=family)
        self.traffic()

    def traffic(self) -> None:
        """Some things happen to other groups."""
        for _ in range(self._chance.randint(0, 6)):
            name, _, family = self._chance.choice(GROUPS)
            deeds = [of for of in DEEDS[family] if of not in OF_THE_CLUSTER]
            happen(self.coordinator, self.coordinator.groups[name], self._chance.choice(deeds), self._chance)
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

    def streams_members(self, number: int) -> None:
        for _ in range(number):
            self.coordinator.join_streams(self.group)
            self.coordinator.settle(self.group)
            self.traffic()

    def share_members(self, number: int) -> None:
        for _ in range(number):
            self.coordinator.join_share(self.group)
            self.coordinator.settle(self.group)
            self.traffic()

    def reported(self) -> tuple[list[Event], History]:
        """What a replica shows of the victim; it holds what the coordinator holds, and no one else alarmed."""
        self.traffic()
        log = log_of(self.coordinator)
        reported = log.replayed()
        views = self.coordinator.views()
        assert views == comparable(reported.views, views)
        assert {VICTIM} >= {group for group, kind in alarms(reported.events) if kind != "stale_claim"}
        return [of for of in reported.events if of.group == VICTIM], log


def kinds(events: list[Event], *, besides: Iterable[str] = ()) -> Counter[str]:
    """Alarms of the victim, and what says that one is over; of those that lawful histories show, the ones `besides`."""
    over, passed_over = {"duplicate_assignment_cleared"}, BY_DESIGN - {*besides}
    return Counter(of.kind for of in events if of.kind in over or (of.severity != INFO and of.kind not in passed_over))
