"""The page of /metrics again and again, as OTLP's metrics of the same names, labels and values.

Gauges are gauges, counters cumulative monotonic sums, histograms histograms with explicit bounds. Where a counter began
is not known after a restart: every series begins with the first export of this process, as the data model has it for
an unknown start. What the page has no sample of is not sent.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from streaming.base.logging_setup import get_logger
from streaming.base.output_status import SinkState
from streaming.base.threads import Repeating
from streaming.config.output_sections import OtlpSection
from streaming.metrics.exporter import Exporter
from streaming.otlp.connection import POINTS_AT_ONCE, ExportError, Exporting, metrics_exporting, resource

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric, MetricsData
    from prometheus_client import Metric as Family

SINK: Final = "otlp-metrics"
SHARE: Final = 0.25
"""Of one processor, that an export may take."""
SHORTEST_WORK_SECONDS: Final = 0.005
"""After less there is no pause: it would cost more than it gives."""

_log = get_logger("otlp")


class MetricsExport:
    """The thread that sends pages: an output beside the board (`streaming.sinks.outputs.Sink`).

    Args:
        settings: where to, and how often.
        exporter: writes the page.
        clock_ns: the wall clock, in nanoseconds.
    """

    def __init__(self, settings: OtlpSection, exporter: Exporter, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._exporter = exporter
        self._exporting: Exporting = metrics_exporting(settings)
        self._resource = resource(exporter.cluster)
        self._clock_ns = clock_ns
        self._start_ns = 0
        self._used_seconds = 0.0
        self._failing_since_ms: int | None = None
        self._failure: str | None = None
        self._delivered = self._dropped = 0
        self._thread = Repeating(SINK, settings.interval_ms / 1_000, self.check, interrupt=self._exporting.close)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._thread.stop()

    def state(self) -> SinkState:
        """How it is doing: what waits is one page, since the first that did not arrive."""
        since_ms = self._failing_since_ms
        return SinkState(
            name=SINK,
            waiting=0 if since_ms is None else 1,
            oldest_ms=since_ms,
            dropped=self._dropped,
            delivered=self._delivered,
            failure=self._failure,
        )

    def check(self) -> None:
        """Send the page of now; what fails is shown, and the next page says the same and more."""
        now_ns = self._clock_ns()
        self._start_ns = self._start_ns or now_ns
        self._used_seconds = time.thread_time()
        refused = 0
        try:
            for size, batch in _batches(self._metrics(now_ns)):
                refused += self._exporting.export(self._data(batch), size)
        except ExportError as error:
            if self._thread.stopping.is_set():
                return
            if self._failure != str(error):
                _log.warning("delivery_failed", sink=SINK, reason=str(error))
            self._failure = str(error)
            self._failing_since_ms = self._failing_since_ms or now_ns // 1_000_000
            return
        if self._failure is not None:
            _log.info("delivers_again", sink=SINK)
        self._failure = self._failing_since_ms = None
        if refused:
            _log.error("record_refused", sink=SINK, samples=refused, reason=self._exporting.failure)
            self._dropped += 1
        else:
            self._delivered += 1

    def _metrics(self, now_ns: int) -> Iterator[tuple[int, "Metric"]]:
        """How many points it has, and the metric."""
        from prometheus_client.parser import text_fd_to_metric_families  # imported late: few export

        pieces, _ = self._exporter.pieces()
        families: Iterable[Family] = text_fd_to_metric_families(_lines(pieces, self._pause))  # type: ignore[arg-type]  # of a file it takes the lines alone
        for family in families:
            yield from _metric(family, self._start_ns, now_ns)

    def _pause(self) -> None:
        """Leave others their share of the processor: no request waits for this page."""
        used, self._used_seconds = time.thread_time() - self._used_seconds, time.thread_time()
        if used > SHORTEST_WORK_SECONDS:
            self._thread.stopping.wait(used * (1 / SHARE - 1))

    def _data(self, metrics: list["Metric"]) -> "MetricsData":
        from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        scope = ScopeMetrics(InstrumentationScope("group-monitor"), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])


def _batches(metrics: Iterable[tuple[int, "Metric"]]) -> Iterator[tuple[int, list["Metric"]]]:
    """Metrics in lots of `POINTS_AT_ONCE`."""
    held: list[Metric] = []
    size = 0
    for count, metric in metrics:
        if held and size + count > POINTS_AT_ONCE:
            yield size, held
            held, size = [], 0
        held.append(metric)
        size += count
    if held:
        yield size, held


def _lines(pieces: Iterable[bytes], between: Callable[[], object]) -> Iterator[str]:
    """The lines of a page that comes in pieces; `between` is called before each piece."""
    rest = b""
    for piece in pieces:
        between()
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode("utf-8") + "\n"


def _metric(family: "Family", start_ns: int, now_ns: int) -> Iterator[tuple[int, "Metric"]]:
    """A family, in parts of at most `POINTS_AT_ONCE`."""
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Histogram,
        Metric,
        NumberDataPoint,
        Sum,
    )

    cumulative = AggregationTemporality.CUMULATIVE
    points: list[Any]
    if family.type == "histogram":
        points = _histograms(family, start_ns, now_ns)
    else:
        points = [NumberDataPoint(of.labels, start_ns, now_ns, float(of.value)) for of in family.samples]
    name = family.name + ("_total" if family.type == "counter" else "")
    for begin in range(0, len(points), POINTS_AT_ONCE):
        part = points[begin : begin + POINTS_AT_ONCE]
        data = (
            Histogram(part, cumulative)
            if family.type == "histogram"
            else Sum(part, cumulative, is_monotonic=True)
            if family.type == "counter"
            else Gauge(part)
        )
        # Without a unit a collector keeps the name as it is when it writes for Prometheus.
        yield len(part), Metric(name, family.documentation, "", data)


def _histograms(family: "Family", start_ns: int, now_ns: int) -> list[Any]:
    """One point for each series: Prometheus counts buckets up to a bound, OTLP between two."""
    from opentelemetry.sdk.metrics.export import HistogramDataPoint

    series: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for of in family.samples:
        labels = {name: value for name, value in of.labels.items() if name != "le"}
        held = series.setdefault(tuple(sorted(labels.items())), {"labels": labels, "buckets": []})
        if of.name.endswith("_bucket"):
            held["buckets"].append((float(of.labels["le"]), int(of.value)))
        else:
            held[of.name.removeprefix(family.name)] = of.value
    return [
        HistogramDataPoint(
            held["labels"],
            start_ns,
            now_ns,
            int(held["_count"]),
            held["_sum"],
            [after - before for before, after in pairwise([0, *(count for _, count in held["buckets"])])],
            [bound for bound, _ in held["buckets"][:-1]],
            None,  # type: ignore[arg-type]  # neither the least nor the largest is known, and the encoder leaves both out
            None,  # type: ignore[arg-type]  # as above
        )
        for held in series.values()
    ]
