"""Causes of rebalances that only one kind of record shows: expressions, partition counts, members that expire."""

from typing import Any

from coordinator_model.rules.rebalances import DEFAULT_REBALANCE_TIMEOUT_MS
from lab.builders import (
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_partition_metadata,
    consumer_group_partition_metadata_tombstone,
    consumer_group_regular_expression,
    group_metadata,
    member,
    topic_id,
)
from lab.coordinator_events import consumer_gone, consumer_join, consumer_moves, retarget, static_goes_away
from tests.histories import Moment, Reported, at, history

ALONE = at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}}))


def completed(reported: Reported) -> dict[str, Any]:
    """Details of the last completed rebalance."""
    return reported.details("rebalance_completed")[-1]


def metadata_changes(*, assigned: list[int], hash_: int = 77) -> Moment:
    """A heartbeat finds that the topics' hash differs, and the target is computed at once."""
    return at(
        5_000,
        consumer_group_epoch("g", 3, metadata_hash=hash_),
        *retarget("g", 3, {"a": {"t": assigned}}),
        *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": assigned}),
    )


def test_topic_that_grew_is_seen_by_the_partitions_given_out() -> None:
    """Since 4.1 the log has a hash of the topics' metadata; how many partitions there are shows in the target."""
    reported = history(ALONE, metadata_changes(assigned=[0, 1, 2])).replayed()

    assert ["partition_count"] == completed(reported)["causes"]
    assert {topic_id("t"): {"from": 2, "to": 3}} == reported.details("rebalance_started")[-1]["partition_count"]


def test_topic_that_grew_is_seen_when_its_target_comes_late() -> None:
    """It may be computed a second after the epoch: the rebalance's end shows what its beginning could not."""
    reported = history(
        ALONE,
        at(5_000, consumer_group_epoch("g", 3, metadata_hash=77)),
        at(6_000, *retarget("g", 3, {"a": {"t": [0, 1, 2]}})),
        at(6_100, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0, 1, 2]})),
    ).replayed()

    assert ["metadata"] == reported.details("rebalance_started")[-1]["causes"]
    assert ["partition_count"] == completed(reported)["causes"]
    assert {topic_id("t"): {"from": 2, "to": 3}} == completed(reported)["partition_count"]


def test_other_changes_of_topics_are_no_growth() -> None:
    """Racks are in the hash, too."""
    reported = history(ALONE, metadata_changes(assigned=[0, 1])).replayed()

    assert ["metadata"] == completed(reported)["causes"]
    assert "partition_count" not in completed(reported)


def test_partition_counts_of_older_brokers_tell_growth_exactly() -> None:
    """Up to 4.0 the record of type 4 names topics and counts; a topic that is new in it did not grow."""
    reported = history(
        at(0, consumer_group_partition_metadata("g", {"t": 2}), *ALONE.records),
        at(
            5_000,
            consumer_group_partition_metadata("g", {"t": 4, "u": 1}),
            consumer_group_epoch("g", 3),
            *retarget("g", 3, {"a": {"t": [0, 1, 2, 3]}}),
            *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0, 1, 2, 3]}),
        ),
    ).replayed()

    assert ["partition_count"] == completed(reported)["causes"]
    assert {"t": {"from": 2, "to": 4}} == reported.details("rebalance_started")[-1]["partition_count"]


def test_topic_that_grew_as_its_counts_gave_way_to_a_hash() -> None:
    """A broker of 4.1 ends the record of counts: from then on the partitions given out are all there is."""
    reported = history(
        at(0, consumer_group_partition_metadata("g", {"t": 2}), *ALONE.records),
        at(5_000, consumer_group_partition_metadata_tombstone("g"), *metadata_changes(assigned=[0, 1, 2]).records),
    ).replayed()

    assert ["partition_count"] == completed(reported)["causes"]
    assert {topic_id("t"): {"from": 2, "to": 3}} == reported.details("rebalance_started")[-1]["partition_count"]


