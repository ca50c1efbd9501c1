"""What the demo shows where it was started: a live table on a terminal, one line an event elsewhere."""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from coordinator_model.kinds.table import sentence
from streaming.base.doubt import said
from streaming.base.text import printable
from streaming.base.times import time_text

GroupView = Mapping[str, Any]
"""GROUP with `lag`, the sum over its partitions or None."""

REFRESH_SECONDS: Final = 1.0
LAST_EVENTS: Final = 12
LAST_STEPS: Final = 4
_WIDE: Final = 100

_SEVERITY_STYLES: Final = {"info": "", "warning": "yellow", "critical": "bold red"}
_PHASE_STYLES: Final = {"upgrading": "yellow", "downgrading": "yellow", "blocked": "red", "upgraded": "green"}
_STATE_STYLES: Final = {"Stable": "green", "Empty": "dim", "Dead": "dim"}


class Terminal:
    """Shows groups, events and what the demo does; events and steps may come from any thread.

    Args:
        groups: gives the groups as they are now.
        address: the page's, shown above the groups.
        output: where to show them; a terminal gets the live table.
        doubt: why what is shown may not be so (`streaming.base.doubt`); None while it is.
        remarks: where the steps go if the output is no terminal, so that it holds events only.
    """

    def __init__(
        self,
        groups: Callable[[], Sequence[GroupView]],
        *,
        address: str,
        doubt: Callable[[], Mapping[str, Any] | None] = lambda: None,
        output: TextIO = sys.stdout,
        remarks: TextIO = sys.stderr,
    ) -> None:
        self._groups = groups
        self._address = address
        self._doubt = doubt
        self._output = output
        self._remarks = remarks
        self._console = Console(file=output)
        self._events: deque[Mapping[str, Any]] = deque(maxlen=LAST_EVENTS)
        self._steps: deque[str] = deque(maxlen=LAST_STEPS)
        self._lock = threading.Lock()

    @property
    def is_live(self) -> bool:
        """Whether there is a terminal to draw on."""
        return self._console.is_terminal

    def event(self, event: Mapping[str, Any]) -> None:
        """Take an event."""
        with self._lock:
            self._events.append(event)
            if not self.is_live:
                print(event_line(event), file=self._output, flush=True)

    def step(self, text: str) -> None:
        """Take a sentence on what the demo does next."""
        with self._lock:
            self._steps.append(text)
            if not self.is_live:
                print(f"demo: {printable(text)}", file=self._remarks, flush=True)

    def run(self, stopping: threading.Event) -> None:
        """Draw every second until the event is set; without a terminal, only wait for it."""
        if not self.is_live:
            stopping.wait()
            return
        # The alternate screen is given back at the end, so what the terminal showed before is still there.
        with Live(console=self._console, screen=True, auto_refresh=False) as live:
            while not stopping.is_set():
                live.update(self.picture(), refresh=True)
                stopping.wait(REFRESH_SECONDS)

    def picture(self) -> RenderableType:
        """What a terminal shows now: groups, the last events, the last steps."""
        with self._lock:
            events, steps = list(self._events), list(self._steps)
        doubt = self._doubt()
        above = Group(
            Text(f"{self._address}    Ctrl-C ends the demo", style="bold"),
            Text(),
            *([] if doubt is None else [Text(f"not known yet: {said(doubt)}", style="bold yellow"), Text()]),
            groups_table(self._groups(), coloured=doubt is None, gap=1 if self._console.width < _WIDE else 2),
            Text(),
        )
        below = Group(Text(), *(Text(printable(step), style="cyan") for step in steps))
        # What is done right now stands at the bottom, where a terminal cuts off what does not fit.
        taken = sum(len(self._console.render_lines(part)) for part in (above, below))
        return Group(above, *event_rows(events[-max(1, self._console.height - taken) :]), below)


def event_line(event: Mapping[str, Any]) -> str:
    """`time kind group detail` on one line; the detail is a sentence."""
    return printable(f"{time_text(event['time'])} {event['kind']} {event['group']} {sentence(event)}")


def groups_table(groups: Sequence[GroupView], *, coloured: bool = True, gap: int = 2) -> Table:
    """One row a group, by name; without colours while they may not be so; `gap` spaces between columns."""
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in ("GROUP", "TYPE", "STATE"):
        table.add_column(name, no_wrap=True)
    for name in ("EPOCH", "CLASSIC", "CONSUMER"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("MIGRATION", no_wrap=True)
    table.add_column("LAG", justify="right", no_wrap=True)
    for group in sorted(groups, key=lambda each: str(each["group"])):
        phase = group["migration"]["phase"] or "mixed"
        speaking = [member["protocol"] for member in group["members"]]
        table.add_row(
            escape(printable(group["group"])),
            group["type"],
            Text(group["state"], style=_STATE_STYLES.get(group["state"], "yellow") if coloured else ""),
            str(group["epoch"]),
            str(speaking.count("classic")),
            str(speaking.count("consumer")),
            Text(phase, style=_PHASE_STYLES.get(phase, "") if coloured else ""),
            _lag(group),
        )
    return table


def _lag(group: Mapping[str, Any]) -> str:
    if group["lag"] is None:
        return "-" if group.get("max_lag") is None else f"≥ {group['at_least']}"
    return str(group["lag"])


def event_rows(events: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """One row an event, the last one at the bottom; a sentence that is too long is cut at the terminal's edge."""
    groups = max((len(printable(event["group"])) for event in events), default=0)
    for event in events:
        clock = time_text(event["time"]).partition("T")[2]
        text = f"{clock:<13}  {printable(event['group']):<{groups}}  {printable(sentence(event))}"
        yield Text(text, style=_SEVERITY_STYLES[event["severity"]], no_wrap=True, overflow="ellipsis")
