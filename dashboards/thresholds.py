"""Where normal ends, each figure with its reason: alerts compare with these, panels colour by them.

A duration stands in seconds; `duration` gives Prometheus's word for it. What the monitor's own events judge by as well
(a storm, a stalled migration) has the same figure here; a test compares them.

Boards and rules are written with the names of limits in the place of figures, `@commit_window_seconds`, so that who
builds them may have figures of his own: `settings.py` puts them in.
"""

from dataclasses import dataclass
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure that something is compared with, and why it is this one.

    Attributes:
        name: by which another figure is given, its unit at the end; empty for one that is no matter of taste.
        value: the figure.
        reason: why it is this one.
        option: of the monitor's configuration, where its own events judge by the same, empty if none changes it: such
            a figure is not changed here.
    """

    name: str
    value: int
    reason: str
    option: str | None = None

    @property
    def is_set_here(self) -> bool:
        """Whether boards and rules may be built with another figure."""
        return bool(self.name) and self.option is None

    def __str__(self) -> str:
        """What stands for the figure until boards and rules are built."""
        return f"@{self.name}" if self.is_set_here else str(self.value)

    @property
    def duration(self) -> str:
        """What stands for Prometheus's word for the duration."""
        return f"@{self.name}:duration" if self.is_set_here else duration(self.value)

    @property
    def words(self) -> str:
        """What stands for the duration as a sentence has it: `a quarter of an hour`."""
        return f"@{self.name}:words" if self.is_set_here else spoken(self.value)

    @property
    def why(self) -> str:
        """What stands for the reason."""
        return f"@{self.name}:reason" if self.is_set_here else self.reason


def duration(seconds: int) -> str:
    """Prometheus's word for a duration, in the largest unit it is whole in: 90 -> `90s`, 600 -> `10m`."""
    for name, size in _UNITS:
        if seconds and seconds % size == 0:
            return f"{seconds // size}{name}"
    return f"{seconds}s"


_SPOKEN: Final = {900: "a quarter of an hour", 1_800: "half an hour", 3_600: "an hour", 86_400: "a day"}
_NAMES: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


def spoken(seconds: int) -> str:
    """A duration as a sentence has it: 900 -> `a quarter of an hour`, 1200 -> `20 minutes`."""
    word = duration(seconds)
    return _SPOKEN.get(seconds) or f"{word[:-1]} {_NAMES[word[-1]].removesuffix('' if seconds > 1 else 's')}"


NONE: Final = Limit("", 0, "none is the rule, one is a finding")

AT_ONCE: Final = Limit("least_wait_seconds", 60, "one scrape is no finding; a minute to make sure costs little")

HANDED_OUT_SECONDS: Final = Limit(
    "handed_out_seconds",
    600,
    "clients notice within metadata.max.age.ms that a topic has grown, and a rebalance hands every partition out again "
    "within the rebalance timeout, max.poll.interval.ms: five minutes each by default",
    option="",
)

REBALANCING_SECONDS: Final = Limit(
    "rebalancing_seconds",
    600,
    "twice the default rebalance timeout: a member that has not released a partition by then should have been removed",
)

UNSETTLED_SECONDS: Final = Limit(
    "unsettled_seconds",
    600,
    "twice the default rebalance timeout: what comes together at all has by then",
    option="alarms.unsettled_after_ms",
)
SLOW_POLLS_WINDOW_SECONDS: Final = Limit(
    "slow_polls_window_seconds",
    600,
    "twice the default poll interval, as a process is no member between a leave and the join after it",
)
STORM_WINDOW_SECONDS: Final = Limit(
    "storm_window_seconds", 300, "the window of the monitor's event rebalance_storm", option="alarms.expectations"
)
STORM_REBALANCES: Final = Limit(
    "storm_rebalances", 20, "what a small group may do while it is set up", option="alarms.expectations"
)
STORM_REBALANCES_A_MEMBER: Final = Limit(
    "storm_rebalances_a_member",
    4,
    "a restart is a leave and a join, and may be done twice",
    option="alarms.expectations",
)

ROUNDS_LOST: Final = Limit(
    "rounds_lost",
    5,
    "a member that joins late costs a round; more than five of them are members that never come together",
)
ROUNDS_LOST_WINDOW_SECONDS: Final = Limit(
    "rounds_lost_window_seconds", 900, "three times the default rebalance timeout"
)

MIGRATION_STALLED_SECONDS: Final = Limit(
    "migration_stalled_seconds",
    1_800,
    "a roll takes minutes a member; half an hour without one coming or going is a roll that stands still",
    option="",
)
MIXED_SECONDS: Final = Limit(
    "mixed_seconds",
    14_400,
    "a hundred members at two minutes each are through in under four hours; "
    "until then the broker translates between the protocols with every heartbeat",
)
CONVERSION_WINDOW_SECONDS: Final = Limit(
    "conversion_window_seconds", 600, "long enough to be read, short enough to be over when the roll is"
)
UNCLEAN_UPGRADE_WINDOW_SECONDS: Final = Limit(
    "unclean_upgrade_window_seconds",
    3_600,
    "long enough to be seen while the roll can still be stopped; the event stays in the history",
)
LEFTOVERS_SECONDS: Final = Limit(
    "leftovers_seconds",
    300,
    "a clean downgrade writes its tombstones with the conversion itself: five minutes later they are not on the way",
)

