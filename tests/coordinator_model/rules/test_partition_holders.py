"""Since when the partitions that members hold are what they are: where the end of an alarm about them stands."""

from lab.builders import group_metadata, group_metadata_tombstone, member, offset_commit
from lab.coordinator_events import consumer_group_deleted, consumer_join, consumer_moves
from tests.histories import Moment, at, history

COMMITTED = at(1_000, offset_commit("g", "t", 0, 5))
CLASSIC = at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})]))
CONSUMER = at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}))


def held_ms(*moments: Moment) -> int:
    """When it was last written that a member holds other partitions."""
    return history(*moments).replayed().states["g"].held_ms


def test_group_that_goes_with_its_members_holds_nothing_from_then_on() -> None:
    """Its offsets are left, and it is a group for their sake."""
    assert 2_000 == held_ms(CLASSIC, COMMITTED, at(2_000, group_metadata_tombstone("g")))
    assert 2_000 == held_ms(CONSUMER, COMMITTED, at(2_000, *consumer_group_deleted("g", ["a"])))


def test_record_that_changes_no_partitions_changes_no_holder() -> None:
    """A heartbeat that moves a member to a new epoch, and a generation that gives out the same."""
    assert 0 == held_ms(CONSUMER, at(2_000, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0]})))
    assert 0 == held_ms(CLASSIC, at(2_000, group_metadata("g", generation=2, members=[member("a", {"t": [0]})])))


def test_partition_to_be_revoked_is_held_until_it_is_let_go() -> None:
    """Asked to revoke it, the member holds it as one that is pending."""
    asked = at(2_000, *consumer_moves("g", "a", epoch=2, state=1, assigned={}, pending={"t": [0]}))
    let_go = at(3_000, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={}))

    assert (2_000, 3_000) == (held_ms(CONSUMER, asked), held_ms(CONSUMER, asked, let_go))


def test_one_member_that_holds_others_is_a_change_beside_many_that_do_not() -> None:
    """A partition that has no owner any more, or has one now."""
    members = [member("a", {"t": [0]}), member("b", {"t": [1]})]
    first = at(0, group_metadata("g", generation=1, members=members))
    second = at(2_000, group_metadata("g", generation=2, members=[member("a", {"t": [0]}), member("b", {})]))

    assert 2_000 == held_ms(first, second)
