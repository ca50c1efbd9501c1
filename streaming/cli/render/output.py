"""What all commands share: common options, the guard around a command, output and progress."""

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, ParamSpec, TypeVar

import typer

from streaming.base.text import cut, printable, printable_lines

P = ParamSpec("P")
R = TypeVar("R")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

_COLUMN_GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """Options in front of the command: how much is logged, and in what form."""

    debug: bool = False
    log_level: str = "info"
    log_format: str = "text"


def set_up_logging(context: typer.Context, *, clients_silent: bool = False) -> None:
    """Set up the log for a command that keeps one; the others do without and start sooner.

    Args:
        context: the command's, from which the common options are taken.
        clients_silent: the command reports Kafka's failures itself, so the client library need not.
    """
    from streaming.base import logging_setup  # imported late, as said above

    options: CommonOptions = context.find_object(CommonOptions) or CommonOptions()
    level = "debug" if options.debug else options.log_level
    logging_setup.configure(level, "json" if options.log_format == "json" else "text")
    if clients_silent and level != "debug":
        logging_setup.silence_clients()


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Let a command end quietly when its output is no longer read (`… | head`)."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            # The interpreter flushes once more at its end; there must be something to flush into.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        return result

    return run


def print_json(value: Any) -> None:  # noqa: ANN401 - anything JSON holds
    """Print one JSON document, indented on a terminal, on one line otherwise."""
    sys.stdout.write(json_text(value, indent=2 if sys.stdout.isatty() else None) + "\n")


def json_text(value: Any, indent: int | None = None) -> str:  # noqa: ANN401 - anything JSON holds
    """A JSON document in which only what can be read is written as it is; the rest is escaped, as JSON has it."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    # Line ends are the document's own: within a string they are escaped already.
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def print_line(text: str = "") -> None:
    """Print one line on standard output, or a few. Nothing in it reaches the terminal that could steer it."""
    sys.stdout.write(printable_lines(text) + "\n")


def warn(text: str) -> None:
    """Print one line on standard error that is no error."""
    sys.stderr.write(f"warning: {printable(text)}\n")


def note(text: str) -> None:
    """Print one line on standard error that says how it went."""
    sys.stderr.write(f"{printable(text)}\n")


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "") -> str:
    """Align columns the way Kafka's own tools do; None is shown as `-`.

    A long name is cut as it is in labels, for it would widen all rows; the last column is as wide as it is.
    """
    cells = [list(headers), *([*(cut(_cell(value)) for value in row[:-1]), *map(_cell, row[-1:])] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    return "\n".join(
        indent + _COLUMN_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


@contextmanager
def progress(label: str) -> Iterator[Callable[[float], None]]:
    """Show progress on standard error if that is a terminal; yields what is to be called with 0 … 1."""
    if not sys.stderr.isatty():
        yield lambda _fraction: None
        return
    from rich.console import Console  # imported late: nothing piped ever needs it
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from coordinator_model.kinds.words import percent_of

    # Rich's own column of percents rounds to the nearest, where all else here rounds down.
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[share]:>3} %"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as display:
        task = display.add_task(label, total=1.0, share=0)
        yield lambda fraction: display.update(task, completed=fraction, share=percent_of(fraction))


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(str(value))
