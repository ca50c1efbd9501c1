"""Why a query ended: what passes is waited for, what does not is told with the way out."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming import kafka_client
from streaming.config import Config
from streaming.config_sections import KafkaSection, StateSection
from streaming.errors import CannotTellError, MonitorError, UsageError
from streaming.failures import DAMAGED, DISK_FULL, FRUITLESS_STARTS, RETRY_DELAYS_SECONDS, Failures
from streaming.log_reader import LOG_LOST

UNKNOWN = RuntimeError("something")


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the brokers are, as long as it holds True."""
    answers = [True]

    def preflight(_config: Config) -> None:
        if not answers[0]:
            raise CannotTellError("nobody answers")

    monkeypatch.setattr(kafka_client, "preflight", preflight)
    return answers


@pytest.fixture
def failing(tmp_path: Path, reachable: list[bool]) -> Failures:
    return Failures(Config(kafka=KafkaSection(), state=StateSection(dir=tmp_path)))


def test_log_that_is_another_is_the_end(failing: Failures) -> None:
    """With the state directory, and that it may be rebuilt, in the line."""
    with pytest.raises(MonitorError, match=r"^state\.dir: found .* cut off or made anew .*run --rebuild"):
        failing.pause_seconds(RuntimeError(f"Job aborted\nCaused by: x: {LOG_LOST}"), got_on=True)


@pytest.mark.parametrize("sign", DAMAGED)
def test_damaged_checkpoint_is_the_end(failing: Failures, sign: str) -> None:
    """It will not mend itself."""
    with pytest.raises(UsageError, match=r"^state\.dir: found .*, damaged \(.*run --rebuild"):
        failing.pause_seconds(RuntimeError(f"{sign} in file 7"), got_on=False)


def test_full_disk_is_no_damage(failing: Failures) -> None:
    """A file that could not be written whole is told as what it is."""
    error = RuntimeError(f"{DAMAGED[2]}\nCaused by: java.io.IOException: {DISK_FULL[0]}")

    assert RETRY_DELAYS_SECONDS[1] == failing.pause_seconds(error, got_on=False)


@pytest.mark.parametrize(("error", "event"), [(OSError(DISK_FULL[0]), "disk_full"), (UNKNOWN, "brokers_unreachable")])
def test_what_passes_is_waited_for_and_told_once(
    failing: Failures, reachable: list[bool], error: Exception, event: str
) -> None:
    """However often it is tried in between; the pauses grow, and the end of it is told."""
    reachable[0] = False
    with capture_logs() as lines:
        pauses = [failing.pause_seconds(error, got_on=False) for _ in range(3 * FRUITLESS_STARTS)]
        failing.finished_batch()
        failing.finished_batch()

    told = [line["event"] for line in lines]
    assert [*RETRY_DELAYS_SECONDS[1:], RETRY_DELAYS_SECONDS[-1]] == pauses[: len(RETRY_DELAYS_SECONDS)]
    assert (1, 2) == (told.count(event), len(told))


def test_what_is_not_known_to_pass_ends_after_some_starts(failing: Failures) -> None:
    """With its own first line; a micro-batch in between starts the count over."""
    for _ in range(2):
        for _ in range(FRUITLESS_STARTS - 1):
            failing.pause_seconds(UNKNOWN, got_on=False)
        failing.pause_seconds(UNKNOWN, got_on=True)
    for _ in range(FRUITLESS_STARTS - 1):
        failing.pause_seconds(UNKNOWN, got_on=False)
    with pytest.raises(MonitorError, match=r"^the query fails again and again: something$"):
        failing.pause_seconds(UNKNOWN, got_on=False)
