"""What many clients together can take of the server: pages, memory, connections, guesses. Over sockets, but for few."""

import asyncio
import contextlib
import gzip
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from lab.builders import offset_commit
from streaming.base import wanted
from streaming.base.errors import UsageError
from streaming.base.wanted import GoneError, asked_by, each
from streaming.board.board import Board
from streaming.checkpoint.lock import StateLock
from streaming.cli.check import _probe_port
from streaming.config.loading import load
from streaming.config.sections import Config, HttpSection, StateSection
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.metrics.group_metrics import ALL_GROUPS, GroupShard
from streaming.web import access, connection_limits, rate_limit, server, shared_pages, unread_answers
from streaming.web.access import Credentials, Door, Guard
from streaming.web.api_answers import Api
from streaming.web.rate_limit import Guesses, RateLimit
from streaming.web.server import Server
from streaming.web.unread_answers import UnreadAnswers
from tests.certificates import Authority
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, board_of
from tests.streaming.web.test_hardening import TOKEN, ask, connected, get, held, is_closed, until

WAIT_SECONDS: Final = 30.0
ASKED: Final = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
PROBES: Final = ("/healthz", "/ready")


@contextlib.contextmanager
def serving(exporter: Exporter | None = None, board: Board | None = None, **options: Any) -> Iterator[Server]:
    board = board or Board(EndOffsets())
    made = Server.of(HttpSection(**{"port": 0, **options}), board, exporter or Exporter(board, CLUSTER))
    made.start()
    try:
        yield made
    finally:
        made.stop()


