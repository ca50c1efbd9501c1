"""The simulator against real brokers: asked what they were asked, it writes what they wrote.

Every group of every recorded scenario, event by event: the same records in the same order, with the same epochs, states
and assignments. Records that differ only in whom they are about have no order (a broker's is that of its
hash maps), and times are not compared.
"""

from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_model.records.serde import Record
from tests.recorder.recordings import PATHS
from tests.simulator.cluster import RELEASES, Release
from tests.simulator.recorded import Player, Recording, recording_of

FAMILIES: Final = {"Consumer": "consumer", "Share": "share", "Streams": "streams"}


@cache
def recording(path: Path) -> Recording:
    return recording_of(path)


NOT_PLAYED: Final = ("subscribed-topic-made-anew",)
"""A recording has the names of topics as they are at its end, not of those that were."""


def family_of(recorded: Recording, group: str) -> str:
    """What the group is, or may become: by the types of its records."""
    types = {of.type.name.split("_")[0].capitalize() for event in recorded.events[group] for of in event.records}
    return next((family for name, family in FAMILIES.items() if name in types), "consumer")


def cases() -> list[Any]:
    return [
        pytest.param(path, group, id=f"{path.parent.name}-{path.name.split('.')[0]}-{group}")
        for path in PATHS
        for group in recording(path).events
        if group not in NOT_PLAYED and (family_of(recording(path), group) != "share" or release_of(path).new_groups)
    ]


def release_of(path: Path) -> Release:
    return RELEASES[recording(path).release]


def shape(player: Player, record: Record) -> tuple[Any, ...]:
    """What the coordinator decided of a record; of what clients said of themselves only that they did."""
    key, value = record.key, record.value
    whom = getattr(key, "member_id", None) or getattr(key, "regular_expression", None) or getattr(key, "topic", "")
    about = (record.type, value is not None, whom, getattr(key, "partition", -1))
    return (*about, *(_decided(player, value) if value is not None else ()))


def _decided(player: Player, value: Any) -> Iterable[Any]:
    for name in ("epoch", "assignment_epoch", "generation", "member_epoch", "previous_member_epoch", "state", "offset"):
        if hasattr(value, name):
            yield name, getattr(value, name)
    for name in ("topic_partitions", "assigned_partitions", "partitions_pending_revocation", *TASKS):
        if hasattr(value, name):
            yield name, dict(_with_epochs(player, getattr(value, name)))
    if hasattr(value, "members"):
        yield "members", {of.member_id for of in value.members}


TASKS: Final = tuple(
    f"{of}_tasks{rest}" for of in ("active", "standby", "warmup") for rest in ("", "_pending_revocation")
)


def _with_epochs(player: Player, parts: Iterable[Any]) -> Iterable[tuple[Any, int]]:
    for part in parts:
        epochs = getattr(part, "assignment_epochs", None) or [-1] * len(part.partitions)
        for place, epoch in zip(part.partitions, epochs, strict=True):
            (found,) = player.places([type(part)(**{**_fields(part), "partitions": (place,)})])
            yield found, epoch


def _fields(part: Any) -> dict[str, Any]:
    return {name: getattr(part, name) for name in type(part).__dataclass_fields__}


def in_runs(shapes: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Neighbours that differ only in whom they are about, ordered."""
    return [of for _, run in groupby(shapes, key=lambda of: of[:2]) for of in sorted(run, key=str)]


@pytest.mark.parametrize(("path", "group"), cases())
def test_simulator_writes_what_the_broker_wrote(path: Path, group: str) -> None:
    """Event by event."""
    recorded = recording(path)
    player = Player(recorded, group, release_of(path), family_of(recorded, group))

    for event in recorded.events[group]:
        written = player.play(event)

        assert in_runs(shape(player, of) for of in event.records) == in_runs(shape(player, of) for of in written)
