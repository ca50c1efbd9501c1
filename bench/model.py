"""What grows with what: straight lines through measured points, and what follows from them for more than one machine.

Every figure is worked out from `bench/results.json`, and is as good as a straight line is. How good that is, the parts
`million-machine` and `million-cluster` say: what they measured stands beside what the lines say.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.goals import Figures

GIB: Final = 2**30
MIB: Final = 2**20
DRIVER_GIB: Final = 8
MILLION: Final = 1_000_000
EXECUTORS: Final = (1, 4, 10, 20)
NOT_MEASURED: Final = "not measured"
_ONE_SHARE: Final = "batch-cost-100000"
"""The part whose groups are as many as one of ten executors has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A slope.

    Attributes:
        what: grows.
        grows_with: what.
        slope: from the figures; None while a part has not been measured.
        reported: the slope in words.
        ends: what it means for one machine.
    """

    what: str
    grows_with: str
    slope: Callable[[Figures], float | None]
    reported: Callable[[float], str]
    ends: str


def _of(compute: Callable[[Figures], float]) -> Callable[[Figures], float | None]:
    def slope(figures: Figures) -> float | None:
        try:
            return compute(figures)
        except KeyError:
            return None

    return slope


def _median(figures: Figures, name: str) -> float:
    return float(figures[name]["median"])


def _batch_seconds_a_group(figures: Figures) -> float:
    return (
        _median(figures, "batch-cost-100000/batch_p50_seconds") - _median(figures, "batch-cost-1000/batch_p50_seconds")
    ) / 99_000


def _driver_bytes_a_group(figures: Figures) -> float:
    """Of its whole process: the board, what is worked out of each group, the page that is kept."""
    return _median(figures, "memory/pss_mib of monitor (Python)") * MIB / _median(figures, "memory/groups")


def _state_bytes_a_group(figures: Figures) -> float:
    return _median(figures, "memory/state_mib") * MIB / _median(figures, "memory/groups")


def _catch_up_seconds_a_group(figures: Figures) -> float:
    """From the start of the process: groups that are new take the time, not records."""
    return _median(figures, "memory/first_ready_seconds") / _median(figures, "memory/groups")


def _restart_seconds_a_group(figures: Figures) -> float:
    return _median(figures, "restart/ready_seconds") / _median(figures, "memory/groups")


LAWS: Final = (
    Law(
        what="micro-batch under the same commits",
        grows_with="groups in state",
        slope=_of(_batch_seconds_a_group),
        reported=lambda slope: (
            f"{slope * 10_000 * 1000:+.2g} ms for 10,000 groups" if slope > 0 else "less than the machine changes by"
        ),
        ends="when a micro-batch takes longer than the lag of a second that is wanted",
    ),
    Law(
        what="processor time",
        grows_with="commits/s",
        slope=_of(lambda figures: _median(figures, "batch-cost-1000/cpu_share")),
        reported=lambda slope: f"{slope:.2g} cores at 1,000 commits/s, most of it whatever the rate",
        ends="two cores; with more, `spark.shuffle_partitions` and `source.tasks` spread the same work",
    ),
    Law(
        what="driver's memory",
        grows_with="groups of three offsets",
        slope=_of(_driver_bytes_a_group),
        reported=lambda slope: (
            f"{slope / 1000:.2g} KB a group; {DRIVER_GIB * GIB / slope / 1000:,.0f},000 groups in {DRIVER_GIB} GiB"
        ),
        ends="the memory of the driver, which holds every group for page and metrics",
    ),
    Law(
        what="state on disk",
        grows_with="groups of three offsets",
        slope=_of(_state_bytes_a_group),
        reported=lambda slope: f"{slope / 1000:.2g} KB a group",
        ends="the disk, long after the driver's memory",
    ),
    Law(
        what="page of `/metrics`",
        grows_with="series per partition",
        slope=_of(lambda figures: _median(figures, "metrics/page_seconds") / _median(figures, "metrics/lag_series")),
        reported=lambda slope: f"{slope * 100_000:.2g} s for 100,000 offsets",
        ends="Prometheus' scrape timeout, 10 s by default; `metrics.partition_series: false` keeps sums and maxima",
    ),
    Law(
        what="restart",
        grows_with="groups",
        slope=_of(_restart_seconds_a_group),
        reported=lambda slope: f"{slope * 100_000:.2g} s at 100,000 groups, start of Spark included",
        ends="how long the page may be away",
    ),
    Law(
        what="first catch-up",
        grows_with="groups, each new to the state",
        slope=_of(_catch_up_seconds_a_group),
        reported=lambda slope: f"{slope * 100_000:.3g} s for 100,000 groups of six records, start of Spark included",
        ends="how long a first start may take; executors share it",
    ),
    Law(
        what="catch-up",
        grows_with="records of groups that are known",
        slope=_of(lambda figures: _median(figures, "catch-up/records_per_second")),
        reported=lambda slope: f"{slope / 1000:,.0f},000 records/s",
        ends="a log that is not compacted: see `delete.retention.ms` and `segment.ms` of the offsets topic",
    ),
)


def cluster(figures: Figures) -> list[tuple[str, ...]]:
    """Rows of a plan for a million groups by number of executors."""
    return [(f"{of}", f"{MILLION // of:,}", *_planned(figures, MILLION, of)) for of in EXECUTORS]


def _planned(figures: Figures, groups: int, executors: int) -> tuple[str, ...]:
    """What is worked out for so many groups, as `WHAT`."""
    share = groups / executors

    def micro_batch(figures: Figures) -> float:
        base = _median(figures, "batch-cost-1000/batch_p50_seconds")
        return base + max(0.0, _batch_seconds_a_group(figures)) * share

    return (
        _reported(figures, lambda of: _state_bytes_a_group(of) * share / GIB, "{:.2g}"),
        _reported(figures, lambda of: _catch_up_seconds_a_group(of) * share, "{:.3g}"),
        _reported(figures, micro_batch, "{:.2g}"),
        _reported(figures, lambda of: _driver_bytes_a_group(of) * groups / GIB, "{:.2g}"),
        _reported(figures, lambda of: _restart_seconds_a_group(of) * groups, "{:.3g}"),
    )


def _reported(figures: Figures, compute: Callable[[Figures], float], form: str) -> str:
    """A figure in words, or that a part it needs has not been measured."""
    try:
        return form.format(compute(figures))
    except KeyError:
        return NOT_MEASURED


WHAT: Final = (
    "state on disk of each, GiB",
    "first catch-up, s",
    "a micro-batch of 1,000 commits/s, median, s",
    "driver's process, GiB",
    "restart, s",
)
"""What is planned, in this order everywhere."""


def measured(figures: Figures) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and rows of what was worked out beside what was measured.

    One machine runs all of it. Ten executors are ten shares that were run one after the other, of which the slowest
    counts, and the driver's work for all of them.
    """
    try:
        groups = int(_median(figures, "million-machine/groups"))
    except KeyError:
        groups = MILLION
    heads = (f"{groups:,} groups on one machine: worked out", "measured", "1,000,000 on ten executors: worked out")
    columns = (_planned(figures, groups, 1), _machine(figures), _planned(figures, MILLION, 10), _ten(figures))
    return ("", *heads, "simulated"), list(zip(WHAT, *columns, strict=True))


