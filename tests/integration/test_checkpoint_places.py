"""Checkpoints in places of odd names, asked for by URL, and wanted by two: each monitor shows all there is, or none.

One story is played once, in `told`. A monitor with a state directory of an odd name is killed and started again;
another one, with a state directory of its own, wants the same checkpoint while the first runs, and has it once that is
killed.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from lab.monitor_process import MonitorProcess, until
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
    """When → what there is, and what a monitor that is ready shows at once."""
    refused: tuple[int, list[str]] = (0, [])
    places: list[str] = field(default_factory=list)
    """Directories with something of a checkpoint in them, anywhere."""
    errors: list[str] = field(default_factory=list)


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
        second = start("refused", scratch / "another", f"file:{state}/checkpoint")
        told.refused = second.await_end(90), second.error_lines()
        first.kill()
        there |= commit(servers, 5, "made-unseen")
        again = start("again", state)
        again.await_ready()
        told.shown["after kill -9"] = {**there}, shown(again)
        again.kill()
        told.errors = again.error_lines()
        there |= commit(servers, 8, "made-later")
        third = start("third", scratch / "third", f"file:{state}/checkpoint")
        third.await_ready(180)
        told.shown["with another state.dir"] = there, shown(third)
        third.terminate()
        third.await_end(60)
        told.places = sorted(
            str(path.parent.relative_to(scratch)) for path in scratch.rglob("commits") if path.is_dir()
        )
    return told


@pytest.mark.parametrize("when", ["after kill -9", "with another state.dir"])
def test_all_there_is_is_shown(told: Told, when: str) -> None:
    """As soon as it is ready: every group, and the latest offset."""
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


def test_nothing_else_is_said(told: Told) -> None:
    """A restart after a kill is nothing to report."""
    assert [] == [line for line in told.errors if "level=info" not in line]
