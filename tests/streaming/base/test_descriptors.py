"""How many descriptors a monitor gives itself, and of how few it speaks."""

import resource
import subprocess
import sys

import pytest

from streaming.base import descriptors
from streaming.base.descriptors import OpenFilesLimit

ALL = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("found", "left"),
    [
        ((1_024, 524_288), (65_536, 524_288)),
        ((1_024, 4_096), (4_096, 4_096)),
        ((256, 256), (256, 256)),
        ((1_024, ALL), (65_536, ALL)),
        # More than is asked for stays.
        ((100_000, 524_288), (100_000, 524_288)),
        ((ALL, ALL), (ALL, ALL)),
    ],
)
def test_the_limit_is_raised_as_far_as_it_may_be(
    monkeypatch: pytest.MonkeyPatch, found: tuple[int, int], left: tuple[int, int]
) -> None:
    """To the hard limit, and to 65,536 at most; never down."""
    held = [found]
    monkeypatch.setattr(resource, "getrlimit", lambda _: held[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: held.append(limits))
    descriptors.raise_limit()

    assert left == held[-1]


def test_a_system_that_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on with what it has."""

    def refuse(_of: int, _limits: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, ALL))
    monkeypatch.setattr(resource, "setrlimit", refuse)

    assert OpenFilesLimit(256, 65_536) == descriptors.raise_limit()


def test_below_4096_it_is_low() -> None:
    """The hard limit counts, as the other one is raised."""
    assert [True, False, False] == [
        OpenFilesLimit(4_095, 4_095).is_low,
        OpenFilesLimit(256, 4_096).is_low,
        OpenFilesLimit(1, 65_536).is_low,
    ]


def test_what_is_started_has_it_too() -> None:
    """A child of the process has the limit that it gave itself."""
    program = (
        "import resource, subprocess; from streaming.base.descriptors import raise_limit; "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300)); raise_limit(); "
        "subprocess.run(['sh', '-c', 'ulimit -n'], check=True)"
    )
    written = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 - ours

    assert "300\n" == written.stdout
