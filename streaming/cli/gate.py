"""`gate`: may it be rolled now, by the judgement of a running monitor."""

from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from streaming.cli import common
from streaming.cli.groups import CaFile, Url
from streaming.errors import CannotTellError, CheckFailed
from streaming.http_client import DEFAULT_URL, MonitorClient


class Gate(StrEnum):
    """What is about to be rolled: consumers to the new protocol, or brokers to an older release."""

    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"


EXIT_STATUSES: Final = {"open": 0, "closed": CheckFailed.exit_status, "cannot_tell": CannotTellError.exit_status}
"""Verdict → exit status."""


def gate(
    gate: Annotated[Gate, typer.Argument(metavar="upgrade|downgrade", help="Roll consumers up, or brokers down.")],
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="G", help="Judge this group only; may be repeated.")
    ] = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: common.Json = False,
) -> None:
    """Tell whether consumers (upgrade) or brokers (downgrade) may be rolled now, with every reason."""
    told = MonitorClient(url, ca_file).gate(gate.value, group or ())
    if json:
        common.print_json(told)
    else:
        common.print_line(_text(told))
    raise typer.Exit(EXIT_STATUSES.get(told["verdict"], CannotTellError.exit_status))


def _text(told: dict[str, Any]) -> str:
    verdict = f"{told['gate']}: {told['verdict'].replace('_', ' ')}"
    if not told["reasons"]:
        return verdict
    rows = [[reason["effect"], reason["group"], reason["code"], reason["text"]] for reason in told["reasons"]]
    return f"{verdict}\n\n{common.table(['EFFECT', 'GROUP', 'REASON', 'MEANING'], rows)}"
