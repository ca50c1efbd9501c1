"""What the documentation says exists, and the commands it shows are accepted as they stand."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from coordinator_model.migration.phases import PHASES
from coordinator_model.state.events import SEVERITIES as EVENT_KINDS
from dashboards import pages
from dashboards.alerts import ALERTS
from dashboards.board import panels
from dashboards.build import boards
from streaming.config import loading
from streaming.demo.embedded_broker import PROPERTIES
from streaming.metrics.catalogue import CATALOGUE
from streaming.web.routes import Pages
from tests.command_lines import refused

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "decisions").glob("*.md"),
        ROOT / "dashboards" / "runbook.md",
        ROOT / "conf" / "helm" / "group-monitor" / "README.md",
    ]
)
TEXTS: Final = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in DOCS}
MAKE_TARGETS: Final = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
PROFILES: Final = {
    profile
    for service in yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"].values()
    for profile in service.get("profiles", [])
}

# Other programs that the pages show, with the test that runs those lines as they stand.
RUN_ELSEWHERE: Final = {
    "pip": "tests/integration/test_installed.py",
    "kafka-acls.sh": "tests/integration/test_permissions.py",
    "spark-submit": "tests/integration/test_cluster.py",
}


def commands() -> list[tuple[str, str]]:
    """(file, command) of every line with a prompt in a block of the console."""
    return [
        (name, line.strip().removeprefix("$ "))
        for name, text in TEXTS.items()
        for block in re.findall(r"^ *```console\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line.strip().startswith("$ ")
    ]


def inline() -> list[tuple[str, str]]:
    """(file, command) of every `group-monitor …` within a sentence; words in capitals stand for what one fills in."""
    return [
        (name, command)
        for name, text in TEXTS.items()
        for command in re.findall(r"`((?:\.venv/bin/)?group-monitor [^`]+)`", text)
    ]


@pytest.mark.parametrize(("file", "command"), commands())
def test_command_is_accepted(file: str, command: str) -> None:
    """A command of ours parses, a target of make exists, a profile too; any other is run by the test that is named."""
    words = shlex.split(command)
    match Path(words[0]).name:
        case "group-monitor":
            assert "" == refused(words[1:])
        case "make":
            assert {word for word in words[1:] if "=" not in word} <= MAKE_TARGETS
        case "docker":
            assert {"compose", "up"} <= set(words)
            assert {words[i + 1] for i, word in enumerate(words) if word == "--profile"} <= PROFILES
        case program:
            assert "commands" in (ROOT / RUN_ELSEWHERE[program]).read_text("utf-8"), file


def test_configuration_of_the_readme_is_accepted(tmp_path: Path) -> None:
    """As it stands, and it is short."""
    (text,) = re.findall(r"```yaml\n(.*?)```", TEXTS["README.md"], re.DOTALL)
    file = tmp_path / "monitor.yaml"
    file.write_text(text)

    assert "orders" == loading.load(file, {}).cluster.name
    assert len(text.splitlines()) <= 5


def test_front_page_is_short() -> None:
    """A screen or two; everything else has a page of its own."""
    assert len(TEXTS["README.md"].splitlines()) < 120


def test_performance_is_for_who_runs_it() -> None:
    """What was tried, and every figure, stand in the lab's page."""
    assert len(TEXTS["docs/performance.md"].split()) < 1_500


@pytest.mark.parametrize(("file", "command"), inline())
def test_command_in_a_sentence_is_accepted(file: str, command: str) -> None:
    """With something in the place of its words in capitals it parses; named without its arguments it exists."""
    words = shlex.split(command.replace("…", ""))[1:]
    said = refused(words)

    assert "Missing" in said or not said, file


@pytest.mark.parametrize("file", TEXTS)
def test_links_lead_somewhere(file: str) -> None:
    """Every link to a file of the repository leads to one, and an anchor to a heading of it."""
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[file]):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (ROOT / file).parent / path if path else ROOT / file
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text("utf-8"), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, target


def test_every_page_is_in_the_index() -> None:
    """The index names each page, and the README the index."""
    index = TEXTS["docs/README.md"]

    missing = [path.name for path in DOCS if path.parent.name == "docs" and path.name not in index]

    assert {*missing} <= {"README.md"}
    assert "docs/README.md" in TEXTS["README.md"]


def test_every_decision_is_in_its_index() -> None:
    """In the order of their numbers, and none that is not there."""
    listed = re.findall(r"^\| \[(\d+)\]\((\1-[\w-]+\.md)\)", TEXTS["docs/decisions/README.md"], re.MULTILINE)

    assert sorted(path.name for path in (ROOT / "docs" / "decisions").glob("0*.md")) == [file for _, file in listed]


@pytest.mark.parametrize("folder", ["coordinator_model", "streaming", "dashboards", "lab", "tests", "bench", "docs"])
def test_citations_lead_somewhere(folder: str) -> None:
    """Code that cites the log's page names a section of it, and a decision by the number of one there is."""
    headings = set(re.findall(r"^#+ (.+)$", TEXTS["docs/coordinator-log.md"], re.MULTILINE))
    decisions = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    text = " ".join(re.sub(r"\s+#?\s*", " ", path.read_text("utf-8")) for path in (ROOT / folder).rglob("*.py"))
    cited = re.findall(r'coordinator-log\.md`?, ((?:"[^"]+"(?:, | and )?)+)', text)

    assert {name for names in cited for name in re.findall(r'"([^"]+)"', names)} <= headings
    assert set(re.findall(r"docs/decisions/(\d{4})", text)) <= decisions


