"""What a monitor shows of those it passes events and groups on to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkState:
    """How a sink is doing.

    Attributes:
        name: of the sink, as metrics have it.
        waiting: what was reported and is not delivered: events, or groups.
        oldest_ms: since when the oldest of them waits; None for none.
        dropped: how many were given up since this monitor started.
        delivered: how many were delivered since then.
        failure: why it does not get on, in one line; None while it does.
    """

    name: str
    waiting: int
    oldest_ms: int | None
    dropped: int
    delivered: int
    failure: str | None = None