def test_classic_group_s_topic_grew_when_nobody_ever_claimed_what_is_given_out() -> None:
    """What a member claimed and lost in the first cooperative round is given out in the second: that is no growth."""
    first = group_metadata("g", generation=1, members=[member("a", {"t": [0, 1]}), member("b", {"t": [2]})])
    revoked = [member("a", {"t": [0]}, owned={"t": [0, 1]}), member("b", {"t": [2]}, owned={"t": [2]})]
    given = [member("a", {"t": [0]}, owned={"t": [0]}), member("b", {"t": [1, 2]}, owned={"t": [2]})]
    grew = [member("a", {"t": [0, 3]}, owned={"t": [0]}), member("b", {"t": [1, 2]}, owned={"t": [1, 2]})]
    reported = history(
        at(0, first),
        at(1_000, group_metadata("g", generation=2, members=revoked)),
        at(2_000, group_metadata("g", generation=3, members=given)),
        at(3_000, group_metadata("g", generation=4, members=grew)),
    ).replayed()

    assert [["rejoin"], ["follow_up"], ["partition_count"]] == [
        detail["causes"] for detail in reported.details("rebalance_completed")
    ]
    assert {"t": {"from": 3, "to": 4}} == completed(reported)["partition_count"]


def test_expression_that_matches_another_topic_is_a_wildcard_trigger() -> None:
    """The record of type 16 has the topics; it is rewritten, too, when nothing changed, and that triggers nothing."""
    regex = consumer_group_member_subscription("g", "a", topics=[], regex="rx-.*")
    reported = history(
        at(0, regex, *ALONE.records[1:], consumer_group_regular_expression("g", "rx-.*", ["rx-a"])),
        at(1_000, consumer_group_regular_expression("g", "rx-.*", ["rx-a"], version=9)),
        at(
            2_000,
            consumer_group_regular_expression("g", "rx-.*", ["rx-a", "rx-b"], version=10),
            consumer_group_epoch("g", 3, metadata_hash=5),
        ),
    ).replayed()

    started = reported.details("rebalance_started")[-1]
    assert ["wildcard"] == started["causes"]
    assert (["rx-b"], []) == (started["topics_added"], started["topics_removed"])
    assert 2 == len(reported.details("rebalance_started"))


def test_first_answer_to_an_expression_is_one_too() -> None:
    """The member waits for it with no target; the epoch moves on with the answer."""
    joined = consumer_group_member_subscription("g", "b", topics=[], regex="rx-.*")
    reported = history(
        ALONE,
        at(1_000, joined, *consumer_moves("g", "b", epoch=2, assigned={})),
        at(2_000, consumer_group_regular_expression("g", "rx-.*", ["rx-a"]), consumer_group_epoch("g", 3)),
    ).replayed()

    assert ["wildcard"] == reported.details("rebalance_started")[-1]["causes"]


def test_change_of_subscription_names_its_topics() -> None:
    """A classic member's pattern is resolved by the client: new matches are a subscription to more topics."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]}, topics=["t"])])),
        at(1_000, group_metadata("g", generation=2, members=[member("a", {"u": [0]}, topics=["u", "rx-a"])])),
    ).replayed()

    assert ["subscription"] == completed(reported)["causes"]
    assert (["rx-a", "u"], ["t"]) == (completed(reported)["topics_added"], completed(reported)["topics_removed"])


def test_static_member_that_does_not_come_back_expires() -> None:
    """It said that it would be back; its session ended first."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}, instance_id="i")),
        at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}})),
        at(1_500, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]})),
        at(2_000, *static_goes_away("g", "a", assigned={"t": [0]}, previous_epoch=3)),
        at(50_000, *consumer_gone("g", "a"), consumer_group_epoch("g", 4)),
        at(51_000, *retarget("g", 4, {"b": {"t": [0, 1]}}), *consumer_moves("g", "b", epoch=4, assigned={"t": [0, 1]})),
    ).replayed()

    assert ["expiry"] == completed(reported)["causes"]


# -- members removed because they did not let go ----------------------------------------------------------------------


def revocation(*, gone_ms: int, pending: list[int]) -> Reported:
    """Member a has to give up `pending` from 2 s on, and is gone at `gone_ms`."""
    kept, state = [part for part in (0, 1) if part not in pending], 1 if pending else 0
    return history(
        ALONE,
        at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={})),
        at(2_000, *consumer_moves("g", "a", epoch=2, assigned={"t": kept}, pending={"t": pending}, state=state)),
        at(gone_ms, *consumer_gone("g", "a"), consumer_group_epoch("g", 4)),
        at(gone_ms + 500, *retarget("g", 4, {"b": {"t": [0, 1]}})),
        at(gone_ms + 500, *consumer_moves("g", "b", epoch=4, assigned={"t": [0, 1]})),
    ).replayed()


