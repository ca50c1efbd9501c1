"""The report of a rehearsal of brokers: text, Markdown, and one HTML file that needs nothing else."""

from collections.abc import Iterator, Sequence
from typing import Final

from coordinator_model.kinds.words import counted
from streaming.base.times import time_text
from streaming.loading.compared import UNKNOWN_FAULT, LoadingJson, is_lost
from streaming.reports.forms import Cells, aligned, as_html, escaped, html_head, html_table, markdown_table, wrapped

_NAMED: Final = 20
"""Groups that are named, of those that are missing or changed."""

_NOT_RUN: Final = "retention and the brokers' session timeouts do not run in a rehearsal"


def text(report: LoadingJson) -> str:
    """For a terminal."""
    parts = [_title(report), aligned(_releases(report))]
    for title, rows in _sections(report):
        parts.append(f"{title}\n{aligned(rows, indent='  ')}")
    parts += _notes(report)
    return "\n\n".join("\n".join(wrapped(part)) for part in parts)


def markdown(report: LoadingJson) -> str:
    """For a ticket."""
    head, *body = _releases(report)
    lines = [f"# {escaped(_title(report))}", "", *markdown_table(head, body)]
    for title, rows in _sections(report):
        lines += ["", f"## {escaped(title)}", "", *markdown_table(("", ""), rows)]
    return "\n".join([*lines, "", *(f"- {escaped(note)}" for note in _notes(report))])


def html_page(report: LoadingJson) -> str:
    """One file without a link or script."""
    out = [html_head(_title(report)), html_table(_releases(report), has_head=True)]
    for heading, rows in _sections(report):
        out.append(f"<h2>{as_html(heading)}</h2>{html_table(rows, has_head=False)}")
    return "\n".join([*out, "<ul>", *(f"<li>{as_html(note)}</li>" for note in _notes(report)), "</ul></html>"]) + "\n"


def _title(report: LoadingJson) -> str:
    of = "a recording" if report["cluster_id"] is None else f"cluster {report['cluster_id']}"
    return f"Rehearsal of brokers: {report['records']} records of {of}, {time_text(report['time'])}"


def _releases(report: LoadingJson) -> list[Cells]:
    rows: list[Cells] = [
        ("release", "loads", "partitions failed", "groups missing", "offsets missing", "different", "took")
    ]
    for of in report["releases"]:
        if "cannot_tell" in of:
            rows.append((of["release"], "cannot tell", "-", "-", "-", "-", "-"))
            continue
        failed = sum(not each["loaded"] for each in of["partitions"])
        rows.append(
            (
                of["release"],
                "yes, and all is there" if not is_lost(of) else "yes" if of["loads"] else "NO",
                f"{failed} of {len(of['partitions'])}",
                f"{len(of['groups_missing'])} of {of['groups']}",
                str(of["offsets_missing"]),
                str(of["offsets_different"]),
                f"{of['seconds']:.1f} s",
            )
        )
    return rows


def _sections(report: LoadingJson) -> Iterator[tuple[str, list[Cells]]]:
    for of in report["releases"]:
        release = f"Kafka {of['release']}"
        if "cannot_tell" in of:
            yield f"{release}: cannot tell", [("why", of["cannot_tell"])]
            continue
        for failed in (each for each in of["partitions"] if not each["loaded"]):
            yield f"{release}: partition {failed['partition']} fails", list(_failure(failed))
        lost: list[Cells] = [(name, "missing") for name in of["groups_missing"]]
        by_design: list[Cells] = []
        for each in of["groups_changed"]:
            row = each["group"], f"was {each['was']}; is {each['is'] or 'gone'}"
            (by_design if each["by_design"] else lost).append(row)
        if of["loads"] and lost:
            yield f"{release}: lost", _first(lost)
        if by_design:
            yield f"{release}: forgotten by design (KIP-915)", _first(by_design)
        more: list[Cells] = [(name, "answered by the broker alone") for name in of["groups_more"]]
        if of["offsets_more"]:
            more.append((counted(of["offsets_more"], "offset"), "answered by the broker alone"))
        if more:
            yield f"{release}: not in the log as it is read here", _first(more)


def _failure(failed: LoadingJson) -> Iterator[Cells]:
    at = "not said" if failed["at_offset"] is None else f"{failed['at_offset']}, {time_text(failed['time'])}"
    yield ("at offset", at)
    yield ("record", failed["record_type"] or "not said")
    yield ("group", failed["group"] or "not said")
    yield ("said", failed["said"])
    yield ("goes with it", f"{counted(failed['groups'], 'group')}, {counted(failed['offsets'], 'offset')}")
    yield ("known as", _known(failed))
    for remedy in failed["remedies"]:
        yield ("helps", remedy)


def _known(failed: LoadingJson) -> str:
    """The fault, where it was seen, and where it is mended."""
    if failed["known"] is None:
        return UNKNOWN_FAULT
    seen = f", seen on {', '.join(failed['seen_on'])}" if failed["seen_on"] else ""
    mended = f"mended in {', '.join(failed['mended_in'])}" if failed["mended_in"] else "open"
    return f"{failed['known']}{seen}, {mended}"


def _first(rows: Sequence[Cells]) -> list[Cells]:
    more = len(rows) - _NAMED
    return [*rows[:_NAMED], *([(f"and {more} more", "")] if more > 0 else [])]


def _notes(report: LoadingJson) -> list[str]:
    return [
        *(f"note: not rehearsed: {each}" for each in report["not_rehearsed"]),
        *(f"note: not compared: {each}" for each in report["not_compared"]),
        f"note: {_NOT_RUN}",
    ]
