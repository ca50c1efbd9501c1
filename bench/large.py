"""A hundred thousand groups with three hundred thousand committed offsets: memory, the page of metrics, a restart.

The parts share one monitor. What it shows is compared with what was written before and after the restart. Pages are
asked for as Prometheus does, which takes gzip; a page is there when its last byte has come, and is unpacked and checked
after the clock has stopped. A client that takes no gzip is measured besides.
"""

import gzip
import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from bench import log, truth
from bench.figures import Outcome
from bench.process_tree import Meter
from bench.stage import ANSWER_SECONDS, Log, Monitored, Stage
from bench.steady import add_batches
from bench.writer import Trickle

MIB: Final = 2**20
_BOARD_SECONDS: Final = 300
_PAGES_WITHOUT_GZIP: Final = 3


def memory(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Memory of all processes of a monitor of `groups` groups after `seconds` of `rate` commits a second."""
    outcome = Outcome(size)
    read, monitor = _monitor(stage, size)
    with _trickle(stage, read, size):
        time.sleep(size["seconds"])
        usage = monitor.tree.memory()
    outcome.add("groups", "groups", len(read.expected.groups))
    outcome.add("offsets", "offsets", read.expected.offsets)
    outcome.add("first_ready_seconds", "s", monitor.ready_seconds)
    outcome.add("state_mib", "MiB", bytes_below(Path(monitor.options["state"]["dir"])) / MIB)
    outcome.add("pss_mib", "MiB", sum(each.pss_bytes for each in usage) / MIB)
    outcome.add("rss_mib", "MiB", sum(each.rss_bytes for each in usage) / MIB)
    for name in dict.fromkeys(each.name for each in usage):
        outcome.add(f"pss_mib of {name}", "MiB", sum(each.pss_bytes for each in usage if each.name == name) / MIB)
    reported = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "bench.board_memory", str(size["groups"])],
        capture_output=True,
        text=True,
        timeout=_BOARD_SECONDS,
        check=True,
    )
    for name, (unit, value) in json.loads(reported.stdout).items():
        outcome.add(name, unit, value)
    monitor.require(read)
    return outcome


def metrics(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Pages of /metrics, one after the other, while `rate` commits a second go on; and what batches take meanwhile.

    Before that, `warm` seconds are for what a monitor has to do after its start. The last few pages are for a client
    without gzip; what batches take during those is not in the figures.
    """
    outcome = Outcome(size)
    read, monitor = _monitor(stage, size)
    with _trickle(stage, read, size):
        time.sleep(size["warm"])
        time.sleep(size["seconds"])
        quiet = len(monitor.progress())
        time.sleep(size["seconds"])
        batches = len(monitor.progress())
        for report in monitor.batches_since(quiet):
            outcome.add("batch_without_page_seconds", "s", report["batchDuration"] / 1000, reference=True)
        meter = Meter(monitor.tree)
        for _ in range(size["repeats"]):
            sent = timed_page(outcome, "page", monitor)
        used = meter.read()
        add_batches(outcome, monitor.batches_since(batches), used)
        for _ in range(_PAGES_WITHOUT_GZIP):
            begun = time.monotonic()
            monitor.get("/metrics")
            outcome.add("page_without_gzip_seconds", "s", time.monotonic() - begun)
    page = gzip.decompress(sent)
    outcome.add("page_mib", "MiB", len(page) / MIB)
    series = sum(1 for _ in truth.samples(page.decode(), (truth.LAG,)))
    outcome.add("lag_series", "series", series)
    if series != read.expected.offsets:
        raise truth.WrongResult(f"/metrics: {series} series of lag for {read.expected.offsets} offsets")
    return outcome


def restart(stage: Stage, size: dict[str, Any]) -> Outcome:
    """End the monitor and start it again on its state: seconds to /ready, with right figures; then the small page.

    Of each start the first page is measured. The last start has no series per partition,
    so that the aggregated page is measured too.
    """
    outcome = Outcome(size)
    read, monitor = _monitor(stage, size)
    config = monitor.options
    for repeat in range(size["repeats"]):
        begun = time.monotonic()
        stage.stop()
        outcome.add("stop_seconds", "s", time.monotonic() - begun)
        per_partition = repeat < size["repeats"] - 1
        config = {**config, "metrics": {**config["metrics"], "partition_series": per_partition}}
        monitor = stage.start(config)
        meter = Meter(monitor.tree)
        monitor.await_ready()
        outcome.add("ready_seconds", "s", time.monotonic() - monitor.started)
        outcome.add("cpu_seconds", "s", meter.read()["cpu_seconds"])
        timed_page(outcome, "first_page", monitor)
        monitor.require(read, offsets=per_partition)
    for _ in range(size["pages"]):
        sent = timed_page(outcome, "aggregated_page", monitor)
    page = gzip.decompress(sent)
    outcome.add("aggregated_page_mib", "MiB", len(page) / MIB)
    outcome.add("series_a_group", "series", page.count(b',group="') / len(read.expected.groups))
    return outcome


def timed_page(outcome: Outcome, figure: str, monitor: Monitored) -> bytes:
    """A page as Prometheus asks for it, still packed; how long it took and how much was sent are figures."""
    request = Request(monitor.url + "/metrics", headers={"Accept-Encoding": "gzip"})  # noqa: S310 - our own address
    begun = time.monotonic()
    with urlopen(request, timeout=ANSWER_SECONDS) as response:  # noqa: S310 - likewise
        sent: bytes = response.read()
    outcome.add(f"{figure}_seconds", "s", time.monotonic() - begun)
    outcome.add(f"{figure}_sent_mib", "MiB", len(sent) / MIB)
    return sent


def bytes_below(directory: Path) -> int:
    """Size of all files; those that Spark removes meanwhile do not count."""
    total = 0
    for path in directory.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _monitor(stage: Stage, size: dict[str, Any]) -> tuple[Log, Monitored]:
    read = stage.log(log.Plan.of(size["groups"], rounds=2))
    return read, stage.running(read)


def _trickle(stage: Stage, read: Log, size: dict[str, Any]) -> Trickle:
    commits = read.commits(size["active"])
    return Trickle(stage.broker.bootstrap_servers, read.topic, commits, read.expected, size["rate"])
