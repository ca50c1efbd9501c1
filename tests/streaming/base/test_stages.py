"""A start says what it is at."""

import pytest

from streaming.base import logging_setup
from streaming.base.stages import Stages
from streaming.base.times import now_ms


def test_a_stage_is_said_when_it_begins_and_when_it_ends() -> None:
    """With its time; meanwhile it is what keeps the monitor from being ready."""
    said: list[str] = []
    seconds = [5.0]
    stages = Stages(said.append, lambda: seconds[0])

    begun_ms = now_ms()
    with stages.stage("Spark"):
        seconds[0] += 3.25
        of_start = stages.missing()

    assert ["Spark …", "Spark: 3.2 s"] == said
    (missing,) = of_start
    since_ms = missing.pop("since")
    assert {"reason": "the monitor is starting: Spark", "stage": "Spark", "seconds": 3.2} == missing
    assert begun_ms <= since_ms <= now_ms()
    assert [] == stages.missing()


def test_a_stage_that_fails_is_not_done() -> None:
    """The error says the rest."""
    said: list[str] = []
    stages = Stages(said.append)
    with pytest.raises(OSError, match="disk"), stages.stage("state"):
        raise OSError("disk")

    assert (["state …"], []) == (said, stages.missing())


def test_stages_are_info_lines_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """Under a logger of their own."""
    logging_setup.configure()
    with Stages().stage("Spark"):
        pass

    begun, done = capsys.readouterr().err.splitlines()
    assert "level=info logger=streaming.start event=stage_begun stage=Spark" in begun
    assert "event=stage_done stage=Spark seconds=0.0" in done
