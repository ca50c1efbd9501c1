"""What `check` says of the offsets topic as the brokers describe it."""

from typing import Any

import pytest

from streaming.base.errors import CannotTellError
from streaming.cli.check import exit_status
from streaming.config.kafka_sections import KafkaSection
from streaming.config.sections import Config
from streaming.kafka import preflight
from streaming.kafka.preflight import LEADERS, Finding


class Describing:
    """An admin client that knows the offsets topic alone, with the leader of each of its partitions."""

    def __init__(self, *leaders: int) -> None:
        self._leaders = leaders

    def describe_topics(self, _: list[str]) -> list[dict[str, Any]]:
        partitions = [{"partition_index": number, "leader_id": leader} for number, leader in enumerate(self._leaders)]
        return [{"error_code": 0, "partitions": partitions, "authorized_operations": None}]


def found(*leaders: int) -> list[Finding]:
    return list(preflight._topic_findings(Describing(*leaders), KafkaSection()))


def test_partitions_without_a_leader_are_named() -> None:
    """By their numbers, and what follows; what is in them is unknown: exit status 3."""
    (finding,) = (of for of in found(1, -1, 2, -1) if of.name == LEADERS)

    assert "cannot tell" == finding.status
    assert finding.detail.startswith("__consumer_offsets: found partitions 1, 3 without a leader, accepted: none such")
    assert 3 == exit_status(found(1, -1, 2, -1))


def test_with_a_leader_for_each_there_is_nothing_to_say() -> None:
    """Leaders may all be one broker, and it may be broker 0."""
    assert {"ok"} == {of.status for of in found(0, 0)}
    assert 0 == exit_status(found(0, 0))


def test_a_monitor_starts_without_them_and_a_recording_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the others meanwhile; a recording would lack them for good."""
    monkeypatch.setattr(preflight, "broker_findings", lambda *_, **__: found(1, -1))
    config = Config.model_validate({})
    preflight.preflight(config)
    preflight.preflight(config, by_spark=True)

    with pytest.raises(CannotTellError, match="partition 1 without a leader"):
        preflight.preflight(config, all_of_it=True)
