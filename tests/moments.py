"""What a look with a clock finds of a state, and of whom it asks the coordinator."""

from coordinator_model.clocked import hang_suspicion, table
from coordinator_model.clocked.described import Described
from coordinator_model.clocked.moment import Moment
from coordinator_model.state.events import Event
from coordinator_model.state.group_state import GroupState


def overdue(
    state: GroupState,
    now_ms: int,
    moved_ms: int | None = None,
    read_ms: int | None = None,
    *,
    described: Described | None = None,
) -> list[Event]:
    """What the clocked rules say of an unsettled group."""
    moment = Moment(state=state, now_ms=now_ms, moved_ms=moved_ms, read_ms=read_ms, described=described)
    return table.events(moment, table.UNSETTLED)


def suspicion(state: GroupState, newest_commit_ms: int | None, now_ms: int, *, lags: bool) -> str | None:
    """Why a group's coordinator should be asked about it, from the group's state; None for no reason."""
    group = state.membership.classic_group
    if group is None or state.step is not None:
        return None
    return hang_suspicion.why(
        members=len(group.members),
        last_step_ms=state.last_step_ms,
        rounds_lost_ms=state.rounds_lost_ms,
        newest_commit_ms=newest_commit_ms,
        lags=lags,
        now_ms=now_ms,
    )