def test_member_gone_after_its_rebalance_timeout_was_fenced() -> None:
    """The coordinator removes who does not revoke in time; which partitions it did not release is reported."""
    reported = revocation(gone_ms=2_000 + DEFAULT_REBALANCE_TIMEOUT_MS, pending=[1])

    (event,) = (event for event in reported.events if event.kind == "member_fenced")
    assert ("a", {topic_id("t"): [1]}) == (event.detail["member_id"], event.detail["not_released"])
    assert ("warning", True) == (event.severity, event.inferred)
    assert ["join", "expiry"] == completed(reported)["causes"]


def test_member_that_leaves_in_time_was_not_fenced() -> None:
    """One millisecond earlier it went on its own, for all that is known."""
    reported = revocation(gone_ms=2_000 + DEFAULT_REBALANCE_TIMEOUT_MS - 1, pending=[1])

    assert {} == reported.alarms()
    assert ["join", "leave"] == completed(reported)["causes"]


def test_member_with_nothing_to_release_was_not_fenced() -> None:
    """It may leave whenever it likes."""
    assert {} == revocation(gone_ms=2_000 + 2 * DEFAULT_REBALANCE_TIMEOUT_MS, pending=[]).alarms()


def test_partitions_given_out_rounds_after_they_were_taken_are_no_growth() -> None:
    """Members that come meanwhile cost a cooperative group rounds, in which no member owns what will be given out."""
    had, rest = {"t": [0, 1, 2, 3]}, {"t": [0, 1]}

    def generation(number: int, *members: Any) -> Moment:
        record = group_metadata("g", generation=number, members=members, protocol="cooperative-sticky")
        return at(10_000 * number, record)

    reported = history(
        generation(4, member("a", had)),
        generation(5, member("a", rest, owned=had, owned_generation=4), member("b", {})),
        generation(6, member("a", rest, owned=rest, owned_generation=5), member("b", {}), member("c", {})),
        generation(
            7, member("a", rest, owned=rest, owned_generation=6), member("b", {"t": [2]}), member("c", {"t": [3]})
        ),
    ).replayed()

    assert ["rejoin"] == completed(reported)["causes"]


def test_expression_that_only_a_new_member_asks_for_is_its_join() -> None:
    """Nobody subscribed by it before: that it is resolved with the join changes nothing for others."""
    joined = consumer_group_member_subscription("g", "b", topics=[], regex="rx-.*")
    reported = history(
        ALONE,
        at(
            1_000,
            joined,
            consumer_group_regular_expression("g", "rx-.*", ["rx-a"]),
            consumer_group_epoch("g", 3),
            *retarget("g", 3, {"b": {"rx-a": [0]}}),
            *consumer_moves("g", "b", epoch=3, assigned={"rx-a": [0]}),
        ),
    ).replayed()

    assert ["join"] == reported.details("rebalance_started")[-1]["causes"]


def test_subscription_that_was_not_known_before_is_no_change_of_one() -> None:
    """It did not decode: what the member asked for then may be what it asks for now."""
    unread = member("a", {"t": [0]}, subscription_bytes=b"\xff")
    reported = history(
        at(0, group_metadata("g", generation=1, members=[unread])),
        at(1_000, group_metadata("g", generation=2, members=[member("a", {"t": [0]})])),
        at(2_000, group_metadata("g", generation=3, members=[unread])),
    ).replayed()

    assert [["rejoin"], ["rejoin"]] == [of["causes"] for of in reported.details("rebalance_completed")]


def test_partitions_first_given_out_with_a_join_are_no_growth() -> None:
    """The topics' hash is what it was: no member had them before, for whatever reason."""
    reported = history(
        ALONE, at(5_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [2]}, "a": {"t": [0, 1]}}))
    ).replayed()
    both = history(
        ALONE,
        at(5_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [2]}, "a": {"t": [0, 1]}})),
        at(6_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0, 1]})),
    ).replayed()

    assert ["join"] == reported.details("rebalance_started")[-1]["causes"]
    assert (["join"], False) == (completed(both)["causes"], "partition_count" in completed(both))


def test_topic_that_grew_as_its_hash_gave_way_to_counts() -> None:
    """A broker of 4.0 that takes over writes counts, which are compared with none: what is given out is."""
    reported = history(
        at(0, *ALONE.records, consumer_group_epoch("g", 2, metadata_hash=5)),
        at(5_000, consumer_group_partition_metadata("g", {"t": 3}), *metadata_changes(assigned=[0, 1, 2]).records),
    ).replayed()

    assert {topic_id("t"): {"from": 2, "to": 3}} == reported.details("rebalance_started")[-1]["partition_count"]
