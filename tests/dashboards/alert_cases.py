"""The tests of alerts as promtool reads them: a file an alert, in it cases that fire and cases that stay quiet."""

from pathlib import Path
from typing import Any, Final

import yaml

TESTS: Final = Path(__file__).parent / "alerts"


def file_of(name: str) -> Path:
    return TESTS / f"{name}.test.yaml"


def cases(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load(file_of(name).read_text("utf-8"))["tests"]
    return loaded


def fires(case: dict[str, Any]) -> bool:
    return any(check["exp_alerts"] for check in case["alert_rule_test"])


def minutes(check: dict[str, Any]) -> int:
    return int(check["eval_time"].removesuffix("m"))
