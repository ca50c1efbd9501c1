"""When an upgrade is complete: the last classic member has left, and its former members are there again.

Members of a roll are replaced one by one, in one of two ways: the new one comes before the old one goes, or after.
"""

from collections.abc import Iterable

import pytest

from lab.builders import RecordBytes, group_metadata, group_metadata_tombstone, member
from lab.coordinator_events import consumer_join, consumer_leave, converted_to_consumer, speaks_classic
from tests.histories import Moment, Reported, at, history


def classic(generation: int, *members: str) -> RecordBytes:
    """A generation of classic members, none of which was assigned anything: that is not what this is about."""
    return group_metadata("g", generation=generation, members=[member(name, {}) for name in members])


def converts(generation: int, old: Iterable[str], new: str) -> list[RecordBytes]:
    """The first upgraded member joins."""
    return [
        *converted_to_consumer("g", generation=generation, members={name: {} for name in old}),
        *consumer_join("g", new, epoch=generation + 1, targets={new: {}}),
    ]


def joins(epoch: int, name: str, *, as_classic: bool = False) -> list[RecordBytes]:
    """A member joins the consumer group."""
    return consumer_join("g", name, epoch=epoch, targets={name: {}}, classic=speaks_classic() if as_classic else None)


def leaves(epoch: int, name: str) -> list[RecordBytes]:
    """A member leaves the consumer group."""
    return consumer_leave("g", name, epoch=epoch)


OLD_FIRST = (
    at(0, classic(1, "c1", "c2", "c3")),
    at(1_000, classic(2, "c2", "c3")),
    at(2_000, *converts(2, ("c2", "c3"), "n1")),
    at(3_000, *leaves(4, "c2")),
    at(4_000, *joins(5, "n2")),
    at(5_000, *leaves(6, "c3")),
)
NEW_FIRST = (
    at(0, classic(1, "c1", "c2")),
    at(2_000, *converts(1, ("c1", "c2"), "n1")),
    at(3_000, *leaves(3, "c1")),
    at(4_000, *joins(4, "n2")),
    at(5_000, *leaves(5, "c2")),
)
COMES = at(6_000, *joins(7, "n3"))
COMES_AS_IT_WAS = at(6_000, *joins(7, "c4", as_classic=True))


def completed(reported: Reported) -> list[tuple[int, int, bool]]:
    """(members before, replacements awaited, inferred) of each upgrade completed."""
    return [
        (event.detail["members_before"], event.detail["replacements_awaited"], event.inferred)
        for event in reported.events
        if event.kind == "upgrade_completed"
    ]


def kinds(reported: Reported) -> list[tuple[int, str]]:
    """What was reported of upgrades and downgrades, and when."""
    return [(of.time_ms, of.kind) for of in reported.events if of.kind.startswith(("upgrade_", "downgrade_"))]


# -- who is awaited ---------------------------------------------------------------------------------------------------


def test_member_of_a_roll_is_awaited_when_the_last_classic_one_has_left() -> None:
    """The classic group had three members shortly before: the third is on its way. That is inferred."""
    assert [(3, 1, True)] == completed(history(*OLD_FIRST).replayed())
    assert [(3, 1, True)] == completed(history(*OLD_FIRST, COMES).replayed())


def test_nobody_is_awaited_where_the_new_members_came_first() -> None:
    """Each was there before the old one went; nothing is inferred then."""
    assert [(2, 0, False)] == completed(history(*NEW_FIRST).replayed())


def test_members_that_left_long_before_are_not_awaited() -> None:
    """A group was made smaller, and ten minutes later it was upgraded."""
    later = [Moment(of.time_ms + (700_000 if of.time_ms > 1_000 else 0), of.records) for of in OLD_FIRST]

    assert [(2, 0, False)] == completed(history(*later).replayed())


def test_largest_size_of_the_last_minutes_counts() -> None:
    """Two of three had left before the first upgraded one came."""
    reported = history(
        at(0, classic(1, "c1", "c2", "c3")),
        at(1_000, classic(2, "c2", "c3")),
        at(2_000, classic(3, "c3")),
        at(3_000, *converts(3, ("c3",), "n1")),
        at(4_000, *leaves(5, "c3")),
    ).replayed()

    assert [(3, 2, True)] == completed(reported)


