"""Memory and latency of a running monitor, looked at from outside, and how they grow."""

import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.monitor_process import MonitorProcess, marked_processes, parse_metrics

LATENCY: Final = "group_monitor_record_to_metric_seconds"
BATCH: Final = "group_monitor_batch_seconds"
LAG: Final = "group_monitor_replica_lag_records"
READ: Final = (LATENCY, BATCH, LAG)
"""What samples are taken of, by the beginning of their names."""

WARM_UP: Final = 0.25
"""Share of the samples that is not judged: caches fill, and the JVM takes the heap it was given."""

MOST_GROWTH: Final = 0.15
"""How much of its mean something may grow by over the time that is judged, and still count as steady."""

Buckets = dict[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look. Latency and batches are those since the look before."""

    minute: float
    acknowledged: int
    driver_mib: float
    jvm_mib: float
    workers_mib: float
    latency_p50: float
    latency_p95: float
    batch_seconds: float
    lag_records: float


@dataclass(slots=True)
class Sampler:
    """Looks at a monitor again and again."""

    monitor: MonitorProcess
    mark: str
    _buckets: Buckets
    _batches: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, monitor: MonitorProcess) -> "Sampler":
        """One that has not looked yet."""
        return cls(monitor, monitor._mark, {})

    def look(self, minute: float, acknowledged: int) -> Sample:
        """Take a sample."""
        # Of a page of many thousand series, only what is looked at is read.
        page = self.monitor.get("/metrics")[1]
        samples = parse_metrics("".join(f"{line}\n" for line in page.splitlines() if line.startswith(READ)))
        buckets = {float(dict(labels)["le"]): value for labels, value in samples[f"{LATENCY}_bucket"].items()}
        new = {bound: value - self._buckets.get(bound, 0.0) for bound, value in buckets.items()}
        batches = (_sum(samples, f"{BATCH}_sum"), _sum(samples, f"{BATCH}_count"))
        took, many = (now - before for now, before in zip(batches, self._batches, strict=True))
        self._buckets, self._batches = buckets, batches
        driver, jvm, workers = self._memory()
        return Sample(
            minute=minute,
            acknowledged=acknowledged,
            driver_mib=driver,
            jvm_mib=jvm,
            workers_mib=workers,
            latency_p50=quantile(new, 0.5),
            latency_p95=quantile(new, 0.95),
            batch_seconds=took / many if many else 0.0,
            lag_records=_sum(samples, LAG),
        )

    def _memory(self) -> tuple[float, float, float]:
        """MiB of the driver's Python, of the JVM, and of the Python workers together; shared pages by their share."""
        driver = jvm = workers = 0.0
        for pid, command in marked_processes(self.mark):
            size = _proportional_mib(pid)
            if pid == self.monitor.pid:
                driver += size
            elif "java" in command.partition(" ")[0]:
                jvm += size
            else:
                workers += size
        return driver, jvm, workers


def quantile(buckets: Buckets, share: float) -> float:
    """Of a histogram by upper bound, as Prometheus works it out: straight within a bucket."""
    bounds = sorted(buckets)
    wanted = share * buckets[bounds[-1]]
    below, under = 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= wanted:
            within = buckets[bound] - under
            return below if bound == float("inf") or not within else below + (bound - below) * (wanted - under) / within
        below, under = bound, buckets[bound]
    return below


def growth(samples: Sequence[Sample], value: Callable[[Sample], float]) -> tuple[float, float]:
    """(growth a minute, growth over the judged time as a share of the mean), by a straight line through the samples."""
    judged = samples[int(len(samples) * WARM_UP) :]
    minutes, values = [of.minute for of in judged], [value(of) for of in judged]
    slope = statistics.linear_regression(minutes, values).slope
    return slope, slope * (minutes[-1] - minutes[0]) / statistics.fmean(values)


def _sum(samples: dict[str, dict[tuple[tuple[str, str], ...], float]], name: str) -> float:
    return sum(samples.get(name, {}).values())


def _proportional_mib(pid: int) -> float:
    # Workers are forked from one process: each page they still share would count for every one of them.
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
