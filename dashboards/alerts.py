"""Alert rules: when somebody has to look, in the words of `signals.py`, against the figures of `thresholds.py`.

There are no recording rules: no board needs one, as every signal reads at most one series a group or partition.
"""

from collections.abc import Mapping
from typing import Any, Final

from dashboards import thresholds as at
from dashboards.alert import GROUP, MONITOR, Alert, gated, rule, within
from dashboards.settings import CRITICAL, DEFAULTS, INFO, WARNING, Settings


def _unless_expected(signal: str, condition: str) -> str:
    """The condition, but for groups of which the configuration expects it (`alarms.expectations`)."""
    return f"({condition}) unless on (cluster, group) ${signal}"


_OWNERSHIP: Final = (
    Alert(
        name="KafkaGroupDuplicateOwner",
        condition=gated(_unless_expected("sharing_expected", f"$duplicate_partitions > {at.NONE}")),
        limits=(at.NONE,),
        wait=at.AT_ONCE,
        severity=CRITICAL,
        summary=f"{GROUP}: {{{{ $value }}}} partitions have two owners at once, so records are processed twice.",
        first_look="Group: Ownership",
        nearest="An assignor that shares partitions by design. It fires unless `shares_partitions` is expected; "
        "share groups never do, and a partition on its way has one owner in the log at every moment.",
        event="duplicate_assignment",
        names="duplicate_assignment",
    ),
    Alert(
        name="KafkaGroupUnassignedPartitions",
        condition=gated(f"$unassigned_partitions > {at.NONE} and on (cluster, group) $member_count > 0"),
        limits=(at.NONE,),
        wait=at.HANDED_OUT_SECONDS,
        severity=WARNING,
        summary=f"{GROUP}: {{{{ $value }}}} partitions of its topics have no owner, so they are not read.",
        first_look="Group: Ownership",
        nearest="A topic that grew just before a rebalance that takes its full timeout. Ten minutes hold both, and "
        "the finding itself waits for longer where members ask for a longer timeout.",
        event="partition_unassigned",
    ),
    Alert(
        name="KafkaGroupStaleClaims",
        condition=gated(
            _unless_expected(
                "sharing_expected",
                f"$stale_claims{within(at.STALE_CLAIM_WINDOW_SECONDS)} > on (cluster, group) $member_count",
            ),
            at.STALE_CLAIM_WINDOW_SECONDS,
        ),
        limits=(at.STALE_CLAIM_WINDOW_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP}: members keep claiming partitions of an earlier generation, "
        f"{{{{ $value | humanize }}}} times in {at.STALE_CLAIM_WINDOW_SECONDS.words}.",
        first_look="Group: Stale claims",
        nearest="All members pause, are thrown out and come back with what they had. That is one claim a member; "
        "more than members within half an hour is a habit.",
        event="stale_claim",
    ),
    Alert(
        name="KafkaGroupStaticMemberAbsent",
        condition=gated(_unless_expected("restarts_expected", f"$static_members_absent > {at.NONE}")),
        limits=(at.NONE,),
        wait=at.ABSENT_SECONDS,
        severity=WARNING,
        summary=f"{GROUP}: {{{{ $value }}}} static members are away; their partitions are not read meanwhile.",
        first_look="Group: Static members",
        nearest="A restart of four minutes under a long session timeout. It is over before the five; a longer one "
        "leaves partitions unread, and fires.",
        event="static_member_absent",
        names="static_member_absent",
    ),
    Alert(
        name="KafkaGroupStaticMemberContended",
        condition=gated(f"$contended_members > {at.NONE}"),
        limits=(at.NONE,),
        wait=at.AT_ONCE,
        severity=CRITICAL,
        summary=f"{GROUP}: two processes take {{{{ $value }}}} group.instance.id from each other, each fencing the "
        "other.",
        first_look="Group: Static members",
        nearest="A pod that moves to another host and back within ten minutes: the id is taken back once, which is a "
        "warning among the events. Twice in ten minutes does fire. A pod whose hosts never come back, and one that "
        "retries its join, do not.",
        event="static_member_contended",
        names="static_member_contended",
    ),
    Alert(
        name="KafkaGroupStaticMemberRestarting",
        condition=gated(_unless_expected("restarts_expected", f"$restarting_members > {at.NONE}")),
        limits=(at.NONE,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP}: {{{{ $value }}}} static members restart again and again, or two processes of one host share "
        "a group.instance.id.",
        first_look="Group: Static members",
        nearest="A roll done three times within minutes: three take-overs of each id, and five make a loop. A join "
        "that is retried within two seconds is no take-over.",
        event="static_member_restarting",
        names="static_member_restarting",
    ),
)

