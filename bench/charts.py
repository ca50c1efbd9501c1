"""Figures as bars, in SVG: one mark for the median, a line for the spread, a dashed one for the goal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH: Final = 860
_LABELS: Final = 330
_ROW: Final = 26
_TOP: Final = 44
_RIGHT: Final = 120

_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:15px}.own{fill:#2f6fb2}"
    ".reference{fill:#a9b4bf}.spread{stroke:#222;stroke-width:1.5}.goal{stroke:#b3261e;stroke-dasharray:4 3}"
    ".paper{fill:#fff}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One line of a chart; `goal` is where the dashed mark stands."""

    label: str
    median: float
    lowest: float
    highest: float
    reference: bool = False
    goal: float | None = None


def chart(title: str, bars: Sequence[Bar], unit: str) -> str:
    """An SVG of bars from 0 to the largest value, each with its figure in words beside it."""
    height = _TOP + _ROW * len(bars) + 10
    largest = max([value for bar in bars for value in (bar.highest, bar.goal or 0.0)], default=0.0) or 1.0
    scale = (_WIDTH - _LABELS - _RIGHT) / largest
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="12" y="24">{escape(title)}</text>',
    ]
    for number, bar in enumerate(bars):
        lines.extend(_bar(bar, _TOP + _ROW * number, scale, unit))
    return "\n".join([*lines, "</svg>", ""])


def _bar(bar: Bar, top: int, scale: float, unit: str) -> Iterator[str]:
    middle, kind = top + _ROW // 2, "reference" if bar.reference else "own"
    end = _LABELS + bar.median * scale
    yield f'<text x="{_LABELS - 10}" y="{middle + 4}" text-anchor="end">{escape(bar.label)}</text>'
    yield f'<rect class="{kind}" x="{_LABELS}" y="{top + 4}" width="{bar.median * scale:.1f}" height="{_ROW - 8}"/>'
    if bar.highest > bar.lowest:
        low, high = _LABELS + bar.lowest * scale, _LABELS + bar.highest * scale
        yield f'<line class="spread" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
    if bar.goal is not None:
        at = _LABELS + bar.goal * scale
        yield f'<line class="goal" x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{top + _ROW}"/>'
    beside = max(end, _LABELS + max(bar.highest, bar.goal or 0.0) * scale) + 8
    yield f'<text x="{beside:.1f}" y="{middle + 4}">{bar.median:.4g} {escape(unit)}</text>'
