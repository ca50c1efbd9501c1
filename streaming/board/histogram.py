"""Histograms of the monitor's own times, and their bounds."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

BATCH_SECONDS_BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
RECORD_TO_METRIC_SECONDS_BUCKETS: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0, 10.0, 30.0, 60.0)


class Distribution:
    """A histogram in the making: counts by upper bound, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self._sum += value

    def read(self) -> tuple[list[int], float]:
        """Counts by bound, the last one without bound, and the sum of the values."""
        return list(self._counts), self._sum