_POLLS: Final = (
    Alert(
        name="KafkaGroupPollIntervalExceeded",
        condition=gated(
            f"$slow_pollers{within(at.SLOW_POLLS_WINDOW_SECONDS)} > {at.NONE}",
            at.SLOW_POLLS_WINDOW_SECONDS,
        ),
        limits=(at.NONE, at.SLOW_POLLS_WINDOW_SECONDS),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP}: {{{{ $value }}}} processes exceed max.poll.interval.ms again and again, and the group "
        "rebalances each time.",
        first_look="Group: Members to look at",
        nearest="A rolling restart, one process each five minutes: who comes in the place of another stays. A job that "
        "runs each five minutes, and a crash loop, are members for a small part of them.",
        event="poll_interval_exceeded",
        names="poll_interval_exceeded",
    ),
)

_RESTARTS_OF_ALL: Final = (
    f"{at.STORM_REBALANCES} + {at.STORM_REBALANCES_A_MEMBER} * $most_members{within(at.STORM_WINDOW_SECONDS)}"
)
"""Rebalances that restarting every member twice takes, of as many as the group had."""

_REBALANCES: Final = (
    Alert(
        name="KafkaGroupRebalanceStuck",
        condition=gated(f"$rebalance_stuck > {at.NONE}"),
        limits=(at.NONE,),
        wait=at.AT_ONCE,
        severity=CRITICAL,
        summary=f"{GROUP} has been rebalancing for longer than its members may take.",
        first_look="Group: Overdue",
        nearest="A member that lets go a second before its `max.poll.interval.ms` ends. Ten seconds beyond each "
        "member's own timeout count, each record of it starts its time again, and so does a coordinator "
        "that moves.",
        event="rebalance_stuck",
        names="rebalance_stuck",
    ),
    Alert(
        name="KafkaGroupRebalanceStorm",
        condition=gated(
            _unless_expected(
                "restarts_expected",
                f"$storm_rebalances > on (cluster, group) ({_RESTARTS_OF_ALL}) or on (cluster, group) "
                f"($storm_rebalances > on (cluster, group) ({_RESTARTS_OF_ALL}) / 2 and on (cluster, group) "
                "$open_storm > 0)",
            ),
            at.STORM_WINDOW_SECONDS,
        ),
        limits=(at.STORM_REBALANCES, at.STORM_REBALANCES_A_MEMBER, at.STORM_WINDOW_SECONDS),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP} rebalanced {{{{ $value | humanize }}}} times in five minutes: more than restarts explain.",
        first_look="Group: Rebalances of five minutes",
        nearest="A roll of all members, done twice in five minutes: a leave and a join each, four a member. Second "
        "rounds of cooperative rebalances and conversions do not count. A group that is scaled in, of which the most "
        "members of the five minutes count. It rests, as the event does, with half as many.",
        event="rebalance_storm",
    ),
    Alert(
        name="KafkaGroupUnsettled",
        condition=gated(
            _unless_expected(
                "restarts_expected",
                f"$unsettled_seconds > {at.UNSETTLED_SECONDS} and on (cluster, group) "
                "$unsettled_epochs > on (cluster, group) "
                f"({at.STORM_REBALANCES} + {at.STORM_REBALANCES_A_MEMBER} * $member_count)",
            )
        ),
        limits=(at.UNSETTLED_SECONDS, at.STORM_REBALANCES, at.STORM_REBALANCES_A_MEMBER),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP} has not settled for {{{{ $value | humanizeDuration }}}}: members come and go, epoch after "
        "epoch.",
        first_look="Group: Not settled",
        nearest="A roll whose members restart at intervals under a minute, so that the group never rests. Rolled "
        "twice it makes four epochs a member; twenty more are the group's own. A job that consumes each minute and "
        "leaves an empty group, which is at rest.",
        event="group_unsettled",
    ),
    Alert(
        name="KafkaGroupRebalanceRoundsLost",
        condition=gated(
            _unless_expected(
                "restarts_expected", f"$rounds_lost{within(at.ROUNDS_LOST_WINDOW_SECONDS)} > {at.ROUNDS_LOST}"
            ),
            at.ROUNDS_LOST_WINDOW_SECONDS,
        ),
        limits=(at.ROUNDS_LOST, at.ROUNDS_LOST_WINDOW_SECONDS),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP}: {{{{ $value | humanize }}}} rebalances were begun and lost in "
        f"{at.ROUNDS_LOST_WINDOW_SECONDS.words}.",
        first_look="Group: Rebalances",
        nearest="A rolling restart whose members join just after the others have: a round each, and members seldom "
        "do so five times in a quarter of an hour.",
        event="rebalance_rounds_lost",
    ),
)

