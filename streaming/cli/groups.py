"""`groups`: what groups a running monitor sees."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from coordinator_model.kinds.words import counted
from streaming.base.doubt import said, unread_of
from streaming.base.errors import CannotTellError, MonitorError
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.render import output, plain

Url = Annotated[
    str,
    typer.Option(
        "--url",
        metavar="U",
        envvar="GROUP_MONITOR_URL",
        help="Address of the monitor. Credentials: GROUP_MONITOR_TOKEN, or GROUP_MONITOR_USERNAME and …_PASSWORD.",
    ),
]
CaFile = Annotated[Path | None, typer.Option("--ca-file", metavar="FILE", help="PEM file with certificates to trust.")]


COMPLETION_SECONDS: Final = 1.0
"""Who presses the tab key waits for it."""


def complete_group(incomplete: str) -> list[str]:
    """Names of groups of the monitor that GROUP_MONITOR_URL names, for shells; none where it does not answer."""
    try:
        client = MonitorClient(os.environ.get("GROUP_MONITOR_URL") or DEFAULT_URL, timeout_seconds=COMPLETION_SECONDS)
        names = [str(group["group"]) for group in client.groups()]
    except MonitorError:
        return []
    return sorted(name for name in names if name.startswith(incomplete) and name.isprintable())


def _asked(option: str, metavar: str, text: str) -> Any:  # noqa: ANN401 - as typer.Option
    return typer.Option(f"--{option}", metavar=metavar, help=f"Only groups {text}; a name or a pattern.")


def groups(  # noqa: PLR0913 - options of a command
    topic: Annotated[str | None, _asked("topic", "T", "that have to do with this topic")] = None,
    owner: Annotated[str | None, _asked("owner", "O", "of this owner in the monitor's configuration")] = None,
    client_id: Annotated[str | None, _asked("client-id", "C", "with a member of this client id")] = None,
    host: Annotated[str | None, _asked("host", "H", "with a member on this host")] = None,
    instance_id: Annotated[str | None, _asked("instance-id", "I", "with a static member of this id")] = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: output.Json = False,
) -> None:
    """List the groups a running monitor sees, one line each; on a terminal, what needs a look first.

    Exit 3 where the monitor has not caught up or does not read a part of the log, and where it is not known of some
    groups whether they read the topic.
    """
    client = MonitorClient(url, ca_file)
    asked = {"topic": topic, "owner": owner, "client_id": client_id, "host": host, "instance_id": instance_id}
    answer = client.found(**asked)
    found = sorted(answer["groups"], key=lambda group: str(group["group"]))
    doubt, unread = answer.get("doubt"), unread_of(answer)
    left_out, untold = answer.get("left_out", 0), answer.get("cannot_tell", 0)
    if json:
        facts = {"left_out": left_out, "cannot_tell": untold, "doubt": doubt, "unread": unread}
        output.print_json({"groups": found, **facts})
    elif sys.stdout.isatty() and (found or doubt):
        _show(found, doubt, unread)
    elif found:
        output.print_line(plain.groups_table(found))
    elif doubt is None and not unread:
        by = [f"--{name.replace('_', '-')} {value!r}" for name, value in asked.items() if value]
        output.note(f"no groups with {' '.join(by)}" if by else "no groups")
    if left_out and not json:
        output.note(f"left out by the monitor's configuration: {counted(left_out, 'group')}")
    if untold:
        raise CannotTellError(
            f"--topic: found {counted(untold, 'group')} more that may read it, as not all of their topics are known, "
            "accepted: none such"
        )
    refuse_doubt("groups", doubt, unread)


def refuse_doubt(command: str, doubt: Mapping[str, Any] | None, unread: Sequence[Mapping[str, Any]] = ()) -> None:
    """Raise CannotTellError where what a monitor shows may not be so, or not be all (`base.doubt`)."""
    why = "; ".join(map(said, unread)) if doubt is None else said(doubt)
    if why:
        raise CannotTellError(f"{command}: found a monitor that cannot tell ({why}), accepted: one that can")


def _show(found: list[dict[str, Any]], doubt: Mapping[str, Any] | None, unread: Sequence[Mapping[str, Any]]) -> None:
    from rich.console import Console  # imported late: only a terminal needs it

    from streaming.cli.render import rich_view

    console = Console()
    console.print(rich_view.believed(lambda: rich_view.groups_picture(found, console.width), doubt))
    if doubt is None:
        console.print(rich_view.summary_line(found, unread))
