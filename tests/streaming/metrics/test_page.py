"""The page is written from columns of all groups: each sample is of its group, whatever the others are like."""

import gzip
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from coordinator_model.rules.rebalance_storm import storm_rebalances
from lab import builders
from streaming.board import group_answer
from streaming.metrics import page
from streaming.metrics.catalogue import CATALOGUE
from streaming.metrics.exporter import Exporter
from streaming.metrics.group_metrics import ALL_GROUPS, DURATION, GroupShard, Moment
from streaming.metrics.monitor_metrics import HISTOGRAMS, MONITOR_SAMPLES, TOPIC_FIGURES
from streaming.metrics.offset_metrics import PARTITION_METRICS
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, NOW_MS, THEN_MS, board_of, log_ends, rendered, sample
from tests.streaming.random_boards import RandomBoard

Said = dict[tuple[str, frozenset[tuple[str, str]]], float]

OF_GROUP = {
    "kafka_group_epoch": "epoch",
    "kafka_consumergroup_group_sum_lag": "lag",
    "kafka_consumergroup_group_max_lag": "max_lag",
    "kafka_consumergroup_group_max_lag_seconds": "max_lag_seconds",
}
OF_OFFSET = {
    "kafka_consumergroup_group_offset": "offset",
    "kafka_consumergroup_group_lag": "lag",
    "kafka_consumergroup_group_lag_seconds": "lag_seconds",
}


def said(text: bytes) -> Said:
    """(metric, labels but the cluster's) → value; a series that is there twice fails."""
    found: Said = {}
    for family in parse_text(text.decode()):
        for each in family.samples:
            labels = {name: of for name, of in each.labels.items() if not name.startswith("cluster")}
            key = (each.name, frozenset(labels.items()))
            assert key not in found
            found[key] = each.value
    return found


