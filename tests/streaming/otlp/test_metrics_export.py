"""The page of metrics as a collector gets it: the same samples, each of its kind, and what is said when it does not."""

import json
import re
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from lab.monitor_process import ROOT
from streaming.__main__ import app
from streaming.base.errors import UsageError
from streaming.board.board import Board
from streaming.config.loading import load
from streaming.config.output_sections import OtlpSection
from streaming.metrics.exporter import Exporter
from streaming.otlp import connection, metrics_export
from streaming.otlp.connection import ExportError, refuse_unreachable, refuse_without_library
from streaming.otlp.metrics_export import MetricsExport
from tests.certificates import Authority
from tests.streaming.boards import NOW_MS, rendered
from tests.streaming.otlp.collector import Collector, plain, points_of
from tests.streaming.sinks.test_topic_format import RECORDINGS, board_of

CLUSTER: Final = "prod"
MOVING: Final = ("process_cpu_seconds", "process_resident_memory", "process_open_fds")
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def board() -> Board:
    """Groups that a broker of 4.3.1 wrote of."""
    return board_of(RECORDINGS[0])


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def page_of(board: Board) -> Exporter:
    return Exporter(board, CLUSTER, clock_ms=lambda: NOW_MS)


def exporting(board: Board, url: str, **options: Any) -> MetricsExport:
    return MetricsExport(OtlpSection(endpoint=url, **options), page_of(board))


def scraped(board: Board) -> tuple[Samples, dict[str, str]]:
    """Sample → value, and name → kind, as Prometheus would read the page; but for what moves between two looks."""
    text = rendered(page_of(board))[0].decode()
    samples: Samples = {}
    kinds: dict[str, str] = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith(MOVING):
            continue
        for of in family.samples:
            labels = {name: f"{float(value)}" if name == "le" else value for name, value in of.labels.items()}
            samples[of.name, tuple(sorted(labels.items()))] = of.value
            kinds[of.name] = family.type
    return samples, kinds


def received(collector: Collector) -> tuple[Samples, dict[str, str]]:
    """The same of what was exported."""
    samples: Samples = {}
    kinds: dict[str, str] = {}

    def put(name: str, labels: dict[str, str], value: float, kind: str) -> None:
        key = name, tuple(sorted(labels.items()))
        assert key not in samples
        samples[key], kinds[name] = value, kind

    for metric, point in collector.points:
        if metric.name.startswith(MOVING):
            continue
        labels = plain(point.attributes)
        assert "" == metric.unit
        if metric.WhichOneof("data") != "gauge":
            assert 0 < point.start_time_unix_nano <= point.time_unix_nano
        match metric.WhichOneof("data"):
            case "gauge":
                put(metric.name, labels, point.as_double, "gauge")
            case "sum":
                assert metric.sum.is_monotonic
                assert 2 == metric.sum.aggregation_temporality
                put(metric.name, labels, point.as_double, "counter")
            case "histogram":
                assert 2 == metric.histogram.aggregation_temporality
                bounds = [*point.explicit_bounds, float("inf")]
                for bound, count in zip(bounds, accumulate(point.bucket_counts), strict=True):
                    put(f"{metric.name}_bucket", {**labels, "le": f"{bound}"}, count, "histogram")
                put(f"{metric.name}_count", labels, point.count, "histogram")
                put(f"{metric.name}_sum", labels, point.sum, "histogram")
                assert not point.HasField("min")
                assert not point.HasField("max")
    return samples, kinds


def test_a_collector_gets_what_a_scrape_would(board: Board, collector: Collector) -> None:
    """Every sample with its labels and its kind, of the cluster's monitor; pages count as delivered."""
    export = exporting(board, collector.url)
    export.check()
    expected, kinds = scraped(board)

    assert len(expected) > 500
    assert {"gauge", "counter", "histogram"} <= set(kinds.values())
    assert (expected, kinds) == received(collector)
    (resource,) = {str(request.resource_metrics[0].resource) for _, request in collector.taken}
    for value in ("group-monitor", CLUSTER):
        assert f'string_value: "{value}"' in resource
    state = export.state()
    assert (0, None, 0, 1, None) == (state.waiting, state.oldest_ms, state.dropped, state.delivered, state.failure)


