"""What the soak concludes from its samples."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.soak import report
from tests.soak.report import Counts
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


def test_a_run_is_kept_in_the_place_of_the_former_one(tmp_path: Path) -> None:
    """Of the same minutes and rate there is one; the page shows each, and the parts of the longest."""
    file = tmp_path / "results.json"
    samples = [replace(sample, acknowledged=int(600_000 * sample.minute)) for sample in run([200.0] * 31)]
    lost, whole = Counts(acknowledged=9, in_log=9, counted=8), Counts(acknowledged=9, in_log=9, counted=9)
    report.save(samples[:4], 10_000, whole, [], file)
    report.save(samples, 10_000, lost, ["producer, broker and monitor count differently"], file)
    report.save(samples, 10_000, whole, [], file)

    assert [(3, 10_000), (30, 10_000)] == [(of["minutes"], of["reached_a_second"]) for of in report.load(file)]
    page = report.page(f"before\n{report.BEGIN}\nold\n{report.END}\nafter", file)
    assert page == report.page(page, file)
    assert ["before", "after"] == [page.splitlines()[0], page.splitlines()[-1]]
    assert 2 == page.count("| 10,000 of 10,000 asked for | 9 | 9 | 9 | nothing |")
    assert "old" not in page
    assert report.PARTS == page.count("| 200 | 900 | 300 | 0.50 | 0.90 | 0.30 | 0 |")


def test_a_page_without_its_marks_is_refused(tmp_path: Path) -> None:
    """What was measured must not be left out in silence."""
    with pytest.raises(SystemExit, match=r"docs/lab\.md: found no <!-- Made by"):
        report.page("nothing", tmp_path / "none")
