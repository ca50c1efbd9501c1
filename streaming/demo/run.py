"""`demo`: an embedded broker, the scenario, and the job watching it, as one program that ends as one."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from streaming.base import scratch
from streaming.base.batch_rows import BatchRows, Row
from streaming.base.doubt import said
from streaming.base.errors import CheckFailed
from streaming.base.signals import stop_signals
from streaming.base.stages import Stages
from streaming.base.times import now_ms
from streaming.board import group_answer
from streaming.config.loading import Config
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.scenario import GROUPS, ROLLED_GROUP, DemoScenario
from streaming.demo.terminal import Terminal
from streaming.monitor.monitor import SPARK_LOG, Monitor
from streaming.spark import jvm_lifecycle, session

HEAPS: Final = "1g"
"""Java heap of the broker: with the driver's it has to fit beside five members on a laptop."""

_POLL_SECONDS: Final = 0.2

LEAST_MORE_SECONDS: Final = 60.0
"""So long, or as long again, a demo goes on after its time where not all is shown: machines have other work to do."""


class Witness:
    """A sink that passes on each event once, and remembers which conversions of the rolled group were seen."""

    def __init__(self, show: Callable[[Mapping[str, Any]], None]) -> None:
        self._show = show
        self._seen: set[str] = set()
        self.upgrades = 0
        self.downgrades = 0

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:  # noqa: ARG002 - a sink's signature
        """Take the rows of one micro-batch."""
        for event in BatchRows.of(rows).events:
            self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        if event["id"] in self._seen:
            return
        self._seen.add(event["id"])
        self._show(event)
        if event["group"] == ROLLED_GROUP:
            self.upgrades += event["kind"] == "upgrade_completed"
            self.downgrades += event["kind"] == "downgrade_completed"


def demo(config: Config, seconds: float | None = None) -> None:
    """Run the demo until Ctrl-C, or for so many seconds.

    Raises:
        CheckFailed: the monitor has not shown what happened, after `seconds` and some more (`TimeUp`).
        MonitorError: a part of it could not be started, or broke down.
    """
    begun = time.monotonic()
    with ExitStack() as stack:
        directory = stack.enter_context(_scratch())
        terminal: list[Terminal] = []

        def say(text: str) -> None:
            """On the terminal once it draws, so that the drawing stays whole."""
            (terminal[0].step if terminal else _say)(text)

        broker = EmbeddedBroker(directory / "broker", heap=HEAPS)
        scenario = DemoScenario(broker.bootstrap_servers, directory / "members", on_step=say)
        witness = Witness(lambda event: terminal[0].event(monitor.board.named(event)))
        config = _for_demo(config, broker, directory)
        # Takes the port, which may be in use, before anything else is begun.
        monitor = Monitor(config, [witness], say=say)
        abandoned = stack.enter_context(ExitStack())
        abandoned.callback(monitor.discard)
        cluster = stack.enter_context(_cluster(broker, scenario, say))
        with Stages(say).stage("starting Java and Spark"):
            log_file = config.state.dir / SPARK_LOG
            spark = session.start(config, log_file)
        stack.callback(jvm_lifecycle.stop, spark)
        monitor.share(spark, log_file)
        cluster.result()
        abandoned.pop_all()
        stack.enter_context(monitor)
        stopped = stack.enter_context(stop_signals())
        board = monitor.board
        address = f"page {monitor.server.url}/"
        terminal.append(
            Terminal(
                lambda: list(group_answer.views(board, now_ms())),
                address=address,
                doubt=lambda: board.health.standing().doubt,
            )
        )
        monitor.server.print_address()
        query = _Query(monitor, stopped)
        stack.callback(query.join)
        stack.callback(stopped.set)
        watcher = threading.Thread(target=_go_on_when_shown, args=(monitor, scenario, stopped), daemon=True)
        watcher.start()
        time_up = None
        if seconds is not None:
            time_up = TimeUp(seconds, begun, lambda: _missing(monitor, scenario, witness), stopped, say)
            time_up.start()
        terminal[0].run(stopped)
        if query.error is not None:
            raise query.error
        if time_up is not None:
            time_up.judge()


def members(bootstrap_servers: str, seconds: float | None = None) -> None:
    """Run the demo's groups alone, on any cluster, until Ctrl-C, or for so many seconds.

    Raises:
        CheckFailed: the scenario could not go on.
        CannotTellError: the cluster does not answer.
    """
    with _scratch() as directory, stop_signals() as stopped:
        scenario = DemoScenario(bootstrap_servers, directory / "members", on_step=_say)
        try:
            scenario.start()
            deadline = None if seconds is None else time.monotonic() + seconds
            while not stopped.wait(_POLL_SECONDS) and scenario.failure is None:
                if deadline is not None and time.monotonic() > deadline:
                    break
        finally:
            scenario.stop()
    if scenario.failure is not None:
        raise CheckFailed(f"the members could not go on: {scenario.failure}")


def _say(text: str) -> None:
    sys.stderr.write(f"demo: {text}\n")


