"""`make check` does not pass what is half done: each break is made in a copy of the checkout.

Lint and types are the tools' own business; what is run here is every other command of the recipe.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.timeout(600)

ROOT: Final = Path(__file__).resolve().parent.parent
COPIED: Final = (
    "bench",
    "conf",
    "coordinator_model",
    "dashboards",
    "docs",
    "lab",
    "streaming",
    "tests",
    "pyproject.toml",
    "release",
    "Makefile",
)
TOOLS: Final = ("ruff", "mypy")
ELSEWHERE: Final = frozenset({"pytest", "tests.doc_tables"})
"""What these say of a sound checkout `make test` says anyhow: by those tests, and by `tests/test_doc_tables.py`."""

# What is broken → file, what is in it, what is put in its place (None: the file is removed), and what is said then.
BREAKS: Final[dict[str, tuple[str, str | None, str, str]]] = {
    "a board that is not what the sources make": (
        "dashboards/generated/group.json",
        '"title": "Epochs"',
        '"title": "Generations"',
        "group.json is stale",
    ),
    "rules that are not what the sources make": (
        "dashboards/thresholds.py",
        'AT_ONCE: Final = Limit("least_wait_seconds", 60,',
        'AT_ONCE: Final = Limit("least_wait_seconds", 120,',
        "rules.yaml is stale; run `python -m dashboards.build`",
    ),
    "an alert without a test": (
        "tests/dashboards/alerts/KafkaGroupDuplicateOwner.test.yaml",
        None,
        "",
        "test_every_alert_has_a_file_and_every_file_an_alert",
    ),
    "an alert that is not tested one minute too early": (
        "tests/dashboards/alerts/KafkaGroupMixedTooLong.test.yaml",
        "eval_time: ",
        "eval_time: 1",
        "test_alert_is_tested_from_three_sides[KafkaGroupMixedTooLong]",
    ),
    "an alert without a heading in the runbook": (
        "dashboards/runbook.md",
        "## KafkaGroupStaleClaims",
        "## Stale claims",
        "KafkaGroupStaleClaims",
    ),
    "a metric that nothing asks": (
        "streaming/metrics/catalogue.py",
        '"group_monitor_ready"',
        '"group_monitor_prepared"',
        "test_every_metric_has_a_signal",
    ),
    "a signal that is not shown": (
        "dashboards/group.py",
        'signal="assignment_epoch"',
        'signal="group_epoch"',
        "test_signal_is_shown_or_alerts",
    ),
    "a page of the documentation that is stale": (
        "docs/metrics.md",
        "# Metrics",
        "# Figures",
        "stale; run `python -m dashboards.pages`",
    ),
    "figures that are not those that were measured": (
        "docs/performance.md",
        "| goal | limit |",
        "| goal | bound |",
        "performance.md stale; run `python -m bench.pages`",
    ),
    "an option that the reference does not have": (
        "conf/reference.yaml",
        "offsets_topic:",
        "topic_of_offsets:",
        "streaming.config.reference",
    ),
}

# What is broken at once, and whose commands report it: each is reported beside the others, and a copy is checked in a
# few seconds, not for nothing.
TOGETHER: Final[dict[str, tuple[str, ...]]] = {
    "dashboards.build dashboards.pages bench.pages streaming.config.reference": tuple(
        what for what in BREAKS if what.startswith(("a board", "rules", "a page", "figures", "an option"))
    ),
    "pytest": tuple(
        what for what in BREAKS if what.startswith(("an alert without a test", "an alert that", "a metric", "a signal"))
    ),
    "dashboards.build": tuple(what for what in BREAKS if "runbook" in what),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The checkout, without what set-up makes; what was compiled goes with it, and is not compiled again."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("integration"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def checks() -> list[list[str]]:
    """Words of each command of the recipe of `check`, without those of the tools."""
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\ncheck: ")[2].partition("\n\n")[0]
    commands = [line.strip().removeprefix("@$(BIN)/") for line in recipe.splitlines()[1:]]
    return [shlex.split(command) for command in commands if not command.startswith(TOOLS)]


def failures(directory: Path, of: str = "") -> Iterator[str]:
    """What each command says that fails there, one after the other; only those of some modules, if they are named."""
    for words in checks():
        assert "python" == words[0], words
        if of and not {*of.split()} & {*words}:
            continue
        done = subprocess.run(  # noqa: S603 - the recipe's own words
            [sys.executable, *words[1:]],
            cwd=directory,
            env={**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            yield done.stdout + done.stderr


def test_a_sound_checkout_passes(copy: Path) -> None:
    """Nothing is said of what is committed, by those that no other test runs on it."""
    modules = {words[words.index("-m") + 1] for words in checks()}

    assert ELSEWHERE < modules
    assert [] == list(failures(copy, " ".join(modules - ELSEWHERE)))


@pytest.mark.parametrize(("said_by", "breaks"), TOGETHER.items(), ids=map(", ".join, TOGETHER.values()))
def test_what_is_half_done_does_not_pass(said_by: str, breaks: tuple[str, ...], copy: Path) -> None:
    """The check fails, and says of each break what it is about."""
    for what in breaks:
        name, found, instead, _ = BREAKS[what]
        file = copy / name
        if found is None:
            file.unlink()
        else:
            text = file.read_text("utf-8")
            assert found in text
            file.write_text(text.replace(found, instead, 1), "utf-8")

    reported = "".join(failures(copy, said_by))
    assert [] == [what for what in breaks if BREAKS[what][3] not in reported]


def test_every_break_is_made() -> None:
    """No row of the table is left out."""
    assert sorted(BREAKS) == sorted(what for breaks in TOGETHER.values() for what in breaks)
