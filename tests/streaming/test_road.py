"""The road of a commit: through which modules one goes from the log to a line of /metrics, and as what.

Followed is one commit of a known group, in the process that plans and reads, in the stateful task, and in the driver.
What Spark carries between them is handed on here. A function is passed through that is given the offset or gives it
back, in whatever form: a number, bytes, text, in columns, packed or compressed. Holding it is not enough: a board that
is asked has all groups.
"""

import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from confluent_kafka import Message, Producer
from pyspark.sql.streaming.tws_tester import TwsTester

from lab.builders import offset_commit
from streaming.base.persistent_map import GroupMap
from streaming.board.board import Board
from streaming.config.kafka_sections import KafkaSection
from streaming.config.sections import Config
from streaming.metrics.exporter import Exporter
from streaming.query import foreach_batch, source
from streaming.query.foreach_batch import BatchWriter
from streaming.query.processor import CoordinatorShards
from tests.streaming.boards import CLUSTER, NOW_MS, OFFSETS_TOPIC, caught_up, log_ends, sample

ROOT: Final = Path(__file__).resolve().parent.parent.parent
OFFSET: Final = 1_234_567_890_123
FORMS: Final = (OFFSET.to_bytes(8, "big"), OFFSET.to_bytes(8, "little"), str(OFFSET).encode())
MOST_ARROWS, MOST_MODULES = 14, 28
_STREAM, _GZIP = b"\xff\xff\xff\xff", b"\x1f\x8b"


def carrying(value: object) -> Iterator[str]:
    """Names of the types in a value that have the offset in them; the outermost last, nothing where none has."""
    parts: Iterator[object] = iter(())
    match value:
        case bool() | None:
            return
        case int() | float() | np.integer():
            is_it = value == OFFSET
        case str():
            is_it = str(OFFSET) in value
        case bytes() | bytearray() | memoryview():
            held = bytes(value)
            is_it = any(form in held for form in FORMS)
            if held.startswith(_STREAM):
                parts = iter([pa.ipc.open_stream(held).read_all()])
            elif held.startswith(_GZIP):
                parts = iter([zlib.decompressobj(31).decompress(held)])
        case np.ndarray():
            is_it = value.dtype.kind in "iuf" and bool((value == OFFSET).any())
        case _:
            is_it, parts = False, parts_of(value)
    found = [name for part in parts for name in carrying(part)]
    if is_it or found:
        yield from found
        yield type(value).__name__


def parts_of(value: object) -> Iterator[object]:
    """What a container has in it; nothing of what is no value, a map of all groups among them."""
    match value:
        case Message():
            yield value.value()
        case pa.Table() | pa.RecordBatch():
            yield from (column.to_pylist() for column in value.columns)
        case pd.DataFrame():
            yield from (value[name].tolist() for name in value)
        case Mapping() if type(value) is dict:
            yield from value
            yield from value.values()
        case list() | tuple() | set() | frozenset():
            yield from value
        case GroupMap() | type():
            return
        case _ if type(value).__module__.startswith(("streaming.", "coordinator_model.")):
            names = [of.name for of in fields(value)] if is_dataclass(value) else []
            names += [name for of in type(value).__mro__ for name in vars(of).get("__slots__", ()) if not names]
            yield from (getattr(value, name, None) for name in names)


