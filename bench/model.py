"""What grows with what: straight lines through measured points, and what follows from them for more than one machine.

Nothing here is measured; every figure is worked out from `bench/results.json`, and is as good as a straight line is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.goals import Figures

GIB: Final = 2**30
MIB: Final = 2**20
OFFSETS_A_GROUP: Final = 3
RECORDS_A_GROUP: Final = 5
"""Of a compacted log: a classic group's metadata and its commits, or a little more of another group."""

DRIVER_GIB: Final = 8
MILLION: Final = 1_000_000
EXECUTORS: Final = (1, 4, 10, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A slope.

    Attributes:
        what: grows.
        grows_with: what.
        slope: from the figures; None while a part has not been measured.
        told: the slope in words.
        ends: what it means for one machine.
    """

    what: str
    grows_with: str
    slope: Callable[[Figures], float | None]
    told: Callable[[float], str]
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
    return _median(figures, "memory/board_bytes_a_group") + OFFSETS_A_GROUP * _median(
        figures, "memory/board_bytes_an_offset"
    )


LAWS: Final = (
    Law(
        what="micro-batch under the same commits",
        grows_with="groups in state",
        slope=_of(_batch_seconds_a_group),
        told=lambda slope: f"{slope * 10_000 * 1000:+.2g} ms for 10,000 groups",
        ends="when a micro-batch takes longer than the lag of a second that is wanted",
    ),
    Law(
        what="processor time",
        grows_with="commits/s",
        slope=_of(lambda figures: _median(figures, "batch-cost-1000/cpu_share")),
        told=lambda slope: f"{slope:.2g} cores at 1,000 commits/s, most of it whatever the rate",
        ends="two cores; with more, `spark.shuffle_partitions` and `source.tasks` spread the same work",
    ),
    Law(
        what="driver's memory",
        grows_with="groups of three offsets",
        slope=_of(_driver_bytes_a_group),
        told=lambda slope: (
            f"{slope / 1000:.2g} KB a group; {DRIVER_GIB * GIB / slope / 1000:,.0f},000 groups in {DRIVER_GIB} GiB"
        ),
        ends="the memory of the driver, which holds every group for page and metrics",
    ),
    Law(
        what="state on disk",
        grows_with="groups of three offsets",
        slope=_of(lambda figures: _median(figures, "memory/state_mib") * MIB / _median(figures, "memory/groups")),
        told=lambda slope: f"{slope / 1000:.2g} KB a group",
        ends="the disk, long after the driver's memory",
    ),
    Law(
        what="page of `/metrics`",
        grows_with="series per partition",
        slope=_of(lambda figures: _median(figures, "metrics/page_seconds") / _median(figures, "metrics/lag_series")),
        told=lambda slope: f"{slope * 100_000:.2g} s for 100,000 offsets",
        ends="Prometheus' scrape timeout, 10 s by default; `metrics.partition_series: false` keeps sums and maxima",
    ),
    Law(
        what="restart",
        grows_with="groups",
        slope=_of(lambda figures: _median(figures, "restart/ready_seconds") / _median(figures, "memory/groups")),
        told=lambda slope: f"{slope * 100_000:.2g} s at 100,000 groups, start of Spark included",
        ends="how long nobody may look",
    ),
    Law(
        what="catch-up",
        grows_with="records of the log",
        slope=_of(lambda figures: _median(figures, "catch-up/records_per_second")),
        told=lambda slope: f"{slope / 1000:,.0f},000 records/s",
        ends="a log that is not compacted: see `delete.retention.ms` and `segment.ms` of the offsets topic",
    ),
)


def cluster(figures: Figures) -> list[tuple[str, ...]]:
    """Rows of a plan for a million groups by number of executors; none while a part has not been measured."""
    try:
        state = _median(figures, "memory/state_mib") * MIB / _median(figures, "memory/groups")
        base = _median(figures, "batch-cost-1000/batch_p50_seconds")
        slope = max(0.0, _batch_seconds_a_group(figures))
        speed = _median(figures, "catch-up/records_per_second")
        board = _driver_bytes_a_group(figures) * MILLION / GIB
    except KeyError:
        return []
    return [
        (
            f"{executors}",
            f"{MILLION // executors:,}",
            f"{state * MILLION / executors / GIB:.2g}",
            f"{MILLION * RECORDS_A_GROUP / speed / executors:.2g}",
            f"{base + slope * MILLION / executors:.2g}",
            f"{board:.2g}",
        )
        for executors in EXECUTORS
    ]
