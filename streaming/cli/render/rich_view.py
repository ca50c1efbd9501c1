"""Groups as a terminal shows them to a person: what needs a look first, colours, and a matrix of who owns what.

Made from the objects the API serves, for `groups`, `describe` and `watch` on a terminal; what is piped is plain text
(`plain.py`). Names are anybody's: they get here through `printable` and as text, never as markup.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.console import Group as Stacked
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from coordinator_model.kinds.table import sentence
from coordinator_model.kinds.words import counted, duration
from coordinator_model.migration.phases import is_mixed
from streaming.base.doubt import cannot_tell, moment
from streaming.base.text import printable
from streaming.base.times import time_text
from streaming.cli.render.plain import partitions_text

Object = Mapping[str, Any]

MIDDLING_WIDTH: Final = 110
NARROW_WIDTH: Final = 76
"""Below these the columns that can be spared are left out, so that a row stays a row."""

CELL_WIDTH: Final = 3
LEAST_NAME: Final = 12
MOST_NAME: Final = 40
MOST_MEMBERS: Final = 60
LAST_EVENTS: Final = 10

_RANKS: Final = {"critical": 1000, "warning": 100, "info": 10}
_LOOK_STYLES: Final = {"critical": "bold red", "warning": "yellow", "info": "dim"}
_EVENT_STYLES: Final = {"critical": "bold red", "warning": "yellow", "info": ""}
_STATE_STYLES: Final = {"Stable": "green", "Empty": "dim", "Dead": "dim"}
_PHASE_STYLES: Final = {"upgrading": "yellow", "downgrading": "yellow", "upgraded": "green"}
_CELLS: Final = {
    "owned": ("●", "blue"),
    "revoking": ("◐", "yellow"),
    "target": ("○", "blue"),
    "twice": ("!", "bold white on red"),
    "": ("·", "dim"),
}
_BAR: Final = 8


def groups_picture(groups: Sequence[Object], width: int) -> RenderableType:
    """One row a group, what needs a look first, then by name."""
    shown = sorted(groups, key=lambda group: (-_urgency(group), str(group["group"])))
    rows = [_cells(group, width) for group in shown]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for name in _columns(width):
        # Names and reasons give way, figures never.
        needed = max((row[name].cell_len for row in rows), default=0)
        least = min(needed, LEAST_NAME) if name in ("GROUP", "NOTES") else max(needed, len(name))
        right = name in ("MEMBERS", "LAG", "LAG TIME")
        justify: JustifyMethod = "right" if right else "left"
        gives_way = name in ("GROUP", "NOTES")
        table.add_column(
            "" if name in ("!", "NOTES") else name, justify=justify, no_wrap=not gives_way, min_width=least
        )
    for row in rows:
        table.add_row(*row.values())
    return table


def believed(picture: Callable[[], RenderableType], doubt: Object | None) -> RenderableType:
    """A picture as it may be shown under a doubt (`base/doubt.py`): without colour, and of half a log not at all."""
    if doubt is None:
        return picture()
    why = Text(cannot_tell(doubt), style="bold yellow")
    if "as_of" not in doubt:
        return why
    return Stacked(why, Text(f"as of {moment(doubt['as_of'])}:"), Text(), _Colourless(picture()))


@dataclass(frozen=True, slots=True)
class _Colourless:
    picture: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        return iter(Segment.remove_color(console.render(self.picture, options)))


def _columns(width: int) -> tuple[str, ...]:
    if width >= MIDDLING_WIDTH:
        return ("!", "GROUP", "STATE", "TYPE", "MEMBERS", "LAG", "LAG TIME", "MIGRATION", "NOTES")
    if width >= NARROW_WIDTH:
        return ("!", "GROUP", "STATE", "MEMBERS", "LAG", "LAG TIME", "MIGRATION")
    return ("!", "GROUP", "STATE", "LAG", "MIGRATION")


def summary_line(groups: Sequence[Object], unread: Sequence[Object] = ()) -> Text:
    """How many groups, how many need a look, how far they are behind; and what is `unread`, whose groups may lack."""
    severities = [_worst(group) for group in groups]
    critical, warning = severities.count("critical"), severities.count("warning")
    lags = [least for group in groups if (least := _least(group)) is not None]
    bound = "≥ " if any(group.get("unknown_lags") for group in groups) else ""
    mixed = sum(is_mixed(group["type"], group["migration"]["phase"]) for group in groups)
    line = Text(f"{counted(len(groups), 'group')}  ")
    if critical or warning:
        line.append(f"{critical} critical, {counted(warning, 'warning')}  ", style="bold red" if critical else "yellow")
    elif not unread:
        line.append("nothing needs a look  ", style="green")
    for each in unread:
        line.append(f"{cannot_tell(each)}  ", style="bold yellow")
    lag = f"{bound}{sum(lags):,}" if lags else "-"
    return line.append(f"lag {lag}" + (f"  {mixed} between protocols" if mixed else ""))


def group_picture(group: Object, events: Sequence[Object], width: int, now_ms: int) -> RenderableType:
    """One group: itself, who owns what, members, offsets, what happened last."""
    parts: list[RenderableType] = [_head(group, now_ms)]
    parts += [_look_line(look, now_ms) for look in group.get("attention", ())]
    for topic, table in _matrices(group, width):
        parts += [Text(), Text(printable(topic), style="bold"), table]
    if group["members"]:
        parts += [Text(), _members(group["members"], width)]
        parts += [
            Text(f"{_who(member)} {printable(member['waiting']['text'])}", style="yellow")
            for member in group["members"][:MOST_MEMBERS]
            if member.get("waiting")
        ]
    if group["offsets"]:
        parts += [Text(), _offsets(group["offsets"], width)]
    if events:
        parts += [Text(), *event_lines(events[-LAST_EVENTS:], with_group=False)]
    return Stacked(*parts)


def event_lines(events: Iterable[Object], *, with_group: bool) -> Iterator[Text]:
    """One line an event, the newest first; times in UTC."""
    for event in reversed(list(events)):
        clock = time_text(event["time"]).partition("T")[2].partition(".")[0]
        line = Text(no_wrap=True, overflow="ellipsis").append(f"{clock}Z  " if clock else "-  ", style="dim")
        if with_group and event["group"]:
            line.append(f"{_short(event['group'])}  ", style="bold")
        yield line.append(printable(sentence(event)), style=_EVENT_STYLES.get(event["severity"], ""))


def lag_time(of: Object, name: str) -> str:
    """Lag in time as people say it, a lower bound as such: `> 12 m 0 s`."""
    return ("> " if of.get(f"{name}_at_least") else "") + duration(of.get(name), "-")


def lag_sum(group: Object) -> str:
    """Lag of a group, while some partition's is not known that of the others: `≥ 1,200`."""
    least = _least(group)
    bound = "≥ " if group.get("lag") is None else ""
    return "-" if least is None else f"{bound}{least:,}"


