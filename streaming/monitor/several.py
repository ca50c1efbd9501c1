"""`run`: one monitor, or several of different clusters in one process with one Spark.

Each has its own state directory, query, board and address; what several share is the JVM with its task slots.

    of several, one …                                what is done
    whose configuration does not hold, or does not   nothing is started
    go with the others'
    whose brokers do not answer at its start         its start is retried without end, logged once; the others run
    that fails for good                              logged as `monitor_ended`; its HTTP port is closed so that stale
                                                     figures are not mistaken for current ones; the others run
    when the last one has ended, or on a signal      the process ends, with the error of the first that failed
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

import structlog

from streaming.base.errors import CannotTellError, MonitorError, UsageError, words
from streaming.base.logging_setup import get_logger
from streaming.base.signals import stop_signals
from streaming.checkpoint.identity import stateful_tasks
from streaming.config.loading import Config
from streaming.kafka import preflight
from streaming.monitor.end_guard import ends_in_time
from streaming.monitor.monitor import SPARK_LOG, Monitor
from streaming.spark import jvm_lifecycle, session

RETRY_SECONDS: Final = 5.0
"""Between two tries to start a monitor whose brokers do not answer."""

_LOOK_SECONDS: Final = 0.2
_END_SECONDS: Final = 8.0
"""How long monitors may take to end before the JVM goes that they may be waiting for."""

_log = get_logger("application")
_start_log = get_logger("start")

OWN: Final[dict[str, Callable[[Config], object]]] = {
    "cluster.name": lambda config: config.cluster.name,
    "state.dir": lambda config: config.state.dir.resolve(),
    "state.checkpoint_location": lambda config: config.state.checkpoint_location,
    "history.dir": lambda config: config.history_dir.resolve() if config.history.enabled else None,
    "http.port": lambda config: (config.http.host, config.http.port) if config.http.port else None,
    "http.probe_port": lambda config: (config.http.host, config.http.probe_port) if config.http.probe_port else None,
}
"""What two monitors of one process cannot share: option → its value, None where it may be the same."""

ALIKE: Final[dict[str, Callable[[Config], object]]] = {
    "spark": lambda config: config.spark,
    "state.checkpoint_location": lambda config: session.is_local(config.state.checkpoint_location),
}
"""What they must have alike, because there is one Spark: option → what of it."""


def run(configs: Sequence[Config], *, standby: bool = False, rebuild: bool = False) -> None:
    """Run a monitor for each configuration until SIGINT or SIGTERM; see `Monitor` for `standby` and `rebuild`.

    Raises:
        UsageError: the configurations do not go together.
        MonitorError: a monitor could not start, or could not go on.
    """
    if len(configs) > 1:
        refuse_unfit(configs, rebuild=rebuild)
        _run_several(configs, standby=standby)
        return
    with (
        ends_in_time() as stopped,
        Monitor(configs[0], standby=standby, rebuild=rebuild) as monitor,
        stop_signals(stopped),
    ):
        _say_where(monitor)
        try:
            monitor.run_until(stopped)
        finally:
            stopped.set()


def refuse_unfit(configs: Sequence[Config], *, rebuild: bool = False) -> None:
    """See that several configurations go together. Raises UsageError."""
    if rebuild:
        raise UsageError(f"--rebuild: found {len(configs)} of --config, accepted: the one that is to be rebuilt, alone")
    first = configs[0].cluster.name
    for option, value_of in OWN.items():
        values = [value for value in map(value_of, configs) if value is not None]
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise UsageError(f"{option}: found {_shown(twice)} in two of --config, accepted: another one in each")
    for option, part_of in ALIKE.items():
        other = next((config for config in configs if part_of(config) != part_of(configs[0])), None)
        if other is not None:
            raise UsageError(
                f"{option}: found other settings for cluster {other.cluster.name!r} than for {first!r}, accepted: the "
                "same in every --config, because there is one Spark"
            )


def _shown(value: object) -> str:
    return ":".join(map(str, value)) if isinstance(value, tuple) else repr(str(value))


def _run_several(configs: Sequence[Config], *, standby: bool) -> None:
    stopped = threading.Event()
    errors: list[MonitorError] = []
    # What is amiss with a port, or with Java, is known before Spark is started.
    running = [_Running(config, stopped, errors, standby=standby) for config in configs]
    with ExitStack() as stack:
        log_file = configs[0].state.dir / SPARK_LOG
        tasks = sum(stateful_tasks(each.state.dir, each.spark.shuffle_partitions) for each in configs)
        spark = session.start(configs[0], log_file, tasks)
        stack.callback(jvm_lifecycle.stop, spark)
        reported = stack.enter_context(stop_signals())
        try:
            for each in running:
                each.start(lambda monitor: monitor.share(spark, log_file))
            while any(each.is_alive for each in running) and not reported.wait(_LOOK_SECONDS):
                pass
        finally:
            stopped.set()
            deadline = time.monotonic() + _END_SECONDS
            for each in running:
                each.join(deadline - time.monotonic())
    if errors:
        raise errors[0]


class _Stopped(Exception):
    """It is to end while it waits."""


class _Running:
    """One of several monitors, in a thread of its own.

    Args:
        config: its own.
        stopped: set when all are to end.
        errors: gets what it could not go on for.
        standby: as of a `Monitor`.
    """

    def __init__(self, config: Config, stopped: threading.Event, errors: list[MonitorError], *, standby: bool) -> None:
        self._config = config
        self._stopped = stopped
        self._errors = errors
        self._standby = standby
        self._share: Callable[[Monitor], object] = lambda _: None
        self._first: Monitor | None = self._made()
        self._thread = threading.Thread(target=self._run, name=f"monitor {config.cluster.name}", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def start(self, share: Callable[[Monitor], object]) -> None:
        """Begin; `share` gives a monitor what it has with the others."""
        self._share = share
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for its end, for a while; one that never began has none."""
        if self.is_alive:
            self._thread.join(max(0.0, seconds))

    def _run(self) -> None:
        # Every line of the log says which cluster it is about.
        structlog.contextvars.bind_contextvars(cluster=self._config.cluster.name)
        try:
            self._run_on()
        except _Stopped:
            pass
        except MonitorError as error:
            self._end(error)
        except Exception as error:  # noqa: BLE001 - one that fails for whatever reason must not take the others along
            _log.exception("monitor_failed")
            self._end(MonitorError(f"unexpected {type(error).__name__}: {words(error)}"))

    def _run_on(self) -> None:
        reason = None
        while not self._stopped.is_set():
            try:
                self._run_once()
            except CannotTellError as error:
                if reason != str(error):
                    _log.warning("monitor_waits", reason=str(error))
                reason = str(error)
                self._stopped.wait(RETRY_SECONDS)
            else:
                return

    def _run_once(self) -> None:
        monitor, self._first = self._first or self._made(), None
        try:
            preflight.preflight(self._config)
        except MonitorError:
            monitor.discard()
            raise
        self._share(monitor)
        with monitor:
            _say_where(monitor, f"  cluster {self._config.cluster.name}")
            monitor.run_until(self._stopped)

    def _made(self) -> Monitor:
        return Monitor(self._config, standby=self._standby, while_waiting=self._look)

    def _look(self) -> None:
        if self._stopped.is_set():
            raise _Stopped

    def _end(self, error: MonitorError) -> None:
        _log.error("monitor_ended", reason=str(error))
        self._errors.append(error)


def _say_where(monitor: Monitor, more: str = "") -> None:
    _start_log.info("serving", address=f"{monitor.server.url}/")
    monitor.server.print_address(more)
