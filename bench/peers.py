"""Ours beside other monitors of consumer groups on one log: whatever of Burrow, KMinion, kafka_exporter is installed.

The log is the broker's own `__consumer_offsets`, read by its coordinator as well, so that a monitor may take offsets
from either. One monitor runs at a time, each from nothing. On a log of many groups: how long until its page of metrics
shows the last offset of every group, what that took, its memory after a while in which nobody asks, and a scrape. On a
log of few groups: how soon commits are on its page, and what that costs while they go on.

What ours needs is kept with the other results. What others need is printed only: their figures are measured by who
runs this, on that machine and of the versions there, and belong in no page of ours.
"""

import gzip
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

from bench import results, truth
from bench.committer import Committer
from bench.figures import Outcome, percentile
from bench.log import Plan
from bench.peer_programs import PEERS, Peer, Shown, free_port
from bench.process_tree import Meter, ProcessTree
from bench.stage import ANSWER_SECONDS, READY_SECONDS, Log, Stage, note
from bench.steady import READ_EVERY_SECONDS
from lab.monitor_process import CommandProcess, until
from streaming.demo.embedded_broker import HOST

OURS: Final = "group-monitor"
SHOWN: Final = Shown(sample=truth.OFFSET, group="group")

_RIGHT_EVERY_SECONDS: Final = 0.5
"""Between two looks at a page that is not right yet: looking costs a monitor as well."""
_EMPTY_SECONDS: Final = 180.0
"""Members that are in the log alone are gone after their session timeout, 45 s; of many groups, some time later."""
_SEEN_SECONDS: Final = 60.0

COLUMNS: Final[Mapping[str, str]] = {
    "right_seconds": "right after, s",
    "right_cpu_seconds": "processor until then, s",
    "pss_mib": "memory, MiB",
    "page_seconds": "scrape, s",
    "page_sent_mib": "sent, MiB",
    "page_samples": "samples",
    "p50_seconds": "commit visible, median, s",
    "p99_seconds": "99th hundredth, s",
    "cpu_share": "cores meanwhile",
}
"""Figure → its heading beside others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A monitor that was started.

    Attributes:
        process: the command, whatever it started below it.
        page: address of its metrics.
        offsets: where committed offsets are on it.
        started: by the monotonic clock.
        meter: of its processes since then.
    """

    process: CommandProcess
    page: str
    offsets: Shown
    started: float
    tree: ProcessTree
    meter: Meter