def expected(group: Mapping[str, Any]) -> Said:
    """What the API says of a group, as samples."""
    name = group["group"]
    found = {(metric, frozenset({("group", name)})): group[key] for metric, key in OF_GROUP.items()}
    found["kafka_group_state", frozenset({("group", name), ("state", group["state"])})] = 1
    for protocol in ("classic", "consumer"):
        count = sum(member["protocol"] == protocol for member in group["members"])
        found["kafka_group_members", frozenset({("group", name), ("protocol", protocol)})] = count
    for offset in group["offsets"]:
        if offset.get("offset") is not None:
            place = {("group", name), ("topic", offset["topic"]), ("partition", str(offset["partition"]))}
            found |= {(metric, frozenset(place)): offset[key] for metric, key in OF_OFFSET.items()}
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize("seed", range(4))
def test_every_group_has_the_samples_that_the_api_has_figures_for(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step of a random history, in pieces of a few lines: none of another group, none missing, none more."""
    monkeypatch.setattr(page, "LINES_A_PIECE", 5)
    walk = RandomBoard(seed, groups=16)
    exporter = Exporter(walk.board, CLUSTER, clock_ms=lambda: walk.now_ms)
    metrics = {*OF_GROUP, *OF_OFFSET, "kafka_group_state", "kafka_group_members", "kafka_group_storm_rebalances"}
    seen = 0
    for _ in range(40):
        walk.step()
        found = {key: value for key, value in said(rendered(exporter)[0]).items() if key[0] in metrics}
        right: Said = {}
        for group in group_answer.views(walk.board, walk.now_ms):
            right |= expected(group)
        for name, held in walk.board.shown.groups.items():
            storm = storm_rebalances(held.state.recent_rebalances_ms, walk.now_ms)
            right["kafka_group_storm_rebalances", frozenset({("group", name)})] = storm
        seen += len(right)

        assert right == pytest.approx(found)
    assert seen > 1_000


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])
def test_a_page_is_the_same_as_gzip(accept: str) -> None:
    """One member, whatever the pieces; and nothing is sent of metrics without samples."""
    walk = RandomBoard(3, groups=16)
    for _ in range(30):
        walk.step()
    exporter = Exporter(walk.board, CLUSTER, clock_ms=lambda: walk.now_ms)
    plain = rendered(exporter, accept)[0]

    assert plain == gzip.decompress(b"".join(exporter.pieces(accept, gzip=True)[0]))


def test_a_page_is_the_same_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of many metrics put together at once, of one metric, or each for itself: the same lines, in one order."""
    walk = RandomBoard(4, groups=16)
    for _ in range(30):
        walk.step()
    exporter = Exporter(walk.board, CLUSTER, clock_ms=lambda: walk.now_ms)
    pages = []
    for lines, bytes_, few in ((1, 1_000, 100), (7, 50, 1), (60, 1, 100), (1_000_000, 300, 100), (1_000_000, 10**9, 1)):
        monkeypatch.setattr(page, "LINES_A_PIECE", lines)
        monkeypatch.setattr(page, "BYTES_A_PIECE", bytes_)
        monkeypatch.setattr(page, "FEW_TEXTS", few)
        pages.append(rendered(exporter)[0])

    assert pages[0].count(b"\n") > 500
    assert pages[:1] * 5 == pages


@pytest.mark.parametrize("shares", [1, 3, 40])
def test_every_group_is_on_the_page_of_one_share(shares: int) -> None:
    """All of its samples, and those of groups alone: what is not of one group is on every page alike."""
    walk = RandomBoard(5, groups=16)
    for _ in range(30):
        walk.step()
    exporter = Exporter(walk.board, CLUSTER, partition_series=True, clock_ms=lambda: walk.now_ms)
    numbers = range(1, shares + 1)

    def split(shard: GroupShard) -> tuple[Said, Said]:
        found = said(b"".join(exporter.pieces(shard=shard)[0])).items()
        of_groups = {key: value for key, value in found if "group" in dict(key[1])}
        return of_groups, {key: value for key, value in found if key not in of_groups}

    whole, others = split(ALL_GROUPS)
    pages = [split(GroupShard(number, shares)) for number in numbers]

    assert whole == {key: value for page_, _ in pages for key, value in page_.items()}
    assert len(whole) == sum(len(page_) for page_, _ in pages) > 0
    assert all(others.keys() == also.keys() for _, also in pages)
    names = [{dict(labels)["group"] for _, labels in page_} for page_, _ in pages]
    assert sum(map(len, names)) == len(set.union(*names))
    assert split(GroupShard(0, shares))[0] == pages[-1][0]


def test_a_commit_beyond_the_end_has_lag_once_the_log_has_come_so_far() -> None:
    """Its lag goes once it is too old to be fresher than the sample, and comes when the log reaches it."""
    shard, clock = Shard(), [NOW_MS]
    sample(ends := log_ends(orders=1), NOW_MS, "orders", 9)
    for number in range(9):
        commit = builders.offset_commit(f"g-{number}", "orders", 0, 20, timestamp=NOW_MS)
        shard.pending.append((THEN_MS, *commit))
    exporter = Exporter(board_of(shard, ends), CLUSTER, clock_ms=lambda: clock[0])

    def lags(high_watermark: int) -> int:
        clock[0] += 20_000
        sample(ends, clock[0], "orders", high_watermark, stable={0: 9})
        lines = rendered(exporter)[0].decode().splitlines()
        return sum(line.startswith("kafka_consumergroup_group_lag{") for line in lines)

    assert [9, 0, 0, 9] == [lags(end) for end in (9, 9, 9, 25)]


def test_every_metric_has_one_source() -> None:
    """A metric of the catalogue that no table feeds would be an error on the first page."""
    tables = (page.GROUP_SOURCES, PARTITION_METRICS, TOPIC_FIGURES, HISTOGRAMS, MONITOR_SAMPLES, {DURATION: None})

    assert sorted(CATALOGUE) == sorted(name for table in tables for name in table)


def test_a_board_without_groups_has_a_page() -> None:
    """Columns of nothing: what is of all groups together and of the monitor is there all the same."""
    board = board_of(Shard())
    text = page.Page(CLUSTER, Moment(board, NOW_MS))

    assert [] == list(text.text(dict.fromkeys(page.GROUP_SOURCES, "# HELP\n")))
    assert b"group_monitor_ready" in rendered(Exporter(board, CLUSTER))[0]


def test_long_names_are_put_together_in_pieces_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few the lines are: no piece of a page holds much more than is said."""
    monkeypatch.setattr(page, "BYTES_A_PIECE", 20_000)
    shard = Shard()
    for number in range(400):
        shard.pending.append((THEN_MS, *builders.offset_commit(f"{number:03d}" + '"' * 250, "orders", number, 1)))
    text = page.Page(CLUSTER, Moment(board_of(shard), NOW_MS))
    names = ("kafka_group_epoch", "kafka_consumergroup_group_offset", "kafka_group_rebalance_duration_seconds")
    pieces = [bytes(piece) for piece in text.text(dict.fromkeys(names, ""))]

    # What is held may be as much before the last rows come, and lines have the metric's name and the cluster besides.
    assert max(map(len, pieces)) < 20_000 * 2.5
    assert sum(map(len, pieces)) > 400 * 500 * 2
    assert 800 <= b"".join(pieces).count(b"\n")
