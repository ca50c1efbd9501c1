"""What API, /ready and metrics say while a partition of the offsets topic has no leader."""

import json
from typing import Any

import pytest

from streaming.board.board import Board
from streaming.metrics.exporter import Exporter
from streaming.web.access import Credentials
from streaming.web.api_answers import Api, BrokerAnswers
from streaming.web.routes import Pages
from tests.brokers_by_release import ALLOWING
from tests.streaming.asgi_client import AsgiClient
from tests.streaming.board.test_unread import PARTITIONS, READ, SINCE_MS, UNREAD, a_name, some_board
from tests.streaming.board.test_unreadable import met
from tests.streaming.boards import CLUSTER, NOW_MS, caught_up, described, rendered

DOUBT = {
    "reason": "partition 7 of the offsets topic has no leader",
    "since": SINCE_MS,
    "as_of": SINCE_MS,
    "partition": 7,
}
NEW, NOBODY = a_name(7, but=UNREAD), a_name(3, but=READ)
"""Names of no group: one hashes to the partition that is not read."""


def board_without_leader() -> Board:
    board, _ = some_board()
    caught_up(board).health.set_unread({7: SINCE_MS}, PARTITIONS)
    return board


def client_of(board: Board, credentials: Credentials | None = None) -> AsgiClient:
    brokers = BrokerAnswers(tuple, lambda: ALLOWING)
    api = Api(board, CLUSTER, brokers=brokers, clock_ms=lambda: NOW_MS)
    return AsgiClient(Pages(api, Exporter(board, CLUSTER, clock_ms=lambda: NOW_MS), credentials).app)


@pytest.fixture
def client() -> AsgiClient:
    return client_of(board_without_leader())


def test_ready_names_one_with_a_batch_that_cannot_be_read() -> None:
    """Always with 200: the log is read. Its group has the doubt, a name that is not known is no longer denied."""
    board, _ = some_board()
    board.health.set_unread({}, PARTITIONS)
    board.apply(9, met(1), NOW_MS)
    client = client_of(caught_up(board), Credentials(token="secret"))  # noqa: S106 - of a server in this process
    expected = {"ready": True, "missing": [], "doubt": None, "without_leader": [], "unreadable": [7]}
    assert (200, expected) == ((found := client.get("/ready")).status_code, found.json())

    client = client_of(board)
    assert 7 == client.get(f"/api/v1/groups/{UNREAD}").json()["doubt"]["partition"]
    assert [7] == [of["partition"] for of in client.get("/api/v1/groups").json()["unread"]]
    assert (503, 404) == tuple(client.get(f"/api/v1/groups/{name}").status_code for name in (NEW, NOBODY))
    assert "cannot_tell" == client.get("/api/v1/gate/upgrade").json()["verdict"]


def test_ready_names_one_that_its_coordinator_did_not_load() -> None:
    """With 200 and no doubt: what the log has of its groups is shown, and no more is written. A page hears it, too."""
    board, _ = some_board()
    board.findings.set_not_loaded({7: SINCE_MS, 3: SINCE_MS})
    found = client_of(caught_up(board), Credentials(token="secret")).get("/ready")  # noqa: S106 - as above

    expected = {"ready": True, "missing": [], "doubt": None, "without_leader": [], "not_loaded": [3, 7]}
    assert (200, expected) == (found.status_code, found.json())
    _, news = Api(board, CLUSTER, clock_ms=lambda: NOW_MS).news(None, None)
    assert ([3, 7], []) == (news["not_loaded"], news["unread"])


def test_ready_names_it_by_its_number() -> None:
    """503 at a start; 200 once it was ready. Without credentials there is no name of a group in it."""
    board, ends = some_board()
    board.health.set_unread({7: SINCE_MS}, PARTITIONS)
    client = client_of(board, Credentials(token="secret"))  # noqa: S106 - of a server in this process
    board.health.set_log_end_at_start({}, {})
    board.health.set_positions({}, {}, NOW_MS)
    ends.record(NOW_MS, {}, {})
    at_start = client.get("/ready")
    missing = {name: DOUBT[name] for name in ("reason", "since", "partition")}

    assert 503 == at_start.status_code
    expected = {"ready": False, "missing": [missing], "doubt": None, "without_leader": [7]}
    assert expected == at_start.json()

    later = client_of(board_without_leader(), Credentials(token="secret")).get("/ready")  # noqa: S106 - as above
    expected = {"ready": True, "missing": [], "doubt": None, "without_leader": [7]}
    assert (200, expected) == (later.status_code, later.json())


@pytest.mark.parametrize("address", ["groups/{}", "gate/upgrade?group={}", "gate/downgrade?group={}", "lag?group={}"])
def test_a_name_that_hashes_there_may_be_of_a_group(client: AsgiClient, address: str) -> None:
    """503 and why; a name that hashes elsewhere is 404, as ever."""
    unknown, nobody = (client.get("/api/v1/" + address.format(name)) for name in (NEW, NOBODY))

    assert (503, DOUBT) == (unknown.status_code, unknown.json()["doubt"])
    assert f"group: found '{NEW}', accepted: a group of this cluster" == unknown.json()["error"]
    assert (404, {"error"}) == (nobody.status_code, nobody.json().keys())


