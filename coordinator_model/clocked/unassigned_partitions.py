"""Partitions of subscribed topics that no member holds, so that none reads them.

How many partitions a topic has is not in the log (except of brokers up to 4.0), so it arrives as an argument: from
the end offset sampler, or from a recording's header. A topic without a count, as one that does not exist, is left
out. Where no count is known, or a member's subscription cannot be read, nothing can be said; streams groups hold tasks,
not partitions, and are not asked.

For a while it is legal (`docs/coordinator-log.md`, "Legal, though it looks wrong"):

    a partition rests                                                             for at most
    between the two rounds of a cooperative rebalance                             the rebalance timeout
    while its old owner has revoked it and the new one has not called in          a heartbeat interval
    while a rebalance is under way                                                the rebalance timeout
    after the topic has grown                                                     metadata.max.age.ms, and a rebalance

So it is a finding once it has lasted for all of these together, and each partition opens and clears for itself. A
group without members holds nothing, and says so in another way.

A recording says how many partitions a topic has in the end; when each appeared is asked of its records
(`topic_growth.py`), and before it no one lacked it.

Nothing is written when the time is over, so somebody has to look, again and again (`Unassigned.look`). The event
belongs to the record that last changed who holds what: that stays the same for every monitor, and after a restart.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, Protocol

from coordinator_model.clocked.lasting import LastingAlarms
from coordinator_model.rules import partition_holders
from coordinator_model.rules.members import Member, members_of
from coordinator_model.rules.rebalances import DEFAULT_REBALANCE_TIMEOUT_MS
from coordinator_model.rules.subscriptions import subscribed_topics
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import STREAMS, ClassicMember, Membership

METADATA_MAX_AGE_MS: Final = 300_000
"""How long a client by default does not notice that a topic has grown: metadata.max.age.ms."""

LONGEST_REBALANCE_TIMEOUT_MS: Final = 1_800_000
"""Some clients say "for ever", by the largest number there is; no client means to wait so long for partitions."""

KIND: Final = "partition_unassigned"

_SHOWN_MEMBERS: Final = 10

_Place = tuple[str, int]
"""(topic, partition)."""

Unheld = Mapping[str, tuple[int, ...]]
"""Topic name → partitions that no member holds, ascending."""


class SizedTopic(Protocol):
    """A topic as far as it is needed here."""

    @property
    def id(self) -> str | None:
        """22-character text form of its id; None where that is not known."""
        ...

    @property
    def partitions(self) -> int:
        """How many it has."""
        ...


def unheld(
    membership: Membership, topics: Mapping[str, SizedTopic], held: Mapping[str, Collection[int]] | None = None
) -> Unheld | None:
    """Partitions of subscribed topics that no member holds; None where that is not known.

    Args:
        membership: the group's.
        topics: topics by name.
        held: `partition_holders.held` of the membership, where it is known already.
    """
    if not assignments_known(membership):
        return None
    held = partition_holders.held(membership) if held is None else held
    return unheld_of(subscribed_topics(membership), held, topics, by_id=membership.modern_group is not None)


def assignments_known(membership: Membership) -> bool:
    """Whether such a membership says at all which partitions its members should hold."""
    modern = membership.modern_group
    classic = membership.classic_group
    if modern is not None and modern.family == STREAMS:
        return False
    return classic is None or all(member.claim is not None for member in classic.members.values())


def unheld_of(
    subscribed: Iterable[str], held: Mapping[str, Collection[int]], topics: Mapping[str, SizedTopic], *, by_id: bool
) -> Unheld | None:
    """The same from what is known of a membership: topics subscribed to, and partitions held by topic id or name."""
    found: dict[str, tuple[int, ...]] = {}
    asked = sorted(subscribed)
    known = {name: topics[name].id if by_id else name for name in asked if name in topics}
    if asked and not any(known.values()):
        return None
    for name, key in known.items():
        if key is None:
            continue  # who holds it is said by id
        rest = set(range(topics[name].partitions)).difference(held.get(key, ()))
        if rest:
            found[name] = tuple(sorted(rest))
    return found


class Unassigned:
    """Follows the partitions that no member holds from look to look.

    Args:
        alarms: where what was reported of them is remembered.
        appeared_ms: since when a topic's partition is there; None for all along, as of a topic that one sees grow.
    """

    def __init__(
        self, alarms: LastingAlarms | None = None, appeared_ms: Callable[[str, int], int | None] | None = None
    ) -> None:
        self._alarms = LastingAlarms() if alarms is None else alarms
        self._appeared_ms = appeared_ms
        self._since_ms: dict[str, dict[_Place, int]] = {}
        """Group → since when no member holds a partition, as far as seen."""

    @property
    def followed(self) -> AbstractSet[str]:
        """Groups with such partitions: those that have to be looked at although nothing of them changes."""
        return self._since_ms.keys()

    @property
    def overdue(self) -> AbstractSet[str]:
        """Groups reported to have partitions that no member holds, and that still have some."""
        return self._alarms.of_kind(KIND)

    def resume(self, reported: Iterable[Event]) -> None:
        """Take up what was reported before a restart: openings and endings, in their order."""
        for event in reported:
            if event.kind != KIND:
                continue
            places = {(topic, p) for topic, parts in event.detail["partitions"].items() for p in parts}
            if event.detail.get("cleared"):
                self._alarms.closed(event.group, KIND, map(_name, places))
            else:
                self._alarms.opened(event, map(_name, places), event.time_ms)
                self._since_ms.setdefault(event.group, {}).update(dict.fromkeys(places, event.time_ms))
            if not self._alarms.open(event.group, KIND):
                self._since_ms.pop(event.group, None)

    def forget(self, names: Iterable[str]) -> None:
        """These groups are no more."""
        for name in names:
            self._since_ms.pop(name, None)
            self._alarms.closed(name, KIND, [*self._alarms.open(name, KIND)])

    def look(
        self, state: GroupState, unheld: Unheld | None, now_ms: int, *, first_seen_ms: int | None = None
    ) -> list[Event]:
        """What to report of a group at this moment; each partition is reported once, and its end once.

        Args:
            state: the group.
            unheld: what no member holds; None where that is not known, which neither opens nor clears anything.
            now_ms: the time.
            first_seen_ms: since when a partition seen for the first time counts; by default since now.
        """
        was = self._since_ms.get(state.name)
        if unheld is None or (not unheld and was is None):
            return []
        members = members_of(state.membership)
        places = {(topic, p) for topic, parts in unheld.items() for p in parts} if members else set()
        first_ms = now_ms if first_seen_ms is None else first_seen_ms
        since_ms = {place: (was or {}).get(place, first_ms) for place in places}
        if since_ms:
            self._since_ms[state.name] = since_ms
        else:
            self._since_ms.pop(state.name, None)
        reported = self._alarms.open(state.name, KIND)
        held = {place for place in was or () if place not in places and _name(place) in reported}
        allowed_ms = _allowed_ms(members.values())
        new = {place for place, ms in since_ms.items() if now_ms - ms > allowed_ms and _name(place) not in reported}
        if self._appeared_ms is not None:
            for topic, partition in new:
                there_ms = self._appeared_ms(topic, partition)
                if there_ms is not None:
                    since_ms[topic, partition] = max(since_ms[topic, partition], there_ms)
            new = {place for place in new if now_ms - since_ms[place] > allowed_ms}
        opened = _opened(state, new, now_ms - min((since_ms[of] for of in new), default=0))
        for event in opened:
            self._alarms.opened(event, map(_name, new), now_ms)
        self._alarms.closed(state.name, KIND, map(_name, held))
        return [*opened, *_cleared(state, held, max(((was or {})[of] for of in held), default=0), now_ms)]


def _opened(state: GroupState, places: Collection[_Place], for_ms: int) -> list[Event]:
    if not places:
        return []
    topics = {topic for topic, _ in places}
    asking = sorted(id_ for id_, of in members_of(state.membership).items() if topics & _asks_for(state, of))
    detail = {
        "partitions": _by_topic(places),
        "unassigned_ms": for_ms,
        "subscribed_members": len(asking),
        "members": asking[:_SHOWN_MEMBERS],
    }
    return _event(state, _changed_at(state), Finding(KIND, detail, inferred=True))


def _cleared(state: GroupState, places: Collection[_Place], since_ms: int, now_ms: int) -> list[Event]:
    """The end, with the record that last changed who holds what; its time is now where that was before the beginning.

    No record ends it where the topic is gone, or no member asks for it any more.
    """
    if not places:
        return []
    place = _changed_at(state)
    if place.timestamp_ms <= since_ms:
        place = place._replace(timestamp_ms=now_ms)
    detail = {"partitions": _by_topic(places), "cleared": True}
    return _event(state, place, Finding(KIND, detail, severity=INFO, inferred=True))


def _event(state: GroupState, place: Position, finding: Finding) -> list[Event]:
    """One record may show several of them, one after another: they differ in what they name."""
    named = repr((finding.severity, finding.detail["partitions"]))
    return list(events_of(state.name, place, [finding], first_ordinal=crc32(named.encode())))


def _changed_at(state: GroupState) -> Position:
    step = state.step
    if step is not None and partition_holders.changed(step.before, state.membership):
        return Position(state.partition, step.last_offset, step.timestamp_ms)
    return Position(state.partition, state.held_offset, state.held_ms)


def _allowed_ms(members: Iterable[Member]) -> int:
    stated = (member.rebalance_timeout_ms for member in members)
    longest = max((ms if ms > 0 else DEFAULT_REBALANCE_TIMEOUT_MS for ms in stated), default=0)
    return METADATA_MAX_AGE_MS + min(longest, LONGEST_REBALANCE_TIMEOUT_MS)


def _asks_for(state: GroupState, member: Member) -> set[str]:
    if isinstance(member, ClassicMember):
        return set() if member.claim is None else {*member.claim.topics}
    modern = state.membership.modern_group
    matched = () if modern is None else modern.regexes.get(member.subscribed_regex or "", ())
    return {*member.subscribed_topics, *matched}


def _name(place: _Place) -> str:
    topic, partition = place
    return f"{topic}/{partition}"


def _by_topic(places: Iterable[_Place]) -> dict[str, Any]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return found