class Gated(Exporter):
    """Pages that are finished when the test says so, each with the number of those begun before it."""

    def __init__(self) -> None:
        super().__init__(Board(EndOffsets()), CLUSTER)
        self.may_end = threading.Event()
        self.begun: list[GroupShard] = []
        self.ended = 0

    def pieces(
        self, accept: str = "", *, gzip: bool = False, shard: GroupShard = ALL_GROUPS
    ) -> tuple[Iterator[bytes], str]:
        self.begun.append(shard)
        pieces, content_type = super().pieces(accept, gzip=gzip, shard=shard)
        return self._gated(pieces), content_type

    def _gated(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        assert self.may_end.wait(WAIT_SECONDS)
        yield from pieces
        self.ended += 1


def in_making(of: Server) -> list[shared_pages.SharedPage]:
    return list(of._pages._shared_pages._in_making.values())


def readers(of: Server) -> int:
    return sum(len(page._readers) for page in in_making(of))


def test_a_page_is_made_once_for_all_who_ask_in_the_same_moment() -> None:
    """All have the same one; who asks later has one of that moment; a share is a page of its own."""
    exporter = Gated()
    with serving(exporter, requests_per_second=0) as at, ThreadPoolExecutor(12) as clients:
        asked = [clients.submit(ask, at, "GET /metrics HTTP/1.1", "Host: localhost") for _ in range(9)]
        asked.append(clients.submit(ask, at, "GET /metrics?shard=1/1 HTTP/1.1", "Host: localhost"))
        until(lambda: readers(at) == 10)
        exporter.may_end.set()
        answers = [each_.result() for each_ in asked]
        assert [200] * 10 == [status for status, _, _ in answers]
        assert 1 == len({body for _, _, body in answers[:9]})
        assert [ALL_GROUPS, GroupShard(1, 1)] == sorted(exporter.begun)

        assert 200 == get(at, "/metrics")
        assert 3 == exporter.ended
        until(lambda: at._pages._unread.size == 0)


def test_four_pages_are_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fifth waits; who has waited too long hears when to come again, and a page without readers is not made."""
    exporter, statuses = Gated(), []
    with serving(exporter, requests_per_second=0) as at, ThreadPoolExecutor(4) as clients:
        path = "GET /metrics?shard={}/9 HTTP/1.1".format
        asked = [clients.submit(ask, at, path(number), "Host: localhost") for number in range(1, 5)]
        until(lambda: len(exporter.begun) == 4 and all(page.begun.is_set() for page in in_making(at)))
        monkeypatch.setattr(shared_pages, "WAIT_SECONDS", 0.3)
        status, headers, body = ask(at, path(5), "Host: localhost")
        assert (503, '{"error":"pages: found 4 in the making, accepted: fewer"}') == (status, body)
        assert int(headers["retry-after"]) > 0
        # Who asks for one of the four does not wait for a place.
        monkeypatch.undo()
        also = threading.Thread(target=lambda: statuses.append(ask(at, path(1), "Host: localhost")[0]))
        also.start()
        until(lambda: readers(at) == 5)
        exporter.may_end.set()
        also.join()
        assert [200] * 5 == [*(of.result()[0] for of in asked), *statuses]
        assert 4 == len(exporter.begun)


def test_two_prometheus_servers_on_eight_shards_lose_no_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the same moments, one as gzip and one as text, beside connections that read nothing: every page is whole."""
    monkeypatch.setattr(shared_pages, "WAIT_SECONDS", WAIT_SECONDS)  # however slow the machine is
    shard = Shard()
    for number in range(300):
        shard.pending.append((1, *offset_commit(f"{number}-" + "ä" * 2_000, "orders", 0, 1)))
    groups, rounds, shares = 300, 3, 8
    board = board_of(shard)
    with serving(board=board, requests_per_second=0) as at, contextlib.ExitStack() as stack:
        for _ in range(20):
            unread = stack.enter_context(connected(at))
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            unread.sendall(ASKED % b"/metrics")

        def scrapes(share: int, encoding: str) -> list[tuple[int, int]]:
            connection = http.client.HTTPConnection("127.0.0.1", at.port, timeout=WAIT_SECONDS)
            found = []
            for _ in range(rounds):
                connection.request("GET", f"/metrics?shard={share}/{shares}", headers={"Accept-Encoding": encoding})
                answer = connection.getresponse()
                body = answer.read()
                text = gzip.decompress(body) if encoding == "gzip" else body
                found.append((answer.status, text.count(b"\nkafka_group_epoch{")))
            connection.close()
            return found

        with ThreadPoolExecutor(2 * shares) as clients:
            asked = [
                clients.submit(scrapes, share, encoding)
                for encoding in ("gzip", "identity")
                for share in range(1, shares + 1)
            ]
            answers = [of.result() for of in asked]
    assert {200} == {status for found in answers for status, _ in found}
    assert 2 * rounds * groups == sum(seen for found in answers for _, seen in found)


def test_a_page_that_nobody_reads_is_given_up_where_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of which nothing was taken for longest goes, with its connection; one alone may be larger."""
    gone: list[str] = []
    unread = UnreadAnswers()
    monkeypatch.setattr(unread_answers, "MOST_UNREAD", 100)

    unread.grows("a", 150, lambda: gone.append("a"))
    assert [] == gone
    unread.grows("b", 10, lambda: gone.append("b"))
    assert (["a"], 10) == (gone, unread.size)
    unread.grows("c", 50, lambda: gone.append("c"))
    unread.taken("b")
    unread.grows("d", 45, lambda: gone.append("d"))
    assert (["a", "c"], 55) == (gone, unread.size)
    unread.done("d")
    unread.done("d")
    unread.done("a")
    assert 10 == unread.size


def test_unread_answers_hold_no_more_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies of the API and pages: the connections that read nothing are closed, and who reads has the answer."""
    size = 3_000_000
    seen: list[None] = []
    monkeypatch.setattr(unread_answers, "MOST_UNREAD", 2 * size + 100)
    monkeypatch.setattr(Api, "topics", lambda _: {"filler": "x" * size})
    with serving(requests_per_second=0) as at, contextlib.ExitStack() as stack:
        unread = at._pages._unread
        grows = unread.grows
        monkeypatch.setattr(unread, "grows", lambda *of: seen.append(grows(*of)))
        silent = []
        for number in range(1, 6):
            connection = stack.enter_context(connected(at))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(ASKED % b"/api/v1/topics")
            silent.append(connection)
            until(partial(lambda number: len(seen) == number, number))
            assert unread.size <= 2 * size + 100
        status, _, body = ask(at, "GET /api/v1/topics HTTP/1.1", "Host: localhost")
        assert (200, size + 13) == (status, len(body))
        until(lambda: held(at) == 1)


@pytest.mark.parametrize("tls", [False, True])
def test_an_answer_that_waits_for_its_reader_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, tls: bool
) -> None:
    """Also the last part of it, with the connection to be closed behind it: nothing waits for a reader without end."""
    monkeypatch.setattr(connection_limits, "READ_SECONDS", 0.5)
    monkeypatch.setattr(connection_limits, "KERNEL_BYTES", 4_096)
    monkeypatch.setattr(server, "_TIDY_SECONDS", 0.1)
    monkeypatch.setattr(Api, "topics", lambda _: {"filler": "x" * 60_000})
    authority = Authority(tmp_path)
    certificate_file, key = authority.issue("server", "127.0.0.1")
    options: dict[str, Any] = {"tls_certificate_file": certificate_file, "tls_key_file": key} if tls else {}
    with serving(requests_per_second=0, **options) as at, contextlib.ExitStack() as stack:
        for line in ("Connection: close", "Connection: keep-alive"):
            raw = socket.socket()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            raw.connect(("127.0.0.1", at.port))
            context = ssl.create_default_context(cafile=str(authority.file))
            silent = stack.enter_context(context.wrap_socket(raw, server_hostname="127.0.0.1") if tls else raw)
            silent.sendall(f"GET /api/v1/topics HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\n".encode())
        until(lambda: held(at) == 2)
        until(lambda: held(at) == 0)


