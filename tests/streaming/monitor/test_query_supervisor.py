"""How queries of one session start beside each other, and why one ended: what is said, what is left to try again."""

import errno
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from streaming.base.errors import CannotTellError, MonitorError
from streaming.board.readiness import Positions
from streaming.checkpoint.contents import Mark
from streaming.config.loading import Config
from streaming.monitor.query_supervisor import (
    HANGS_SECONDS,
    WORKERS_HANG_SECONDS,
    QueryHangsError,
    QuerySupervisor,
    StalledError,
    failure,
)
from streaming.query import task_keys
from streaming.query.foreach_batch import BatchWriter
from streaming.query.progress import Progress
from streaming.query.source import CoordinatorLog
from streaming.spark import jvm_lifecycle, planners

LOG = Path("state") / "spark.log"


@pytest.fixture(autouse=True)
def no_planners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a process that has started no query yet."""
    monkeypatch.setattr(planners, "_planning", set())
    monkeypatch.setattr(planners, "_are_there", False)


class Session:
    """What monitors share of Spark: settings, read when a query starts, and the names of sources."""

    def __init__(self) -> None:
        self.settings: dict[str, int] = {}
        self.sources: list[str] = []
        self.started: list[tuple[str, int]] = []
        """(query, its tasks)"""

    def seen_by(self, query: str) -> Any:
        spark = MagicMock()
        spark.conf.set = self.settings.__setitem__
        spark.dataSource.register = self._register
        records = spark.readStream.format().option().load()
        records.coalesce.return_value = records
        frame = records.groupBy().transformWithStateInPandas()
        writer = frame.writeStream.queryName().outputMode().option().trigger()
        writer.start = lambda: self.started.append((query, self.settings["spark.sql.shuffle.partitions"]))
        return spark

    def _register(self, source: type[CoordinatorLog]) -> None:
        if source.name() not in self.sources:
            time.sleep(0.02)
            assert source.name() not in self.sources, "[DATA_SOURCE_ALREADY_EXISTS]"
            self.sources.append(source.name())


def supervisor_of_empty_log() -> QuerySupervisor:
    log = MagicMock()
    log.ends.return_value = ({}, {})
    return QuerySupervisor(Config(), MagicMock(), MagicMock(**{"mark.return_value": Mark()}), log)


def test_queries_of_one_session_start_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the tasks of its own state directory; the source that all have is put there once."""
    monkeypatch.setattr(BatchWriter, "follow", lambda _, stream: stream)
    monkeypatch.setattr(task_keys, "_keys_by_tasks", {tasks: tuple(range(tasks)) for tasks in range(1, 5)})
    session = Session()

    def start(tasks: int) -> None:
        state, log = MagicMock(told_before={}, built_until={}, unread_seconds=0, tombstone_retention_ms=1), MagicMock()
        state.mark.return_value = Mark()
        state.begin.return_value = {}
        log.ends.return_value = ({}, {})
        log.largest_batch_bytes = None
        log.identity.shuffle_partitions, log.identity.partitions = tasks, 1
        board = MagicMock()
        board.owed.return_value = board.share_owed.return_value = {}
        supervisor = QuerySupervisor(Config(), board, state, log)
        supervisor._start(session.seen_by(f"query-{tasks}"))

    with ThreadPoolExecutor(4) as at_once:
        list(at_once.map(start, range(1, 5)))

    assert {(f"query-{tasks}", tasks) for tasks in range(1, 5)} == set(session.started)


