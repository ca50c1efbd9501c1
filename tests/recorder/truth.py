"""What Kafka's own tools say of groups, as text: the three tables of `--describe`, and which tool it was."""

from collections.abc import Sequence
from typing import Final

from tests.recorder.scene import Cluster

Truth = dict[str, dict[str, str]]
"""Group → `tool`, and what it printed with --state, --members and --offsets."""

TOOLS: Final = {
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
}


def described(cluster: Cluster, groups: Sequence[str]) -> Truth:
    """What is said of each group, existing or not."""
    return {group: _described(cluster, group) for group in groups}


def tool_of(group: str) -> str:
    """The tool that knows groups of its kind: a scenario's name begins with it where it is not the usual one."""
    kind = group.partition("-")[0]
    name = f"kafka-{kind}-groups"
    return name if name in TOOLS and "application" not in group else "kafka-consumer-groups"


def _described(cluster: Cluster, group: str) -> dict[str, str]:
    tool = tool_of(group)
    kind = tool.split("-")[1].capitalize()
    if kind == "Consumer":
        return {"tool": tool, **_tables(cluster, tool, group, "--verbose")}
    try:
        cluster.jvm.described(kind, group)
    except LookupError as error:
        # The tools end their JVM over a group that does not exist; the client says in the same words that it does not.
        return {"tool": tool, "state": str(error)}
    # The share tool of 4.0 does not know the word.
    verbose = () if kind == "Share" and cluster.version.number == (4, 0) else ("--verbose",)
    return {"tool": tool, **_tables(cluster, tool, group, *verbose)}


def _tables(cluster: Cluster, tool: str, group: str, *verbose: str) -> dict[str, str]:
    more = {"state": verbose, "members": verbose, "offsets": verbose if tool == "kafka-streams-groups" else ()}
    # The streams tool ends its JVM in any case, so it gets one of its own.
    run = cluster.run_once if tool == "kafka-streams-groups" else cluster.tool.run
    return {
        what: run("--describe", "--group", group, f"--{what}", *words, main_class=TOOLS[tool])
        for what, words in more.items()
    }
