"""Whether an answer that is being worked out is still wanted: who has asked may be gone.

A thread cannot be stopped from outside, so what goes through many groups looks now and then, at 0.1 µs a time.
"""

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Final, Protocol, TypeVar

T = TypeVar("T")


class Asker(Protocol):
    """Who has asked."""

    gone: bool


class GoneError(Exception):
    """Who has asked is gone: the answer is for no one."""


_asker: Final[ContextVar[Asker | None]] = ContextVar("asker", default=None)


def asked_by(asker: Asker | None) -> None:
    """From here on, in this context and in the threads that work for it, an answer is for them; None for no one."""
    _asker.set(asker)


def look() -> None:
    """Go on if the answer is still wanted; raises GoneError if not."""
    asker = _asker.get()
    if asker is not None and asker.gone:
        raise GoneError


def each(items: Iterable[T]) -> Iterator[T]:
    """The same, as long as the answer is wanted; raises GoneError from where it is not."""
    for item in items:
        look()
        yield item
