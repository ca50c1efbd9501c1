"""A group's state as the board holds it: its snapshot, compressed, and its figures, which are asked of every group."""

import json
import threading
import zlib
from functools import lru_cache
from typing import Final

from coordinator_model import group_figures
from coordinator_model.group_figures import GroupSummary
from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState

RECENT_STATES: Final = 256
"""A reader of a group asks several things of it one after another."""


@lru_cache(RECENT_STATES)
def state_of(text: str) -> GroupState:
    """The state that a snapshot is of; not to be changed."""
    return snapshot.load_group(text)


def exists(text: str) -> bool:
    """Whether a broker would list the group of this text; most have committed offsets, which is quick to see."""
    state, figures = group_figures.load(text)
    if figures is not None:
        return figures.words.exists
    release, held = json.loads(state)
    if release == snapshot.FORMAT and held.get("offset_count", 0) > 0:
        return True
    return snapshot.load_group(state).exists


class StateText:
    """A group's state but for its offsets, as long as it stays as it is."""

    __slots__ = ("_packed", "_summary", "_text")

    def __init__(self, text: str) -> None:
        """From the text of `group_figures.dump`, or of `snapshot.dump_group`."""
        # As it came until figures are asked for: of many a group another state comes first.
        self._text: str | None = text
        self._packed = b""
        self._summary: GroupSummary | None = None

    @property
    def text(self) -> str:
        """The snapshot."""
        text, of = self._text, self._summary
        if text is None and of is not None:
            return _unpacked((of.words.type, of.words.group_state), self._packed)
        return group_figures.snapshot_of(text or "")

    @property
    def summary(self) -> GroupSummary:
        """The figures."""
        text, found = self._text, self._summary
        # Two threads may read the text at once: each finds the same, and it goes last.
        if found is None and text is not None:
            state, found = group_figures.load(text)
            found = self._summary = found or group_figures.summary(state_of(state))
            self._packed = _packed((found.words.type, found.words.group_state), state)
            self._text = None
        found = found or self._summary
        assert found is not None  # noqa: S101 - as said above
        return found


_WINDOW: Final = -12
_MEMORY: Final = 4

_Kind = tuple[str, str]


class _Packing:
    """Snapshots of groups of one kind, compressed: none repeats what it has in common with the first of them."""

    def __init__(self, first: bytes) -> None:
        self._first = first[-(1 << -_WINDOW) :]
        self._packing = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=self._first)
        self._lock = threading.Lock()

    def pack(self, text: bytes) -> bytes:
        """Compressed."""
        with self._lock:
            # A copy is made in a quarter of the time that another beginning takes.
            packing = self._packing.copy()
        return packing.compress(text) + packing.flush()

    def unpack(self, packed: bytes) -> bytes:
        """Inverse of `pack`."""
        return zlib.decompressobj(_WINDOW, zdict=self._first).decompress(packed)


_PACKINGS: Final[dict[_Kind, _Packing]] = {}
"""By type and state."""


def _packed(kind: _Kind, text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    packing = _PACKINGS.get(kind) or _PACKINGS.setdefault(kind, _Packing(encoded))
    return packing.pack(encoded)


def _unpacked(kind: _Kind, packed: bytes) -> str:
    return _PACKINGS[kind].unpack(packed).decode("utf-8", "surrogatepass")
