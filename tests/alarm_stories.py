"""For each kind of alarm that lasts in a group's state: a history that opens it, and what ends it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lab import builders as log
from lab import coordinator_events as happens
from tests.histories import History, Moment, at, history

MINUTE_MS: Final = 60_000
LATER_MS: Final = 1_000_000
OWNED: Final = {"a": {"t": [0]}, "b": {"t": [1]}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Of a group `g`.

    Attributes:
        opens: what is written until it has opened.
        ends: what is written that ends it; nothing where time does.
        over_ms: when time has ended it.
    """

    opens: tuple[Moment, ...]
    ends: tuple[Moment, ...] = ()
    over_ms: int | None = None

    @property
    def opened(self) -> History:
        """The log until it has opened."""
        return history(*self.opens)

    @property
    def rest(self) -> History:
        """The log from there on."""
        return history(*self.ends, start=self.opened.end)


def _classic(generation: int, *members: Any, **settings: Any) -> log.RecordBytes:
    return log.group_metadata("g", generation=generation, members=list(members), **settings)


def _custom(generation: int, protocol: str, user_data: bytes) -> log.RecordBytes:
    of = log.member("c", {}, assignment_bytes=log.assignment({"t": [0]}, user_data=user_data))
    return _classic(generation, of, protocol=protocol)


def _taken_over(hosts: tuple[str, ...], times: int) -> tuple[Moment, ...]:
    return tuple(
        at(
            turn * 3_000,
            _classic(1, log.member(f"i-{turn}", {"t": [0]}, instance_id="i", client_host=hosts[turn % len(hosts)])),
        )
        for turn in range(times + 1)
    )


_TWO: Final = (
    at(0, *happens.consumer_join("g", "a", epoch=1, targets={"a": OWNED["a"]})),
    at(1_000, *happens.consumer_join("g", "b", epoch=2, targets=OWNED)),
    at(1_500, *happens.consumer_moves("g", "a", epoch=2, assigned=OWNED["a"])),
)
_CLAIM: Final[Callable[[int, int], Any]] = lambda owned, of: log.member(  # noqa: E731 - two members, alike but for this
    "b" if owned else "a", {"t": [owned]}, owned={"t": [owned]}, owned_generation=of
)

STORIES: Final[Mapping[str, Story]] = {
    "duplicate_assignment": Story(
        opens=(*_TWO, at(2_000, *happens.consumer_moves("g", "b", epoch=2, assigned={"t": [0, 1]}))),
        ends=(at(5_000, *happens.consumer_moves("g", "b", epoch=2, assigned={"t": [1]})),),
    ),
    "static_member_absent": Story(
        opens=(
            at(0, *happens.consumer_join("g", "a", epoch=1, targets={"a": OWNED["a"]}, instance_id="i")),
            at(1_000, *happens.static_goes_away("g", "a", assigned=OWNED["a"], previous_epoch=1)),
        ),
        ends=(
            at(9_000, *happens.static_returns("g", old="a", new="b", instance_id="i", epoch=1, assigned=OWNED["a"])),
        ),
        over_ms=LATER_MS,
    ),
    "static_member_contended": Story(opens=_taken_over(("/a", "/b"), 3), over_ms=LATER_MS),
    "static_member_restarting": Story(opens=_taken_over(("/a",), 6), over_ms=LATER_MS),
    "poll_interval_exceeded": Story(
        opens=tuple(
            at(turn * 330_000, _classic(turn + 1, log.member(f"slow-{turn}", {"t": [0]}))) for turn in range(4)
        ),
        over_ms=2 * LATER_MS,
    ),
    "rebalance_storm": Story(
        opens=tuple(at(turn * 1_000, _classic(turn + 1, log.member("a", {"t": [0]}))) for turn in range(30)),
        over_ms=LATER_MS,
    ),
    "epoch_anomaly": Story(
        opens=(
            *_TWO,
            at(5_000, log.consumer_group_current_assignment("g", "b", epoch=2, assigned={"t": {1: 4}})),
        ),
        ends=(at(6_000, log.consumer_group_current_assignment("g", "b", epoch=2, assigned={"t": [1]})),),
    ),
    "stale_claim": Story(
        opens=(at(0, _classic(5, _CLAIM(0, 4))), at(1_000, _classic(6, _CLAIM(0, 5), _CLAIM(1, 2)))),
        ends=(at(2_000, _classic(7, _CLAIM(0, 6), _CLAIM(1, 6))),),
    ),
    "downgrade_unclean": Story(
        opens=(
            at(0, *happens.consumer_join("g", "a", epoch=2, targets={"a": OWNED["a"]})),
            at(20_000, *happens.converted_to_classic("g", all_members=[], generation=3, remaining={"a": OWNED["a"]})),
        ),
        ends=(at(30_000, *happens.consumer_gone("g", "a")),),
    ),
    "upgrade_blocked": Story(
        opens=(at(0, _custom(1, "own", b"mine")),),
        ends=(at(1_000, _custom(2, "range", b"")),),
    ),
}