def test_who_reads_slowly_but_reads_is_let_read() -> None:
    """The time begins again with each 256 KB that are taken."""
    near, far = socket.socketpair()
    connection = connection_limits._Connection(near, ("127.0.0.1", 1), connection_limits.Connections())
    with contextlib.closing(connection), contextlib.closing(far):
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                connection.send(b"x" * 65_536)
        begun = connection._waits_since
        assert begun is not None
        connection._sent(connection_limits.READ_BYTES - 1, all_of_it=False)
        assert begun == connection._waits_since
        connection._sent(1, all_of_it=False)
        assert begun < connection._waits_since
        connection._sent(1, all_of_it=True)
        assert connection._waits_since is None


# --- who is gone ---


@pytest.mark.parametrize("behind", [b"", b"GET /healthz HTTP/1.1\r\n" * 10])
def test_nothing_is_worked_out_for_who_is_gone(monkeypatch: pytest.MonkeyPatch, behind: bytes) -> None:
    """It ends while groups are gone through; requests that wait for a thread end as they have one.

    What was sent in advance hides no end.
    """
    going, ended = threading.Semaphore(0), []

    def endless(_: Api, query: object) -> object:
        try:
            for _number in each(count()):
                going.release()
                time.sleep(0.001)
        except GoneError as error:
            ended.append(error)
            raise
        return query

    monkeypatch.setattr(Api, "search", endless)
    with serving(requests_per_second=0) as at:
        for _ in range(60):
            with connected(at) as connection:
                connection.sendall(ASKED % b"/api/v1/search?topic=x" + behind)
                if not ended:
                    assert going.acquire(timeout=WAIT_SECONDS)
        until(lambda: held(at) == 0)
        assert 200 == get(at, "/api/v1/groups")
        until(lambda: not at._server.server_state.tasks)
    assert ended


def test_what_is_sent_in_advance_has_a_bound() -> None:
    """Who sends on and on before the answer is closed."""
    exporter = Gated()
    with serving(exporter, requests_per_second=0) as at, connected(at) as connection:
        connection.sendall(ASKED % b"/metrics")
        until(lambda: bool(exporter.begun))
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                connection.sendall(b"x" * 65_536)
        until(lambda: held(at) == 0)
        exporter.may_end.set()


def test_a_look_costs_nothing_where_nobody_has_asked() -> None:
    """As in the monitor's own threads."""
    asked_by(None)
    wanted.look()
    assert [1, 2] == list(each([1, 2]))


# --- probes ---


def probe(at: Server, path: str, *headers: str, method: str = "GET") -> tuple[int, Any]:
    assert at.probe_port is not None
    with socket.create_connection(("127.0.0.1", at.probe_port), timeout=WAIT_SECONDS) as connection:
        connection.sendall("\r\n".join([f"{method} {path} HTTP/1.1", "Host: pod", *headers, "", ""]).encode())
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        body = answer.read()
        assert "close" == answer.headers["connection"]
        assert is_closed(connection)
        return answer.status, json.loads(body)


