"""What lasts: an alarm that opens with its cause, is reported once, and clears with its cause.

    the cause      was reported   the alarm
    holds          no             opens: one finding
    holds          yes            lasts: nothing
    is over        yes            clears: one finding, or none where the kind has no end
    is over        no             is closed: nothing

What is reported is remembered and written over at the end of each step, so no flag outlives its cause. While a group
catches up nothing opens and nothing clears: the step is marked as withheld, and asked again when the group is live.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from coordinator_model.rules.transition import Transition
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState

V = TypeVar("V")


def opened_and_cleared(reported: Iterable[str], holding: Mapping[str, V]) -> tuple[dict[str, V], list[str]]:
    """(what holds and was not reported, what was reported and no longer holds), each in the order it is given."""
    names = list(reported)
    opened = {name: about for name, about in holding.items() if name not in names} if names else dict(holding)
    return opened, [name for name in names if name not in holding]


class Memory(NamedTuple):
    """Where a group's state keeps which alarms of a kind are open, by name.

    `keep` makes of what holds the value that is remembered; two equal values are no change.
    """

    read: Callable[[GroupState], Collection[str]]
    write: Callable[[GroupState, Any], None]
    keep: Callable[[Mapping[str, Any]], Collection[str]]


def open_alarms(kind: str) -> Memory:
    """The memory of an alarm that has no field of its own: `GroupState.open_alarms`, under its kind."""

    def write(state: GroupState, names: tuple[str, ...]) -> None:
        if names:
            state.open_alarms[kind] = names
        else:
            state.open_alarms.pop(kind, None)

    return Memory(lambda state: state.open_alarms.get(kind, ()), write, lambda holding: tuple(sorted(holding)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting(Generic[V]):
    """An alarm as a rule of the table, which speaks only on the live tail.

    Attributes:
        holds: what holds at the end of a step: name → what is to be said of it.
        opened: the finding, or findings, of what holds and was not reported; never asked for nothing.
        cleared: the same of names that were reported and hold no longer.
        memory: where is remembered what was reported.
    """

    holds: Callable[[Transition], Mapping[str, V]]
    opened: Callable[[Transition, Mapping[str, V]], Iterable[Finding]]
    cleared: Callable[[Transition, list[str]], Iterable[Finding]]
    memory: Memory

    def __call__(self, transition: Transition) -> Iterator[Finding]:
        """Say what opens, then what clears."""
        holding, reported = self.holds(transition), self.memory.read(transition.state)
        kept = self.memory.keep(holding)
        if not transition.live:
            transition.withheld = transition.withheld or kept != reported
            return
        opened, cleared = opened_and_cleared(reported, holding)
        if opened:
            yield from self.opened(transition, opened)
        if cleared:
            yield from self.cleared(transition, cleared)
        self.memory.write(transition.state, kept)
