"""Why a query ended: what passes is waited for, what does not is reported with the way out."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from streaming.base.errors import CannotTellError, MonitorError, UsageError
from streaming.config.kafka_sections import KafkaSection
from streaming.config.loading import Config
from streaming.config.sections import StateSection
from streaming.kafka import preflight
from streaming.kafka.range_reader import LOG_LOST
from streaming.monitor.retry_policy import (
    DAMAGED,
    DISK_FULL,
    LONGEST_FOR_BROKERS_SECONDS,
    RETRY_DELAYS_SECONDS,
    ROOM_BYTES,
    RetryPolicy,
)

UNKNOWN = RuntimeError("something")


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the brokers are, as long as it holds True."""
    answers = [True]

    def ask(_config: Config) -> None:
        if not answers[0]:
            raise CannotTellError("nobody answers")

    monkeypatch.setattr(preflight, "preflight", ask)
    return answers


@pytest.fixture
def failing(tmp_path: Path, reachable: list[bool]) -> RetryPolicy:
    return RetryPolicy(Config(kafka=KafkaSection(), state=StateSection(dir=tmp_path)))


def test_log_that_is_another_is_the_end(failing: RetryPolicy) -> None:
    """With the state directory, and that it may be rebuilt, in the line."""
    with pytest.raises(MonitorError, match=r"^state\.dir: found .* cut off or recreated .*run --rebuild"):
        failing.pause_seconds(RuntimeError(f"Job aborted\nCaused by: x: {LOG_LOST}"), got_on=True)


@pytest.mark.parametrize("sign", DAMAGED)
def test_damaged_checkpoint_is_the_end(failing: RetryPolicy, sign: str) -> None:
    """It will not mend itself."""
    with pytest.raises(UsageError, match=r"^state\.dir: found .*, damaged \(.*run --rebuild"):
        failing.pause_seconds(RuntimeError(f"{sign} in file 7"), got_on=False)


def test_checkpoint_that_another_one_writes_to_is_the_end(failing: RetryPolicy) -> None:
    """To try again would be to try without end, and then to go on where the other one was."""
    error = RuntimeError(
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected"
    )
    with pytest.raises(UsageError, match=r"^state\.dir: found .* by another monitor as well .*, accepted: .*--standby"):
        failing.pause_seconds(error, got_on=True)


def test_full_disk_is_no_damage(failing: RetryPolicy) -> None:
    """A file that could not be written whole is reported as what it is."""
    error = RuntimeError(f"{DAMAGED[2]}\nCaused by: java.io.IOException: {DISK_FULL[0]}")

    assert RETRY_DELAYS_SECONDS[1] == failing.pause_seconds(error, got_on=False)


def test_whatever_fails_on_a_full_disk_fails_for_that(failing: RetryPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where something else was known to fail before, and what failed now does not speak of the disk."""
    with capture_logs() as lines:
        failing.pause_seconds(UNKNOWN, got_on=True)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=ROOM_BYTES - 1))
        failing.pause_seconds(UNKNOWN, got_on=False)

    assert ["query_failed", "disk_full"] == [line["event"] for line in lines]


def test_another_reason_is_reported_once_too(failing: RetryPolicy) -> None:
    """What it failed with before hides it no longer; other numbers make no other reason."""
    reasons = ["calling o449", "calling o450", "no worker", "no worker"]
    with capture_logs() as lines:
        for reason in reasons:
            failing.pause_seconds(RuntimeError(reason), got_on=False)

    assert ["calling o449", "no worker"] == [line["reason"] for line in lines]


@pytest.mark.parametrize(
    ("error", "event", "longest_seconds"),
    [
        (OSError(DISK_FULL[0]), "disk_full", RETRY_DELAYS_SECONDS[-1]),
        (UNKNOWN, "brokers_unreachable", LONGEST_FOR_BROKERS_SECONDS),
    ],
)
def test_what_passes_is_waited_for_and_reported_once(
    failing: RetryPolicy, reachable: list[bool], error: Exception, event: str, longest_seconds: int
) -> None:
    """However often it is tried in between; the pauses grow, to seconds for brokers, and the end of it is reported."""
    reachable[0] = False
    with capture_logs() as lines:
        pauses = [failing.pause_seconds(error, got_on=False) for _ in range(15)]
        failing.finished_batch()
        failing.finished_batch()

    reported = [line["event"] for line in lines]
    assert [min(of, longest_seconds) for of in RETRY_DELAYS_SECONDS[1:]] == pauses[: len(RETRY_DELAYS_SECONDS) - 1]
    assert longest_seconds == pauses[-1]
    assert (1, 2) == (reported.count(event), len(reported))


def test_program_code_that_may_not_be_loaded_is_the_end(failing: RetryPolicy) -> None:
    """A disk mounted noexec stays so: the next start would fail as this one did."""
    error = RuntimeError("Job aborted\nCaused by: java.lang.UnsatisfiedLinkError: failed to map segment")

    with pytest.raises(CannotTellError, match=r"^java\.io\.tmpdir: found .*\(java\.lang\.Uns.*segment\).*noexec"):
        failing.pause_seconds(error, got_on=False)


def test_why_it_ended_is_known_until_a_batch_is_finished(failing: RetryPolicy, reachable: list[bool]) -> None:
    """For /ready: the last reason, brokers that are away as what they are."""
    assert failing.why() is None
    failing.pause_seconds(UNKNOWN, got_on=False)
    assert "something" == failing.why()
    reachable[0] = False
    failing.pause_seconds(UNKNOWN, got_on=False)
    assert "nobody answers" == failing.why()
    failing.finished_batch()
    assert failing.why() is None


def test_what_is_not_known_is_waited_for_too(failing: RetryPolicy) -> None:
    """A slow machine looks like this. Reported once until a micro-batch is finished, with the count; never the end."""
    with capture_logs() as lines:
        pauses = [failing.pause_seconds(UNKNOWN, got_on=False) for _ in range(20)]
        failing.finished_batch()
        failing.pause_seconds(UNKNOWN, got_on=True)

    assert [*RETRY_DELAYS_SECONDS[1:], RETRY_DELAYS_SECONDS[-1]] == pauses[: len(RETRY_DELAYS_SECONDS)]
    said = [(line["event"], line.get("reason"), line.get("failures")) for line in lines]
    assert [("query_failed", "something", None), ("query_runs_again", None, 20)] == said[:2]
    assert [("query_failed", "something", None)] == said[2:]
