"""Answers of the API as types: what makes an answer says which it is, and `web/openapi.py` describes them.

Null is `None`; a field that is not always there is `NotRequired`. Times are milliseconds since 1970. A later release
may have more fields.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

JsonObject = Mapping[str, object]
"""An object that is described elsewhere."""


class LagFigures(TypedDict):
    """Lag of a group, or of its part in a topic (`board/lag_columns.py`)."""

    lag: int | None
    at_least: int | None
    unknown_lags: int
    max_lag: int | None
    max_lag_seconds: float | None
    max_lag_seconds_at_least: bool


class ErrorAnswer(TypedDict):
    """Why a question is not answered; `doubt` where it is not known whether there is such a thing."""

    error: str
    doubt: NotRequired[JsonObject]


class UnreadAnswer(TypedDict):
    """A partition of the log that is not read, and since when."""

    partition: int
    reason: str
    since: int
    as_of: int


class EventAnswer(TypedDict):
    """EVENT, with its sentence as `text`."""

    id: str
    time: int
    group: str | None
    kind: str
    severity: str
    partition: int
    offset: int
    detail: JsonObject
    inferred: bool
    log: NotRequired[str]
    text: str


class AttentionAnswer(TypedDict):
    """A reason to look at a group."""

    severity: str
    code: str
    text: str
    since: int | None
    expected: NotRequired[JsonObject]


class MemberAnswer(TypedDict):
    """One member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol: str
    epoch: int | None
    state: str
    assigned: NotRequired[Mapping[str, Any]]
    pending_revocation: NotRequired[Mapping[str, Any]]
    target: NotRequired[Mapping[str, Any]]


class OffsetAnswer(TypedDict):
    """One committed offset, with its lag."""

    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp: int | None
    topic_id: str | None
    log_end_offset: int | None
    log_start_offset: int | None
    last_stable_offset: int | None
    lag: int | None
    stable_lag: int | None
    lag_seconds: float | None
    lag_seconds_at_least: bool
    lag_method: str
    records_lost: bool


class CopiesAnswer(TypedDict):
    """The partitions of the log that have records of a group, and the one it lives in."""

    partitions: Sequence[int]
    lives_in: int


class LackAnswer(TypedDict):
    """What the log of old brokers does not hold of a group."""

    code: str
    text: str


class SharePartitionAnswer(TypedDict):
    """One partition as a share group has it, with lag; why that is not known is `lag_unknown`."""

    topic: str
    partition: int
    topic_id: str
    start_offset: int | None
    first_not_done: int | None
    state_epoch: int
    leader_epoch: int | None
    delivery_complete_count: int | None
    redelivered: int
    max_delivery_count: int
    archived_total: Mapping[str, int]
    archived_unclear: int
    log_end_offset: int | None
    lag: int | None
    lag_seconds: float | None
    lag_seconds_at_least: bool
    stalled_since: int | None
    lag_unknown: NotRequired[str]


class GroupAnswer(LagFigures):
    """GROUP with lag, attention, and what brokers said."""

    group: str
    type: str
    state: str
    epoch: int | None
    assignment_epoch: int | None
    protocol: str | None
    simple: bool
    members: Sequence[MemberAnswer]
    offsets: Sequence[OffsetAnswer]
    migration: JsonObject
    owner: str | None
    rebalances: int | None
    rebalancing_since: int | None
    duplicates: Mapping[str, Any] | None
    unassigned: Mapping[str, Any] | None
    attention: Sequence[AttentionAnswer]
    share_partitions: Sequence[SharePartitionAnswer]
    lag_left_out: NotRequired[str]
    copies: NotRequired[CopiesAnswer]
    log_lacks: NotRequired[Sequence[LackAnswer]]
    doubt: NotRequired[JsonObject | None]


class CopiedGroupAnswer(TypedDict):
    """The same, with its name."""

    group: str
    partitions: Sequence[int]
    lives_in: int


class CopiedGroupsAnswer(TypedDict):
    """All of them."""

    groups: Sequence[CopiedGroupAnswer]
    left_out: int


class GroupsAnswer(TypedDict):
    """GROUPs, and how many are not shown."""

    groups: Sequence[GroupAnswer]
    left_out: int
    cannot_tell: int
    doubt: JsonObject | None
    unread: Sequence[UnreadAnswer]


class NamesAnswer(TypedDict):
    """Names of groups."""

    groups: Sequence[str]
    left_out: int
    cannot_tell: int
    unread: Sequence[UnreadAnswer]


class ListedTopicAnswer(TypedDict):
    """A topic, and how many groups have to do with it."""

    topic: str
    partitions: int | None
    groups: int


class TopicsAnswer(TypedDict):
    """All of them."""

    topics: Sequence[ListedTopicAnswer]
    left_out: int
    unread: Sequence[UnreadAnswer]


class ReaderAnswer(LagFigures):
    """A group that has to do with a topic, with its lag there."""

    group: str
    owner: str | None
    type: str
    state: str
    members: int
    subscribed: bool | None
    assigned_partitions: int
    committed_partitions: int
    doubt: NotRequired[UnreadAnswer]