_MIGRATION: Final = (
    Alert(
        name="KafkaGroupMigrationStalled",
        condition=gated(
            f"$mixed_seconds > {at.MIGRATION_STALLED_SECONDS} and on (cluster, group) "
            f"$members_changed{within(at.MIGRATION_STALLED_SECONDS)} == 0",
            at.MIGRATION_STALLED_SECONDS,
        ),
        limits=(at.MIGRATION_STALLED_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP} has had members of both protocols for {{{{ $value | humanizeDuration }}}}, "
        "and for half an hour none came or went.",
        first_look="Rolling upgrade: Groups on the way",
        nearest="A roll with a pause for a look at the first upgraded member. Half an hour without any member "
        "coming or going is more than a look.",
        event="migration_stalled",
    ),
    Alert(
        name="KafkaGroupMembersNotBack",
        condition=gated(_unless_expected("fewer_expected", f"$members_not_back > {at.NONE}")),
        limits=(at.NONE,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP}: members missing since its roll: {{{{ $value }}}}.",
        first_look="Rolling upgrade: Members not back",
        nearest="A member that is away for four minutes in a roll, and a scale-in before it. Five minutes count, or "
        "the greatest session timeout if that is longer; a group that is to be smaller says so (`shrinks`).",
        event="members_not_back",
    ),
    Alert(
        name="KafkaGroupMixedTooLong",
        condition=gated(f"$mixed_seconds > {at.MIXED_SECONDS}"),
        limits=(at.MIXED_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP} has had members of both protocols for {{{{ $value | humanizeDuration }}}}.",
        first_look="Rolling upgrade: Groups on the way",
        nearest="A roll of a hundred members at two minutes each, which is through before the four hours.",
    ),
    Alert(
        name="KafkaGroupUnexpectedDowngrade",
        condition=gated(
            f"$downgrading > 0 or on (cluster, group) $downgrades{within(at.CONVERSION_WINDOW_SECONDS)} > 0",
            at.CONVERSION_WINDOW_SECONDS,
        ),
        limits=(at.CONVERSION_WINDOW_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP} goes back to the classic protocol.",
        first_look="Rolling upgrade: Conversions",
        nearest="An upgraded member crashes while a classic one restarts. Who comes takes the place of one of its "
        "own kind that left within ten minutes, so nothing turns; a downgrade that is meant does fire.",
        event="downgrade_started",
    ),
    Alert(
        name="KafkaGroupUnexpectedUpgrade",
        condition=gated(
            f"$upgrades{within(at.CONVERSION_WINDOW_SECONDS)} > 0",
            at.CONVERSION_WINDOW_SECONDS,
        ),
        limits=(at.CONVERSION_WINDOW_SECONDS,),
        wait=at.AT_ONCE,
        severity=INFO,
        summary=f"{GROUP} was converted to the consumer protocol.",
        first_look="Rolling upgrade: Conversions",
        nearest="Any upgrade that is meant: it is information, and wakes no one.",
        event="upgrade_started",
    ),
    Alert(
        name="KafkaGroupUpgradeUnclean",
        condition=gated(
            f"$unclean_upgrades{within(at.UNCLEAN_UPGRADE_WINDOW_SECONDS)} > {at.NONE}",
            at.CONVERSION_WINDOW_SECONDS,
        ),
        limits=(at.NONE, at.UNCLEAN_UPGRADE_WINDOW_SECONDS),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP} was converted to the consumer protocol without all that it had as a classic group.",
        first_look="Rolling upgrade: Conversions",
        nearest="A dynamic member leaves a second before the first upgraded one joins, or a static one is away for "
        "longer than its session, which looks as if it was lost. That is information, and not counted; members that "
        "had begun to rejoin explain the rest.",
        event="upgrade_unclean",
    ),
    Alert(
        name="KafkaGroupDowngradeUnclean",
        condition=gated(f"$unclean_leftovers > {at.NONE}"),
        limits=(at.NONE,),
        wait=at.LEFTOVERS_SECONDS,
        severity=WARNING,
        summary="Cluster {{ $labels.cluster }} has no {{ $labels.type }} group any more, but {{ $value }} records of "
        "one: a broker of an older release may fail on them.",
        first_look="Rolling upgrade: Left over",
        nearest="The tombstones of a group that ends in several batches. They follow within moments, and records of "
        "a group that still is one do not count.",
        event="downgrade_unclean",
    ),
)

