"""Page, metrics and API as callers see them: through the application, and once through a real socket."""

import asyncio
import base64
import io
import json
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from coordinator_model.state.events import event_view
from coordinator_model.state.findings import Finding, Position, events_of
from lab import builders
from streaming.base.batch_rows import Row
from streaming.base.errors import UsageError
from streaming.base.output_status import SinkState
from streaming.base.version import release
from streaming.board.board import Board
from streaming.board.polls import PollStatus
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.web import access, overview
from streaming.web.access import Credentials
from streaming.web.api_answers import HIDDEN, Api, BrokerAnswers
from streaming.web.routes import Pages
from streaming.web.server import Server
from tests.left_out import needs
from tests.streaming.asgi_client import AsgiClient
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, NOW_MS, THEN_MS, board_of, caught_up, classic_group, log_ends, sample

NAMES = ["simple", "teams/eu/orders", "a b?c=d&e#f", "..", ".", "реклама ёж 🦔", "line\nbreak\n", "%2F", "<b>\"'&", " "]


def some_board() -> Board:
    """A stable group, a group that only commits under every odd name, and lag."""
    shard = Shard()
    sample(ends := log_ends(orders=2), NOW_MS - 2_000, "orders", 100, 100)
    sample(ends, NOW_MS, "orders", 120, 100)
    classic_group(shard, "checkout", {"m-1": {"orders": [0, 1]}})
    for name in ["checkout", *NAMES]:
        shard.pending.append((THEN_MS, *builders.offset_commit(name, "orders", 0, 110)))
    return board_of(shard, ends)


def pages_of(board: Board, credentials: Credentials | None = None) -> Pages:
    exporter = Exporter(board, CLUSTER, clock_ms=lambda: NOW_MS)
    return Pages(Api(board, CLUSTER, clock_ms=lambda: NOW_MS), exporter, credentials)


@pytest.fixture(scope="module")
def board() -> Board:
    return some_board()


@pytest.fixture(scope="module")
def client(board: Board) -> AsgiClient:
    return AsgiClient(pages_of(board).app)


def group_address(name: str) -> str:
    """Clients resolve `.` and `..` in a path, so those names go into the query."""
    if name in (".", ".."):
        return f"/api/v1/groups/?name={quote(name)}"
    return f"/api/v1/groups/{quote(name, safe='')}"


# --- API ---


def test_groups_are_listed_with_lag(client: AsgiClient) -> None:
    """All groups by name, each a GROUP with its lag."""
    groups = client.get("/api/v1/groups").json()["groups"]

    assert sorted(["checkout", *NAMES]) == [group["group"] for group in groups]
    assert {10} == {group["lag"] for group in groups}
    fields = "group type state epoch assignment_epoch protocol protocol_type simple members offsets migration"
    shown = "lag at_least unknown_lags max_lag max_lag_seconds max_lag_seconds_at_least"
    more = "owner share_partitions rebalances rebalancing_since duplicates unassigned attention"
    assert {*fields.split(), *shown.split(), *more.split()} == groups[0].keys()


def test_groups_can_be_filtered(client: AsgiClient) -> None:
    """By type and state; an empty filter is none."""
    stable = client.get("/api/v1/groups?type=classic&state=Stable").json()["groups"]
    everything = client.get("/api/v1/groups?type=&state=").json()["groups"]

    assert ["checkout"] == [group["group"] for group in stable]
    assert 1 + len(NAMES) == len(everything)


@pytest.mark.parametrize("name", ["checkout", *NAMES])
def test_a_group_of_any_name_can_be_asked_for(client: AsgiClient, name: str) -> None:
    """Slashes, dots, line breaks and markup are parts of a name."""
    answer = client.get(group_address(name))

    assert (200, name) == (answer.status_code, answer.json()["group"])
    (offset,) = (each for each in answer.json()["offsets"] if each["offset"] is not None)
    assert (10, 1.0, "interpolated") == (offset["lag"], offset["lag_seconds"], offset["lag_method"])


def test_an_unknown_group_is_not_found(client: AsgiClient) -> None:
    """404, and the reason names what was asked for; 503 while the log is being read, and the group may be in it."""
    board = caught_up(some_board())
    found = {asked.get("/api/v1/groups/nobody") for asked in (client, AsgiClient(pages_of(board).app))}

    assert {404, 503} == {answer.status_code for answer in found}
    assert {"group: found 'nobody', accepted: a group of this cluster"} == {of.json()["error"] for of in found}


