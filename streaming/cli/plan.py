"""`plan`: which groups can move to the consumer protocol, in what order, and what to do before."""

import csv as csv_format
import io
import shlex
import sys
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from coordinator_model.gates.broker_abilities import recorded
from coordinator_model.gates.plan import READINESS, plan_view, planned, remedies
from coordinator_model.gates.verdict import BrokerSettings
from coordinator_model.kinds.words import counted
from coordinator_model.log_replica import LogReplica
from coordinator_model.state.findings import Position
from streaming.base.doubt import unread_of
from streaming.base.errors import CheckFailed, NoSuchGroupError, UsageError
from streaming.base.expectations import Expectations
from streaming.base.name_filter import is_pattern, one_of
from streaming.base.text import printable
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.groups import CaFile, Url, complete_group, refuse_doubt
from streaming.cli.render import output
from streaming.cli.replay import looks_at
from streaming.recording.file_format import open_recording

if TYPE_CHECKING:
    from rich.console import RenderableType

COLUMNS: Final = (
    "wave", "group", "readiness", "reasons", "remedies", "members", "static_ids", "partitions", "protocol", "assignor",
    "assignor_after", "rebalances_a_day", "lag", "owner", "note", "kind",
)  # fmt: skip
"""Of a table for other programs, in this order."""

_BLOCKED: Final = "blocked"
_STYLES: Final = {
    "ready": "green", "care": "yellow", "blocked": "bold red", "unknown": "yellow", "done": "dim",
    "out_of_scope": "dim",
}  # fmt: skip
_WIDE: Final = 100
"""Where a terminal is narrower, assignors stand below the group's name."""

_ALSO: Final = "--csv and --json also have static ids, partitions, rebalances a day, lag, owner and note"

_PROGRESS_EVERY: Final = 2_000


class _Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def plan(  # noqa: PLR0913 - a command's options are its arguments
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group", metavar="NAME", help="Plan this group only; may be repeated.", autocompletion=complete_group
        ),
    ] = None,
    match: Annotated[
        str | None, typer.Option("--match", metavar="PATTERN", help="Groups whose names match, e.g. 'orders-*'.")
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option("--from", metavar="RECORDING", help="Plan from a recording instead of a running monitor."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Owners and notes (alarms.expectations), with --from."),
    ] = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: output.Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print a table for spreadsheets.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a table for a ticket.")] = False,
) -> None:
    """Say which groups can move to the consumer protocol, in waves, with reasons and remedies."""
    forms = [form for form, asked in ((_Form.JSON, json), (_Form.CSV, csv), (_Form.MARKDOWN, markdown)) if asked]
    if len(forms) > 1:
        raise UsageError(f"--{forms[1]}: found with --{forms[0]}, accepted: one of --json, --csv, --markdown")
    if config is not None and recording is None:
        raise UsageError("--config: found without --from, accepted: with it; a running monitor has its own")
    expected = Expectations() if config is None else _expected(config)
    named = group or ()
    if recording is None:
        found = _of_monitor(MonitorClient(url, ca_file), named, match)
    else:
        found = of_recording(recording, named, match, expected)
    doubt, unread = found.get("doubt"), unread_of(found)
    if not found["groups"] and match is not None and doubt is None and not unread:
        output.note(f"--match: found no group whose name matches {match!r}")
    _print(found, forms[0] if forms else _Form.TABLE, doubted=doubt is not None)
    refuse_doubt("plan", doubt, unread)
    if any(each["readiness"] == _BLOCKED for each in found["groups"]):
        raise typer.Exit(CheckFailed.exit_status)


def _print(found: dict[str, Any], form: _Form, *, doubted: bool) -> None:
    match form:
        case _Form.JSON:
            output.print_json(found)
        case _Form.CSV:
            output.print_line(_csv(found["groups"]).rstrip("\n"))
        case _Form.MARKDOWN:
            output.print_line(_markdown(found))
        case _ if sys.stdout.isatty() and found["groups"] and not doubted:
            _show(found)
        case _ if not doubted or not sys.stdout.isatty():
            output.print_line(_text(found))