def _least(group: Object) -> int | None:
    """Lag of a group as far as it is known; None where nothing is."""
    known: int | None = group.get("lag")
    return group.get("at_least") if known is None and group.get("max_lag") is not None else known


def _cells(group: Object, width: int) -> dict[str, Text]:
    worst = _worst(group)
    reasons = (_giving_way(look["text"], _LOOK_STYLES[look["severity"]]) for look in group["attention"])
    found = {
        "!": Text("!" if worst in ("critical", "warning") else " ", style=_LOOK_STYLES.get(worst, "")),
        "GROUP": _giving_way(_short(group["group"]), "bold red" if worst == "critical" else "bold"),
        "STATE": Text(group["state"], style=_STATE_STYLES.get(group["state"], "yellow")),
        "TYPE": Text("commits only" if group["simple"] else group["type"], style="dim"),
        "MEMBERS": Text(str(len(group["members"]))),
        "LAG": Text(lag_sum(group), style="" if _least(group) else "dim"),
        "LAG TIME": Text(lag_time(group, "max_lag_seconds"), style="" if group["max_lag_seconds"] else "dim"),
        "MIGRATION": _migration(group, bar=width >= NARROW_WIDTH),
        "NOTES": _giving_way(", ").join(reasons),
    }
    if (doubt := group.get("doubt")) is not None:
        found = {column: Text(cell.plain, style="dim") for column, cell in found.items()}
        found |= {"!": Text("?", style="bold yellow"), "NOTES": _giving_way(cannot_tell(doubt), "yellow")}
    return {column: found[column] for column in _columns(width)}


