"""Whether a group is: a broker lists it while a membership record or a committed offset of it is live.

    the group                      was said                      finding
    has its first record           nothing, or that it ended     group_created, before all else of the step
    has lost its last record       that it is                    group_deleted, after all else of the step

A group that only commits exists by its offsets, so that commits ask the same question (`offset_commits.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator_model.rules.transition import Transition
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState


def announce(state: GroupState) -> Iterator[Finding]:
    """Say that a group came to be, or is no more, once each."""
    if state.exists and not state.announced:
        state.announced = True
        yield Finding("group_created", {"type": state.type, "simple": state.simple})
    elif not state.exists and state.announced:
        state.announced = False
        yield Finding("group_deleted")


def created(transition: Transition) -> Iterable[Finding]:
    """`group_created` of a group that is there at the step's end."""
    return announce(transition.state) if transition.state.exists else ()


def deleted(transition: Transition) -> Iterable[Finding]:
    """`group_deleted` of a group that is not."""
    return () if transition.state.exists else announce(transition.state)