def test_probes_are_answered_while_the_other_listener_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections there are have asked and are kept; the next one is closed, and probes are answered."""
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 6)
    monkeypatch.setattr(connection_limits, "MOST_OF_ONE_ADDRESS", 4)
    exporter = Gated()
    with serving(exporter, requests_per_second=0, probe_port=0) as at, contextlib.ExitStack() as stack:
        for number in range(6):
            connection = stack.enter_context(connected(at, f"127.0.0.{2 + number % 2}"))
            connection.sendall(ASKED % b"/metrics")
        until(lambda: readers(at) == 6)
        assert is_closed(stack.enter_context(connected(at)))
        assert [(200, True)] * 3 == [(status, body["alive"]) for status, body in [probe(at, "/healthz")] * 3]
        assert (503, False) == (probe(at, "/ready")[0], probe(at, "/ready")[1]["ready"])
        exporter.may_end.set()


def test_probes_have_limits_of_their_own() -> None:
    """Silent connections, and ones that have asked, keep no probe out; the other listener does not notice."""
    with serving(requests_per_second=0, probe_port=0) as at, contextlib.ExitStack() as stack:
        assert at.probe_port is not None
        for _ in range(100):
            silent = stack.enter_context(socket.create_connection(("127.0.0.1", at.probe_port)))
            silent.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert 200 == probe(at, "/healthz")[0]
        assert len(at._probes.connections._held) <= server.MOST_PROBES.of_one_address  # type: ignore[union-attr,operator]  # both are there
        assert 200 == get(at, "/metrics")


def test_probes_say_numbers_and_nothing_else(tmp_path: Path) -> None:
    """In clear beside TLS, to everyone, credentials or not; no other address is there, and no other method."""
    certificate_file, key = Authority(tmp_path).issue("server", "127.0.0.1")
    tls: dict[str, Any] = {"tls_certificate_file": certificate_file, "tls_key_file": key}
    with serving(token=TOKEN, probe_port=0, **tls) as at:
        right = f"Authorization: Bearer {TOKEN}"
        assert [200, 503, 503] == [probe(at, *of)[0] for of in (("/healthz",), ("/ready",), ("/ready", right))]
        assert probe(at, "/ready") == probe(at, "/ready", right)
        assert [404] * 3 == [probe(at, path)[0] for path in ("/metrics", "/", "/api/v1/groups")]
        assert 405 == probe(at, "/ready", "Content-Length: 0", method="POST")[0]


def test_ready_on_the_port_of_probes_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no credentials are asked for at all."""
    asked: list[bool] = []

    def ready(_: Api, *, to_anyone: bool) -> dict[str, Any]:
        asked.append(to_anyone)
        return {"ready": True}

    monkeypatch.setattr(Api, "ready", ready)
    with serving(probe_port=0) as at:
        assert 200 == probe(at, "/ready")[0]
        assert 200 == get(at, "/ready")
    assert [True, False] == asked


def test_the_port_of_probes_is_named_where_it_cannot_be_had(tmp_path: Path) -> None:
    """Before anything else is begun, and the other port is free again; it is another port than the other one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"^http\.probe_port: found {port} "), serving(probe_port=port):
            pass
        config = Config(http=HttpSection(port=0, probe_port=port), state=StateSection(dir=tmp_path))
        (found,) = _probe_port(config)
        assert ("fail", True) == (found.status, found.detail.startswith(f"http.probe_port: found 127.0.0.1:{port} "))
        lock = StateLock(tmp_path)
        lock.take()
        lock.keep()
        assert [] == [*_probe_port(config)]
        lock.release()
    assert ["ok"] == [of.status for of in _probe_port(config)]
    assert [] == [*_probe_port(Config())]
    file = tmp_path / "monitor.yaml"
    file.write_text("http: {port: 9500, probe_port: 9500}")
    with pytest.raises(UsageError, match=r"http\.probe_port: found 9500, which is http\.port"):
        load(file, {})
    with serving() as at:
        assert at.probe_port is None


# --- who is let in ---


def test_who_is_refused_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without credentials no connection is kept for asking: one that is answered stays."""
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 4)
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
    known = request % f"Authorization: Bearer {TOKEN}\r\n".encode()
    with serving(token=TOKEN, requests_per_second=0) as at, contextlib.ExitStack() as stack:

        def answered(connection: socket.socket, asked: bytes) -> int:
            connection.sendall(asked)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            answer.read()
            return answer.status

        kept = stack.enter_context(connected(at))
        assert 200 == answered(kept, known)
        for asked, status in ((request % b"", 401), (ASKED % b"/healthz", 200), (request % b"X: y\r\n", 401)) * 3:
            assert status == answered(stack.enter_context(connected(at)), asked)
        assert 200 == answered(kept, known)


