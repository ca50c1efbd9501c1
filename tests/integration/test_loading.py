"""The log loaded by a real broker that restarts on it, and no other broker written to."""

from pathlib import Path
from typing import Any, Final

import pytest

from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.loading import run, source
from streaming.loading.compared import is_lost
from streaming.loading.log_writer import LogWriter
from streaming.recording.recorder import LogRecorder
from tests import loading_logs

pytestmark = pytest.mark.broker

RELEASE: Final = "4.3.1"


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the release makes of all logs."""
    file = loading_logs.write(tmp_path_factory.mktemp("log") / "log.ndjson", release=RELEASE)
    found: dict[str, Any]
    (found,) = run.rehearse(source.of_recording(file, lambda _share: None), [RELEASE])["releases"]
    assert "cannot_tell" not in found, found
    return found


def of_log(view: dict[str, Any], name: str) -> list[dict[str, Any]]:
    places, _ = loading_logs.logs(RELEASE)[name]
    return [of for of in view["partitions"] if of["partition"] in places]


@pytest.mark.parametrize("name", ["well", "early_offsets", "classic", "of_3_9", "own"])
def test_what_it_loads(view: dict[str, Any], name: str) -> None:
    """Its own recordings, those of 3.9, and offsets that stand before a streams group."""
    assert {True} == {of["loaded"] for of in of_log(view, name)}


def test_what_it_does_not_load(view: dict[str, Any]) -> None:
    """A group that went up and came back, without the tombstone of the upgrade: the record, the group, the fault."""
    (failed,) = of_log(view, "no_upgrade")
    _, records = loading_logs.logs(RELEASE)["no_upgrade"]
    first = next(of for of in records if of.key[:2] == b"\x00\x05")

    assert (False, "KAFKA-21117") == (failed["loaded"], failed["known"])
    assert (first.offset, loading_logs.group_of(first)) == (failed["at_offset"], failed["group"])
    assert "is not a consumer group" in failed["said"]


def test_nothing_else_is_lost(view: dict[str, Any]) -> None:
    """Every group and offset of the other partitions is answered as the replica has it."""
    _, records = loading_logs.logs(RELEASE)["no_upgrade"]

    assert is_lost(view)
    assert [loading_logs.group_of(records[0])] == view["groups_missing"]
    assert ([], 0) == (view["groups_changed"], view["offsets_different"])


def test_no_broker_of_somebody_else_is_written_to(tmp_path: Path) -> None:
    """A real cluster at the port that the rehearsal's broker had: it is refused, and its log stays empty."""
    with EmbeddedBroker(tmp_path / "somebodys", offsets_partitions=1) as somebodys:

        class Own:
            port = int(somebodys.bootstrap_servers.rpartition(":")[2])
            pid = somebodys.pid
            cluster_id = "b3duLWNsdXN0ZXItaWQtMQ"

        with pytest.raises(CannotTellError, match="nothing was written"), LogWriter(Own()) as writer:
            writer.write(loading_logs.records_of("4.3.1/offsets.ndjson.gz")[0])
        recorder = LogRecorder(KafkaSection(bootstrap_servers=somebodys.bootstrap_servers), [0])
        try:
            assert {0: 0} == recorder.ends
        finally:
            recorder.close()
