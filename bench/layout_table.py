"""The figures of `state_layout.py` as tables: a row for each layout."""

from collections.abc import Mapping
from typing import Any, Final

from bench.tables import reported, table

LABELS: Final = {
    "standing": "as it stands: the next, and packs of what changed at once",
    "single": "a group; 64 offsets of a group and topic",
    "topic": "a group; all offsets of a group and topic",
    "halves": "all groups of a partition; all their offsets",
    "partition": "all of a partition",
    "bundle": "all of a bundle",
}
"""Layout → what one value of it holds."""

CATCH_UP: Final = "state-layout-catch-up"
LOADS: Final = {
    "state-layout-1000": "1,000 commits/s, 1,000 groups",
    "state-layout-10000": "1,000 commits/s, 10,000 groups",
    "state-layout-30000": "1,000 commits/s, 30,000 groups",
    "state-layout-wide": "20 commits/s to a group of 10,000 partitions",
}
"""Part → under what load."""

_CATCH_UP_HEADS: Final = {
    "seconds": "catch-up, s",
    "cpu_seconds": "processor time, s",
    "checkpoint_mib": "state in the checkpoint, MiB",
}
_LOAD_HEADS: Final = {
    "batch_p50_seconds": "median, s",
    "batch_p99_seconds": "99th hundredth, s",
    "cpu_seconds_a_batch": "processor time a batch, s",
    "accesses_a_batch": "keys read or written",
    "written_kib_a_batch": "written a batch, KiB",
    "checkpoint_mib": "checkpoint after that, MiB",
}


def layouts(held: Mapping[str, Any]) -> str:
    """What was measured of every layout; empty where nothing was."""
    tables = (
        _table("", {CATCH_UP: ""}, _CATCH_UP_HEADS, held),
        _table("micro-batches under", LOADS, _LOAD_HEADS, held),
    )
    return "\n\n".join(each for each in tables if each)


def _table(head: str, parts: Mapping[str, str], heads: Mapping[str, str], held: Mapping[str, Any]) -> str:
    rows = [
        (*([load] if head else []), label, *(reported(figures[f"{name}_{figure}"], unit=False) for figure in heads))
        for part, load in parts.items()
        if part in held["parts"]
        for figures in (held["parts"][part]["figures"],)
        for name, label in LABELS.items()
        if all(f"{name}_{figure}" in figures for figure in heads)
    ]
    return table((*([head] if head else []), "one value holds", *heads.values()), rows) if rows else ""