def _expected(config: Path) -> Expectations:
    from streaming.config.loading import load  # imported late, with all that a configuration needs

    return load(config).alarms.expected


def _of_monitor(client: MonitorClient, named: Collection[str], match: str | None) -> dict[str, Any]:
    try:
        return client.plan(named, match)
    except NoSuchGroupError as error:
        patterns = [name for name in named if is_pattern(name) and repr(name) in str(error)]
        raise (no_such_group(patterns[0], "a group of this cluster") if patterns else error) from None


def no_such_group(name: str, accepted: str) -> NoSuchGroupError:
    """What a name that no group has ends with; where a pattern may be meant, it is said how to give one."""
    hint = f"; for a pattern, --match {shlex.quote(name)}" if is_pattern(name) else ""
    return NoSuchGroupError(f"--group: found {name!r}, accepted: {accepted}{hint}")


def of_recording(file: Path, named: Collection[str], match: str | None, expected: Expectations) -> dict[str, Any]:
    """The plan of a recording's groups as they are at its end: without lag; of brokers, what their release can.

    Args:
        file: the recording.
        named: names of the groups to plan; none for all.
        match: shell pattern of their names, None for any.
        expected: what is known of groups beside the log.

    Raises:
        NoSuchGroupError: one of those named is not in it.
    """
    span: dict[int, tuple[int, int]] = {}
    with open_recording(file, "--from") as reader, output.progress(f"reading {file.name}") as advance:
        header = reader.header
        replica = LogReplica(header.offsets_topic_partitions, live_from=header.live_from, topic_ids=header.topic_ids)
        looks = looks_at(file, header, replica, header.live_from)
        for count, record in enumerate(reader):
            if count % _PROGRESS_EVERY == 0:
                advance(reader.fraction_read)
            first, _ = span.get(record.partition, (record.timestamp_ms, 0))
            span[record.partition] = first, record.timestamp_ms
            position = Position(record.partition, record.offset, record.timestamp_ms)
            looks.before(position)
            replica.replay(position, record.key, record.value)
        replica.settle()
        looks.at_end()
    settings = BrokerSettings(brokers=recorded(header.kafka_version))
    chosen = one_of(named, match)
    living = {name: state for name, state in sorted(replica.living().items()) if state.exists}
    for name in named:
        if name not in living:
            raise no_such_group(name, f"a group of {file.name}")
    groups = (
        planned(
            state,
            settings,
            observed_ms=span[state.partition][1] - span[state.partition][0],
            owner=expected.owner(name),
            note=expected.note(name),
            alarms=looks.open_alarms(state) - expected.kinds(name).keys(),
        )
        for name, state in living.items()
    )
    return plan_view(groups, chosen)


def _row(each: dict[str, Any]) -> dict[str, Any]:
    return {
        **each,
        "reasons": " ".join(reason["code"] for reason in each["reasons"]),
        "remedies": "; ".join(reason["remedy"] for reason in each["reasons"]),
    }


