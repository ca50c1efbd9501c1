"""Every metric of the catalogue by name and value, and what must have no sample."""

import math
import re
import time
from collections.abc import Callable, Iterable
from typing import Final

import pytest
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.registry import Collector

from coordinator_model.state.rule_memory import GroupCounters
from lab import builders
from streaming.base.text import cut
from streaming.board.board import Board
from streaming.board.polls import PollStatus
from streaming.config.view_sections import MetricsSection
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.catalogue import CATALOGUE, LOG_ONLY
from streaming.metrics.exporter import Exporter
from streaming.metrics.group_metrics import GroupShard
from tests.dashboards.prometheus_tools import needs_promtool, promtool
from tests.streaming.board_rows import Shard
from tests.streaming.boards import (
    CLUSTER,
    NOW_MS,
    THEN_MS,
    board_of,
    classic_group,
    log_ends,
    rendered,
    sample,
)
from tests.streaming.metrics.scenes import SCENES, UNKNOWN, VALUES, Labels

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def exporter(board: Board, *, partition_series: bool = True, rebalance_histogram: bool = True) -> Exporter:
    return Exporter(
        board,
        CLUSTER,
        partition_series=partition_series,
        rebalance_histogram=rebalance_histogram,
        clock_ms=lambda: NOW_MS,
    )


def scraped(source: Exporter) -> Samples:
    """(name, labels) → value of the page as Prometheus reads it; a series that is there twice fails."""
    page, _ = rendered(source)
    return samples_of(page.decode())


def samples_of(page: str) -> Samples:
    found: Samples = {}
    for family in parse_text(page):
        for each in family.samples:
            key = (each.name, frozenset(each.labels.items()))
            assert key not in found
            found[key] = each.value
    return found


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset({"cluster": CLUSTER, **labels}.items())))


def series(found: Samples, name: str) -> list[dict[str, str]]:
    """Labels of all series of a metric, without the cluster's."""
    labels = [dict(pairs) for each, pairs in found if each == name]
    return [{name: text for name, text in each.items() if not name.startswith("cluster")} for each in labels]


@pytest.fixture(scope="module")
def scenes() -> dict[str, Samples]:
    """Scene → a scrape of its board."""
    return {name: scraped(exporter(scene.board())) for name, scene in SCENES.items()}


def metric_names(samples: Iterable[Samples]) -> set[str]:
    """Those of the catalogue: a histogram's series are of one."""
    return {of_catalogue(name) for found in samples for name, _ in found}


def of_catalogue(name: str) -> str:
    """The metric that a sample is of."""
    return name if name in CATALOGUE else re.sub("_(bucket|count|sum)$", "", name)


@pytest.mark.parametrize(
    ("scene", "name", "labels", "expected"),
    VALUES,
    ids=[f"{name} {' '.join(labels.values())} ({scene})" for scene, name, labels, _ in VALUES],
)
def test_metric(scenes: dict[str, Samples], scene: str, name: str, labels: Labels, expected: float) -> None:
    """Each row is on the page with its value."""
    assert expected == pytest.approx(value(scenes[scene], name, **labels))


PROCESS: Final = {
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_open_fds",
    "process_max_fds",
}


def test_the_process_has_its_figures(scenes: dict[str, Samples]) -> None:
    """Those that every Prometheus client has, of this process, with the cluster's name."""
    process = {name: found for (name, _), found in scenes["ready"].items() if name.startswith("process_")}

    assert PROCESS == process.keys()
    assert 10 * 1024**2 < process["process_resident_memory_bytes"] < 100 * 1024**3
    assert 0 < process["process_start_time_seconds"] < time.time()
    assert 0 < process["process_open_fds"] <= process["process_max_fds"]


def test_max_lag_seconds_is_there_when_every_partition_has_a_figure() -> None:
    """With all commits inside the history the group's figure is the largest."""
    shard = Shard()
    sample(ends := log_ends(orders=2), NOW_MS - 4_000, "orders", 0, 0)
    sample(ends, NOW_MS, "orders", 100, 100)
    for partition, offset in enumerate((50, 75)):
        shard.pending.append((THEN_MS, *builders.offset_commit("g", "orders", partition, offset)))
    found = scraped(exporter(board_of(shard, ends)))

    assert 2.0 == value(found, "kafka_consumergroup_group_max_lag_seconds", cluster_name=CLUSTER, group="g")


