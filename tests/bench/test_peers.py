"""Other monitors beside ours: how each is found and started, what its page says, and the log that all of them read."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from bench import peers, results
from bench.committer import Committer
from bench.figures import Outcome
from bench.peer_programs import PEERS, Peer, free_port
from bench.stage import Stage
from lab.monitor_process import until
from streaming.base.errors import UsageError
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR, HOST

BY_NAME = {peer.name: peer for peer in PEERS}

PAGES = {
    "KMinion": """\
# HELP kminion_kafka_consumer_group_topic_offset_sum The sum of all committed group offsets
# TYPE kminion_kafka_consumer_group_topic_offset_sum gauge
kminion_kafka_consumer_group_topic_offset_sum{group_id="a",topic_name="t"} 9
kminion_kafka_consumer_group_topic_offset_sum{group_id="a",topic_name="u"} 1.2e+06
kminion_kafka_consumer_group_topic_offset_sum{group_id="b",topic_name="t"} 4
kminion_kafka_consumer_group_topic_partition_lag{group_id="a",partition_id="0",topic_name="t"} 7
""",
    "Burrow": """\
# TYPE burrow_kafka_consumer_current_offset gauge
burrow_kafka_consumer_current_offset{cluster="bench",consumer_group="a",partition="0",topic="t"} 4
burrow_kafka_consumer_current_offset{cluster="bench",consumer_group="a",partition="1",topic="t"} 5
burrow_kafka_consumer_current_offset{cluster="bench",consumer_group="a",partition="0",topic="u"} 1.2e+06
burrow_kafka_consumer_current_offset{cluster="bench",consumer_group="b",partition="0",topic="t"} 4
burrow_kafka_consumer_lag_total{cluster="bench",consumer_group="a"} 7
""",
    "kafka_exporter": """\
# TYPE kafka_consumergroup_current_offset gauge
kafka_consumergroup_current_offset{consumergroup="a",partition="0",topic="t"} 4
kafka_consumergroup_current_offset{consumergroup="a",partition="1",topic="t"} 5
kafka_consumergroup_current_offset{consumergroup="a",partition="0",topic="u"} 1.2e+06
# TYPE kafka_consumergroup_current_offset_sum gauge
kafka_consumergroup_current_offset_sum{consumergroup="a",topic="t"} 9
kafka_consumergroup_current_offset{consumergroup="b",partition="0",topic="t"} 4
""",
    peers.OURS: """\
# TYPE kafka_consumergroup_group_offset gauge
kafka_consumergroup_group_offset{cluster="c",cluster_name="c",group="a",topic="t",partition="0"} 4
kafka_consumergroup_group_offset{cluster="c",cluster_name="c",group="a",topic="t",partition="1"} 5
kafka_consumergroup_group_offset{cluster="c",cluster_name="c",group="a",topic="u",partition="0"} 1200000
kafka_consumergroup_group_offset{cluster="c",cluster_name="c",group="b",topic="t",partition="0"} 4
kafka_consumergroup_group_sum_lag{cluster="c",cluster_name="c",group="a"} 7
""",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_a_group_has_committed(name: str) -> None:
    """Whether a page has single offsets or sums by topic, they add up to one figure of a group; all samples count."""
    shown = BY_NAME[name].offsets if name in BY_NAME else peers.SHOWN

    assert {"a": 1_200_009, "b": 4} == peers.sums(PAGES[name], shown)
    assert len([line for line in PAGES[name].splitlines() if line[0] != "#"]) == peers.samples(PAGES[name])


def program(directory: Path, name: str) -> str:
    directory.mkdir(exist_ok=True)
    file = directory / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_program_is_found_by_its_variable_or_on_the_path(tmp_path: Path, peer: Peer) -> None:
    """The variable wins; one that leads nowhere is refused by name, and without either it says where to get it."""
    there, named = program(tmp_path / "bin", peer.programs[-1]), program(tmp_path / "other", "build-7")
    path = {"PATH": str(tmp_path / "bin")}

    assert there == peer.path(path)
    assert named == peer.path({**path, peer.variable: named})
    assert None is peer.path({"PATH": str(tmp_path / "other")})
    assert {peer.name, peer.releases, peer.variable} <= {word.strip(",:") for word in peer.how_to_get_it.split()}
    with pytest.raises(UsageError, match=f"{peer.variable}: found '/nowhere', accepted: "):
        peer.path({**path, peer.variable: "/nowhere"})


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_program_listens_on_this_machine_alone(tmp_path: Path, peer: Peer) -> None:
    """Cluster and port are where each looks for them: in its arguments, or in a file that is well-formed."""
    port = free_port()
    start = peer.start("127.0.0.1:9092", port, tmp_path)

    given = [*start.arguments, *start.environment.values()]
    for name, text in start.files.items():
        assert any(str(tmp_path) in each for each in given)
        given.append(json.dumps(tomllib.loads(text) if name.endswith(".toml") else yaml.safe_load(text)))
    assert any("127.0.0.1:9092" in each for each in given)
    assert any(
        f"{HOST}:{port}" in each or ('"host": "127.0.0.1"' in each and f'"port": {port}' in each) for each in given
    )


def test_what_others_need_is_shown_and_not_kept(tmp_path: Path) -> None:
    """A line for each monitor with dashes for what it did not get to; results hold ours alone."""
    ours, other = Outcome({"groups": 10}), Outcome({"groups": 10})
    ours.add("right_seconds", "s", 3.0)
    ours.add("page_seconds", "s", 0.5, 0.25, 0.125)
    other.add("right_seconds", "s", 2.0)

    heads, *lines = (line.split("  ") for line in peers.side_by_side({"Other": other, "ours": ours}).splitlines())
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]

    assert "measured by you" == heads[0]
    assert [["Other", "2", *"-" * (len(peers.COLUMNS) - 1)], ["ours", "3", "-", "-", "0.25", *"-" * 5]] == cells
    results.store({"peers": ours}, tmp_path / "results.json")
    assert "Other" not in (tmp_path / "results.json").read_text("utf-8")


@pytest.mark.broker
def test_the_log_is_one_that_its_coordinator_knows(tmp_path: Path) -> None:
    """What is written is what the coordinator has read, and commits by it move every partition on: all monitors see it.

    Tried with groups that only commit: members would have to be waited for until they are gone.
    """
    stage = Stage(tmp_path, DEFAULT_JARS_DIR)
    plan = peers.plan_of(4, {"rounds": 2, "members": 0})
    with peers.cluster(stage, plan) as (inner, read):
        servers = inner.broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})

        def known(name: str) -> dict[tuple[str, int], int]:
            places = [TopicPartition(plan.topic(name), at) for at in range(plan.partitions)]
            asked = ConsumerGroupTopicPartitions(name, places)
            (answer,) = admin.list_consumer_group_offsets([asked]).values()
            return {(at.topic, at.partition): at.offset for at in answer.result(60).topic_partitions}

        assert {(plan.topic(plan.names[0]), at): 2 for at in range(3)} == known(plan.names[0])
        with Committer(servers, plan, plan.names, read.expected) as committer:
            committer.start(rate=120)
            until(lambda: sum(map(len, committer.sent.values())) >= 8, 60, "nothing is committed")
        for name in plan.names:
            assert read.expected.groups[name].offsets == known(name)
            assert committer.first[name] + 3 * len(committer.sent[name]) == sum(known(name).values())
