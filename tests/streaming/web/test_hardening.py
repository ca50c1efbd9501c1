"""What strangers can do to the server: nothing but wait. Against the real one, over sockets."""

import contextlib
import http.client
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from lab.builders import offset_commit
from streaming.base.errors import UsageError
from streaming.base.secret_masking import MASK, masked
from streaming.board.board import Board
from streaming.checkpoint.lock import StateLock
from streaming.cli.check import _copies, _port
from streaming.config.sections import Config, HttpSection, StateSection
from streaming.end_offsets.store import EndOffsets
from streaming.kafka.oauth_tokens import Token, Tokens
from streaming.metrics.exporter import Exporter
from streaming.web import access, certificate, connection_limits, rate_limit, routes
from streaming.web.rate_limit import RateLimit
from streaming.web.server import Server
from tests.certificates import Authority
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER

OTHER_ADDRESS: Final = "127.0.0.2"
TOKEN: Final = "t0ken-of-the-test"  # noqa: S105 - of a server that lives as long as the test
WAIT_SECONDS: Final = 30.0


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[Server]:
    board = Board(EndOffsets())
    server = Server.of(HttpSection(**{"port": 0, **options}), board, Exporter(board, CLUSTER))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def connected(server: Server, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS, source_address=(source, 0))


def ask(server: Server, *lines: str, source: str = "127.0.0.1") -> tuple[int, dict[str, str], str]:
    """Status, headers and body of the answer to a request as it stands in these lines; the connection is closed."""
    with connected(server, source) as connection:
        connection.sendall("".join(f"{line}\r\n" for line in (*lines, "Connection: close", "")).encode())
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        body = answer.read().decode()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def get(server: Server, path: str, *headers: str, host: str = "127.0.0.1", source: str = "127.0.0.1") -> int:
    return ask(server, f"GET {path} HTTP/1.1", f"Host: {host}", *headers, source=source)[0]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def open_connections(server: Server) -> int:
    return len(server._server.server_state.connections)


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has let go of it; waits until it has."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


# --- where a request can lead ---


@pytest.mark.parametrize(
    "path",
    [
        "/page/../server.py", "/page/..%2fserver.py", "/page/%2e%2e/%2e%2e/etc/passwd", "/page//etc/passwd",
        "/page/..%5cserver.py", "/../../etc/passwd", "/page/base.html", "/page/page.css%00.js", "/metrics/",
    ],
)  # fmt: skip
def test_no_address_leads_to_a_file(server: Server, path: str) -> None:
    """What is served was read at start, by name; everything else is 404 and led nowhere."""
    status, headers, body = ask(server, f"GET {path} HTTP/1.1", "Host: localhost")

    assert 404 == status
    assert "location" not in headers
    assert body.startswith(('{"error":"no such address: ', '{"error":"file: found '))


@pytest.mark.parametrize(
    "target", ["http://evil.test/metrics", "http://127.0.0.1/metrics", "//evil.test/", "evil.test:80"]
)
def test_it_is_no_proxy(server: Server, target: str) -> None:
    """An address of another server, or even its own in full, is answered by no page and asked of no one."""
    status, _, body = ask(server, f"GET {target} HTTP/1.1", "Host: 127.0.0.1")

    assert status in {400, 404}
    assert "kafka_" not in body


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:1", 200), ("localhost:9464", 200), ("LOCALHOST", 200), ("page.localhost", 200), ("[::1]:9464", 200),
        ("rebound.evil.test", 421), ("localhost.evil.test:9464", 421), ("", 421), ("[::1", 421),
        ("127.0.0.1.evil.test", 421),
    ],
)  # fmt: skip
def test_a_name_pointed_at_this_machine_gets_nothing(server: Server, host: str, expected: int) -> None:
    """DNS rebinding: on loopback without credentials only this machine's own names are answered to."""
    assert expected == get(server, "/metrics", host=host)


def test_names_are_taken_that_a_proxy_hands_on() -> None:
    """The configured ones beside this machine's; with credentials and no such list any, as browsers keep them apart."""
    with serving(allowed_hosts=["Monitor.example", "other.example"]) as server:
        assert [200, 421] == [get(server, "/metrics", host=name) for name in ("monitor.example:443", "evil.test")]
    with serving(token=TOKEN) as server:
        assert 200 == get(server, "/metrics", f"Authorization: Bearer {TOKEN}", host="any.example")


