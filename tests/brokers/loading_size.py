"""What a rehearsal of a log of a million records costs, beside a broker that loads the same log."""

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench import log
from bench.process_tree import Peak, ProcessTree
from streaming.base.times import now_ms
from streaming.loading.release_broker import ReleaseBroker
from streaming.loading.run import awaited
from streaming.recording.file_format import Header, RecordedRecord, open_new_recording
from streaming.spark import release_jars
from tests.loading_logs import numbered

RELEASES: Final = ("4.3.1",)

_MIB: Final = 1 << 20
_LOADED: Final = re.compile(
    r"Finished loading of metadata from __consumer_offsets-\d+ with epoch \d+ in (?P<all>\d+)ms where (?P<queue>\d+)ms "
    r"was spent in the scheduler\. Loaded (?P<records>\d+) records"
)
"""All the time since the partition became the broker's, in which others were loaded first: that is `queue`."""


def measured(release: str, scratch: Path) -> dict[str, Any]:
    """A row of `loading.json`: seconds, memory and disk of a rehearsal, and of a broker that starts on the same log."""
    scratch.mkdir()
    plan, file, kept = log.Plan(), scratch / "log.ndjson.gz", scratch / "kept"
    records = _write(file, plan)
    command = [sys.executable, "-m", "streaming", "rehearse", "brokers", "--json", "--release", release]
    with (scratch / "report.json").open("wb") as out:
        begun = time.monotonic()
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*command, "--from", str(file), "--keep", str(kept)], stdout=out, stdin=subprocess.DEVNULL
        )
        with Peak(ProcessTree(process.pid)) as peak:
            status = process.wait()
        seconds = time.monotonic() - begun
    (view,) = json.loads((scratch / "report.json").read_text("utf-8"))["releases"]
    if "cannot_tell" in view:
        return {"release": release, "cannot_tell": view["cannot_tell"]}
    assert status == 0, view
    return {
        "release": release,
        "records": records,
        "groups": view["groups"],
        "recording_mib": _mib(file.stat().st_size),
        "log_mib": _mib(view["bytes"]),
        "seconds": round(seconds, 1),
        "peak_mib": _mib(peak.pss_bytes),
        "broker_peak_mib": _mib(sum(size for name, size in peak.by_name.items() if "JVM" in name)),
        "bare": _bare_load(release, kept / release / "broker", records),
    }


def _write(file: Path, plan: log.Plan) -> int:
    """A recording of all that the plan says; returns how many records."""
    expected = log.Expected()
    header = Header(kafka_version="4.3.1", offsets_topic_partitions=log.OFFSETS_PARTITIONS, topics=())
    with open_new_recording(file, header) as recording:
        records = log.records(plan, expected, now_ms(), {})
        for record in numbered(RecordedRecord(of.partition, 0, of.timestamp_ms, of.key, of.value) for of in records):
            recording.write(record)
    return expected.records


def _bare_load(release: str, directory: Path, records: int) -> dict[str, Any]:
    """The broker starts on the log that the rehearsal wrote: until all is loaded, and how fast, by its own words."""
    broker = ReleaseBroker(directory, jars_dir=release_jars.place(release), offsets_partitions=log.OFFSETS_PARTITIONS)
    begun = time.monotonic()
    with broker:
        assert broker.pid is not None
        with Peak(ProcessTree(broker.pid)) as peak:
            said = awaited(broker, set(range(log.OFFSETS_PARTITIONS)), log.OFFSETS_PARTITIONS)
            seconds = time.monotonic() - begun
    rates = _rates(broker.log_file.read_text("utf-8", "replace").splitlines())
    assert not said.failed, said.failed
    assert records == sum(count for count, _ in rates)
    a_second = [round(1_000 * count / took_ms) for count, took_ms in rates]
    return {
        "seconds": round(seconds, 1),
        "peak_mib": _mib(peak.pss_bytes),
        "records_a_second_least": min(a_second),
        "records_a_second": round(statistics.median(a_second)),
    }


def _rates(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Of each partition with records: how many, and how many milliseconds they took, without its time in the queue."""
    found = [match for line in lines if (match := _LOADED.search(line)) is not None]
    return [(int(of["records"]), max(1, int(of["all"]) - int(of["queue"]))) for of in found if int(of["records"])]


def _mib(size: int) -> int:
    return round(size / _MIB)
