"""Bugs of Kafka's brokers and clients, as the log of a group that met them, and what the monitor says or does not say.

What a bug does to a group is from its issue; the histories are drawn up after it. A monitor that replays the
coordinator's log must itself survive the last of them: they are bugs of replaying.
"""

from typing import Any

import pytest

from coordinator_model import overdue
from coordinator_model.gate import Cluster
from coordinator_model.replica import Replica
from coordinator_model.upgrade_gate import upgrade_gate
from tests.builders import (
    RecordBytes,
    consumer_group_current_assignment,
    consumer_group_current_assignment_tombstone,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_member_subscription_tombstone,
    consumer_group_partition_metadata_tombstone,
    consumer_group_target_assignment,
    consumer_group_target_assignment_epoch,
    consumer_group_target_assignment_tombstone,
    group_metadata,
    group_metadata_tombstone,
    member,
    offset_commit,
    sticky_user_data,
    subscription,
    topic_id,
)
from tests.coordinator_events import (
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_classic,
    converted_to_consumer,
    throttled_consumer_join,
)
from tests.histories import History, Told, at, history

T0 = f"{topic_id('t')}/0"


def generation(number: int, *members: Any, protocol: str) -> RecordBytes:
    """A generation of group g."""
    return group_metadata("g", generation=number, members=members, protocol=protocol)


def remembers(member_id: str, given: dict[str, list[int]], had: dict[str, list[int]], generation: int | None) -> Any:
    """A member of the sticky assignor with what it was given and what it claims; generation None is the old format."""
    data = sticky_user_data(had, generation)
    return member(member_id, given, subscription_bytes=subscription(user_data=data))


def alarms(told: Told) -> list[tuple[int, str]]:
    """(time, kind) of everything beyond information."""
    return [(event.time_ms, event.kind) for event in told.events if event.severity != "info"]


# -- classic groups ---------------------------------------------------------------------------------------------------


def paused_and_back(claim_generation: int | None, *, leader_believes_it: bool) -> Told:
    """Member a owned 0 and 1, was thrown out while it paused, and comes back claiming them; b and c have them now."""
    a_gets: dict[str, list[int]] = {"t": [0, 1]} if leader_believes_it else {"t": [3]}
    c_gets: dict[str, list[int]] = {"t": [1, 3]} if leader_believes_it else {"t": [1]}
    fresh = claim_generation if claim_generation is None else 2
    return history(
        at(
            0,
            generation(
                1, member("a", {"t": [0, 1]}), member("b", {"t": [2]}), member("c", {"t": [3]}), protocol="sticky"
            ),
        ),
        at(
            60_000,
            generation(2, member("b", {"t": [0, 2]}), member("c", {"t": [1, 3]}), protocol="sticky"),
        ),
        at(
            90_000,
            generation(
                3,
                remembers("a", a_gets, {"t": [0, 1]}, claim_generation),
                remembers("b", {"t": [0, 2]}, {"t": [0, 2]}, fresh),
                remembers("c", c_gets, {"t": [1, 3]}, fresh),
                protocol="sticky",
            ),
        ),
    ).replayed()


def test_kafka_7026_sticky_assignor_gives_a_partition_to_two_members() -> None:
    """KAFKA-7026, KIP-341: without a generation in the claim the leader cannot tell that it is old.

    The duplicate is critical and names partitions and members; the claim has no generation, so that it is stale
    cannot be told. Nobody should upgrade such a group.
    """
    told = paused_and_back(None, leader_believes_it=True)

    assert [(90_000, "duplicate_assignment")] == alarms(told)
    assert [{"partitions": {"t/0": ("a", "b"), "t/1": ("a", "c")}}] == told.details("duplicate_assignment")
    reasons = upgrade_gate([told.states["g"]], Cluster())["reasons"]
    assert "duplicate_assignment" in {reason["code"] for reason in reasons if reason["effect"] == "stop"}


def test_kip_341_generation_makes_the_old_claim_harmless() -> None:
    """With the generation the leader ignores the claim: it is worth a warning, and there is no duplicate."""
    told = paused_and_back(1, leader_believes_it=False)

    assert [(90_000, "stale_claim")] == alarms(told)
    assert [
        {"member_id": "a", "claimed_generation": 1, "newest_generation": 2, "partitions": {"t": [0, 1]}}
    ] == told.details("stale_claim")


