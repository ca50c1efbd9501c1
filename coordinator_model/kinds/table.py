"""Every kind of event, and of alarm: one row says what is to be known of it, and all else is derived from the row.

    derived                                                           by
    severity and meaning of its events, `docs/events.md`              `state/events.py`, `tests/doc_tables.py`
    what is said when it opens and when it is over                    `sentence`
    whether a group is at rest                                        `figures/table.py`
    why it needs a look, on page and in the terminal                  `streaming/board/attention.py`
    what its own page says of it, and which events a roll's shows     `streaming/web/routes.py`
    which members it is about, on the page and as a metric            `clocked/finding_members.py`
    whether it is still open: now, after a restart, and where an      `clocked/alarms.py`
    expectation that held it back is withdrawn
    which expectation of the configuration holds it back              `streaming/base/expectations.py`
    what a plan of migration says of it                               `gates/plan.py`

A kind that opens and clears is an `Alarm`: it is shown somewhere, or it is no alarm (`Alarm.__post_init__`). What finds
it is a function, with a row in `rules/table.py` or `clocked/table.py`; how time ends it stands in `clocked/endings.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from coordinator_model.kinds import sentences as said
from coordinator_model.kinds.words import listed

INFO: Final = "info"
WARNING: Final = "warning"
CRITICAL: Final = "critical"

RECORD: Final = "record"
TIME: Final = "time"
LOOK: Final = "look"

SHARES_PARTITIONS: Final = "shares_partitions"
SEEKS_BACK: Final = "seeks_back"
RESTARTS: Final = "restarts"
SHRINKS: Final = "shrinks"
NEVER_DOWNGRADES: Final = "never_downgrades"

ONLY: Final = ""
"""The name of an alarm where a group has one of its kind at most."""

Event = Mapping[str, Any]
Detail = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of event.

    Attributes:
        name: as events, metrics and the configuration have it.
        severity: its usual one. An event may carry another where the rule that makes it says so.
        meaning: what has happened, and by what cause where there are several.
        reads: of a verdict, which is every kind beyond information, what it is drawn from.
        limits: how long it waits, what it counts, and what it cannot see.
        sentence: what has happened by one event: a text, or what makes one of its detail and its time in milliseconds.
        inferred: of an event that is `inferred`, where that makes another thing of what happened.
        of_no_group: whether it is about a partition of the log: its group is empty here, and null where it leaves the
            monitor.
        on_roll_page: whether the page of a roll lists it.
        expected_by: which expectation of the configuration holds it back.
        so_since: of one that has lasted until it was found: what has been so since its time; it may say nothing.
    """

    name: str
    severity: str = INFO
    meaning: str
    reads: str = ""
    limits: str = ""
    sentence: str | Callable[[Detail, int], str]
    inferred: Callable[[Detail], str] | None = None
    of_no_group: bool = False
    on_roll_page: bool = False
    expected_by: str | None = None
    so_since: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm(Kind):
    """A kind that opens with its cause, is reported once, and clears with its cause.

    Attributes:
        ends: with what: a `RECORD` that is written, or `TIME` in which none is; a `LOOK` alone finds what begins by the
            clock, and its end.
        says_its_end: whether the rule that finds it by a `LOOK` finds its end as well; otherwise it is over when no
            look finds it for a minute.
        cleared: its end in a sentence; None where that is a kind of its own.
        cleared_as: that kind.
        one, many: what the page says of one, and of `{}` of them; no `one` where it has no reason of its own to look.
        names_each: whether it says of each by what name it is open.
        shown_as: what shows it there: another's reason, or a part of the group's answer.
        reason: as which code the page shows it among the reasons to look, where that is not its name.
        look: how severe that reason is, where that is not the severity of its events.
        since: figure of the group that says since when, of what a `LOOK` finds.
        instead_of: code of the reason that is not shown beside it, of what a `LOOK` finds.
        rank: its place among reasons of one severity, the least first.
        in_full: what the group's own page says, where there is more to say.
        metric: in which it can be seen.
        involves: whether its members are named as long as it lasts.
        names: under which names a reported one is open, by the detail of its event.
        before_a_roll: what to do before, where a group that is to be rolled needs care as long as it is open.
    """

    ends: str
    metric: str
    says_its_end: bool = False
    cleared: str | Callable[[Detail], str] | None = None
    cleared_as: str | None = None
    one: str = ""
    many: str = ""
    names_each: bool = False
    shown_as: str = ""
    reason: str | None = None
    look: str | None = None
    since: str = ""
    instead_of: str = ""
    rank: int = 1_000
    in_full: str = ""
    involves: bool = False
    names: Callable[[Detail], Iterable[str]] = lambda _: (ONLY,)
    before_a_roll: str = ""

    def __post_init__(self) -> None:
        """Refuse an alarm that is shown nowhere.

        Raises:
            ValueError: it has neither a reason to look nor another that shows it, or no end. What a look finds has a
                reason of its own: nothing in the group's answer says it.
        """
        if self.ends not in (RECORD, TIME, LOOK):
            raise ValueError(f"{self.name}: found ends={self.ends!r}, accepted: {RECORD}, {TIME}, {LOOK}")
        if self.ends == LOOK and not self.one:
            raise ValueError(f"{self.name}: found no one, accepted: a reason to look, as only a look finds it")
        if bool(self.one) == bool(self.shown_as):
            raise ValueError(
                f"{self.name}: found one={self.one!r} and shown_as={self.shown_as!r}, accepted: one of two"
            )
        if (self.cleared is None) == (self.cleared_as is None):
            raise ValueError(f"{self.name}: found cleared and cleared_as, or neither, accepted: one of two")

    @property
    def code(self) -> str | None:
        """As which the page shows it among the reasons to look; None where it has no reason of its own."""
        return (self.reason or self.name) if self.one else None

    def text(self, count: int, names: Sequence[str] = ()) -> str:
        """What the page says of so many, which are open by these names."""
        text = self.one if count == 1 or not self.many else self.many.format(f"{count:,}")
        return f"{text}: {listed(names)}" if self.names_each and names else text


