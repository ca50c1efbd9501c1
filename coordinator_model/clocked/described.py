"""What a group's coordinator answers when it is asked for the state that it holds in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a group's coordinator answered (DescribeGroups), and since when it answers like that.

    `since_ms` is the first answer of an unbroken row that finds the group between two generations, with no record of
    the group in between: `step_offset` is the offset of the last one.
    """

    state: str
    members: int
    asked_ms: int
    since_ms: int
    step_offset: int

    @property
    def rebalancing(self) -> bool:
        """Between two generations."""
        return self.state in (PREPARING, COMPLETING)
