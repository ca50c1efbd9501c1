"""Writes the boards and the rules: `python -m dashboards.build`, or with `--check` compares what is written.

What is written is committed, so that Prometheus and Grafana can be pointed at the files and a change of a rule is read
as a change of a rule. The same sources give the same bytes.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from dashboards import alerts, runbook
from dashboards.group import GROUP
from dashboards.monitor_health import MONITOR_HEALTH
from dashboards.overview import OVERVIEW
from dashboards.rolling_upgrade import ROLLING_UPGRADE
from dashboards.settings import DEFAULTS, Settings

GENERATED: Final = Path(__file__).parent / "generated"
RULES: Final = "rules.yaml"
KUSTOMIZATION: Final = "Kustomization"
COMMAND: Final = "python -m dashboards.build"

_HEADER: Final = f"# Made by `{COMMAND}`; change dashboards/alerts.py and dashboards/thresholds.py instead.\n"


def boards(settings: Settings = DEFAULTS) -> dict[str, dict[str, Any]]:
    """File name → dashboard, in the schema that Grafana 10 and later load.

    Args:
        settings: limits that panels colour by, matchers, and the data source that is shown first.
    """
    made = {
        "overview": OVERVIEW,
        "group": GROUP,
        "rolling_upgrade": ROLLING_UPGRADE,
        "monitor_health": MONITOR_HEALTH,
        "runbook": runbook.board(),
    }
    return {f"{name}.json": settings.board(board.to_json()) for name, board in made.items()}


def files(settings: Settings = DEFAULTS) -> dict[str, str]:
    """File name → text of all that is made.

    Args:
        settings: what may differ from what is committed.
    """
    made = {
        name: json.dumps(board, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for name, board in boards(settings).items()
    }
    made[RULES] = _HEADER + yaml.safe_dump(alerts.rules(settings), sort_keys=False, allow_unicode=True, width=120)
    made[KUSTOMIZATION] = f"# Made by `{COMMAND}`.\n" + yaml.safe_dump(_kustomization(made), sort_keys=False)
    return made


def _kustomization(made: Mapping[str, str]) -> dict[str, Any]:
    """A ConfigMap for each board, as Grafana's sidecar reads them."""
    boards_there = sorted(name for name in made if name.endswith(".json"))
    maps = [
        {"name": "group-monitor-" + name.removesuffix(".json").replace("_", "-"), "files": [name]}
        for name in boards_there
    ]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "generatorOptions": {
            "disableNameSuffixHash": True,
            "labels": {"app.kubernetes.io/name": "group-monitor", "grafana_dashboard": "1"},
        },
        "configMapGenerator": maps,
    }


def write(made: Mapping[str, str], directory: Path) -> list[str]:
    """Write what differs from what is there; returns the names of the files written."""
    directory.mkdir(parents=True, exist_ok=True)
    stale = differing(made, directory)
    for name in stale:
        (directory / name).write_text(made[name], encoding="utf-8")
    return stale


def differing(made: Mapping[str, str], directory: Path) -> list[str]:
    """Names of the files that are not, or not so, in a directory."""
    return [name for name, text in made.items() if _read(directory / name) != text]


def unknown(made: Mapping[str, str], directory: Path) -> list[str]:
    """Names of files in a directory that nothing here makes: what a renamed board leaves behind."""
    return sorted(path.name for path in directory.glob("*") if path.name not in made)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with `--check` compare; the exit status is 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write dashboards and alert rules.")
    parser.add_argument("--check", action="store_true", help="compare with what is written, and write nothing")
    parser.add_argument("--out", type=Path, default=GENERATED, metavar="DIR", help="where the files are")
    options = parser.parse_args(arguments)
    made = files()
    if not options.check:
        for name in write(made, options.out):
            sys.stdout.write(f"{options.out / name}\n")
        return 0
    problems = [f"{name} is stale" for name in differing(made, options.out)]
    problems += [f"{name} is made by nothing: remove it" for name in unknown(made, options.out)]
    if problems:
        sys.stderr.write(f"error: {options.out}: {', '.join(problems)}; run `{COMMAND}` and commit the result\n")
    return 1 if problems else 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