def test_no_offset_has_no_series() -> None:
    """-1 and -2 are what clients commit that have read nothing; when they did is known all the same."""
    shard = Shard()
    sample(ends := log_ends(orders=3), NOW_MS, "orders", 100, 100, 100)
    for partition, offset in enumerate((-1, -2, 0)):
        shard.pending.append((THEN_MS, *builders.offset_commit("g", "orders", partition, offset, timestamp=THEN_MS)))
    found = scraped(exporter(board_of(shard, ends)))

    for name in ("kafka_consumergroup_group_offset", "kafka_consumergroup_group_lag"):
        assert ["2"] == [labels["partition"] for labels in series(found, name)]
    assert 3 == len(series(found, "kafka_group_commit_age_seconds"))


def test_of_half_a_log_no_readiness_is_counted() -> None:
    """What is not read yet may be anything; the other figures of groups are there."""
    board = Board(EndOffsets())
    board.load([])
    record = builders.group_metadata("g", generation=1, members=[builders.member("m")])
    board.apply(1, Shard().write(record, timestamp_ms=THEN_MS), NOW_MS)
    names = {name for name, _ in scraped(exporter(board))}

    assert "kafka_cluster_groups" in names
    assert "kafka_cluster_readiness_groups" not in names


def test_every_metric_is_asserted_and_fed(scenes: dict[str, Samples]) -> None:
    """Nothing half-plugged: a row of the catalogue has a feeder, and a value in a scene or of the process."""
    asserted = {of_catalogue(name) for _, name, _, _ in VALUES}

    assert set(CATALOGUE) == (asserted | PROCESS) & set(CATALOGUE)
    assert set() == metric_names(scenes.values()) - set(CATALOGUE)


def test_of_polled_groups_there_is_nothing_that_only_the_log_has() -> None:
    """Not even 0; what a poll has is there, and that it is polled."""
    status = PollStatus(interval_ms=5_000, polled_ms=NOW_MS, left_out={"hidden": "not authorised"})
    polled: dict[str, Samples] = {}
    for name, scene in SCENES.items():
        board = scene.board()
        board.health.show_polls(lambda: status)
        polled[name] = scraped(exporter(board))

    assert set() == metric_names(polled.values()) & LOG_ONLY
    assert set() == CATALOGUE.keys() - LOG_ONLY - metric_names(polled.values())
    assert (1, 1) == (
        value(polled["ready"], "group_monitor_source_info", kind="admin"),
        value(polled["ready"], "group_monitor_groups_not_described"),
    )


@pytest.mark.parametrize(
    ("scene", "name", "labels"),
    UNKNOWN,
    ids=[f"{name} {' '.join(labels.values())} ({scene})" for scene, name, labels in UNKNOWN],
)
def test_what_is_not_known_has_no_sample(scenes: dict[str, Samples], scene: str, name: str, labels: Labels) -> None:
    """No 0, no -1 and no NaN in the place of a figure there is not."""
    assert value(scenes[scene], name, **labels) is None


@pytest.mark.parametrize("scene", SCENES)
def test_no_sample_is_negative_or_not_a_number(scenes: dict[str, Samples], scene: str) -> None:
    """One NaN would poison every sum over the metric."""
    assert [] == [key for key, each in scenes[scene].items() if math.isnan(each) or math.isinf(each) or each < 0]


def test_an_empty_board_tells_of_the_monitor_only() -> None:
    """Before anything is known there are no groups to show, and the monitor says that it is not ready."""
    found = scraped(exporter(Board(EndOffsets())))

    assert 0.0 == value(found, "group_monitor_ready")
    assert value(found, "group_monitor_end_offset_age_seconds") is None
    assert value(found, "group_monitor_history_bytes") is None
    assert [] == [name for name, _ in found if name.startswith(("kafka_group", "kafka_consumergroup"))]


def test_series_of_a_group_go_when_the_group_goes() -> None:
    """A deleted group has no series in the very next scrape."""
    shard = Shard()
    shard.pending.append((THEN_MS, *builders.offset_commit("g", "orders", 0, 9)))
    source = exporter(board := board_of(shard, log_ends(orders=1)))

    assert [{"group": "g", "topic": "orders"}] == series(scraped(source), "kafka_group_commits_total")

    board.apply(1, shard.write(builders.offset_commit_tombstone("g", "orders", 0), timestamp_ms=THEN_MS), NOW_MS)

    assert [] == [labels for labels in (dict(pairs) for _, pairs in scraped(source)) if "group" in labels]


