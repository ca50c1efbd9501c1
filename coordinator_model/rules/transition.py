"""What a rule is asked: a step of one group, from the membership before it to the membership after it.

A step is what the coordinator wrote for one thing that happened (`steps.py` says when it opens and closes). A rule
looks at the two memberships, remembers in the group's state what it needs for the next step, and yields findings. Rules
run in the order of `table.py`; what an earlier rule found in the same step is in `found`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Holders, Membership
from coordinator_model.state.rule_memory import Handover, Step


@dataclass(slots=True, kw_only=True)
class Transition:
    """One closed step of a group, or the end of the log without one."""

    state: GroupState
    """The group, whose membership is the one after the step. Rules change what they remember, never the membership."""
    before: Membership
    """The membership before the step; `after` itself where there is no step."""
    step: Step | None
    """The step. None where a group became live without a record of its own; only alarms of the live tail run then."""
    position: Position
    """Of the step's last record: where its events stand in the log, and when."""
    live: bool
    """False while catching up. A compacted log shows states that never were, so alarms wait for the live tail."""
    clock_jumped: bool = False
    """Whether the step is earlier than the one before by more than two brokers' clocks may differ (`clocks.py`)."""
    all_members: bool = False
    """Whether to ask of every member, because something may hold that no earlier step was asked for."""
    duplicates: Holders = field(default_factory=dict)
    """Partitions with two owners, as the rule of duplicates found them in this step."""
    former_handovers: tuple[Handover, ...] = ()
    """The hand-overs that were remembered before the step."""
    partitions_moved: int = 0
    """How many partitions another member took in this step, as the rule of hand-overs counted them."""
    withheld: bool = False
    """Set by an alarm that would open or clear if the group were live."""
    found: list[Finding] = field(default_factory=list)
    """What earlier rules found in this step."""

    @property
    def after(self) -> Membership:
        """The membership at the step's end."""
        return self.state.membership

    @property
    def time_ms(self) -> int:
        """When the step was written."""
        return self.position.timestamp_ms

    def earlier(self, kind: str) -> Finding | None:
        """What an earlier rule found of this kind in the same step; None for nothing."""
        return next((finding for finding in self.found if finding.kind == kind), None)


Rule = Callable[[Transition], Iterable[Finding]]
"""Yields what a step shows. It may remember in `Transition.state` what its row in the table says, and nothing else."""
