"""A gate's verdict for people: what is asked, the answer, and each reason once with the groups it is about.

On a terminal it is wrapped and coloured, what decides first; a pipe gets a table, a reason a row.
"""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.kinds.words import percent_of
from streaming.base.text import printable
from streaming.cli.render import output

GateJson = Mapping[str, Any]

QUESTIONS: Final = {
    "upgrade": "may consumers be rolled to the consumer protocol?",
    "downgrade": "may brokers be rolled to an older release?",
}
"""Gate → what it answers. Rolling consumers back is another question: that is always allowed."""

_VERDICT_STYLES: Final = {"open": "bold green", "closed": "bold red", "cannot_tell": "bold yellow"}
_EFFECTS: Final = {"stop": ("stop", "red"), "unknown": ("unknown", "yellow"), "note": ("note", "dim")}
"""Effect → how it is shown, in the order of what decides."""

_FACTS: Final = {
    "groups": "groups",
    "leftover_records": "records left over from downgrades, by type",
    "unknown_records": "unknown records read, by type",
    "offset_versions": "committed offsets by value version",
}
"""What an answer counts → its heading."""

_MEMBERS: Final = 5
_GROUPS: Final = 5
_NARROWEST: Final = 40


@dataclass(slots=True)
class SaidReason:
    """One reason, of all groups that it is said of."""

    effect: str
    code: str
    text: str
    groups: list[str] = field(default_factory=list)

    @property
    def about(self) -> str:
        """The first few groups by name; of the whole cluster where it is about none."""
        more = len(self.groups) - _GROUPS
        named = ", ".join(self.groups[:_GROUPS]) + (f" and {more} more" if more > 0 else "")
        return named or "the cluster"


def reasons(answer: GateJson) -> list[SaidReason]:
    """Reasons that say the same of several groups as one; what stops first, then what is not known, then notes."""
    found: dict[tuple[str, str, str], SaidReason] = {}
    for reason in answer["reasons"]:
        key = (reason["effect"], reason["code"], _meaning(reason))
        said = found.setdefault(key, SaidReason(*key))
        if reason["group"] is not None:
            said.groups.append(printable(reason["group"]))
    order = list(_EFFECTS)
    return sorted(found.values(), key=lambda said: order.index(said.effect) if said.effect in order else len(order))


def lines(answer: GateJson) -> list[str]:
    """Plain text."""
    head = [f"{answer['gate']}: {answer['verdict'].replace('_', ' ')}", *_facts(answer)]
    if not answer["reasons"]:
        return head
    rows = [[of["effect"], of["group"], of["code"], _meaning(of)] for of in answer["reasons"]]
    return [*head, "", output.table(["EFFECT", "GROUP", "REASON", "MEANING"], rows)]


def show(answer: GateJson) -> None:
    """Print it, wrapped and coloured where that is for a terminal."""
    if not sys.stdout.isatty():
        output.print_line("\n".join(lines(answer)))
        return
    from rich.console import Console  # imported late: only a terminal needs it

    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    console = Console(width=width, highlight=False, soft_wrap=True)
    for text, style in picture(answer, width):
        console.print(text, style=style, markup=False)


def picture(answer: GateJson, width: int) -> Iterator[tuple[str, str]]:
    """(line, style) of a terminal of this width, no line wider."""
    gate, verdict = answer["gate"], answer["verdict"]
    target = answer.get("target_version")
    asked = f"{gate}: {QUESTIONS[gate]}" + (f" To {printable(target)}." if target else "")
    for line in _wrapped(asked, width):
        yield line, "bold"
    yield verdict.replace("_", " "), _VERDICT_STYLES.get(verdict, "")
    for fact in _facts(answer):
        for line in _wrapped(fact, width, rest="  "):
            yield line, "dim"
    for said in reasons(answer):
        word, style = _EFFECTS.get(said.effect, (said.effect, ""))
        yield "", ""
        for line in _wrapped(f"{word}  {said.code}  {said.about}", width, rest="  "):
            yield line, style
        for line in _wrapped(said.text, width, first="  ", rest="  "):
            yield line, ""


def _wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Lines of a text; a name with hyphens stays whole where it fits a line."""
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _facts(answer: GateJson) -> Sequence[str]:
    found = []
    for name, what in _FACTS.items():
        counts = ", ".join(f"{count} {printable(key)}" for key, count in answer.get(name, {}).items())
        if counts:
            found.append(f"{what}: {counts}")
    scan = answer.get("log_scan")
    if scan is not None:
        found.append(f"log scanned: {percent_of(scan['share'])} % in {scan['seconds']:g} s")
    return found


def _meaning(reason: GateJson) -> str:
    """The text, and the first few of the members it is about."""
    members = reason.get("members", ())
    if not members:
        return printable(reason["text"])
    named = [_member(member) for member in members[:_MEMBERS]]
    more = len(members) - len(named)
    return printable(f"{reason['text']}: {', '.join(named)}" + (f" and {more} more" if more else ""))


def _member(member: GateJson) -> str:
    version = f" version {member['embedded_version']}" if "embedded_version" in member else ""
    return f"{member['member_id']} ({member['client_id']} {member['client_host']}){version}"
