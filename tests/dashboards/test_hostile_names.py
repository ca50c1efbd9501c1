"""Names that mean harm, on boards and in alerts: Prometheus is asked for the chosen group, and pagers get text.

What Grafana makes of a variable was compared with its own code (@grafana/scenes 9.2.2, @grafana/data 12.1.0): `raw` is
the value as it is, `regex` escapes as below. Without a format its Prometheus data source (@grafana/prometheus 13.1.4)
lets double quotes and line breaks through, and doubles the backslash before an apostrophe.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from unicodedata import category

import pytest
import yaml

from dashboards.board import GROUPS, NAMES, ONE_GROUP
from dashboards.build import GENERATED, RULES
from lab import builders
from lab.builders import NOW_MS
from streaming.base.text import cut
from streaming.board.board import Board
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.web.server import Server
from tests import hostile
from tests.dashboards.prometheus_tools import answer, needs_prometheus, needs_promtool, promtool, running_prometheus
from tests.streaming.board_rows import Shard

CLUSTER: Final = "attacked"
HARMFUL: Final = (
    *hostile.NAMES,
    "o'brien",
    'a"} or vector(1) or kafka_group_info{group="b',
    'job="x"',
    "${groups:raw}",
    "{{ 7 }}",
    '{{ range query "up" }}x{{ end }}',
    "<!channel>",
    "<https://evil.example|Silence this alert>",
    "*bold* _it_ ~s~",
    "line\n\nCRITICAL: all is lost",
)
STEERING: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that are not shown, or end a line."""
BACKTICK: Final = "`"
OFFERED: Final = tuple(name for name in HARMFUL if BACKTICK not in name)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that has scraped a monitor of groups with all these names."""
    shard, board = Shard(), Board(EndOffsets())
    for name in HARMFUL:
        shard.pending.append((NOW_MS, *builders.group_metadata(name, generation=1, members=[])))
    board.apply(1, shard.flush(), NOW_MS)
    server = Server.of(HttpSection(port=0), board, Exporter(board, CLUSTER))
    server.start()
    target = server.url.removeprefix("http://")
    job = {"job_name": "monitor", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
    try:
        with running_prometheus(
            tmp_path_factory.mktemp("prometheus"), yaml.safe_dump({"scrape_configs": [job]})
        ) as address:
            deadline = time.monotonic() + 30
            while not answer(address, "kafka_group_info") and time.monotonic() < deadline:
                time.sleep(0.1)
            yield address
    finally:
        server.stop()


def interpolated(expr: str, name: str) -> str:
    """What Grafana makes of a query where a group is chosen."""
    regex = re.sub(r"[\\^$*+?.()|[\]{}/]", lambda found: f"\\{found[0]}", name)
    for word, value in (("${cluster:regex}", ".*"), ("${groups:regex}", regex), ("${group:raw}", name)):
        if word in expr:
            # Once: what is put in is not looked through again.
            before, _, after = expr.partition(word)
            return before + value + interpolated(after, name)
    return expr


@needs_prometheus
@pytest.mark.parametrize("name", OFFERED, ids=ascii)
def test_boards_ask_for_the_group_that_was_chosen(name: str, prometheus: str) -> None:
    """The board of one group, and those of several where one is chosen: that group's series, and no other's."""
    for scope in (ONE_GROUP, GROUPS):
        found = answer(prometheus, interpolated(f"kafka_group_info{{{scope.cluster}, {scope.group}}}", cut(name)))

        assert [cut(name)] == [series["metric"]["group"] for series in found]


def test_every_query_of_a_board_has_its_names_between_backticks() -> None:
    """Of every board: no variable of ours stands between other quotes, or without its format."""
    for path in GENERATED.glob("*.json"):
        for expr in expressions(json.loads(path.read_text("utf-8"))):
            bare = re.sub(r"=`\$\{group:raw\}`|=~`\$\{(?:cluster|groups|topic):regex\}`", "", expr)
            assert set() == {*re.findall(r"\$\{?(\w+)", bare)} - {"__rate_interval", "__interval", "__range"}, expr


def test_names_with_a_backtick_are_not_offered() -> None:
    """They would end the text that they stand in; all others are."""
    offered = re.compile(NAMES.strip("/"))
    variables = [
        variable
        for path in GENERATED.glob("*.json")
        for variable in json.loads(path.read_text("utf-8"))["templating"].get("list", [])
        if variable["type"] == "query"
    ]

    assert variables
    assert {NAMES} == {variable["regex"] for variable in variables}
    assert [*OFFERED] == [name for name in HARMFUL if offered.search(name)]


@needs_promtool
def test_alerts_show_names_as_text(tmp_path: Path) -> None:
    """No template in a name is filled in; what begins markup, a mention or a line is shown as a question mark."""
    (rule,) = (
        rule
        for group in yaml.safe_load((GENERATED / RULES).read_text("utf-8"))["groups"]
        for rule in group["rules"]
        if rule["alert"] == "KafkaGroupDuplicateOwner"
    )
    written = {
        "rules.yaml": {"groups": [{"name": "tested", "rules": [rule]}]},
        "test.yaml": {"rule_files": ["rules.yaml"], "tests": [firing(rule, cut(name)) for name in OFFERED]},
    }
    for file, content in written.items():
        (tmp_path / file).write_text(yaml.safe_dump(content), encoding="utf-8")

    assert "" == promtool("test", "rules", "test.yaml", cwd=tmp_path)


def firing(rule: dict[str, Any], name: str) -> dict[str, Any]:
    """A test of promtool: an alert about a group of this name, and a member of the same, with what it is to say."""
    label = json.dumps(name, ensure_ascii=False)
    shown = "".join("?" if character in "<>" or category(character) in STEERING else character for character in name)
    members = f'finding="duplicate_assignment", member_id={label}, client_host={label}'
    sentence = f"Group {shown} of cluster east: 1 partitions have two owners at once, so records are processed twice."
    alert = {
        "exp_labels": {"severity": "critical", "cluster": "east", "group": name},
        "exp_annotations": {**rule["annotations"], "summary": f"{sentence} Members: {shown} on {shown}"},
    }
    return {
        "interval": "1m",
        "input_series": [
            {"series": 'group_monitor_ready{cluster="east"}', "values": "1x20"},
            {"series": f'kafka_group_duplicate_partitions{{cluster="east", group={label}}}', "values": "1x20"},
            {"series": f'kafka_group_involved_members{{cluster="east", group={label}, {members}}}', "values": "1x20"},
        ],
        "alert_rule_test": [{"eval_time": "5m", "alertname": rule["alert"], "exp_alerts": [alert]}],
    }


def expressions(value: Any) -> Iterator[str]:
    """Every query below a value of a board."""
    if isinstance(value, dict):
        yield from (value[name] for name in ("expr", "definition") if isinstance(value.get(name), str))
        if isinstance(value.get("query"), str) and "(" in value["query"]:
            yield value["query"]
        for item in value.values():
            yield from expressions(item)
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item)