def test_events_are_found_by_group_since_and_limit(client: AsgiClient) -> None:
    """Oldest first; `since` in milliseconds or as a time, an empty one is none."""
    everything = client.get("/api/v1/events?since=").json()["events"]
    of_one = client.get("/api/v1/events?group=checkout").json()["events"]
    last = client.get("/api/v1/events?limit=1").json()["events"]

    assert len(everything) > len(of_one) > 0
    assert {"checkout"} == {event["group"] for event in of_one}
    assert everything[-1:] == last
    assert everything == client.get(f"/api/v1/events?since={THEN_MS}").json()["events"]
    assert [] == client.get(f"/api/v1/events?since={THEN_MS + 1}").json()["events"]
    assert everything == client.get("/api/v1/events?since=2023-11-14T22:00:00Z").json()["events"]
    assert everything == client.get("/api/v1/events?since=2023-11-15T00:00:00%2B02:00").json()["events"]
    assert [] == client.get("/api/v1/events?since=2023-11-15").json()["events"]


def test_the_empty_name_is_the_name_of_a_group() -> None:
    """Its own events are found by it, and neither those of others nor those of no group; without it all are."""
    shard = Shard()
    for name in ("", "checkout"):
        shard.pending.append((THEN_MS, *builders.offset_commit(name, "orders", 0, 110)))
    board = board_of(shard, log_ends(orders=1))
    of_none = events_of("", Position(0, 9, THEN_MS), [Finding("log_truncated", {"partition": 0, "groups": [""]})])
    board.events.add([event_view(event) for event in of_none])
    client = AsgiClient(pages_of(board).app)

    def groups(query: str) -> list[str | None]:
        return [event["group"] for event in client.get(f"/api/v1/events{query}").json()["events"]]

    assert [""] == groups("?group=")
    assert {"", "checkout", None} == {*groups("")}
    assert {"": 110} == {of["group"]: of["offsets"][0]["offset"] for of in [client.get("/api/v1/groups/").json()]}


@pytest.mark.parametrize(
    ("query", "name"),
    [("since=yesterday", "since"), ("since=-1", "since"), ("since=9999999999999999999", "since"), ("limit=0", "limit"),
     ("limit=many", "limit"), ("limit=99999999", "limit")],
)  # fmt: skip
def test_a_bad_parameter_is_refused_by_name(client: AsgiClient, query: str, name: str) -> None:
    """400; the reason names the parameter, what was found and what is accepted."""
    answer = client.get(f"/api/v1/events?{query}")
    reason = answer.json()["error"]

    assert 400 == answer.status_code
    assert reason.startswith(f"{name}: found ")
    assert "accepted: " in reason


def test_overview_sums_up_every_group(client: AsgiClient) -> None:
    """What the page shows: one small object a group, the latest events, and whether it may be believed."""
    overview = client.get("/api/v1/overview").json()
    checkout = next(group for group in overview["groups"] if group["group"] == "checkout")

    assert (CLUSTER, False, 0.0) == (overview["cluster"], overview["ready"], overview["end_offset_age_seconds"])
    expected = {"type": "classic", "state": "Stable", "epoch": 3, "classic_members": 1, "lag": 10}
    assert expected == {name: checkout[name] for name in expected}
    assert "checkout" in {event["group"] for event in overview["events"]}


def test_overview_is_made_once_for_all_who_ask() -> None:
    """A hundred open pages cost as much as one."""
    board = some_board()
    api = Api(board, CLUSTER)
    first = api.overview()
    board.load([])

    assert first is api.overview()