def test_offline_upgrade_awaits_the_members_that_were_stopped() -> None:
    """All were stopped, the first of them is back."""
    reported = history(
        at(0, classic(1, "c1", "c2")),
        at(1_000, classic(2, "c2")),
        at(2_000, group_metadata("g", generation=3)),
        at(3_000, group_metadata_tombstone("g"), *joins(2, "n1")),
    ).replayed()

    assert [(2, 1, True)] == completed(reported)
    assert [False] == [of["online"] for of in reported.details("upgrade_completed")]


# -- who comes back as it was -----------------------------------------------------------------------------------------


def test_awaited_member_that_comes_back_as_it_was_is_no_downgrade() -> None:
    """It restarted without its new configuration: the upgrade goes on, and is completed once more."""
    reported = history(*OLD_FIRST, COMES_AS_IT_WAS).replayed()
    done = history(*OLD_FIRST, COMES_AS_IT_WAS, at(7_000, *leaves(8, "c4")), at(8_000, *joins(9, "n4"))).replayed()

    assert [(2_000, "upgrade_started"), (5_000, "upgrade_completed"), (6_000, "upgrade_started")] == kinds(reported)
    assert ("upgrading", 6_000) == (view(reported)["phase"], view(reported)["mixed_since"])
    (*_, resumed) = (event for event in reported.events if event.kind == "upgrade_started")
    assert (True, {"online": True, "resumed": True, "members": 3, "upgraded_members": 2}) == (
        resumed.inferred,
        resumed.detail,
    )
    assert {} == reported.alarms()
    assert [(3, 1, True), (3, 1, True)] == completed(done)
    assert "upgraded" == view(done)["phase"]


def view(reported: Reported) -> dict[str, object]:
    """The Migration."""
    return dict(reported.view("g")["migration"])


@pytest.mark.parametrize(
    "then",
    [
        # Everyone is there: a newcomer is not awaited.
        (COMES, at(7_000, *joins(8, "c4", as_classic=True))),
        # An upgraded one went first, as it does on the way down, and no one is awaited any more.
        (COMES, at(7_000, *leaves(8, "n1")), at(8_000, *joins(9, "c4", as_classic=True))),
        # No one restarts for so long.
        (at(5_000 + 600_001, *joins(7, "c4", as_classic=True)),),
    ],
)
def test_other_classic_members_that_come_begin_a_downgrade(then: tuple[Moment, ...]) -> None:
    """That is a warning, as it may not be meant."""
    reported = history(*OLD_FIRST, *then).replayed()

    assert "downgrade_started" == kinds(reported)[-1][1]
    assert "downgrading" == view(reported)["phase"]


def test_classic_member_that_comes_while_both_kinds_are_awaited_shows_no_way() -> None:
    """The last classic one restarts while an upgraded one is down, or a downgrade begins: the next one shows which."""
    unclear = (at(5_500, *leaves(7, "n1")), at(6_000, *joins(8, "c4", as_classic=True)))
    reported = history(*OLD_FIRST, *unclear).replayed()
    up = history(*OLD_FIRST, *unclear, at(7_000, *joins(9, "n1-again")), at(8_000, *joins(10, "n4"))).replayed()
    down = history(*OLD_FIRST, *unclear, at(7_000, *joins(9, "c5", as_classic=True))).replayed()

    assert None is view(reported)["phase"]
    assert "upgrade_completed" == kinds(reported)[-1][1]
    assert ("upgrading", "upgrade_started") == (view(up)["phase"], kinds(up)[-1][1])
    assert ("downgrading", "downgrade_started") == (view(down)["phase"], kinds(down)[-1][1])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_conversions_are_reported_alike_whatever_the_batches(size: int) -> None:
    """What is remembered of sizes survives a checkpoint at any record."""
    log = history(*OLD_FIRST, COMES_AS_IT_WAS)

    assert log.replayed().event_texts() == log.replayed_in_batches([size] * (len(log) // size)).event_texts()


def test_size_before_is_shown_while_an_upgrade_is_under_way() -> None:
    """What the share of upgraded members is to come to."""
    assert 3 == view(history(*OLD_FIRST[:3]).replayed())["members_before"]
    assert None is view(history(*OLD_FIRST).replayed())["members_before"]
    assert {"upgrade": 1, "downgrade": 0} == view(history(*OLD_FIRST).replayed())["conversions"]