def test_series_of_a_topic_go_when_no_group_has_to_do_with_it() -> None:
    """A topic that groups left has neither lag nor log end on the page, though the brokers still have it."""
    shard = Shard()
    sample(ends := log_ends(orders=1, audit=1), NOW_MS, "audit", 5)
    sample(ends, NOW_MS, "orders", 5)
    classic_group(shard, "g", {"m-1": {"orders": [0]}})
    shard.pending.append((THEN_MS, *builders.offset_commit("g", "audit", 0, 4)))
    source = exporter(board := board_of(shard, ends))
    latest = "kafka_partition_latest_offset"

    assert ["audit", "orders"] == [each["topic"] for each in series(scraped(source), latest)]

    board.apply(1, shard.write(builders.offset_commit_tombstone("g", "audit", 0), timestamp_ms=THEN_MS + 1), NOW_MS)

    assert ["orders"] == [each["topic"] for each in series(scraped(source), latest)]
    assert [] == [labels for labels in (dict(pairs) for _, pairs in scraped(source)) if labels.get("topic") == "audit"]


def test_a_page_is_of_one_moment_though_batches_go_on_while_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that change, end or begin after its first piece are on it as they were."""
    monkeypatch.setattr("streaming.metrics.exporter.SENT_AT_ONCE", 1)
    shard = Shard()
    for name in ("a", "b", "c"):
        classic_group(shard, name, {"m-1": {"orders": [0]}})
        shard.pending.append((THEN_MS, *builders.offset_commit(name, "orders", 0, 9)))
    source = exporter(board := board_of(shard, log_ends(orders=1)))
    before, _ = rendered(source)
    pieces, _ = source.pieces()
    first = next(pieces)
    classic_group(shard, "a", {"m-1": {"orders": [0]}, "m-2": {}}, generation=4)
    gone = (builders.group_metadata_tombstone("b"), builders.offset_commit_tombstone("b", "orders", 0))
    shard.pending += [(THEN_MS + 1, *record) for record in (*gone, builders.offset_commit("d", "orders", 0, 9))]
    board.apply(1, shard.flush(), NOW_MS)

    assert before == first + b"".join(pieces)
    assert before != rendered(source)[0]
    assert ["a", "c", "d"] == sorted(each["group"] for each in series(scraped(source), "kafka_group_epoch"))


def test_partition_series_can_be_switched_off() -> None:
    """Without them sums and maxima stay; nothing else carries a topic's partition."""
    shard = Shard()
    sample(ends := log_ends(orders=1), NOW_MS, "orders", 5)
    shard.pending.append((THEN_MS, *builders.offset_commit("g", "orders", 0, 4)))
    found = scraped(exporter(board_of(shard, ends), partition_series=False))

    assert 1.0 == value(found, "kafka_consumergroup_group_sum_lag", cluster_name=CLUSTER, group="g")
    assert set() == {name for name, _ in found} & {name for name, row in CATALOGUE.items() if row.per_partition}
    assert [] == [name for name, pairs in found if {"topic", "partition"} <= dict(pairs).keys()]


def test_partition_series_say_whether_they_are_there() -> None:
    """By default they are, up to a limit; a page of one share of the groups decides by all of them."""
    shard = Shard()
    sample(ends := log_ends(orders=1), NOW_MS, "orders", 5)
    for group in ("a", "b", "c"):
        shard.pending.append((THEN_MS, *builders.offset_commit(group, "orders", 0, 4)))
    board = board_of(shard, ends)
    series_there = 3 * 4 + 2
    for limit, is_on in ((series_there, 1.0), (series_there - 1, 0.0)):
        for shares in (GroupShard(), GroupShard(1, 3)):
            made = Exporter(
                board, CLUSTER, partition_series="auto", partition_series_limit=limit, clock_ms=lambda: NOW_MS
            )
            pieces, _ = made.pieces(shard=shares)
            page = b"".join(pieces).decode()
            assert is_on == value(samples_of(page), "group_monitor_partition_series")
            assert bool(is_on) == ("kafka_partition_latest_offset{" in page)