def _machine(figures: Figures) -> tuple[str, ...]:
    """Of one machine, as `WHAT`."""
    return (
        _reported(figures, lambda of: _median(of, "million-machine/state_mib") * MIB / GIB, "{:.2g}"),
        _reported(figures, lambda of: _median(of, "million-machine/ready_seconds"), "{:.3g} (start of Spark included)"),
        _reported(figures, lambda of: _median(of, "million-machine/batch_p50_seconds"), "{:.2g}"),
        _reported(figures, lambda of: _median(of, "million-machine/pss_mib of monitor (Python)") * MIB / GIB, "{:.2g}"),
        _reported(figures, lambda of: _median(of, "million-machine/restart_seconds"), "{:.3g}"),
    )


def _ten(figures: Figures) -> tuple[str, ...]:
    """Of ten executors, as `WHAT`: composed of what was measured of a share and of the driver."""

    def micro_batch(figures: Figures) -> float:
        driver = _median(figures, "million-cluster/driver_batch_seconds")
        return _median(figures, f"{_ONE_SHARE}/batch_p50_seconds") + driver

    def restart(figures: Figures) -> float:
        others = 1 - _median(figures, "memory/groups") / MILLION
        for_all = sum(_median(figures, f"million-cluster/driver_{part}_seconds") for part in ("load", "sums"))
        return _median(figures, "restart/ready_seconds") + others * for_all

    return (
        _reported(figures, lambda of: of["million-cluster/share_state_mib"]["highest"] * MIB / GIB, "{:.2g}"),
        _reported(figures, lambda of: _median(of, "million-cluster/composed_catch_up_seconds"), "{:.3g}"),
        _reported(figures, micro_batch, "{:.2g}"),
        _reported(
            figures, lambda of: _median(of, "million-cluster/board_and_sums_mib") * MIB / GIB, "{:.2g} (without a page)"
        ),
        _reported(figures, restart, "{:.3g}"),
    )