def _giving_way(text: str, style: str = "") -> Text:
    """A cell that is cut where the row is too long.

    Its column may wrap, as only such columns are made narrower (rich), and the cell itself may not.
    """
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _migration(group: Object, *, bar: bool = True) -> Text:
    migration = group["migration"]
    if group["simple"] or group["type"] not in ("classic", "consumer"):
        return Text("-", style="dim")
    if migration.get("out_of_scope"):
        return Text("out of scope", style="dim")
    phase = migration["phase"] or "mixed"
    if not is_mixed(group["type"], migration["phase"]):
        return Text(phase, style=_PHASE_STYLES.get(phase, "dim"))
    done = round(_BAR * migration["upgraded_members"] / max(1, migration["members"]))
    text = f"{phase} {migration['upgraded_members']}/{migration['members']}"
    if not bar:
        return Text(text, style="yellow")
    drawn = Text().append("━" * done, style="blue").append("━" * (_BAR - done), style="dim")
    return drawn.append(f" {text}", style="yellow")


def _head(group: Object, now_ms: int) -> Text:
    migration = group["migration"]
    line = Text().append(_name(group["group"]), style="bold").append("  ")
    line.append(group["state"], style=_STATE_STYLES.get(group["state"], "yellow"))
    line.append(f"  {'commits only' if group['simple'] else group['type']}  ", style="dim")
    if group["assignment_epoch"] is None:
        line.append(f"generation {group['epoch']}  ")
    else:
        line.append(f"epoch {group['epoch']} (assignment {group['assignment_epoch']})  ")
    line.append_text(_migration(group))
    if migration["mixed_since"] is not None:
        line.append(f" for {duration(max(0, now_ms - migration['mixed_since']) / 1000)}")
    line.append(f"  lag {lag_sum(group)}, {lag_time(group, 'max_lag_seconds')}")
    unknown = group.get("unknown_lags")
    return line.append(f" (not known of {counted(unknown, 'partition')})" if unknown else "")


def _look_line(look: Object, now_ms: int) -> Text:
    since = "" if look["since"] is None else f" for {duration(max(0, now_ms - look['since']) / 1000)}"
    return Text(f"{look['severity']}: {look['text']}{since}", style=_LOOK_STYLES[look["severity"]])


def _matrices(group: Object, width: int) -> Iterator[tuple[str, Table]]:
    """(topic, members by partitions), of the topics whose partitions fit the width."""
    marks: dict[str, dict[int, dict[int, str]]] = {}
    for row, member in enumerate(group["members"][:MOST_MEMBERS]):
        for kind, name in (("target", "target"), ("owned", "assigned"), ("revoking", "pending_revocation")):
            for topic, numbers in member[name].items():
                marks.setdefault(topic, {}).setdefault(row, {}).update(dict.fromkeys(numbers, kind))
        for place, owners in (group.get("duplicates") or {}).items():
            topic, _, number = place.rpartition("/")
            if member["member_id"] in owners and number.isdecimal():
                marks.setdefault(topic, {}).setdefault(row, {})[int(number)] = "twice"
    for topic, rows in sorted(marks.items()):
        lag = {each["partition"]: each.get("lag") for each in group["offsets"] if each["topic"] == topic}
        columns = sorted({*lag, *(number for row in rows.values() for number in row)})
        room = width - max(len(_who(group["members"][row])) for row in rows) - 2
        if len(columns) * (CELL_WIDTH + 1) <= room:
            yield topic, _matrix(group["members"], rows, columns, lag)


