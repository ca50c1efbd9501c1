"""Groups by topic, owner and member; a topic and who reads it. What is not known is counted, never left away."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import pytest

from lab import builders
from streaming.base.expectations import Expectations, Expected
from streaming.base.name_filter import NameFilter, Scope
from streaming.board.board import Board
from streaming.metrics.exporter import Exporter
from streaming.web.api_answers import Api
from streaming.web.routes import Pages
from tests.streaming.asgi_client import AsgiClient
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, NOW_MS, THEN_MS, classic_group, log_ends, sample

SCOPE: Final = Scope(
    groups=NameFilter(["*"], ["test-*"]),
    topics=NameFilter(["*"], ["scratch"]),
)


OWNERS: Final = Expectations(
    Expected(pattern, frozenset(), "", owner)
    for pattern, owner in {"orders-*": "orders team", "new": "platform"}.items()
)


def a_board(*, is_ready: bool = True) -> Board:
    """Two classic groups, a consumer group whose second topic has no name yet, one that only commits, one left out."""
    shard = Shard()
    ends = log_ends(orders=2, audit=1)
    sample(ends, NOW_MS - 1_000, "orders", 120, 100)
    classic_group(shard, "orders-eu", {"m-1": {"orders": [0, 1]}})
    classic_group(shard, "test-1", {"m-1": {"orders": [0]}})
    member = builders.member("s-1", {"audit": [0]}, topics=["audit"], instance_id="i-7")
    shard.pending.append((THEN_MS, *builders.group_metadata("audits", generation=1, members=[member])))
    for partition in (0, 1):
        shard.pending.append((THEN_MS, *builders.offset_commit("orders-eu", "orders", partition, 90)))
    shard.pending.append((THEN_MS, *builders.offset_commit("orders-eu", "orders", 2, 5)))
    shard.pending.append((THEN_MS, *builders.offset_commit("commits", "scratch", 0, 1)))
    for record in (
        builders.consumer_group_epoch("new", 5),
        builders.consumer_group_target_assignment_epoch("new", 5),
        builders.consumer_group_member_subscription("new", "n-1", topics=["orders"], server_assignor="uniform"),
        builders.consumer_group_current_assignment("new", "n-1", epoch=5, assigned={"orders": [0], "nameless": [3]}),
    ):
        shard.pending.append((THEN_MS, *record))
    board = Board(ends, scope=SCOPE, expectations=OWNERS)
    board.load([])
    board.apply(0, shard.flush(), NOW_MS)
    if is_ready:
        board.health.set_log_end_at_start({}, {})
        board.health.set_positions({}, {}, NOW_MS - 2_000)
        assert board.health.ready()[0]
    return board


def client_of(board: Board) -> AsgiClient:
    return AsgiClient(Pages(Api(board, CLUSTER, clock_ms=lambda: NOW_MS), Exporter(board, CLUSTER)).app)


@pytest.fixture(scope="module")
def client() -> AsgiClient:
    return client_of(a_board())


@pytest.mark.parametrize(
    ("query", "expected", "cannot_tell"),
    [
        ("topic=orders", ["new", "orders-eu"], 0),
        ("topic=audit", ["audits"], 1),
        ("topic=scratch", ["commits"], 1),
        ("topic=nowhere", [], 1),
        ("topic=*", ["audits", "commits", "new", "orders-eu"], 0),
        ("owner=orders team", ["orders-eu"], 0),
        ("owner=nobody", [], 0),
        ("instance_id=i-7", ["audits"], 0),
        ("instance_id=i-?", ["audits"], 0),
        (f"host={builders.HOST.removeprefix('/')}", ["audits", "new", "orders-eu"], 0),
        ("host=192.0.2.*", [], 0),
        ("client_id=client", ["audits", "new", "orders-eu"], 0),
        ("client_id=client&instance_id=i-7", ["audits"], 0),
        ("client_id=other&instance_id=i-7", [], 0),
        ("topic=orders&owner=platform", ["new"], 0),
    ],
)
def test_groups_are_found(client: AsgiClient, query: str, expected: list[str], cannot_tell: int) -> None:
    """By name or pattern; all that is asked for must hold; groups left out are not found."""
    address = quote(query, safe="=&*?")
    listed = client.get(f"/api/v1/groups?{address}").json()
    named = client.get(f"/api/v1/search?{address}").json()

    assert (expected, cannot_tell) == ([each["group"] for each in listed["groups"]], listed["cannot_tell"])
    assert (expected, cannot_tell) == (named["groups"], named["cannot_tell"])


def test_a_search_for_nothing_is_refused(client: AsgiClient) -> None:
    """Nothing found and nothing asked for are two things."""
    assert 400 == client.get("/api/v1/search?topic=").status_code


def test_members_are_asked_for_one_at_a_time() -> None:
    """A group in which one member has the client id and another the instance id is not found by both."""
    shard = Shard()
    members = [builders.member("a", instance_id="i-1", client_id="one"), builders.member("b", client_id="two")]
    shard.pending.append((THEN_MS, *builders.group_metadata("g", generation=1, members=members)))
    board = Board(log_ends())
    board.load([])
    board.apply(0, shard.flush(), NOW_MS)
    client = client_of(board)

    assert [] == client.get("/api/v1/search?instance_id=i-1&client_id=two").json()["groups"]
    assert ["g"] == client.get("/api/v1/search?instance_id=i-1&client_id=one").json()["groups"]


def readers(client: AsgiClient, topic: str) -> Mapping[str, dict[str, Any]]:
    return {each["group"]: each for each in client.get(f"/api/v1/topics/{topic}").json()["groups"]}


def test_a_topic_has_every_group_with_its_lag_there(client: AsgiClient) -> None:
    """The sum is not known while a part is not: at least that of the others. Groups left out are counted."""
    topic = client.get("/api/v1/topics/orders").json()
    reader = readers(client, "orders")["orders-eu"]

    assert (["new", "orders-eu"], 1, 0) == (
        [each["group"] for each in topic["groups"]],
        topic["left_out"],
        topic["cannot_tell"],
    )
    assert (None, 40, 30, 1) == tuple(reader[name] for name in ("lag", "at_least", "max_lag", "unknown_lags"))
    assert (True, 2, 3, "orders team") == (
        reader["subscribed"],
        reader["assigned_partitions"],
        reader["committed_partitions"],
        reader["owner"],
    )


def test_lag_that_is_not_known_is_none(client: AsgiClient) -> None:
    """A group without a commit in the topic, and one that commits to a topic of which no end is known."""
    assert (None, 0) == (readers(client, "orders")["new"]["lag"], readers(client, "orders")["new"]["unknown_lags"])
    assert (None, 1, False) == tuple(
        readers(client, "scratch")["commits"][name] for name in ("lag", "unknown_lags", "subscribed")
    )


def test_groups_that_may_read_a_topic_are_counted(client: AsgiClient) -> None:
    """One has an id without a name: it may be any topic's but those it is known to read."""
    assert (1, 0) == tuple(client.get(f"/api/v1/topics/{name}").json()["cannot_tell"] for name in ("audit", "orders"))


def test_topics_are_listed_but_for_those_left_out(client: AsgiClient) -> None:
    """With how many groups have to do with each."""
    listed = client.get("/api/v1/topics").json()

    expected = [{"topic": "audit", "partitions": 1, "groups": 1}, {"topic": "orders", "partitions": 2, "groups": 2}]
    assert {"topics": expected, "left_out": 1, "unread": []} == listed
    assert 200 == client.get("/api/v1/topics/scratch").status_code


def test_a_topic_without_groups_is_not_found_once_the_log_is_read(client: AsgiClient) -> None:
    """Before that it is not known: the answer says that it is not ready, and is no 404."""
    early = client_of(a_board(is_ready=False)).get("/api/v1/topics/nowhere")

    assert 404 == client.get("/api/v1/topics/nowhere").status_code
    assert (200, False, []) == (early.status_code, early.json()["ready"], early.json()["groups"])


def test_the_plan_names_owners(client: AsgiClient) -> None:
    """Those of the configuration's patterns; none where no pattern matches."""
    owners = {each["group"]: each["owner"] for each in client.get("/api/v1/plan").json()["groups"]}

    assert ("orders team", "platform", None) == (owners["orders-eu"], owners["new"], owners["audits"])
