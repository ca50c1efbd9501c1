"""Entries as the spool hands them to the history."""

from typing import Any, Final

DAY_MS: Final = 86_400_000
NOON_MS: Final = 20_000 * DAY_MS + DAY_MS // 2
"""2024-10-04T12:00:00Z."""


def event(offset: int, *, group: str = "a", time_ms: int = NOON_MS, kind: str = "member_joined") -> dict[str, Any]:
    """An event's entry; its id is made of offset and kind."""
    return {
        "kind": "event",
        "event": {
            "id": f"0-{offset}-{kind}-0",
            "time": time_ms,
            "group": group,
            "kind": kind,
            "severity": "info",
            "partition": 0,
            "offset": offset,
            "detail": {"member_id": f"m{offset}"},
            "inferred": False,
        },
    }


def state(epoch: int, *, group: str = "a", time_ms: int = NOON_MS) -> dict[str, Any]:
    """A group's entry, as far as the history looks at it."""
    return {"kind": "group", "group": group, "time": time_ms, "state": {"group": group, "epoch": epoch}}


def deleted(*, group: str = "a", time_ms: int = NOON_MS) -> dict[str, Any]:
    """The entry of a group that went."""
    return {"kind": "group_deleted", "group": group, "time": time_ms}
