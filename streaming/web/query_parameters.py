"""Parameters of the API's questions, and why one is not answered."""

import re
from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.gates import broker_releases
from streaming.base.name_filter import LONGEST_PATTERN, is_pattern
from streaming.base.times import time_ms
from streaming.metrics.group_metrics import ALL_GROUPS, GroupShard

SHOWN: Final = 40
"""So many characters of a wrong parameter are said again."""


_MEMBERS: Final = re.compile("0*[0-9]{1,10}")
_SHARD: Final = re.compile("([0-9]{1,4})/([0-9]{1,4})")


class BadRequestError(ValueError):
    """A parameter is not what is accepted; the message names it, what was found and what is accepted."""


class NotFoundError(LookupError):
    """There is no such thing; the message names it. Under `doubt` (`base.doubt`) that is not known."""

    def __init__(self, message: str, doubt: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.doubt = doubt


def pattern_of(name: str, text: str | None) -> str | None:
    """A name or a shell pattern, None where nothing is asked for; raises BadRequestError."""
    if text and len(text) > LONGEST_PATTERN and is_pattern(text):
        found = f"a pattern of {len(text)} characters"
        raise BadRequestError(f"{name}: found {found}, accepted: at most {LONGEST_PATTERN}, or a name")
    return text or None


def max_size(text: str | None) -> int | None:
    """A number of members; raises BadRequestError."""
    if text is None:
        return None
    if not _MEMBERS.fullmatch(text) or not 0 < int(text) < 1 << 31:
        raise BadRequestError(f"max_size: found {text[:SHOWN]!r}, accepted: a number of members from 1 to 2147483647")
    return int(text)


def target_version(text: str | None) -> str | None:
    """A broker's release; raises BadRequestError."""
    if text is not None and broker_releases.release(text) is None:
        raise BadRequestError(f"target_version: found {text[:SHOWN]!r}, accepted: {broker_releases.ACCEPTED}")
    return text


def shard_of(text: str | None) -> GroupShard:
    """The share of groups that `shard=i/n` asks for, all without it; raises BadRequestError.

    Shares are counted from 0 or from 1, as is usual with who asks: `n/n` is `0/n`.
    """
    if text is None:
        return ALL_GROUPS
    given = _SHARD.fullmatch(text)
    shard = GroupShard(*map(int, given.groups())) if given else None
    if shard is None or not shard.number <= shard.shares > 0:
        raise BadRequestError(f"shard: found {text[:SHOWN]!r}, accepted: i/n, i from 0 to n, n from 1 to 9999")
    return shard


def limit_of(text: str, most: int) -> int:
    """How many are asked for, of `most`; raises BadRequestError."""
    try:
        limit = int(text)
    except ValueError:
        limit = 0
    if not 1 <= limit <= most:
        raise BadRequestError(f"limit: found {text[:SHOWN]!r}, accepted: a number from 1 to {most}")
    return limit


def time_of(name: str, text: str) -> int:
    """The time in milliseconds that a parameter gives, a + in front of its zone coming as a blank.

    Raises:
        BadRequestError: it is no time.
    """
    try:
        found = time_ms(text.replace(" ", "+") if "T" in text else text)
    except ValueError:
        found = -1
    if found < 0:
        accepted = "milliseconds since 1970, or a time as 2026-01-31T14:03:00Z"
        raise BadRequestError(f"{name}: found {text[:SHOWN]!r}, accepted: {accepted}")
    return found
