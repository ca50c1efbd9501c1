"""`rehearse`: a group's shape, rolled on an embedded broker before anybody rolls the group."""

import os
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from streaming.base.errors import CheckFailed, UsageError
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.demo import provide_jars
from streaming.cli.groups import CaFile, Url, complete_group
from streaming.cli.render import output

Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file.")]

_MOVING = "the group was being rolled, or rebalanced: members that were away are missing; ask again when it is at rest"


class Direction(StrEnum):
    """Which way the members are rolled."""

    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"


class _Order(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"


class _Ending(StrEnum):
    GRACEFUL = "graceful"
    KILLED = "killed"


def rehearse(  # noqa: PLR0913 - a command's options are its arguments
    context: typer.Context,
    direction: Annotated[
        Direction, typer.Argument(metavar="upgrade|downgrade", help="To the consumer protocol, or back.")
    ],
    group: Annotated[str, typer.Option("--group", metavar="G", help="The group.", autocompletion=complete_group)],
    recording: Annotated[
        Path | None, typer.Option("--from", metavar="RECORDING", help="Take the shape from a recording.")
    ] = None,
    order: Annotated[_Order, typer.Option(help="Which member goes first.")] = _Order.FORWARD,
    ending: Annotated[_Ending, typer.Option(help="How members go.")] = _Ending.GRACEFUL,
    pace: Annotated[
        float,
        typer.Option(
            "--pace", metavar="SECONDS", min=0, help="Pause once the group has settled, up to a second longer."
        ),
    ] = 2.0,
    restart: Annotated[
        float, typer.Option("--restart", metavar="SECONDS", min=0, help="How long a member is away.")
    ] = 0.0,
    max_unavailable: Annotated[
        int, typer.Option("--max-unavailable", metavar="N", min=1, help="Members rolled at a time.")
    ] = 1,
    surge: Annotated[bool, typer.Option("--surge", help="Start the new member before the old one stops.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Restart it as eager, cooperative and consumer members as well.")
    ] = False,
    patience: Annotated[
        float, typer.Option("--patience", metavar="SECONDS", min=1, help="How long the group may take to settle.")
    ] = 120.0,
    broker_config: Annotated[
        list[str] | None,
        typer.Option("--broker-config", metavar="NAME=VALUE", help="A setting of your brokers; may be repeated."),
    ] = None,
    member_config: Annotated[
        list[str] | None,
        typer.Option(
            "--member-config",
            metavar="NAME=VALUE",
            help="A setting of your consumers, in librdkafka's name; may be repeated.",
        ),
    ] = None,
    keep_names: Annotated[
        bool, typer.Option("--keep-names", help="Show names of group, topics and members as they are.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="FILE", help="Keep the report, for `report --rehearsal`.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="OUT", help="Write the rehearsal's log as a recording.")
    ] = None,
    markdown: Markdown = False,
    html: Html = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: output.Json = False,
    yes: Annotated[bool, typer.Option("--yes", help="Fetch missing jars of Kafka without asking.")] = False,
) -> None:
    """Roll a copy of a group on an embedded real broker: what it costs, and what the coordinator refuses."""
    settings = settings_of("--broker-config", broker_config or [])
    member_settings = settings_of("--member-config", member_config or [])
    refuse_two_forms(json=json, markdown=markdown)
    if surge and restart:
        raise UsageError("--restart: found with --surge, accepted: without, as no member is away then")
    for option, file in (("--keep", keep), ("--record", record), ("--html", html)):
        refuse_unwritable(option, file)
    output.note(f"rehearsing the {direction.value} of {group}, on this machine alone")
    output.set_up_logging(context, clients_silent=True)
    from streaming.rehearsal import shape as shapes  # imported late: the line above is to come at once

    before = "classic" if direction is Direction.UPGRADE else "consumer"
    if recording is not None:
        shape = shapes.of_recording(recording, group, before)
    else:
        client = MonitorClient(url, ca_file)
        view = client.group(group)
        shape = shapes.of_view(view, before)
        if not _is_at_rest(client, group):
            shape = replace(shape, notes=(*shape.notes, _MOVING))
    provide_jars(yes=yes)
    shape = shapes.scaled(shape)
    shape = shapes.distinct(shape) if keep_names else shapes.renamed(shape)
    from streaming.rehearsal.roll import Order, RollEnding, RollOptions  # imported late, as above
    from streaming.rehearsal.run import rehearse as run_rehearsal
    from streaming.reports import forms  # as above

    options = RollOptions(
        order=Order(order.value),
        ending=RollEnding(ending.value),
        pace_seconds=pace,
        restart_seconds=restart,
        max_unavailable=max_unavailable,
        surge=surge,
        patience_seconds=patience,
    )
    with output.progress("rehearsing") as advance:
        report = run_rehearsal(
            shape,
            direction.value,
            options,
            broker_settings=settings,
            member_settings=member_settings,
            compare=compare,
            record=record,
            say=say,
            advance=advance,
        )
    show(report, forms, json=json, markdown=markdown, html=html)
    if keep is not None:
        write("--keep", keep, output.json_text(report, indent=1) + "\n")
    if report["refused"] or report["verdicts"]:
        raise typer.Exit(CheckFailed.exit_status)


def refuse_two_forms(*, json: bool, markdown: bool) -> None:
    """Raise `UsageError` where a report is asked for in two forms."""
    if json and markdown:
        raise UsageError("--markdown: found with --json, accepted: one of them")


def refuse_unwritable(option: str, file: Path | None) -> None:
    """A rehearsal takes minutes; what it finds must not be lost in the end."""
    if file is not None and (file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)):
        raise UsageError(f"{option}: found {str(file)!r}, accepted: a file that can be written")


class Forms(Protocol):
    """The module that makes a report's forms."""

    def text(self, report: dict[str, Any], /) -> str:
        """For a terminal."""

    def markdown(self, report: dict[str, Any], /) -> str:
        """For a ticket."""

    def html_page(self, report: dict[str, Any], /) -> str:
        """For a browser."""


def show(report: dict[str, Any], forms: Forms, *, json: bool, markdown: bool, html: Path | None) -> None:
    """Print a report in the form that was asked for, and write the HTML file if one was."""
    if html is not None:
        write("--html", html, forms.html_page(report))
    if json:
        output.print_json(report)
    else:
        output.print_line(forms.markdown(report) if markdown else forms.text(report))


def write(option: str, file: Path, text: str) -> None:
    """Write a file that an option names.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(
            f"{option}: found {str(file)!r} ({error.strerror}), accepted: a file that can be written"
        ) from None


def _is_at_rest(client: MonitorClient, group: str) -> bool:
    planned = client.plan([group])["groups"]
    return not any(reason["code"] == "rebalancing" for each in planned for reason in each["reasons"])


def settings_of(option: str, given: list[str]) -> dict[str, str]:
    """NAME=VALUE, given again and again, as a mapping. Raises UsageError."""
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option}: found {each!r}, accepted: NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def say(text: str) -> None:
    """Name a step, to who waits for it."""
    if sys.stderr.isatty():
        output.note(text)