def test_without_authentication_names_are_refused_on_every_address() -> None:
    """A page of somebody else's reaches an open monitor by a name that it has pointed there; addresses it may not."""
    with serving(host="0.0.0.0", allow_remote_without_auth=True, allowed_hosts="monitor") as server:  # noqa: S104 - to be reached from outside is the point
        hosts = ("monitor:9464", "127.0.0.1:9464", "10.1.2.3", "localhost", "rebound.evil.test")
        assert [200, 200, 200, 200, 421] == [get(server, "/metrics", host=host) for host in hosts]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, 200),
        ({"Site": "same-origin", "Mode": "cors", "Dest": "empty"}, 200),
        ({"Site": "none", "Mode": "navigate", "Dest": "document"}, 200),
        ({"Site": "cross-site", "Mode": "navigate", "Dest": "document"}, 200),
        ({"Site": "cross-site", "Mode": "navigate", "Dest": "iframe"}, 403),
        ({"Site": "cross-site", "Mode": "no-cors", "Dest": "document"}, 403),
        ({"Site": "cross-site", "Mode": "no-cors", "Dest": "script"}, 403),
        ({"Site": "cross-site", "Mode": "cors", "Dest": "empty"}, 403),
    ],
)
def test_another_site_asks_for_nothing(server: Server, sent: dict[str, str], expected: int) -> None:
    """Browsers say so; a link to our page that a reader follows is asked for by the reader."""
    headers = [f"Sec-Fetch-{name}: {value}" for name, value in sent.items()]

    assert [expected] * 2 == [get(server, path, *headers) for path in ("/metrics", "/api/v1/groups")]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("[" * 1_000, 200), ("[" * 1_001, 400), ("*a" * 500, 200), ("*a" * 501, 400), ("a" * 20_000, 200)],
)
def test_a_pattern_takes_no_time(server: Server, pattern: str, expected: int) -> None:
    """To read one takes time by the square of its length; a name has no such bound."""
    begun = time.process_time()

    for path in ("plan?match=", "groups?topic=", "groups?owner=", "search?client_id="):
        assert expected == get(server, f"/api/v1/{path}{pattern}"), path
    assert time.process_time() - begun < 5


def test_a_head_in_one_piece_has_the_same_limit(server: Server) -> None:
    """What comes whole is not looked at for its length by the parser."""
    assert [200, 431] == [get(server, "/metrics", "X-Filler: " + "x" * size) for size in (1_000, 140_000)]


def test_a_number_of_many_digits_is_no_number_of_members(server: Server) -> None:
    """Python refuses to read more than 4,300 of them."""
    assert [200, 400] == [get(server, f"/api/v1/gate/upgrade?max_size={digits}") for digits in ("50", "9" * 5_000)]


def test_a_body_is_refused_unread(server: Server) -> None:
    """Nothing takes one, so it is not waited for; the connection ends."""
    with connected(server) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert (413, "close") == (answer.status, answer.headers["connection"])
        answer.read()
        assert is_closed(connection)
    chunked = ask(server, "GET /metrics HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked")
    assert 413 == chunked[0]


@pytest.mark.parametrize("is_second", [False, True])
def test_a_head_of_many_lines_is_refused_before_it_is_read(server: Server, *, is_second: bool) -> None:
    """It takes a tenth of a second, from any client: also where it comes behind another one, or line by line."""
    first = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * is_second
    lines = b"a:\r\n" * connection_limits.MOST_LINES
    with connected(server) as connection:
        connection.sendall(first + b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n")
        received = b"".join(iter(partial(_received, connection), b""))
    assert b"group_monitor_ready" not in received
    assert [b"200" if is_second else b"400"] == re.findall(rb"HTTP/1.1 (\d+)", received)
    few = [f"X-{number}: y" for number in range(connection_limits.MOST_LINES - 4)]
    with connected(server) as connection:
        for _ in range(3):
            connection.sendall("\r\n".join(["GET /metrics HTTP/1.1", "Host: localhost", *few, "", ""]).encode())
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            answer.read()
            assert 200 == answer.status


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65_536)
    except ConnectionError:
        return b""


