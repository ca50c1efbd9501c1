"""What is generated: current, complete, and in Prometheus's eyes correct."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

import pytest
import yaml

from coordinator_model.gates import plan
from coordinator_model.gates.verdict import NOTE, STOP, UNKNOWN
from dashboards import build
from dashboards.alert import SEVERITIES
from dashboards.board import panels as board_panels
from dashboards.build import COMMAND, GENERATED, RULES
from dashboards.panels import NARROWEST, PHASE_COLOURS, PROTOCOL_COLOURS, READINESS_COLOURS, STATE_COLOURS
from dashboards.promql import COUNT
from dashboards.signals import LEFTOVER_TYPES, PHASE_CODES
from tests.dashboards.prometheus_tools import answer, needs_prometheus, running_prometheus

BOARDS: Final[dict[str, dict[str, Any]]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted(GENERATED.glob("*.json"))
}
FIRST_SCREEN: Final = 20
"""Lines of the grid on a screen 900 pixels high."""

# What Grafana puts in the place of its own words, so that Prometheus sees what it is asked in earnest.
INTERPOLATED: Final = {
    "$__rate_interval": "1m",
    "$__interval": "1m",
    "$__range": "1h",
    "${cluster:regex}": ".*",
    "${groups:regex}": "a|b",
    "${group:raw}": "a",
    "${topic:regex}": ".*",
}


GRID_PIXELS: Final = 1_440 - 300 - 2 * 16 - 16
"""Of a screen of 1440: beside Grafana's docked menu, the page's padding, and the scroll bar."""
GAP_PIXELS: Final = 8
PANEL_PIXELS: Final = 2 * (8 + 1)
"""Padding and border of a panel."""

# As Grafana 10.0 and 12.4 draw them, measured in a browser with their own font.
BESIDE_TITLE_PIXELS: Final = 53
"""Of a panel's width what is not its title's: gap, padding, and the sign of the description."""
TITLE_LETTER_PIXELS: Final = 7.6
CELL_PIXELS: Final = 21
"""Padding and border of a table's cell."""
HEADING_LETTER_PIXELS: Final = 6.25
SIGN_PIXELS: Final = 20
WORD_PIXELS: Final = {
    "alertname": 273,  # KafkaGroupLagGrowingWithoutCommits
    "type": 67,  # consumer
    "protocol": 126,  # cooperative-sticky
    "state": 78,  # Reconciling
    "phase": 89,  # downgrading
    "severity": 57,  # warning
}
"""Column → the width of the longest word it holds, of those that are not names."""


def panels(board: str) -> list[dict[str, Any]]:
    return board_panels(BOARDS[board])


def with_headings(board: str) -> list[dict[str, Any]]:
    """Panels and the rows they stand in."""
    return [*panels(board), *(panel for panel in BOARDS[board]["panels"] if panel["type"] == "row")]


def asking(board: str) -> list[dict[str, Any]]:
    return [panel for panel in panels(board) if panel["type"] != "text"]


def marks(board: str) -> list[dict[str, Any]]:
    """What is marked over the graphs of a board."""
    listed: list[dict[str, Any]] = BOARDS[board]["annotations"].get("list", [])
    return listed


def expressions() -> list[tuple[str, str]]:
    """(where it stands, PromQL) of every panel and every rule."""
    found = [
        (f"{board}: {panel['title']}", interpolated(target["expr"]))
        for board in BOARDS
        for panel in asking(board)
        for target in panel["targets"]
    ]
    found += [
        (f"{board}: {episodes['name']}", interpolated(episodes["expr"]))
        for board in BOARDS
        for episodes in marks(board)
    ]
    groups = yaml.safe_load((GENERATED / RULES).read_text("utf-8"))["groups"]
    return found + [(rule["alert"], rule["expr"]) for group in groups for rule in group["rules"]]


def interpolated(expr: str) -> str:
    for word, value in INTERPOLATED.items():
        expr = expr.replace(word, value)
    assert "$" not in expr, f"{expr}: a variable no board has"
    return expr


def test_what_is_committed_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """The files are those the sources make, and there are no others."""
    assert 0 == build.main(["--check"]), capsys.readouterr().err


