"""What /metrics says of topics, of all groups together and of the monitor itself: tables like those of the groups."""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from operator import attrgetter
from typing import Final

from prometheus_client import ProcessCollector

from coordinator_model.gates.plan import READINESS, UNKNOWN
from coordinator_model.migration.leftover_records import NEW_PROTOCOL_TYPES
from streaming.base.output_status import SinkState
from streaming.base.version import release
from streaming.board.board import Board
from streaming.board.histogram import Distribution
from streaming.board.polls import ADMIN
from streaming.end_offsets.store import PartitionEnds
from streaming.metrics.group_metrics import Moment, age
from streaming.metrics.share_metrics import share_orphans
from streaming.metrics.text_format import labelled

Samples = Iterable[tuple[str, float]]
"""(labels as `labelled` writes them, value)"""

TOPIC_FIGURES: Final[Mapping[str, Callable[[PartitionEnds], int | None]]] = {
    "kafka_partition_latest_offset": attrgetter("high_watermark"),
    "kafka_partition_earliest_offset": attrgetter("earliest"),
}
"""Metrics with a sample for each partition of a topic that groups have to do with."""

HISTOGRAMS: Final[Mapping[str, Callable[[Board], Distribution]]] = {
    "group_monitor_record_to_metric_seconds": lambda board: board.health.record_to_metric,
    "group_monitor_batch_seconds": lambda board: board.health.batch_seconds,
}


def _kinds(moment: Moment) -> Samples:
    return [(labelled(type=type_, state=state), of) for (type_, state), of in sorted(moment.sums.kinds.items())]


def _leftovers(moment: Moment) -> Samples:
    records = moment.sums.new_protocol_records
    return [(labelled(record_type=str(int(type_))), records.get(type_, 0)) for type_ in NEW_PROTOCOL_TYPES]


def _gates(moment: Moment) -> Samples:
    return [(labelled(gate=gate, verdict=verdict), 1) for gate, (verdict, _) in moment.gates.items()]


def _gate_reasons(moment: Moment) -> Samples:
    return [
        (labelled(gate=gate, effect=effect, code=code), count)
        for gate, (_, reasons) in moment.gates.items()
        for (effect, code), count in sorted(reasons.items())
    ]


def _readiness(moment: Moment) -> Samples:
    """Of half a log nothing is planned, and of a group that may be in a partition that is not read nothing is known."""
    if moment.standing.missing_of_all:
        return []
    counts, groups = Counter(moment.sums.readiness), moment.shown.groups
    for name in moment.board.doubted(moment.of_board):
        counts[groups[name].words.readiness] -= 1
        counts[UNKNOWN] += 1
    return [(labelled(readiness=of), counts[of]) for of in READINESS]


def _by_partition(figures: Mapping[int, float]) -> Samples:
    return [(labelled(partition=str(partition)), of) for partition, of in figures.items()]


def _by_record_type(name: str) -> Callable[[Moment], Samples]:
    """Counts of partitions by record type, together."""

    def found(moment: Moment) -> Samples:
        summed: Counter[str] = Counter()
        for shard in moment.shown.shards.values():
            summed.update(shard[name])
        return [(labelled(record_type=type_), count) for type_, count in sorted(summed.items())]

    return found


def _known(value: float | None) -> Samples:
    return [] if value is None else [("", value)]


def _in_two_partitions(moment: Moment) -> Samples:
    """Not known where groups are from a monitor's topics, which have one copy of each."""
    return _known(None if moment.board.health.offsets_partitions is None else len(moment.board.copies))


def _source(moment: Moment) -> Samples:
    return [(labelled(kind="log" if moment.polls is None else ADMIN), 1)]


def _not_described(moment: Moment) -> Samples:
    if moment.polls is None:
        return [("", 0)]
    return [] if moment.polls.polled_ms is None else [("", moment.polls.not_described)]


def _of_sinks(value: Callable[[SinkState, int], float]) -> Callable[[Moment], Samples]:
    return lambda moment: [
        (labelled(sink=sink.name), value(sink, moment.now_ms)) for sink in moment.board.health.sinks()
    ]


def _waiting_seconds(sink: SinkState, now_ms: int) -> float:
    return 0 if sink.oldest_ms is None else age(now_ms, sink.oldest_ms)


