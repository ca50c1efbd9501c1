"""What nothing is written of: overdue rebalances and rolls nobody is at, told by the clock."""

from coordinator_model import overdue
from coordinator_model.group_state import GroupState
from coordinator_model.replica import Position, Replica
from tests.builders import (
    RecordBytes,
    classic_member_metadata,
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_target_assignment,
    consumer_group_target_assignment_epoch,
    subscription,
)

WRITTEN_MS = 1_000_000
TIMEOUT_MS = 30_000


def group_after(*records: RecordBytes) -> GroupState:
    """A group as one coordinator event left it."""
    replica = Replica()
    for offset, (key, value) in enumerate(records):
        replica.replay(Position(0, offset, WRITTEN_MS), key, value)
    replica.settle()
    return replica.groups["g"]


def kinds(state: GroupState, after_ms: int) -> list[str]:
    """Kinds of what is overdue so long after the last record."""
    return [finding.kind for finding in overdue.findings(state, WRITTEN_MS + after_ms)]


def revoking() -> GroupState:
    """A member that has to give up a partition and has not yet."""
    return group_after(
        consumer_group_member_subscription("g", "a", topics=["t"], rebalance_timeout_ms=TIMEOUT_MS),
        consumer_group_epoch("g", 3),
        consumer_group_target_assignment("g", "a", {"t": [0]}),
        consumer_group_target_assignment_epoch("g", 3),
        consumer_group_current_assignment(
            "g", "a", epoch=2, state=1, assigned={"t": [0]}, pending_revocation={"t": [1]}
        ),
    )


def mixed() -> GroupState:
    """A group of a classic and a consumer-protocol member, both where they should be."""
    return group_after(
        consumer_group_member_subscription(
            "g", "a", topics=["t"], classic=classic_member_metadata(range=subscription(["t"]))
        ),
        consumer_group_member_subscription("g", "b", topics=["t"]),
        consumer_group_epoch("g", 2),
        consumer_group_target_assignment_epoch("g", 2),
        consumer_group_current_assignment("g", "a", epoch=2),
        consumer_group_current_assignment("g", "b", epoch=2),
    )


def test_member_past_its_rebalance_timeout_is_stuck_and_named_with_what_it_holds() -> None:
    """The finding says who is waited for, and which partitions it will not release."""
    (finding,) = overdue.findings(revoking(), WRITTEN_MS + TIMEOUT_MS + overdue.GRACE_MS + 1)

    assert "rebalance_stuck" == finding.kind
    assert finding.inferred
    (member,) = finding.detail["members"]
    assert "a" == member["member_id"]
    assert [[1]] == list(member["will_not_release"].values())


def test_member_within_its_rebalance_timeout_is_not_stuck() -> None:
    """Revoking takes as long as the member was promised."""
    assert [] == kinds(revoking(), TIMEOUT_MS + overdue.GRACE_MS)


def test_target_that_is_never_computed_is_a_stuck_assignor() -> None:
    """A group epoch ahead of the assignment epoch for a minute is nobody's revocation."""
    state = group_after(
        consumer_group_member_subscription("g", "a", topics=["t"], rebalance_timeout_ms=TIMEOUT_MS * 100),
        consumer_group_target_assignment_epoch("g", 2),
        consumer_group_current_assignment("g", "a", epoch=2),
        consumer_group_epoch("g", 3),
    )

    assert [] == kinds(state, overdue.ASSIGNING_MS)
    assert ["rebalance_stuck"] == kinds(state, overdue.ASSIGNING_MS + 1)


def test_stable_group_is_never_overdue() -> None:
    """Silence of a group that is where it should be means nothing."""
    state = group_after(
        consumer_group_member_subscription("g", "a", topics=["t"]),
        consumer_group_epoch("g", 2),
        consumer_group_target_assignment_epoch("g", 2),
        consumer_group_current_assignment("g", "a", epoch=2),
    )

    assert [] == kinds(state, 10**9)


def test_roll_that_nobody_goes_on_with_is_stalled_after_half_an_hour() -> None:
    """A mixed group in which no member came or went for half an hour."""
    assert [] == kinds(mixed(), overdue.STALLED_MS)
    assert ["migration_stalled"] == kinds(mixed(), overdue.STALLED_MS + 1)


def test_finding_belongs_to_the_last_record_of_the_group() -> None:
    """So it keeps its id however often it is looked for."""
    assert (0, 4, WRITTEN_MS) == (
        overdue.place(revoking()).partition,
        overdue.place(revoking()).offset,
        overdue.place(revoking()).timestamp_ms,
    )
