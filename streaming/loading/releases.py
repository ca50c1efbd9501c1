"""Which releases a rehearsal runs: those that are named, or every patch release of the brokers' own minor release.

Brokers tell their minor release by the features they have, and not the patch.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from streaming.base.errors import CannotTellError, UsageError

PATCHES: Final[Mapping[tuple[int, ...], int]] = {
    (3, 3): 3,
    (3, 4): 2,
    (3, 5): 3,
    (3, 6): 3,
    (3, 7): 3,
    (3, 8): 2,
    (3, 9): 3,
    (4, 0): 3,
    (4, 1): 3,
    (4, 2): 3,
    (4, 3): 2,
}
"""Minor release → how many patch releases of it there are in Maven's central registry, 0 the first."""

ACCEPTED: Final = "a release with its patch number, from 3.3.0 on, as 4.2.1"

_RELEASE: Final = re.compile(r"(?P<major>\d{1,3})\.(?P<minor>\d{1,3})\.\d{1,3}", re.ASCII)
FIRST: Final = (3, 3)
"""The first whose brokers do without ZooKeeper."""


def named(releases: Iterable[str]) -> list[str]:
    """Releases as they were named, each once. Raises UsageError for one that cannot be run."""
    found = list(dict.fromkeys(releases))
    for release in found:
        match = _RELEASE.fullmatch(release)
        if match is None or (int(match["major"]), int(match["minor"])) < FIRST:
            raise UsageError(f"--release: found {release!r}, accepted: {ACCEPTED}")
    return found


def of_brokers(release: str | None) -> list[str]:
    """Every patch release of the minor release that brokers, or the recording of theirs, name.

    Raises:
        CannotTellError: they name none, or one that is not known here.
    """
    minor = tuple(int(part) for part in (release or "").split(".")[:2] if part.isdecimal())
    if minor not in PATCHES:
        found = "a release that brokers do not tell" if release is None else f"brokers of {release}"
        raise CannotTellError(f"--release: found none, and {found}, accepted: {ACCEPTED}")
    return [".".join(map(str, (*minor, patch))) for patch in range(PATCHES[minor])]