def test_stale_files_are_named_with_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed, a missing and a foreign file are reported in one line, which says what to run."""
    build.write(build.files(), tmp_path)
    (tmp_path / "group.json").write_text("{}", encoding="utf-8")
    (tmp_path / RULES).unlink()
    (tmp_path / "old_board.json").write_text("{}", encoding="utf-8")

    assert 1 == build.main(["--check", "--out", str(tmp_path)])
    reported = capsys.readouterr().err
    assert 1 == len(reported.splitlines())
    assert all(
        word in reported for word in ("group.json is stale", f"{RULES} is stale", "old_board.json", f"`{COMMAND}`")
    )


def test_writing_twice_writes_once(tmp_path: Path) -> None:
    """The same sources make the same bytes, and what is right already is left alone."""
    made = build.files()

    assert sorted(made) == sorted(build.write(made, tmp_path))
    assert [] == build.write(build.files(), tmp_path)


@pytest.mark.parametrize("name", BOARDS)
def test_board_loads_in_grafana_10_and_later(name: str) -> None:
    """The classic schema: a uid, panels in a list, a schema version Grafana migrates from on its own."""
    board = BOARDS[name]

    assert f"group-monitor-{name.replace('_', '-')}" == board["uid"]
    assert board["title"].startswith("Kafka groups: ")
    assert board["description"]
    assert 36 <= board["schemaVersion"] <= 42
    assert "id" not in board


@pytest.mark.parametrize("name", BOARDS)
def test_panels_have_what_they_need(name: str) -> None:
    """Each panel has an id of its own and a title; each that asks has a description, a unit and the data source."""
    ids = [panel["id"] for panel in with_headings(name)]
    titles = [panel["title"] for panel in panels(name)]

    assert sorted(set(ids)) == sorted(ids)
    assert sorted(set(titles)) == sorted(titles)
    for panel in asking(name):
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources(panel))


def sources(value: Any) -> Iterator[Any]:
    """Every `datasource` below a value."""
    if isinstance(value, dict):
        if "datasource" in value:
            yield value["datasource"]
        for item in value.values():
            yield from sources(item)
    elif isinstance(value, list):
        for item in value:
            yield from sources(item)


@pytest.mark.parametrize("name", BOARDS)
def test_legends_are_shown(name: str) -> None:
    """The lines on the wall are known by their legends: legends are shown, and every series has a name."""
    for panel in panels(name):
        if panel["type"] in {"timeseries", "state-timeline"}:
            assert panel["options"]["legend"]["showLegend"], panel["title"]
            assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]


@pytest.mark.parametrize("name", BOARDS)
def test_series_of_a_panel_differ_in_colour(name: str) -> None:
    """Colours go by a series' place, in Grafana 10 as in 12.

    By name they do not: Grafana 10 hashes the field's, which is the same for all series, to one colour. An override
    colours one series, each with its own.
    """
    for title, look in field_configs(name):
        assert "palette-classic" == look["defaults"]["color"]["mode"], title
        assert not look["defaults"]["color"].get("fixedColor"), title
        own = [
            (held["matcher"]["id"], each["value"]["mode"], each["value"]["fixedColor"])
            for held in look["overrides"]
            for each in held["properties"]
            if each["id"] == "color"
        ]
        assert all(("byName", "fixed") == (matcher, mode) for matcher, mode, _ in own), title
        assert len(own) == len({colour for _, _, colour in own}), title


def field_configs(name: str) -> list[tuple[str, dict[str, Any]]]:
    """(title, field configuration) of each time series of a board."""
    board = build.boards()[f"{name}.json"]
    return [(of["title"], of["fieldConfig"]) for of in board_panels(board) if of["type"] == "timeseries"]


@pytest.mark.parametrize(
    ("name", "title", "colours"),
    [
        ("overview", "Groups by state", STATE_COLOURS),
        ("group", "Members by protocol", PROTOCOL_COLOURS),
        ("rolling_upgrade", "Members by protocol", PROTOCOL_COLOURS),
        ("rolling_upgrade", "Groups by phase", PHASE_COLOURS),
        ("rolling_upgrade", "Groups by readiness", READINESS_COLOURS),
    ],
)
def test_a_state_has_its_colour_everywhere(name: str, title: str, colours: dict[str, str]) -> None:
    """What is ready is not red, and what is blocked not green, because of its place in the alphabet.

    The override's name is the whole legend, so that it is one that a series has.
    """
    (panel,) = (each for each in panels(name) if each["title"] == title)
    (target,) = panel["targets"]
    found = {
        each["matcher"]["options"]: each["properties"][0]["value"]["fixedColor"]
        for each in panel["fieldConfig"]["overrides"]
    }

    assert colours == found
    assert re.fullmatch(r"\{\{\w+\}\}", target["legendFormat"])


def test_colours_are_of_words_there_are() -> None:
    """No colour is of a readiness or a protocol that no metric knows, and none lacks one."""
    assert set(plan.READINESS) == READINESS_COLOURS.keys()
    assert {"classic", *LEFTOVER_TYPES} == PROTOCOL_COLOURS.keys()


def test_a_phase_of_seconds_is_not_hidden() -> None:
    """Where a step of the timeline has several phases, the largest number is drawn: one on the way, not one at rest."""
    at_rest = {PHASE_CODES[phase] for phase in ("classic", "upgraded", "downgraded")}
    on_the_way = {PHASE_CODES[phase] for phase in ("upgrading", "downgrading")}

    assert max(at_rest) < min(on_the_way)


@pytest.mark.parametrize("name", BOARDS)
def test_a_timeline_has_a_legend(name: str) -> None:
    """Grafana draws none for continuous colours, which are a state timeline's if it says nothing of them."""
    for panel in panels(name):
        if panel["type"] == "state-timeline":
            assert "palette-classic" == panel["fieldConfig"]["defaults"]["color"]["mode"], panel["title"]


