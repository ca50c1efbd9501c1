"""Tables of the pages: figures as Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.figures import rounded


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(_lines(heads, rows))


def reported(of: Mapping[str, Any], *, unit: bool = True) -> str:
    """A figure of the results: median, unit, spread where it was measured more than once and differed."""
    shown = f" ({spread_of(of)})" if of["lowest"] != of["highest"] else ""
    return f"{of['median']:,g}{' ' + of['unit'] if unit else ''}{shown}"


def spread_of(of: Mapping[str, Any]) -> str:
    """Lowest and highest of a figure that was measured more than once, else nothing."""
    return spread(of["lowest"], of["highest"]) if len(of["values"]) > 1 else ""


def spread(lowest: float, highest: float) -> str:
    """From the lowest to the highest."""
    return f"{rounded(lowest):,g} - {rounded(highest):,g}"


def _lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
