"""Which configurations go together in one process, and what becomes of the others when one monitor fails.

Here monitors do as they are scripted; real ones, with brokers and Spark, are in tests/integration/test_clusters.py.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import pytest
from structlog.testing import capture_logs

from lab.monitor_process import until
from streaming.base.errors import CannotTellError, MonitorError, UsageError
from streaming.base.logging_setup import get_logger, with_fields
from streaming.base.threads import Background
from streaming.config.loading import Config
from streaming.kafka import preflight
from streaming.monitor import several
from streaming.monitor.several import refuse_unfit
from streaming.spark import jvm_lifecycle, session


def of_cluster(name: str, directory: str, port: int = 0, **more: dict[str, Any]) -> Config:
    """A configuration with these options, and further ones by section."""
    state = {"dir": Path(directory), **more.pop("state", {})}
    return Config.model_validate({"cluster": {"name": name}, "state": state, "http": {"port": port}, **more})


EAST = of_cluster("east", "/a", 9464, history={"enabled": True, "dir": "/h"}, spark={"driver_memory": "2g"})
ELSEWHERE = {"checkpoint_location": "hdfs://name/checkpoint"}


@pytest.mark.parametrize(
    ("second", "option", "found"),
    [
        (of_cluster("east", "/b"), "cluster.name", "'east'"),
        (of_cluster("west", "/c/../a"), "state.dir", "'/a'"),
        (of_cluster("west", "/b", 9464), "http.port", "127.0.0.1:9464"),
        (of_cluster("west", "/b", history={"enabled": True, "dir": "/h"}), "history.dir", "'/h'"),
        (of_cluster("west", "/b", spark={"driver_memory": "3g"}), "spark", "other settings for cluster 'west'"),
        (of_cluster("west", "/b", state=ELSEWHERE), "state.checkpoint_location", "other settings for cluster 'west'"),
    ],
)
def test_configurations_that_do_not_go_together(second: Config, option: str, found: str) -> None:
    """What each must have for itself, and what all must have alike, is named by its option, before anything starts."""
    with pytest.raises(UsageError) as reported:
        refuse_unfit([EAST, of_cluster("north", "/n"), second])

    assert str(reported.value).startswith(f"{option}: found {found}")
    assert ", accepted: " in str(reported.value)


def test_configurations_that_go_together() -> None:
    """Any free port may be taken twice; a history that is not kept has no directory."""
    refuse_unfit([EAST, of_cluster("west", "/b"), of_cluster("north", "/c", history={"dir": "/h"})])


def test_only_one_is_rebuilt_at_a_time() -> None:
    """No one's checkpoint is forgotten because another one's is to be."""
    with pytest.raises(UsageError, match=r"^--rebuild: found 2 of --config, accepted: the one"):
        refuse_unfit([EAST, of_cluster("west", "/b")], rebuild=True)


def test_what_a_thread_logs_has_the_fields_bound_where_it_was_begun(capsys: pytest.CaptureFixture[str]) -> None:
    """So a line says which cluster it is about, whichever thread wrote it."""
    import structlog

    from streaming.base import logging_setup

    logging_setup.configure()
    log = get_logger("test")
    with structlog.contextvars.bound_contextvars(cluster="west"):
        thread = Background("test", lambda: log.info("from a thread"), stop_seconds=None)
        thread.start()
        called_later = with_fields(log.info)
    thread.stop()
    called_later("from a callback")
    log.info("of nobody")
    first, second, third = capsys.readouterr().err.splitlines()

    assert ["cluster=west" in line for line in (first, second, third)] == [True, True, False]


class Scripted:
    """In the place of a monitor: does at its start, and then, what the test has written down for its cluster."""

    starts: ClassVar[dict[str, list[Exception | None]]] = {}
    """Cluster → what its next starts raise."""
    ends: ClassVar[dict[str, Exception]] = {}
    """Cluster → what it cannot go on for; the others run until they are stopped."""
    happened: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, config: Config, *, standby: bool, while_waiting: Callable[[], object]) -> None:
        self.name, self.server = config.cluster.name, SimpleNamespace(url="http://here", print_address=lambda _: None)
        self._standby, self._look = standby, while_waiting

    def share(self, *_: object) -> None:
        """There is no Spark."""

    def discard(self) -> None:
        self.happened.append((self.name, "discarded"))

    def __enter__(self) -> Self:
        if self._standby:
            self.happened.append((self.name, "waits"))
        while self._standby:
            self._look()
            time.sleep(0.01)
        error = self.starts[self.name].pop(0) if self.starts.get(self.name) else None
        if error is not None:
            raise error
        self.happened.append((self.name, "runs"))
        return self

    def __exit__(self, *_: object) -> None:
        self.happened.append((self.name, "ended"))

    def run_until(self, stopped: threading.Event) -> None:
        if self.name in self.ends:
            raise self.ends[self.name]
        stopped.wait()


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> type[Scripted]:
    for script in (Scripted.starts, Scripted.ends, Scripted.happened):
        script.clear()
    monkeypatch.setattr(several, "Monitor", Scripted)
    monkeypatch.setattr(session, "start", lambda *_: None)
    monkeypatch.setattr(jvm_lifecycle, "stop", lambda _: None)
    monkeypatch.setattr(preflight, "preflight", lambda *_, **__: None)
    monkeypatch.setattr(several, "RETRY_SECONDS", 0.01)
    return Scripted


BOTH = [of_cluster("east", "/a"), of_cluster("west", "/b")]
SURE = UsageError("state.dir: found it damaged")
AWAY = CannotTellError("kafka.bootstrap_servers: none reachable")


def run_until_signal(when: Callable[[], bool], *, standby: bool = False) -> None:
    """Run both, and send what a service manager does as soon as something holds."""

    def send() -> None:
        until(when, 90, "it never happens")
        os.kill(os.getpid(), signal.SIGTERM)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        several.run(BOTH, standby=standby)
    finally:
        sender.join()


def test_a_signal_ends_all(scripted: type[Scripted]) -> None:
    """Each in order; nothing is reported."""
    run_until_signal(lambda: len(scripted.happened) == 2)

    assert {("east", "ended"), ("west", "ended")} == set(scripted.happened[2:])


def test_a_signal_ends_those_who_stand_by(scripted: type[Scripted]) -> None:
    """They wait for no one any more, and have never run."""
    run_until_signal(lambda: len(scripted.happened) == 2, standby=True)

    assert {("east", "waits"), ("west", "waits")} == set(scripted.happened)


def test_one_that_cannot_go_on_leaves_the_others_running(scripted: type[Scripted]) -> None:
    """Its address goes at once; what it ended for is reported in the log, and is how the process ends."""
    scripted.ends["east"] = SURE
    with capture_logs() as said, pytest.raises(UsageError, match="found it damaged"):
        run_until_signal(lambda: ("east", "ended") in scripted.happened and ("west", "runs") in scripted.happened)

    assert [("monitor_ended", str(SURE))] == [(of["event"], of["reason"]) for of in said if of["event"] != "serving"]
    assert ("west", "ended") == scripted.happened[-1]


def test_the_process_ends_with_its_last_monitor(scripted: type[Scripted]) -> None:
    """No one has to send a signal; the first error is the process's."""
    scripted.ends["east"], scripted.starts["west"] = SURE, [RuntimeError("a bug"), None]
    with capture_logs() as said, pytest.raises(MonitorError):
        several.run(BOTH)

    ended = {of["reason"] for of in said if of["event"] == "monitor_ended"}
    assert {str(SURE), "unexpected RuntimeError: a bug"} == ended


def test_brokers_that_do_not_answer_at_first_are_waited_for(scripted: type[Scripted]) -> None:
    """Reported once, however often it is tried; then it runs like the other."""
    scripted.starts["west"] = [AWAY, AWAY, AWAY, None]
    with capture_logs() as said:
        run_until_signal(lambda: {("east", "runs"), ("west", "runs")} <= set(scripted.happened))

    assert [("monitor_waits", str(AWAY))] == [(of["event"], of["reason"]) for of in said if of["event"] != "serving"]


def test_the_port_of_one_that_waits_is_given_back(scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch) -> None:
    """No one is kept waiting on an address behind which nothing runs yet."""
    answers = [AWAY, None]

    def ask(config: Config, **_: bool) -> None:
        if config.cluster.name == "west" and (error := answers.pop(0)) is not None:
            raise error

    monkeypatch.setattr(preflight, "preflight", ask)
    run_until_signal(lambda: ("west", "runs") in scripted.happened)

    assert [("west", "discarded"), ("west", "runs"), ("west", "ended")] == [
        of for of in scripted.happened if of[0] == "west"
    ]
