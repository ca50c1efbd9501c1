"""Reports of rehearsals and rolls: text, Markdown, and one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from coordinator_model.kinds.table import sentence
from coordinator_model.state.membership import CONSUMER
from streaming.base.errors import UsageError
from streaming.base.text import printable
from streaming.base.times import time_text
from streaming.reports.measure import REHEARSAL_FORMAT
from streaming.reports.rolls import TURNED_ROUND

ReportJson = Mapping[str, Any]
Cells = tuple[str, ...]

UNKNOWN: Final = "not known"
STILL_HELD: Final = (
    "a static member that is killed keeps its instance id until its session is over (group.consumer.session.timeout.ms "
    "of the brokers, 45 s by default): start it again then, or let it close"
)
"""Said of a rehearsal in which one was refused."""
_WIDTH: Final = 80
_MOST_PARTITIONS: Final = 20
_NOTE: Final = "note: "
_BEFORE_LAST: Final = re.compile(r".*\S {2,}(?=\S)")
"""What is before the last column of an aligned line."""
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b1b1b}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem}td,th{padding:.2rem .8rem .2rem 0;text-align:left;"
    "border-bottom:1px solid #ddd;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "td{overflow-wrap:anywhere}td:first-child{min-width:6em}.bar{background:#c4572b;height:.7rem;display:inline-block;"
    "width:calc(min(20rem,30vw)*var(--part))}.warning,.critical{color:#a3260b}"
    "@media(prefers-color-scheme:dark){body{background:#161616;color:#e8e8e8}td,th{border-color:#444}"
    ".warning,.critical{color:#ff9d7d}}"
)


def read_rehearsal(file: Path, format_: str, accepted: str) -> dict[str, Any]:
    """A report of this format, as a rehearsal left it in a file.

    Raises:
        UsageError: it is none; `accepted` says which it is to be.
    """
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or found.get("format") != format_:
        raise UsageError(f"--rehearsal: found {str(file)!r}, accepted: {accepted}")
    return found


def text(report: ReportJson) -> str:
    """For a terminal of eighty columns."""
    parts = [printable(_title(report)), aligned(_figures(report))]
    for title, rows in _sections(report):
        parts.append(title + "\n" + aligned(rows, indent="  "))
    parts += [f"{_NOTE}{printable(note)}" for note in _notes(report)]
    return "\n\n".join("\n".join(wrapped(part)) for part in parts)


def markdown(report: ReportJson) -> str:
    """For a ticket."""
    lines = [f"# {escaped(_title(report))}", "", *_table(_figures(report))]
    for title, rows in _sections(report):
        lines += ["", f"## {title}", "", *_table(rows)]
    lines += ["", *(f"- {escaped(note)}" for note in _notes(report))]
    return "\n".join(lines)


def html_page(report: ReportJson) -> str:
    """One file without a link or script; a bar beside each partition shows how long it had no owner."""
    out = [
        html_head(_title(report)),
        _html_table(_figures(report)),
    ]
    longest = (report["ownerless_seconds"] or {}).get("max") or 1
    for title, rows in _sections(report, most=None):
        out.append(f"<h2>{as_html(title)}</h2>")
        if title != _OWNERLESS:
            out.append(_html_table(rows))
            continue
        bars = [f"<span class=bar style='--part:{float(row[1]) / longest:.3f}'></span>" for row in rows[1:]]
        out.append(_html_table(rows, ["", *bars]))
    out.append("<ul>" + "".join(f"<li>{as_html(note)}</li>" for note in _notes(report)) + "</ul></html>")
    return "\n".join(out) + "\n"


_OWNERLESS: Final = "Seconds without an owner"
_ROLL: Final = "The roll in this time"
_ROLLS: Final = "Rolls in this time (the figures are of all: ask for one by its since and until)"
_CAUSES: Final = "Causes (a rebalance may have several)"


def _title(report: ReportJson) -> str:
    if report["format"] == REHEARSAL_FORMAT:
        what = "upgrade" if report["to"] == "consumer" else "downgrade"
        return f"Rehearsal: {what} of {report['group']}"
    return f"Roll of {report['group']} since {time_text(report['since'])}"


def _figures(report: ReportJson) -> list[Cells]:
    """The figures; beside a rehearsal's, where there is one."""
    rehearsal = report.get("rehearsal")
    if report["format"] == REHEARSAL_FORMAT:
        head: list[Cells] = [
            ("outcome", "the coordinator refused it" if report["refused"] else "went through"),
            *(("reason", reason) for reason in report["reasons"]),
            ("broker", f"Kafka {report['broker']}, embedded"),
            ("members", f"{report['members']}, from {report['from']} to {report['to']}"),
            ("took", f"{report['took_seconds']:.1f} s"),
            *_killed(report),
        ]
        return [*head, *((name, _shown(value)) for name, value in _measured(report))]
    rows: list[Cells] = [("figure", "roll", "rehearsal")] if rehearsal else [("figure", "roll")]
    others = dict(_measured(rehearsal)) if rehearsal else {}
    for name, value in _measured(report):
        rows.append((name, _shown(value), _shown(others.get(name))) if rehearsal else (name, _shown(value)))
    return rows


