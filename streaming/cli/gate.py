"""`gate`: may it be rolled now, by the judgement of a running monitor."""

from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from coordinator_model import broker_releases
from streaming.cli import common
from streaming.cli.groups import CaFile, Url, complete_group
from streaming.errors import CannotTellError, CheckFailed, UsageError
from streaming.http_client import DEFAULT_URL, MonitorClient


class Gate(StrEnum):
    """What is about to be rolled: consumers to the new protocol, or brokers to an older release."""

    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"


EXIT_STATUSES: Final = {"open": 0, "closed": CheckFailed.exit_status, "cannot_tell": CannotTellError.exit_status}
"""Verdict → exit status."""

_FACTS: Final = {
    "groups": "groups",
    "leftover_records": "records left over from downgrades, by type",
    "unknown_records": "unknown records read, by type",
    "offset_versions": "committed offsets by value version",
}
"""What an answer counts → its heading."""

_MEMBERS: Final = 5


def gate(  # noqa: PLR0913 - a command's options are its arguments
    gate: Annotated[Gate, typer.Argument(metavar="upgrade|downgrade", help="Roll consumers up, or brokers down.")],
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="G",
            help="Judge this group only; may be repeated.",
            autocompletion=complete_group,
        ),
    ] = None,
    target_version: Annotated[
        str | None,
        typer.Option("--target-version", metavar="RELEASE", help="Of a downgrade: the release of the brokers to be."),
    ] = None,
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size", min=1, metavar="N", help="Of an upgrade: members a group may have, if not as brokers say."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: common.Json = False,
) -> None:
    """Tell whether consumers (upgrade) or brokers (downgrade) may be rolled now, with every reason."""
    if target_version is not None and gate is not Gate.DOWNGRADE:
        raise UsageError("--target-version: found with gate upgrade, accepted: with gate downgrade")
    if max_size is not None and gate is not Gate.UPGRADE:
        raise UsageError("--max-size: found with gate downgrade, accepted: with gate upgrade")
    if target_version is not None and broker_releases.release(target_version) is None:
        raise UsageError(f"--target-version: found {target_version!r}, accepted: {broker_releases.ACCEPTED}")
    size = None if max_size is None else str(max_size)
    told = MonitorClient(url, ca_file).gate(gate.value, group or (), target_version=target_version, max_size=size)
    if json:
        common.print_json(told)
    else:
        common.print_line(_text(told))
    raise typer.Exit(EXIT_STATUSES.get(told["verdict"], CannotTellError.exit_status))


def _text(told: dict[str, Any]) -> str:
    """The verdict, what there is by type, and a table of reasons."""
    verdict = f"{told['gate']}: {told['verdict'].replace('_', ' ')}"
    facts = [line for line in (_fact(told, name, what) for name, what in _FACTS.items()) if line]
    head = "\n".join([verdict, *facts])
    if not told["reasons"]:
        return head
    rows = [[reason["effect"], reason["group"], reason["code"], _meaning(reason)] for reason in told["reasons"]]
    return f"{head}\n\n{common.table(['EFFECT', 'GROUP', 'REASON', 'MEANING'], rows)}"


def _fact(told: dict[str, Any], name: str, what: str) -> str:
    counts = ", ".join(f"{count} {key}" for key, count in told.get(name, {}).items())
    return counts and f"{what}: {counts}"


def _meaning(reason: dict[str, Any]) -> str:
    """The text, and the first few of the members it is about."""
    members = reason.get("members", ())
    if not members:
        return str(reason["text"])
    named = [_member(member) for member in members[:_MEMBERS]]
    more = len(members) - len(named)
    return f"{reason['text']}: {', '.join(named)}" + (f" and {more} more" if more else "")


def _member(member: dict[str, Any]) -> str:
    version = f" version {member['embedded_version']}" if "embedded_version" in member else ""
    return f"{member['member_id']} ({member['client_id']} {member['client_host']}){version}"
