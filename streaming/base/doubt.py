"""Why what is shown may not be so: the one rule of page, terminal, gates and API.

A board names what is missing, each thing as an object with `reason` and `since` (ms); `far` says in words how much is
done of what takes a while, and `as_of` (ms) of which moment the rows are where they are of one: half a log is of none.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streaming.base.times import time_text

MissingPart = Mapping[str, Any]

FIELDS: Final = ("reason", "since", "as_of", "far")
"""Of a doubt, as the API has it; the last two only where they are known."""


def doubt(missing: Sequence[MissingPart]) -> dict[str, Any] | None:
    """What to say of all that is missing, or None where nothing is: stale rows first, then how far the log is read."""
    if not missing:
        return None
    chosen = next((each for name in ("as_of", "far") for each in missing if name in each), missing[0])
    return {name: chosen[name] for name in FIELDS if name in chosen}


def said(missing: MissingPart) -> str:
    """In words: what, since when, how far; `doubt` of the page's live.js says the same by the reader's clock."""
    far = f": {missing['far']}" if "far" in missing else ""
    return f"{missing['reason']}, since {moment(missing['since'])}{far}"


def unread_of(answer: Mapping[str, Any]) -> Sequence[MissingPart]:
    """Of an answer of the API with groups: partitions of the log that are not read, so that groups may be missing."""
    found: Sequence[MissingPart] = answer.get("unread") or ()
    return found


def cannot_tell(missing: MissingPart) -> str:
    """The same, as what a monitor answers instead."""
    return f"cannot tell: {said(missing)}"


def moment(milliseconds: int) -> str:
    """A time as people read it, with its zone: 2026-01-31 13:03:00 UTC."""
    return time_text(milliseconds).partition(".")[0].replace("T", " ") + " UTC"