def _killed(report: ReportJson) -> Iterator[Cells]:
    """What a static member met that was killed after the roll and started again."""
    killed = report.get("killed")
    if killed is None:
        return
    after = f"after {killed['seconds']:.1f} s"
    said = "" if killed["said"] is None else f": {killed['said']}"
    met = {True: f"let in {after}", False: f"refused{said}", None: f"no answer {after}{said}"}[killed["let_in"]]
    yield "killed, started again", f"{killed['member']} (static), {met}"


def _measured(report: ReportJson) -> Iterator[tuple[str, Any]]:
    ownerless = report["ownerless_seconds"] or {}
    yield "rebalances", report["rebalances"]
    yield "partitions moved", report["partitions_moved"]
    yield "longest without an owner (s)", _bound(ownerless, "max")
    yield "all without an owner (s)", _bound(ownerless, "total")
    yield "alarms", ", ".join(report["verdicts"]) or "none"
    if report.get("open_alarms"):
        yield "open at the end", ", ".join(report["open_alarms"])
    if report["format"] != REHEARSAL_FORMAT:
        lag = report["lag_added"] or {}
        yield "lag added (records)", lag.get("records")
        if lag:
            gone = lag["gone_after_seconds"]
            yield "lag gone after (s)", gone if gone is not None else "not yet" if lag["records"] else 0.0


