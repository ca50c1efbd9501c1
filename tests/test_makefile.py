"""What `make test` runs is all there is."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent


def test_no_test_with_a_broker_stands_where_make_test_does_not_look() -> None:
    """The second run of `make test` loads the modules that have one, and no others."""
    (words,) = re.findall(r"^test: WITH_BROKERS = (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    places = [ROOT / word for word in words.split()]
    marked = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"mark\.(spark|broker)\b", path.read_text("utf-8"))
    ]

    assert [] == [path for path in marked if not any(path.is_relative_to(place) for place in places)]
    assert all(any(path.is_relative_to(place) for path in marked) for place in places)
