"""The log loaded by a real broker that restarts on it, and no other broker written to."""

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_model.state.shards import offsets_partition
from streaming.__main__ import main
from streaming.base import times
from streaming.base.errors import CannotTellError
from streaming.board.board import Board
from streaming.board.lag_columns import measure, table_of
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.end_offsets.client import KafkaOffsetsClient
from streaming.end_offsets.store import EndOffsets
from streaming.kafka.client_settings import python_settings
from streaming.kafka.cluster_client import ClusterClient
from streaming.loading import loader_words, run, source
from streaming.loading.compared import is_lost
from streaming.loading.log_writer import OFFSETS_TOPIC, LogWriter
from streaming.loading.release_broker import ReleaseBroker
from streaming.recording.recorder import LogRecorder
from streaming.spark import release_jars
from streaming.watchers.load_watch import LoadWatch
from tests import loading_logs
from tests.streaming.board_rows import Shard
from tests.streaming.boards import caught_up

pytestmark = pytest.mark.broker

RELEASE: Final = "4.3.1"
PATIENCE_SECONDS: Final = 180.0


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the broker leaves its data."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory, kept: Path) -> dict[str, Any]:
    """What the release makes of all logs."""
    file = loading_logs.write(tmp_path_factory.mktemp("log") / "log.ndjson", release=RELEASE)
    found: dict[str, Any]
    (found,) = run.rehearse(source.of_recording(file, lambda _share: None), [RELEASE], keep=kept)["releases"]
    assert "cannot_tell" not in found, found
    return found


def of_log(view: dict[str, Any], name: str) -> list[dict[str, Any]]:
    places, _ = loading_logs.logs(RELEASE)[name]
    return [of for of in view["partitions"] if of["partition"] in places]


LOADS: Final = ("well", "share", "early_offsets", "read_while_cleaned", "cleaned", "classic", "of_3_9", "own")


@pytest.mark.parametrize("name", LOADS)
def test_what_it_loads(view: dict[str, Any], name: str) -> None:
    """Its own recordings, those of 3.9, also cleaned, and offsets that stand before a streams group."""
    assert {True} == {of["loaded"] for of in of_log(view, name)}


@pytest.mark.parametrize(
    ("name", "is_tombstone", "fault", "said"),
    [
        ("no_upgrade", False, "KAFKA-21117", "is not a consumer group"),
        ("last_tombstone", True, "KAFKA-21102", "did not receive ConsumerGroupCurrentMemberAssignmentValue tombstone"),
    ],
)
def test_what_it_does_not_load(view: dict[str, Any], name: str, is_tombstone: bool, fault: str, said: str) -> None:
    """The record of a member at which it fails, the group, the fault.

    A group that went up and came back, without the tombstone of the upgrade; a member's last tombstone alone.
    """
    (failed,) = of_log(view, name)
    _, records = loading_logs.logs(RELEASE)[name]
    first = next(of for of in records if of.key[:2] == b"\x00\x05" and (of.value is None) == is_tombstone)

    assert (False, fault) == (failed["loaded"], failed["known"])
    assert (first.offset, loading_logs.group_of(first)) == (failed["at_offset"], failed["group"])
    assert said in failed["said"]


def test_nothing_else_is_lost(view: dict[str, Any]) -> None:
    """Every group and offset of the other partitions is answered as the replica has it, and nothing more."""
    gone = {loading_logs.group_of(loading_logs.logs(RELEASE)[name][1][0]) for name in ("no_upgrade", "last_tombstone")}

    assert is_lost(view)
    assert gone == {*view["groups_missing"]}
    assert ([], 0) == (view["groups_changed"], view["offsets_different"])
    assert ([], 0) == (view["groups_more"], view["offsets_more"])