class _Query(threading.Thread):
    """Runs the monitor's query beside the terminal; what broke it, if anything, is `error`."""

    def __init__(self, monitor: Monitor, stopped: threading.Event) -> None:
        super().__init__(name="query", daemon=True)
        self._monitor = monitor
        self._stopped = stopped
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Until stopped, or until the query cannot go on."""
        try:
            self._monitor.run_until(self._stopped)
        except Exception as error:  # noqa: BLE001 - whatever it is, the main thread has to end the demo with it
            self.error = error
        self._stopped.set()


@contextmanager
def _cluster(broker: EmbeddedBroker, scenario: DemoScenario, say: Callable[[str], object]) -> Iterator[Future[None]]:
    """The broker and its traffic, started beside what else there is to start: done when they are there."""

    def start() -> None:
        with Stages(say).stage("starting a broker"):
            broker.start()
        scenario.start(at_once=False)

    with ThreadPoolExecutor(1, thread_name_prefix="cluster") as pool:
        started = pool.submit(start)
        try:
            yield started
        finally:
            # One that is on its way up is ended, and its thread with it.
            while not started.done():
                broker.stop()
                wait([started], _POLL_SECONDS)
            scenario.stop()
            broker.stop()


def _go_on_when_shown(monitor: Monitor, scenario: DemoScenario, stopped: threading.Event) -> None:
    """Let each step begin once the one before can be seen, so that nothing is missed.

    First come groups that cost nothing: beside the JVMs of members the first micro-batch takes twice as long.
    """
    for shown, go_on in ((_any_shown, scenario.join), (_all_shown, scenario.roll)):
        while not shown(monitor):
            if stopped.wait(_POLL_SECONDS):
                return
        go_on()


def _any_shown(monitor: Monitor) -> bool:
    return bool(monitor.board.shown.groups)


def _all_shown(monitor: Monitor) -> bool:
    return set(GROUPS) <= monitor.board.shown.groups.keys()


class TimeUp(threading.Thread):
    """Ends a demo after its time; where not all is shown by then, once it is, or after as long again.

    Args:
        seconds: the time.
        begun: when it began, as `time.monotonic`.
        missing: what is not shown yet, in words.
        stopped: is set at the end; may be set before.
        say: gets a line where it takes longer.
    """

    def __init__(
        self,
        seconds: float,
        begun: float,
        missing: Callable[[], list[str]],
        stopped: threading.Event,
        say: Callable[[str], object],
    ) -> None:
        super().__init__(name="time-up", daemon=True)
        self._seconds, self._more = seconds, max(seconds, LEAST_MORE_SECONDS)
        self._begun = begun
        self._missing = missing
        self._stopped = stopped
        self._say = say
        self._left: list[str] | None = None

    def run(self) -> None:
        """Wait."""
        end = self._begun + self._seconds
        if self._stopped.wait(max(0.0, end - time.monotonic())):
            return
        left = self._missing()
        if left:
            self._say(f"not all is shown after {self._seconds:g} s: going on until it is, for {self._more:g} s at most")
        while left and time.monotonic() < end + self._more and not self._stopped.wait(_POLL_SECONDS):
            left = self._missing()
        self._left = left
        self._stopped.set()

    def judge(self) -> None:
        """Whether all was shown when it ended.

        Raises:
            CheckFailed: it was not.
        """
        left = self._missing() if self._left is None else self._left
        if left:
            after = time.monotonic() - self._begun
            raise CheckFailed(
                f"the demo did not show in {after:.0f} s: {'; '.join(left)} (a slow machine needs more than "
                f"{self._seconds:g} s: --seconds, DEMO_SECONDS)"
            )


def _missing(monitor: Monitor, scenario: DemoScenario, witness: Witness) -> list[str]:
    """What was done, or should have been, and is not shown."""
    missing = [f"group {name}" for name in GROUPS if name not in monitor.board.shown.groups]
    ready, reasons = monitor.board.health.ready()
    if not ready:
        missing.append(f"readiness ({'; '.join(map(said, reasons))})")
    if scenario.failure is not None:
        missing.append(f"the scenario itself ({scenario.failure})")
    for what, done, seen in (
        ("upgrade", scenario.upgrades, witness.upgrades),
        ("downgrade", scenario.downgrades, witness.downgrades),
    ):
        if seen < max(1, done):
            missing.append(f"{what} of {ROLLED_GROUP} (done {done}, seen {seen})")
    return missing


def _for_demo(config: Config, broker: EmbeddedBroker, directory: Path) -> Config:
    """The configuration with the demo's broker and a state directory of its own."""
    return config.model_copy(
        update={
            "kafka": config.kafka.model_copy(update={"bootstrap_servers": broker.bootstrap_servers}),
            "state": config.state.model_copy(update={"dir": directory / "state", "checkpoint_location": None}),
            "cluster": config.cluster.model_copy(update={"name": "demo"}),
            "metrics": config.metrics.model_copy(update={"partition_series": True}),
        }
    )


@contextmanager
def _scratch() -> Iterator[Path]:
    """A directory that goes with the demo."""
    directory = Path(scratch.directory("group-monitor-demo-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
