"""The benchmark at a tiny size: one broker, one monitor and several parts, whose figures stand only if all is right.

No figure is judged here: how fast anything is says `make bench`, on a machine that does nothing else. The parts that
need another log, a second start or a session of their own (`catch-up`, `batch-cost`, `wide-group`, `storm`, `restart`)
run with `python -m bench --tiny`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from bench import truth
from bench.__main__ import main
from bench.log import Plan
from bench.parts import BY_DEFAULT, PARTS, named, sized
from bench.stage import Log, Monitored, Stage

pytestmark = [pytest.mark.spark, pytest.mark.broker]

TRIED = ("idle", "latency", "events", "memory", "metrics", "million-machine")


@dataclass(slots=True)
class Reported:
    status: int
    parts: dict[str, Any]
    pages: list[str]
    """Of every comparison, the page of /metrics that held all that was expected."""


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    directory = tmp_path_factory.mktemp("bench")
    pages: list[str] = []
    require = Monitored.require

    def kept(self: Monitored, read: Log, *, offsets: bool = True) -> None:
        require(self, read, offsets=offsets)
        pages.append(self.get("/metrics")[1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Monitored, "require", kept)
        # One monitor for all of them: it stays up from part to part as long as they ask for the same log.
        starts: list[Monitored] = []
        start = Stage.start

        def counted(self: Stage, config: dict[str, Any]) -> Monitored:
            starts.append(start(self, config))
            return starts[-1]

        patch.setattr(Stage, "start", counted)
        out = directory / "results.json"
        status = main([*TRIED, "--tiny", "--out", str(out), "--directory", str(directory / "stage")])
    assert 1 == len(starts)
    yield Reported(status, json.loads(out.read_text("utf-8"))["parts"], pages)
    assert not (directory / "stage").exists()


def test_every_part_has_figures(reported: Reported) -> None:
    """Each part ends well, and its figures are numbers with a spread around their median."""
    assert 0 == reported.status
    assert {*TRIED} == reported.parts.keys()
    for name, part in reported.parts.items():
        assert PARTS[name].tiny == part["size"]
        assert part["figures"], name
        for figure, held in part["figures"].items():
            assert all(map(isfinite, held["values"])), (name, figure)
            assert held["lowest"] <= held["median"] * 1.001, (name, figure)
            assert held["median"] <= held["highest"] * 1.001, (name, figure)


def test_waits_are_measured_from_the_commit_to_the_page(reported: Reported) -> None:
    """Every commit sent was seen; a page cannot show it before the broker has acknowledged any."""
    figures = reported.parts["latency"]["figures"]

    assert figures["commits"]["median"] > 0
    assert 0 < figures["ack_p50_seconds"]["median"] < figures["p50_seconds"]["median"]
    assert figures["p50_seconds"]["median"] <= figures["p99_seconds"]["median"]


def test_joins_and_leaves_are_all_reported(reported: Reported) -> None:
    """Members came and went, and the event of each was seen."""
    figures = reported.parts["events"]["figures"]

    assert figures["events"]["median"] >= 4
    assert {"member_joined_p99_seconds", "member_left_p99_seconds"} <= figures.keys()


def test_memory_is_that_of_all_processes(reported: Reported) -> None:
    """Driver, JVM and workers are distinguished, and add up to the whole."""
    figures = reported.parts["memory"]["figures"]
    parts = [held["median"] for name, held in figures.items() if name.startswith("pss_mib of ")]

    assert {"pss_mib of Spark (JVM)", "pss_mib of monitor (Python)"} <= figures.keys()
    assert figures["pss_mib"]["median"] == pytest.approx(sum(parts), rel=0.01)
    assert figures["pss_mib"]["median"] <= figures["rss_mib"]["median"]


def test_series_of_lag_are_those_of_the_offsets(reported: Reported) -> None:
    """There are as many series as committed offsets, and the page that was compared held a lag for each."""
    plan = Plan.of(int(PARTS["metrics"].tiny["groups"]), rounds=2)

    assert len(plan.names) * plan.partitions == reported.parts["metrics"]["figures"]["lag_series"]["median"]
    assert reported.pages
    for page in reported.pages:
        lags = [value for _, _, value in truth.samples(page, (truth.LAG,))]
        assert len(plan.names) * plan.partitions == len(lags)


def test_part_that_shows_something_else_has_no_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay that leads to other groups than were written is no result, and the command fails for it."""
    monkeypatch.setattr(truth, "of_replay", lambda _answer: {})

    status = main(["replay", "--tiny", "--out", str(tmp_path / "results.json")])

    assert 1 == status
    assert "error: without figures: replay" in capsys.readouterr().err
    assert not (tmp_path / "results.json").exists()


def test_sizes_are_the_parts_own_unless_given() -> None:
    """A measure that a part does not have is not its own; a name stands for all parts that go on after it."""
    assert 50 == sized(PARTS["latency"], tiny=False, given={"groups": 50, "rounds": 9})["groups"]
    assert "rounds" not in sized(PARTS["latency"], tiny=False, given={"groups": 50, "rounds": 9})
    assert ["batch-cost-1000", "batch-cost-10000", "batch-cost-100000"] == named("batch-cost")
    assert [] == named("speed")


def test_long_comparisons_are_run_by_name_only() -> None:
    """What says nothing of a monitor as it runs is not part of a benchmark of everything."""
    assert {*named("million"), "peers"} == PARTS.keys() - set(BY_DEFAULT)