def test_kafka_12984_cooperative_assignor_is_wedged_by_an_invalid_claim() -> None:
    """KAFKA-12984: two members claim t/0 each time they join; it counts as still to be revoked, and goes to nobody.

    Each generation is told as claims that contradict each other, and when there are too many of them in five minutes,
    as a storm, once. No duplicate is told: there is none.
    """
    wedged = [
        generation(
            number,
            member("a", {"t": [1]}, owned={"t": [0, 1]}, owned_generation=number - 1),
            member("b", {"t": [2]}, owned={"t": [0, 2]}, owned_generation=number - 1),
            protocol="cooperative-sticky",
        )
        for number in range(2, 41)
    ]
    first = generation(1, member("a", {"t": [0, 1]}), member("b", {"t": [2]}), protocol="cooperative-sticky")
    told = history(*(at(3_000 * number, record) for number, record in enumerate((first, *wedged)))).replayed()

    kinds = [kind for _, kind in alarms(told)]
    assert {"stale_claim": 39, "rebalance_storm": 1} == {kind: kinds.count(kind) for kind in kinds}
    assert {"contradicting": True, "claimed_generation": 39, "partitions": {"t/0": ("a", "b")}} == told.details(
        "stale_claim"
    )[-1]
    assert {"a": {"t": [1]}, "b": {"t": [2]}} == told.owners("g")


def test_kafka_14639_partition_is_revoked_and_assigned_in_a_single_round() -> None:
    """KAFKA-14639: t/1 goes from a to b while a, which joined claiming it, has not been told to stop reading it.

    There is no duplicate in the record, so the hand-over is all there is to tell.
    """
    told = history(
        at(0, generation(1, member("a", {"t": [0, 1]}), protocol="cooperative-sticky")),
        at(
            9_000,
            generation(
                2,
                member("a", {"t": [0]}, owned={"t": [0, 1]}, owned_generation=1),
                member("b", {"t": [1]}),
                protocol="cooperative-sticky",
            ),
        ),
    ).replayed()

    assert [(9_000, "handover_without_revocation")] == alarms(told)
    assert [{"from_member_id": "a", "to_member_id": "b", "partitions": {"t": [1]}, "generation": 2}] == told.details(
        "handover_without_revocation"
    )


# -- consumer groups --------------------------------------------------------------------------------------------------

TWO_MEMBERS = (
    at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
    at(5_000, *consumer_join("g", "b", epoch=3, targets={"a": {"t": [1]}, "b": {"t": [0]}}, assigned={})),
)


def test_kafka_16147_partition_is_assigned_to_two_members() -> None:
    """KAFKA-16147: the coordinator loses who owns t/0 and gives it to b while a has yet to revoke it.

    Critical as soon as b's record shows it, and over when a has let go.
    """
    told = history(
        *TWO_MEMBERS,
        at(6_000, *consumer_moves("g", "a", epoch=2, assigned={"t": [1]}, pending={"t": [0]}, state=1)),
        at(7_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [0]})),
        at(8_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [1]})),
    ).replayed()

    assert [(7_000, "duplicate_assignment")] == alarms(told)
    assert [{"partitions": {T0: ("a", "b")}}] == told.details("duplicate_assignment")
    assert "duplicate_assignment_cleared" in told.kinds()[8_000]


def test_kafka_20442_empty_group_keeps_its_epoch_ahead_of_its_target() -> None:
    """KAFKA-20442: the last member's leaving bumps the group epoch, and nobody is left for whom to compute a target.

    The group is Empty, not Assigning, no rebalance is under way, and none is found stuck however long it lasts.
    """
    told = history(TWO_MEMBERS[0], at(9_000, *consumer_leave("g", "a", epoch=3))).replayed()

    assert "Empty 3/2" == told.status("g")
    assert [] == alarms(told)
    assert [] == overdue.events(told.states["g"], 9_000 + 7 * 86_400_000)


def test_kafka_20442_group_with_a_member_that_waits_for_its_target_is_told() -> None:
    """The look-alike: somebody is there, and no target comes."""
    told = history(TWO_MEMBERS[0], at(500, *throttled_consumer_join("g", "b", epoch=3, assignment_epoch=2))).replayed()

    (event,) = overdue.events(told.states["g"], 500 + overdue.ASSIGNING_MS + 1)
    assert ("rebalance_stuck", "assignor") == (event.kind, event.detail["waiting_for"])


# -- bugs of replaying ------------------------------------------------------------------------------------------------


def test_kafka_17306_group_that_only_committed_becomes_a_consumer_group() -> None:
    """KAFKA-17306: loading met offsets first, made a simple classic group of them, and then refused the members.

    The members make it a consumer group, and its offsets stay.
    """
    told = history(
        at(0, offset_commit("g", "t", 0, 5)),
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
    ).replayed()

    assert ("consumer", "Stable 2/2", {"t/0": 5}) == (told.view("g")["type"], told.status("g"), told.offsets("g"))
    assert [] == alarms(told)


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 4, 0, 3, 1)])
def test_kafka_17306_records_are_taken_in_any_order(order: tuple[int, ...]) -> None:
    """KAFKA-17306: the cleaner keeps the last record of each key, wherever that stands; loading assumed an order."""
    kept = (
        consumer_group_member_subscription("g", "a"),
        consumer_group_epoch("g", 5),
        consumer_group_target_assignment("g", "a", {"t": [0]}),
        consumer_group_target_assignment_epoch("g", 5),
        consumer_group_current_assignment("g", "a", epoch=5, assigned={"t": [0]}),
    )
    told = history(*(at(number, kept[of]) for number, of in enumerate(order))).replayed()

    assert ("Stable 5/5", {"a": {"t": [0]}}) == (told.status("g"), told.owners("g"))
    assert [] == alarms(told)