def test_a_broker_that_does_not_start_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In its own words, and the status is that of what cannot be told."""
    log = str(loading_logs.RECORDINGS / "4.3.1" / "offsets.ndjson.gz")
    setting = "group.consumer.max.size=many"

    status = main(["rehearse", "brokers", "--from", log, "--release", RELEASE, "--broker-config", setting])

    captured = capsys.readouterr()
    assert 3 == status
    assert "cannot tell" in captured.out
    assert "Invalid value many for configuration group.consumer.max.size" in captured.err.splitlines()[-1]


def board_of_logs() -> Board:
    """What a monitor has read of all logs."""
    board = Board(EndOffsets())
    board.load([])
    shards: dict[int, Shard] = {}
    for _, records in loading_logs.logs(RELEASE).values():
        for of in records:
            shard = shards.setdefault(of.partition, Shard(of.partition))
            shard.pending.append((of.timestamp_ms, of.key, of.value))
    for number, shard in enumerate(shards.values()):
        board.apply(number, shard.flush(), 0)
    return board


def test_monitor_sees_which_partition_its_coordinator_did_not_load(view: dict[str, Any], kept: Path) -> None:
    """The broker restarts once more. Of the partitions, all silent, those that failed are reported, with their groups.

    Its clock is ours: by it all were written to every ten seconds before.
    """
    failed = {of["partition"]: [of["group"]] for of in view["partitions"] if not of["loaded"]}
    board, now_ms = board_of_logs(), times.now_ms()
    partitions = view_partitions(view)
    directory = kept / RELEASE / "broker"
    with ReleaseBroker(
        directory, jars_dir=release_jars.place(RELEASE), offsets_partitions=loading_logs.IN_ALL
    ) as broker:
        settings = python_settings(KafkaSection(bootstrap_servers=broker.bootstrap_servers), "test")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not partitions <= loader_words.said(broker.log_file.read_text("utf-8")).heard_of:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with closing(KafkaOffsetsClient(settings)) as client, closing(ClusterClient(settings)) as cluster:
            (topic,) = client.describe([OFFSETS_TOPIC], [])
            board.ends.set_topics([topic], [])
            leaders = {(OFFSETS_TOPIC, number): leader for number, leader in topic.leaders.items()}
            ends = client.ends(leaders, committed=False)
            caught_up(board)
            watch = LoadWatch(board, lambda: cluster, board.events.add, lambda: now_ms)
            for to_come in (*range(40, 0, -1), *[0] * 20):
                now_ms += 10_000
                shown = {place: end - to_come for place, end in ends.items()}
                board.ends.record(now_ms, shown, shown)
                watch.look(measure(table_of(board.shown.groups.values()), board.ends, now_ms), now_ms)
                watch.check()

    told = [event for event in board.latest_events(99) if event["kind"] == "coordinator_not_loaded"]
    assert {("critical", None, "NOT_COORDINATOR")} == {
        (of["severity"], of["group"], of["detail"]["said"]) for of in told
    }
    assert failed == {of["detail"]["partition"]: of["detail"]["groups"] for of in told}
    assert ({*failed}, 2) == ({*board.findings.not_loaded}, len(told))


def view_partitions(view: dict[str, Any]) -> set[int]:
    """Those that have records."""
    return {of["partition"] for of in view["partitions"]}


@pytest.fixture(scope="module")
def somebodys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A cluster of somebody's."""
    with EmbeddedBroker(tmp_path_factory.mktemp("somebodys"), offsets_partitions=2) as broker:
        yield broker


def ends(broker: EmbeddedBroker) -> dict[int, int]:
    """Where its log ends."""
    with closing(LogRecorder(KafkaSection(bootstrap_servers=broker.bootstrap_servers), [0, 1])) as recorder:
        return recorder.ends


def test_no_broker_of_somebody_else_is_written_to(somebodys: EmbeddedBroker) -> None:
    """A real cluster at the port that the rehearsal's broker had: it is refused, and its log stays as it is."""
    before = ends(somebodys)

    class Own:
        port = int(somebodys.bootstrap_servers.rpartition(":")[2])
        pid = somebodys.pid
        cluster_id = "b3duLWNsdXN0ZXItaWQtMQ"

    with pytest.raises(CannotTellError, match="nothing was written"), LogWriter(Own()) as writer:
        writer.write(loading_logs.records_of("4.3.1/offsets.ndjson.gz")[0])

    assert before == ends(somebodys)


def committed(broker: EmbeddedBroker, group: str, offset: int) -> Producer:
    """A transaction that has committed an offset and is still open."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{group}-{offset}", "log_level": 0}
    )
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    owner = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    place = TopicPartition("orders", 0, offset)
    producer.send_offsets_to_transaction([place], owner.consumer_group_metadata(), PATIENCE_SECONDS)
    owner.close()
    return producer


def test_log_of_a_cluster_is_rehearsed_without_a_trace(
    somebodys: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An aborted transaction is left out, an open one is named; nothing is written there, and nothing stays on disk."""
    done, open_ = (
        next(name for name in (f"group-{number}" for number in range(99)) if offsets_partition(name, 2) == partition)
        for partition in (0, 1)
    )
    create_topics(somebodys.bootstrap_servers, {"orders": 1})
    committed(somebodys, done, 2).commit_transaction()
    committed(somebodys, done, 3).abort_transaction()
    held = committed(somebodys, open_, 4)
    before = ends(somebodys)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    status = main(
        ["rehearse", "brokers", "--bootstrap-server", somebodys.bootstrap_servers, "--release", RELEASE, "--json"]
    )

    report = json.loads(capsys.readouterr().out)
    assert (0, somebodys.cluster_id) == (status, report["cluster_id"])
    assert ["partition 1: offset commits of an open transaction, among its last 1 offsets"] == report["not_rehearsed"]
    (view_,) = report["releases"]
    # Of the group whose commits are open nothing is known yet.
    assert (1, [], [], 0, 0) == tuple(
        view_[name] for name in ("groups", "groups_missing", "groups_changed", "offsets_missing", "offsets_different")
    )
    assert [(0, 1)] == [(of["partition"], of["offsets"]) for of in view_["partitions"]]
    assert before == ends(somebodys)
    assert [] == list(tmp_path.iterdir())
    held.abort_transaction()
