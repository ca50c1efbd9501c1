"""What `check` says of Spark, without one."""

from pathlib import Path

import pytest

from streaming.checkpoint.lock import StateLock
from streaming.cli.check import _spark
from streaming.config.loading import Config
from streaming.spark import trial


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config.model_validate({"state": {"dir": str(tmp_path)}})


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (trial.Outcome(True, "Spark 4.2.0 starts"), ("ok", "Spark 4.2.0 starts")),
        (trial.Outcome(False, "spark.conf: found x"), ("fail", "spark.conf: found x")),
        (trial.Outcome(None, "no session within 20 s"), ("cannot tell", "no session within 20 s")),
    ],
)
def test_it_says_what_came_of_a_trial(
    config: Config, outcome: trial.Outcome, expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it starts, what keeps it from starting, or that it is not known."""
    monkeypatch.setattr(trial, "free_bytes", lambda: trial.LEAST_FREE_BYTES)
    monkeypatch.setattr(trial, "run", lambda _: outcome)
    found = _spark(config)

    assert expected == (found.status, found.detail)


def test_it_is_left_out_where_it_would_be_in_the_way(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a running monitor, and where memory is short; the list says so."""
    monkeypatch.setattr(trial, "free_bytes", lambda: trial.LEAST_FREE_BYTES - 1)
    short = _spark(config)
    lock = StateLock(config.state.dir)
    lock.take()
    try:
        beside = _spark(config)
    finally:
        lock.release()

    assert ("note", "not tried: found 767 MiB of memory free, accepted: 768 or more") == (short.status, short.detail)
    assert ("note", "not tried: a monitor runs on this state.dir") == (beside.status, beside.detail)
