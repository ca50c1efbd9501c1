"""The recordings there are."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "recordings"
FIRST_RELEASE: Final = "4.3.1"
PATHS: Final = sorted([*FOLDER.glob("*.ndjson"), *FOLDER.glob("*/*.ndjson.gz")])


def name_of(path: Path) -> str:
    """`4.3.1/offsets`: release and family; the first recording is older than both and is called `scenarios`."""
    return str(path.relative_to(FOLDER)).partition(".ndjson")[0]


def release_of(path: Path) -> str:
    """The Kafka release whose broker wrote it."""
    return FIRST_RELEASE if path.parent == FOLDER else path.parent.name
