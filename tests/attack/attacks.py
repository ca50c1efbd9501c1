"""The attacks, each a function of its own that is bounded, and the table of them.

An attack asserts what must hold while it is on. What must hold of every attack is asked of all alike
(`__main__.py`): probes go on answering, a commit of meanwhile is shown, and memory and descriptors come back.
"""

import json
import os
import random
import resource
import signal
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Producer

from lab import builders
from lab.monitor_process import parse_metrics, until
from tests import hostile_batches
from tests.attack.scene import GUARDED, IMPATIENT, OPEN, PROBES, Scene
from tests.faults.processes_of import workers

LONGEST_NAME: Final = 32_767
"""Bytes of a group's name that a request can hold."""
NAMES: Final = 1_000
UNREAD_NAMES: Final = 300
UNREAD: Final = 100
HANDSHAKES: Final = 6_000
ADDRESSES: Final = [f"127.0.0.{number}" for number in range(2, 22)]
OF_EACH: Final = 60
BRACKETS: Final = "[" * 20_000
HOLD_SECONDS: Final = 12.0
"""How long connections that say nothing are held open, and made again."""
SOON_SECONDS: Final = 120.0
GUESSES: Final = 500
RECORDS: Final = 20_000
OFFSETS_TOPIC: Final = "__consumer_offsets"
BOMBED, UNREADABLE = 0, 1
"""Partitions of which a value is too large, and a batch cannot be read; no group of ours is in them. A coordinator that
finds in its log what it has not written reads it again, and lets go of its groups where it cannot."""
HELD_AT_ONCE: Final = 400
PROBED: Final = "127.0.0.97"
"""Who probes on the port that is for it."""
FETCHED: Final = (("image", "no-cors"), ("script", "no-cors"), ("empty", "cors"), ("iframe", "navigate"))
"""What another site's page may ask for, as browsers say: destination and mode."""
FOREIGN: Final = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "x@evil.example")
SPARE_DESCRIPTORS: Final = 40
"""How many more descriptors a process that runs out of them may open."""


def long_names(scene: Scene) -> None:
    """A client commits an offset of 1,000 groups whose names have 32 KB; then the metrics are asked for three times."""
    names = [_long(number) for number in range(NAMES)]
    scene.commit(dict.fromkeys(names, 1))
    try:
        until(lambda: _counted(scene) >= NAMES, SOON_SECONDS, "groups of long names are not shown")
        for _ in range(3):
            status, page = scene.get("/metrics", timeout=60)
            assert status == 200
            assert len(page) < 40 * 2**20, f"a page of {len(page)} bytes"
            shown = parse_metrics(page.decode())["kafka_group_info"]
            assert len(shown) >= NAMES, "two names share a label"
    finally:
        scene.delete(names)
        until(lambda: _counted(scene) < NAMES, SOON_SECONDS, "deleted groups are still shown")


def unread_metrics(scene: Scene) -> None:
    """100 connections ask for the metrics of 300 groups with names of 32 KB, and take nothing of the answer."""
    names = [_long(number) for number in range(UNREAD_NAMES)]
    scene.commit(dict.fromkeys(names, 1))
    try:
        until(lambda: _counted(scene) >= UNREAD_NAMES, SOON_SECONDS, "groups of long names are not shown")
        with ExitStack() as stack:
            for number in range(UNREAD):
                connection = stack.enter_context(
                    scene.connect(ADDRESSES[number % len(ADDRESSES)], receive_buffer=4_096)
                )
                connection.sendall(_request("/metrics"))
            time.sleep(HOLD_SECONDS)
    finally:
        scene.delete(names)
        until(lambda: _counted(scene) < UNREAD_NAMES, SOON_SECONDS, "deleted groups are still shown")


