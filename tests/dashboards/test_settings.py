"""Limits and names that a user sets: where they stand in boards and rules, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dashboards.alerts import rules
from dashboards.board import panels
from dashboards.build import boards, files
from dashboards.settings import DEFAULTS, SettingError, Settings, listed
from dashboards.thresholds import LIMITS
from streaming.__main__ import main
from tests.dashboards.alert_cases import cases
from tests.dashboards.prometheus_tools import needs_promtool, promtool

OTHERS: Final[dict[str, object]] = {
    "commit_window_seconds": 1_200,
    "rounds_lost": 500,
    "lag_seconds": 60,
    "selector": 'job="kafka", env=~"prod|test"',
    "group_pattern": "team-.+",
    "datasource": "mimir",
    "severity_critical": "page",
    "severity_warning": "ticket",
    "runbook_url": "https://docs.example/runbook",
}


def with_all(values: dict[str, object]) -> Settings:
    settings = DEFAULTS
    for name, value in values.items():
        settings = settings.with_value(name, value)
    return settings


def by_name(settings: Settings) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in rules(settings)["groups"] for rule in group["rules"]}


def test_no_name_is_left_in_what_is_made() -> None:
    """Every figure is put in, with the defaults and with others."""
    for settings in (DEFAULTS, with_all(OTHERS)):
        for name, text in files(settings).items():
            assert [] == re.findall(r"@[a-z_]+", text), name


def test_a_window_is_the_users_in_query_and_sentence() -> None:
    """Prometheus looks back as far as was said, the sentence says so, and the reason of our figure is not given."""
    rule = by_name(with_all({"commit_window_seconds": 1_200}))["KafkaGroupLagGrowingWithoutCommits"]

    assert "[20m]" in rule["expr"]
    assert "[15m]" not in rule["expr"]
    assert "committed nothing in 20 minutes" in rule["annotations"]["summary"]
    assert "the limit that was set (commit_window_seconds)" in rule["annotations"]["reason"]


def test_a_board_colours_by_the_users_limit() -> None:
    """Panels that know a limit have it as their threshold, a number, and say it."""
    coloured = [
        (panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1]["value"], panel["description"])
        for board in boards(settings=with_all({"lag_seconds": 60})).values()
        for panel in panels(board)
        if "lag_seconds" in panel.get("description", "")
    ]

    assert coloured
    assert all(60 == value and "Coloured above 60: " in said for value, said in coloured)


def test_matchers_stand_in_every_query() -> None:
    """A selector is in each metric's matchers, on boards, in their variable, in rules; a pattern in rules."""
    settings = with_all(OTHERS)
    matchers = 'job="kafka", env=~"prod|test"'
    for rule in by_name(settings).values():
        metrics = re.findall(r"\b(?:kafka|group_monitor)_\w+(\{[^}]*\})?", re.sub(r'"[^"]*"', '""', rule["expr"]))
        assert metrics
        assert all(found.startswith('{job="", env=~""') for found in metrics), rule["alert"]
        # Prometheus's own series of alerts carry no label of a scrape.
        assert all("job" not in found for found in re.findall(r"ALERTS\{([^}]*)\}", rule["expr"])), rule["alert"]
    assert 'group=~"team-.+"' in by_name(settings)["KafkaGroupRebalanceStuck"]["expr"]
    for name, board in boards(settings=settings).items():
        for panel in panels(board):
            for target in panel.get("targets", ()):
                of_others = target["expr"].replace("ALERTS{", "")
                assert matchers in of_others or "kafka_" not in of_others, f"{name}: {panel['title']}"
                assert f"ALERTS{{{matchers}" not in target["expr"], f"{name}: {panel['title']}"
        for variable in board.get("templating", {}).get("list", ()):
            if variable["type"] == "datasource":
                assert "mimir" == variable["current"]["value"]
            else:
                assert matchers in json.dumps(variable["definition"]).replace('\\"', '"')


def test_severities_and_links_are_the_users() -> None:
    """The label is what routes an alert: it has the user's words."""
    made = by_name(with_all(OTHERS))

    ranked = json.dumps(boards(settings=with_all(OTHERS))["overview.json"])
    assert r"\"severity\", \"page\"" in ranked
    assert r"\"severity\", \"critical\"" not in ranked
    assert {"page", "ticket", "info"} == {rule["labels"]["severity"] for rule in made.values()}
    assert all(rule["annotations"]["runbook_url"].startswith("https://docs.example/runbook#") for rule in made.values())


