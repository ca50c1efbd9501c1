"""What lasts: an alarm that opens with its cause, is reported once, and clears with its cause.

    the cause      was reported   the alarm
    holds          no             opens: one finding
    holds          yes            lasts: nothing
    is over        yes            clears: one finding, or none where the kind has no end
    is over        no             is closed: nothing

What is reported is remembered in `GroupState.alarms`, which only this module writes. A rule that asks again with each
step what holds says it whole (`Lasting`, `changes`), so no alarm outlives its cause; one whose cause is a moment opens
and closes it (`opened`, `closed`). While a group catches up nothing opens and nothing clears: the step is marked as
withheld, and asked again when the group is live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from coordinator_model.kinds.table import ALARMS, ONLY
from coordinator_model.rules.transition import Transition
from coordinator_model.state.alarms import Opened
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState

V = TypeVar("V")


class About(NamedTuple):
    """What is remembered of an alarm beside its name and its beginning; see `Opened`."""

    members: tuple[str, ...] = ()
    detail: str = ""


def changes(
    state: GroupState, kind: str, holding: Mapping[str, About], position: Position
) -> tuple[list[str], list[str]]:
    """Remember what holds of a kind; (names of what opens, names of what is over).

    One of another detail than before opens again.
    """
    was = state.open(kind)
    new = [name for name, about in holding.items() if name not in was or was[name].detail != about.detail]
    over = [name for name in was if name not in holding]
    if not holding:
        state.alarms.pop(kind, None)
        return new, over
    begun = Opened(since_ms=position.timestamp_ms, offset=position.offset)
    state.alarms[kind] = {
        name: replace(begun if name in new else was[name], members=about.members, detail=about.detail)
        for name, about in sorted(holding.items())
    }
    return new, over


def opened(  # noqa: PLR0913 - what is remembered of one
    state: GroupState,
    kind: str,
    position: Position,
    name: str = ONLY,
    members: tuple[str, ...] = (),
    detail: str | None = None,
) -> None:
    """One alarm opens, or is about these members now, and of another detail where one is given."""
    was = state.open(kind).get(name) or Opened(since_ms=position.timestamp_ms, offset=position.offset)
    now = replace(was, members=members, detail=was.detail if detail is None else detail)
    state.alarms.setdefault(kind, {})[name] = now


def closed(state: GroupState, kind: str, name: str = ONLY) -> None:
    """One alarm is over, or was never open."""
    names = state.alarms.get(kind, {})
    names.pop(name, None)
    if not names:
        state.alarms.pop(kind, None)


def _nothing_more(_: str, __: object) -> About:
    return About()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting(Generic[V]):
    """An alarm as a rule of the table, which speaks only on the live tail.

    Attributes:
        kind: of its events, under which it is remembered.
        holds: what holds at the end of a step: name → what is to be said of it.
        opened: the finding, or findings, of what holds and was not reported; never asked for nothing.
        cleared: the same of names that were reported and hold no longer; asked before they are forgotten.
        about: what is remembered of one.
    """

    kind: str
    holds: Callable[[Transition], Mapping[str, V]]
    opened: Callable[[Transition, Mapping[str, V]], Iterable[Finding]]
    cleared: Callable[[Transition, list[str]], Iterable[Finding]]
    about: Callable[[str, V], About] = _nothing_more

    def __post_init__(self) -> None:
        """Refuse what is no row of `kinds/table.py`, or one that does not open and clear: nothing would show it.

        Raises:
            ValueError: its kind is not among `ALARMS`.
        """
        if self.kind not in ALARMS:
            raise ValueError(f"found kind={self.kind!r}, accepted: {', '.join(ALARMS)}")

    def __call__(self, transition: Transition) -> Iterator[Finding]:
        """Say what opens, then what clears."""
        holding, was = self.holds(transition), transition.state.open(self.kind)
        about = {name: self.about(name, of) for name, of in holding.items()}
        if not transition.live:
            remembered = {name: About(of.members, of.detail) for name, of in was.items()}
            transition.withheld = transition.withheld or about != remembered
            return
        over = [name for name in was if name not in holding]
        ends = list(self.cleared(transition, over)) if over else []
        new, _ = changes(transition.state, self.kind, about, transition.position)
        if new:
            yield from self.opened(transition, {name: holding[name] for name in new})
        yield from ends