def _csv(groups: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv_format.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for each in groups:
        writer.writerow({name: _csv_cell(value) for name, value in _row(each).items()})
    return text.getvalue()


def _csv_cell(value: object) -> object:
    """Names of groups are anybody's: a spreadsheet runs text that begins like a formula, and each row has one line."""
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else printable(value)


def _markdown(found: dict[str, Any]) -> str:
    names = (
        "wave", "group", "readiness", "reasons", "members", "assignor", "assignor_after", "rebalances_a_day", "lag",
        "owner", "note",
    )  # fmt: skip
    lines = [_counts(found), "", "| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for each in found["groups"]:
        row = _row(each)
        lines.append("| " + " | ".join(_cell(row[name]) for name in names) + " |")
    lines += ["", *(f"- `{code}`: {remedy}" for code, remedy in remedies(found))]
    kinds = [f"| {_cell(of['kind'])} | {of['groups']} | {_cell(of['rehearse'])} |" for of in found["kinds"]]
    return "\n".join([*lines, *(("", "| kind | groups | rehearse |", "|---|---|---|", *kinds) if kinds else ())])


def _cell(value: object) -> str:
    text = "-" if value is None else printable(str(value))
    return "".join(f"\\{each}" if each in "|\\`*_<>[]" else each for each in text)


def _text(found: dict[str, Any]) -> str:
    if not found["groups"]:
        return _counts(found)
    rows = [
        [
            each["wave"], each["group"], each["readiness"], each["members"], each["assignor"], each["assignor_after"],
            " ".join(reason["code"] for reason in each["reasons"]),
        ]
        for each in found["groups"]
    ]  # fmt: skip
    table = output.table(["WAVE", "GROUP", "READINESS", "MEMBERS", "ASSIGNOR", "AFTER", "REASONS"], rows)
    to_do = output.table(["REASON", "WHAT TO DO"], [list(each) for each in remedies(found)])
    parts = [_counts(found), table, to_do]
    if found["kinds"]:
        parts.append(output.table(["KIND", "GROUPS", "REHEARSE"], [list(of.values()) for of in found["kinds"]]))
    return "\n\n".join(parts)


def _show(found: dict[str, Any]) -> None:
    from rich.console import Console  # imported late: only a terminal needs it

    console = Console(highlight=False)
    console.print(picture(found, console.width))


def picture(found: dict[str, Any], width: int) -> "RenderableType":
    """The same on a terminal of this width: long names and reasons take several lines, no line is wider."""
    from rich.console import Group as Stacked  # imported late, as above
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    wide = width >= _WIDE
    assignors = ("ASSIGNOR", "AFTER") if wide else ()
    group = "GROUP" if wide else "GROUP\nassignor → after"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for name in ("WAVE", group, "READINESS", "MEMBERS", *assignors, "REASONS"):
        gives_way = name in (group, "REASONS")
        table.add_column(name, no_wrap=not gives_way, overflow="fold", justify="right" if name == "MEMBERS" else "left")
    for each in found["groups"]:
        readiness = each["readiness"]
        now_and_after = [printable(each[name] or "-") for name in ("assignor", "assignor_after")]
        below = "" if wide or now_and_after == ["-", "-"] else f"\n{' → '.join(now_and_after)}"
        cells = (
            Text("-" if each["wave"] is None else str(each["wave"])),
            Text.assemble((printable(each["group"]), "bold"), (below, "dim")),
            Text(readiness.replace("_", " "), style=_STYLES[readiness]),
            Text(str(each["members"])),
            *(Text(assignor) for assignor in now_and_after if wide),
            Text("\n".join(reason["code"] for reason in each["reasons"])),
        )
        table.add_row(*cells)
    to_do = [
        part
        for code, remedy in remedies(found)
        for part in (Text(code, style="bold"), Padding(Text(remedy), (0, 0, 0, 2)))
    ]
    rehearse: list[RenderableType] = [Text("\nOne rehearsal for each kind", style="bold")] if found["kinds"] else []
    for of in found["kinds"]:
        text = f"{printable(of['kind'])} ({counted(of['groups'], 'group')}): {printable(of['rehearse'])}"
        rehearse.append(Padding(Text(text), (0, 0, 0, 2)))
    return Stacked(Text(_counts(found)), Text(), table, Text(), *to_do, *rehearse, Text(), Text(_ALSO, style="dim"))


def _counts(found: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name in READINESS if (count := found["counts"][name]))
    waves = len({each["wave"] for each in found["groups"]} - {None})
    count = f"{counted(len(found['groups']), 'group')}: {counts or 'none'}; {counted(waves, 'wave')}"
    if not found["groups"]:
        count = "no groups"
    return f"{count}, as far as is known" if found.get("doubt") or unread_of(found) else count
