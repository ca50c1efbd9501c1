"""Committed offsets, within transactions and without, and how groups end (docs/coordinator-log.md)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from coordinator_model.state.offsets import ZERO_TOPIC_ID
from lab import builders
from lab.builders import RecordBytes
from tests.simulator import consumer, share, streams
from tests.simulator.cluster import PARTITIONS, Place
from tests.simulator.log import Log, Written
from tests.simulator.memory import Group
from tests.simulator.views import committed


@dataclass(slots=True)
class OffsetCoordinator(Log):
    """What may happen to a group's offsets, and to one without members."""

    def commit(
        self,
        group: Group,
        offsets: dict[Place, int],
        *,
        metadata: str = "",
        producer: int | None = None,
        retained: bool = False,
    ) -> bool:
        """Offsets are committed, in the order given, at once or with the producer's transaction.

        `retained`: by an old client, which says how long to keep them.
        """
        if not offsets or group.kind == "share":
            return False
        time_ms, version = self.now_ms + 1, 1 if retained else self.cluster.release.commit_version
        epoch = -1 if retained else 3
        records, commits = list[RecordBytes](), dict[Place, dict[str, Any] | None]()
        for place, offset in offsets.items():
            topic_id = builders.topic_id(self.cluster.of_name(place[0]))
            has_id = version >= 4 and producer is None
            commits[place] = committed(
                place,
                offset,
                leader_epoch=epoch,
                metadata=metadata,
                time_ms=time_ms,
                topic_id=topic_id if has_id else None,
            )
            records.append(
                builders.offset_commit(
                    group.name,
                    *place,
                    offset,
                    leader_epoch=3,
                    metadata=metadata,
                    timestamp=time_ms,
                    expire_timestamp=time_ms + 1 if retained else -1,
                    id_of_topic=topic_id if has_id else ZERO_TOPIC_ID,
                    version=version,
                )
            )
        for at, (place, new) in enumerate(commits.items(), self.end):
            if producer is None:
                self._apply(group, place, at, new)
            elif new is not None:
                group.opened = group.opened or group.kind is None
                self.transactions.setdefault(producer, {})[group.name, place] = (at, new)
        return self.write(group, records, commits=commits, producer=producer)

    def end_transaction(self, producer: int, *, commit: bool) -> bool:
        """A producer's marker: what it wrote counts, where nothing written later does already, or never did."""
        pending = self.transactions.pop(producer, None)
        if pending is None:
            return False
        self.now_ms += 1
        self._append(Written(self.now_ms, "", (), self.batch, self.end, producer=producer, marker=commit))
        for (name, place), (at, new) in pending.items() if commit else ():
            if at > self._applied.get((name, place), -1):
                self._apply(self.groups[name], place, at, new)
        return True

    def delete_offsets(self, group: Group, topic: str) -> bool:
        """Offsets of a topic that no member subscribes to are deleted."""
        if any(topic in group.subscribed(member) for member in group.members.values()) or group.kind == "streams":
            return False
        return self.forget_offsets(group, self.places_of(group, topic))

    def expire_offsets(self, group: Group, places: Iterable[Place]) -> bool:
        """Offsets expire; with the last one goes an empty group."""
        topics = {topic for member in group.members.values() for topic in group.subscribed(member)}
        pending = {place for of in self.transactions.values() for name, place in of if name == group.name}
        expired = [place for place in places if place[0] not in topics and place not in pending]
        if group.kind in ("share", "streams"):
            return False
        done = self.forget_offsets(group, expired)
        return (not group.offsets and not group.members and self.delete(group)) or done

    def delete(self, group: Group) -> bool:
        """An empty group is deleted, or expires."""
        if (
            group.members
            or not group.exists
            or any(name == group.name for of in self.transactions.values() for name, _ in of)
        ):
            return False
        places = list(group.offsets)
        records = [builders.offset_commit_tombstone(group.name, *place) for place in places]
        if group.kind == "share":
            if group.initializing or group.initialized:
                self.write(group, share.deleting(group))
            records += share.ended(group)
        elif group.kind == "streams":
            records += streams.ended(group)
        else:
            ended = group.kind == "consumer"
            records += consumer.ended(group) if ended else [builders.group_metadata_tombstone(group.name)]
        for place in places:
            self._apply(group, place, self.end, None)
        former, group = (
            group,
            self.open(group.name, protocol=group.protocol, custom_assignor=group.custom_assignor, family=group.family),
        )
        group.standbys = former.standbys
        return self.write(group, records, commits=dict.fromkeys(places))

    def places_of(self, group: Group, topic: str) -> list[Place]:
        """Of what the group has a committed offset, or may have with an open transaction."""
        pending = (place for of in self.transactions.values() for name, place in of if name == group.name)
        return sorted(place for place in {*group.offsets, *pending} if place[0] == topic)

    def forget_offsets(self, group: Group, places: list[Place]) -> bool:
        """Tombstones, which end what open transactions would commit, too."""
        for at, place in enumerate(places, self.end):
            self._apply(group, place, at, None)
            for pending in self.transactions.values():
                pending.pop((group.name, place), None)
        records = [builders.offset_commit_tombstone(group.name, *place) for place in places]
        return self.write(group, records, commits=dict.fromkeys(places))

    def _apply(self, group: Group, place: Place, at: int, new: dict[str, Any] | None) -> None:
        self._applied[group.name, place] = at
        if new is None:
            group.offsets.pop(place, None)
        else:
            group.offsets[place] = new


def places(topics: Iterable[str] = ("t", "u")) -> Iterator[Place]:
    """Every partition that these topics have from the beginning."""
    return ((topic, partition) for topic in topics for partition in range(PARTITIONS[topic]))