def test_many_samples_come_in_several_requests(
    board: Board, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None twice, none missing, and no request with more than it may have."""
    monkeypatch.setattr(metrics_export, "POINTS_AT_ONCE", 50)
    exporting(board, collector.url).check()
    sizes = [len(points_of(request)) for _, request in collector.taken]

    assert len(sizes) > 5
    assert max(sizes) <= 50
    assert scraped(board)[0] == received(collector)[0]


def test_series_begin_with_the_first_export(board: Board, collector: Collector) -> None:
    """Where a counter began before is not known."""
    export = MetricsExport(OtlpSection(endpoint=collector.url), page_of(board), clock_ns=iter([5, 9]).__next__)
    export.check()
    export.check()

    counted = [point for metric, point in collector.points if metric.WhichOneof("data") != "gauge"]
    assert {(5, 5), (5, 9)} == {(point.start_time_unix_nano, point.time_unix_nano) for point in counted}


def test_headers_and_certificates_are_those_of_the_options(board: Board, tmp_path: Path) -> None:
    """Over TLS that our own authority proves, with what lets in; another authority is refused."""
    authority = Authority(tmp_path)
    with Collector(authority.issue("collector", "127.0.0.1")) as collector:
        options = {"ca_file": authority.file, "headers": {"Authorization": "Bearer planted"}}
        exporting(board, collector.url, **options).check()
        assert "Bearer planted" == collector.asked[0]["authorization"]
        assert collector.points

        stranger = exporting(board, collector.url, ca_file=Authority(tmp_path, "stranger").file)
        stranger.check()
    assert "certificate verify failed" in str(stranger.state().failure)


@pytest.mark.parametrize(
    ("status", "begins"),
    [
        (401, "otlp.headers: found those given, with which http://127.0.0.1:"),
        (307, "otlp.endpoint: found 'http://127.0.0.1:"),
        (404, "otlp.endpoint: found 'http://127.0.0.1:"),
        (503, "otlp.endpoint: found 'http://127.0.0.1:"),
    ],
)
def test_what_does_not_arrive_is_shown_until_it_does(
    board: Board, collector: Collector, status: int, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the option, the answer and what is accepted; a redirect is not followed. The next page says it all again."""
    monkeypatch.setattr(connection, "TIMEOUT_SECONDS", 0.2)
    clock = iter([10**9, 2 * 10**9, 3 * 10**9])
    export = MetricsExport(OtlpSection(endpoint=collector.url), page_of(board), clock_ns=clock.__next__)
    collector.status = status
    export.check()
    export.check()
    state = export.state()

    assert (1, 1_000, 0) == (state.waiting, state.oldest_ms, state.delivered)
    assert str(state.failure).startswith(begins), state.failure
    assert f"(HTTP {status} " in str(state.failure)
    assert ", accepted: " in str(state.failure)
    assert [] == collector.taken

    collector.status = 200
    export.check()
    assert (0, None, 1) == (export.state().waiting, export.state().failure, export.state().delivered)


def test_what_is_refused_for_good_is_counted(board: Board, collector: Collector) -> None:
    """A page that the collector calls bad, or some samples of which it rejects, is no failure that another try ends."""
    export = exporting(board, collector.url)
    collector.status = 400
    export.check()
    collector.status, collector.rejects = 200, 3
    export.check()

    state = export.state()
    assert (2, 0, 0, None) == (state.dropped, state.delivered, state.waiting, state.failure)


def test_an_answer_in_other_words_is_one(board: Board, collector: Collector) -> None:
    """Not every receiver answers with OTLP's message."""
    export = exporting(board, collector.url)
    collector.body = b"ok, thank you"
    export.check()

    assert 1 == export.state().delivered


def test_nobody_there_is_reported_with_the_cause(board: Board) -> None:
    """What lies beneath the library's own text."""
    export = exporting(board, "http://127.0.0.1:1")
    export.check()

    assert (
        "otlp.endpoint: found 'http://127.0.0.1:1' (Connection refused), "
        "accepted: a collector that takes OTLP over HTTP"
    ) == export.state().failure


def test_check_asks_the_collector_with_nothing_in_it(collector: Collector) -> None:
    """Once for each signal that is exported; what it answers is reported."""
    refuse_unreachable(OtlpSection(endpoint=collector.url))
    refuse_unreachable(OtlpSection(endpoint=collector.url, events=False))
    assert ["/v1/metrics", "/v1/logs", "/v1/metrics"] == [path for path, _ in collector.taken]
    assert ([], []) == (collector.points, collector.records)

    collector.status = 403
    with pytest.raises(ExportError, match=r"otlp\.headers: found .*HTTP 403"):
        refuse_unreachable(OtlpSection(endpoint=collector.url, metrics=False))


def test_check_has_a_line_for_the_collector(collector: Collector) -> None:
    """Beside those of brokers, which are not there."""
    settings = ["--set", "kafka.bootstrap_servers=127.0.0.1:1", "--set", "http.port=0"]

    def line() -> tuple[str, str]:
        answer = CliRunner().invoke(app, ["check", "--json", *settings, "--set", f"otlp.endpoint={collector.url}"])
        (found,) = (of for of in json.loads(answer.stdout)["checks"] if of["check"] == "otlp")
        return found["status"], found["detail"]

    assert ("ok", f"{collector.url} answers") == line()
    collector.status = 401
    assert "cannot tell" == line()[0]
    assert line()[1].startswith("otlp.headers: found those given, with which ")


def test_the_configuration_shown_is_one() -> None:
    """The snippet of docs/operate.md, with the variable that it refers to."""
    (snippet,) = re.findall(r"```yaml\n(otlp:.*?)```", (ROOT / "docs" / "operate.md").read_text("utf-8"), re.DOTALL)
    options = yaml.safe_load(snippet)["otlp"]
    environment = {"COLLECTOR_AUTHORIZATION": "Bearer planted"}
    config = load(None, environment, {f"otlp.{name}": value for name, value in options.items()})

    assert (options["endpoint"], {"Authorization": "Bearer planted"}) == (config.otlp.endpoint, config.otlp.headers)


def test_without_its_library_the_option_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install; nothing is asked of it where nothing is exported."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    refuse_without_library(OtlpSection())
    with pytest.raises(UsageError) as raised:
        refuse_without_library(OtlpSection(endpoint="http://c:4318"))

    assert (
        "otlp.endpoint: found 'http://c:4318' without the package opentelemetry-exporter-otlp-proto-http, "
        "accepted: with it, as in pip install 'group-monitor[otlp]'"
    ) == str(raised.value)