def silent_connections(scene: Scene) -> None:
    """20 addresses hold 60 connections each on which they say nothing, and open others for those that are closed."""
    with ExitStack() as stack:
        end = time.monotonic() + HOLD_SECONDS
        while time.monotonic() < end:
            for address in ADDRESSES:
                for _ in range(OF_EACH // 10):
                    with suppress(OSError):
                        stack.enter_context(scene.connect(address))
            time.sleep(HOLD_SECONDS / 12)


def probe_port(scene: Scene) -> None:
    """20 addresses say nothing on the port of probes and on the other, or half a request, or ask and do not listen."""
    with ExitStack() as stack:
        held = deque[socket.socket](maxlen=HELD_AT_ONCE)
        end = time.monotonic() + HOLD_SECONDS
        while time.monotonic() < end:
            for number, address in enumerate(ADDRESSES):
                for port in (scene.probe_port, scene.port):
                    for said in (b"", b"GET /healthz HTTP/1.1\r\nHo", _request(PROBES[number % 2])):
                        if len(held) == HELD_AT_ONCE:
                            held.popleft().close()
                        with suppress(OSError):
                            held.append(stack.enter_context(scene.connect(address, port=port)))
                            held[-1].sendall(said)
            for path in PROBES:
                status, said_of_it = scene.probe(path, PROBED)
                assert status in ((200, 503) if path == "/ready" else (200,)), f"{path} was answered with {status}"
                answered = json.dumps(said_of_it)
                assert "of-ours" not in answered, f"{path} names a group"
                assert scene.servers not in answered, f"{path} names a broker"
        refused = scene.probe("/metrics", PROBED)[0]
        assert refused == 404, f"/metrics was answered with {refused} on the port of probes"


def silent_handshakes(scene: Scene) -> None:
    """6,000 connections to the TLS port from one address that never begin a handshake."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, HANDSHAKES + 2_000), hard))
    try:
        with ExitStack() as stack:
            for _ in range(HANDSHAKES):
                with suppress(OSError):
                    stack.enter_context(scene.connect())
            held = len(scene.descriptors())
            assert held < 1_000, f"{held} descriptors are held"
            time.sleep(HOLD_SECONDS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def patterns(scene: Scene) -> None:
    """45 requests with patterns of 20,000 brackets, and 45 of the 1,000 accepted, from clients that hang up at once."""
    for number in range(90):
        pattern = (BRACKETS if number % 2 else BRACKETS[:990]) + str(number)
        with scene.connect(ADDRESSES[number % len(ADDRESSES)]) as connection:
            connection.sendall(_request(f"/api/v1/groups?match={pattern}"))
    begun = time.monotonic()
    assert scene.status("/ready"), "/ready is not answered"
    waited = time.monotonic() - begun
    assert waited < scene.answer_seconds / 2, f"/ready waited {waited:.1f} s"
    refused = scene.status(f"/api/v1/groups?match={BRACKETS}")
    assert refused == 400, f"a pattern of 20,000 brackets was answered with {refused}"


def another_site_s_page(scene: Scene) -> None:
    """What a browser asks for on behalf of another site's page, as images, scripts and frames."""
    for path in ("/metrics", "/api/v1/groups", "/api/v1/events/stream", "/plan", "/"):
        for destination, mode in (
            ("image", "no-cors"),
            ("script", "no-cors"),
            ("empty", "cors"),
            ("iframe", "navigate"),
        ):
            sent = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
            status = scene.status(path, sent, source=random.choice(ADDRESSES))
            assert status == 403, f"{path} as {destination} was answered with {status}"
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert scene.status("/", followed) == 200, "a link that is followed was refused"


def another_name(scene: Scene) -> None:
    """A name of somebody else's points at the monitor (DNS rebinding)."""
    for host in (
        "evil.example",
        f"evil.example:{scene.port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "x@y",
    ):
        for path in ("/", "/metrics", "/api/v1/groups", "/healthz"):
            status = scene.status(path, {"Host": host})
            assert status == 421, f"{path} of {host} was answered with {status}"


def huge_heads(scene: Scene) -> None:
    """Heads of 140 KB in one piece, heads without end, and bodies that no one asked for."""
    for address in ADDRESSES:
        long = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 140_000 + b"\r\n\r\n"
        status = scene.say(long, address)
        assert status in (0, 400, 431), f"a head of 140 KB was answered with {status}"
        many = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: a\r\n" * 30_000 + b"\r\n"
        status = scene.say(many, address)
        assert status in (0, 400, 431), f"a head of 30,000 lines was answered with {status}"
        status = scene.say(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000000000\r\n\r\n", address)
        assert status in (0, 405, 413), f"a body was answered with {status}"
        with scene.connect(address) as endless, suppress(OSError):
            endless.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            for _ in range(100):
                endless.sendall(b"X: " + b"a" * 10_000 + b"\r\n")
            answer = endless.recv(64)
            assert answer == b"" or answer.split()[1] in (b"400", b"431"), f"a head without end: {answer!r}"


def repeated_parameters(scene: Scene) -> None:
    """A parameter said a thousand times over, and numbers of thousands of digits."""
    many = "&".join(["group=of-ours"] * 1_000)
    for path in (
        f"/api/v1/groups?{many}",
        f"/api/v1/events?{many}",
        f"/api/v1/gate/upgrade?{many}",
        "/plan?max_size=" + "9" * 5_000,
        "/api/v1/plan?max_size=" + "9" * 5_000,
        "/metrics?shard=" + "9" * 5_000 + "/2",
        "/api/v1/groups?limit=" + "9" * 5_000,
    ):
        for address in ADDRESSES[:5]:
            status = scene.status(path, source=address)
            assert status in (200, 400, 404, 503), f"{path[:40]} was answered with {status}"
    assert "Traceback" not in scene.logged()


def undecodable_records(scene: Scene) -> None:
    """A client that may write to the coordinator's log writes 20,000 records that are none of it."""
    before = _log_size(scene)
    chance = random.Random(1)
    writer = Producer({"bootstrap.servers": scene.servers, "client.id": "__admin_client", "linger.ms": 50})
    for number in range(RECORDS):
        key = b"\x00\x01" + chance.randbytes(20)
        writer.produce(OFFSETS_TOPIC, chance.randbytes(40), key, partition=(BOMBED, UNREADABLE)[number % 2])
        writer.poll(0)
    assert writer.flush(60) == 0

    until(
        lambda: _sum_of(scene, "group_monitor_undecodable_records_total") >= RECORDS * 0.9,
        2 * SOON_SECONDS,
        "records that do not decode are not counted",
    )
    written = _log_size(scene) - before
    assert written < 10 * 2**20, f"the log grew by {written} bytes"


def unreadable_batches(scene: Scene) -> None:
    """A batch of 400 KB with a value of 400 MB in the coordinator's log, and one of 12 KB beyond librdkafka's limit."""
    key, _ = builders.group_metadata("bombed", generation=1, members=[])
    counted = ("group_monitor_undecodable_records_total", "group_monitor_unreadable_batches_total")
    before = [_sum_of(scene, of) for of in counted]
    hostile_batches.write(scene.servers, OFFSETS_TOPIC, BOMBED, hostile_batches.gzip_bomb(key, 400_000_000))
    hostile_batches.write(scene.servers, OFFSETS_TOPIC, UNREADABLE, hostile_batches.zstd_bomb(key, 400_000_000))
    for of, known in zip(counted, before, strict=True):
        until(lambda: _sum_of(scene, of) > known, SOON_SECONDS, f"{of} stands still")  # noqa: B023 - ends in this round
    lines = [line for line in scene.logged().splitlines() if "event=unreadable_batch" in line]
    assert any(f"partition={UNREADABLE}" in line for line in lines), "no line says which partition it is"


def hung_workers(scene: Scene) -> None:
    """Spark's workers are stopped (SIGSTOP) while records come; the stream is to be started again."""
    hung, said = workers(scene.monitor), scene.logged().count("event=stream_restarted")
    for pid in hung:
        os.kill(pid, signal.SIGSTOP)

    def is_started_again() -> bool:
        scene.commit({"of-others": 1})
        return scene.logged().count("event=stream_restarted") > said

    try:
        # Ten times the longest micro-batch so far may be minutes, where the first catch-up had little of the machine.
        until(is_started_again, 5 * SOON_SECONDS, "the stream is not started again")
    finally:
        scene.delete(["of-others"])
        for pid in hung:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def guessing(scene: Scene) -> None:
    """500 guesses of the token from one address, which then is slowed down and no other is."""
    answers: dict[int, int] = {}
    begun = time.monotonic()
    for number in range(GUESSES):
        status = scene.status("/api/v1/groups", {"Authorization": f"Bearer guess-{number}"}, ADDRESSES[0])
        answers[status] = answers.get(status, 0) + 1
        if number % 50 == 49:
            assert scene.status("/api/v1/groups", source=ADDRESSES[1]) == 200, "another address is slowed down as well"
    assert answers.keys() <= {401, 429, 0}, f"answered with {answers}"
    # Each counts as twenty requests, of which an address has 200 a second and five seconds' worth at once.
    most = (time.monotonic() - begun + 5.0) * 200 / 20
    assert answers.get(401, 0) <= most + 1, f"who guesses is not slowed down: {answers}"


def no_descriptors(scene: Scene) -> None:
    """Connections take the last descriptor that the monitor's process may open, for as long as they can."""
    pid = scene.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    before = _log_size(scene)
    now = max(scene.descriptors()) + 1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (now + SPARE_DESCRIPTORS, hard))
    try:
        with ExitStack() as stack:
            end = time.monotonic() + HOLD_SECONDS
            while time.monotonic() < end:
                for address in ADDRESSES:
                    with suppress(OSError):
                        stack.enter_context(scene.connect(address))
                time.sleep(HOLD_SECONDS / 60)
    finally:
        # A number of a descriptor that is open may be above the limit, so it stays lawful to raise it again.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    written = _log_size(scene) - before
    assert written < 2**20, f"the log grew by {written} bytes"


def half_handshakes(scene: Scene) -> None:
    """TLS handshakes that are begun and left, and what is no TLS at all, from 20 addresses."""
    begun = _client_hello()
    with ExitStack() as stack:
        for said in (begun[:40], begun, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", os.urandom(500)):
            for address in ADDRESSES:
                with suppress(OSError):
                    connection = stack.enter_context(scene.connect(address))
                    connection.sendall(said)
        time.sleep(HOLD_SECONDS / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack.

    Attributes:
        does: the function; its docstring says what is done.
        kind: of the monitor that is attacked.
        before: what came of it once, as it was found.
        test: the test of `make test` that asks the same of the part alone.
        may_refuse: whether probes may be refused while it is on.
    """

    does: Callable[[Scene], None]
    kind: str = OPEN
    before: str
    test: str
    may_refuse: bool = False

    @property
    def name(self) -> str:
        """In words."""
        return self.does.__name__.replace("_s_", "'s ").replace("_", " ")


_HARDENING: Final = "tests/streaming/web/test_hardening.py"

ATTACKS: Final = (
    Attack(
        does=silent_connections,
        before="`/healthz` refused in 82 of 83 tries",
        test=f"{_HARDENING}::test_silent_connections_of_two_addresses_keep_no_one_out",
    ),
    Attack(
        does=probe_port,
        before="there was one port for all",
        test="tests/streaming/web/test_exhaustion.py::test_probes_are_answered_while_the_other_listener_is_full",
    ),
    Attack(
        does=patterns,
        before="`/ready` stalled for 37 s, 0.8 MB kept of each pattern",
        test=f"{_HARDENING}::test_a_pattern_takes_no_time",
    ),
    Attack(
        does=another_site_s_page,
        before="answered",
        test=f"{_HARDENING}::test_another_site_asks_for_nothing",
    ),
    Attack(
        does=another_name,
        before="answered where remote callers need no credentials",
        test=f"{_HARDENING}::test_a_name_pointed_at_this_machine_gets_nothing",
    ),
    Attack(
        does=huge_heads,
        before="a head of 140 KB was read",
        test=f"{_HARDENING}::test_a_head_in_one_piece_has_the_same_limit",
    ),
    Attack(
        does=repeated_parameters,
        before="groups counted twice; a traceback",
        test=f"{_HARDENING}::test_a_number_of_many_digits_is_no_number_of_members",
    ),
    Attack(
        does=no_descriptors,
        before="197 MB of log; no micro-batch for 35 minutes",
        test=f"{_HARDENING}::test_handshakes_that_are_not_finished_are_counted",
        may_refuse=True,
    ),
    Attack(
        does=unread_metrics,
        before="15.9 GB of memory, ended by the kernel",
        test=f"{_HARDENING}::test_a_client_that_reads_nothing_is_let_go_of",
    ),
    Attack(
        does=long_names,
        before="a page of 658 MB, 2.0 GB of memory",
        test="tests/streaming/web/test_hostile_names.py::test_metrics_are_valid_and_name_every_group",
    ),
    Attack(
        does=undecodable_records,
        before="a line in the log of each",
        test="tests/integration/test_job.py::test_records_that_cannot_be_read_are_counted",
    ),
    Attack(
        does=unreadable_batches,
        before="Spark's JVM ended, again at each start; the stream of all groups stopped",
        test="tests/streaming/kafka/test_range_reader.py::test_a_batch_beyond_the_limit_of_zstd_is_stepped_over",
    ),
    Attack(
        does=hung_workers,
        kind=IMPATIENT,
        before="no micro-batch for 35 minutes, and `/healthz` said 200",
        test="tests/streaming/board/test_stall.py::test_when_a_stream_is_started_again",
    ),
    Attack(
        does=silent_handshakes,
        kind=GUARDED,
        before="6,032 descriptors and 2.0 GB, half an hour later still",
        test=f"{_HARDENING}::test_handshakes_that_are_not_finished_are_counted",
    ),
    Attack(
        does=half_handshakes,
        kind=GUARDED,
        before="not tried",
        test=f"{_HARDENING}::test_handshakes_that_are_not_finished_are_counted",
    ),
    Attack(
        does=guessing,
        kind=GUARDED,
        before="slowed down",
        test=f"{_HARDENING}::test_who_guesses_is_slowed_down",
    ),
)
"""In the order in which they are tried: what a JVM takes for good comes last."""


def _long(number: int) -> str:
    return f"{number:06}-".ljust(LONGEST_NAME, "x")


def _counted(scene: Scene) -> int:
    """Groups that are there."""
    page = scene.get("/metrics", timeout=60)[1].decode()
    lines = "".join(f"{line}\n" for line in page.splitlines() if line.startswith("kafka_cluster_groups"))
    return int(sum(parse_metrics(lines).get("kafka_cluster_groups", {}).values()))


def _sum_of(scene: Scene, metric: str) -> float:
    return sum(parse_metrics(scene.get("/metrics", timeout=60)[1].decode()).get(metric, {}).values())


def _request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def _log_size(scene: Scene) -> int:
    return len(scene.logged())


def _client_hello() -> bytes:
    """The first bytes of a TLS handshake."""
    outgoing = ssl.MemoryBIO()
    handshake = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    return outgoing.read()