_COMMITS: Final = f"$commits{within(at.COMMIT_WINDOW_SECONDS)}"


def _grows(held: str) -> str:
    """Lag that grew; an open alert stays open while the growth is unknown, with the value 0."""
    window = within(at.COMMIT_WINDOW_SECONDS)
    return f"($lag_growth{window} > 0 or on (cluster, group) ${held}{window})"


def _grew(sentence: str) -> str:
    """How much it grew, for a summary; nothing of an alert that is held."""
    return f"{{{{ if gt $value 0.0 }}}}{sentence}{{{{ else }}}}; how much waits is not known now{{{{ end }}}}"


_RECENTLY: Final = within(at.STOPPED_RECENTLY_SECONDS)
_REWIND_WINDOW: Final = within(at.REWIND_WINDOW_SECONDS)

_OFFSETS: Final = (
    Alert(
        name="KafkaGroupLagGrowingWithoutCommits",
        condition=gated(
            f"{_grows('held_growing')} and on (cluster, group) {_COMMITS} == 0 "
            "and on (cluster, group) $member_count > 0",
            at.COMMIT_WINDOW_SECONDS,
        ),
        limits=(at.COMMIT_WINDOW_SECONDS,),
        wait=at.NO_COMMIT_SECONDS,
        severity=CRITICAL,
        summary=f"{GROUP} has members but committed nothing in {at.COMMIT_WINDOW_SECONDS.words}"
        + _grew(", in which its lag grew by {{ $value | humanize }} records")
        + ".",
        first_look="Group: Commits",
        nearest="A batch consumer that commits every ten minutes: a quarter of an hour holds one. Records after an "
        "idle night make lag before a commit, for less than five minutes.",
    ),
    Alert(
        name="KafkaGroupConsumerStopped",
        condition=gated(
            f"{_grows('held_stopped')} and on (cluster, group) $empty > 0 and on (cluster, group) "
            f"$recently_active{_RECENTLY} > 0 unless on (cluster, group) "
            f"$commits_without_members{within(at.STOPPED_SECONDS)} > 0",
            at.COMMIT_WINDOW_SECONDS,
        ),
        limits=(at.COMMIT_WINDOW_SECONDS, at.STOPPED_RECENTLY_SECONDS),
        wait=at.STOPPED_SECONDS,
        severity=WARNING,
        summary=f"{GROUP} has no members any more"
        + _grew(f", and its lag grew by {{{{ $value | humanize }}}} records in {at.COMMIT_WINDOW_SECONDS.words}")
        + ".",
        first_look="Group: States",
        nearest="A deployment that stops all members before it starts any, over within ten minutes; a group that "
        "has been empty for six hours was given up; Flink, Storm or Spark under a name that once had members: they "
        "commit, and join no group.",
    ),
    Alert(
        name="KafkaGroupLagNotKnown",
        condition=gated(
            f"$unknown_lag_partitions > {at.NONE} unless on (cluster, group) ($empty > 0 unless on (cluster, "
            f"group) ($recently_active{_RECENTLY} > 0 or on (cluster, group) $commits{_RECENTLY} > 0))"
        ),
        limits=(at.NONE, at.STOPPED_RECENTLY_SECONDS),
        wait=at.LAG_UNKNOWN_SECONDS,
        severity=WARNING,
        summary=f"{GROUP}: the lag of {{{{ $value }}}} partitions is not known, so no alert about it can fire.",
        first_look="Group: Lag not known",
        nearest="A broker that restarts, or a leader that moves: its partitions answer again within seconds. Topics "
        "that were deleted, and groups without a member or commit for six hours, do not count.",
    ),
    Alert(
        name="KafkaGroupOffsetRewound",
        condition=gated(
            _unless_expected(
                "rewinds_expected",
                f"$rewinds{_REWIND_WINDOW} > 0 unless on (cluster, group) "
                f"$resets{_REWIND_WINDOW} > on (cluster, group) 0.99 * $group_rewinds{_REWIND_WINDOW}",
            ),
            at.REWIND_WINDOW_SECONDS,
        ),
        limits=(at.REWIND_WINDOW_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP} committed smaller offsets of topic {{{{ $labels.topic }}}} than before: "
        "records are processed again.",
        first_look="Group: Rewinds",
        nearest="An admin's reset, MirrorMaker's syncs, and commits of a client in the wrong order, as after a "
        "coordinator's move. The first are of groups without members, the last are back at once: these are counted "
        "apart. "
        "A member that seeks back does fire, unless `seeks_back` is expected.",
        event="offset_rewound",
    ),
    Alert(
        name="KafkaGroupOpenTransactionBlocking",
        condition=f"$open_transaction_seconds > {at.OPEN_TRANSACTION_SECONDS}",
        limits=(at.OPEN_TRANSACTION_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary="Cluster {{ $labels.cluster }}: a transaction has been open for {{ $value | humanizeDuration }} in "
        "partition {{ $labels.partition }} of __consumer_offsets; the offsets of all groups there wait for it.",
        first_look="Monitor health: Age of open transactions",
        nearest="One transaction after another, so that one is always open. The oldest stays young; none may "
        "legally last for fifteen minutes.",
    ),
)

_STALL_WINDOW: Final = within(at.SHARE_STALL_WINDOW_SECONDS)

_SHARES: Final = (
    Alert(
        name="KafkaGroupShareStalled",
        condition=gated(
            f"$share_group_stalled > {at.NONE} and on (cluster, group) $share_stalls{_STALL_WINDOW} > {at.NONE}",
            at.SHARE_STALL_WINDOW_SECONDS,
        ),
        limits=(at.NONE, at.SHARE_STALL_WINDOW_SECONDS),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP}: a share partition does not get on; its first record that is not done has waited for "
        "{{ $value | humanizeDuration }}.",
        first_look="Group: First offset not done, the longest",
        nearest="A record that takes half an hour while those after it become done: it and its age are shown, and no "
        "event is reported. A group without members has nobody to take records.",
        event="share_partition_stalled",
    ),
    Alert(
        name="KafkaGroupShareRecordsGivenUp",
        condition=gated(
            f"sum by (cluster, group, topic) ($share_given_up{within(at.GIVEN_UP_WINDOW_SECONDS)}) > {at.NONE}",
            at.GIVEN_UP_WINDOW_SECONDS,
        ),
        limits=(at.NONE, at.GIVEN_UP_WINDOW_SECONDS),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{GROUP} gave up {{{{ $value | humanize }}}} records of topic {{{{ $labels.topic }}}} for good: no "
        "member could process them, or one rejected them.",
        first_look="Group: Given up",
        nearest="Records that are delivered again and then done, and offsets at which there may have been no record, "
        "as in a compacted topic: neither counts.",
        event="share_records_archived",
    ),
)

