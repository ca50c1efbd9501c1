"""Which releases a rehearsal runs."""

import pytest

from streaming.base.errors import CannotTellError, UsageError
from streaming.loading import releases


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        ("4.3", ["4.3.0", "4.3.1"]),
        ("4.3.1", ["4.3.0", "4.3.1"]),
        ("3.4", ["3.4.0", "3.4.1"]),
        ("4.2", ["4.2.0", "4.2.1", "4.2.2"]),
    ],
)
def test_every_patch_release_of_the_brokers_own(brokers: str, expected: list[str]) -> None:
    """Brokers do not tell the patch; a recording that does may be of brokers that were upgraded since."""
    assert expected == releases.of_brokers(brokers)


@pytest.mark.parametrize("brokers", [None, "", "2.8", "5.0", "unknown"])
def test_brokers_that_say_none_that_is_known(brokers: str | None) -> None:
    """It is asked for."""
    with pytest.raises(CannotTellError, match=r"--release: found none, .* accepted: a release with its patch number"):
        releases.of_brokers(brokers)


def test_releases_are_run_in_their_order_and_once() -> None:
    """Also those that came after this program."""
    assert ["4.9.0", "3.3.0"] == releases.named(["4.9.0", "3.3.0", "4.9.0"])


@pytest.mark.parametrize("release", ["4.3", "3.2.0", "2.8.2", "v4.3.1", "4.3.1-rc0", "", "../4.3.1"])
def test_what_is_no_release_is_refused(release: str) -> None:
    """A minor release is none to fetch, and before 3.3 there is ZooKeeper."""
    with pytest.raises(UsageError, match="--release: found "):
        releases.named([release])