def peers(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Run every monitor on logs of `groups` groups and of `active` ones, which may be the same; ours last.

    Groups committed `rounds` times and had `members`; without any they only commit.
    """
    stage.stop()
    installed = [(peer, path) for peer in PEERS if (path := peer.path())]
    for peer in PEERS:
        if all(peer is not each for each, _ in installed):
            note(peer.how_to_get_it)
    found: dict[str, Outcome] = {peer.name: Outcome(size) for peer, _ in installed}
    failed: dict[str, str] = {}
    outcome = Outcome(size)
    for groups in dict.fromkeys((size["groups"], size["active"])):
        plan = plan_of(groups, size)
        with cluster(stage, plan) as (inner, read):
            for peer, path in installed:
                if peer.name in failed:
                    continue
                note(f"{peer.name} on {groups} groups")
                try:
                    with _started(peer, path, inner) as running:
                        _measure(running, inner, read, size, found[peer.name])
                except (truth.WrongResult, OSError) as error:
                    # One that cannot read this log must not take along those that can.
                    failed[peer.name] = str(error)
                    note(f"{peer.name}: {error}")
            note(f"{OURS} on {groups} groups")
            monitor = inner.start(inner.config(read))
            meter = Meter(monitor.tree)
            page = f"{monitor.url}/metrics"
            ours = Running(
                process=monitor, page=page, offsets=SHOWN, started=monitor.started, tree=monitor.tree, meter=meter
            )
            _measure(ours, inner, read, size, outcome)
            inner.stop()
    sys.stdout.write(side_by_side({**found, OURS: outcome}) + "\n")
    return outcome


def side_by_side(found: Mapping[str, Outcome]) -> str:
    """A line for each monitor; what could not be measured is a dash."""
    rows = [("measured by you", *COLUMNS.values())]
    for name, outcome in found.items():
        figures = outcome.figures
        cells = (f"{figures[each].as_json()['median']:,g}" if each in figures else "-" for each in COLUMNS)
        rows.append((name, *cells))
    return results.aligned(rows)


def sums(page: str, offsets: Shown) -> dict[str, int]:
    """Group → sum of its committed offsets, as a page of metrics shows them."""
    found: dict[str, int] = {}
    for _, labels, value in truth.samples(page, (offsets.sample,)):
        found[labels[offsets.group]] = found.get(labels[offsets.group], 0) + int(value)
    return found


def samples(page: str) -> int:
    """How many samples a page of metrics has."""
    return sum(1 for line in page.splitlines() if line and not line.startswith("#"))


def plan_of(groups: int, size: Mapping[str, Any]) -> Plan:
    """What a log of so many groups is to hold."""
    plan = Plan.of(groups, rounds=size["rounds"])
    if size["members"]:
        return replace(plan, members=size["members"])
    return replace(plan, classic_groups=0, consumer_groups=0, simple_groups=groups)


@contextmanager
def cluster(stage: Stage, plan: Plan) -> Iterator[tuple[Stage, Log]]:
    """A broker of its own whose coordinator has the groups of a plan, none of them with a member left."""
    inner = Stage(stage.directory / f"peers-{len(plan.names)}", stage.jars_dir)
    with ExitStack() as stack:
        stack.callback(inner.close)
        read = inner.coordinator_log(plan)
        admin = AdminClient({"bootstrap.servers": inner.broker.bootstrap_servers, "log_level": 2})

        def all_empty() -> bool:
            listed = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result()
            return len(listed.valid) == len(plan.names)

        until(all_empty, _EMPTY_SECONDS, "the coordinator does not have all groups, without their members")
        yield inner, read


@contextmanager
def _started(peer: Peer, path: str, inner: Stage) -> Iterator[Running]:
    directory = inner.directory / peer.name
    directory.mkdir()
    port = free_port()
    start = peer.start(inner.broker.bootstrap_servers, port, directory)
    for name, text in start.files.items():
        (directory / name).write_text(text, encoding="utf-8")
    begun = time.monotonic()
    with _Program(path, directory, start.arguments, start.environment) as process:
        tree = ProcessTree(process.pid)
        yield Running(
            process=process,
            page=f"http://{HOST}:{port}/metrics",
            offsets=peer.offsets,
            started=begun,
            tree=tree,
            meter=Meter(tree),
        )


class _Program(CommandProcess):
    """A program that is not ours, in a session of its own."""

    def __init__(self, path: str, directory: Path, arguments: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.program = (path,)
        super().__init__(directory, *arguments, environment=environment, cwd=directory)


def _measure(running: Running, inner: Stage, read: Log, size: Mapping[str, Any], outcome: Outcome) -> None:
    """All that this log is for; raises WrongResult where the page is not right."""
    _until_right(running, read)
    if len(read.plan.names) == size["groups"]:
        outcome.add("right_seconds", "s", time.monotonic() - running.started)
        outcome.add("right_cpu_seconds", "s", running.meter.read()["cpu_seconds"])
        time.sleep(size["settle"])
        outcome.add("pss_mib", "MiB", running.tree.pss_bytes() / 2**20)
        for _ in range(size["pages"]):
            begun = time.monotonic()
            sent = _page(running)
            outcome.add("page_seconds", "s", time.monotonic() - begun)
            outcome.add("page_sent_mib", "MiB", len(sent) / 2**20)
        outcome.add("page_samples", "samples", samples(_text(sent)))
    if len(read.plan.names) == size["active"]:
        _latency(running, inner.broker.bootstrap_servers, read, size, outcome)


def _until_right(running: Running, read: Log) -> None:
    """Ask until the page has the last offsets of all groups.

    Raises:
        WrongResult: it ended, or was not right in time.
    """
    expected = {name: sum(group.offsets.values()) for name, group in read.expected.groups.items()}
    wrong = list(expected)
    deadline = running.started + READY_SECONDS
    while time.monotonic() < deadline:
        if running.process.exit_status is not None:
            raise truth.WrongResult(f"ended with {running.process.exit_status}: {_last_words(running)}")
        with suppress(OSError):
            found = sums(_text(_page(running)), running.offsets)
            # Burrow has groups of its own, so there may be more.
            wrong = [name for name in expected if found.get(name) != expected[name]]
        if not wrong:
            return
        time.sleep(_RIGHT_EVERY_SECONDS)
    raise truth.WrongResult(
        f"after {READY_SECONDS:g} s {len(wrong)} of {len(expected)} groups are missing or wrong "
        f"({', '.join(wrong[:3])}): {_last_words(running)}"
    )


def _latency(running: Running, servers: str, read: Log, size: Mapping[str, Any], outcome: Outcome) -> None:
    """Commit, and look at the page again and again; what is sent in the first `warm` seconds does not count.

    Raises:
        WrongResult: commits were sent that the page never showed.
    """
    with Committer(servers, read.plan, read.plan.names, read.expected) as committer:
        committer.start(size["rate"])
        time.sleep(size["warm"])
        seen = _Seen(running, committer)
        seen.look()
        seen.waits.clear()
        meter = Meter(running.tree)
        end = time.monotonic() + size["seconds"]
        while time.monotonic() < end:
            time.sleep(READ_EVERY_SECONDS)
            seen.look()
        used = meter.read()
        committer.stop()
        deadline = time.monotonic() + _SEEN_SECONDS
        while seen.unseen() and time.monotonic() < deadline:
            time.sleep(READ_EVERY_SECONDS)
            seen.look()
    if seen.unseen():
        raise truth.WrongResult(f"{seen.unseen()} requests to commit were never seen")
    outcome.add("p50_seconds", "s", percentile(seen.waits, 0.5))
    outcome.add("p99_seconds", "s", percentile(seen.waits, 0.99))
    outcome.add("cpu_share", "1", used["cpu_seconds"] / used["wall_seconds"])
    outcome.add("others_share", "1", used["others_share"])


class _Seen:
    """How many requests of each group a page has shown, and how long each was waited for.

    A request moves each partition on by one, so the sum of a group's offsets says how many are there in full.
    """

    def __init__(self, running: Running, committer: Committer) -> None:
        self._running, self._committer = running, committer
        self._counts = dict.fromkeys(committer.sent, 0)
        self.waits: list[float] = []

    def look(self) -> None:
        """Take one page."""
        shown = sums(_text(_page(self._running)), self._running.offsets)
        arrived = time.time()
        for name, sent in self._committer.sent.items():
            count = (shown.get(name, 0) - self._committer.first[name]) // self._committer.partitions(name)
            self.waits += [arrived - at for at in sent[self._counts[name] : count]]
            self._counts[name] = max(count, self._counts[name])

    def unseen(self) -> int:
        """How many were sent and not seen yet."""
        return sum(len(sent) - self._counts[name] for name, sent in self._committer.sent.items())


def _last_words(running: Running) -> str:
    lines = [*running.process.output_lines(), *running.process.error_lines()]
    return lines[-1][:300] if lines else "it said nothing"


def _page(running: Running) -> bytes:
    """A page as Prometheus asks for it, and as it was sent. Raises OSError."""
    request = Request(running.page, headers={"Accept-Encoding": "gzip"})  # noqa: S310 - on this machine
    with urlopen(request, timeout=ANSWER_SECONDS) as response:  # noqa: S310 - likewise
        sent: bytes = response.read()
    return sent


def _text(sent: bytes) -> str:
    return (gzip.decompress(sent) if sent.startswith(b"\x1f\x8b") else sent).decode("utf-8")