@needs_promtool
def test_rules_with_other_values_are_accepted(tmp_path: Path) -> None:
    """Prometheus has nothing to say against them."""
    file = tmp_path / "rules.yaml"
    file.write_text(files(with_all(OTHERS))["rules.yaml"], encoding="utf-8")

    assert "" == promtool("check", "rules", str(file))


@needs_promtool
@pytest.mark.parametrize(("rounds", "is_silent"), [(None, False), (500, True)])
def test_a_limit_silences_an_alert(rounds: int | None, is_silent: bool, tmp_path: Path) -> None:
    """What fires at our limit is quiet under a higher one: the same series, the same times."""
    name = "KafkaGroupRebalanceRoundsLost"
    settings = DEFAULTS if rounds is None else DEFAULTS.with_value("rounds_lost", rounds)
    tests = cases(name)
    for case in tests if is_silent else ():
        for check in case["alert_rule_test"]:
            check["exp_alerts"] = []
    written = {
        "rules.yaml": {"groups": [{"name": "tested", "rules": [by_name(settings)[name]]}]},
        "test.yaml": {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests},
    }
    for file, content in written.items():
        (tmp_path / file).write_text(yaml.safe_dump(content), encoding="utf-8")

    assert "" == promtool("test", "rules", "test.yaml", cwd=tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("commit_windw_seconds", 5, "accepted: commit_window_seconds"),
        ("unsettled_seconds", 900, "alarms.unsettled_after_ms"),
        ("storm_rebalances", 50, "alarms.expectations"),
        ("migration_stalled_seconds", 50, "no option changes it"),
        ("commit_window_seconds", 0, "a whole number, 1 or more"),
        ("commit_window_seconds", True, "a whole number, 1 or more"),
        ("commit_window_seconds", "15m", "a whole number, 1 or more"),
        ("selector", "job=kafka", "matchers of labels"),
        ("runbook_url", "docs/runbook", "a whole address"),
        ("severity_info", "for your information", "a word"),
    ],
)
def test_a_wrong_setting_is_refused(name: str, value: object, said: str) -> None:
    """With its name, what was found, and what is accepted; a limit of the monitor's own events with where it is set."""
    with pytest.raises(SettingError, match=f"^{name}: found .*{re.escape(said)}"):
        DEFAULTS.with_value(name, value)


def test_every_limit_names_its_unit() -> None:
    """Seconds, records or rounds: no one has to look it up."""
    for name in LIMITS:
        assert name.endswith(("_seconds", "_records", "rounds_lost", "rebalances", "_a_member")), name


def test_settings_are_listed_with_their_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    """The command lists each that may be set, and the page of alerts does."""
    assert 0 == main(["dashboards", "settings", "--json"])
    shown = json.loads(capsys.readouterr().out)
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text("utf-8")

    assert {each.name: each.default for each in listed()} == {name: of["default"] for name, of in shown.items()}
    assert "storm_rebalances" not in shown
    assert all(f"| `{each.name}` |" in page for each in listed())


def test_a_single_option_counts_before_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--set` has the last word over `--values`; both stand in what is written."""
    values = tmp_path / "values.yaml"
    values.write_text("commit_window_seconds: 1200\nrounds_lost: 7\n", encoding="utf-8")
    out = tmp_path / "out"
    arguments = ["dashboards", "build", "--out", str(out), "--values", str(values), "--set", "rounds_lost=9"]

    assert 0 == main(arguments), capsys.readouterr().err
    made = (out / "rules.yaml").read_text("utf-8")
    assert "[20m]" in made
    assert re.search(r">\s+9\b", made)


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--set", "rounds_lost", "--set: found 'rounds_lost', accepted: NAME=VALUE"),
        ("--set", "rounds=3", "--set: rounds: found a name that is not known"),
        ("--values", "- 1\n", "with no mapping"),
        ("--values", "rounds_lost: [3]\n", "--values: rounds_lost: found"),
        ("--values", "a: b: c\n", "accepted: YAML"),
    ],
)
def test_what_is_set_wrong_is_one_line(
    option: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, and nothing is written."""
    given = text
    if option == "--values":
        file = tmp_path / "values.yaml"
        file.write_text(text, encoding="utf-8")
        given = str(file)

    assert 2 == main(["dashboards", "build", "--out", str(tmp_path / "out"), option, given])
    captured = capsys.readouterr()
    assert 1 == len(captured.err.splitlines())
    assert said in captured.err
    assert not (tmp_path / "out").exists()
