"""Series per partition that are left to the monitor: when they end and come back, and what must not switch them."""

from typing import Final

import pytest
import yaml

from dashboards.build import GENERATED, RULES
from lab import builders
from streaming.base.name_filter import NameFilter, Scope
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup
from streaming.metrics.catalogue import CATALOGUE
from streaming.metrics.partition_series import HELD_MS, PartitionSeries
from tests.streaming.board_rows import Shard
from tests.streaming.boards import THEN_MS, board_of

LIMIT: Final = 100
"""Twenty-five committed offsets."""


def groups(offsets: int, topic: str = "orders") -> GroupMap[BoardGroup]:
    """As a board shows a group with so many committed offsets."""
    shard = Shard()
    for partition in range(offsets):
        shard.pending.append((THEN_MS, *builders.offset_commit("g", topic, partition, 4)))
    return board_of(shard).moment()[0].groups


class Monitor:
    """A monitor that is asked each minute."""

    def __init__(self, said: bool | str = "auto", scope: Scope | None = None, *, is_polled: bool = False) -> None:
        self.switch = PartitionSeries(said, LIMIT, scope or Scope())  # type: ignore[arg-type]  # of the table
        self.is_polled = is_polled
        self.now_ms = THEN_MS

    def asked(self, offsets: int, *, after_ms: int = 60_000, is_ready: bool = True) -> bool:
        self.now_ms += after_ms
        shown = groups(offsets)
        return self.switch.is_on(shown, (), self.now_ms, is_ready=is_ready, is_polled=self.is_polled)


def test_they_end_above_the_limit_and_come_back_well_below() -> None:
    """At the limit they are there, one offset more and they end; a little below it does not bring them back."""
    monitor = Monitor()

    assert monitor.asked(25)
    assert not monitor.asked(26, after_ms=HELD_MS)
    assert not monitor.asked(25, after_ms=HELD_MS)
    assert not monitor.asked(20, after_ms=HELD_MS)
    assert monitor.asked(19, after_ms=HELD_MS)


def test_nothing_changes_within_a_quarter_of_an_hour() -> None:
    """A deployment that makes a thousand topics and removes them is no reason for two gaps."""
    monitor = Monitor()

    assert monitor.asked(25)
    assert monitor.asked(60, after_ms=HELD_MS - 1)
    assert monitor.asked(25, after_ms=1)
    assert not monitor.asked(60)
    assert not monitor.asked(1, after_ms=HELD_MS - 1)
    assert monitor.asked(1, after_ms=1)


def test_while_it_catches_up_the_limit_holds_at_once() -> None:
    """Half a log says nothing of the whole: there is no first decision to hold to."""
    monitor = Monitor()

    assert monitor.asked(5, is_ready=False)
    assert not monitor.asked(60, is_ready=False)
    assert not monitor.asked(60)
    assert not monitor.asked(5)


def test_of_polled_groups_the_first_decision_stays() -> None:
    """There a rule takes offsets that move for a sign of life: it must not fire for want of them."""
    monitor = Monitor(is_polled=True)

    assert monitor.asked(25)
    assert monitor.asked(60, after_ms=HELD_MS)


@pytest.mark.parametrize("said", [True, False])
def test_what_is_said_is_done(said: bool) -> None:
    """Whatever their number."""
    monitor = Monitor(said)

    assert [said, said] == [monitor.asked(1), monitor.asked(60, after_ms=HELD_MS)]


def test_what_has_no_series_does_not_count() -> None:
    """Groups and topics that patterns leave out of the metrics."""
    without = Scope(groups=NameFilter(("*",), ()), topics=NameFilter(("*",), ("orders",)))

    assert Monitor(scope=without).asked(60)


def test_alerts_of_a_log_that_is_read_need_no_series_per_partition() -> None:
    """One rule reads such a metric, as one of two signs of life, of which the log has the other."""
    found = yaml.safe_load((GENERATED / RULES).read_text("utf-8"))["groups"]
    per_partition = [name for name, metric in CATALOGUE.items() if metric.per_partition]
    reading = {
        (rule["alert"], name)
        for group in found
        for rule in group["rules"]
        for name in per_partition
        if any(f"{name}{end}" in rule["expr"] for end in ("{", "[", ")", " "))
    }

    assert {("KafkaGroupConsumerStopped", "kafka_consumergroup_group_offset")} == reading
