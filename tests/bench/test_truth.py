"""What the benchmark compares: a log leads to what the generator says, and any other thing shown is found."""

from dataclasses import replace

import pytest

from bench import log, truth
from bench.figures import Outcome, percentile
from bench.log import Expected, GroupTruth, Plan
from bench.membership import Guests
from bench.stage import Log
from coordinator_model.replica import Replica
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position
from coordinator_model.views import group_view
from lab import builders

PLAN = Plan(
    classic_groups=3, consumer_groups=3, simple_groups=2, wide_groups=1, wide_partitions=130, topics=2, rounds=3
)
NOW_MS = builders.NOW_MS
IDS = {topic: builders.topic_id(f"{topic} on this broker") for topic in PLAN.topic_names}


def replayed(*logs: list[log.LogRecord]) -> Replica:
    replica = Replica()
    for offset, record in enumerate(record for each in logs for record in each):
        replica.replay(Position(record.partition, offset, record.timestamp_ms), record.key, record.value)
    replica.settle()
    return replica


def shown_by(replica: Replica) -> dict[str, GroupTruth]:
    groups = {name: group_view.group_view(state, replica.offsets(name), {}) for name, state in replica.groups.items()}
    counted = {name: sum(of.commits for (group, *_), of in replica.buckets.items() if group == name) for name in groups}
    return {name: replace(group, commits=counted[name]) for name, group in truth.of_replay({"groups": groups}).items()}


def test_log_leads_to_what_the_generator_says() -> None:
    """A replica of the log, and of a rebalance of every group after it, holds exactly the groups that are expected."""
    expected = Expected()
    written = list(log.records(PLAN, expected, NOW_MS, IDS))
    assert len(written) == expected.records

    truth.require(expected, shown_by(replayed(written)), "the replica")

    more = list(log.rebalances(PLAN, expected, NOW_MS + 1_000, IDS))
    replica = replayed(written, more)
    truth.require(expected, shown_by(replica), "the replica")
    assert {"Stable", "Empty"} == {group_view.group_state(state) for state in replica.groups.values()}
    assert 0 == len(replica.undecodable)


def test_topics_have_the_ids_of_the_broker() -> None:
    """Commits and assignments name the topics by the ids that are given, and others by ids of their own."""
    replica = replayed(list(log.records(PLAN, Expected(), NOW_MS, IDS)))

    for name, state in replica.groups.items():
        topic = PLAN.topic(name)
        assert {IDS.get(topic, builders.topic_id(topic))} == {of.topic_id for _, _, of in replica.offsets(name)}
        if state.membership.modern_group is not None:
            assert {IDS[topic]} == {id_ for of in state.membership.modern_group.targets.values() for id_ in of}


