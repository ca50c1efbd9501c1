"""Groups' states as the board holds them: snapshots compressed, and figures, which are asked of every group, in rows.

States of some groups are read together and share a block, from the micro-batch on that brings them: what they have in
common is there once, and no group has objects of its own but its place in the block.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from coordinator_model.figures import stored
from coordinator_model.figures.summary import GroupSummary, summary
from coordinator_model.figures.table import NUMBER_BYTES, NUMBERS, GroupWords
from coordinator_model.figures.topics import GroupTopics
from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState

RECENT_STATES: Final = 256
"""A reader of a group asks several things of it one after another."""

IN_A_BLOCK: Final = 40
"""To read a snapshot of so many takes 0.04 ms, little beside what its state takes. Alone, one takes six times as much.
A block stays for the last of its groups that is as it was."""

NUMBERS_AT: Final = tuple(slice(at * NUMBER_BYTES, (at + 1) * NUMBER_BYTES) for at in range(IN_A_BLOCK))
"""Where the numbers of each stand among those of a block."""

_PARTITION: Final = struct.Struct("=q")
_PARTITION_AT: Final = NUMBERS.index("partition") * _PARTITION.size

_CODEC: Final = pa.Codec("zstd", 1)


@lru_cache(RECENT_STATES)
def state_of(text: str) -> GroupState:
    """The state that a snapshot is of; not to be changed."""
    return snapshot.load_group(text)


class _Block:
    """States of some groups.

    Attributes:
        packed, size: their snapshots, compressed together, and how many bytes those are.
        words, topics, durations: figures of each (`GroupSummary`).
        recent: of those with several recent rebalances, which these are; one alone is the last, and among the numbers.
        numbers: those of all, one after the other.
    """

    __slots__ = ("durations", "numbers", "packed", "recent", "size", "topics", "words")

    def __init__(self, texts: Sequence[str], summaries: Sequence[GroupSummary]) -> None:
        # In none is the end of a line.
        joined = "\n".join(texts).encode("utf-8", "surrogatepass")
        self.size, self.packed = len(joined), _CODEC.compress(joined, asbytes=True)
        self.words = tuple([of.words for of in summaries])
        self.topics = tuple([of.topics for of in summaries])
        self.durations = tuple([of.durations for of in summaries])
        self.numbers = b"".join([of.numbers for of in summaries])
        self.recent = {
            at: of.recent_rebalances_ms for at, of in enumerate(summaries) if len(of.recent_rebalances_ms) > 1
        }


class StateText:
    """A group's state but for its offsets: its place in a block; `read` makes it."""

    __slots__ = ("at", "block")

    def __init__(self, block: _Block, at: int) -> None:
        self.block = block
        self.at = at

    def is_same(self, other: "StateText") -> bool:
        """Whether nothing has changed from one to the other."""
        return self.block is other.block and self.at == other.at

    @property
    def state(self) -> GroupState:
        """The whole state, made when it is asked for; not to be changed."""
        return state_of(self.text)

    @property
    def text(self) -> str:
        """The snapshot."""
        texts: bytes = _CODEC.decompress(self.block.packed, self.block.size, asbytes=True)
        return texts.decode("utf-8", "surrogatepass").split("\n")[self.at]

    @property
    def words(self) -> GroupWords:
        """What it shares with other groups."""
        return self.block.words[self.at]

    @property
    def topics(self) -> GroupTopics:
        """Its topics."""
        return self.block.topics[self.at]

    @property
    def numbers(self) -> bytes:
        """As `GroupSummary.numbers`."""
        return self.block.numbers[NUMBERS_AT[self.at]]

    @property
    def partition(self) -> int:
        """As `GroupSummary.partition`."""
        found: int = _PARTITION.unpack_from(self.block.numbers, self.at * NUMBER_BYTES + _PARTITION_AT)[0]
        return found

    @property
    def durations(self) -> Sequence[int]:
        """As `GroupSummary.durations`."""
        return self.block.durations[self.at]

    @property
    def summary(self) -> GroupSummary:
        """The figures."""
        block, at = self.block, self.at
        found = GroupSummary(block.words[at], block.topics[at], self.numbers, (), block.durations[at])
        last_ms = found.last_rebalance_ms
        if last_ms is not None:
            found.recent_rebalances_ms = self.several_rebalances_ms or (last_ms,)
        return found

    @property
    def several_rebalances_ms(self) -> tuple[int, ...] | None:
        """The recent ones, where there is more than the last."""
        return self.block.recent.get(self.at)


def read(stored_states: Sequence[tuple[bytes, str]]) -> list[StateText]:
    """The states of these figures (`figures.stored.dump`), or nothing, and snapshots (`snapshot.dump_group`)."""
    found: list[StateText] = []
    for start in range(0, len(stored_states), IN_A_BLOCK):
        figures, snapshots = zip(*stored_states[start : start + IN_A_BLOCK], strict=True)
        block = _Block(snapshots, [*map(_figures, figures, snapshots)])
        found += [StateText(block, at) for at in range(len(snapshots))]
    return found


def _figures(figures: bytes, text: str) -> GroupSummary:
    return stored.load(figures) or summary(state_of(text))