@pytest.mark.parametrize("name", BOARDS)
def test_what_comes_and_goes_is_seen_and_not_taken_for_now(name: str) -> None:
    """A series of moments is drawn as points, as a line of one point is none; its legend has no last value.

    Grafana's last value is the last that was known: `upgrading 1` beside a group that was upgraded an hour ago.
    """
    for panel in panels(name):
        if panel["type"] == "timeseries":
            look = panel["fieldConfig"]["defaults"]["custom"]
            of_moments = [bool(re.search(r"> 0\)?$", target["expr"])) for target in panel["targets"]]
            drawn_apart = look.get("drawStyle") != "bars" and look.get("stacking", {}).get("mode") != "normal"
            assert ("always" == look["showPoints"]) == (all(of_moments) and drawn_apart), panel["title"]
            last = ["lastNotNull"] == panel["options"]["legend"]["calcs"]
            assert last == (not any(of_moments) and drawn_apart), panel["title"]


@pytest.mark.parametrize("name", BOARDS)
def test_a_line_of_noughts_lies_under_its_limit(name: str) -> None:
    """Grafana draws noughts on an axis to 100, on which a limit of one lies on the floor: all would touch it."""
    for panel in panels(name):
        if panel["type"] == "timeseries" and panel["fieldConfig"]["defaults"]["unit"] == COUNT:
            assert 2 == panel["fieldConfig"]["defaults"]["custom"]["axisSoftMax"], panel["title"]


def test_rebalances_are_counted_once() -> None:
    """Avoidable ones are among the completed: their bars lie on those, not on top, where they would count twice."""
    (panel,) = (each for each in panels("group") if each["title"] == "Rebalances")

    assert "bars" == panel["fieldConfig"]["defaults"]["custom"]["drawStyle"]
    assert "stacking" not in panel["fieldConfig"]["defaults"]["custom"]


@pytest.mark.parametrize("name", BOARDS)
def test_titles_are_not_cut(name: str) -> None:
    """On 1440 pixels, with Grafana's menu beside and the description's sign behind it, a title is read to its end."""
    for panel in asking(name):
        pixels = panel["gridPos"]["w"] * (GRID_PIXELS + GAP_PIXELS) / 24 - BESIDE_TITLE_PIXELS
        assert len(panel["title"]) * TITLE_LETTER_PIXELS <= pixels, panel["title"]


@pytest.mark.parametrize("name", BOARDS)
def test_what_is_left_out_is_said(name: str) -> None:
    """A panel of the largest series says how many it draws; a timeline no more than have room for their names."""
    for panel in asking(name):
        counts = {int(count) for target in panel["targets"] for count in re.findall(r"topk\((\d+),", target["expr"])}
        for count in counts:
            assert f"At most {count} are drawn" in panel["description"], panel["title"]
            assert count <= panel["options"].get("perPage", count), panel["title"]
        if panel["title"] == "Phases":
            assert counts