def _process(detail: Detail) -> Iterable[str]:
    return (f"{detail['client_id']} {detail['client_host']}",)


def _instance(detail: Detail) -> Iterable[str]:
    return (detail["instance_id"],)


def _instances(detail: Detail) -> Iterable[str]:
    return detail.get("instance_ids") or _instance(detail)  # a former release named one


def _places(detail: Detail) -> Iterable[str]:
    return [f"{topic}/{partition}" for topic, parts in detail["partitions"].items() for partition in parts]


_ROWS: Final = (
    Kind(
        name="group_created",
        meaning="A group has members or offsets for the first time.",
        sentence=said.group_created,
    ),
    Kind(
        name="group_deleted",
        meaning="Nothing of the group is left: it was deleted, or it was empty and its offsets expired.",
        sentence="The group was deleted, or its last offsets expired",
    ),
    Kind(
        name="group_emptied",
        meaning="The last member left or expired.",
        sentence=said.group_emptied,
    ),
    Kind(
        name="group_in_two_partitions",
        meaning="Another partition of the offsets topic has records of the group, too, as after the topic was grown: "
        "one copy is the group, the other changes nothing of it.",
        sentence=said.group_in_two_partitions,
    ),
    Kind(
        name="member_joined",
        meaning="Somebody is a member who was not.",
        sentence=said.member_joined,
    ),
    Kind(
        name="member_left",
        meaning="Somebody is no longer a member: it left, its session expired, or an admin removed it.",
        sentence=said.member_left,
    ),
    Kind(
        name="member_fenced",
        severity=WARNING,
        meaning="A member was removed after its rebalance timeout: it had not released what it had to, or, on the "
        "classic protocol in a mixed group, had not joined again.",
        reads="Members before and after a step, what each has to release, and its rebalance timeout.",
        limits="Inferred: no record says why a member went. A member that goes an hour or more after its time was "
        "not fenced; classic groups have no such rule.",
        sentence=said.member_fenced,
    ),
    Kind(
        name="rebalance_started",
        meaning="The group is on its way to another assignment.",
        sentence=said.rebalance_started,
    ),
    Kind(
        name="rebalance_completed",
        meaning="Every member has what it shall have.",
        sentence=said.rebalance_completed,
    ),
    Kind(
        name="coordinator_not_loaded",
        severity=CRITICAL,
        meaning="The coordinator of an offsets partition did not load it: its leader is there, and answers "
        "NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS for longer than a load takes, so its groups neither join nor "
        "commit; reported once more when that is over (`cleared`). As information, with `until`: none worked there for "
        "a while, or a clock was set ahead; nothing was written, far longer than usual, or its leader did not answer. "
        "Times of its groups run from the end of it, and no member is to blame. Of no group: its `group` is null.",
        reads="What the leader answers about a group there, asked once nothing was written for half a minute; the end "
        "of the log, and for how long nothing is written as a rule.",
        limits="A minute, and as long as it takes to load what the log may hold at 10,000 records a second, in which "
        "the leader is the same and nothing is written. Where nothing is known of a habit, only with members. It needs "
        "DESCRIBE on a group there; polled groups are not asked.",
        sentence=said.coordinator_not_loaded,
        of_no_group=True,
    ),
    Alarm(
        name="rebalance_stuck",
        severity=CRITICAL,
        meaning="A rebalance waits beyond its timeouts: for a member to revoke, for partitions, for a target.",
        reads="Epochs, states and records' times of members; when the coordinator last moved. Of a classic group "
        "what its coordinator answers, asked where lag waits or a generation was lost.",
        limits="A member's own rebalance timeout and 10 s more; a minute for a target. In a recording no classic "
        "group can be stuck, as there is no coordinator to ask. Nothing opens while the coordinator does not answer.",
        sentence=said.rebalance_stuck,
        so_since="",
        cleared="The rebalance is no longer stuck",
        ends=LOOK,
        one="rebalance stuck",
        in_full="The rebalance is stuck",
        since="rebalancing_since_ms",
        instead_of="rebalancing",
        rank=20,
        metric="kafka_group_rebalancing_seconds",
        involves=True,
        before_a_roll="restart the member that the alarm names, and plan again: its rebalance does not end",
    ),
    Alarm(
        name="rebalance_storm",
        severity=WARNING,
        meaning="More rebalances in five minutes than restarting every member would take.",
        reads="When rebalances were completed, without those of conversions and without follow-up rounds; the number "
        "of members.",
        limits="More than 20, and 4 a member, within 5 minutes, of the most members it had in them; over at half as "
        "many. One that began below the live tail is reported with its next rebalance.",
        sentence=said.rebalance_storm,
        cleared="The rebalance storm is over",
        ends=TIME,
        one="rebalance storm",
        in_full="Rebalance storm: more rebalances in five minutes than a rolling restart takes",
        rank=110,
        metric="kafka_group_rebalances_total",
        expected_by=RESTARTS,
        before_a_roll="find out which members come and go, and plan again once the rebalances have stopped",
    ),
    Alarm(
        name="group_unsettled",
        severity=WARNING,
        meaning="The group has not come to rest for ten minutes (`alarms.unsettled_after_ms`), and more epochs went by "
        "than rolling its members twice takes: members come and go, and are named. One without members is at rest.",
        reads="Epochs or generations that went by since the group last came to rest; members that came and went "
        "meanwhile.",
        limits="10 minutes, as configured, and more than 20 epochs, and 4 a member; over after a minute at rest. A "
        "group without members is at rest.",
        sentence=said.group_unsettled,
        so_since="",
        cleared="The group has come to rest",
        ends=LOOK,
        one="does not settle",
        since="unsettled_since_ms",
        rank=100,
        metric="kafka_group_unsettled_seconds",
        expected_by=RESTARTS,
        before_a_roll="find out why the group does not come to rest, and plan again once it has",
    ),
    Kind(
        name="rebalance_rounds_lost",
        severity=WARNING,
        meaning="Generations were begun and never completed: members did not rejoin, or the leader did not answer in "
        "time; `info` where as many members joined meanwhile.",
        reads="Generations of a classic group that follow each other.",
        limits="Counts what is missing between two that were completed: why, and who did not rejoin, is not written. "
        "As many rounds as members are new are put down to them, and one to a group that is left without members.",
        sentence=said.rebalance_rounds_lost,
        expected_by=RESTARTS,
    ),
    Alarm(
        name="duplicate_assignment",
        severity=CRITICAL,
        meaning="Two members own one partition, so its records are processed twice.",
        reads="Who owns which partition: of a generation's assignments, or of current assignments with what is yet "
        "to be revoked.",
        limits="Share groups share by design and are not asked. Targets are not owned yet. Of the past, below the "
        "live tail, nothing is said.",
        sentence=said.duplicate_assignment,
        cleared_as="duplicate_assignment_cleared",
        ends=RECORD,
        one="1 partition owned twice",
        many="{} partitions owned twice",
        rank=10,
        metric="kafka_group_duplicate_partitions",
        involves=True,
        names=lambda detail: detail["partitions"],
        expected_by=SHARES_PARTITIONS,
    ),
    Kind(
        name="duplicate_assignment_cleared",
        meaning="It has one owner again.",
        sentence=said.duplicate_assignment_cleared,
    ),
    Alarm(
        name="partition_unassigned",
        severity=WARNING,
        meaning="A partition of a subscribed topic had no owner for longer than a rebalance may take.",
        reads="Subscriptions, who holds what, and how many partitions a topic has, which brokers say, or a "
        "recording's header.",
        limits="`metadata.max.age.ms` and the longest rebalance timeout, half an hour at most. Unknown without a "
        "topic's size, with a subscription that cannot be read, and of streams groups; a group without members lacks "
        "no owner.",
        sentence=said.partition_unassigned,
        so_since="nobody took or gave up any",
        cleared=said.partitions_owned_again,
        ends=LOOK,
        says_its_end=True,
        reason="unassigned_partitions",
        one="1 partition unassigned",
        many="{} partitions unassigned",
        rank=70,
        metric="kafka_group_unassigned_partitions",
        names=_places,
        before_a_roll="find out why partitions have no owner, and plan again once each has one",
    ),
    Kind(
        name="handover_without_revocation",
        severity=WARNING,
        meaning="A cooperative leader gave a partition to another member in the very round in which its owner still "
        "claimed it.",
        reads="What members of a classic group claim as they join, and what the same round assigns.",
        limits="Cooperative protocols alone: eager members own nothing while they join. Neither a downgrade's record "
        "nor the first one seen is judged.",
        sentence=said.handover_without_revocation,
        expected_by=SHARES_PARTITIONS,
    ),
    Alarm(
        name="stale_claim",
        severity=WARNING,
        meaning="A member joined claiming partitions of an older generation, or two claim one partition.",
        reads="What members of a classic group claim as they join, and of which generation.",
        limits="Claims without a generation are not stale. Neither a downgrade's record nor the first one seen is "
        "judged, as members of a downgrade joined at different times.",
        sentence=said.stale_claim,
        cleared=said.claims_over,
        ends=RECORD,
        one="1 member claims what it owned before",
        many="{} members claim what they owned before",
        look=INFO,
        rank=170,
        metric="kafka_group_stale_claims_total",
        names=lambda detail: (detail.get("member_id") or ONLY,),
        expected_by=SHARES_PARTITIONS,
    ),
    Alarm(
        name="static_member_absent",
        severity=WARNING,
        meaning="Static members closed and keep their partitions until they are back or their sessions expire: one for "
        "all of a restart. Its end names those that are not back.",
        reads="Current assignments with member epoch -2; members that come under these instance ids.",
        limits="Who closes while another is away joins the alarm, within ten minutes, or within three of when all "
        "were back. It is over when all are back or replaced, or after a day. Consumer protocol alone: a classic "
        "member writes nothing when it stops. Of a member that died nothing is written either. How long it may be away "
        "is configuration, not in the log.",
        sentence=said.static_member_absent,
        cleared=said.static_members_back,
        ends=TIME,
        one="1 static member away",
        many="{} static members away",
        names_each=True,
        look=INFO,
        rank=190,
        metric="kafka_group_static_members_absent",
        involves=True,
        names=_instances,
        expected_by=RESTARTS,
    ),
    Kind(
        name="static_member_returned",
        meaning="It came back in time, which saved a rebalance.",
        sentence=said.static_member_returned,
    ),
    Kind(
        name="static_member_replaced",
        meaning="Another process took over the instance id.",
        sentence=said.static_member_replaced,
    ),
    Alarm(
        name="static_member_restarting",
        severity=WARNING,
        meaning="One process takes an instance id again and again, less than ten minutes apart; or two processes on "
        "one host, or two that look alike in a classic group.",
        reads="Take-overs of an instance id: client id, host and time of each process.",
        limits="Five take-overs, less than 10 minutes apart; joins that are retried within 2 s do not count. Two "
        "processes that look alike are one.",
        sentence=said.static_member_restarting,
        cleared=said.restarts_over,
        ends=TIME,
        one="1 instance id restarting",
        many="{} instance ids restarting",
        rank=90,
        metric="kafka_group_involved_members",
        involves=True,
        names=_instance,
        expected_by=RESTARTS,
        before_a_roll="find out why a process restarts again and again, and plan again once it runs",
    ),
    Alarm(
        name="static_member_contended",
        severity=CRITICAL,
        meaning="Two processes fence each other under one instance id: each that lost it took it back; `warning` where "
        "one did once, as on a node that is drained and back. Of classic members only: the consumer protocol refuses "
        "the second process, and writes nothing.",
        reads="The same: a process that lost the id has it again.",
        limits="Take-overs less than 10 minutes apart. A coordinator keeps client id and host of a classic member, so "
        "processes of different hosts may look alike. Taken back once it is a warning, as a node that is drained and "
        "back looks so; it is said again with the next. The consumer protocol refuses the second process and writes "
        "nothing.",
        sentence=said.static_member_contended,
        cleared=said.contention_over,
        ends=TIME,
        one="1 instance id contended",
        many="{} instance ids contended",
        rank=30,
        metric="kafka_group_involved_members",
        involves=True,
        names=_instance,
        before_a_roll="give each process a group.instance.id of its own before the roll",
    ),
    Alarm(
        name="poll_interval_exceeded",
        severity=WARNING,
        meaning="A process leaves and joins again and again, each time about a rebalance timeout after the last: it "
        "exceeds `max.poll.interval.ms`, as what it does with the records of one poll takes longer.",
        reads="Who leaves, and who of the same client id and host joins in its place; rebalance timeouts, which "
        "clients take from their poll interval.",
        limits="Three leaves in a row, 0.8 to 1.5 rebalance timeouts apart, each by a member for at least half of one; "
        "five where others have its client id and host, or one was a member for less than 0.9; over when no leave was "
        "counted for one and a half. Three rolls so far apart look alike.",
        sentence=said.poll_interval_exceeded,
        cleared=said.polls_in_time,
        ends=TIME,
        one="1 process exceeds max.poll.interval.ms",
        many="{} processes exceed max.poll.interval.ms",
        rank=95,
        metric="kafka_group_involved_members",
        involves=True,
        names=_process,
        before_a_roll="give members less to do between two polls, and plan again once they stay",
    ),
    Kind(
        name="upgrade_started",
        meaning="A classic group has taken in its first member of the consumer protocol.",
        sentence=said.upgrade_started,
        on_roll_page=True,
    ),
    Kind(
        name="upgrade_completed",
        meaning="No classic member is left; how many are still awaited in their places is said.",
        sentence=said.upgrade_completed,
        on_roll_page=True,
    ),
    Kind(
        name="upgrade_unclean",
        severity=WARNING,
        meaning="An online upgrade did not begin at the classic group's generation, or lost or moved members, "
        "assignments or offsets; `info` where members are missing that may have left.",
        reads="The last classic generation, and what the conversion wrote of epochs, members, assignments and offsets.",
        limits="While a round is under way the log lags behind the coordinator: then less is compared. Where members "
        "alone are missing that may have left, or whose session may have ended, it is inferred, and information. An "
        "empty group is not compared; nor are assignors.",
        sentence=said.upgrade_unclean,
        inferred=said.upgrade_may_be_unclean,
    ),
    Alarm(
        name="upgrade_blocked",
        severity=WARNING,
        meaning="A broker would refuse the first member of the consumer protocol, for the reasons named.",
        reads="Assignments' user data, subscriptions, and the leader's client of a classic group; what brokers can do.",
        limits="What a broker's configuration refuses (policy, group size) is the gate's to say. Silent where no "
        "broker converts a group, and of groups that are no consumers.",
        sentence=said.upgrade_blocked,
        cleared=said.blockers_gone,
        ends=RECORD,
        shown_as="blockers",
        metric="kafka_group_upgrade_blockers",
        names=lambda detail: detail["reasons"],
        on_roll_page=True,
    ),
    Kind(
        name="downgrade_started",
        severity=WARNING,
        meaning="A group of the consumer protocol has taken in a classic member, or a roll turned round.",
        reads="Who comes in whose place in a group of both protocols.",
        limits="A member that left is awaited for 10 minutes. That a roll turned round is inferred. A group that is "
        "mixed when it is first seen goes no known way until a member shows it.",
        sentence=said.downgrade_started,
        on_roll_page=True,
        expected_by=NEVER_DOWNGRADES,
    ),
    Kind(
        name="downgrade_completed",
        meaning="It is a classic group again; its assignments and offsets are compared with those before.",
        sentence=said.downgrade_completed,
        on_roll_page=True,
    ),
    Alarm(
        name="downgrade_unclean",
        severity=WARNING,
        meaning="Records of the consumer protocol outlived the downgrade; an older broker would meet them.",
        reads="Records of the new protocols, by type, that a group has which is classic.",
        limits="A record without a tombstone after it is left over, whichever broker has to write it.",
        sentence=said.downgrade_unclean,
        cleared="No record of the consumer protocol is left over",
        ends=RECORD,
        shown_as="leftover_records",
        metric="kafka_group_leftover_records",
        on_roll_page=True,
    ),
    Alarm(
        name="migration_stalled",
        severity=WARNING,
        meaning="A group of both protocols in which no member came or went for half an hour.",
        reads="Members of both protocols, and when one last came or went.",
        limits="Half an hour. Whether somebody means to pause the roll is not written.",
        sentence=said.migration_stalled,
        so_since="",
        cleared="The roll goes on, or is over",
        ends=LOOK,
        one="roll stalled",
        in_full="The roll has stalled: members of both protocols, and none came or went for half an hour",
        rank=150,
        metric="kafka_group_migration_mixed_seconds",
        on_roll_page=True,
    ),
    Alarm(
        name="members_not_back",
        severity=WARNING,
        meaning="A roll left the group with fewer members than before, for longer than a restart takes. It ends when "
        "as many are there, when the group is deleted, or after a day.",
        reads="Members before the roll and since; who left in it, and who came; session timeouts, as far as the log "
        "has them.",
        limits="Five minutes, and no less than the greatest session timeout. A scale-in after which the group came to "
        "rest for a minute is no part of the roll; one within it is, unless `shrinks` is expected.",
        sentence=said.members_not_back,
        so_since="",
        cleared=said.members_back,
        ends=LOOK,
        one="1 member not back after the roll",
        many="{} members not back after the roll",
        in_full="Members did not come back after the roll: the group has fewer than before it",
        rank=155,
        metric="kafka_group_members_not_back",
        on_roll_page=True,
        expected_by=SHRINKS,
        before_a_roll="find the members that did not come back after its roll, or expect fewer "
        "(alarms.expectations: shrinks)",
    ),
    Kind(
        name="offset_rewound",
        severity=WARNING,
        meaning="Committed offsets went back at one moment: a member sought back, or a former owner committed; `info` "
        "where the group has no member, so that an admin or MirrorMaker did, and where all are back within two "
        "seconds: a client sent its commits in the wrong order.",
        reads="Committed offsets of one moment, below those before, and the next two seconds of the log; members, and "
        "who owned the partitions lately.",
        limits="The record names no author. A topic that was made again looks the same where commits name no topic "
        "id, as in transactions and before 4.1: then it is said to be possible. In a group of no members it is "
        "information. Where nothing more is written it is reported half a minute later.",
        sentence=said.offset_rewound,
        expected_by=SEEKS_BACK,
    ),
    Kind(
        name="offset_deleted",
        meaning="Committed offsets expired, were deleted, or went with their topic or group: one event for all that "
        "went at one moment. Its cause, as far as what was written with it tells, is `cause`; all that may be are "
        "`may_be`.",
        sentence=said.offset_deleted,
    ),
    Kind(
        name="topic_recreated",
        severity=WARNING,
        meaning="Commits name another topic id: the topic was deleted and recreated under its name.",
        reads="Topic ids of commits; ids that brokers say; offsets that went with their topic.",
        limits="Inferred where commits name no id. Without a commit after it nothing is known.",
        sentence=said.topic_recreated,
    ),
    Alarm(
        name="epoch_anomaly",
        severity=WARNING,
        meaning="Records contradict each other in a way that no coordinator writes.",
        reads="Epochs, generations and what members, targets and assignments say of each other.",
        limits="What a compacted log may lack is not judged: first epochs, jumps of generations, a member or target "
        "without the other's epoch.",
        sentence=said.epoch_anomaly,
        cleared=said.records_agree,
        ends=RECORD,
        one="1 epoch anomaly",
        many="{} epoch anomalies",
        rank=160,
        metric="kafka_group_events_total",
        names=lambda detail: (f"{detail['rule']}/{detail['member_id'] or ''}",),
    ),
    Kind(
        name="unknown_record",
        severity=WARNING,
        meaning="A record of a type, or a value of a version, that Kafka 4.3 does not have.",
        reads="Type and value version of each record.",
        limits="Once a type or version. Types that only early access wrote are unknown, too.",
        sentence=said.unknown_record,
    ),
    Kind(
        name="share_records_archived",
        severity=WARNING,
        meaning="Records of a share group were given up for good: no member could process them (`limit`), or one "
        "rejected them (`rejected`). `unclear`, which is information, says that perhaps there was no record.",
        reads="Delivery states and counts that the share coordinator writes, the delivery limit of the group, and "
        "which topics may have offsets without a record.",
        limits="Each offset once in a state epoch. Of a share partition ten a minute; what is more is one of each "
        "cause, with `records`, when the minute is over. Below the limit a monitor looks whether there was a "
        "record, with READ on the topic; of a recording its header says it.",
        sentence=said.share_records_archived,
    ),
    Kind(
        name="share_partition_stalled",
        severity=WARNING,
        meaning="A share partition does not get on, though a member has it and records wait: for ten minutes nothing "
        "became done (`nothing_done`), one record holds back so many later ones that nothing more is delivered "
        "(`held_back`), or the partition is not initialized while records come (`not_initialized`).",
        reads="The share coordinator's log, the end of the partition, who is assigned, and the clock.",
        limits="Inferred: what members hold at the moment is not written. A record that is slow while later ones "
        "become done is no stall before 2,000 offsets after it (`share.partition.max.record.locks`, as brokers have "
        "it by default). Reported once more when it is over (`cleared`). By a running monitor alone.",
        sentence=said.share_partition_stalled,
    ),
    Kind(
        name="share_redelivering",
        severity=WARNING,
        meaning="Members of a share group do not get done with what they take: for a quarter of an hour, a tenth or "
        "more of the records that became done had been delivered before, in vain.",
        reads="Delivery counts of the records that become done, in windows of five minutes.",
        limits="Three windows in a row, each with 20 such records at least. Reported once more when one is none of "
        "these (`cleared`).",
        sentence=said.share_redelivering,
    ),
    Kind(
        name="log_truncated",
        severity=WARNING,
        meaning="An offsets partition lost records that had been read, as in an unclean election: what its groups did "
        "last is undone, and they were read again from its beginning. Of no group: its `group` is null.",
        reads="The end of the log and its leader epochs, compared with what was read.",
        limits="By leader epochs where brokers have them (2.1) and the log keeps them; otherwise once it has ended "
        "before what was read for half a minute. Looked at when a leader changes, and at each start.",
        sentence=said.log_truncated,
        of_no_group=True,
    ),
)

