"""What a part found: values with a unit, their median and spread."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured, once or several times.

    Attributes:
        unit: of the values.
        values: in the order they were measured.
        reference: whether it is what others are compared with, not a figure of the monitor.
    """

    unit: str
    values: Sequence[float]
    reference: bool = False

    def as_json(self) -> dict[str, Any]:
        """For the results: values, median, lowest and highest."""
        values = [rounded(value) for value in self.values]
        return {
            "unit": self.unit,
            "median": rounded(median(self.values)),
            "lowest": min(values),
            "highest": max(values),
            "values": values,
            "reference": self.reference,
        }


@dataclass(slots=True)
class Outcome:
    """What a part hands back: figures by name, and how large it all was."""

    size: dict[str, float]
    figures: dict[str, Figure] = field(default_factory=dict)

    def add(self, name: str, unit: str, *values: float, reference: bool = False) -> None:
        """Put in a figure; values of one name come together."""
        former = self.figures.get(name)
        self.figures[name] = Figure(unit, [*(former.values if former else ()), *values], reference)

    def median(self, name: str) -> float:
        """Median of a figure."""
        return median(self.figures[name].values)


def percentile(values: Iterable[float], share: float) -> float:
    """The value that a share of the values do not exceed; of few values, the largest stands for the 99th hundredth."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rounded(value: float) -> float:
    """To four digits that say something, so that results can be read and compared."""
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() else short
