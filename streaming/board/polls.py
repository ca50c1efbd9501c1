"""What a board cannot know whose groups are polled, and how old what it shows is.

A poll is of one moment. What happens between two of them is not seen, and coordinators keep much of the log to
themselves: figures made of either are not known (null, no series), never 0; verdicts made of them are off.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

ADMIN: Final = "admin"
"""`source.kind` of polled groups."""

STALE_SECONDS: Final = 60.0
"""So long a poll may stay away before what is shown is not to be believed any more; as `readiness.Standstill`."""

MOST_NAMED: Final = 20

OFF: Final[Mapping[str, str]] = {
    "rebalances": "rebalances between two polls are not seen, nor their number, duration, causes and moved partitions",
    "stuck rebalances, storms, groups that do not settle": "epochs and times that only the log has show them",
    "handovers, stale claims, fencing": "the order of records shows them",
    "static members that are replaced, contended or restarting": "who stood for an instance id before is in the log",
    "commits, rewinds, resets, age of commits": "a poll has the last offset, not when and how often it was committed",
    "duplicates that are yet to be revoked": "a poll has what members hold, not what they have yet to give up",
    "conversions, leftovers, the way of a migration": "a poll has the members of either protocol, not how they came",
    "the downgrade gate": "what is physically in the log decides, so it answers cannot_tell",
    "own distance to the log's end, unknown records": "the log is not read",
}
"""What is off → why, as `/ready` and docs/permissions.md have it."""

UNKNOWN_IN_GROUP: Final[Mapping[str, None]] = dict.fromkeys(("rebalances", "rebalancing_since"))
"""Fields of GROUP beside its `migration` that are null where groups are polled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollStatus:
    """How the polling goes.

    Attributes:
        interval_ms: between the beginnings of two polls.
        polled_ms: when the last one began that all brokers answered; None for none yet.
        stale_since_ms: since when some broker's answers are missing; None while none are.
        failure: what is amiss then.
        left_out: groups that are listed and not described: name → why.
        unnamed: how many more of these there are, without their names.
        lists_all: whether groups that may not be described would be listed; None where brokers do not say.
    """

    interval_ms: int
    polled_ms: int | None = None
    stale_since_ms: int | None = None
    failure: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    unnamed: int = 0
    lists_all: bool | None = None

    @property
    def not_described(self) -> int:
        """How many groups are listed and not described."""
        return len(self.left_out) + self.unnamed

    @classmethod
    def of_json(cls, reported: Mapping[str, Any]) -> "PollStatus":
        """Of what `as_json` made."""
        left_out = {of["group"]: of["reason"] for of in reported["not_described"]}
        return cls(
            interval_ms=reported["interval_ms"],
            polled_ms=reported["polled"],
            stale_since_ms=reported["stale_since"],
            failure=reported["failure"],
            left_out=left_out,
            unnamed=reported["groups_not_described"] - len(left_out),
            lists_all=reported["lists_all_groups"],
        )

    def as_json(self) -> dict[str, Any]:
        """`source` of `/ready` and of the API; times in ms, the first names of what is left out."""
        named = sorted(self.left_out.items())[:MOST_NAMED]
        return {
            "kind": ADMIN,
            "interval_ms": self.interval_ms,
            "polled": self.polled_ms,
            "stale_since": self.stale_since_ms,
            "failure": self.failure,
            "groups_not_described": self.not_described,
            "not_described": [{"group": name, "reason": why} for name, why in named],
            "lists_all_groups": self.lists_all,
        }

    def missing(self, sampled_ms: int | None, now_ms: int) -> list[dict[str, Any]]:
        """What keeps the board from being ready, as `base.doubt` has it."""
        if self.polled_ms is None:
            why = "" if self.failure is None else f" ({self.failure})"
            return [{"reason": f"groups are polled, and no poll is answered yet{why}"}]
        found: list[dict[str, Any]] = []
        since_ms = self.stale_since_ms
        if since_ms is not None and now_ms - since_ms >= STALE_SECONDS * 1_000:
            found += self.stale()
        if sampled_ms is None:
            found.append({"reason": "lag is not known, as log end offsets are not sampled yet"})
        return found

    def stale(self) -> list[dict[str, Any]]:
        """That brokers do not answer, from the first poll on that they did not; empty while they do."""
        since_ms = self.stale_since_ms
        if since_ms is None:
            return []
        why = "" if self.failure is None else f" ({self.failure})"
        return [{"reason": f"no answer from the brokers{why}", "since": since_ms, "as_of": since_ms}]
