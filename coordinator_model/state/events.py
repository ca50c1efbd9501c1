"""What the model concludes from the records: one kind of event per sentence an operator would say.

The table below is the whole vocabulary (`docs/events.md`). An event's time is the log's, its position is
the position of the record that showed it, and its id is made of these alone, so the same log gives the same ids however
often and in whatever batches it is read.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

INFO: Final = "info"
WARNING: Final = "warning"
CRITICAL: Final = "critical"

SEVERITIES: Final[Mapping[str, str]] = {
    "group_created": INFO,
    "group_deleted": INFO,
    "group_emptied": INFO,
    "group_in_two_partitions": INFO,
    "member_joined": INFO,
    "member_left": INFO,
    "member_fenced": WARNING,
    "rebalance_started": INFO,
    "rebalance_completed": INFO,
    "coordinator_not_loaded": INFO,
    "rebalance_stuck": CRITICAL,
    "rebalance_storm": WARNING,
    "rebalance_rounds_lost": WARNING,
    "duplicate_assignment": CRITICAL,
    "duplicate_assignment_cleared": INFO,
    "partition_unassigned": WARNING,
    "handover_without_revocation": WARNING,
    "stale_claim": WARNING,
    "static_member_absent": WARNING,
    "static_member_returned": INFO,
    "static_member_replaced": INFO,
    "static_member_contended": CRITICAL,
    "static_member_restarting": WARNING,
    "upgrade_started": INFO,
    "upgrade_completed": INFO,
    "upgrade_unclean": WARNING,
    "upgrade_blocked": WARNING,
    "downgrade_started": WARNING,
    "downgrade_completed": INFO,
    "downgrade_unclean": WARNING,
    "migration_stalled": WARNING,
    "group_unsettled": WARNING,
    "offset_rewound": WARNING,
    "offset_deleted": INFO,
    "topic_recreated": WARNING,
    "epoch_anomaly": WARNING,
    "unknown_record": WARNING,
    "log_truncated": WARNING,
}
"""Kind of event → its usual severity. An event may carry another one where the rule that makes it says so."""

MEANINGS: Final[Mapping[str, str]] = {
    "group_created": "A group has members or offsets for the first time.",
    "group_deleted": "Nothing of the group is left: it was deleted, or it was empty and its offsets expired.",
    "group_emptied": "The last member left or expired.",
    "group_in_two_partitions": "Another partition of the offsets topic has records of the group, too, as after the "
    "topic was grown: one copy is the group, the other changes nothing of it.",
    "member_joined": "Somebody is a member who was not.",
    "member_left": "Somebody is no longer a member: it left, its session expired, or an admin removed it.",
    "member_fenced": "A member was removed after its rebalance timeout: it had not released what it had to, or, on the "
    "classic protocol in a mixed group, had not joined again.",
    "rebalance_started": "The group is on its way to another assignment.",
    "rebalance_completed": "Every member has what it shall have.",
    "coordinator_not_loaded": "No coordinator worked in an offsets partition for a while, or a clock was set ahead: "
    "nothing was written, far longer than usual, or its leader did not answer. Times of its groups run from the end of "
    "it, and no member is to blame. Of no group: its `group` is null.",
    "rebalance_stuck": "A rebalance waits beyond its timeouts: for a member to revoke, for partitions, for a target.",
    "rebalance_storm": "More rebalances in five minutes than restarting every member would take.",
    "rebalance_rounds_lost": "Generations were begun and never completed: members did not rejoin, or the leader did "
    "not answer in time.",
    "duplicate_assignment": "Two members own one partition, so its records are processed twice.",
    "duplicate_assignment_cleared": "It has one owner again.",
    "partition_unassigned": "A partition of a subscribed topic had no owner for longer than a rebalance may take.",
    "handover_without_revocation": "A cooperative leader gave a partition to another member in the very round in which "
    "its owner still claimed it.",
    "stale_claim": "A member joined claiming partitions of an older generation, or two claim one partition.",
    "static_member_absent": "A static member closed and keeps its partitions until it is back or its session expires.",
    "static_member_returned": "It came back in time, which saved a rebalance.",
    "static_member_replaced": "Another process took over the instance id.",
    "static_member_contended": "Two processes fence each other under one instance id: one that lost it took it back. "
    "Of classic members only: the consumer protocol refuses the second process, and writes nothing.",
    "static_member_restarting": "One process takes an instance id again and again, less than ten minutes apart; or two "
    "processes on one host, or two that look alike in a classic group.",
    "upgrade_started": "A classic group has taken in its first member of the consumer protocol.",
    "upgrade_completed": "No classic member is left; how many are still awaited in their places is said.",
    "upgrade_unclean": "An online upgrade did not begin at the classic group's generation, or lost or moved members, "
    "assignments or offsets.",
    "upgrade_blocked": "A broker would refuse the first member of the consumer protocol, for the reasons named.",
    "downgrade_started": "A group of the consumer protocol has taken in a classic member, or a roll turned round.",
    "downgrade_completed": "It is a classic group again; its assignments and offsets are compared with those before.",
    "downgrade_unclean": "Records of the consumer protocol outlived the downgrade; an older broker would meet them.",
    "group_unsettled": "The group has not come to rest for ten minutes (`alarms.unsettled_after_ms`), and more epochs "
    "went by than rolling its members twice takes: members come and go, and are named.",
    "migration_stalled": "A group of both protocols in which no member came or went for half an hour.",
    "offset_rewound": "Committed offsets went back at one moment: a member sought back, or a former owner committed; "
    "`info` where the group has no member, so that an admin or MirrorMaker did.",
    "offset_deleted": "A committed offset expired, was deleted, or went with its topic or group.",
    "topic_recreated": "Commits name another topic id: the topic was deleted and recreated under its name.",
    "epoch_anomaly": "Records contradict each other in a way that no coordinator writes.",
    "log_truncated": "An offsets partition lost records that had been read, as in an unclean election: what its groups "
    "did last is undone, and they were read again from its beginning. Of no group: its `group` is null.",
    "unknown_record": "A record of a type, or a value of a version, that Kafka 4.3 does not have.",
}
"""Kind of event → what has happened, and by what cause where there are several."""


OF_NO_GROUP: Final = frozenset({"coordinator_not_loaded", "log_truncated"})
"""Kinds that are about a partition of the log: their group is empty here, and null where they leave the monitor."""


@dataclass(slots=True, kw_only=True)
class Event:
    """One conclusion, never changed.

    `time_ms` is the record's timestamp, `offset` the record's place in its offsets partition.
    """

    # Not frozen, for the reason that findings are not.

    time_ms: int
    group: str
    kind: str
    severity: str
    partition: int
    offset: int
    detail: Mapping[str, Any] = field(default_factory=dict)
    inferred: bool = False
    """True where the log does not state it and a rule concluded it."""
    ordinal: int = 0
    """Distinguishes events of one kind shown by one record."""

    @property
    def id(self) -> str:
        """Stable name of this event: the same log always gives it again, so consumers can drop repeats.

        Of a polled group no record showed it: when it was first seen stands for the record's place.
        """
        place = f"{self.partition}-{self.offset}"
        if self.partition < 0:
            place = f"polled-{crc32(self.group.encode('utf-8', 'surrogatepass')):08x}-{self.time_ms}"
        return f"{place}-{self.kind}-{self.ordinal}"


def event_view(event: Event) -> dict[str, Any]:
    """The event as JSON (`docs/schemas/event.schema.json`), with its stable `id`."""
    return {
        "id": event.id,
        "time": event.time_ms,
        "group": event.group,
        "kind": event.kind,
        "severity": event.severity,
        "partition": event.partition,
        "offset": event.offset,
        "detail": dict(event.detail),
        "inferred": event.inferred,
    }
