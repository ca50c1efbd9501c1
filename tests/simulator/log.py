"""The log that a coordinator writes, its clock, and the groups it writes about."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lab.builders import RecordBytes
from tests.simulator.cluster import Cluster, Place
from tests.simulator.memory import Group
from tests.simulator.views import view


@dataclass(frozen=True, slots=True)
class Written:
    """One event of the coordinator as it stands in the log; events of one `batch` share a record batch.

    Records of a transaction are there for good or for nothing once a marker, a record of its own, says which.
    """

    time_ms: int
    group: str
    records: tuple[RecordBytes, ...]
    batch: int
    offset: int
    commits: dict[Place, dict[str, Any] | None] = field(default_factory=dict)
    """Offsets that the records commit, None for the tombstone of one, in their order."""
    producer: int | None = None
    marker: bool | None = None
    """Of the end of a producer's transaction: whether it is committed."""
    simple: bool = False
    empty: bool = False
    """Whether the group only commits, or has no members, at that time."""


@dataclass(slots=True)
class Log:
    """Group name → what it holds, and what was written."""

    groups: dict[str, Group] = field(default_factory=dict)
    log: list[Written] = field(default_factory=list)
    cluster: Cluster = field(default_factory=Cluster)
    transactions: dict[int, dict[tuple[str, Place], tuple[int, dict[str, Any]]]] = field(default_factory=dict)
    """Producer of an open transaction → (group, place) → offset of the record, and what is committed if it is."""
    downgraded: set[str] = field(default_factory=set)
    """Groups that ever went back to the classic protocol."""
    now_ms: int = 1_000
    batch: int = 0
    end: int = 0
    """Offset of the next record."""
    _applied: dict[tuple[str, Place], int] = field(default_factory=dict)
    """Offset of the record that a committed offset is from."""

    def open(
        self, name: str, *, protocol: str = "range", custom_assignor: bool = False, family: str = "consumer"
    ) -> Group:
        """A name that something will happen to; `protocol` is the assignor its classic members agree on."""
        group = self.groups[name] = Group(
            name=name, cluster=self.cluster, protocol=protocol, custom_assignor=custom_assignor, family=family
        )
        return group

    def lag(self, ms: int) -> None:
        """Time passes; the batch is sealed."""
        self.now_ms += ms
        self.batch += 1

    def views(self) -> dict[str, dict[str, Any]]:
        """Name → GROUP of the groups there are."""
        return {
            name: view(group) for name, group in sorted(self.groups.items()) if group.kind is not None or group.offsets
        }

    def views_of(self, offsets: dict[str, dict[Place, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
        """The same for a reader that knows these offsets, because transactions are open."""
        return {
            name: view(group, offsets.get(name, {}))
            for name, group in sorted(self.groups.items())
            if group.kind is not None or offsets.get(name)
        }

    def write(
        self,
        group: Group,
        records: Iterable[RecordBytes],
        *,
        commits: dict[Place, dict[str, Any] | None] | None = None,
        producer: int | None = None,
    ) -> bool:
        """One event. `faults` write by this, too."""
        written = tuple(records)
        if written:
            self.now_ms += 1
            self._append(
                Written(
                    self.now_ms,
                    group.name,
                    written,
                    self.batch,
                    self.end,
                    commits or {},
                    producer,
                    simple=group.kind is None,
                    empty=not (group.written if group.kind == "classic" else group.members),
                )
            )
        group.count_mixed(self.now_ms)
        self.downgraded.update([group.name] if group.was_downgraded else [])
        return bool(written)

    def _append(self, written: Written) -> None:
        self.log.append(written)
        self.end += max(1, len(written.records))