@pytest.mark.parametrize(("owed", "other"), [("owed", "share_owed"), ("share_owed", "owed")])
def test_a_query_is_started_again_for_what_is_owed_ever_more_seldom(
    owed: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of either log. Each start holds up the others for a second or two; once nothing is owed it starts over."""
    now = [0.0]
    monkeypatch.setattr("streaming.monitor.query_supervisor.time.monotonic", lambda: now[0])
    supervisor = supervisor_of_empty_log()
    supervisor._log.ends.return_value = ({}, {})  # type: ignore[attr-defined]  # a mock
    monkeypatch.setattr(supervisor, "_started", MagicMock())
    board: Any = supervisor._board
    board.ends.topic.return_value.leaders = {3: 1}
    waits = []
    getattr(board, other).return_value = {}
    for is_owed in (False, True, True, True, True, False):
        getattr(board, owed).return_value = {3: []} if is_owed else {}
        supervisor._start(MagicMock())
        waits.append(supervisor._pay_at - now[0])

    assert [10.0, 20.0, 40.0, 80.0, 80.0, 10.0] == waits
    getattr(board, owed).return_value = {3: []}
    assert not supervisor._can_pay()
    now[0] += 10.0
    assert supervisor._can_pay()


def test_what_is_owed_does_not_count_as_read() -> None:
    """It was planned, so the query's position is beyond it; a next run is told of what was replayed."""
    supervisor = supervisor_of_empty_log()
    board: Any = supervisor._board
    board.health.positions = Positions(membership={0: 9, 3: 40}, commits={0: 8, 3: 40})
    board.owed.return_value = {3: [[5, 7], None, None, True]}

    assert Positions(membership={0: 9, 3: 7}, commits={0: 8, 3: 5}) == supervisor._replayed()


def test_planners_stay_until_a_query_has_read_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reading is planned in the micro-batch that has the first: on a log without, long after it was started."""
    spark, ended = MagicMock(), MagicMock()
    monkeypatch.setattr(planners, "_end", ended)
    supervisor = supervisor_of_empty_log()
    monkeypatch.setattr(supervisor, "_started", MagicMock())
    supervisor._start(spark)
    calls = []
    for input_rows in (0, 0, 2, 0):
        supervisor._on_progress(Progress(batch_id=0, duration_ms=1, positions=(), input_rows=input_rows))
        planners.end_unused(spark)
        calls.append(ended.call_count)

    assert [0, 0, 1, 1] == calls


def test_planners_do_not_wait_for_a_query_that_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has new ones once it is started again; they are ended once for all queries."""
    spark, ended = MagicMock(), MagicMock()
    monkeypatch.setattr(planners, "_end", ended)
    planners.will_plan("another")
    supervisor = supervisor_of_empty_log()
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(supervisor, "_started", MagicMock(side_effect=full))
    assert full is supervisor._run(threading.Event(), spark, tmp_path / "spark.log", MagicMock())
    planners.end_unused(spark)
    ended.assert_not_called()

    planners.plans_no_more("another")
    planners.end_unused(spark)
    planners.end_unused(spark)

    ended.assert_called_once_with(spark)


@pytest.mark.parametrize("error", [Py4JNetworkError("gone"), ConnectionRefusedError(), BrokenPipeError()])
def test_a_lost_connection_to_the_jvm_names_it(error: Exception) -> None:
    """It cannot be started again in this process; its own words are in its log."""
    with pytest.raises(MonitorError, match=r"its JVM ended \(see state/spark\.log\)"):
        failure(error, LOG)


@pytest.mark.parametrize("is_submitted", [False, True])
def test_a_call_cut_short_by_the_end_of_the_jvm_names_it(
    monkeypatch: pytest.MonkeyPatch, *, is_submitted: bool
) -> None:
    """Py4j does not say that the connection is lost: its process has ended or, under spark-submit, does not answer."""
    gateway = MagicMock(proc=None if is_submitted else subprocess.Popen([sys.executable, "-c", ""]))
    gateway.jvm.System.nanoTime.side_effect = Py4JNetworkError("refused")
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    with pytest.raises(MonitorError, match="its JVM ended"):
        failure(Py4JError("An error occurred while calling o337.isActive"), LOG)


@pytest.mark.parametrize("is_submitted", [False, True])
def test_a_call_that_a_jvm_did_not_answer_passes(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, *, is_submitted: bool
) -> None:
    """Its process is there."""
    monkeypatch.setattr(jvm_lifecycle, "_ENDS_SECONDS", 0.01)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    request.addfinalizer(process.wait)
    request.addfinalizer(process.kill)
    monkeypatch.setattr(SparkContext, "_gateway", MagicMock(proc=None if is_submitted else process))
    error = Py4JError("An error occurred while calling o337.isActive")
    assert error is failure(error, LOG)


def test_an_answer_cut_short_by_the_end_of_the_jvm_names_it() -> None:
    """Spark's client takes it for one without rows: `kill -9` just before the query starts."""
    with pytest.raises(ConnectionError) as error:
        task_keys.bundle_keys(MagicMock(**{"sql.return_value.collect.return_value": []}), 10_001)
    with pytest.raises(MonitorError, match="its JVM ended"):
        failure(error.value, LOG)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        PermissionError(errno.EACCES, "Permission denied", "state/resume.json"),
        FileNotFoundError(errno.ENOENT, "No such file", "state/checkpoint"),
        CannotTellError("brokers are away"),
        Py4JError("An error occurred while calling o337.start. Trace:\nof Spark"),
    ],
)
def test_no_other_error_is_blamed_on_the_jvm(error: Exception) -> None:
    """A file that cannot be written keeps its own reason."""
    assert error is failure(error, LOG)


class Query:
    """One that stops when that is asked for, or not."""

    def __init__(self, *, stops: bool) -> None:
        self.isActive = True
        self.stops = stops

    def stop(self) -> None:
        self.isActive = not self.stops

    def exception(self) -> None:
        return None


