"""What a broker must allow the monitor: the one list that `check` asks by, the documentation shows and tests grant.

The first ones are needed to run at all. The others may be left out one by one; what is lost then is said beside each,
by `check` as a note, and by the monitor where it would have shown the rest. Those of the topics of `kafka_sink` are of
the brokers that have them, and only where such topics are configured.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from coordinator_model.records.topics import SHARE_STATE_TOPIC

Resource = Literal["topic", "group", "cluster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One permission in Kafka's own words.

    Attributes:
        operation: as in Kafka's `AclOperation`, for example DESCRIBE_CONFIGS.
        resource: what kind of thing it is on.
        name: which one; `*` for all, empty for the cluster.
        purpose: what it is for; a part of a sentence.
        without: what is lost without it; a part of a sentence.
        check: name of the finding in which `check` reports it.
        needed: whether nothing runs without it.
        since: the release from which on brokers know it; before it Kafka's tool refuses a line that has it.
    """

    operation: str
    resource: Resource
    name: str
    purpose: str
    without: str
    check: str
    needed: bool = False
    since: str | None = None


OFFSETS_TOPIC: Final = "__consumer_offsets"
READ_LOG: Final = Permission(
    operation="READ",
    resource="topic",
    name=OFFSETS_TOPIC,
    purpose="the coordinator's log, also to scan it for `gate downgrade`, and where its leader epochs end "
    "(OffsetForLeaderEpoch); DESCRIBE comes along",
    without="nothing works: `check`, `run` and `record` say so",
    check="permission to read",
    needed=True,
)
DESCRIBE_TOPICS: Final = Permission(
    operation="DESCRIBE",
    resource="topic",
    name="*",
    purpose="log end offsets, times of records, ends of leader epochs, partition counts, ids; on the topics whose "
    "lag is wanted, if not on all",
    without="no lag and no unassigned partitions for topics that may not be described; groups, members, rebalances and "
    "migrations are whole",
    check="topics",
)
DESCRIBE_GROUPS: Final = Permission(
    operation="DESCRIBE",
    resource="group",
    name="*",
    purpose="the state of classic groups that have been silent for long, asked of their coordinator; whether the "
    "coordinator of a silent offsets partition has loaded it",
    without="a classic rebalance that hangs looks like silence, and so does a coordinator that did not load",
    check="permission to describe groups",
)
READ_BROKER_CONFIGS: Final = Permission(
    operation="DESCRIBE_CONFIGS",
    resource="cluster",
    name="",
    purpose="dynamic GROUP configurations, the migration policy and what is in the brokers' files, asked by gates and "
    "`plan`, and twice a minute for `upgrade_blocked` (once an hour where brokers refuse it); finalized features, and "
    "what brokers can do, need no permission",
    without="gates say *cannot tell*, and `plan` *unknown*; groups are *blocked* although the protocol may be off",
    check="permission to read broker configurations",
)
READ_TOPIC_CONFIGS: Final = Permission(
    operation="DESCRIBE_CONFIGS",
    resource="topic",
    name=OFFSETS_TOPIC,
    purpose="its `delete.retention.ms`: after how long unread the log must be read again",
    without="Kafka's default of a day is assumed",
    check="permission to read the log's configuration",
)
READ_GROUP_CONFIGS: Final = Permission(
    operation="DESCRIBE_CONFIGS",
    resource="group",
    name="*",
    purpose="how long a static member of the consumer protocol may be away, asked while one is; after how many "
    "deliveries a share group gives a record up",
    without="its session timeout is shown as unknown, and the brokers' limit of deliveries is taken",
    since="4.0",
    check="permission to read group configurations",
)
READ_SHARE_LOG: Final = Permission(
    operation="READ",
    resource="topic",
    name=SHARE_STATE_TOPIC,
    purpose="the share coordinator's log (`share_groups.enabled`): how far share groups are, what is delivered again "
    "and what was given up; DESCRIBE comes along",
    without="lag of share groups is not known; their members and assignments are whole",
    check="share groups",
)

PERMISSIONS: Final = (
    READ_LOG,
    READ_SHARE_LOG,
    DESCRIBE_TOPICS,
    DESCRIBE_GROUPS,
    READ_BROKER_CONFIGS,
    READ_TOPIC_CONFIGS,
    READ_GROUP_CONFIGS,
)

READ_RECORDS: Final = Permission(
    operation="READ",
    resource="topic",
    name="*",
    purpose="whether a record waits at the committed offsets of idle partitions (`end_offsets.read_records`): one "
    "record of each is fetched as by a consumer of committed records, and let go of; on topics that are written to in "
    "transactions, if at all",
    without="markers of transactions and what was aborted count as records: lag in seconds grows there, groups without "
    "members have *records wait*, and retention makes `records_lost` of them",
    check="-",
)
"""Not among `PERMISSIONS`: who has it may read everybody's records, and most clusters do without."""

