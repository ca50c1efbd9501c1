"""Groups whose records were written with a time that cannot be: a broker's clock is wrong, or was set.

What hangs is found by the clock: now, minus the time of a record. A record that is read as soon as it is written was
written about now, whatever it says; so where that differs by more than `DOUBT_MS`, time runs from when it was read, as
long as the group is between two states. What was in the log already when this monitor became ready has the time it
says: nobody saw it being written.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from coordinator_model.group_state import GroupState

DOUBT_MS: Final = 120_000
"""More than a busy stream is late, and than a look is by `ClockJumps`."""


class _Seen(NamedTuple):
    step_offset: int
    read_ms: int | None


class RecordClocks:
    """Looks at the groups that are between two states; used by one thread."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] | None = None

    def look(self, groups: Iterable[GroupState], now_ms: int) -> Mapping[str, int]:
        """Group → since when its time runs, of those whose records say another one.

        Args:
            groups: all that are between two states now, of a log that has been read to its end.
            now_ms: the wall clock.
        """
        former, found = self._seen, {}
        for state in groups:
            known = (former or {}).get(state.name)
            if known is None or known.step_offset != state.last_step_offset:
                is_odd = former is not None and abs(now_ms - state.last_step_ms) > DOUBT_MS
                known = _Seen(state.last_step_offset, now_ms if is_odd else None if known is None else known.read_ms)
            found[state.name] = known
        self._seen = found
        return {name: of.read_ms for name, of in found.items() if of.read_ms is not None}