@pytest.mark.parametrize("name", BOARDS)
def test_tiles_do_not_change_places(name: str) -> None:
    """An instant answer has no order: several gates in one panel changed places from one look to the next."""
    for panel in panels(name):
        if panel["type"] == "stat" and panel["options"]["textMode"] != "name":
            (target,) = panel["targets"]
            assert target.get("legendFormat", "") in {"", "{{cluster}}"}, panel["title"]


def test_what_few_have_is_out_of_the_way() -> None:
    """Sinks, serving from topics and the history stand in a row that is closed, so that nothing of it is asked."""
    (closed,) = (panel for panel in BOARDS["monitor_health"]["panels"] if panel.get("collapsed"))
    asked = " ".join(target["expr"] for panel in closed["panels"] for target in panel["targets"])
    open_ = " ".join(
        target["expr"] for panel in BOARDS["monitor_health"]["panels"] for target in panel.get("targets", ())
    )

    for metric in ("group_monitor_sink_", "group_monitor_source_age", "group_monitor_history_bytes"):
        assert metric in asked
        assert metric not in open_
    shares, durations = (panel for panel in BOARDS["group"]["panels"] if panel.get("collapsed"))
    assert ["Duration of rebalances"] == [panel["title"] for panel in durations["panels"]]
    assert "Given up" in {panel["title"] for panel in shares["panels"]}


def test_first_screen_of_a_roll_is_the_roll() -> None:
    """Phases, members that remain, lag against before and owners stand on the first screen."""
    seen = {panel["title"] for panel in panels("rolling_upgrade") if panel["gridPos"]["y"] < FIRST_SCREEN}

    assert {
        "Phases",
        "Classic members",
        "Lag against before",
        "Two owners",
        "No owner",
    } <= seen


@pytest.mark.parametrize("name", [name for name in BOARDS if marks(name)])
def test_marks_are_over_the_graphs_they_explain(name: str) -> None:
    """Each is over some of the board's graphs, not over all."""
    drawn = {panel["id"] for panel in panels(name) if panel["type"] == "timeseries"}
    for mark in marks(name):
        assert not mark["filter"]["exclude"]
        assert set() < set(mark["filter"]["ids"]) < drawn


@pytest.mark.parametrize("name", BOARDS)
def test_no_series_is_never_green(name: str) -> None:
    """A figure without a series says that it is not known, in no colour; nothing makes a zero of an absent monitor."""
    for panel in panels(name):
        if panel["type"] == "stat":
            (unknown,) = (each for each in panel["fieldConfig"]["defaults"]["mappings"] if each["type"] == "special")
            assert ("null+nan", "not known", "text") == (
                unknown["options"]["match"],
                unknown["options"]["result"]["text"],
                unknown["options"]["result"]["color"],
            )
            assert "not known" == panel["fieldConfig"]["defaults"]["noValue"]
        assert not any("vector(0)" in target["expr"] for target in panel.get("targets", ()))


@pytest.mark.parametrize("name", BOARDS)
def test_what_is_counted_is_whole(name: str) -> None:
    """A number of groups is no time, whatever is known of them; and half a group, or event, is a trick of the axis.

    Whole numbers have a unit that does not scale: an axis in K would show `3 K, 3 K, 2 K, 2 K`.
    """
    assert "locale" == COUNT
    for panel in panels(name):
        if panel["type"] in {"stat", "timeseries"}:
            look = panel["fieldConfig"]["defaults"]
            counts = any(re.match(r"\(?count ", target["expr"]) for target in panel["targets"])
            assert COUNT == look["unit"] or not counts, panel["title"]
            assert (look.get("decimals") == 0) == (look["unit"] == COUNT), panel["title"]
        if panel["type"] == "table":
            for override in panel["fieldConfig"]["overrides"]:
                has = properties(panel, override["matcher"]["options"])
                assert (has.get("decimals") == 0) == (has.get("unit") == COUNT), override["matcher"]["options"]


