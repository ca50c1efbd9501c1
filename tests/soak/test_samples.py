"""What the soak concludes from its samples."""

from dataclasses import replace

import pytest

from tests.soak.samples import MOST_GROWTH, Sample, growth, quantile

INF = float("inf")
STILL = Sample(
    minute=0,
    acknowledged=0,
    driver_mib=200,
    jvm_mib=900,
    workers_mib=300,
    latency_p50=0.5,
    latency_p95=0.9,
    batch_seconds=0.3,
    lag_records=0,
)


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ({0.5: 0, 1.0: 10, INF: 10}, 0.5, 0.75),
        ({0.5: 10, 1.0: 10, INF: 10}, 0.95, 0.475),
        ({0.5: 0, 1.0: 0, INF: 10}, 0.5, 1.0),
        ({0.5: 0, 1.0: 0, INF: 0}, 0.5, 0.0),
    ],
)
def test_quantile(buckets: dict[float, float], share: float, expected: float) -> None:
    """Straight within a bucket, the last bound where more cannot be said, nothing of nothing."""
    assert expected == pytest.approx(quantile(buckets, share))


def run(driver_mib: list[float]) -> list[Sample]:
    """A sample a minute."""
    return [replace(STILL, minute=float(at), driver_mib=mib) for at, mib in enumerate(driver_mib)]


def test_what_fills_at_first_does_not_grow() -> None:
    """The first quarter is not judged, and what goes up and down about a level stays."""
    slope, share = growth(run([50, 120, 200, 201, 199, 201, 199, 201, 199, 201, 199, 200]), lambda of: of.driver_mib)

    assert abs(slope) < 0.2
    assert abs(share) < 0.01


def test_a_leak_grows() -> None:
    """Five megabytes a minute are found whatever the noise."""
    slope, share = growth(run([200 + 5 * n + n % 2 for n in range(16)]), lambda of: of.driver_mib)

    assert 5 == pytest.approx(slope, abs=0.2)
    assert share > MOST_GROWTH