def test_kafka_17306_tombstones_of_what_was_never_seen_are_nothing() -> None:
    """KAFKA-17306: what they ended is cleaned away, and they are not."""
    told = history(
        at(0, group_metadata_tombstone("g"), consumer_group_partition_metadata_tombstone("g")),
        at(
            1,
            consumer_group_current_assignment_tombstone("g", "a"),
            consumer_group_target_assignment_tombstone("g", "a"),
            consumer_group_member_subscription_tombstone("g", "a"),
        ),
    ).replayed()

    assert ([], {}) == (told.events, told.views)


def read_while_cleaned() -> History:
    """KAFKA-19862: t/0 went from a to b and b left; of a's records an old segment's was read before it was cleaned.

    The record in which a gave t/0 up, before b got it, was cleaned when the reader came there: a's next one is later.
    """
    return history(
        *TWO_MEMBERS,
        at(7_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [0]})),
        at(60_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [1]})),
        at(61_000, consumer_group_member_subscription("g", "a", rack_id="r")),
    )


def test_kafka_19862_partition_still_owned_while_the_cleaner_runs() -> None:
    """KAFKA-19862: Kafka's own loading failed on it. While catching up, what cannot have been is no alarm."""
    log = read_while_cleaned()
    told = log.replayed(live_from=len(log) - 1)

    assert [] == alarms(told)
    assert ("Stable 3/3", {"a": {"t": [1]}, "b": {"t": [0]}}) == (told.status("g"), told.owners("g"))


def test_kafka_19862_same_log_on_the_live_tail_is_an_alarm() -> None:
    """The look-alike: nothing is cleaned beyond the end of the log, so there the same records are a duplicate."""
    assert [(7_000, "duplicate_assignment")] == alarms(read_while_cleaned().replayed())


def downgraded_with_the_upgrade_cleaned() -> History:
    """KAFKA-21117: the classic group's last record has taken the place of the tombstone with which the upgrade began.

    So the members of the consumer group come to a classic group that never ended.
    """
    upgraded = converted_to_consumer("g", generation=5, members={"c": {"t": [0, 1]}})
    assert group_metadata_tombstone("g") == upgraded[0]
    return history(
        at(0, group_metadata("g", generation=5, members=[member("c", {"t": [0, 1]})])),
        at(
            10_000,
            *upgraded[1:],
            *consumer_join("g", "n", epoch=6, targets={"c": {"t": [0]}, "n": {"t": [1]}}, assigned={}),
        ),
        at(
            20_000,
            *converted_to_classic("g", all_members=["c", "n"], generation=6, remaining={"c": {"t": [0]}}),
        ),
        at(23_000, group_metadata("g", generation=7, members=[member("c", {"t": [0, 1]})])),
    )


def test_kafka_21117_upgrade_tombstone_is_cleaned_and_the_group_downgraded() -> None:
    """KAFKA-21117, KAFKA-21102: a 4.3.1 broker fails to load such a partition.

    The replica ends with the classic group as it is, nothing left over, and no alarm of what it saw on the way.
    """
    log = downgraded_with_the_upgrade_cleaned()
    told = log.replayed(live_from=len(log) - 1)

    view = told.view("g")
    assert ("classic", "Stable 7", {"c": {"t": [0, 1]}}) == (view["type"], told.status("g"), told.owners("g"))
    assert 0 == view["migration"]["leftovers"]
    assert [] == [kind for _, kind in alarms(told) if kind != "downgrade_started"]


@pytest.mark.parametrize("position", range(len(downgraded_with_the_upgrade_cleaned()) + 1))
def test_kafka_21117_cut_anywhere_it_ends_alike(position: int) -> None:
    """A restart in the middle of the conversion, too."""
    log = downgraded_with_the_upgrade_cleaned()

    whole, pieces = (told.view("g") for told in (log.replayed(), log.replayed_in_batches([position])))

    assert whole == pieces


def test_kafka_21117_live_classic_record_under_a_consumer_group_is_an_anomaly() -> None:
    """The look-alike: on the live tail the tombstone cannot be cleaned yet, so it was never written."""
    told = downgraded_with_the_upgrade_cleaned().cut(12).replayed()

    assert [(10_000, "epoch_anomaly")] == alarms(told)
    assert ["one_kind"] == [detail["rule"] for detail in told.details("epoch_anomaly")]


def test_replaying_any_of_them_record_by_record_never_throws() -> None:
    """Each prefix has a state; a broker that cannot load one takes its groups down with it."""
    for log in (read_while_cleaned(), downgraded_with_the_upgrade_cleaned()):
        replica = Replica()
        for record in log.records:
            replica.replay(record.place, record.key, record.value)
            replica.settle()
        assert len(log) == replica.counters.records
