"""All figures of one group's state together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from coordinator_model.figures.table import WORDS, GroupNumbers, GroupWords, packed_numbers
from coordinator_model.figures.topics import GroupTopics, topics_of
from coordinator_model.figures.workings import Workings
from coordinator_model.migration import phases
from coordinator_model.state.group_state import GroupState


class GroupSummary(GroupNumbers):
    """The figures of one group's state: its numbers, and what is no number.

    Attributes:
        words, topics: what it shares with others.
        numbers: all numbers, packed, so that those of all groups are columns at once.
        recent_rebalances_ms: as in the state.
        durations: counts by bucket of rebalance durations, then their sum in milliseconds; empty for none.
    """

    __slots__ = ("durations", "recent_rebalances_ms", "topics", "words")

    def __init__(
        self,
        words: GroupWords,
        topics: GroupTopics,
        numbers: bytes,
        recent_rebalances_ms: tuple[int, ...],
        durations: tuple[int, ...],
    ) -> None:
        self.words = words
        self.topics = topics
        self.numbers = numbers
        self.recent_rebalances_ms = recent_rebalances_ms
        self.durations = durations

    @property
    def members(self) -> int:
        """How many members there are."""
        return self.classic_members + self.consumer_members

    @property
    def mixed(self) -> bool:
        """Whether members of both protocols are in the group, since when ever."""
        return phases.is_mixed(self.words.type, self.words.phase)


def summary(state: GroupState) -> GroupSummary:
    """Work the figures out."""
    of = Workings(state)
    durations = (*of.counters.duration_buckets, of.counters.duration_sum_ms)
    return GroupSummary(
        shared_words(tuple([row(of) for row in _WORDS])),
        topics_of(of),
        packed_numbers(of),
        state.recent_rebalances_ms,
        shared_durations(durations) if any(durations) else (),
    )


_WORDS: Final = tuple(row.worked_out for row in WORDS.values())


@lru_cache(4_096)
def shared_words(values: tuple[Any, ...]) -> GroupWords:
    """The same object for the same words."""
    return GroupWords(*values)


@lru_cache(4_096)
def shared_durations(durations: tuple[int, ...]) -> tuple[int, ...]:
    """The same object for the same durations."""
    return durations