def _left_out(moment: Moment) -> Samples:
    cuts = {
        "page": moment.board.left_out(moment.shown),
        "metrics": moment.exported.counts(moment.shown.groups, moment.sums.topic_names),
    }
    return [(labelled(**{"from": cut, "what": what}), count) for cut, of in cuts.items() for what, count in of.items()]


_process: Final = ProcessCollector(registry=None)

_PROCESS: Final = (
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_open_fds",
    "process_max_fds",
)


def _of_process(name: str, _: Moment) -> Samples:
    """A figure of this process; none where there is no /proc."""
    return [("", sample.value) for family in _process.collect() for sample in family.samples if sample.name == name]


@cache
def _build_info() -> Samples:
    """Of this process, which stays what it is; the version of Spark as installed, without importing it."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        spark = ""
    return [(labelled(version=release(), python=platform.python_version(), spark=spark), 1)]


MONITOR_SAMPLES: Final[Mapping[str, Callable[[Moment], Samples]]] = {
    "kafka_cluster_groups": _kinds,
    "kafka_cluster_leftover_records": _leftovers,
    "kafka_cluster_gate": _gates,
    "kafka_cluster_gate_reasons": _gate_reasons,
    "kafka_cluster_readiness_groups": _readiness,
    "group_monitor_replica_lag_records": lambda moment: _by_partition(moment.board.health.replica_lag()),
    "group_monitor_open_transaction_records": lambda moment: _by_partition(
        {partition: records for partition, (records, _) in moment.board.health.open_transactions().items()}
    ),
    "group_monitor_open_transaction_seconds": lambda moment: _by_partition(
        {
            partition: 0.0 if since_ms is None else age(moment.now_ms, since_ms)
            for partition, (_, since_ms) in moment.board.health.open_transactions().items()
        }
    ),
    "group_monitor_coordinator_moves_total": lambda moment: _by_partition(moment.board.health.coordinator_moves()),
    "group_monitor_offsets_partitions_without_leader": lambda moment: (
        [("", len(moment.standing.unread.without_leader))] if moment.polls is None else []
    ),
    "group_monitor_offsets_partitions_not_loaded": lambda moment: (
        [("", len(moment.board.findings.not_loaded))] if moment.polls is None else []
    ),
    "group_monitor_offsets_partitions_unreadable": lambda moment: (
        [("", len(moment.standing.unread.unreadable))] if moment.polls is None else []
    ),
    "group_monitor_unreadable_batches_total": lambda moment: _by_partition(
        {
            partition: totals["unreadable_batches"]
            for partition, totals in moment.shown.shards.items()
            if "unreadable_batches" in totals
        }
    ),
    "group_monitor_unknown_records_total": _by_record_type("unknown_records"),
    "group_monitor_undecodable_records_total": _by_record_type("undecodable_records"),
    "group_monitor_newer_value_versions_total": _by_record_type("newer_value_versions"),
    "group_monitor_sink_waiting": _of_sinks(lambda sink, _: sink.waiting),
    "group_monitor_sink_waiting_seconds": _of_sinks(_waiting_seconds),
    "group_monitor_sink_delivered_total": _of_sinks(lambda sink, _: sink.delivered),
    "group_monitor_sink_dropped_total": _of_sinks(lambda sink, _: sink.dropped),
    "group_monitor_source_age_seconds": lambda moment: _known(moment.board.health.source_age_seconds()),
    "group_monitor_source_info": _source,
    "group_monitor_groups_not_described": _not_described,
    "group_monitor_groups_in_two_partitions": _in_two_partitions,
    "group_monitor_share_orphans": lambda moment: _known(share_orphans(moment)),
    "group_monitor_rebuilds_total": lambda moment: [("", moment.board.health.rebuilds)],
    **{name: partial(_of_process, name) for name in _PROCESS},
    "group_monitor_build_info": lambda _: _build_info(),
    "group_monitor_ready": lambda moment: [("", int(moment.standing.ready))],
    "group_monitor_left_out": _left_out,
    "group_monitor_partition_series": lambda moment: [("", int(moment.partition_series))],
    "group_monitor_history_bytes": lambda moment: _known(moment.board.health.history_bytes()),
    "group_monitor_end_offset_age_seconds": lambda moment: _known(moment.board.ends.age_seconds(moment.now_ms)),
}
"""Metrics that are not of a group."""
