"""Bugs of Kafka's own replaying: logs on which loading a partition fails, or failed, and which a monitor must survive.

What a bug does to a group is from its issue; the histories are drawn up after it.
"""

import pytest

from coordinator_model.replica import Replica
from lab.builders import (
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
)
from lab.coordinator_events import (
    consumer_join,
    consumer_moves,
    converted_to_classic,
    converted_to_consumer,
)
from tests.histories import History, at, history

TWO_MEMBERS = (
    at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
    at(5_000, *consumer_join("g", "b", epoch=3, targets={"a": {"t": [1]}, "b": {"t": [0]}}, assigned={})),
)


def test_kafka_17306_group_that_only_committed_becomes_a_consumer_group() -> None:
    """KAFKA-17306: loading met offsets first, made a simple classic group of them, and then refused the members.

    The members make it a consumer group, and its offsets stay.
    """
    reported = history(
        at(0, offset_commit("g", "t", 0, 5)),
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
    ).replayed()

    assert ("consumer", "Stable 2/2", {"t/0": 5}) == (
        reported.view("g")["type"],
        reported.status("g"),
        reported.offsets("g"),
    )
    assert [] == reported.timed_alarms()


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
    reported = history(*(at(number, kept[of]) for number, of in enumerate(order))).replayed()

    assert ("Stable 5/5", {"a": {"t": [0]}}) == (reported.status("g"), reported.owners("g"))
    assert [] == reported.timed_alarms()


def test_kafka_17306_tombstones_of_what_was_never_seen_are_nothing() -> None:
    """KAFKA-17306: what they ended is cleaned away, and they are not."""
    reported = history(
        at(0, group_metadata_tombstone("g"), consumer_group_partition_metadata_tombstone("g")),
        at(
            1,
            consumer_group_current_assignment_tombstone("g", "a"),
            consumer_group_target_assignment_tombstone("g", "a"),
            consumer_group_member_subscription_tombstone("g", "a"),
        ),
    ).replayed()

    assert ([], {}) == (reported.events, reported.views)


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
    reported = log.replayed(live_from=len(log) - 1)

    assert [] == reported.timed_alarms()
    assert ("Stable 3/3", {"a": {"t": [1]}, "b": {"t": [0]}}) == (reported.status("g"), reported.owners("g"))


def test_kafka_19862_same_log_on_the_live_tail_is_an_alarm() -> None:
    """The look-alike: nothing is cleaned beyond the end of the log, so there the same records are a duplicate."""
    assert [(7_000, "duplicate_assignment")] == read_while_cleaned().replayed().timed_alarms()


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
    reported = log.replayed(live_from=len(log) - 1)

    view = reported.view("g")
    assert ("classic", "Stable 7", {"c": {"t": [0, 1]}}) == (view["type"], reported.status("g"), reported.owners("g"))
    assert 0 == view["migration"]["leftovers"]
    assert [] == [kind for _, kind in reported.timed_alarms() if kind != "downgrade_started"]


@pytest.mark.parametrize("position", range(len(downgraded_with_the_upgrade_cleaned()) + 1))
def test_kafka_21117_cut_anywhere_it_ends_alike(position: int) -> None:
    """A restart in the middle of the conversion, too."""
    log = downgraded_with_the_upgrade_cleaned()

    whole, pieces = (reported.view("g") for reported in (log.replayed(), log.replayed_in_batches([position])))

    assert whole == pieces


def test_kafka_21117_live_classic_record_under_a_consumer_group_is_an_anomaly() -> None:
    """The look-alike: on the live tail the tombstone cannot be cleaned yet, so it was never written."""
    reported = downgraded_with_the_upgrade_cleaned().cut(12).replayed()

    assert [(10_000, "epoch_anomaly")] == reported.timed_alarms()
    assert ["one_kind"] == [detail["rule"] for detail in reported.details("epoch_anomaly")]


def test_replaying_any_of_them_record_by_record_never_throws() -> None:
    """Each prefix has a state; a broker that cannot load one takes its groups down with it."""
    for log in (read_while_cleaned(), downgraded_with_the_upgrade_cleaned()):
        replica = Replica()
        for record in log.records:
            replica.replay(record.place, record.key, record.value)
            replica.settle()
        assert len(log) == replica.counters.records