def test_an_overview_that_nobody_looks_at_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows and its text; who looks again is answered as ever."""
    pages = pages_of(some_board())
    groups = json.loads(pages._api.overview())["groups"]
    pages.tidy()

    assert pages._api._overview_json[1]

    monkeypatch.setattr(overview, "UNASKED_SECONDS", -1.0)
    pages.tidy()

    assert (b"", {}) == (pages._api._overview_json[1], pages._api._overview._rows)
    assert groups == json.loads(pages._api.overview())["groups"]


def test_gates_tell_verdict_and_reasons(client: AsgiClient) -> None:
    """The upgrade gate of one group, and the downgrade gate of all."""
    upgrade = client.get("/api/v1/gate/upgrade?group=checkout").json()
    downgrade = client.get("/api/v1/gate/downgrade").json()

    assert ("upgrade", "cannot_tell") == (upgrade["gate"], upgrade["verdict"])
    assert {None, "checkout"} >= {reason["group"] for reason in upgrade["reasons"]}
    assert "group_configs" in {reason["code"] for reason in downgrade["reasons"]}
    assert 503 == client.get("/api/v1/gate/upgrade?group=nobody").status_code
    assert 404 == client.get("/api/v1/gate/sideways").status_code


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("downgrade?target_version=four", "target_version: found 'four', accepted: a release from 2.3 to 4.3"),
        ("upgrade?max_size=0", "max_size: found '0', accepted: a number of members"),
        ("upgrade?max_size=", "max_size: found '', accepted: a number of members"),
        ("upgrade?max_size=2147483648", "max_size: found '2147483648', accepted: a number of members"),
    ],
)
def test_gates_refuse_what_they_cannot_read(client: AsgiClient, query: str, expected: str) -> None:
    """A bad request, with what is accepted."""
    answer = client.get(f"/api/v1/gate/{query}")

    assert 400 == answer.status_code
    assert answer.json()["error"].startswith(expected)


def test_a_group_that_is_named_twice_counts_once(client: AsgiClient) -> None:
    """Of it there is one."""
    once, twice = (client.get(f"/api/v1/gate/upgrade?group=checkout{more}").json() for more in ("", "&group=checkout"))

    assert (once["groups"], once["reasons"]) == (twice["groups"], twice["reasons"])


def test_gates_take_what_they_ask_for(client: AsgiClient) -> None:
    """The release of the brokers to be, and the size in place of the brokers' own."""
    downgrade = client.get("/api/v1/gate/downgrade?target_version=4.2").json()
    upgrade = client.get("/api/v1/gate/upgrade?max_size=1").json()

    assert "4.2" == downgrade["target_version"]
    assert "group_type" not in {of["code"] for of in downgrade["reasons"]}
    (unsaid,) = (of["text"] for of in upgrade["reasons"] if of["code"] == "broker_configuration")
    assert "group.consumer.max.size" not in unsaid


def test_ready_says_what_is_missing() -> None:
    """503 with reasons until the board is at the end of the log as it was at start, then 200."""
    board = some_board()
    client = AsgiClient(pages_of(board).app)
    before = client.get("/ready")
    board.health.set_log_end_at_start({0: 5}, {0: 5})
    board.health.set_positions({0: 5}, {0: 5}, NOW_MS)
    after = client.get("/ready")

    doubt = before.json()["doubt"]
    assert ("the end of the log at start is not known", int) == (doubt["reason"], type(doubt["since"]))
    said = {"ready": False, "missing": [doubt], "doubt": doubt, "without_leader": []}
    assert (503, said) == (before.status_code, before.json())
    said = {"ready": True, "missing": [], "doubt": None, "without_leader": []}
    assert (200, said) == (after.status_code, after.json())


def test_what_is_not_read_yet_is_not_said_to_be_missing() -> None:
    """Lists, groups and the 503 of a group say since when the log is read; at its end that is null, or absent."""
    board = some_board()
    client = AsgiClient(pages_of(board).app)
    paths = ("/api/v1/groups", "/api/v1/groups/checkout", "/api/v1/groups/later", "/api/v1/plan")
    before = [client.get(path).json()["doubt"] for path in paths]
    board.health.set_log_end_at_start({0: 5}, {0: 5})
    board.health.set_positions({0: 5}, {0: 5}, NOW_MS)

    assert 1 == len({json.dumps(doubt) for doubt in before})
    assert {"reason", "since"} == before[0].keys()
    assert [None] * len(paths) == [client.get(path).json().get("doubt") for path in paths]


def test_alive_is_not_ready(client: AsgiClient) -> None:
    """/healthz answers from the first moment."""
    assert (200, {"alive": True, "version": release()}) == (
        (answer := client.get("/healthz")).status_code,
        answer.json(),
    )