def test_an_endless_head_is_cut_off(server: Server) -> None:
    """128 KB are more than the longest name needs; the server answers others meanwhile and afterwards."""
    with connected(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(200):
                connection.sendall(b"X-Filler: " + b"x" * 1_024 + b"\r\n")
        with contextlib.suppress(ConnectionError):
            assert b" 400 " in connection.recv(100)
    assert 200 == get(server, "/metrics")


# --- how much one may take ---


def test_slow_senders_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens connections and says little is let go of in time, and has left room for others from the start."""
    monkeypatch.setattr(connection_limits, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(connection_limits, "MOST_OF_ONE_ADDRESS", 30)
    with serving(requests_per_second=0) as server, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connected(server)) for _ in range(40)]
        for connection in slow:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert 200 == get(server, "/metrics", source=OTHER_ADDRESS)

        begun = time.monotonic()
        dripping = slow[0]
        with contextlib.suppress(ConnectionError):
            # A byte now and then is no reason to wait longer.
            while time.monotonic() - begun < WAIT_SECONDS:
                dripping.sendall(b"x")
                time.sleep(0.05)
        until(lambda: open_connections(server) == 0)
        assert all(is_closed(connection) for connection in slow)
        assert time.monotonic() - begun < WAIT_SECONDS
        assert 200 == get(server, "/metrics")


def held(server: Server) -> int:
    """Connections that are counted, those within a TLS handshake included."""
    return len(server._socket._connections._held)


def test_handshakes_that_are_not_finished_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without credentials: the oldest goes for each that comes, and who asks is answered."""
    monkeypatch.setattr(connection_limits, "MOST_OF_ONE_ADDRESS", 5)
    monkeypatch.setattr(connection_limits, "HANDSHAKE_SECONDS", WAIT_SECONDS)
    authority = Authority(tmp_path)
    certificate_file, key = authority.issue("server", "127.0.0.1")
    tls = {"tls_certificate_file": certificate_file, "tls_key_file": key}
    with serving(**tls) as server, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(server)) for _ in range(30)]
        assert all(is_closed(connection) for connection in silent[:25])
        assert held(server) <= 5
        assert certificate_of(server, authority)


def test_silent_connections_of_two_addresses_keep_no_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are taken: the oldest that has asked nothing goes, and a probe is answered each time."""
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 10)
    monkeypatch.setattr(connection_limits, "MOST_OF_ONE_ADDRESS", 6)
    with serving() as server, contextlib.ExitStack() as stack:
        for number in range(20):
            stack.enter_context(connected(server, source=f"127.0.0.{2 + number % 2}"))
        assert [200] * 5 == [get(server, "/healthz") for _ in range(5)]
        assert held(server) <= 10


def test_who_has_asked_is_not_put_out_by_who_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus's own connection stays, and goes on; once all have asked, the next one is closed."""
    monkeypatch.setattr(connection_limits, "MOST_OF_ONE_ADDRESS", 3)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def answered(connection: socket.socket) -> bytes:
        connection.sendall(request)
        return connection.recv(12)[-3:]

    with serving() as server, contextlib.ExitStack() as stack:
        kept = stack.enter_context(connected(server))
        assert b"200" == answered(kept)
        silent = [stack.enter_context(connected(server)) for _ in range(6)]
        assert all(is_closed(connection) for connection in silent[:4])
        assert kept.recv(4096)  # the rest of its answer
        assert b"200" == answered(kept)
        assert [b"200"] * 2 == [answered(connection) for connection in silent[4:]]
        assert is_closed(stack.enter_context(connected(server)))


