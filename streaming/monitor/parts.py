"""What every monitor is made of, whether the log, polls or topics fill its board."""

from collections.abc import Callable

from streaming.base.times import now_ms
from streaming.board.board import Board
from streaming.config.sections import Config
from streaming.end_offsets.store import EndOffsets
from streaming.history.writer import HistoryWriter
from streaming.kafka import broker_queries
from streaming.kafka.log_scan import LogScanner, scanned
from streaming.metrics.exporter import Exporter
from streaming.otlp import events_export
from streaming.otlp.metrics_export import MetricsExport
from streaming.sinks import kafka_sinks
from streaming.sinks.outputs import Outputs, Sink
from streaming.web.api_answers import BrokerAnswers


def board_of(config: Config) -> Board:
    """A board with nothing on it."""
    return Board(
        EndOffsets(config.end_offsets.history_points, config.end_offsets.history_seconds * 1_000),
        offsets_topic=config.kafka.offsets_topic,
        event_window=config.events.window,
        scope=config.view.scope,
        expectations=config.alarms.expected,
    )


def exporter_of(config: Config, board: Board) -> Exporter:
    """What writes /metrics."""
    return Exporter(
        board,
        config.cluster.name,
        partition_series=config.metrics.partition_series,
        partition_series_limit=config.metrics.partition_series_limit,
        rebalance_histogram=config.metrics.rebalance_histogram,
        scope=config.metrics.scope,
    )


def broker_answers(config: Config) -> BrokerAnswers:
    """What gates ask the brokers; where the log may not be read, it is not scanned."""
    answers = BrokerAnswers(
        group_configs=lambda: broker_queries.group_configs(config.kafka),
        settings=lambda: broker_queries.broker_settings(config.kafka),
    )
    if config.source.kind == "admin":
        return answers
    return BrokerAnswers(
        group_configs=answers.group_configs,
        settings=answers.settings,
        log_scan=LogScanner(lambda: scanned(config.kafka)),
    )


def outputs_of(config: Config, board: Board, exporter: Exporter, source: Callable[[], str]) -> Outputs:
    """All that leaves the monitor, as configured; `source` is as of `Outputs`."""
    otlp, settings = config.otlp, config.history
    others: list[Sink] = [*kafka_sinks.group_topics(config, board, now_ms)]
    readers = [*kafka_sinks.readers(config, board), *events_export.readers(config, board)]
    if otlp.endpoint is not None and otlp.metrics:
        others.append(MetricsExport(otlp, exporter))
    if settings.enabled:
        kafka = config.kafka if settings.records else None
        history = HistoryWriter(config.history_dir, settings, board, now_ms, kafka=kafka)
        board.health.show_history_size(history.size_bytes)
        readers.insert(0, history.reader())
        others += history.keepers()
    outputs = Outputs(config, readers, board, others=others, source=source, clock_ms=now_ms)
    board.health.show_sinks(outputs.states)
    return outputs