def test_not_alive_once_starts_of_the_stream_changed_nothing(
    client: AsgiClient, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only another process may help: who asks /healthz starts one; all else is answered as before."""
    monkeypatch.setattr(board.health, "stuck", lambda: "no use")

    assert (503, {"alive": False, "reason": "no use", "version": release()}) == (
        (answer := client.get("/healthz")).status_code,
        answer.json(),
    )
    assert 200 == client.get("/api/v1/groups").status_code


def test_metrics_are_served_in_the_form_asked_for(client: AsgiClient) -> None:
    """Prometheus's text, compressed where that is accepted."""
    plain = client.get("/metrics", headers={"accept-encoding": "identity"})
    squeezed = client.get("/metrics", headers={"accept-encoding": "gzip", "accept": "application/openmetrics-text"})

    assert 'kafka_group_epoch{cluster="prod",group="checkout"} 3\n' in plain.text
    assert "text/plain; version=0.0.4; charset=utf-8" == plain.headers["content-type"]
    assert ("gzip", "# EOF") == (squeezed.headers["content-encoding"], squeezed.text.splitlines()[-1])
    assert "content-encoding" not in plain.headers
    assert ["Accept-Encoding"] * 2 == [plain.headers["vary"], squeezed.headers["vary"]]


# --- pages ---


def test_metrics_of_one_share_of_the_groups_can_be_asked_for(client: AsgiClient) -> None:
    """Together the shares have each group once."""

    def groups(query: str) -> list[str]:
        lines = client.get(f"/metrics{query}").text.splitlines()
        return sorted(line.partition('group="')[2] for line in lines if line.startswith("kafka_group_epoch{"))

    assert groups("") == sorted(groups("?shard=1/2") + groups("?shard=2/2")) == groups("?shard=0/1")
    assert groups("?shard=0/2") == groups("?shard=2/2") != groups("?shard=1/2")


@pytest.mark.parametrize("shard", ["", "1", "1/", "/2", "3/2", "1/0", "0/0", "-1/2", "1/2/3", "a/b", "1/10000", "٣/٤"])
def test_a_share_that_is_none_is_refused(client: AsgiClient, shard: str) -> None:
    """And the answer says which ones are accepted."""
    answer = client.get(f"/metrics?shard={quote(shard)}")

    assert 400 == answer.status_code
    assert f"shard: found {shard!r}, accepted: i/n, i from 0 to n, n from 1 to 9999" == answer.json()["error"]


def test_pages_escape_what_they_show(client: AsgiClient) -> None:
    """A group's name is text on its page, never markup."""
    page = client.get("/group/" + quote('<script>alert("1")</script>', safe="")).text

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;" in page


@pytest.mark.parametrize("address", ["/", "/group/checkout", "/group?name=..", "/group/teams/eu/orders", "/roll"])
def test_pages_load_their_own_files_only(client: AsgiClient, address: str) -> None:
    """Every file a page names is served here: it works without any other network."""
    page = client.get(address)
    files = [part.partition('"')[0] for part in page.text.split('="')[1:] if part.startswith("/page/")]

    assert 200 == page.status_code
    assert "//" not in page.text.replace("<!doctype html>", "")
    assert {200} == {client.get(file).status_code for file in files}
    assert {"icon.svg", "page.css"} < {Path(file).name for file in files}


def test_scripts_put_no_markup_together() -> None:
    """Names of groups, members and topics come from anybody: they reach the page as text only."""
    import streaming.web.routes

    scripts = [path.read_text("utf-8") for path in streaming.web.routes.PAGE.glob("*.js")]

    assert len(scripts) == 14
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"):
        assert [] == [script for script in scripts if forbidden in script]


def test_a_file_that_is_known_is_not_sent_again(client: AsgiClient) -> None:
    """A browser that has the file gets 304; a name that is none of the page's gets 404."""
    tag = client.get("/page/page.css").headers["etag"]

    assert 304 == client.get("/page/page.css", headers={"if-none-match": tag}).status_code
    for name in ("base.html", "..%2Fserver.py", "nothing.js"):
        assert 404 == client.get(f"/page/{name}").status_code


@pytest.mark.parametrize("address", ["/", "/metrics", "/api/v1/groups", "/nowhere", "/ready", "/page/page.css"])
def test_every_answer_has_security_headers(client: AsgiClient, address: str) -> None:
    """Browsers take nothing from elsewhere, show it in no frame and tell no one where it was."""
    headers = client.get(address).headers

    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert ("nosniff", "DENY", "no-referrer") == (
        headers["x-content-type-options"],
        headers["x-frame-options"],
        headers["referrer-policy"],
    )


ADDRESSES = ["/", "/group/x", "/metrics", "/healthz", "/api/v1/groups", "/api/v1/events", "/api/v1/events/stream"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_head_answers_without_a_body(client: AsgiClient, address: str) -> None:
    """What checks whether an address is there asks so."""
    answer = client.head(address)

    assert (200, b"") == (answer.status_code, answer.content)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(client: AsgiClient, method: str) -> None:
    """405 with what is allowed; nothing here writes."""
    answer = client.request(method, "/api/v1/groups")

    assert (405, "GET, HEAD") == (answer.status_code, answer.headers["allow"])
    assert {"error": f"method: found {method}, accepted: GET, HEAD"} == answer.json()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            "/api/v1/gate/downgrade?target-version=3.9",
            "query: found 'target-version', accepted: group, target_version, as_shown",
        ),
        (
            "/api/v1/gate/upgrade?target_version=3.9",
            "query: found 'target_version', accepted: group, max_size, as_shown",
        ),
        ("/api/v1/events?groups=a", "query: found 'groups', accepted: group, since, limit"),
        (
            "/api/v1/groups?type=consumer&limit=1",
            "query: found 'limit', accepted: type, state, topic, owner, client_id, host, instance_id",
        ),
        ("/api/v1/overview?group=a", "query: found 'group', accepted: nothing"),
        ("/api/v1/live?topic=a", "query: found 'topic', accepted: group, since"),
        ("/plan?from=a", "query: found 'from', accepted: match"),
        ("/?group=a", "query: found 'group', accepted: q, show, sort, down, page"),
    ],
)
def test_an_unknown_parameter_is_refused(client: AsgiClient, address: str, said: str) -> None:
    """A gate asked with the command line's spelling would answer another question; both names are in the reason."""
    answer = client.get(address)

    assert (400, {"error": said}) == (answer.status_code, answer.json())


