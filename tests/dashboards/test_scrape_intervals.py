"""Boards and rules beside scrapes of 5, 15, 30 and 60 seconds: no step without a value, nothing counted twice.

What Grafana puts in the place of its words depends on the scrape interval that the data source says, and on the least
step of the panel. https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/ has the rule.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dashboards.build import GENERATED, RULES
from tests.dashboards.prometheus_tools import needs_promtool, promtool
from tests.dashboards.test_generated import BOARDS, asking, marks

SCRAPES: Final = (5, 15, 30, 60)
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
SHORTEST_RANGE_SECONDS: Final = 900
"""What a board is looked at over, at least: stats look back over all of it."""

TEXTS: Final = re.compile(r"`[^`]*`|\"[^\"]*\"")
"""What is quoted in an expression: brackets in it are none."""
RANGE: Final = re.compile(r"(\w+)\(\w+(?:\{[^}]*\})?\[(\w+)\]")
SUBQUERY: Final = re.compile(r"\[(\w+):(\w+)\]")


def seconds(word: str) -> int:
    return int(word[:-1]) * SECONDS[word[-1]]


def interpolated(expr: str, scrape: int, least: str | None) -> tuple[str, int]:
    """What Grafana asks on the finest step, and that step in seconds."""
    step = seconds(least) if least else scrape
    rate = max(step + scrape, 4 * scrape)
    for word, value in (
        ("$__rate_interval", rate),
        ("$__interval", step),
        ("$__range", SHORTEST_RANGE_SECONDS),
    ):
        expr = expr.replace(word, f"{value}s")
    expr = re.sub(r"=~`\$\{(?:cluster|groups|topic):regex\}`", "=~`.*`", expr)
    return expr.replace("=`${group:raw}`", "=~`.*`"), step


def asked(scrape: int) -> list[tuple[str, str]]:
    """(where it stands, PromQL) of every panel, mark and rule."""
    found = [
        (f"{board}: {panel['title']}", interpolated(target["expr"], scrape, panel.get("interval"))[0])
        for board in BOARDS
        for panel in asking(board)
        for target in panel["targets"]
    ]
    found += [
        (f"{board}: {mark['name']}", interpolated(mark["expr"], scrape, mark["step"])[0])
        for board in BOARDS
        for mark in marks(board)
    ]
    groups = yaml.safe_load((GENERATED / RULES).read_text("utf-8"))["groups"]
    return found + [(rule["alert"], rule["expr"]) for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("scrape", SCRAPES)
def test_every_range_holds_what_its_function_needs(scrape: int) -> None:
    """One sample for a largest value, two for an increase; a subquery has an evaluation in each of its ranges."""
    short = []
    for where, expr in asked(scrape):
        bare = TEXTS.sub("", expr)
        ranges, subqueries = RANGE.findall(bare), SUBQUERY.findall(bare)
        assert bare.count("[") == len(ranges) + len(subqueries), f"{where}: a range that is not looked at"
        for function, word in ranges:
            needed = 1 if function.endswith("_over_time") else 2
            if seconds(word) < needed * scrape:
                short.append((where, f"{function} of {word}"))
        short += [(where, f"{word}:{step}") for word, step in subqueries if seconds(word) < seconds(step)]

    assert [] == short


@pytest.mark.parametrize("scrape", SCRAPES)
def test_bars_count_each_rise_once(scrape: int) -> None:
    """A bar looks back over its own width and one scrape: a rise is in one bar, and in one alone."""
    bars = 0
    for board in BOARDS:
        for panel in asking(board):
            look = panel["fieldConfig"]["defaults"].get("custom", {})
            if look.get("drawStyle") != "bars":
                continue
            for target in panel["targets"]:
                expr, step = interpolated(target["expr"], scrape, panel["interval"])
                ranges = {seconds(word) for function, word in RANGE.findall(expr) if function == "increase"}
                bars += 1
                assert {step + scrape} == ranges, f"{board}: {panel['title']}"
    assert bars


def timelines() -> list[Any]:
    return [
        pytest.param(panel, id=f"{board}: {panel['title']}")
        for board in BOARDS
        for panel in asking(board)
        if panel["type"] == "state-timeline"
    ]


# What each timeline asks for, as a series that is there in every scrape.
SERIES: Final = {
    "Readiness": 'group_monitor_ready{cluster="a"}',
    "Phases": 'kafka_group_migration_phase{cluster="a", group="g", phase="downgraded"}',
    "Gates until now": 'kafka_cluster_gate{cluster="a", gate="upgrade", verdict="cannot_tell"}',
    "States": 'kafka_group_state{cluster="a", group="g", state="Stable"}',
}


@needs_promtool
@pytest.mark.parametrize("scrape", SCRAPES)
@pytest.mark.parametrize("panel", timelines())
def test_a_timeline_has_no_gap(panel: dict[str, Any], scrape: int, tmp_path: Path) -> None:
    """In Prometheus's own hands every step of a timeline has the value of its time, for two minutes on end.

    With steps of five seconds, two of three had none: the subquery is looked at each fifteen.
    """
    (target,) = panel["targets"]
    expr, step = interpolated(target["expr"], scrape, panel.get("interval"))
    labels = "{" + ", ".join(re.findall(r'(?:cluster|group|gate)="\w+"', SERIES[panel["title"]])) + "}"
    test = {
        "evaluation_interval": f"{scrape}s",
        "tests": [
            {
                "interval": f"{scrape}s",
                "input_series": [{"series": SERIES[panel["title"]], "values": "1x60"}],
                "promql_expr_test": [
                    {"expr": expr, "eval_time": f"{at}s", "exp_samples": [{"labels": labels, "value": 1}]}
                    for at in range(120, 240, step)
                ],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(json.dumps(test), encoding="utf-8")

    assert "" == promtool("test", "rules", "test.yaml", cwd=tmp_path)
