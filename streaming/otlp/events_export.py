"""Events as OTLP's log records, out of the durable queue: at least once, in order, and a repeat has the same `id`."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.state.events import CRITICAL, INFO, WARNING
from streaming.base.logging_setup import get_logger
from streaming.board.board import Board
from streaming.config.sections import Config
from streaming.otlp.connection import events_exporting, resource, valid_text
from streaming.sinks.outputs import SpoolReader
from streaming.sinks.queue import Spooled

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord

SINK: Final = "otlp-events"

_SEVERITIES: Final = {INFO: "INFO", WARNING: "WARN", CRITICAL: "ERROR"}
_ATTRIBUTES: Final = ("id", "group", "kind", "partition", "offset", "inferred")

_log = get_logger("otlp")


def readers(config: Config, board: Board) -> list[SpoolReader]:
    """The reader of the queue that exports events, if they are to be."""
    if config.otlp.endpoint is None or not config.otlp.events:
        return []
    exporting, cluster = events_exporting(config.otlp), config.cluster.name
    of = resource(cluster)

    def deliver(entries: Sequence[Spooled]) -> int:
        records = [
            log_record(cluster, board.named(entry["event"]), of) for _, entry in entries if entry["kind"] == "event"
        ]
        refused = exporting.export(records, len(records)) if records else 0
        if refused:
            _log.error("record_refused", sink=SINK, events=refused, reason=exporting.failure)
        return refused

    return [SpoolReader(name=SINK, deliver=deliver, close=exporting.close)]


def log_record(cluster: str, event: Mapping[str, Any], of: Any) -> "ReadableLogRecord":  # noqa: ANN401 - the SDK's Resource
    """An event as a record: its JSON as on the topic is the body, what it is found by are attributes."""
    from opentelemetry._logs import LogRecord, SeverityNumber  # imported late: an extra
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    found = {name: event[name] for name in _ATTRIBUTES if event.get(name) is not None}
    return ReadableLogRecord(
        LogRecord(
            timestamp=event["time"] * 1_000_000,
            severity_text=event["severity"],
            severity_number=SeverityNumber[_SEVERITIES[event["severity"]]],
            body=json.dumps({**event, "cluster": cluster}, separators=(",", ":")),
            attributes={
                "cluster": valid_text(cluster),
                **{name: valid_text(value) if isinstance(value, str) else value for name, value in found.items()},
            },
            event_name=f"group-monitor.{event['kind']}",
        ),
        of,
        InstrumentationScope("group-monitor"),
    )