_MONITOR_ITSELF: Final = (
    Alert(
        name="KafkaGroupMonitorDown",
        condition=f"$monitor_gone{within(at.DOWN_RECENTLY_SECONDS)}",
        limits=(at.DOWN_RECENTLY_SECONDS,),
        wait=at.DOWN_SECONDS,
        severity=CRITICAL,
        # A monitor that never was has no cluster either.
        summary="The monitor{{ with $labels.cluster }} of cluster {{ . }}{{ end }} gives no metrics, so no alert about "
        "its groups can fire.",
        first_look="Monitor health: Ready",
        nearest="A restart of the monitor, which takes less than two minutes of the five.",
    ),
    Alert(
        name="KafkaGroupMonitorNotReady",
        condition="$ready < 1",
        limits=(),
        wait=at.NOT_READY_SECONDS,
        severity=WARNING,
        summary=f"{MONITOR} has not reached the end of the log, or stood still, for {at.NOT_READY_SECONDS.words}, so "
        "alerts about groups wait.",
        first_look="Monitor health: Readiness",
        nearest="The first catch-up with a log of millions of records: minutes, not fifteen.",
    ),
    Alert(
        name="KafkaGroupMonitorBehind",
        condition=gated(f"$replica_lag_total > {at.REPLICA_LAG_RECORDS}"),
        limits=(at.REPLICA_LAG_RECORDS,),
        wait=at.BEHIND_SECONDS,
        severity=WARNING,
        summary=f"{MONITOR} is {{{{ $value }}}} records behind the log: what it shows is the past.",
        first_look="Monitor health: Distance to the end of the log",
        nearest="A burst of commits, worked off within the five minutes.",
    ),
    Alert(
        name="KafkaGroupEndOffsetsOld",
        condition=f"$end_offset_age > {at.END_OFFSET_AGE_SECONDS}",
        limits=(at.END_OFFSET_AGE_SECONDS,),
        wait=at.END_OFFSETS_OLD_SECONDS,
        severity=WARNING,
        summary=f"{MONITOR} learnt {{{{ $value | humanizeDuration }}}} ago where logs end: lag is as old as that.",
        first_look="Monitor health: Age of log ends",
        nearest="An election of leaders, or a broker that restarts, over within the five minutes.",
    ),
    Alert(
        name="KafkaGroupOffsetsPartitionsUnread",
        condition=f"$without_leader > {at.NONE}",
        limits=(at.NONE,),
        wait=at.WITHOUT_LEADER_SECONDS,
        severity=CRITICAL,
        summary=f"{MONITOR} finds {{{{ $value }}}} partitions of __consumer_offsets without a leader: their groups can "
        "neither join nor commit, and nothing is known of them.",
        first_look="Monitor health: Partitions without a leader",
        nearest="A broker that restarts while no other replica is in sync, back within the two minutes.",
    ),
    Alert(
        name="KafkaGroupCoordinatorNotLoaded",
        event="coordinator_not_loaded",
        condition=f"$not_loaded > {at.NONE}",
        limits=(at.NONE,),
        wait=at.NOT_LOADED_SECONDS,
        severity=CRITICAL,
        summary=f"{MONITOR} finds {{{{ $value }}}} partitions of __consumer_offsets that their leader did not load: "
        "their groups can neither join nor commit.",
        first_look="Monitor health: Partitions without a leader",
        nearest="A broker that restarts and loads a large partition: the monitor waits for as long as that may take.",
    ),
    Alert(
        name="KafkaGroupMonitorAway",
        condition=f"$source_age > {at.SOURCE_AGE_SECONDS}",
        limits=(at.SOURCE_AGE_SECONDS,),
        wait=at.DOWN_SECONDS,
        severity=CRITICAL,
        summary=f"{MONITOR} has not spoken, or polled its groups, for {{{{ $value | humanizeDuration }}}}; what is "
        "served is of then, but for lag.",
        first_look="Monitor health: Silence of the monitor",
        nearest="A standby that takes over: less than a minute of silence, and five are waited for.",
    ),
    Alert(
        name="KafkaGroupSinkBehind",
        condition=f"$sink_waiting_seconds > {at.SINK_WAITING_SECONDS}",
        limits=(at.SINK_WAITING_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{MONITOR} has waited {{{{ $value | humanizeDuration }}}} for {{{{ $labels.sink }}}} to take what it "
        "reports; it goes on, and nothing is lost yet.",
        first_look="Monitor health: Waits for a sink",
        nearest="A restart of what takes the events, over within five minutes.",
    ),
    Alert(
        name="KafkaGroupSinkDropped",
        condition=f"$sink_dropped{within(at.SINK_DROPPED_WINDOW_SECONDS)} > {at.NONE}",
        limits=(at.NONE, at.SINK_DROPPED_WINDOW_SECONDS),
        wait=at.AT_ONCE,
        severity=CRITICAL,
        summary=f"{MONITOR} gave up {{{{ $value | humanize }}}} events or groups that {{{{ $labels.sink }}}} did not "
        "take.",
        first_look="Monitor health: Given up by sinks",
        nearest="None: nothing is dropped while the spool, which holds hours, has room.",
    ),
    Alert(
        name="KafkaGroupUnknownRecords",
        condition=f"$new_unknown_records{within(at.NEW_RECORDS_WINDOW_SECONDS)} > 0",
        limits=(at.NEW_RECORDS_WINDOW_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{MONITOR} met records of type {{{{ $labels.record_type }}}}, which it does not know.",
        first_look="Monitor health: Records not understood",
        nearest="None: a release writes no type of record that it does not know. A broker newer than the monitor does.",
        event="unknown_record",
    ),
    Alert(
        name="KafkaGroupNewerValueVersions",
        condition=f"$new_newer_value_versions{within(at.NEW_RECORDS_WINDOW_SECONDS)} > 0",
        limits=(at.NEW_RECORDS_WINDOW_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{MONITOR} met values of records of type {{{{ $labels.record_type }}}} that are newer than it knows.",
        first_look="Monitor health: Records not understood",
        nearest="None: as above. What both versions have in common is read meanwhile.",
        event="unknown_record",
    ),
    Alert(
        name="KafkaGroupUndecodableRecords",
        condition=f"$new_undecodable_records{within(at.NEW_RECORDS_WINDOW_SECONDS)} > 0",
        limits=(at.NEW_RECORDS_WINDOW_SECONDS,),
        wait=at.AT_ONCE,
        severity=WARNING,
        summary=f"{MONITOR} passed over damaged records of type {{{{ $labels.record_type }}}}.",
        first_look="Monitor health: Records not understood",
        nearest="Records of early access releases (3.7, 4.0), whose layouts were never released. They fire, since "
        "members of such groups are not seen.",
    ),
)

GROUPS: Final[Mapping[str, tuple[Alert, ...]]] = {
    "kafka_group_ownership": _OWNERSHIP,
    "kafka_group_rebalances": (*_POLLS, *_REBALANCES),
    "kafka_group_migration": _MIGRATION,
    "kafka_group_offsets": _OFFSETS,
    "kafka_share_groups": _SHARES,
    "kafka_group_monitor": _MONITOR_ITSELF,
}
"""Rule groups of Prometheus, in the order of the runbook."""

ALERTS: Final[tuple[Alert, ...]] = tuple(alert for alerts in GROUPS.values() for alert in alerts)


def rules(settings: Settings | None = DEFAULTS) -> dict[str, Any]:
    """The rule file as Prometheus reads it.

    Args:
        settings: limits, matchers, names of severities, and where links lead to. None leaves limits' names in.
    """
    groups = [{"name": name, "rules": [rule(alert, settings) for alert in alerts]} for name, alerts in GROUPS.items()]
    return {"groups": groups}
