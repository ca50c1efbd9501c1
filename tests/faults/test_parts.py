"""Checkpoint, `monitor.json` and `resume.json`, each lost, exchanged, or older than the others; `make faults` runs it.

Whatever is done, a monitor that says it is ready shows every group and the latest offsets, at once; or it ends in one
line.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from lab.monitor_process import READY_SECONDS, MonitorProcess, until
from streaming.checkpoint.identity import IDENTITY_FILE
from streaming.checkpoint.location import CHECKPOINT
from streaming.checkpoint.resume_file import RESUME_FILE
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from tests.integration.test_checkpoint_places import SMALL, Shown, commit, shown
from tests.left_out import asked_for

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    asked_for("FAULTS"),
]


@dataclass
class Left:
    """What monitors left: `now` is the state directory to go on from, the others lend parts."""

    servers: str
    there: Shown
    now: Path
    older: Path
    another: Path


def lose(name: str) -> Callable[[Path, Left], None]:
    def do(state: Path, _: Left) -> None:
        path = state / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return do


def take(name: str, of: str) -> Callable[[Path, Left], None]:
    def do(state: Path, left: Left) -> None:
        lose(name)(state, left)
        source: Path = getattr(left, of) / name
        if source.is_dir():
            shutil.copytree(source, state / name)
        else:
            shutil.copy(source, state / name)

    return do


def of_another_cluster(state: Path, _: Left) -> None:
    path = state / CHECKPOINT / "identity.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "cluster_id": "another"}))


CASES: Final[dict[str, tuple[bool, list[Callable[[Path, Left], None]]]]] = {
    "nothing": (True, []),
    "checkpoint lost": (False, [lose(CHECKPOINT)]),
    "checkpoint older": (True, [take(CHECKPOINT, "older")]),
    "checkpoint of another monitor": (True, [take(CHECKPOINT, "another")]),
    "checkpoint of another cluster": (False, [of_another_cluster]),
    "monitor.json lost": (True, [lose(IDENTITY_FILE)]),
    "monitor.json older": (True, [take(IDENTITY_FILE, "older")]),
    "monitor.json of another monitor": (True, [take(IDENTITY_FILE, "another")]),
    "monitor.json lost, checkpoint of another cluster": (False, [lose(IDENTITY_FILE), of_another_cluster]),
    "resume.json lost": (True, [lose(RESUME_FILE)]),
    "resume.json older": (True, [take(RESUME_FILE, "older")]),
    "resume.json of another monitor": (True, [take(RESUME_FILE, "another")]),
    "checkpoint older, resume.json lost": (True, [take(CHECKPOINT, "older"), lose(RESUME_FILE)]),
    "checkpoint and resume.json older": (True, [take(CHECKPOINT, "older"), take(RESUME_FILE, "older")]),
    "checkpoint and resume.json lost": (True, [lose(CHECKPOINT), lose(RESUME_FILE)]),
}
"""What is done → whether a monitor starts on it, and how."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    scratch = tmp_path_factory.mktemp("parts")
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(scratch / "broker", offsets_partitions=2))
        servers = broker.bootstrap_servers
        create_topics(servers, {"orders": 1})
        left = Left(servers, {}, scratch / "now", scratch / "older", scratch / "another")
        for number, (state, copy) in enumerate(((left.now, left.older), (left.now, None), (left.another, None))):
            if state is not left.another:
                left.there |= commit(servers, number + 3, f"made-{number}")
            with started(scratch / f"run-{number}", left, state) as monitor:
                monitor.await_ready()
                until(lambda: shown(monitor) == left.there, 60, lambda: str(shown(monitor)))
                # A second micro-batch for each: what is older is not one batch behind.
                left.there |= commit(servers, number + 13)
                until(lambda: shown(monitor) == left.there, 60, lambda: str(shown(monitor)))
                monitor.terminate()
                monitor.await_end(60)
            if copy is not None:
                shutil.copytree(state, copy)
        yield left


def started(directory: Path, left: Left, state: Path) -> MonitorProcess:
    return MonitorProcess(directory, left.servers, state=state, command=("run", *SMALL))


@pytest.mark.parametrize("case", CASES)
def test_ready_is_whole(left: Left, tmp_path: Path, case: str) -> None:
    """With every group and the latest offsets as soon as it says so; or it ends in one line, with status 2."""
    starts, done = CASES[case]
    state = tmp_path / "state"
    shutil.copytree(left.now, state)
    for do in done:
        do(state, left)
    with started(tmp_path / "run", left, state) as monitor:
        until(lambda: monitor.exit_status is not None or _is_ready(monitor), READY_SECONDS, "neither ready nor ended")
        if not starts:
            assert 2 == monitor.exit_status
            assert 1 == len([line for line in monitor.error_lines() if line.startswith("error: ")])
            return
        assert left.there == shown(monitor)
        monitor.terminate()
        monitor.await_end(60)


def _is_ready(monitor: MonitorProcess) -> bool:
    return bool(monitor.output_lines()) and monitor.is_ready()
