"""The runbook as a board: so that it is where the other boards are, and a link to it needs no address of ours."""

import re
from pathlib import Path
from typing import Final

from dashboards import alerts
from dashboards.alert import SEVERITIES, Alert
from dashboards.board import Board, Row
from dashboards.panels import RUNBOOK_BOARD, text_panel
from dashboards.signals import SIGNALS

FILE: Final = Path(__file__).parent / "runbook.md"

_READINESS: Final = frozenset({"ready", "ready_throughout"})


def sections(text: str) -> dict[str, str]:
    """Heading → what stands under it, of the headings of the second level."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {heading.strip(): body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def asked_of_groups(alert: Alert) -> list[str]:
    """Signals of an alert without those that say whether the monitor is ready, unless it is about nothing else."""
    names = list(dict.fromkeys(alert.signals))
    return [name for name in names if name not in _READINESS] or names


def board() -> Board:
    """A text panel for each alert: severity, signals with their meaning, and its section of the runbook.

    Raises:
        KeyError: an alert has no heading in the runbook.
    """
    written = sections(FILE.read_text(encoding="utf-8"))
    rows = [
        Row(
            name.replace("_", " ").capitalize(),
            [text_panel(alert.name, _text(alert, written[alert.name]), span=12, height=12) for alert in group],
        )
        for name, group in alerts.GROUPS.items()
    ]
    return Board(
        uid=RUNBOOK_BOARD,
        title="Kafka groups: Runbook",
        description="What each alert means, where to look first, and what helps.",
        rows=rows,
        queries=False,
    )


def _text(alert: Alert, section: str) -> str:
    head = f"*{alert.severity}*: {SEVERITIES[alert.severity]}. Fires after {alert.wait.duration}."
    explained = "\n".join(f"- `{name}`: {SIGNALS[name].meaning}" for name in asked_of_groups(alert))
    # The section names its signals; here they are explained instead.
    _, _, rest = section.partition("\n\n")
    return f"{head}\n\n{rest}\n\n**Signals.**\n\n{explained}"