class TopicAnswer(TypedDict):
    """A topic with its readers."""

    topic: str
    topic_id: str | None
    partitions: int | None
    groups: Sequence[ReaderAnswer]
    left_out: int
    cannot_tell: int
    ready: bool
    missing: Sequence[JsonObject]
    doubt: JsonObject | None
    unread: Sequence[UnreadAnswer]
    end_offset_age_seconds: float | None


class LeftOutAnswer(TypedDict):
    """How many of each are not shown."""

    groups: int
    topics: int


class RowAnswer(LagFigures):
    """A group in a line."""

    group: str
    type: str
    state: str
    simple: bool
    epoch: int | None
    classic_members: int
    consumer_members: int
    absent_members: int
    phase: str | None
    blockers: Sequence[str]
    out_of_scope: str | None
    mixed_since: int | None
    leftovers: int | None
    upgrades: int | None
    downgrades: int | None
    missing_members: int
    rebalances: int | None
    rebalancing_since: int | None
    duplicate_partitions: int | None
    unassigned_partitions: int | None
    attention: Sequence[AttentionAnswer]
    doubt: NotRequired[UnreadAnswer]


class OverviewAnswer(TypedDict):
    """A line on every group, the latest events, and what is missing."""

    cluster: str
    time: int
    ready: bool
    missing: Sequence[JsonObject]
    doubt: JsonObject | None
    sinks: NotRequired[Sequence[JsonObject]]
    source: NotRequired[JsonObject]
    without_leader: NotRequired[Sequence[int]]
    unreadable: NotRequired[Sequence[int]]
    not_loaded: NotRequired[Sequence[int]]
    unread: Sequence[UnreadAnswer]
    left_out: LeftOutAnswer
    end_offset_age_seconds: float | None
    replica_lag_records: int | None
    open_transaction_records: int | None
    events: Sequence[EventAnswer]
    trends: JsonObject
    groups: Sequence[RowAnswer]


class EventsAnswer(TypedDict):
    """The latest events, oldest first."""

    events: Sequence[EventAnswer]


class LagAnswer(TypedDict):
    """Lag of the last hour: of one group, or of all that lagged."""

    times: Sequence[int]
    groups: NotRequired[Mapping[str, Any]]
    group: NotRequired[str]
    lag: NotRequired[Sequence[Any]]
    max_lag_seconds: NotRequired[Sequence[Any]]
    partition_count: NotRequired[int]
    partitions: NotRequired[Sequence[JsonObject]]


class HistoryAnswer(TypedDict):
    """What happened to a group, or with `as_of` how it was."""

    group: str
    events: NotRequired[Sequence[EventAnswer]]
    as_of: NotRequired[Any]
    doubt: NotRequired[UnreadAnswer]


class ReasonAnswer(TypedDict):
    """A reason of a gate's verdict."""

    effect: str
    code: str
    group: str | None
    text: str


class GateAnswer(TypedDict):
    """A gate's verdict."""

    gate: str
    verdict: str
    reasons: Sequence[ReasonAnswer]
    groups: Mapping[str, int]
    target_version: NotRequired[str | None]
    leftover_records: NotRequired[Mapping[str, int]]
    unknown_records: NotRequired[Mapping[str, int]]
    offset_versions: NotRequired[Mapping[str, int]]
    log_scan: NotRequired[Any]
    cluster_id: NotRequired[str | None]
    version: NotRequired[str]


class RemedyAnswer(TypedDict):
    """What a plan says is to be done first."""

    code: str
    remedy: str


class PlannedAnswer(TypedDict):
    """A group of a plan."""

    group: str
    readiness: str
    reasons: Sequence[RemedyAnswer]
    members: int
    partitions: int | None
    protocol: str | None
    assignor: str | None
    assignor_after: str | None
    rebalances_a_day: float | None
    lag: int | None
    wave: int | None
    owner: str | None
    static_ids: int
    note: str | None
    kind: str | None


class KindAnswer(TypedDict):
    """A kind of group, and what it takes to rehearse it."""

    kind: str
    groups: int
    rehearse: str


class PlanAnswer(TypedDict):
    """The migration plan."""

    ready: bool
    missing: Sequence[JsonObject]
    doubt: JsonObject | None
    unread: Sequence[UnreadAnswer]
    left_out: int
    groups: Sequence[PlannedAnswer]
    waves: int
    counts: Mapping[str, int]
    kinds: Sequence[KindAnswer]


class BurnDownAnswer(TypedDict):
    """The migration over time."""

    times: Sequence[int]
    groups: Mapping[str, Any]
    members: Mapping[str, Any]


class SpannedRollAnswer(TypedDict):
    """One roll in a span."""

    direction: str
    since: int
    until: int
    ended: str | None


class RollAnswer(TypedDict):
    """What a roll of a group cost."""

    format: str
    group: str
    since: int
    until: int
    rebalances: int
    partitions_moved: int
    ownerless_seconds: JsonObject | None
    lag_added: JsonObject | None
    causes: Mapping[str, int]
    conversions: Mapping[str, int]
    verdicts: Sequence[str]
    open_alarms: Sequence[str]
    rolls: Sequence[SpannedRollAnswer]
    events: Sequence[JsonObject]
    known_until: int
    complete: bool
    unknown: Sequence[str]
    notes: Sequence[str]


class DescriptionAnswer(TypedDict):
    """The OpenAPI description."""

    openapi: str
    info: JsonObject
    paths: JsonObject
    components: JsonObject
