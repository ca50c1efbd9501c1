"""What a monitor must not say of a group that may be in a partition that it does not read."""

import json
from collections.abc import Iterator
from typing import Any, Final, Protocol
from urllib.parse import quote

GATES: Final = ("upgrade", "downgrade")
OPEN: Final = "open"
UNKNOWN: Final = "unknown"


class Asked(Protocol):
    """A monitor that answers."""

    def get(self, path: str) -> tuple[int, str]:
        """Status and body."""


def too_good(monitor: Asked, group: str) -> list[str]:
    """Answers of a monitor that say more of a group than can be known: *open*, *ready*, *level*.

    Raises:
        OSError: no answer.
    """
    return [*_of_gates(monitor, group), *_of_plan(monitor, group), *_of_group(monitor, group)]


def _of_gates(monitor: Asked, group: str) -> Iterator[str]:
    for gate in GATES:
        status, body = monitor.get(f"/api/v1/gate/{gate}?group={quote(group)}")
        if status == 200 and json.loads(body)["verdict"] == OPEN:
            yield f"the {gate} gate is open for {group}"


def _of_plan(monitor: Asked, group: str) -> Iterator[str]:
    status, body = monitor.get(f"/api/v1/plan?group={quote(group)}")
    if status != 200:
        return
    for row in json.loads(body)["groups"]:
        if row["group"] == group and row["readiness"] in ("ready", "care", "done"):
            yield f"{group} is {row['readiness']} by the plan"


def _of_group(monitor: Asked, group: str) -> Iterator[str]:
    status, body = monitor.get(f"/api/v1/groups/{quote(group)}")
    if status == 404:
        yield f"there is no {group}"
    elif status == 200:
        answer: dict[str, Any] = json.loads(body)
        if not answer.get("doubt"):
            lag = [of["lag"] for of in answer["offsets"]]
            yield f"{group} is {answer['state']} with lag {lag}, without doubt"