POLL_GROUPS: Final = Permission(
    operation="DESCRIBE",
    resource="group",
    name="*",
    purpose="members, assignments and committed offsets; on the groups that are wanted, if not on all",
    without="nothing is shown; with some groups alone the others are not shown, but counted as the next row says",
    check=DESCRIBE_GROUPS.check,
    needed=True,
)
LIST_GROUPS: Final = Permission(
    operation="DESCRIBE",
    resource="cluster",
    name="",
    purpose="brokers list groups that may not be described, so that these can be counted and named",
    without="brokers keep silent about them: how many there are is not known",
    check="permission to list all groups",
)
POLL_TOPICS: Final = Permission(
    operation="DESCRIBE",
    resource="topic",
    name="*",
    purpose="log end offsets, partition counts, ids, and offsets and consumer, share and streams groups of these "
    "topics; on the topics that the groups read, if not on all",
    without="committed offsets in other topics are not answered, nor any such group whose members read one",
    check=DESCRIBE_TOPICS.check,
)

ADMIN_PERMISSIONS: Final = (POLL_GROUPS, LIST_GROUPS, POLL_TOPICS, READ_BROKER_CONFIGS)
"""Those of `source.kind: admin`, in the place of `PERMISSIONS`."""

EVENTS_OPTION: Final = "kafka_sink.events_topic"
GROUPS_OPTION: Final = "kafka_sink.groups_topic"
EVENTS_TOPIC: Final = "group-monitor-events"
GROUPS_TOPIC: Final = "group-monitor-groups"
"""Names of the topics in the documentation; the options say what they are."""


def _of_topics(operation: str, *, purpose: str, without: str, needed: bool = False) -> tuple[Permission, ...]:
    """On both topics of `kafka_sink`."""
    topics = ((EVENTS_TOPIC, EVENTS_OPTION), (GROUPS_TOPIC, GROUPS_OPTION))
    return tuple(
        Permission(
            operation=operation,
            resource="topic",
            name=name,
            purpose=purpose,
            without=without,
            check=option,
            needed=needed,
        )
        for name, option in topics
    )


SINK_PERMISSIONS: Final = (
    *_of_topics(
        "WRITE",
        purpose="what a monitor passes on; DESCRIBE comes along",
        without="nothing is written; it waits, which is shown",
        needed=True,
    ),
    Permission(
        operation="READ",
        resource="topic",
        name=GROUPS_TOPIC,
        purpose="after a restart a monitor compares the topic with what it holds; `serve` serves from it",
        without="no groups are written; `serve` shows nothing",
        check=GROUPS_OPTION,
        needed=True,
    ),
    Permission(
        operation="READ",
        resource="topic",
        name=EVENTS_TOPIC,
        purpose="`serve` serves from it",
        without="`serve` shows nothing",
        check=EVENTS_OPTION,
    ),
    *_of_topics(
        "DESCRIBE_CONFIGS",
        purpose="its `cleanup.policy`, looked at before anything is written",
        without="a wrong policy is not noticed",
    ),
    *_of_topics(
        "CREATE",
        purpose="`check --create-topics`",
        without="somebody else makes the topic",
    ),
)
"""On the topics of `kafka_sink`, by the brokers that have them."""


def of_topic(option: str) -> list[Permission]:
    """Those on the topic that an option of `kafka_sink` names."""
    return [permission for permission in SINK_PERMISSIONS if permission.check == option]


def acl_commands(permissions: Iterable[Permission], principal: str, servers: str) -> list[str]:
    """The commands of Kafka's own tool that grant them: one for all that is allowed alike, from the same release on."""
    operations_on: dict[tuple[Resource, str, str | None], list[str]] = {}
    for permission in permissions:
        place = (permission.resource, permission.name, permission.since)
        operation = "".join(word.capitalize() for word in permission.operation.split("_"))
        operations_on.setdefault(place, []).append(f"--operation {operation}")
    alike: dict[tuple[Resource, str, str | None], list[str]] = {}
    for (resource, name, since), operations in operations_on.items():
        alike.setdefault((resource, " ".join(sorted(operations)), since), []).append(name)
    begin = f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal {principal}"
    return [
        " ".join([f"{begin} {operations}", *(f"--{resource} {_quoted(name)}".rstrip() for name in names)])
        for (resource, operations, _), names in alike.items()
    ]


def _quoted(name: str) -> str:
    """For a shell, which would fill in what it finds."""
    return f"'{name}'" if name == "*" else name