def test_the_rebalance_histogram_is_off_unless_asked_for() -> None:
    """A histogram is thirteen series a group, which not everybody wants."""
    shard = Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0]}})
    board = board_of(shard)
    prefix = "kafka_group_rebalance_duration"

    assert [] != [name for name, _ in scraped(exporter(board)) if name.startswith(prefix)]
    assert [] == [name for name, _ in scraped(exporter(board, rebalance_histogram=False)) if name.startswith(prefix)]
    assert not MetricsSection().rebalance_histogram


SERIES_OF_A_QUIET_GROUP: Final = {"classic": 22, "consumer": 24}
"""Of one that never rebalanced and commits in one topic, without its events: all gauges but the counter of commits."""


@pytest.mark.parametrize("protocol", SERIES_OF_A_QUIET_GROUP)
def test_a_quiet_group_has_few_series(protocol: str) -> None:
    """What never counted has no series; gauges that are 0 stay, because their absence would read as unknown."""
    shard = Shard()
    sample(ends := log_ends(orders=1), NOW_MS, "orders", 5)
    if protocol == "classic":
        # Its first generation: nothing was rebalanced yet.
        member = builders.member("m-1", {"orders": [0]}, topics=["orders"])
        written = [builders.group_metadata("g", generation=1, members=[member], timestamp=THEN_MS)]
    else:
        written = [
            builders.consumer_group_member_subscription("g", "m-1", topics=["orders"]),
            builders.consumer_group_epoch("g", 1),
            builders.consumer_group_target_assignment("g", "m-1", {"orders": [0]}),
            builders.consumer_group_target_assignment_epoch("g", 1),
            builders.consumer_group_current_assignment("g", "m-1", epoch=1, assigned={"orders": [0]}),
        ]
    shard.pending += [(THEN_MS, *record) for record in [*written, builders.offset_commit("g", "orders", 0, 4)]]
    board_of(shard, ends)
    shard.replica.groups["g"].counters = GroupCounters()
    board = Board(ends)
    board.load(shard.rows())
    found = scraped(exporter(board, partition_series=False, rebalance_histogram=False))
    names = [name for name, labels in found if ("group", "g") in labels and name != "kafka_group_events_total"]

    assert SERIES_OF_A_QUIET_GROUP[protocol] == len(names)
    assert ["kafka_group_commits_total"] == [name for name in names if CATALOGUE[name].kind == "counter"]


