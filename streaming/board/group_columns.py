"""The figures of many groups in columns: what each has packed (`group_summary.py`), put side by side.

What groups share, words and topics, is there once, with a column that says whose it is: what is worked out of it is
worked out once for all of them.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from coordinator_model.figures.rows import NONE
from coordinator_model.figures.table import NUMBERS, GroupWords
from coordinator_model.figures.topics import GroupTopics
from streaming.board.board_group import BoardGroup
from streaming.board.group_summary import NUMBERS_AT

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Shared = TypeVar("Shared")

_PLACES: Final = {name: place for place, name in enumerate(NUMBERS)}


class GroupColumns:
    """Some groups, never changed; their columns are made when they are first asked for.

    Attributes:
        held: the groups.
    """

    def __init__(self, groups: Iterable[BoardGroup]) -> None:
        self.held: Sequence[BoardGroup] = list(groups)

    @cached_property
    def _numbers(self) -> Integers:
        packed = bytearray()
        for of in self.held:
            packed += of.block.numbers[NUMBERS_AT[of.at]]
        # A column is read several times, and a row of numbers is longer than a line of the processor's cache.
        return np.frombuffer(packed, np.int64).reshape(-1, len(NUMBERS)).T.copy()

    @cached_property
    def words(self) -> tuple[list[GroupWords], Integers]:
        """Words that groups share, each once; group → place of its own in those."""
        return encoded([of.block.words[of.at] for of in self.held])

    @cached_property
    def topics(self) -> tuple[list[GroupTopics], Integers]:
        """The same of their topics."""
        return encoded([of.block.topics[of.at] for of in self.held])

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, name: str) -> Integers:
        """One of `NUMBERS` of every group; `NONE` where it is not there."""
        found: Integers = self._numbers[_PLACES[name]]
        return found

    @cached_property
    def names(self) -> list[str]:
        """The name of every group."""
        return [of.name for of in self.held]

    @cached_property
    def places(self) -> dict[str, int]:
        """Name of a group → its place in `held`."""
        return {name: place for place, name in enumerate(self.names)}

    def named(self, names: Iterable[str]) -> Flags:
        """Whether a group is one of these."""
        found = np.zeros(len(self), np.bool_)
        found[[self.places[name] for name in names if name in self.places]] = True
        return found

    def has(self, name: str) -> Flags:
        """Whether the number of that name is there."""
        found: Flags = self[name] != NONE
        return found

    def by_words(self, of: Callable[[GroupWords], bool]) -> Flags:
        """Whether that holds of a group's words."""
        each, places = self.words
        return np.array(list(map(of, each)), np.bool_)[places]

    def by_topics(self, of: Callable[[GroupTopics], int]) -> Integers:
        """What there is to say of a group by its topics."""
        each, places = self.topics
        return np.array(list(map(of, each)), np.int64)[places]


def encoded(values: Sequence[Shared]) -> tuple[list[Shared], Integers]:
    """Each value once, and of each its place in those."""
    once = list(dict.fromkeys(values))
    places = {value: place for place, value in enumerate(once)}
    return once, np.fromiter(map(places.__getitem__, values), np.int64, len(values))