class Follower:
    """Notes which functions of ours the offset passes through, in all threads that begin while it looks."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = {}
        """Module → names of the types that it came as."""
        self.looks = False

    def look(self, frame: FrameType, event: str, given_back: object) -> None:
        path = Path(frame.f_code.co_filename)
        if not self.looks or event not in ("call", "return") or not path.is_relative_to(ROOT):
            return
        package, *rest = path.relative_to(ROOT).with_suffix("").parts
        if package not in ("streaming", "coordinator_model"):
            return
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        given = [frame.f_locals.get(name) for name in code.co_varnames[:count] if name not in ("self", "cls")]
        types = {name for value in (given if event == "call" else [given_back]) for name in carrying(value)}
        if types:
            self.seen.setdefault("/".join(rest), set()).update(types)


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], bytes]]:
    """Writes a commit of this offset to a log, and takes it to a page of /metrics."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    producer.list_topics(OFFSETS_TOPIC, timeout=10)
    config = Config(kafka=KafkaSection(bootstrap_servers=f"{broker.host}:{broker.port}"))
    spark = MagicMock()
    source.coordinator_log(spark, config, [0], source.Known(live_from={0: 0}))
    reader = source.CoordinatorLogReader(spark.readStream.format.return_value.option.call_args.args[1])
    task = TwsTester(CoordinatorShards({0: 0}), timeMode="ProcessingTime")
    board = Board(log_ends(t=1))
    board.load([])
    sample(caught_up(board).ends, NOW_MS, "t", 3 * OFFSET)
    writer = BatchWriter([board], lambda: NOW_MS, settled=board.settled)
    exporter = Exporter(board, CLUSTER, clock_ms=lambda: NOW_MS)
    dataset, served = MagicMock(), list[Any]()
    dataset.collectAsArrowToPython.return_value.__iter__.side_effect = lambda: iter(MagicMock() for _ in range(3))
    monkeypatch.setattr(foreach_batch, "unwrap_spark_exception", nullcontext)
    monkeypatch.setattr(foreach_batch, "opened", lambda _: (MagicMock(), MagicMock()))
    monkeypatch.setattr(foreach_batch, "ArrowCollectSerializer", lambda: MagicMock(load_stream=lambda _: served))
    number = iter(range(100))

    def taken(offset: int) -> bytes:
        at = next(number)
        key, value = offset_commit("g", "t", 0, offset, timestamp=NOW_MS)
        producer.produce(OFFSETS_TOPIC, value, key, 0)
        producer.flush()
        start, end = ({"commits": {"0": of}, "membership": {"0": of}, "cut": []} for of in (at, at + 1))
        reader.partitions(start, end)
        rows = pd.concat([each.to_pandas() for each in reader.getCache(start, end) or ()])
        served[:] = pa.Table.from_pandas(task.testInPandas(0, rows)), [0]
        writer.call(dataset, at)
        pieces, _ = exporter.pieces(gzip=True)
        return zlib.decompressobj(31).decompress(b"".join(pieces))

    before = set(source._readers)
    yield taken
    for known in source._readers.keys() - before:
        source._readers.pop(known).close()


def road() -> list[tuple[str, list[str]]]:
    """Of each arrow in CONTRIBUTING the type behind it, and the modules beside it."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## The road of a commit")[2].partition("\n## ")[0]
    arrows = re.findall(r"^→ (\S+) +(.+)$", text, re.MULTILINE)
    return [(type_, modules.split()) for type_, modules in arrows]


def test_a_commit_goes_the_road_that_is_written_down(batch: Callable[[int], bytes]) -> None:
    """No module less and none more; and beside each arrow a type that it has there."""
    for before in (1, 2, 3):
        batch(before)
    follower = Follower()
    look = cast("Any", follower.look)
    threading.setprofile(look)
    sys.setprofile(look)
    follower.looks = True
    try:
        page = batch(OFFSET)
    finally:
        follower.looks = False
        sys.setprofile(None)
        threading.setprofile(None)

    labels = f'cluster="{CLUSTER}",cluster_name="{CLUSTER}",group="g",topic="t",partition="0"'
    assert f"kafka_consumergroup_group_offset{{{labels}}} {OFFSET}\n".encode() in page
    written = road()
    modules = {module for _, beside in written for module in beside}
    assert modules == follower.seen.keys()
    assert {} == {
        arrow: beside for arrow, beside in written if not any(arrow in follower.seen[module] for module in beside)
    }
    assert MOST_ARROWS >= len(written)
    assert MOST_MODULES >= len(modules)
