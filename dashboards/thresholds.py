"""Where normal ends, each figure with its reason: alerts compare with these, panels colour by them.

A duration stands in seconds; `duration` gives Prometheus's word for it. What the monitor's own events judge by as well
(a storm, a stalled migration) has the same figure here; a test compares them.
"""

from dataclasses import dataclass
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure that something is compared with, and why it is this one."""

    value: int
    reason: str


def duration(seconds: int) -> str:
    """Prometheus's word for a duration, in the largest unit it is whole in: 90 -> `90s`, 600 -> `10m`."""
    for name, size in _UNITS:
        if seconds and seconds % size == 0:
            return f"{seconds // size}{name}"
    return f"{seconds}s"


NONE: Final = Limit(0, "none is the rule, one is a finding")

AT_ONCE: Final = Limit(60, "one scrape is no finding; a minute to make sure costs little")

HANDED_OUT_SECONDS: Final = Limit(
    600,
    "clients notice within metadata.max.age.ms that a topic has grown, and a rebalance hands every partition out again "
    "within the rebalance timeout, max.poll.interval.ms: five minutes each by default",
)

REBALANCING_SECONDS: Final = Limit(
    600,
    "twice the default rebalance timeout: a member that has not released a partition by then should have been removed",
)

UNSETTLED_SECONDS: Final = Limit(600, "twice the default rebalance timeout: what comes together at all has by then")
SLOW_POLLS_WINDOW_SECONDS: Final = Limit(
    600, "twice the default poll interval, as a process is no member between a leave and the join after it"
)
STORM_WINDOW_SECONDS: Final = Limit(300, "the window of the monitor's event rebalance_storm")
STORM_REBALANCES: Final = Limit(20, "what a small group may do while it is set up")
STORM_REBALANCES_A_MEMBER: Final = Limit(4, "a restart is a leave and a join, and may be done twice")

ROUNDS_LOST: Final = Limit(
    5, "a member that joins late costs a round; more than five of them are members that never come together"
)
ROUNDS_LOST_WINDOW_SECONDS: Final = Limit(900, "three times the default rebalance timeout")

MIGRATION_STALLED_SECONDS: Final = Limit(
    1_800, "a roll takes minutes a member; half an hour without one coming or going is a roll that stands still"
)
MIXED_SECONDS: Final = Limit(
    14_400,
    "a hundred members at two minutes each are through in under four hours; "
    "until then the broker translates between the protocols with every heartbeat",
)
CONVERSION_WINDOW_SECONDS: Final = Limit(600, "long enough to be read, short enough to be over when the roll is")
UNCLEAN_UPGRADE_WINDOW_SECONDS: Final = Limit(
    3_600, "long enough to be seen while the roll can still be stopped; the event stays in the history"
)
LEFTOVERS_SECONDS: Final = Limit(
    300,
    "a clean downgrade writes its tombstones with the conversion itself: five minutes later they are not on the way",
)

ABSENT_SECONDS: Final = Limit(
    300,
    "a restart takes a minute or two, and brokers by default end a consumer's session within one; "
    "five are a session timeout raised beyond what anybody waits for",
)
STALE_CLAIM_WINDOW_SECONDS: Final = Limit(
    1_800, "each member may come back with an old claim once, after a pause; more claims than members are a habit"
)

COMMIT_WINDOW_SECONDS: Final = Limit(
    900, "three times max.poll.interval.ms by default; a consumer that commits more rarely on purpose is rare"
)
COMMIT_AGE_SECONDS: Final = Limit(900, "as above")
NO_COMMIT_SECONDS: Final = Limit(
    300, "the first records after an idle time make lag before they make a commit; five minutes are not idle"
)
LAG_UNKNOWN_SECONDS: Final = Limit(
    300,
    "an election of leaders, or a broker's restart, is over by then: after it each partition answers within seconds",
)
STOPPED_SECONDS: Final = Limit(600, "a deployment that stops everything before it starts anything is over by then")
STOPPED_RECENTLY_SECONDS: Final = Limit(
    21_600, "a group not missed for six hours was given up; its offsets stay in the log for a week"
)
REWIND_WINDOW_SECONDS: Final = Limit(600, "long enough to be read")

LAG_SECONDS: Final = Limit(300, "a panel's colour only: what lag is too much, only the consumer's owner knows")

OPEN_TRANSACTION_SECONDS: Final = Limit(
    900, "transaction.max.timeout.ms of brokers by default: none may legally be open for longer"
)

REPLICA_LAG_RECORDS: Final = Limit(
    10_000, "a tenth of a second of catching up; with more for minutes the monitor does not keep up with the log"
)
BEHIND_SECONDS: Final = Limit(300, "a burst, or a micro-batch that had to wait, is over by then")
NOT_READY_SECONDS: Final = Limit(900, "a million records take seconds to read; fifteen minutes are no catching up")
DOWN_SECONDS: Final = Limit(300, "a restart of the monitor takes under two minutes")
DOWN_RECENTLY_SECONDS: Final = Limit(86_400, "a cluster whose monitor was taken away on purpose is forgotten in a day")
END_OFFSET_AGE_SECONDS: Final = Limit(
    60, "log ends are sampled every second; after a minute lag is a thing of the past"
)
END_OFFSETS_OLD_SECONDS: Final = Limit(300, "an election of leaders, or a broker's restart, is over by then")
WITHOUT_LEADER_SECONDS: Final = Limit(120, "an election of a leader is over in seconds, a broker's restart in a minute")
NOT_LOADED_SECONDS: Final = Limit(
    60, "the monitor has waited for as long as a load may take; a minute to make sure costs little"
)
SOURCE_AGE_SECONDS: Final = Limit(60, "the monitor speaks every second; a standby takes over in less than a minute")
SINK_WAITING_SECONDS: Final = Limit(
    300, "a restart of what takes it is over by then; the spool holds hours, so there is time to look"
)
SINK_DROPPED_WINDOW_SECONDS: Final = Limit(3_600, "long enough to be read")
RECORD_TO_METRIC_SECONDS: Final = Limit(10, "a panel's colour only: ten times what the monitor takes normally")
NEW_RECORDS_WINDOW_SECONDS: Final = Limit(3_600, "long enough to be read; the count itself never goes back")
