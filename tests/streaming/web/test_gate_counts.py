"""What a gate counts is what the page counts; and for which targets the log is scanned."""

import json
import threading
from collections import Counter

import pytest

from coordinator_model.gates.verdict import BrokerSettings, Cluster, LogScan
from streaming.board import gates
from streaming.web.api_answers import Api, BrokerAnswers
from streaming.web.overview import Overview
from tests.streaming.random_boards import RandomBoard

STEPS = 30


@pytest.mark.parametrize("seed", range(20))
def test_gate_and_page_count_alike(seed: int) -> None:
    """Groups by type, and records left over from downgrades."""
    story = RandomBoard(seed, 12)
    for _ in range(STEPS):
        story.step()
        rows = Overview(story.board, lambda: story.now_ms).rows()[1]
        asked = Cluster(group_configs=(), now_ms=story.now_ms)
        answer = gates.downgrade(story.board, (), asked, story.board.moment(), "3.9")

        assert dict(Counter(row["type"] for row in rows)) == answer["groups"]
        assert sum(row["leftovers"] or 0 for row in rows) == sum(answer["leftover_records"].values())


@pytest.mark.parametrize("gate", ["upgrade", "downgrade"])
def test_gate_as_shown_is_of_the_rows_that_are_shown(gate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the board has become since they were made; without the parameter it is of the board as it is."""
    monkeypatch.setattr("streaming.web.overview.MAKE_EVERY_SECONDS", 3_600.0)
    story = RandomBoard(1, 12)
    api = Api(story.board, "prod", clock_ms=lambda: story.now_ms)
    token, _ = api.news(None, None)
    rows = Counter(row["type"] for row in json.loads(api.overview())["groups"])
    for _ in range(STEPS):
        story.step()
        shown = api.gate(gate, (), {"as_shown": "1"})

        assert token.startswith(f"{shown['version']}-")
        assert dict(rows) == shown["groups"]
    assert dict(rows) != api.gate(gate, ())["groups"]


@pytest.mark.parametrize(
    ("target", "scans"), [(None, 0), ("3.4.0", 1), ("3.3", 1), ("3.4.1", 0), ("3.9", 0), ("4.2", 0)]
)
def test_log_is_scanned_for_targets_that_fail_on_what_is_in_it(target: str | None, scans: int) -> None:
    """And for no other: it reads all of the log."""
    asked: list[int] = []

    def scan() -> LogScan:
        asked.append(1)
        return LogScan(tombstones={3: 1})

    api = Api(RandomBoard(1, 4).board, "prod", brokers=BrokerAnswers(log_scan=scan))
    answer = api.gate("downgrade", (), {} if target is None else {"target_version": target})
    stopped = [of["code"] for of in answer["reasons"] if of["effect"] == "stop" and of["code"] == "log_records"]

    assert scans == len(asked)
    assert ["log_records"] * scans == stopped
    assert ({"3": 1} if scans else None) == (answer["log_scan"] and answer["log_scan"]["tombstones"])


def test_gate_does_not_wait_for_brokers_that_are_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot tell; they are asked once, however many wait, and their word counts as soon as it comes."""
    monkeypatch.setattr("streaming.web.api_answers.BROKER_WAIT_SECONDS", 0.01)
    there, asked = threading.Event(), Counter[str]()

    def settings() -> BrokerSettings:
        asked["settings"] += 1
        assert there.wait(60)
        return BrokerSettings(consumer_max_size=7)

    def group_configs() -> list[str]:
        asked["group_configs"] += 1
        assert there.wait(60)
        return []

    brokers = BrokerAnswers(settings=settings, group_configs=group_configs)
    story = RandomBoard(1, 4)
    api = Api(story.board, "prod", brokers=brokers, clock_ms=lambda: story.now_ms)

    unknown = [api.gate(gate, ()) for gate in ("upgrade", "downgrade", "upgrade")]
    assert ["cannot_tell"] * 3 == [of["verdict"] for of in unknown]
    assert {"settings": 1, "group_configs": 1} == asked

    monkeypatch.setattr("streaming.web.api_answers.BROKER_WAIT_SECONDS", 60.0)
    there.set()
    known = [api.gate(gate, ()) for gate in ("upgrade", "downgrade")]
    assert {"settings": 1, "group_configs": 1} == asked
    assert not {of["code"] for of in unknown[1]["reasons"]} <= {of["code"] for of in known[1]["reasons"]}
