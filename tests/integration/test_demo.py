"""The demo's other ends: by its time, by Ctrl-C before it is up, and of its members alone.

What it shows, and its end by Ctrl-C after that, is in `tests/demo`.
"""

import re
import time
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from lab.monitor_process import CommandProcess, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.scenario import GROUPS
from tests.demo_end import Ended, ended

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

SECONDS: Final = 25
"""Less than a roll there and back takes anywhere."""

FIRST_SECONDS: Final = 180.0
LONGEST_SECONDS: Final = 480.0


def test_ends_by_itself(tmp_path: Path) -> None:
    """After its time, once all is shown; or with what a slow machine has not shown. Nothing is left."""
    begun = time.monotonic()
    with started(tmp_path, "--seconds", str(SECONDS)) as demo:
        over = over_of(demo, tmp_path, begun)
    steps, failures = over.error_lines[: -over.status or None], over.error_lines[len(over.error_lines) - over.status :]

    assert over.status in (0, 1)
    assert ([], []) == (over.left, over.scratch)
    assert SECONDS - 1 < over.seconds
    assert over.lines[0].startswith("page http://127.0.0.1:")
    assert [] == [line for line in steps if not line.startswith("demo: ")]
    assert any(f"not all is shown after {SECONDS} s: going on until it is" in line for line in steps)
    assert all(re.fullmatch(r"error: the demo did not show in \d+ s: .* of orders-service .*", of) for of in failures)


def test_ctrl_c_before_it_is_up(tmp_path: Path) -> None:
    """Pressed while the broker is starting it ends what there is, and says nothing of it."""
    with started(tmp_path) as demo:
        until(lambda: any("kafka.Kafka" in command for command in demo.left_over()), 60, "no broker is started")
        demo.interrupt()
        early = over_of(demo, tmp_path, time.monotonic())

    assert (0, [], []) == (early.status, early.left, early.scratch)
    assert [] == [line for line in early.error_lines if not line.startswith("demo: ")]


def test_members_alone_on_a_cluster_of_one_s_own(tmp_path: Path) -> None:
    """With `--bootstrap-server` topics and groups are made there, and neither broker nor monitor is started."""
    with (
        EmbeddedBroker(tmp_path / "broker") as broker,
        started(tmp_path, "--bootstrap-server", broker.bootstrap_servers, own_port=False) as demo,
    ):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
        until(
            lambda: set(GROUPS) <= {group.group_id for group in admin.list_consumer_groups().result().valid},
            FIRST_SECONDS,
            lambda: f"not all groups are there: {demo.error_lines()}",
        )
        running = " ".join(demo.left_over())
        demo.interrupt()
        alone = over_of(demo, tmp_path, time.monotonic())

    assert ("VerifiableConsumer" in running, "kafka.Kafka" in running, "pyspark" in running) == (True, False, False)
    assert (0, [], [], []) == (alone.status, alone.lines, alone.left, alone.scratch)
    assert [] == [line for line in alone.error_lines if not line.startswith("demo: ")]


def over_of(demo: CommandProcess, directory: Path, begun: float) -> Ended:
    """How one that was `started` in a directory ended."""
    return ended(demo, directory / "scratch", begun, LONGEST_SECONDS)


def started(directory: Path, *arguments: str, own_port: bool = True) -> CommandProcess:
    """A demo, on any free port unless it opens none, with its scratch files below the directory."""
    (directory / "scratch").mkdir()
    environment = {"TMPDIR": str(directory / "scratch"), "COLUMNS": "80"}
    port = ("--set", "http.port=0") if own_port else ()
    return CommandProcess(directory / "demo", "demo", *port, *arguments, environment=environment)
