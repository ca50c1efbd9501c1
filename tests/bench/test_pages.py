"""Figures in the documentation are those of the results, and settings it advises are settings."""

import json
import re
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
import yaml

from bench import million, pages, results
from bench.figures import Outcome
from bench.goals import GOALS, all_figures
from streaming.config import loading

MEASURED: Final[dict[str, dict[str, float]]] = {
    "catch-up": {"times_bare_spark": 1.25, "bare_spark_seconds": 2, "records_per_second": 250_000, "seconds": 4},
    "latency": {"p50_seconds": 0.4, "p99_seconds": 1.2, "ack_p99_seconds": 0.01},
    "batch-cost-1000": {"batch_p50_seconds": 0.30, "batch_p99_seconds": 0.40, "cpu_share": 0.5},
    "batch-cost-10000": {"batch_p50_seconds": 0.31, "batch_p99_seconds": 0.42},
    "batch-cost-100000": {"batch_p50_seconds": 0.40, "batch_p99_seconds": 0.80},
    "memory": {"pss_mib of monitor (Python)": 591.4, "state_mib": 300, "groups": 100_000, "first_ready_seconds": 20},
    "restart": {"ready_seconds": 30},
    "million-machine": {
        "groups": 200_000,
        "state_mib": 512,
        "ready_seconds": 99.94,
        "batch_p50_seconds": 0.75,
        "pss_mib of monitor (Python)": 1_536,
        "restart_seconds": 77.7,
    },
    "million-cluster": {
        "share_seconds": 20,
        "share_groups": 100_000,
        "share_state_mib": 256,
        "composed_catch_up_seconds": 61.23,
        "driver_batch_seconds": 0.05,
        "driver_load_seconds": 30,
        "driver_sums_seconds": 70,
        "board_and_sums_mib": 3_584,
    },
}


@pytest.fixture
def held(tmp_path: Path) -> dict[str, Any]:
    """Results of some parts."""
    outcomes = {}
    for name, figures in MEASURED.items():
        outcomes[name] = Outcome({"groups": 1_000})
        for figure, value in figures.items():
            outcomes[name].add(figure, "s", value)
        for figure in ("batch_p50_seconds", "batch_p99_seconds", "cpu_seconds_a_batch", "cpu_share", "others_share"):
            if figure not in figures:
                outcomes[name].add(figure, "s", 1)
    results.store(outcomes, tmp_path / "results.json")
    return results.load(tmp_path / "results.json")


def row(page: str, beginning: str) -> list[str]:
    (found,) = [line for line in page.splitlines() if line.startswith(f"| {beginning}")]
    return [cell.strip() for cell in found.strip("|").split(" | ")]


def test_goals_stand_beside_what_was_measured(held: dict[str, Any]) -> None:
    """A goal is met or missed by its median, at most or at least, with its reference; what was not measured says so."""
    page = pages.files(held, pages.DOCS)["performance.md"]

    assert ["≤ 0.9 times", "1.25", "bare Spark read: 2 s", "**missed**"] == row(page, "catch-up in a warm session, as")[
        1:5
    ]
    assert ["≥ 220,000 records/s", "250,000", "-", "met"] == row(page, "catch-up in a warm session, full")[1:5]
    assert ["≤ 1.5 times", "2", "with 1,000 groups: 0.4 s", "**missed**"] == row(page, "99th hundredth of micro")[1:5]
    assert "not measured" == row(page, "idle cluster")[2]
    assert len(GOALS) == len(pages.SHORT)


def test_slopes_and_plan_follow_from_the_figures(held: dict[str, Any]) -> None:
    """A slope is over the sizes measured, and a plan for more executors divides what divides."""
    page = pages.files(held, pages.DOCS)["scale.md"]

    assert "+10 ms for 10,000 groups" == row(page, "micro-batch under")[2]
    assert "6.2 KB a group; 1,385,000 groups in 8 GiB" == row(page, "driver's memory")[2]
    assert "20 s for 100,000 groups of six records, start of Spark included" == row(page, "first catch-up | groups")[2]
    assert ["10", "100,000", "0.29", "20", "0.4", "5.8", "300"] == row(page, "10 | 100,000")