def test_contributing_names_files_there_are() -> None:
    """Each file it sends one to exists; words in capitals stand for what one adds."""
    named = set(re.findall(r"`((?:\w+/)+[\w-]+\.\w+)`", TEXTS["CONTRIBUTING.md"]))

    assert len(named) > 20
    assert [] == sorted(path for path in named if not re.search("[A-Z]{3}", path) and not (ROOT / path).exists())


def test_generated_pages_are_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The committed pages on metrics and alerts are what the catalogues make; a stale one is named with the command."""
    assert 0 == pages.main(["--check"]), capsys.readouterr().err
    assert 0 == pages.main(["--out", str(tmp_path)])
    (tmp_path / "metrics.md").write_text("", "utf-8")

    assert 1 == pages.main(["--check", "--out", str(tmp_path)])
    assert f"metrics.md stale; run `{pages.COMMAND}`" in capsys.readouterr().err


@pytest.mark.parametrize("file", TEXTS)
def test_names_exist(file: str) -> None:
    """Metrics, alerts, options and addresses that a page names are there under that name."""
    text = TEXTS[file]
    ours = set(re.findall(r"`(kafka_(?:group|cluster|partition|consumergroup_group)_\w+|group_monitor_\w+)`", text))
    sections = "|".join(loading.Config.model_fields)
    options = set(re.findall(rf"`((?:{sections})\.[a-z_]+)`", text))
    addresses = {route.path for route in Pages._routes(object.__new__(Pages))}

    assert ours <= CATALOGUE.keys() | EVENT_KINDS.keys()
    assert set(re.findall(r"\bKafkaGroup[A-Z]\w+", text)) <= {alert.name for alert in ALERTS}
    for option in options:
        section, name = option.split(".")
        assert name in type(getattr(loading.Config(), section)).model_fields, option
    for path in re.findall(r"`(/api/v1/\w+|/metrics|/ready|/healthz)", text):
        assert any(address.startswith(path) for address in addresses), path


def test_what_is_said_of_other_monitors_leads_to_metrics_there_are() -> None:
    """Every expression in the middle column is of metrics of the catalogue, with the labels they have."""
    rows = re.findall(r"^\| `(?!---)[^|]+\| ([^|]+) \|", TEXTS["docs/migrating-from.md"], re.MULTILINE)

    assert len(rows) > 30
    for expression in re.findall(r"`([^`]+)`", " ".join(rows)):
        for name in re.findall(r"\b(?:kafka|group_monitor)_\w+", expression):
            by = re.findall(r"by \(([\w, ]+)\)", expression)
            assert name in CATALOGUE, expression
            assert {label for labels in by for label in labels.split(", ")} <= set(CATALOGUE[name].labels), expression


def test_rolling_upgrade_page_speaks_of_what_is_shown() -> None:
    """Panels it names stand on the board, phases are all explained, events it names exist, and so do the settings."""
    text = TEXTS["docs/reading-a-rolling-upgrade.md"]
    (board,) = [board for board in boards().values() if board["title"].endswith("Rolling upgrade")]
    titles = {panel["title"] for panel in panels(board)}

    assert set(re.findall(r"^\| (\w+) \| .* \|$", text, re.MULTILINE)) >= set(PHASES)
    assert [] == [name for name in re.findall(r"(?<!\*)\*([A-Z][\w ]+)\*(?!\*)", text) if name not in titles]
    assert set(re.findall(r"`((?:up|down)grade_\w+|rebalance_\w+|migration_\w+)`", text)) <= EVENT_KINDS.keys()
    assert "group.consumer.migration.policy" in PROPERTIES


@pytest.mark.parametrize(("statuses", "status", "asked"), [((3, 1, 0), 0, 3), ((1, 2, 0), 2, 2)])
def test_loop_around_a_gate_waits_and_ends_with_a_mistake(
    tmp_path: Path, statuses: tuple[int, ...], status: int, asked: int
) -> None:
    """Closed and *cannot tell* are waited for; a wrong name would be waited for for ever."""
    (loop,) = re.findall(r"^```sh\n(until .*?)^```$", TEXTS["docs/migrating-many-groups.md"], re.MULTILINE | re.DOTALL)
    answers = " ".join(map(str, statuses))
    stubs = f"""
        asked={tmp_path / "asked"}
        sleep() {{ :; }}
        group_monitor() {{
            echo >> "$asked"
            set -- {answers}
            shift $(($(wc -l < "$asked") - 1))
            return "$1"
        }}
    """
    script = stubs + loop.replace("group-monitor", "group_monitor")

    assert status == subprocess.run(["sh", "-c", script], check=False).returncode  # noqa: S603, S607 - the page's lines
    assert asked == len((tmp_path / "asked").read_text("utf-8").splitlines())
