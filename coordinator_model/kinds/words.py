"""Figures and names as people read them, the same on the page, in the terminal and in reports.

`duration` and `percent` of `streaming/web/page/common.js` round as these do; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

NOT_KNOWN: Final = "\u2013"
_TO: Final = "\u2013"
"""Dashes, as the page has them."""

_EXACT: Final = 1e-6
"""A thousand times 0.29 is a little less than 290."""

_SHORT_SECONDS: Final = 0.095
_TENTHS_BELOW: Final = 9.95
_UNITS: Final = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))
"""Seconds of a unit, the unit, and the same of the next smaller one."""

_MADE_BY_KAFKA: Final = re.compile(r"(?P<client>.+)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)
"""Member id of a classic member: client id or instance id, and a random UUID."""

_LAST: Final = 6
"""So many letters of a member id set members of one client id apart."""


def duration(seconds: float | None, unknown: str = NOT_KNOWN) -> str:
    """Seconds as people say them: 40 ms, 0.4 s, 12 s, 3 m 20 s, 2 h 5 m, 4 d 3 h."""
    if seconds is None:
        return unknown
    if 0 < seconds < _SHORT_SECONDS:
        return f"{max(1, int(seconds * 1_000 + 0.5))} ms"
    if 0 < seconds < _TENTHS_BELOW:
        return f"{int(seconds * 10 + 0.5) / 10:.1f} s"
    whole = max(0, int(seconds + 0.5))
    for size, unit, smaller, of_it in _UNITS:
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {of_it}"
    return f"{whole} s"


def percent(done: int, all_: int) -> int:
    """Whole percents, rounded down: 100 only when all is done."""
    return 100 * done // all_ if all_ else 0


def percent_of(share: float) -> int:
    """The same of a share from 0 to 1, whether or not it was rounded down to thousandths before."""
    return int(1_000 * share + _EXACT) // 10


def counted(number: int, one: str, many: str = "") -> str:
    """`1 member`, `1,200 members`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ranges(numbers: Iterable[int], to: str = _TO, between: str = ", ") -> str:
    """`0-3, 7`, with a longer dash; `to` and `between` are what a terminal has instead."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    # A run of two is no range.
    texts = (map(str, run) if len(run) < 3 else (f"{run[0]}{to}{run[-1]}",) for run in runs)  # noqa: PLR2004 - see above
    return between.join(text for run in texts for text in run)


def partitions(held: Mapping[str, Collection[int]]) -> str:
    """`orders 0-2; audit 1`, by topic."""
    return listed([f"{topic} {ranges(numbers)}" for topic, numbers in sorted(held.items()) if numbers], "; ")


def tasks(held: Mapping[str, Collection[int]]) -> str:
    """`0_0, 0_1, 1_0`, of tasks by subtopology, as Kafka Streams writes them."""
    return listed([f"{name}_{number}" for name, numbers in sorted(held.items()) for number in sorted(numbers)])


def member(member_id: str, instance_id: str | None = None, client_id: str | None = None) -> str:
    """What sets members apart, in few letters: the instance id, or the client id with the end of the member id."""
    if instance_id is not None:
        return instance_id
    if client_id:
        return f"{client_id} · {member_id[-_LAST:]}"
    made = _MADE_BY_KAFKA.fullmatch(member_id)
    return f"{made['client']} · {member_id[-_LAST:]}" if made else member_id


def listed(items: Sequence[str], between: str = ", ", most: int = 5) -> str:
    """The first few of them, and how many more there are."""
    more = len(items) - most
    return between.join(items[:most]) + (f" and {more:,} more" if more > 0 else "")


def alternatives(items: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f"{', '.join(items[:-1])} {word} {items[-1]}" if len(items) > 1 else "".join(items)