@pytest.mark.parametrize(
    "address",
    [
        "/?q=a&show=&sort=lag&down=1&page=1", "/group/x?at=2026-01-01T00:00:00Z", "/group?name=..", "/plan?match=*",
        "/roll?q=a&direction=downgrade", "/api/v1/gate/upgrade?max_size=5", "/api/v1/gate/downgrade?target_version=4.0",
        "/metrics?x=1", "/ready?x=1",
    ],
)  # fmt: skip
def test_the_page_s_own_parameters_are_known(client: AsgiClient, address: str) -> None:
    """Those that the page and the command line send; metrics and probes take any."""
    assert client.get(address).status_code in (200, 503)


def test_an_unknown_address_is_json_too(client: AsgiClient) -> None:
    """Whatever goes wrong, there is a reason to read."""
    answer = client.get("/api/v2/groups")

    assert (404, {"error": "no such address: /api/v2/groups"}) == (answer.status_code, answer.json())


def test_a_query_has_its_limits(client: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless query is refused before anything looks at it; the longest name a group may have is none."""
    longest = "name=" + quote("ж" * 16_383)
    assert len(longest) < access.LONGEST_QUERY
    monkeypatch.setattr(access, "LONGEST_QUERY", 50_000)
    assert 414 == client.get("/api/v1/events?group=" + "x" * 50_000).status_code


def test_a_fault_of_ours_is_reported_without_its_insides() -> None:
    """500 with a reason, no traceback and no text of the exception."""
    board = some_board()
    pages = pages_of(board)
    pages._api.group = lambda name: {}["secret"]  # type: ignore[method-assign, index]  # a fault
    answer = AsgiClient(pages.app).get("/api/v1/groups/x")

    assert (500, {"error": "internal error: KeyError"}) == (answer.status_code, answer.json())


# --- who may ask ---

TOKEN = Credentials(token="t0ken")  # noqa: S106 - a test's
BASIC = Credentials(username="ops", password="pa:ss")  # noqa: S106 - as above


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("credentials", "sent", "expected"),
    [
        (TOKEN, None, 401),
        (TOKEN, "Bearer t0ken", 200),
        (TOKEN, "bearer t0ken", 200),
        (TOKEN, "Bearer t0ke", 401),
        (TOKEN, "Bearer ", 401),
        (TOKEN, "t0ken", 401),
        (TOKEN, basic("anybody", "t0ken"), 200),
        (TOKEN, basic("t0ken", ""), 401),
        (BASIC, None, 401),
        (BASIC, basic("ops", "pa:ss"), 200),
        (BASIC, basic("ops", "pa"), 401),
        (BASIC, basic("root", "pa:ss"), 401),
        (BASIC, basic("", ""), 401),
        (BASIC, "Basic !", 401),
        (BASIC, "Bearer pa:ss", 401),
        (BASIC, "Bearer None", 401),
        (Credentials(token="t", username="u", password="p"), basic("u", "p"), 200),  # noqa: S106 - a test's
        (Credentials(token="t", username="u", password="p"), "Bearer t", 200),  # noqa: S106 - as above
        (Credentials(), None, 200),
    ],
)
def test_only_the_right_credentials_come_in(credentials: Credentials, sent: str | None, expected: int) -> None:
    """Bearer token, basic authentication or either; a browser may give the token as a password."""
    client = AsgiClient(pages_of(some_board(), credentials).app)
    answer = client.get("/api/v1/groups", headers={} if sent is None else {"authorization": sent})

    assert expected == answer.status_code
    assert ("www-authenticate" in answer.headers) == (expected == 401)
    assert expected == 200 or "Authorization: found " in answer.json()["error"]


def test_every_address_but_the_probes_asks_for_credentials() -> None:
    """Orchestrators probe without credentials; everything that shows names does not."""
    client = AsgiClient(pages_of(some_board(), TOKEN).app)
    closed = {address: client.get(address).status_code for address in [*ADDRESSES, "/page/page.css", "/nowhere"]}
    open_ = [client.get(address).status_code for address in ("/healthz", "/ready")]

    assert {401} == {status for address, status in closed.items() if address != "/healthz"}
    assert [200, 503] == open_


def test_probes_name_nothing_to_who_has_no_credentials() -> None:
    """Of polled groups and of sinks numbers alone; words of brokers name brokers and groups."""
    failure = "kafka-1.internal:9092: refused"
    left_out = {"payroll": "DESCRIBE on the group payroll"}
    board = Board(EndOffsets())
    board.health.show_polls(lambda: PollStatus(interval_ms=1_000, failure=failure, left_out=left_out))
    sink = SinkState(name="events_topic", waiting=3, oldest_ms=1, dropped=0, delivered=0, failure=failure)
    board.health.show_sinks(lambda: [sink])
    right, wrong = ("Basic " + base64.b64encode(f"any:{each}".encode()).decode() for each in (TOKEN.token, "guess"))
    client = AsgiClient(pages_of(board, TOKEN).app)
    whole, bare, guessed = (
        client.get("/ready", headers=headers) for headers in ({"authorization": right}, {}, {"authorization": wrong})
    )

    assert all(word in whole.text for word in ("kafka-1.internal", "payroll"))
    assert not any(word in bare.text for word in ("kafka-1.internal", "payroll"))
    assert (bare.text, 503, 503) == (guessed.text, bare.status_code, whole.status_code)
    source, (shown,) = bare.json()["source"], bare.json()["sinks"]
    assert (1, 3) == (source["groups_not_described"], shown["waiting"])
    assert [HIDDEN, HIDDEN] == [source["failure"], shown["failure"]]
    assert whole.json()["source"] == AsgiClient(pages_of(board).app).get("/ready").json()["source"]


def test_why_reading_ended_is_said_while_something_is_missing() -> None:
    """A failure that is tried again has its reason in /ready; who has no credentials sees that there is one."""
    board = Board(EndOffsets())
    why: list[str | None] = [None]
    board.health.show_failure(lambda: why[0])
    board.health.expect_batches(one_reader=False)
    right = "Basic " + base64.b64encode(f"any:{TOKEN.token}".encode()).decode()
    client = AsgiClient(pages_of(board, TOKEN).app)

    def failures(headers: dict[str, str]) -> list[str]:
        answer = client.get("/ready", headers=headers)
        assert 503 == answer.status_code
        return [each["failure"] for each in answer.json()["missing"] if "failure" in each]

    assert [] == failures({"authorization": right})
    why[0] = "kafka-1.internal:9092: refused"
    assert [why[0]] == failures({"authorization": right})
    assert [HIDDEN] == failures({})


# --- events as they come ---


def test_events_are_streamed_as_they_come() -> None:
    """New events arrive with their ids; a client that was away gets what it missed, once."""
    board, shard = Board(EndOffsets(), event_window=50), Shard()
    board.apply(0, shard.write(builders.offset_commit("a", "t", 0, 1), timestamp_ms=THEN_MS), NOW_MS)
    first = board.latest_events(1)[0]["id"]
    pages = pages_of(board)

    async def read(last_id: str | None, count: int, *writes: tuple[int, str]) -> list[str]:
        stream = pages._stream(last_id, None)
        assert await anext(stream) == "retry: 2000\n\n"
        for number, group in writes:
            board.apply(number, shard.write(builders.offset_commit(group, "t", 0, 1), timestamp_ms=THEN_MS), NOW_MS)
        return [await anext(stream) for _ in range(count)]

    live = asyncio.run(read(None, 1, (1, "b\nb")))
    missed = asyncio.run(read(first, 2, (2, "c")))
    lost = asyncio.run(read("0-0-long-gone-0", 3))

    lines = live[0].split("\n")
    assert lines[0].startswith("id: 0-")
    assert "b\nb" == json.loads(lines[1].removeprefix("data: "))["group"]
    assert ["", ""] == lines[2:]
    assert [live[0].split("\n")[0]] == [missed[0].split("\n")[0]]
    assert "c" == json.loads(missed[1].split("\n")[1].removeprefix("data: "))["group"]
    assert first in lost[0]


def test_the_live_stream_sends_what_changed() -> None:
    """First that everything is to be read; then rows that changed, groups that are gone, and events, once each."""
    clock = [NOW_MS]
    board, shard = Board(EndOffsets()), Shard()
    api = Api(board, CLUSTER, clock_ms=lambda: clock[0])
    api._overview._made_until = 0.0

    def news(since: str | None, group: str | None = None) -> tuple[str, dict[str, Any]]:
        api._overview._made_until = 0.0
        return api.news(since, group)

    def write(number: int, *records: tuple[bytes | None, bytes | None]) -> None:
        board.apply(number, shard.write(*records, timestamp_ms=THEN_MS), NOW_MS)

    write(1, builders.offset_commit("a", "t", 0, 1), builders.offset_commit("b", "t", 0, 1))
    first, reported = news(None)
    assert reported["reset"]
    second, reported = news(first)
    assert ([], [], []) == (reported["groups"], reported["gone"], reported["events"])

    write(2, builders.offset_commit("b", "t", 0, 2), builders.offset_commit("c", "t", 0, 1))
    write(3, builders.offset_commit_tombstone("a", "t", 0))
    third, reported = news(second)
    assert (["b", "c"], ["a"]) == ([row["group"] for row in reported["groups"]], reported["gone"])
    assert ["group_created", "offset_deleted", "group_deleted"] == [event["kind"] for event in reported["events"]]
    assert [] == news(third)[1]["events"]
    assert ["c"] == [row["group"] for row in news(first, "c")[1]["groups"]]
    assert news("0-1-1", None)[1]["reset"]
    assert news("no version", None)[1]["reset"]


def test_a_reader_that_was_away_for_long_reads_everything_again() -> None:
    """What changed is remembered for two minutes; after that no one may go on from an old version."""
    board = some_board()
    api = Api(board, CLUSTER)
    old, _ = api.news(None, None)
    for _ in range(overview.REMEMBERED + 1):
        api._overview._made_until = 0.0
        last, _ = api.news(None, None)

    assert api.news(old, None)[1]["reset"]
    assert "reset" not in api.news(last, None)[1]


def test_the_live_stream_speaks_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """With news or without: a page that hears nothing knows that it is cut off."""
    monkeypatch.setattr("streaming.web.routes.LIVE_SECONDS", 0.02)
    monkeypatch.setattr("streaming.web.routes.STREAM_POLL_SECONDS", 0.01)

    async def read() -> list[str]:
        stream = pages_of(some_board())._live(None, "checkout")
        return [await anext(stream) for _ in range(3)]

    opening, first, second = asyncio.run(read())
    assert "retry: 2000\n\n" == opening
    assert json.loads(first.split("data: ")[1])["reset"]
    assert [] == json.loads(second.split("data: ")[1])["groups"]


def test_lag_of_the_last_hour_is_reported() -> None:
    """Of one group, by partition, and of all that ever lagged; an unknown group is 404."""
    board = caught_up(some_board())
    client = AsgiClient(pages_of(board).app)
    board.lag_history.sample(board.shown.groups, board.ends, NOW_MS)

    one = client.get("/api/v1/lag?group=checkout").json()
    assert ("checkout", [NOW_MS], [10]) == (one["group"], one["times"], one["lag"])
    assert [{"topic": "orders", "partition": 0, "lag": [10]}] == one["partitions"]
    assert [10] == client.get("/api/v1/lag").json()["groups"]["checkout"]
    assert 404 == client.get("/api/v1/lag?group=nobody").status_code


def test_brokers_are_asked_for_group_configs_seldom() -> None:
    """A page left open asks the downgrade gate every few seconds; the brokers are not asked as often."""
    asked: list[str] = []

    def group_configs() -> list[str]:
        asked.append("brokers")
        return ["checkout"]

    api = Api(some_board(), CLUSTER, brokers=BrokerAnswers(group_configs=group_configs))
    reasons = [api.gate("downgrade", [])["reasons"] for _ in range(5)]
    api.gate("upgrade", [])

    assert 1 == len(asked)
    assert all("group_configs" in {reason["code"] for reason in each} for each in reasons)


def test_a_silent_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies drop what says nothing, so a comment is sent from time to time."""
    monkeypatch.setattr("streaming.web.routes.STREAM_POLL_SECONDS", 0.01)
    monkeypatch.setattr("streaming.web.routes.KEEP_ALIVE_SECONDS", 0.03)

    async def read() -> list[str]:
        stream = pages_of(Board(EndOffsets()))._stream(None, None)
        return [await anext(stream) for _ in range(3)]

    assert ["retry: 2000\n\n", ": keep-alive\n\n", ": keep-alive\n\n"] == asyncio.run(read())


# --- the socket ---


def server_of(board: Board, **options: Any) -> Server:
    http = HttpSection(**{"port": 0, **options})
    return Server.of(http, board, Exporter(board, CLUSTER))


def test_a_real_server_serves_and_stops() -> None:
    """Over a socket: page, group of any name, live events; stopping ends open streams and frees the port."""
    board = some_board()
    server = server_of(board)
    server.start()
    received: list[str] = []

    def listen() -> None:
        with httpx.stream("GET", f"{server.url}/api/v1/events/stream?group=late", timeout=20) as answer:
            received.extend(line for line in answer.iter_lines() if line.startswith("data: "))

    listener = threading.Thread(target=listen)
    try:
        with httpx.Client(base_url=server.url, timeout=10) as client:
            assert 200 == client.get("/").status_code
            assert {name: name for name in NAMES} == {
                name: client.get(group_address(name)).json()["group"] for name in NAMES
            }
            assert b"" == client.head("/metrics").content
        listener.start()
        deadline = time.monotonic() + 60
        number = 10
        while not received and time.monotonic() < deadline:
            number += 1
            event = {"id": f"9-{number}-x-0", "time": 1, "group": "late", "kind": "x", "detail": {}}
            board.apply(number, [Row(9, "event", "late", json.dumps(event).encode(), "x")], NOW_MS)
            time.sleep(0.1)
    finally:
        begun = time.monotonic()
        server.stop()
    took = time.monotonic() - begun
    listener.join(60)

    assert "late" == json.loads(received[0].removeprefix("data: "))["group"]
    assert took < 10
    assert not listener.is_alive()
    with socket.create_server(("127.0.0.1", int(server.url.rpartition(":")[2]))):
        pass


def test_monitors_of_one_process_write_their_addresses_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a line to itself, whichever of them write at the same time."""

    class SlowOutput(io.StringIO):
        def write(self, text: str) -> int:
            time.sleep(0.001)
            return super().write(text)

    server = server_of(Board(EndOffsets()))
    clusters = [f"  cluster c-{n}" for n in range(8)]
    monkeypatch.setattr("sys.stdout", output := SlowOutput())
    with ThreadPoolExecutor(len(clusters)) as at_once:
        list(at_once.map(server.print_address, clusters))
    server.stop()

    expected = {f"page {server.url}/  metrics {server.url}/metrics{cluster}" for cluster in clusters}
    assert expected == set(output.getvalue().splitlines())


def test_a_taken_port_is_reported_before_anything_starts() -> None:
    """One line that names the option, what was found and what is accepted."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError) as reported:
            server_of(Board(EndOffsets()), port=port)

    found = f"http.port: found {port} on http.host '127.0.0.1' (Address already in use), accepted: "
    assert str(reported.value).startswith(found)


def test_an_address_of_another_machine_is_reported() -> None:
    """As above, for the host."""
    with pytest.raises(UsageError, match=r"^http.port: found 0 on http.host '192.0.2.1'"):
        server_of(Board(EndOffsets()), host="192.0.2.1", allow_remote_without_auth=True)


@needs("openssl")
def test_tls_is_served_and_bad_files_are_reported(tmp_path: Path) -> None:
    """With a certificate the address is https; files that are none are named in one line."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=here -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)  # noqa: S603 - no shell, our own files
    server = server_of(some_board(), tls_certificate_file=certificate, tls_key_file=key, token="t0ken")  # noqa: S106
    server.start()
    try:
        trust = ssl.create_default_context(cafile=str(certificate))
        answer = httpx.get(server.url + "/healthz", verify=trust)
        refused = httpx.get(server.url + "/metrics", verify=trust)
    finally:
        server.stop()

    assert server.url.startswith("https://127.0.0.1:")
    assert [200, 401] == [answer.status_code, refused.status_code]

    key.write_text("no key")
    with pytest.raises(UsageError, match=r"^http.tls_certificate_file: found .*certificate.pem.*accepted: PEM files"):
        server_of(Board(EndOffsets()), tls_certificate_file=certificate, tls_key_file=key)