ABSENT_SECONDS: Final = Limit(
    "absent_seconds",
    300,
    "a restart takes a minute or two, and brokers by default end a consumer's session within one; "
    "five are a session timeout raised beyond what anybody waits for",
)
STALE_CLAIM_WINDOW_SECONDS: Final = Limit(
    "stale_claim_window_seconds",
    1_800,
    "each member may come back with an old claim once, after a pause; more claims than members are a habit",
)

COMMIT_WINDOW_SECONDS: Final = Limit(
    "commit_window_seconds",
    900,
    "three times max.poll.interval.ms by default; a consumer that commits more rarely on purpose is rare",
)
COMMIT_AGE_SECONDS: Final = Limit("commit_age_seconds", 900, "as above")
NO_COMMIT_SECONDS: Final = Limit(
    "no_commit_seconds",
    300,
    "the first records after an idle time make lag before they make a commit; five minutes are not idle",
)
LAG_UNKNOWN_SECONDS: Final = Limit(
    "lag_unknown_seconds",
    300,
    "an election of leaders, or a broker's restart, is over by then: after it each partition answers within seconds",
)
STOPPED_SECONDS: Final = Limit(
    "stopped_seconds", 600, "a deployment that stops everything before it starts anything is over by then"
)
STOPPED_RECENTLY_SECONDS: Final = Limit(
    "stopped_recently_seconds",
    21_600,
    "a group not missed for six hours was given up; its offsets stay in the log for a week",
)
REWIND_WINDOW_SECONDS: Final = Limit("rewind_window_seconds", 600, "long enough to be read")

LAG_SECONDS: Final = Limit(
    "lag_seconds", 300, "a panel's colour only: what lag is too much, only the consumer's owner knows"
)

OPEN_TRANSACTION_SECONDS: Final = Limit(
    "open_transaction_seconds",
    900,
    "transaction.max.timeout.ms of brokers by default: none may legally be open for longer",
)

REPLICA_LAG_RECORDS: Final = Limit(
    "replica_lag_records",
    10_000,
    "a tenth of a second of catching up; with more for minutes the monitor does not keep up with the log",
)
BEHIND_SECONDS: Final = Limit("behind_seconds", 300, "a burst, or a micro-batch that had to wait, is over by then")
NOT_READY_SECONDS: Final = Limit(
    "not_ready_seconds", 900, "a million records take seconds to read; fifteen minutes are no catching up"
)
DOWN_SECONDS: Final = Limit("down_seconds", 300, "a restart of the monitor takes under two minutes")
DOWN_RECENTLY_SECONDS: Final = Limit(
    "down_recently_seconds", 86_400, "a cluster whose monitor was taken away on purpose is forgotten in a day"
)
END_OFFSET_AGE_SECONDS: Final = Limit(
    "end_offset_age_seconds", 60, "log ends are sampled every second; after a minute lag is a thing of the past"
)
END_OFFSETS_OLD_SECONDS: Final = Limit(
    "end_offsets_old_seconds", 300, "an election of leaders, or a broker's restart, is over by then"
)
WITHOUT_LEADER_SECONDS: Final = Limit(
    "without_leader_seconds", 120, "an election of a leader is over in seconds, a broker's restart in a minute"
)
SOURCE_AGE_SECONDS: Final = Limit(
    "source_age_seconds", 60, "the monitor speaks every second; a standby takes over in less than a minute"
)
NOT_LOADED_SECONDS: Final = Limit(
    "not_loaded_seconds",
    60,
    "the monitor has waited for as long as a load may take; a minute to make sure costs little",
)
SINK_WAITING_SECONDS: Final = Limit(
    "sink_waiting_seconds",
    300,
    "a restart of what takes it is over by then; the spool holds hours, so there is time to look",
)
SINK_DROPPED_WINDOW_SECONDS: Final = Limit("sink_dropped_window_seconds", 3_600, "long enough to be read")
RECORD_TO_METRIC_SECONDS: Final = Limit(
    "record_to_metric_seconds", 10, "a panel's colour only: ten times what the monitor takes normally"
)
SHARE_STALL_WINDOW_SECONDS: Final = Limit(
    "share_stall_window_seconds",
    1_800,
    "the monitor has waited for ten minutes; half an hour is long enough to be read",
)
GIVEN_UP_WINDOW_SECONDS: Final = Limit(
    "given_up_window_seconds", 900, "long enough to be read; the count never goes back"
)
NEW_RECORDS_WINDOW_SECONDS: Final = Limit(
    "new_records_window_seconds", 3_600, "long enough to be read; the count itself never goes back"
)

LIMITS: Final = {limit.name: limit for limit in list(globals().values()) if isinstance(limit, Limit) and limit.name}
"""Name → limit."""
