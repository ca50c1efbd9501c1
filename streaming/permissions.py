"""What a broker must allow the monitor: the one list that `check` asks by, the documentation shows and tests grant.

The first ones are needed to run at all. The others may be left out one by one; what is lost then is said beside each,
by `check` as a note, and by the monitor where it would have shown the rest.
"""

from dataclasses import dataclass
from typing import Final, Literal

Resource = Literal["topic", "group", "cluster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One permission in Kafka's own words.

    Attributes:
        operation: as in Kafka's `AclOperation`, for example DESCRIBE_CONFIGS.
        resource: what kind of thing it is on.
        name: which one; `*` for all, empty for the cluster.
        is_prefix: whether it is on everything whose name begins so.
        purpose: what it is for; a part of a sentence.
        without: what is lost without it; a part of a sentence.
        check: name of the finding in which `check` tells about it.
        needed: whether nothing runs without it.
    """

    operation: str
    resource: Resource
    name: str
    is_prefix: bool = False
    purpose: str
    without: str
    check: str
    needed: bool = False

    def covers(self, other: "Permission") -> bool:
        """Whether who has this one has the other, too."""
        return (self.operation, self.resource) == (other.operation, other.resource) and self.name in ("*", other.name)


OFFSETS_TOPIC: Final = "__consumer_offsets"
CLIENT_ID: Final = "group-monitor"
"""`kafka.client_id` where nothing else is said."""

READ_LOG: Final = Permission(
    operation="READ",
    resource="topic",
    name=OFFSETS_TOPIC,
    purpose="the coordinator's log; DESCRIBE comes along",
    without="nothing works: `check`, `run` and `record` say so",
    check="permission to read",
    needed=True,
)
FIND_GROUPS: Final = Permission(
    operation="DESCRIBE",
    resource="group",
    name=CLIENT_ID,
    is_prefix=True,
    purpose="Spark's consumers ask what a group of their name (`kafka.client_id` and what follows) has committed, "
    "though they join none",
    without="`run` does not start, and says so; `record` does not need it",
    check="permission to find groups",
    needed=True,
)
DESCRIBE_TOPICS: Final = Permission(
    operation="DESCRIBE",
    resource="topic",
    name="*",
    purpose="log end offsets, partition counts, topic ids; on the topics whose lag is wanted, if not on all",
    without="no lag and no unassigned partitions for topics that may not be described; groups, members, rebalances and "
    "migrations are whole",
    check="topics",
)
DESCRIBE_GROUPS: Final = Permission(
    operation="DESCRIBE",
    resource="group",
    name="*",
    purpose="the state of classic groups that have been silent for long, asked of their coordinator",
    without="a classic rebalance that hangs is not told from silence",
    check="permission to describe groups",
)
READ_BROKER_CONFIGS: Final = Permission(
    operation="DESCRIBE_CONFIGS",
    resource="cluster",
    name="",
    purpose="dynamic GROUP configurations and the migration policy, asked by gates alone",
    without="gates say *cannot tell*, or which settings to look at",
    check="permission to read broker configurations",
)
READ_TOPIC_CONFIGS: Final = Permission(
    operation="DESCRIBE_CONFIGS",
    resource="topic",
    name=OFFSETS_TOPIC,
    purpose="its `delete.retention.ms`: after how long unread the log must be read anew",
    without="Kafka's default of a day is assumed",
    check="permission to read the log's configuration",
)
READ_GROUP_CONFIGS: Final = Permission(
    operation="DESCRIBE_CONFIGS",
    resource="group",
    name="*",
    purpose="how long a static member of the consumer protocol may be away, asked while one is",
    without="its session timeout is shown as unknown",
    check="permission to read group configurations",
)

PERMISSIONS: Final = (
    READ_LOG,
    FIND_GROUPS,
    DESCRIBE_TOPICS,
    DESCRIBE_GROUPS,
    READ_BROKER_CONFIGS,
    READ_TOPIC_CONFIGS,
    READ_GROUP_CONFIGS,
)


def acl_command(permission: Permission, principal: str, servers: str) -> str:
    """The command of Kafka's own tool that grants it."""
    operation = "".join(word.capitalize() for word in permission.operation.split("_"))
    words = ["kafka-acls.sh", "--bootstrap-server", servers, "--add", "--allow-principal", principal]
    words += ["--operation", operation, f"--{permission.resource}"]
    if permission.resource != "cluster":
        words.append(f"'{permission.name}'" if permission.name == "*" else permission.name)
    if permission.is_prefix:
        words += ["--resource-pattern-type", "prefixed"]
    return " ".join(words)