def test_what_is_worked_out_stands_beside_what_was_measured(held: dict[str, Any]) -> None:
    """One machine as it was measured; of ten executors the slowest share, with what the driver adds to each."""
    page = pages.files(held, pages.DOCS)["scale.md"]

    assert "200,000 groups on one machine: worked out" in page
    assert ["0.59", "0.5", "0.29", "0.25"] == row(page, "state on disk of each")[1:]
    assert ["40", "99.9 (start of Spark included)", "20", "61.2"] == row(page, "first catch-up, s")[1:]
    assert ["0.5", "0.75", "0.4", "0.45"] == row(page, "a micro-batch of 1,000 commits/s, median, s")[1:]
    assert ["1.2", "1.5", "5.8", "3.5 (without a page)"] == row(page, "driver's process, GiB")[1:]
    assert ["60", "77.7", "300", "120"] == row(page, "restart, s")[1:]


def test_a_plan_that_was_not_measured_says_so(held: dict[str, Any]) -> None:
    """Without one of the parts its column says so, and the others stay."""
    del held["parts"]["million-machine"]

    page = pages.files(held, pages.DOCS)["scale.md"]

    assert ["200", "not measured", "20", "61.2"] == row(page, "first catch-up, s")[1:]


def test_a_new_measurement_replaces_its_part_alone(tmp_path: Path, held: dict[str, Any]) -> None:
    """Storing one part leaves the others as they were."""
    again = Outcome({"groups": 7})
    again.add("p50_seconds", "s", 0.25, 0.5, 0.75)

    results.store({"latency": again}, tmp_path / "results.json")

    now = results.load(tmp_path / "results.json")["parts"]
    assert (0.5, 0.25, 0.75) == tuple(
        now["latency"]["figures"]["p50_seconds"][of] for of in ("median", "lowest", "highest")
    )
    assert held["parts"]["memory"] == now["memory"]


def test_charts_are_drawings(held: dict[str, Any]) -> None:
    """Every chart is well-formed, and has a bar for each figure that there is."""
    drawn = pages.charts(all_figures(held))

    trees = {name: ET.fromstring(text) for name, text in drawn.items()}  # noqa: S314 - our own text
    bars = {name: len(tree.findall(".//{*}rect[@height='18']")) for name, tree in trees.items()}
    assert 6 == bars["performance-batch-cost"]
    assert 1 == bars["performance-memory"]
    assert 10 == bars["performance-goals"]


def test_advised_settings_are_settings(tmp_path: Path) -> None:
    """Every block of YAML on the page about scale is a configuration."""
    blocks = re.findall(r"```yaml\n(.*?)```", (pages.DOCS / "scale.md").read_text("utf-8"), re.DOTALL)

    assert 4 == len(blocks)
    for number, block in enumerate(blocks):
        file = tmp_path / f"{number}.yaml"
        file.write_text(block, "utf-8")
        loading.load(file, env={})


def test_a_million_groups_were_measured_with_what_is_advised() -> None:
    """The last block of settings is the benchmark's."""
    blocks = re.findall(r"```yaml\n(.*?)```", (pages.DOCS / "scale.md").read_text("utf-8"), re.DOTALL)

    assert million.SETTINGS == yaml.safe_load(blocks[-1])


def test_stale_pages_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page with other figures than the results have is reported, with the command that puts them in."""
    for name in pages.PAGES:
        (tmp_path / name).write_text((pages.DOCS / name).read_text("utf-8"), "utf-8")
    assert 0 == pages.main(["--out", str(tmp_path)])
    assert 0 == pages.main(["--check", "--out", str(tmp_path)])
    page = tmp_path / "performance.md"
    page.write_text(page.read_text("utf-8").replace("| goal |", "| aim |"), "utf-8")

    assert 1 == pages.main(["--check", "--out", str(tmp_path)])
    assert f"performance.md stale; run `{pages.COMMAND}`" in capsys.readouterr().err


def test_results_are_of_parts_there_are() -> None:
    """What is committed has no part of an earlier benchmark, nor one whose size was made up of other measures."""
    from bench.parts import PARTS

    held = json.loads(results.RESULTS.read_text("utf-8")) if results.RESULTS.is_file() else {"parts": {}}

    for name, part in held["parts"].items():
        assert PARTS[name].full.keys() == part["size"].keys(), name