def test_a_query_without_progress_is_stopped_and_started_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At once, and without a word of a failure; the next one has all the time again."""
    supervisor = supervisor_of_empty_log()
    stopped, queries = threading.Event(), [Query(stops=True), Query(stops=True)]
    started = iter(queries)

    def start(_: object) -> Query:
        query = next(started)
        if query is queries[0]:
            monkeypatch.setattr(type(supervisor._stall), "is_asked", True)
        else:
            monkeypatch.setattr(type(supervisor._stall), "is_asked", False)
            stopped.set()
        return query

    monkeypatch.setattr("streaming.monitor.query_supervisor.MemoryTrim", MagicMock())
    monkeypatch.setattr(supervisor, "_start", start)
    monkeypatch.setattr(supervisor, "_check", lambda: None)
    monkeypatch.setattr(supervisor._failures, "pause_seconds", MagicMock(side_effect=AssertionError))
    supervisor.run_until(stopped, MagicMock(), tmp_path / "spark.log")

    assert [False, False] == [query.isActive for query in queries]
    assert not supervisor.may_write


def hanging(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> QuerySupervisor:
    """A supervisor whose query made no progress, and does not stop either."""
    monkeypatch.setattr("streaming.monitor.query_supervisor.time.monotonic", lambda: now[0])
    supervisor = supervisor_of_empty_log()
    monkeypatch.setattr(supervisor, "_start", lambda _: Query(stops=False))
    monkeypatch.setattr(supervisor, "_check", lambda: None)
    monkeypatch.setattr(type(supervisor._stall), "is_asked", True)
    return supervisor


def ran(supervisor: QuerySupervisor) -> Exception | None:
    return supervisor._run(threading.Event(), MagicMock(), LOG, MagicMock())


def test_a_query_that_does_not_stop_ends_the_monitor(monkeypatch: pytest.MonkeyPatch) -> None:
    """With status 1, after a minute: Spark starts no other one of its name, and a service manager another process."""
    now = [1_000.0]
    supervisor = hanging(monkeypatch, now)
    assert isinstance(ran(supervisor), StalledError)

    error = ran(supervisor)
    assert (MonitorError, "the query of before has not stopped yet") == (type(error), str(error))

    now[0] += HANGS_SECONDS
    with pytest.raises(QueryHangsError, match=r"spark: the query did not stop in 60 s") as ended:
        ran(supervisor)
    assert (1, True) == (ended.value.exit_status, supervisor.may_write)


def test_workers_of_a_query_that_does_not_stop_are_killed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for one that hangs. What waits for brokers that are away, or were until now, is given time."""
    kill, now = MagicMock(return_value=2), [1_000.0]
    monkeypatch.setattr(jvm_lifecycle, "kill_workers", kill)
    supervisor = hanging(monkeypatch, now)
    ran(supervisor)
    log: Any = supervisor._log
    log.ends.side_effect = CannotTellError("brokers are away")
    for _ in range(3):
        now[0] += 1_000.0
        ran(supervisor)
    log.ends.side_effect = None
    ran(supervisor)
    now[0] += WORKERS_HANG_SECONDS - 1
    ran(supervisor)
    kill.assert_not_called()

    now[0] += 1
    ran(supervisor)
    now[0] += 1
    ran(supervisor)
    kill.assert_called_once()


def test_a_query_of_a_jvm_that_was_killed_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason for which it was killed is why the monitor ends."""
    now = [1_000.0]
    supervisor = hanging(monkeypatch, now)
    monkeypatch.setattr("streaming.spark.jvm_lifecycle.killed_because", lambda: "it does not answer")
    ran(supervisor)
    ran(supervisor)

    now[0] += HANGS_SECONDS
    with pytest.raises(QueryHangsError, match=r"^spark: it does not answer$"):
        ran(supervisor)


def test_a_query_that_stops_late_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it waited for has come; and nothing of it writes any more."""
    now = [1_000.0]
    supervisor = hanging(monkeypatch, now)
    ran(supervisor)
    query: Any = supervisor._left
    query.stops = True

    assert isinstance(ran(supervisor), StalledError)
    assert not query.isActive


def test_a_query_that_waits_for_brokers_that_are_away_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long: a minute counts from when they answer again."""
    now = [1_000.0]
    supervisor = hanging(monkeypatch, now)
    ran(supervisor)
    log: Any = supervisor._log
    log.ends.side_effect = away = CannotTellError("brokers are away")
    for _ in range(3):
        now[0] += 10_000.0
        assert away is ran(supervisor)

    log.ends.side_effect = None
    assert "has not stopped yet" in str(ran(supervisor))
    now[0] += HANGS_SECONDS - 1
    assert "has not stopped yet" in str(ran(supervisor))


def test_a_jvm_that_was_killed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """It did not answer; that is the reason, not its end."""
    monkeypatch.setattr("streaming.spark.jvm_lifecycle._killed_because", "it does not answer")

    with pytest.raises(MonitorError, match=r"^spark: it does not answer \(see state/spark.log\)$"):
        failure(Py4JNetworkError("gone"), LOG)