def test_a_group_that_may_be_there_is_in_doubt(client: AsgiClient) -> None:
    """Since when, and for which partition; the others are not."""
    assert [DOUBT, None] == [client.get(f"/api/v1/groups/{name}").json()["doubt"] for name in (UNREAD, READ)]
    listed = {of["group"]: of.get("doubt") for of in client.get("/api/v1/groups").json()["groups"]}
    assert (DOUBT, None) == (listed[UNREAD], listed[READ])
    rows = {of["group"]: of.get("doubt") for of in client.get("/api/v1/overview").json()["groups"]}
    assert (DOUBT, None) == (rows[UNREAD], rows[READ])
    readers = {of["group"]: of.get("doubt") for of in client.get("/api/v1/topics/orders").json()["groups"]}
    assert (DOUBT, None) == (readers[UNREAD], readers[READ])


@pytest.mark.parametrize("address", ["groups", "overview", "plan", "topics", "topics/orders", "search?topic=*"])
def test_lists_say_what_they_may_lack(address: str) -> None:
    """Each partition that is not read; of a log that is read as a whole there are none."""
    whole, _ = some_board()

    assert [DOUBT] == client_of(board_without_leader()).get(f"/api/v1/{address}").json()["unread"]
    assert [] == client_of(caught_up(whole)).get(f"/api/v1/{address}").json()["unread"]


def test_a_topic_may_have_readers_that_are_not_known(client: AsgiClient) -> None:
    """So there may be one of this name; with everything read there is none."""
    whole, _ = some_board()

    assert 200 == client.get("/api/v1/topics/nowhere").status_code
    assert 404 == client_of(caught_up(whole)).get("/api/v1/topics/nowhere").status_code


def test_gates_and_plan(client: AsgiClient) -> None:
    """Cannot tell, and unknown; of a group that is elsewhere as ever."""

    def verdict(query: str) -> str:
        return str(client.get(f"/api/v1/gate/upgrade{query}").json()["verdict"])

    assert ["cannot_tell", "cannot_tell", "open"] == [verdict(of) for of in ("", f"?group={UNREAD}", f"?group={READ}")]
    planned = {of["group"]: of["readiness"] for of in client.get("/api/v1/plan").json()["groups"]}
    assert ("unknown", "unknown") != (planned[UNREAD], planned[READ])
    assert "unknown" == planned[UNREAD]


def test_a_report_is_not_complete(client: AsgiClient) -> None:
    """What the group did since is not known; of a name that hashes there it is not known whether there is one."""
    found = client.get(f"/api/v1/report/{UNREAD}?since=1").json()

    assert not found["complete"]
    assert "partition 7 of the offsets topic has no leader" in found["unknown"][0]
    assert 503 == client.get(f"/api/v1/report/{NEW}?since=1").status_code
    assert 404 == client.get(f"/api/v1/report/{NOBODY}?since=1").status_code


def test_rows_are_sent_again_when_a_doubt_comes_and_goes() -> None:
    """A page that follows hears of it although nothing of the group is new."""
    board, ends = some_board()
    api = Api(caught_up(board), CLUSTER, clock_ms=lambda: NOW_MS)
    token, _ = api.news(None, None)

    board.health.set_unread({7: SINCE_MS}, PARTITIONS)
    token, news = api.news(token, None)
    assert {UNREAD: DOUBT} == {of["group"]: of.get("doubt") for of in news["groups"] if of["group"] == UNREAD}
    assert READ not in {of["group"] for of in news["groups"]}
    assert ([DOUBT], [7], True) == (news["unread"], news["without_leader"], news["ready"])

    ends.set_topics([described("__consumer_offsets", PARTITIONS), described("orders", 2)], [])
    token, news = api.news(token, None)
    assert "is not read to its end" in news["groups"][0]["doubt"]["reason"]
    assert [] == news["without_leader"]

    board.health.set_unread({}, PARTITIONS)
    _, news = api.news(token, None)
    assert [None] == [of.get("doubt") for of in news["groups"] if of["group"] == UNREAD]
    assert [] == news["unread"]


def test_a_doubt_that_came_up_since_the_rows_were_made_is_theirs() -> None:
    """The gate of the rows that are shown does not stay open for as long as they are."""
    board, _ = some_board()
    api = Api(caught_up(board), CLUSTER, brokers=BrokerAnswers(tuple, lambda: ALLOWING), clock_ms=lambda: NOW_MS)
    api.overview()
    assert "open" == api.gate("upgrade", [], {"as_shown": "1"})["verdict"]

    board.health.set_unread({7: SINCE_MS}, PARTITIONS)

    assert "cannot_tell" == api.gate("upgrade", [], {"as_shown": "1"})["verdict"]
    assert [DOUBT] == json.loads(api.overview())["unread"]


def test_metrics_count_it_and_call_no_such_group_ready() -> None:
    """Readiness of its groups is unknown; what else is known of them stays, as it was."""

    def samples(board: Board) -> dict[str, Any]:
        lines = rendered(Exporter(board, CLUSTER, clock_ms=lambda: NOW_MS))[0].decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    whole, _ = some_board()
    before, found = samples(caught_up(whole)), samples(board_without_leader())
    name = 'group_monitor_offsets_partitions_without_leader{cluster="prod"}'
    unknown = 'kafka_cluster_readiness_groups{cluster="prod",readiness="unknown"}'
    groups = 'kafka_cluster_groups{cluster="prod",type="classic",state="Stable"}'

    assert (0, 1) == (before[name], found[name])
    assert (0, 2) == (before[unknown], found[unknown])
    assert 3 == before[groups] == found[groups]
    ready = [of for of in found if of.startswith("kafka_cluster_readiness_groups")]
    assert 3 == sum(found[of] for of in ready) == sum(before[of] for of in ready)
    gate = 'kafka_cluster_gate{cluster="prod",gate="upgrade",verdict="cannot_tell"}'
    assert 1 == found[gate]
