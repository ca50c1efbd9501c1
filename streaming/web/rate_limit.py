"""How often one address may ask: a token bucket each, and no more of them than fit into little memory.

And how often all together may guess credentials. Who guesses from many addresses has a bucket for each; so those that
have guessed wrong lately share one as well. An address that has not is always heard, and one that was right is no
longer among them: right credentials are never kept out by guesses from elsewhere.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_ADDRESSES: Final = 4_096
"""Beyond that the address that has been silent longest is forgotten."""

BURST_SECONDS: Final = 5.0
"""So many seconds' worth may come at once."""

GUESSED_SECONDS: Final = 3_600.0
"""How long an address that has guessed wrong is one of those that have."""

MOST_GUESSING: Final = 65_536
"""Of these no more are remembered."""


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


class Guesses:
    """Wrong credentials from all addresses together; used by one thread.

    Args:
        per_second: how many wrong guesses go on without end; 0 for any number.
        clock: seconds that only grow.
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._in_all = RateLimit(per_second, clock)
        self._clock = clock
        self._wrong_at: OrderedDict[str, float] = OrderedDict()

    def wait_seconds(self, address: str) -> float:
        """How long an address has to wait before its credentials are looked at; 0 for one that has not guessed."""
        wrong_at = self._wrong_at.get(address)
        if wrong_at is None or self._clock() - wrong_at > GUESSED_SECONDS:
            return 0.0
        return self._in_all.wait_seconds("")

    def wrong(self, address: str) -> None:
        """Credentials of the address were wrong."""
        if address not in self._wrong_at:
            # What those pay that are known already when they ask.
            self._in_all.charge("", 1.0)
        self._wrong_at[address] = self._clock()
        self._wrong_at.move_to_end(address)
        if len(self._wrong_at) > MOST_GUESSING:
            self._wrong_at.popitem(last=False)

    def right(self, address: str) -> None:
        """They were right: it is one that knows them."""
        self._wrong_at.pop(address, None)