def _matrix(
    members: Sequence[Object], rows: Mapping[int, Mapping[int, str]], columns: Sequence[int], lag: Mapping[int, Any]
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for number in columns:
        table.add_column(str(number), justify="right", min_width=CELL_WIDTH, no_wrap=True)
    if any(lag.values()):
        table.add_row(Text("lag", style="dim"), *(Text(_tiny(lag.get(number)), style="dim") for number in columns))
    for row, held in rows.items():
        cells = (_CELLS[held.get(number, "")] for number in columns)
        table.add_row(Text(_who(members[row])), *(Text(sign, style=style) for sign, style in cells))
    return table


def _members(members: Sequence[Object], width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    wide = width >= MIDDLING_WIDTH
    for name in ("MEMBER", *(("STATIC ID", "HOST") if wide else ()), "PROTOCOL", "EPOCH", "STATE", "OWNS"):
        table.add_column(name, no_wrap=name not in ("MEMBER", "OWNS"), overflow="fold")
    for member in members[:MOST_MEMBERS]:
        extra = (printable(member["instance_id"] or "-"), printable(member["client_host"] or "-")) if wide else ()
        row = (*extra, member["protocol"], str(member["epoch"]))
        state = Text(member["state"], style=_STATE_STYLES.get(member["state"], "yellow"))
        table.add_row(_giving_way(_who(member)), *map(Text, row), state, Text(_owns(member)))
    return table


def _owns(member: Object) -> str:
    tasks = member.get("tasks")
    if tasks:
        held = (f"{role} {partitions_text(parts)}" for role, parts in tasks.items() if parts)
        return printable("; ".join(held) or "no tasks")
    pending = member["pending_revocation"]
    revoking = f"; to be revoked {partitions_text(pending)}" if pending else ""
    return printable(partitions_text(member["assigned"]) + revoking)


def _offsets(offsets: Sequence[Object], width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    table.add_column("TOPIC")
    names = ("PARTITION", "COMMITTED", *(("LOG END",) if width >= NARROW_WIDTH else ()), "LAG", "LAG TIME")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for each in offsets:
        end = ("-" if each.get("log_end_offset") is None else f"{each['log_end_offset']:,}",)
        lag = "-" if each.get("lag") is None else f"{each['lag']:,}"
        committed = "-" if each["offset"] is None else f"{each['offset']:,}"
        numbers = (f"{each['partition']}", committed, *(end if width >= NARROW_WIDTH else ()), lag)
        table.add_row(_giving_way(printable(each["topic"])), *map(Text, (*numbers, lag_time(each, "lag_seconds"))))
    return table


def _who(member: Object) -> str:
    """What distinguishes members, in few letters: the instance id, or the client id with the end of the member id."""
    name = member["instance_id"] or f"{member['client_id'] or 'member'} · {member['member_id'][-6:]}"
    return _short(name)


def _short(name: str) -> str:
    shown = _name(name)
    return shown if len(shown) <= MOST_NAME else shown[: MOST_NAME - 1] + "…"


def _name(name: str) -> str:
    """A name as it can be read, in quotes if there is nothing to read."""
    shown = printable(name)
    return shown if shown.strip() else f"“{shown}”"


def _tiny(value: int | None) -> str:
    if not value:
        return "·"
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value // size}{unit}"
    return str(value)


def _worst(group: Object) -> str:
    attention = group.get("attention") or ({"severity": ""},)
    return str(attention[0]["severity"])


def _urgency(group: Object) -> int:
    return sum(_RANKS[look["severity"]] for look in group.get("attention", ()))