@pytest.mark.parametrize("name", [name for name in BOARDS if name != "runbook"])
def test_every_board_says_whether_it_may_be_believed(name: str) -> None:
    """Among the first tiles is whether the monitor is alive and has caught up."""
    titles = [panel["title"] for panel in panels(name)[:6]]

    assert {"Monitor", "Ready"} & {*titles}


@pytest.mark.parametrize("name", BOARDS)
def test_panels_fill_their_rows_and_do_not_overlap(name: str) -> None:
    """Nothing lies on top of anything, and a row of panels is as wide as the screen."""
    taken: dict[tuple[int, int], str] = {}
    for panel in with_headings(name):
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, f"{panel['title']} ends outside the screen"
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
    for y in {y for _, y in taken}:
        width = sum((x, y) in taken for x in range(24))
        assert 24 == width or name == "runbook", f"line {y} is {width} wide"


@pytest.mark.parametrize("name", BOARDS)
def test_columns_of_a_table_fit_the_screen(name: str) -> None:
    """On 1440 pixels, with Grafana's menu beside, no table is cut, and no heading and no word in it."""
    for title, span, spec in tables(name):
        assert not spec["fieldConfig"]["defaults"]["custom"]["filterable"], title
        widths = drawn_widths(span, spec)
        assert sum(widths.values()) <= table_pixels(span), f"{title}: {widths}"
        for column, width in widths.items():
            heading = len(column) * HEADING_LETTER_PIXELS
            heading += properties(spec, column).get("custom.filterable", False) * SIGN_PIXELS
            assert CELL_PIXELS + max(heading, WORD_PIXELS.get(column, 0)) <= width, f"{title}: {column}"


def drawn_widths(span: int, spec: dict[str, Any]) -> dict[str, float]:
    """Column → pixels: those with a width have it; what is left the others share alike, none less than its least."""
    shown = columns(spec)
    fixed = {
        column: properties(spec, column)["custom.width"]
        for column in shown
        if "custom.width" in properties(spec, column)
    }
    share = (table_pixels(span) - sum(fixed.values())) / max(1, len(shown) - len(fixed))
    return {
        column: fixed.get(column, max(share, properties(spec, column).get("custom.minWidth", NARROWEST)))
        for column in shown
    }


def properties(spec: dict[str, Any], column: str) -> dict[str, Any]:
    """What a table's override says of a column."""
    return {
        each["id"]: each["value"]
        for override in spec["fieldConfig"]["overrides"]
        if override["matcher"]["options"] == column
        for each in override["properties"]
    }


@pytest.mark.parametrize("name", BOARDS)
def test_overrides_are_of_columns_there_are(name: str) -> None:
    """What an override of a table is for, and what it is sorted by, is one of its columns."""
    for title, _, spec in tables(name):
        named = {each["matcher"]["options"] for each in spec["fieldConfig"]["overrides"]}
        named |= {each["displayName"] for each in spec["options"].get("sortBy", ())}
        assert named <= {*columns(spec)}, title


@pytest.mark.parametrize(
    ("name", "title", "label", "worst_first"),
    [
        ("overview", "Needs a look", "severity", tuple(SEVERITIES)),
        ("rolling_upgrade", "Reasons of the gates", "effect", (STOP, UNKNOWN, NOTE)),
    ],
)
def test_what_is_worst_stands_first(name: str, title: str, label: str, worst_first: tuple[str, ...]) -> None:
    """Critical before warning, stop before unknown: rows are sorted by a rank of the query, which is no column then."""
    (spec,) = (spec for held, _, spec in tables(name) if held == title)
    (expr,) = spec["exprs"]
    ids = [each["id"] for each in spec["transformations"]]
    options = {each["id"]: each["options"] for each in spec["transformations"]}
    ranks = dict(re.findall(rf'"(\d)", "{label}", "(\w+)"', expr))

    assert ["merge", "sortBy", "organize"] == ids
    assert [{"field": "rank"}] == options["sortBy"]["sort"]
    assert options["organize"]["excludeByName"]["rank"]
    assert not spec["options"].get("sortBy")
    assert worst_first == tuple(ranks[rank] for rank in sorted(ranks))


def table_pixels(span: int) -> int:
    """Pixels a table has for its columns in a panel of so many columns of the grid."""
    return span * (GRID_PIXELS + GAP_PIXELS) // 24 - GAP_PIXELS - PANEL_PIXELS


