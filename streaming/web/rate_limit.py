"""How often one address may ask: a token bucket each, and no more of them than fit into little memory."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_ADDRESSES: Final = 4_096
"""Beyond that the address that has been silent longest is forgotten."""

BURST_SECONDS: Final = 5.0
"""So many seconds' worth may come at once."""


class RateLimit:
    """Asks are let through at a rate, by address; used by one thread.

    Args:
        per_second: how many asks of one address go on without end; 0 for any number.
        clock: seconds that only grow.
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._most = per_second * BURST_SECONDS
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, address: str) -> float:
        """Take one ask of the address; how long it has to wait if it is too much, 0 if it is not."""
        if self._per_second <= 0:
            return 0.0
        left = self._now(address)
        if left < 1.0:
            return (1.0 - left) / self._per_second
        self._keep(address, left - 1.0)
        return 0.0

    def charge(self, address: str, asks: float) -> None:
        """Take as much as so many asks, even where there is not as much left."""
        if self._per_second > 0:
            self._keep(address, max(self._now(address) - asks, -self._most))

    def _now(self, address: str) -> float:
        left, since = self._left.get(address, (self._most, self._clock()))
        return min(self._most, left + (self._clock() - since) * self._per_second)

    def _keep(self, address: str, left: float) -> None:
        self._left[address] = (left, self._clock())
        self._left.move_to_end(address)
        if len(self._left) > MOST_ADDRESSES:
            self._left.popitem(last=False)
