"""What patterns leave out: where it is not shown, where it still counts, and that its number is reported."""

from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from coordinator_model.gates.verdict import CLOSED
from lab import builders
from streaming.base.name_filter import NameFilter, Scope
from streaming.board.board import Board
from streaming.metrics.exporter import Exporter
from streaming.web.api_answers import Api
from streaming.web.routes import Pages
from tests.streaming.asgi_client import AsgiClient
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, NOW_MS, THEN_MS, classic_group, log_ends, sample

VIEW: Final = Scope(groups=NameFilter(["*"], ["test-*"]), topics=NameFilter(["*"], ["scratch"]))
METRICS: Final = Scope(groups=NameFilter(["*"], ["batch"]), topics=NameFilter(["*"], ["audit"]))
TOPICS: Final = ["audit", "orders", "scratch"]
GROUPS: Final = ["batch", "orders", "test-1", "test-2"]


def a_board(scope: Scope) -> tuple[Board, Shard]:
    """Four groups that lag by ten in each of three topics; of one two members own the same partition."""
    shard = Shard()
    ends = log_ends(orders=1, audit=1, scratch=1)
    for topic in TOPICS:
        sample(ends, NOW_MS, topic, 120)
    for name in GROUPS:
        classic_group(shard, name, {"m-1": {topic: [0] for topic in TOPICS}})
        shard.pending += [(THEN_MS, *builders.offset_commit(name, topic, 0, 110)) for topic in TOPICS]
    classic_group(shard, "test-1", {"m-1": {"orders": [0]}, "m-2": {"orders": [0]}}, generation=4)
    board = Board(ends, scope=scope)
    board.load([])
    board.apply(0, shard.flush(), NOW_MS)
    board.health.set_log_end_at_start({}, {})
    return board, shard


@pytest.fixture
def client() -> AsgiClient:
    return client_of(a_board(VIEW)[0])


def client_of(board: Board, metrics: Scope | None = METRICS) -> AsgiClient:
    exporter = Exporter(board, CLUSTER, scope=metrics, clock_ms=lambda: NOW_MS)
    return AsgiClient(Pages(Api(board, CLUSTER, clock_ms=lambda: NOW_MS), exporter).app)


def samples(client: AsgiClient) -> list[Any]:
    return [each for family in parse_text(client.get("/metrics").text) for each in family.samples]


def of_label(client: AsgiClient, label: str) -> set[str]:
    return {each.labels[label] for each in samples(client) if label in each.labels}


def test_lists_have_what_is_in_scope_and_how_many_are_not(client: AsgiClient) -> None:
    """Groups, the page's overview, the plan and events."""
    groups = client.get("/api/v1/groups").json()
    overview = client.get("/api/v1/overview").json()
    plan = client.get("/api/v1/plan").json()

    assert (["batch", "orders"], 2) == ([each["group"] for each in groups["groups"]], groups["left_out"])
    assert ["batch", "orders"] == [each["group"] for each in overview["groups"]]
    assert {"groups": 2, "topics": 1} == overview["left_out"]
    assert ({"batch", "orders"}, 2) == ({each["group"] for each in plan["groups"]}, plan["left_out"])
    assert {"batch", "orders"} == {each["group"] for each in client.get("/api/v1/events").json()["events"]}


def test_a_group_that_is_asked_for_by_name_is_answered(client: AsgiClient) -> None:
    """With all of its topics, and its events: a gate's reason links to it."""
    group = client.get("/api/v1/groups/test-1").json()
    events = client.get("/api/v1/events?group=test-1").json()["events"]

    assert (30, TOPICS) == (group["lag"], [each["topic"] for each in group["offsets"]])
    assert "duplicate_assignment" in {event["kind"] for event in events}


def test_gates_and_totals_have_every_group(client: AsgiClient) -> None:
    """A gate that passed over a group would be wrong, and the broker counts all of them."""
    gate = client.get("/api/v1/gate/upgrade").json()
    counted = {each.value for each in samples(client) if each.name == "kafka_cluster_groups"}

    assert CLOSED == gate["verdict"]
    assert {"test-1"} <= {reason["group"] for reason in gate["reasons"]}
    assert {4} == counted


def test_series_are_of_groups_and_topics_that_both_scopes_have(client: AsgiClient) -> None:
    """By partition too; sums of a group count the topics that have none."""
    assert {"orders"} == of_label(client, "group")
    assert {"orders"} == of_label(client, "topic")
    assert [30] == [each.value for each in samples(client) if each.name == "kafka_consumergroup_group_sum_lag"]


def test_what_is_left_out_is_counted(client: AsgiClient) -> None:
    """By what it is, and from where; metrics leave out what the page does as well."""
    counted = {
        (each.labels["from"], each.labels["what"]): each.value
        for each in samples(client)
        if each.name == "group_monitor_left_out"
    }

    expected = {("page", "groups"): 2, ("page", "topics"): 1, ("metrics", "groups"): 3, ("metrics", "topics"): 2}
    assert expected == counted


def test_groups_that_come_and_go_are_counted_and_leave_no_series() -> None:
    """The next page follows them; a group that is back is counted once."""
    board, shard = a_board(VIEW)
    client = client_of(board)
    client.get("/metrics")
    for batch, (record, expected) in enumerate(
        [
            (builders.group_metadata_tombstone("test-2"), 1),
            (builders.group_metadata("test-2", generation=1, protocol=None), 2),
            (builders.group_metadata("test-3", generation=1, protocol=None), 3),
            (builders.group_metadata("shown", generation=1, protocol=None), 3),
        ],
        1,
    ):
        rows = [(THEN_MS, *record)]
        if record[1] is None:
            rows += [(THEN_MS, *builders.offset_commit_tombstone("test-2", topic, 0)) for topic in TOPICS]
        shard.pending += rows
        board.apply(batch, shard.flush(), NOW_MS)
        assert expected == client.get("/api/v1/groups").json()["left_out"]
        assert {"orders", "shown"} >= of_label(client, "group")
    assert {"orders", "shown"} == of_label(client, "group")


def test_by_default_nothing_is_left_out() -> None:
    """Every group and topic is shown and has series."""
    client = client_of(a_board(Scope())[0], None)

    assert set(GROUPS) == of_label(client, "group")
    assert set(TOPICS) == of_label(client, "topic")
    assert 0 == client.get("/api/v1/groups").json()["left_out"]