HOSTILE: Final = [
    'quote " and backslash \\',
    "line\nbreak",
    "return\rand\ttab",
    "nul\x00 bell\x07 escape\x1b",
    "реклама ёж 🦔",
    "separator\u2028 and bidi \u202e",
    '",cluster="other"} 1\nkafka_group_info{group="forged',
    "%s %d {curly}",
    " ",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_any_name_is_a_label_value(name: str, accept: str) -> None:
    """Whatever a group or topic is called, it is read back as it is and adds no series of its own."""
    shard = Shard()
    shard.pending.append((THEN_MS, *builders.offset_commit(name, name, 0, 9)))
    page, _ = rendered(exporter(board_of(shard)), accept)
    parse = parse_openmetrics if accept else parse_text
    samples = [each for family in parse(page.decode()) for each in family.samples]

    assert {name} == {each.labels["group"] for each in samples if "group" in each.labels}
    assert {name} == {each.labels["topic"] for each in samples if "topic" in each.labels}


def test_a_long_name_is_cut_in_labels_alone() -> None:
    """A page with a thousand names of 32 KB would be of a gigabyte; the API has them whole."""
    shard, long = Shard(), "g" * 32_000
    for name, topic in ((long, "orders"), (f"{long}h", "orders"), ("short", "t" * 300)):
        shard.pending.append((THEN_MS, *builders.offset_commit(name, topic, 0, 1)))
    board = board_of(shard, log_ends(orders=1))
    offsets = series(scraped(exporter(board)), "kafka_consumergroup_group_offset")

    assert {cut(long), cut(f"{long}h"), "short"} == {labels["group"] for labels in offsets}
    assert {"orders", cut("t" * 300)} == {labels["topic"] for labels in offsets}
    assert {long, f"{long}h", "short"} == board.shown.groups.keys()


def test_a_cluster_name_is_escaped_too() -> None:
    """The label every sample has comes from a configuration file, which may say anything."""
    page, _ = rendered(Exporter(Board(EndOffsets()), 'a "100 %" \\ cluster'))

    assert {'a "100 %" \\ cluster'} == {
        each.labels["cluster"] for family in parse_text(page.decode()) for each in family.samples
    }


def test_half_a_surrogate_pair_does_not_spoil_the_page() -> None:
    """It is no text Prometheus could take, so it is shown as an escape."""
    shard = Shard()
    board = board_of(shard)
    shard.pending.append((THEN_MS, *builders.offset_commit("g", "orders", 0, 9)))
    rows = [
        row._replace(
            group=row.group and "\ud800",
            payload=row.payload.replace(b'"g"', b'"\\ud800"'),
            words=row.words.replace('"g"', '"\\ud800"'),
        )
        for row in shard.flush()
    ]
    board.apply(1, rows, NOW_MS)

    assert [{"group": "\\ud800"}] == series(scraped(exporter(board)), "kafka_group_epoch")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/html,*/*;q=0.8", "text/plain; version=0.0.4; charset=utf-8"),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
    ],
)
def test_the_form_is_the_one_asked_for(accept: str, expected: str) -> None:
    """Prometheus asks for OpenMetrics first, a browser for none of both."""
    assert expected == rendered(exporter(Board(EndOffsets())), accept)[1]


def test_the_page_is_what_prometheus_client_would_write() -> None:
    """Our quicker writing says the same as the library's, in both forms."""
    shard = Shard()
    sample(ends := log_ends(orders=1), NOW_MS, "orders", 5)
    classic_group(shard, "g\n", {"m-1": {"orders": [0]}})
    shard.pending.append((THEN_MS, *builders.offset_commit('"', "orders", 0, 4)))
    source = exporter(board_of(shard, ends))
    registry = CollectorRegistry()

    class Parsed(Collector):
        def collect(self) -> Iterable[Metric]:
            return parse_text(rendered(source)[0].decode())

    registry.register(Parsed())

    def reported(page: bytes, parse: Callable[[str], Iterable[Metric]]) -> list[object]:
        return [
            (
                family.name,
                family.type,
                family.documentation,
                sorted((each.name, sorted(each.labels.items()), each.value) for each in family.samples),
            )
            for family in parse(page.decode())
        ]

    assert reported(generate_latest(registry), parse_text) == reported(rendered(source)[0], parse_text)
    in_openmetrics = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]  # the library's
    assert reported(in_openmetrics, parse_openmetrics) == reported(
        rendered(source, "application/openmetrics-text")[0], parse_openmetrics
    )


NAMED_AS_KAFKA_DOES: Final = "kafka_share_partition_max_delivery_count"
"""A delivery count is a gauge, whatever histograms call theirs."""


@needs_promtool
@pytest.mark.parametrize("scene", SCENES)
def test_prometheus_has_nothing_against_the_page(scene: str) -> None:
    """Names, units, types and help texts of all metrics are as Prometheus wants them."""
    page, _ = rendered(exporter(SCENES[scene].board()))

    said = promtool("check", "metrics", page=page.decode()).splitlines()
    assert [] == [line for line in said if not line.startswith(f"{NAMED_AS_KAFKA_DOES} ")]


def test_help_is_one_line_and_no_sentence_twice() -> None:
    """Help texts are what people choose metrics by."""
    texts = [row.help for row in CATALOGUE.values()]

    assert [] == [text for text in texts if "\n" in text or "\\" in text or text.endswith(".")]
    assert len(texts) == len(set(texts))


def test_a_record_of_tomorrow_is_counted() -> None:
    """An unknown version of a known type, and an unknown type, are figures by type."""
    key, _ = builders.consumer_group_epoch("g", 1)
    shard = Shard()
    shard.pending += [(THEN_MS, key, b"\x7f\x00"), (THEN_MS, b"\x00\x63", b"x"), (THEN_MS, b"\x00\x63", b"x")]
    found = scraped(exporter(board_of(shard)))

    assert 2.0 == value(found, "group_monitor_unknown_records_total", record_type="99")
    assert 1.0 == value(found, "group_monitor_undecodable_records_total", record_type="3")
