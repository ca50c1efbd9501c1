"""Checkpoints in places of odd names, asked for by URL, and wanted by two: each monitor shows all there is, or none.

One story is played once, in `told`. A monitor with a state directory of an odd name is killed. Another one, with a
state directory of its own, wants the same checkpoint while the first runs, and has it once that is killed; it ends by a
hang-up.
"""

import os
import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from lab.monitor_process import END_SECONDS, MonitorProcess, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

ODD: Final = "st a%20b #[1] {é,→} ?*"
GROUPS: Final = 8
SMALL: Final = ("--set", "source.tasks=1")

Shown = dict[str, int]
"""Group → committed offset."""


@dataclass
class Told:
    """What was seen while the story was played."""

    shown: dict[str, tuple[Shown, Shown]] = field(default_factory=dict)
    """When → what there is, and what the monitor shows: the first in the end, the second as soon as it is ready."""
    refused: tuple[int, list[str]] = (0, [])
    places: list[str] = field(default_factory=list)
    """Directories with something of a checkpoint in them, anywhere."""
    status: int | None = None
    """With which the second ended."""


def commit(servers: str, offset: int, *more: str) -> Shown:
    """Have each group commit an offset."""
    names = [*(f"group-{number}" for number in range(GROUPS)), *more]
    for name in names:
        consumer = Consumer({"bootstrap.servers": servers, "group.id": name, "log_level": 2})
        consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
        consumer.close()
    return dict.fromkeys(names, offset)


def shown(monitor: MonitorProcess) -> Shown:
    """Group → offset, as the list of all groups has them."""
    groups: dict[str, dict[str, Any]] = monitor.groups()
    return {name: of["offsets"][0]["offset"] for name, of in groups.items()}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    scratch, told = tmp_path_factory.mktemp("places"), Told()
    state = scratch / ODD
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(scratch / "broker", offsets_partitions=2))
        servers = broker.bootstrap_servers
        create_topics(servers, {"orders": 1})

        def start(name: str, state: Path, place: str | None = None) -> MonitorProcess:
            more = () if place is None else ("--set", f"state.checkpoint_location={place}")
            return stack.enter_context(
                MonitorProcess(scratch / name, servers, state=state, command=("run", *SMALL, *more))
            )

        there = commit(servers, 3)
        first = start("first", state)
        first.await_ready()
        until(lambda: shown(first) == there, 60, lambda: str(shown(first)))
        place = f"file:{state}/checkpoint"
        second = start("refused", scratch / "another", place)
        told.refused = second.await_end(90), second.error_lines()
        told.shown["before"] = there, shown(first)
        first.kill()
        there = commit(servers, 5, "made-unseen")
        again = start("again", scratch / "third", place)
        again.await_ready()
        told.shown["after kill -9, with another state.dir"] = there, shown(again)
        until(lambda: "event=ready" in again.start_lines()[-1], 90, lambda: f"{again.start_lines()}")
        os.killpg(again.pid, signal.SIGHUP)
        told.status = again.await_end(60)
        # Python workers see the end of a JVM that was killed by their pipe's.
        until(lambda: not again.left_over(), END_SECONDS, lambda: f"left: {again.left_over()}")
        told.places = sorted(
            str(path.parent.relative_to(scratch)) for path in scratch.rglob("commits") if path.is_dir()
        )
    return told


@pytest.mark.parametrize("when", ["before", "after kill -9, with another state.dir"])
def test_all_there_is_is_shown(told: Told, when: str) -> None:
    """Every group, and the latest offset; after `kill -9` as soon as it is ready."""
    expected, found = told.shown[when]

    assert expected == found


def test_there_is_one_checkpoint(told: Told) -> None:
    """Where the name says, and no second one under an escaped name."""
    assert [f"{ODD}/checkpoint"] == told.places


def test_second_monitor_of_a_checkpoint_is_refused(told: Told) -> None:
    """In one line, by the lease in it: its own state directory is free."""
    status, lines = told.refused
    line = lines[-1]

    assert 2 == status
    assert line.startswith("error: state.checkpoint_location: found 'file:/")
    assert "in use by process" in line
    assert "--standby" in line


def test_a_hang_up_ends_it(told: Told) -> None:
    """A monitor that is ready, as the other signals do (`test_stops.py`), and nothing of it is left."""
    assert 0 == told.status
