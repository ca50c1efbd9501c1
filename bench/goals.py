"""The goals, as data: what is to hold, which figure says so, what it is compared with, and what limits it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Figures = Mapping[str, Mapping[str, Any]]
"""`part/figure` → unit, median, lowest, highest, as in the results."""

BATCH_COSTS: Final = ("batch-cost-1000", "batch-cost-10000", "batch-cost-100000")


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure as it is compared with a goal."""

    median: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One line of the table.

    Attributes:
        what: in words.
        value: the figure, from all figures; KeyError where a part has not been measured.
        at_most, at_least: one of them; what the median is held to.
        unit: of the figure.
        references: `part/figure` and what it is, of the same run.
        limits: what limits it, whether it is met or not.
    """

    what: str
    value: Callable[[Figures], Measured]
    unit: str
    limits: str
    at_most: float | None = None
    at_least: float | None = None
    references: tuple[tuple[str, str], ...] = ()

    @property
    def limit(self) -> float:
        """What it is held to."""
        return self.at_most if self.at_most is not None else self.at_least or 0.0

    def is_met(self, measured: Measured) -> bool:
        """Whether the median is within the goal."""
        return measured.median <= self.limit if self.at_most is not None else measured.median >= self.limit


def figure(name: str) -> Callable[[Figures], Measured]:
    """A figure as it was measured."""

    def value(figures: Figures) -> Measured:
        held = figures[name]
        return Measured(held["median"], held["lowest"], held["highest"])

    return value


def exactly(value: float) -> Measured:
    """A value that follows from medians, and has no spread of its own."""
    return Measured(value, value, value)


def of_three_offsets(figures: Figures) -> Measured:
    """What a group of three committed offsets takes."""
    size = figures["memory/board_bytes_a_group"]["median"] + 3 * figures["memory/board_bytes_an_offset"]["median"]
    return exactly(size)


def ratio(above: str, below: str) -> Callable[[Figures], Measured]:
    """How many times one median is another."""

    def value(figures: Figures) -> Measured:
        times = figures[above]["median"] / figures[below]["median"]
        return exactly(times)

    return value


def spread_over_sizes(name: str) -> Callable[[Figures], Measured]:
    """The largest of a figure over the sizes of the state, as a multiple of the smallest."""

    def value(figures: Figures) -> Measured:
        found = [figures[f"{part}/{name}"]["median"] for part in BATCH_COSTS]
        return exactly(max(found) / min(found))

    return value


GOALS: Final = (
    Goal(
        what="catch-up in a warm session, as a multiple of a bare Spark read of the same log",
        value=figure("catch-up/times_bare_spark"),
        at_most=0.9,
        unit="times",
        references=(("catch-up/bare_spark_seconds", "bare Spark read"),),
        limits="the commits that stand are decoded and replayed in Python; both cores are busy with it",
    ),
    Goal(
        what="catch-up in a warm session, full replica, right at the end",
        value=figure("catch-up/records_per_second"),
        at_least=220_000,
        unit="records/s",
        references=(("catch-up/plain_read_seconds", "plain client that only reads"),),
        limits="as above",
    ),
    Goal(
        what="cold start on that log, from the process's start until `/ready`, with right figures",
        value=figure("catch-up/cold_ready_seconds"),
        at_most=14,
        unit="s",
        limits="the start of Spark and of its query, most of it; then as above, in a JVM that is not warm",
    ),
    Goal(
        what="memory of all processes half a minute after that",
        value=figure("catch-up/cold_pss_mib"),
        at_most=0.9 * 1024,
        unit="MiB",
        limits="the JVM, half of it: classes as much as heap",
    ),
    Goal(
        what="commit → visible in `/metrics`, 1,000 commits/s over 200 groups: median",
        value=figure("latency/p50_seconds"),
        at_most=0.46,
        unit="s",
        references=(("latency/ack_p50_seconds", "the producer's own acknowledgement"),),
        limits="the length of a micro-batch: a commit waits for half of one and for the whole of the next",
    ),
    Goal(
        what="the same: 99th hundredth",
        value=figure("latency/p99_seconds"),
        at_most=0.71,
        unit="s",
        references=(("latency/ack_p99_seconds", "the producer's own acknowledgement"),),
        limits="the longest micro-batches, of two in a row",
    ),
    Goal(
        what="the same: processor time, all processes",
        value=figure("latency/cpu_share"),
        at_most=0.6,
        unit="of a core",
        limits="Spark, which plans, starts and commits each micro-batch, whatever it brings; then ten pages of metrics "
        "a second",
    ),
    Goal(
        what="join or leave → event visible: 99th hundredth",
        value=figure("events/p99_seconds"),
        at_most=0.93,
        unit="s",
        limits="as above, while the same commits go on",
    ),
    Goal(
        what="99th hundredth of micro-batches with 1,000, 10,000 and 100,000 groups in state: largest by smallest",
        value=spread_over_sizes("batch_p99_seconds"),
        at_most=1.5,
        unit="times",
        references=(("batch-cost-1000/batch_p99_seconds", "with 1,000 groups"),),
        limits="what the driver does with every group every few seconds: lag history, overdue rebalances, log ends",
    ),
    Goal(
        what="a group of 10,000 partitions, one committing at a time, as a multiple of a group of 10",
        value=figure("wide-group/times_narrow"),
        at_most=1.5,
        unit="times",
        references=(("wide-group/narrow_p50_seconds", "group of 10 partitions"),),
        limits="offsets are kept in buckets of 64: a commit rewrites one of them, however many there are",
    ),
    Goal(
        what="20,000 groups rebalancing at once: settled after",
        value=figure("storm/settled_seconds"),
        at_most=10,
        unit="s",
        references=(("storm/write_seconds", "the records written and acknowledged"),),
        limits="membership is replayed group by group in Python",
    ),
    Goal(
        what="first catch-up on 100,000 groups, from the process's start until `/ready`",
        value=figure("memory/first_ready_seconds"),
        at_most=9,
        unit="s",
        limits="the start of Spark and of its query, a third of it; then membership is replayed group by group in "
        "Python, on both cores",
    ),
    Goal(
        what="memory of all processes, 100,000 groups and 300,000 offsets",
        value=figure("memory/pss_mib"),
        at_most=1.5 * 1024,
        unit="MiB",
        limits="the JVM, of whose heap a small part is in use; then the driver's board, which holds every group",
    ),
    Goal(
        what="board, for a group of three committed offsets",
        value=of_three_offsets,
        at_most=1_200,
        unit="B",
        limits="two thirds of it are the group's own: its state, compressed, and its figures",
    ),
    Goal(
        what="the driver's sums over 100,000 groups, for the first time: processor time",
        value=figure("memory/sums_seconds"),
        at_most=0.2,
        unit="s",
        references=(("memory/lag_seconds", "lag of their 300,000 offsets"),),
        limits="a look at each group for what it shares with others; sums are of those",
    ),
    Goal(
        what="series of a group that never rebalanced, in one topic, without series per partition; of all on average",
        value=figure("restart/series_a_group"),
        at_most=18,
        unit="series",
        limits="gauges that are 0 stay, as what is absent may be unknown: a group of the consumer protocol has 24, "
        "a classic one 22",
    ),
    Goal(
        what="the first page of `/metrics` with 300,000 series of lag, after a restart",
        value=figure("restart/first_page_seconds"),
        at_most=2.5,
        unit="s",
        limits="as below, while Python reads what it needs for the first time",
    ),
    Goal(
        what="every page after, while 1,000 commits a second go on",
        value=figure("metrics/page_seconds"),
        at_most=2,
        unit="s",
        references=(("metrics/page_mib", "its size, unpacked"),),
        limits="gathering every group, and writing its lines; no text is kept from one page to the next",
    ),
    Goal(
        what="micro-batches while that page is asked for without a pause, as a multiple of those without",
        value=ratio("metrics/batch_p50_seconds", "metrics/batch_without_page_seconds"),
        at_most=1.5,
        unit="times",
        references=(("metrics/batch_without_page_seconds", "micro-batch without a page"),),
        limits="page and sink share one Python process, and all the processor of two cores",
    ),
    Goal(
        what="restart at that size until `/ready`, with right figures",
        value=figure("restart/ready_seconds"),
        at_most=10,
        unit="s",
        limits="the start of Spark and of its query; then the driver, which takes in and sums up every group",
    ),
    Goal(
        what="idle cluster: share of one core",
        value=figure("idle/core_share"),
        at_most=0.10,
        unit="of a core",
        limits="Spark asks for new offsets at every trigger, and samplers ask for log ends once a second",
    ),
    Goal(
        what="a million groups, three million offsets: first catch-up on six million records until `/ready`",
        value=figure("million-machine/ready_seconds"),
        at_most=120,
        unit="s",
        limits="membership is replayed group by group in Python, on both cores",
    ),
    Goal(
        what="the same: restart until `/ready`",
        value=figure("million-machine/restart_seconds"),
        at_most=45,
        unit="s",
        limits="the driver, which takes in and sums up every group",
    ),
    Goal(
        what="the same: a page of `/metrics` without series per partition, under 1,000 commits a second",
        value=figure("million-machine/page_seconds"),
        at_most=10,
        unit="s",
        references=(("million-machine/page_mib", "its size, unpacked"),),
        limits="24 series a group, written in the one process that also takes in micro-batches; by shards, each "
        "costs its part",
    ),
    Goal(
        what="the same: memory of all processes",
        value=figure("million-machine/pss_mib"),
        at_most=6 * 1024,
        unit="MiB",
        limits="the driver's board",
    ),
)


def all_figures(results: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """`part/figure` → the figure."""
    return {
        f"{name}/{figure_name}": held
        for name, part in results["parts"].items()
        for figure_name, held in part["figures"].items()
    }