@pytest.mark.parametrize(
    "wrong",
    [
        {"epoch": 7},
        {"members": 1},
        {"commits": 8},
        {"offsets": {("topic-00003-0001", 0): 3, ("topic-00003-0001", 1): 3, ("topic-00003-0001", 2): 4}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_differs_is_reported(wrong: dict[str, object]) -> None:
    """One figure of one group that is another than expected makes the result a wrong one, which names the group."""
    expected = Expected()
    written = list(log.records(PLAN, expected, NOW_MS, IDS))
    found = shown_by(replayed(written))
    found["consumer-000001"] = replace(found["consumer-000001"], **wrong)  # type: ignore[arg-type]  # one field of any type

    with pytest.raises(truth.WrongResult, match=f"there: 1 groups differ: consumer-000001: {next(iter(wrong))} "):
        truth.require(expected, found, "there")


def test_groups_missing_and_too_many_are_reported() -> None:
    """A group that is not shown, and one that no one wrote, differ."""
    expected = Expected({"a": GroupTruth(epoch=1, members=0)})

    reported = list(truth.differences(expected, {"b": GroupTruth(epoch=1, members=0)}))

    assert 2 == len(reported)


def test_page_of_metrics_is_read() -> None:
    """Epoch, members of both protocols, commits of all topics, offsets and lag make up what a page says of a group."""
    page = """\
# TYPE kafka_group_epoch gauge
kafka_group_epoch{cluster="c",group="g"} 4
kafka_group_members{cluster="c",group="g",protocol="classic"} 1
kafka_group_members{cluster="c",group="g",protocol="consumer"} 2
kafka_group_commits_total{cluster="c",group="g",topic="t"} 5
kafka_group_commits_total{cluster="c",group="g",topic="u"} 6.0
kafka_consumergroup_group_offset{cluster="c",cluster_name="c",group="g",topic="t",partition="3"} 1.2e+06
kafka_consumergroup_group_sum_lag{cluster="c",cluster_name="c",group="g"} 9
"""

    assert {"g": GroupTruth(epoch=4, members=3, offsets={("t", 3): 1_200_000}, commits=11, lag=9)} == truth.of_metrics(
        page
    )


def test_figures_have_median_and_spread() -> None:
    """Values of one name come together; shares of few values stand for themselves."""
    outcome = Outcome({})
    outcome.add("seconds", "s", 3.0)
    outcome.add("seconds", "s", 1.0, 2.00004)

    reported = outcome.figures["seconds"].as_json()

    assert (2, 1, 3) == (reported["median"], reported["lowest"], reported["highest"])
    assert 2.00004 == outcome.median("seconds")
    assert 99 == percentile(range(100), 0.99)
    assert 5 == percentile([5], 0.99)


def test_lag_is_what_the_topics_have_beyond_the_offsets() -> None:
    """A partition whose commits are ahead of its end does not lag; of a topic whose end is not known nothing does."""
    offsets = {("t", 0): 3, ("t", 1): 9}
    expected = Expected({"a": GroupTruth(epoch=1, members=0, offsets=offsets, commits=2)})

    assert 4 == expected.with_lag({"t": 7}).groups["a"].lag
    assert GroupTruth(epoch=1, members=0, commits=2, lag=4) == expected.with_lag({"t": 7}, offsets=False).groups["a"]
    assert None is expected.with_lag({"u": 7}).groups["a"].lag


def came_late(event: Event) -> bool:
    return "guest" in event.detail["member_id"]


def test_guests_come_and_go() -> None:
    """The records by which members join and leave show exactly these, and leave the group as it is expected."""
    expected = Expected()
    written = list(log.records(PLAN, expected, NOW_MS, IDS))
    read = Log(PLAN, "t", expected, IDS, {})
    guests, replica = Guests(read), Replica()
    events, offset = [], 0
    for batch in (written, *(guests.next()[1] for _ in range(5))):
        for record in batch:
            place = Position(record.partition, offset := offset + 1, record.timestamp_ms)
            events += replica.replay(place, record.key, record.value)
        events += replica.settle()

    truth.require(expected, shown_by(replica), "the replica")
    late = [(event.kind, event.group) for event in events if event.kind.startswith("member_") and came_late(event)]
    assert [
        ("member_joined", "consumer-000000"),
        ("member_joined", "consumer-000001"),
        ("member_joined", "consumer-000002"),
        ("member_left", "consumer-000000"),
        ("member_left", "consumer-000001"),
    ] == sorted(late)
    assert "epoch_anomaly" not in {event.kind for event in events}


def test_offsets_beyond_the_end_have_no_lag_or_none_yet() -> None:
    """A trickle commits what its topics do not have: that is a lag of 0 while it is fresh, and none after that."""
    expected = Expected({"a": GroupTruth(epoch=1, members=0, offsets={("t", 0): 8})}).with_lag({"t": 7})

    for lag, differs in ((0, False), (None, False), (1, True)):
        found = {"a": GroupTruth(epoch=1, members=0, offsets={("t", 0): 8}, lag=lag)}
        assert differs is bool(list(truth.differences(expected, found)))