@pytest.mark.parametrize(
    ("address", "caller"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_a_network_of_ipv6_is_one_caller(address: str, caller: str) -> None:
    """It has 2^64 addresses; a mapped one is the address of version 4 that it is."""
    assert caller == connection_limits.who(address)


def test_a_client_that_reads_nothing_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that no one takes do not pile up: the connection ends."""
    monkeypatch.setattr(connection_limits, "READ_SECONDS", 0.5)
    with serving(requests_per_second=0) as server, connected(server) as connection:
        connection.setblocking(False)
        request = b"GET /page/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50
        seen = False
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline and not (seen and open_connections(server) == 0):
            seen = seen or open_connections(server) == 1
            with contextlib.suppress(BlockingIOError, ConnectionError):
                connection.send(request)
            time.sleep(0.002)
        assert (True, 0) == (seen, open_connections(server))
        assert 200 == get(server, "/metrics")


def test_streams_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond their number the next one is refused; when one ends there is room again."""
    monkeypatch.setattr(routes, "MOST_STREAMS", 2)
    head = b"GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving() as server, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(connected(server)) for _ in range(2)]
        for stream in streams:
            stream.sendall(head)
            assert b" 200 " in stream.recv(100)
        until(lambda: server._pages._streams.total() == 2)
        status, _, body = ask(server, "GET /api/v1/events/stream HTTP/1.1", "Host: localhost")
        assert (503, '{"error":"streams: found 2 open already, accepted: fewer"}') == (status, body)
        streams[0].close()
        until(lambda: server._pages._streams.total() == 1)


def test_a_burst_of_streams_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as may be are opened, though all ask at once; one address may not have all, another still gets one."""
    monkeypatch.setattr(routes, "MOST_STREAMS", 6)
    monkeypatch.setattr(routes, "MOST_STREAMS_OF_ONE_ADDRESS", 4)
    head = b"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving() as server, contextlib.ExitStack() as stack:
        burst = [stack.enter_context(connected(server)) for _ in range(12)]
        for stream in burst:
            stream.sendall(head)
        statuses = [stream.recv(12)[-3:] for stream in burst]
        assert {b"200": 4, b"503": 8} == {status: statuses.count(status) for status in statuses}

        other = stack.enter_context(connected(server, OTHER_ADDRESS))
        other.sendall(head)
        assert b"200" == other.recv(12)[-3:]
        for stream in (*burst, other):
            stream.close()
        until(lambda: not server._pages._streams)


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/live", "/healthz"])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_malformed_chunk_is_refused_without_a_line(
    server: Server, caplog: pytest.LogCaptureFixture, path: str, *, at_once: bool
) -> None:
    """At the allowed rate a traceback for each would fill a disk in a day; the connection is closed."""
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunk = b"not a number\r\nbody\r\n"
    with connected(server) as connection, contextlib.suppress(ConnectionError):
        for piece in [head + chunk] if at_once else [head, chunk]:
            connection.sendall(piece)
        while connection.recv(4096):
            pass
    until(lambda: open_connections(server) == 0)

    assert [] == [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
    assert 200 == get(server, "/healthz")


@pytest.mark.parametrize(
    "head",
    [
        ("POST / HTTP/1.1", "Content-Length: 3"),
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked"),
        ("POST / HTTP/1.1", "Content-Length: 3", "Transfer-Encoding: chunked"),
        ("DELETE / HTTP/1.1",),
    ],
)
def test_a_method_that_is_not_accepted_closes(server: Server, head: tuple[str, ...]) -> None:
    """What comes after is a body perhaps, and is not taken for the next request."""
    with connected(server) as connection:
        connection.sendall(
            "\r\n".join((*head, "Host: localhost", "", "GET /metrics HTTP/1.1", "Host: localhost", "", "")).encode()
        )
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        answer.read()

        # 400 where what comes after is no chunk.
        assert answer.status == 405 or (answer.status == 400 and "Transfer-Encoding: chunked" in head)
        assert "close" == answer.headers["connection"]
        assert is_closed(connection)


def test_one_address_asks_at_its_rate_and_no_other_is_slowed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """429 with the time to wait; probes are always answered."""
    monkeypatch.setattr(access, "RateLimit", partial(RateLimit, clock=lambda: 0.0))  # however long it takes
    with serving(requests_per_second=2) as server:
        assert [200] * 10 == [get(server, "/metrics") for _ in range(10)]
        status, headers, body = ask(server, "GET /metrics HTTP/1.1", "Host: localhost")

        assert 429 == status
        assert 200 == get(server, "/metrics", source=OTHER_ADDRESS)
        assert 200 == get(server, "/healthz")
    assert int(headers["retry-after"]) >= 1
    assert "http.requests_per_second" in body


def test_who_guesses_is_slowed_down() -> None:
    """A few wrong credentials use up what a client may ask; another address still gets in."""
    with serving(requests_per_second=10, token=TOKEN) as server:
        guesses = [get(server, "/metrics", f"Authorization: Bearer {number}") for number in range(8)]

        assert (401, 429) == (guesses[0], guesses[-1])
        assert 200 == get(server, "/metrics", f"Authorization: Bearer {TOKEN}", source=OTHER_ADDRESS)


def test_rates_are_by_address_and_remembered_for_some() -> None:
    """A bucket fills with time, up to a burst; the longest silent address is forgotten first."""
    now = [0.0]
    limit = RateLimit(2.0, clock=lambda: now[0])
    burst = int(2 * rate_limit.BURST_SECONDS)

    assert [0.0] * burst == [limit.wait_seconds("a") for _ in range(burst)]
    assert 0.5 == limit.wait_seconds("a")
    assert 0.0 == limit.wait_seconds("b")
    now[0] += 0.5
    assert (0.0, 0.5) == (limit.wait_seconds("a"), limit.wait_seconds("a"))
    limit.charge("a", 1_000.0)
    now[0] += rate_limit.BURST_SECONDS
    assert limit.wait_seconds("a") > 0.0
    for number in range(rate_limit.MOST_ADDRESSES + 5):
        limit.wait_seconds(f"other-{number}")
    assert rate_limit.MOST_ADDRESSES == len(limit._left)
    assert 0.0 == RateLimit(0.0).wait_seconds("a")


def test_answers_are_sent_at_once(server: Server) -> None:
    """Their second part does not wait for the client to have acknowledged the first (Nagle's algorithm)."""
    with connected(server) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10)
        (held,) = server._server.server_state.connections
        served = held.transport.get_extra_info("socket")
        assert 0 != served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# --- what browsers and caches are asked ---


def test_answers_are_kept_by_nobody_else(server: Server) -> None:
    """No cache on the way keeps what is shown; files of the page say themselves how long they last."""
    for path in ("/", "/group/x", "/metrics", "/api/v1/groups", "/nowhere", "/healthz"):
        assert "no-store" == ask(server, f"GET {path} HTTP/1.1", "Host: localhost")[1]["cache-control"]
    headers = ask(server, "GET /page/page.css HTTP/1.1", "Host: localhost")[1]

    assert "no-store" not in headers["cache-control"]
    assert "strict-transport-security" not in headers
    assert "server" not in headers


# --- TLS ---


def certificate_of(server: Server, authority: Authority, version: ssl.TLSVersion | None = None) -> Any:
    """What a client is shown that trusts the authority."""
    context = ssl.create_default_context(cafile=str(authority.file))
    if version is not None:
        context.maximum_version = version
    with connected(server) as connection, context.wrap_socket(connection, server_hostname="127.0.0.1") as secured:
        return secured.getpeercert()["serialNumber"]  # type: ignore[index]  # verified, so there is one


def test_a_renewed_certificate_is_taken_without_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are looked at again and again; while they are no pair, the former certificate stays."""
    monkeypatch.setattr(certificate, "LOOK_EVERY_SECONDS", 0.05)
    authority = Authority(tmp_path)
    certificate_file, key = authority.issue("server", "127.0.0.1")
    with serving(tls_certificate_file=certificate_file, tls_key_file=key) as server:
        first = certificate_of(server, authority)
        key.write_text("half of a key")
        until(lambda: server._certificate is not None and server._certificate._seen == server._certificate._stamp())
        assert first == certificate_of(server, authority)
        authority.issue("server", "127.0.0.1")
        until(lambda: certificate_of(server, authority) != first)


def test_tls_is_of_this_decade_and_said_to_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.2 at least; browsers are asked to come by no other way; who does not finish a handshake is let go of."""
    monkeypatch.setattr(connection_limits, "HANDSHAKE_SECONDS", 0.5)
    authority = Authority(tmp_path)
    certificate_file, key = authority.issue("server", "127.0.0.1")
    with serving(tls_certificate_file=certificate_file, tls_key_file=key, token=TOKEN) as server:
        with connected(server) as silent:
            assert certificate_of(server, authority, ssl.TLSVersion.TLSv1_2)
            assert is_closed(silent)
        with pytest.raises((ssl.SSLError, ConnectionError)), pytest.warns(DeprecationWarning, match="TLSv1_1"):
            certificate_of(server, authority, ssl.TLSVersion.TLSv1_1)
        client = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=ssl.create_default_context(cafile=str(authority.file))
        )
        client.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = client.getresponse()
        assert (200, "max-age=31536000") == (answer.status, answer.headers["strict-transport-security"])
        client.close()


def test_a_key_with_a_password_is_refused_and_not_asked_about(tmp_path: Path) -> None:
    """No question on the terminal: no one sits there."""
    authority = Authority(tmp_path)
    certificate_file, key = authority.issue("server", "127.0.0.1", password=b"of the key")
    with pytest.raises(UsageError, match=r"^http\.tls_certificate_file: found .*without a password"):
        certificate.Certificate(certificate_file, key)


def test_credentials_in_clear_are_noted(tmp_path: Path) -> None:
    """Beyond loopback without TLS; `check` says so, and lets it be."""
    certificate_file, key = Authority(tmp_path).issue("server", "127.0.0.1")
    tls: dict[str, Any] = {"tls_certificate_file": certificate_file, "tls_key_file": key}
    beyond: dict[str, Any] = {"host": "0.0.0.0", "port": 0, "token": TOKEN}  # noqa: S104 - the point of the test

    assert "note" == _port(Config(http=HttpSection(**beyond))).status
    assert "ok" == _port(Config(http=HttpSection(**beyond, **tls))).status
    assert "ok" == _port(Config(http=HttpSection(port=0, token=TOKEN))).status  # type: ignore[arg-type]  # made a secret


def test_names_that_are_refused_without_authentication_are_noted() -> None:
    """`check` names the option before the first caller meets 421; on loopback, with names or a token it is silent."""
    beyond: dict[str, Any] = {"host": "0.0.0.0", "port": 0, "allow_remote_without_auth": True}  # noqa: S104 - as above
    found = _port(Config(http=HttpSection(**beyond)))

    assert "note" == found.status
    assert "http.allowed_hosts: found none, accepted: " in found.detail
    assert "ok" == _port(Config(http=HttpSection(**beyond, allowed_hosts="monitor"))).status
    assert "ok" == _port(Config(http=HttpSection(port=0))).status


# --- tokens of ours ---


def test_a_token_is_renewed_before_it_ends() -> None:
    """At four fifths of its life; the new one is hidden in logs in place of the old one."""
    now = [0.0]
    given = [Token("first-token", 100.0), Token("second-token", 100.0)]
    tokens = Tokens(lambda: given.pop(0), clock=lambda: now[0])

    assert ("first-token", "first-token") == (tokens.token(), tokens.token())
    assert f"Bearer {MASK}" == masked("Bearer first-token")
    now[0] = 80.0
    assert "second-token" == tokens.token()
    assert (MASK, "first-token") == (masked("second-token"), masked("first-token"))


@pytest.mark.parametrize(("ready", "expected"), [(True, "ok"), (False, "cannot tell")])
def test_check_passes_beside_its_own_monitor(tmp_path: Path, *, ready: bool, expected: str) -> None:
    """Who has the state directory and answers at the port is this configuration's own; it is asked how it is."""
    lock = StateLock(tmp_path)
    with serving() as server:
        config = Config(http=HttpSection(port=server.port), state=StateSection(dir=tmp_path))
        assert "fail" == _port(config).status

        lock.take()
        lock.keep()
        if ready:
            board = server._pages._api.board
            board.load([])
            board.health.set_log_end_at_start({}, {})
            board.health.set_positions({}, {}, 0)
            board.ends.record(1, {}, {})
        found = _port(config)
        lock.release()

    assert (expected, True) == (found.status, f"this configuration's own, process {os.getpid()}" in found.detail)


@pytest.mark.parametrize("token", [None, TOKEN])
def test_check_names_groups_in_two_partitions_of_its_own_monitor(tmp_path: Path, token: str | None) -> None:
    """By the monitor's API, with the credentials of the configuration; nothing where it does not run."""
    lock, board = StateLock(tmp_path), Board(EndOffsets())
    http_section: dict[str, Any] = {"port": 0, "token": token}
    server = Server.of(HttpSection(**http_section), board, Exporter(board, CLUSTER))
    server.start()
    try:
        config = Config(http=HttpSection(**{**http_section, "port": server.port}), state=StateSection(dir=tmp_path))
        assert [] == list(_copies(config))
        lock.take()
        lock.keep()
        (before,) = _copies(config)
        board.health.offsets_partitions = 60
        for batch, partition in enumerate((31, 51)):
            rows = Shard(partition).write(offset_commit("orders", "t", 0, 1), timestamp_ms=batch)
            board.apply(batch, board.settled(batch, rows), 0)
        (found,) = _copies(config)
    finally:
        lock.release()
        server.stop()

    assert ("ok", "none") == (before.status, before.detail)
    said = "1: orders (in 31 and 51, lives in 51); the other copies change nothing"
    assert ("note", said) == (found.status, found.detail)


def test_check_says_where_it_cannot_ask_for_groups_in_two_partitions(tmp_path: Path) -> None:
    """Another release, or other credentials."""
    lock = StateLock(tmp_path)
    with serving(token=TOKEN) as server:
        lock.take()
        lock.keep()
        config = Config(http=HttpSection(port=server.port), state=StateSection(dir=tmp_path))
        (found,) = _copies(config)
        lock.release()

    assert ("cannot tell", "the running monitor answers 401 without a list of them") == (found.status, found.detail)