def test_many_addresses_guess_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have guessed wrong share a limit; right credentials from elsewhere are heard at once."""
    monkeypatch.setattr(access, "Guesses", partial(Guesses, clock=lambda: 0.0))  # however long it takes
    monkeypatch.setattr(access, "RateLimit", partial(RateLimit, clock=lambda: 0.0))
    wrong, right = "Authorization: Bearer wrong", f"Authorization: Bearer {TOKEN}"
    with serving(requests_per_second=100, token=TOKEN) as at:
        sources = [f"127.0.0.{number}" for number in range(10, 35)]
        assert [401] * 25 == [get(at, "/metrics", wrong, source=source) for source in sources]
        # Each has much left of what is its own, all together nothing.
        assert [429] * 25 == [get(at, "/metrics", wrong, source=source) for source in sources]
        assert 429 == get(at, "/metrics", right, source=sources[0])
        assert 401 == get(at, "/metrics", source=sources[0])
        assert [200] * 3 == [get(at, "/metrics", right, source="127.0.0.2") for _ in range(3)]


def test_an_address_that_guessed_is_one_for_an_hour() -> None:
    """Or until it is right; what all may guess fills with time."""
    now = [0.0]
    guesses = Guesses(2.0, clock=lambda: now[0])
    burst = int(2 * rate_limit.BURST_SECONDS)

    for number in range(burst):
        assert 0.0 == guesses.wait_seconds(f"{number}")
        guesses.wrong(f"{number}")
    assert 0.5 == guesses.wait_seconds("0")
    assert 0.0 == guesses.wait_seconds("new")
    now[0] += 0.5
    assert 0.0 == guesses.wait_seconds("0")
    guesses.right("0")
    assert (0.0, 0.5) == (guesses.wait_seconds("0"), guesses.wait_seconds("1"))
    now[0] += rate_limit.GUESSED_SECONDS + 1
    guesses._in_all.charge("", 1_000)
    assert 0.0 == guesses.wait_seconds("1")
    assert 0.0 == Guesses(0.0).wait_seconds("1")


@pytest.mark.parametrize("limit", ["rate", "streams"])
def test_a_network_of_ipv6_has_one_rate(limit: str) -> None:
    """Who has one address of it has 2^64."""

    async def app(_scope: Any, _receive: Any, send: Callable[[Any], Any]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    guard = Guard(app, Credentials(), Door(requests_per_second=1))
    statuses = []

    async def request(address: str) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        scope = {
            "type": "http", "method": "GET", "path": f"/{limit}", "raw_path": b"/", "query_string": b"", "headers": [],
            "client": (address, 1),
        }  # fmt: skip
        await guard(scope, None, send)  # type: ignore[arg-type]  # nothing is received

    for number in range(8):
        asyncio.run(request(f"2001:db8:1:2::{number:x}"))
    asyncio.run(request("2001:db8:1:3::1"))
    assert [*[200] * 5, *[429] * 3, 200] == statuses


def test_a_crowd_that_is_refused_leaves_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop closes so many at once and then looks at its other connections."""
    monkeypatch.setattr(connection_limits, "_REFUSED_AT_ONCE", 3)
    connections = connection_limits.Connections()
    monkeypatch.setattr(connections, "takes", lambda _: False)
    listener = connection_limits.Listener(socket.create_server(("127.0.0.1", 0)), connections)
    with contextlib.closing(listener), contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        with pytest.raises(BlockingIOError):
            listener.accept()
        monkeypatch.setattr(connections, "takes", lambda _: True)
        stack.enter_context(listener.accept()[0])


def test_a_crowd_is_accepted_by_and_by() -> None:
    """Those that are there have their turn in between: each handshake that is begun holds half a megabyte."""
    crowd = 100
    seen: list[int] = []
    connections = connection_limits.Connections()
    listener = connection_limits.Listener(socket.create_server(("127.0.0.1", 0)), connections)

    async def accept_all(stack: contextlib.ExitStack) -> None:
        loop = asyncio.get_running_loop()
        serving = await loop.create_server(asyncio.Protocol, sock=listener, backlog=2 * crowd)
        # Not `async with`: from Python 3.12 on that waits until those who are connected are gone.
        with contextlib.closing(serving):
            for _ in range(crowd):
                stack.enter_context(socket.create_connection(listener.getsockname(), timeout=5))
            while not seen or seen[-1] < crowd:
                await asyncio.sleep(0)
                seen.append(len(connections._held))

    with contextlib.ExitStack() as stack, asyncio.Runner(loop_factory=connection_limits.Loop) as runner:
        runner.run(asyncio.wait_for(accept_all(stack), 30))
    at_once = max(now - before for before, now in zip([0, *seen], seen, strict=False))
    assert 0 < at_once <= connection_limits._ACCEPTED_IN_A_ROW
