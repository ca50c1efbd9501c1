"""The recordings there are."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "recordings"
FIRST_RELEASE: Final = "4.3.1"
PATHS: Final = sorted([*FOLDER.glob("*.ndjson"), *FOLDER.glob("[0-9]*/*.ndjson.gz")])

UNREAD: Final = {"4.0.2/share-and-streams": ({"9": 4}, {"11": 6})}
"""Recording → how many records of which types are unknown to the replica, and how many do not decode.

Share groups were in early access in 4.0: the next release gave up type 9, and changed type 11 under the same version.
"""


def name_of(path: Path) -> str:
    """`4.3.1/offsets`: release and family; the first recording is older than both and is called `scenarios`."""
    return str(path.relative_to(FOLDER)).partition(".ndjson")[0]


def release_of(path: Path) -> str:
    """The Kafka release whose broker wrote it."""
    return FIRST_RELEASE if path.parent == FOLDER else path.parent.name