def _bound(ownerless: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - a figure or its absence
    value = ownerless.get(name)
    return f"at least {_shown(value)}" if value is not None and ownerless.get("at_least") else value


def _shown(value: Any) -> str:  # noqa: ANN401 - a figure or its absence
    return UNKNOWN if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _sections(report: ReportJson, most: int | None = _MOST_PARTITIONS) -> Iterator[tuple[str, list[Cells]]]:
    if report.get("rolls"):
        rows: list[Cells] = [("roll", "since", "until")]
        rows += [
            (
                each["direction"] + (", turned round" if each["ended"] == TURNED_ROUND else ""),
                time_text(each["since"]),
                time_text(each["until"]) if each["ended"] else "not over",
            )
            for each in report["rolls"]
        ]
        yield _ROLL if len(rows) == 2 else _ROLLS, rows  # noqa: PLR2004 - a heading and one roll
    beside = (report.get("rehearsal") or {}).get("causes")
    causes = sorted({*report["causes"], *(beside or ())})
    if causes:
        head = ("cause", "rebalances") if beside is None else ("cause", "roll", "rehearsal")
        counted = (report["causes"],) if beside is None else (report["causes"], beside)
        yield _CAUSES, [head, *((cause, *(str(of.get(cause, 0)) for of in counted)) for cause in causes)]
    if report.get("beside"):
        rows = [("members", "rebalances", "moved", "longest (s)", "all (s)", "took (s)")]
        for each in report["beside"]:
            ownerless = each["ownerless_seconds"]
            figures = (each["rebalances"], each["partitions_moved"], ownerless["max"], ownerless["total"])
            rows.append((each["members"], *map(_shown, (*figures, each["took_seconds"]))))
        yield "The same restart without a change of protocol", rows
    steps = report.get("steps")
    if steps:
        rows = [("time", "members", "settled after (s)")]
        rows += [
            (
                _clock(step["time"]),
                ", ".join(step["members"]),
                _shown(step["settled_seconds"]) if step["settled_seconds"] is not None else "refused",
            )
            for step in steps
        ]
        yield "Members", rows
    partitions = (report["ownerless_seconds"] or {}).get("partitions", {})
    if partitions:
        worst = sorted(partitions.items(), key=lambda item: (-item[1], item[0]))
        shown = worst[:most]
        rows = [("partition", "seconds"), *((name, f"{value:.3f}") for name, value in shown)]
        yield _OWNERLESS, rows
    if report["events"]:
        rows = [("time", "event")]
        rows += [(_clock(event["time"]), sentence(event)) for event in report["events"]]
        yield "Timeline", rows


def _notes(report: ReportJson) -> Iterator[str]:
    yield from report.get("unknown", ())
    yield from report["notes"]
    if report.get("to") == CONSUMER and (report.get("killed") or {}).get("let_in") is False:
        yield STILL_HELD
    rehearsal = report.get("rehearsal")
    if rehearsal:
        end = "the coordinator refused it" if rehearsal["refused"] else "it went through"
        yield f"rehearsal: {rehearsal['members']} members on an embedded Kafka {rehearsal['broker']}; {end}"
        yield from (f"rehearsal: {name}: {met}" for name, met in _killed(rehearsal))
        yield from (f"rehearsal: {note}" for note in rehearsal["notes"] if note not in report["notes"])


def _clock(ms: int) -> str:
    return time_text(ms).partition("T")[2]


def aligned(shown: Sequence[Cells], indent: str = "") -> str:
    """Rows as columns of text."""
    # Names are clients' own: a line's end in one would begin a line here.
    rows = [tuple(map(printable, row)) for row in shown]
    columns = max(len(row) for row in rows)
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(columns)]
    return "\n".join(
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows
    )


def wrapped(part: str) -> Iterator[str]:
    """Lines of eighty columns; what goes on is indented under the line's last column."""
    for line in part.split("\n"):
        left = line
        column = _BEFORE_LAST.match(left)
        indent = " " * min(len(left) - len(left.lstrip()) + len(_NOTE) if column is None else column.end(), 40)
        while len(left) > _WIDTH:
            at = left.rfind(" ", len(indent) + 1, _WIDTH + 1)
            at = _WIDTH if at <= 0 else at
            yield left[:at].rstrip()
            left = indent + left[at:].strip()
        yield left


def _table(rows: Sequence[Cells]) -> Iterator[str]:
    head = rows[0] if rows and rows[0][0] in _HEADS else ("figure", "")
    body = rows[1:] if head is rows[0] else rows
    return markdown_table(head, body)


def markdown_table(head: Cells, body: Sequence[Cells]) -> Iterator[str]:
    """The lines of a table."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in body:
        yield "| " + " | ".join(map(escaped, row)) + " |"


_HEADS: Final = ("roll", "time", "figure", "partition", "cause", "members")


def html_head(title: str) -> str:
    """The first lines of a page, its title among them."""
    shown = as_html(title)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\n"
        f"<title>{shown}</title><style>{_STYLE}</style><h1>{shown}</h1>"
    )


def _html_table(rows: Sequence[Cells], more: Sequence[str] = ()) -> str:
    return html_table(rows, more, has_head=bool(rows) and rows[0][0] in _HEADS)


def html_table(rows: Sequence[Cells], more: Sequence[str] = (), *, has_head: bool) -> str:
    """A table, whose first row may be its head; `more` is markup behind each row."""
    out = ["<table>"]
    for number, row in enumerate(rows):
        tag = "th" if has_head and number == 0 else "td"
        cells = "".join(f"<{tag}>{as_html(cell)}</{tag}>" for cell in row)
        extra = f"<td>{more[number]}</td>" if more else ""
        out.append(f"<tr>{cells}{extra}</tr>")
    return "".join([*out, "</table>"])


def as_html(value: str) -> str:
    """Text that cannot become markup."""
    return html.escape(printable(value))


def escaped(value: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{each}" if each in "|\\`*_<>[]#" else each for each in printable(value))