def tables(name: str) -> list[tuple[str, int, dict[str, Any]]]:
    """(title, columns of the grid, what makes the table) of each table of a board."""
    board = build.boards()[f"{name}.json"]
    return [
        (
            of["title"],
            of["gridPos"]["w"],
            {
                "fieldConfig": of["fieldConfig"],
                "options": of["options"],
                "transformations": of["transformations"],
                "exprs": [target["expr"] for target in of["targets"]],
            },
        )
        for of in board_panels(board)
        if of["type"] == "table"
    ]


def columns(spec: dict[str, Any]) -> list[str]:
    """What a table shows: labels by name and values by legend, those that are left out not."""
    (organized,) = (each["options"] for each in spec["transformations"] if each["id"] == "organize")
    left_out = organized["excludeByName"]
    return [organized["renameByName"].get(name, name) for name in organized["indexByName"] if name not in left_out]


@pytest.mark.parametrize("name", BOARDS)
def test_variables_are_there(name: str) -> None:
    """Every variable that a query or a link uses is one the board has; those it has are used."""
    has = {variable["name"] for variable in BOARDS[name].get("templating", {}).get("list", [])}
    text = json.dumps([panel.get("targets") for panel in panels(name)])
    text += json.dumps(BOARDS[name].get("templating")) + json.dumps([each["expr"] for each in marks(name)])
    used = set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval", "__interval", "__range", "__all"}

    assert used == has


@pytest.mark.parametrize("name", BOARDS)
def test_boards_lead_to_each_other(name: str) -> None:
    """Every board shows links to all boards of its tag, and keeps variables and time on the way."""
    (link,) = BOARDS[name]["links"]

    assert ("dashboards", ["group-monitor"], True, True) == (
        link["type"],
        link["tags"],
        link["includeVars"],
        link["keepTime"],
    )
    assert link["tags"] == BOARDS[name]["tags"]
    # The SDK would put it into a menu.
    assert "placement" not in link


@pytest.mark.parametrize("name", ["overview", "group", "rolling_upgrade"])
def test_episodes_are_marked(name: str) -> None:
    """Marks have a switch, a title, an explanation and a colour, and are asked finely enough to see each episode."""
    assert marks(name)
    for episodes in marks(name):
        assert all(episodes[key] for key in ("name", "expr", "titleFormat", "textFormat", "iconColor"))
        assert ("1m", {"type": "prometheus", "uid": "${datasource}"}) == (episodes["step"], episodes["datasource"])
    if name == "group":
        assert ["Rebalances under way", "Rebalances completed", "Alerts"] == [each["name"] for each in marks(name)]


def texts() -> str:
    """All boards and rules as one text, without the line breaks of YAML."""
    rules = yaml.safe_load((GENERATED / RULES).read_text("utf-8"))
    return json.dumps([list(BOARDS.values()), rules])


def test_links_lead_to_boards_there_are() -> None:
    """An address inside a panel or an alert is a generated board's, and passes variables it has."""
    text = texts()
    by_uid = {board["uid"]: board for board in BOARDS.values()}
    links = re.findall(r'/d/([\w-]+)(?:\?([^"]*))?', text)

    assert links
    for uid, query in links:
        variables = {variable["name"] for variable in by_uid[uid].get("templating", {}).get("list", [])}
        assert set(re.findall(r"var-(\w+)=", query)) <= variables, uid


def test_names_of_groups_survive_in_links() -> None:
    """A group may be called `a/b&c`: its name is encoded wherever it becomes part of an address."""
    text = texts()

    assert "var-group=" in text
    assert set() == set(
        re.findall(r"var-group=(?!\$\{[\w.]+:percentencode\}|\{\{ \$labels\.group \| urlquery \}\}).{9}", text)
    )


@needs_prometheus
def test_every_expression_is_accepted_by_prometheus(tmp_path: Path) -> None:
    """Prometheus evaluates what panels and rules ask, without error; it holds no data, so there is no answer."""
    refused = []
    with running_prometheus(tmp_path) as address:
        for where, expr in expressions():
            try:
                answer(address, expr)
            except HTTPError as error:
                refused.append((where, expr, json.load(error)["error"]))

    assert [] == refused
    assert len(expressions()) > 100