KINDS: Final[Mapping[str, Kind]] = {row.name: row for row in _ROWS}
"""The whole vocabulary (`docs/events.md`), by name."""

ALARMS: Final[Mapping[str, Alarm]] = {row.name: row for row in _ROWS if isinstance(row, Alarm)}
"""Of it what opens and clears."""

LOOKED_FOR: Final = tuple(row.name for row in ALARMS.values() if row.ends == LOOK)
"""Of these what only a look with a clock finds."""


def sentence(event: Event) -> str:
    """What happened, as an operator would say it, without the group's name.

    Of a kind or a detail that it does not know: the kind's words.
    """
    name, detail = str(event["kind"]), event["detail"]
    try:
        row = KINDS[name]
        if isinstance(row, Alarm) and row.cleared is not None and detail.get("cleared"):
            return row.cleared if isinstance(row.cleared, str) else row.cleared(detail)
        if row.inferred is not None and event.get("inferred"):
            return row.inferred(detail)
        time_ms, of = int(event["time"]), {**detail, said.LOG_PARTITION: event.get("partition")}
        text = row.sentence if isinstance(row.sentence, str) else row.sentence(of, time_ms)
        return text if row.so_since is None or time_ms < 0 else f"{text}; {said.since(of, row.so_since, time_ms)}"
    except (AttributeError, KeyError, TypeError, ValueError):  # of another release, out of a history or a topic
        return name.replace("_", " ").capitalize()
