"""A recording through the model alone, as `group-monitor replay FILE --json` does it."""

import json
import os
import time
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench import log, truth
from bench.figures import Outcome
from bench.log import Expected, Plan
from bench.stage import Stage, note
from lab import builders
from lab.monitor_process import CommandProcess
from streaming.recording.file_format import Header, RecordedRecord, RecordedTopic, open_new_recording

_REPLAY_SECONDS: Final = 300


def replay(stage: Stage, size: dict[str, Any]) -> Outcome:
    """`group-monitor replay FILE --json` of a recording, `repeats` times; beside it, every line parsed and no more."""
    outcome = Outcome(size)
    plan = Plan.of(size["groups"], rounds=size["rounds"])
    expected = Expected()
    file = stage.directory / "recording.ndjson"
    _record(plan, expected, file)
    outcome.add("records", "records", expected.records)
    # What the command shows has no counters of commits.
    shown = Expected({name: replace(group, commits=0) for name, group in expected.groups.items()})
    for _ in range(size["repeats"]):
        outcome.add("parse_seconds", "s", _parse(file), reference=True)
        begun, cpu = time.monotonic(), _cpu_of_ended()
        with CommandProcess(stage.directory / "replay", "replay", str(file), "--json") as command:
            status = command.await_end(_REPLAY_SECONDS)
            seconds = time.monotonic() - begun
            if status != 0:
                raise truth.WrongResult(f"replay: {command.error_lines()[-1:]}")
            answer = json.loads(command.output.read_bytes())
        truth.require(shown, truth.of_replay(answer), "replay")
        outcome.add("seconds", "s", seconds)
        outcome.add("cpu_seconds", "s", _cpu_of_ended() - cpu)
        outcome.add("records_per_second", "records/s", expected.records / seconds)
        note(f"replay: {seconds:.1f} s")
    file.unlink()
    return outcome


def _record(plan: Plan, expected: Expected, file: Path) -> None:
    """Write the plan's log as a recording."""
    topics = [
        RecordedTopic(id=builders.topic_id(topic), name=topic, partitions=plan.partitions) for topic in plan.topic_names
    ]
    header = Header(kafka_version="4.3", offsets_topic_partitions=log.OFFSETS_PARTITIONS, topics=tuple(topics))
    offsets: Counter[int] = Counter()
    with open_new_recording(file, header) as recording:
        for made in log.records(plan, expected, int(time.time() * 1000), {}):
            offset = offsets[made.partition]
            offsets[made.partition] += 1
            recording.write(RecordedRecord(made.partition, offset, made.timestamp_ms, made.key, made.value))


def _cpu_of_ended() -> float:
    """Processor time of all processes that we started and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _parse(file: Path) -> float:
    """Seconds to read every line of it as JSON with its bytes."""
    begun = time.monotonic()
    with file.open("rb") as lines:
        next(lines)
        for line in lines:
            record = json.loads(line)
            b64decode(record["key"])
            if record["value"] is not None:
                b64decode(record["value"])
    return time.monotonic() - begun
