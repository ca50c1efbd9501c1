"""Times as people write and read them: milliseconds since 1970, or ISO 8601."""

import re
import time
from datetime import UTC, datetime
from typing import Final

ACCEPTED: Final = "ISO-8601 (2026-11-21T07:05:04Z) or milliseconds since the epoch"
ACCEPTED_AGO: Final = f"{ACCEPTED}, or '10 minutes ago'"

_AGO: Final = re.compile(r"(\d{1,9}) ?(s|seconds?|m|minutes?|h|hours?|d|days?) ago", re.ASCII)
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST_NUMBER: Final = 16
"""Digits; no date is beyond."""


def now_ms() -> int:
    """The wall clock, as Kafka writes it: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def time_ms(text: str, now_ms: int | None = None) -> int:
    """Milliseconds since 1970 from such a number, or from ISO 8601 (UTC unless it says otherwise).

    With `now_ms` also from `10 minutes ago`: seconds, minutes, hours or days.

    Raises:
        ValueError: it is none of these.
    """
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < _LONGEST_NUMBER:
        return int(text)
    ago = _AGO.fullmatch(text.strip())
    if ago is not None and now_ms is not None:
        return now_ms - int(ago[1]) * _UNIT_MS[ago[2][0]]
    try:
        moment = datetime.fromisoformat(text)
        return round((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except OverflowError as error:
        raise ValueError(text) from error


def time_text(milliseconds: int | None) -> str:
    """ISO-8601 in UTC with milliseconds; `-` for None and for times the log does not hold (negative)."""
    if milliseconds is None or milliseconds < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(milliseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"
