"""The snapshot of all groups that the board shows, and the next one: made of it and the rows of a batch."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.state.membership import SHARE
from streaming.base.batch_rows import Row
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup
from streaming.board.group_summary import IN_A_BLOCK, StateText, read
from streaming.board.offset_columns import OffsetColumns
from streaming.board.share_partitions import NO_SHARES, SharesDraft, SharesShown

NO_TOTALS: Final[Mapping[str, Any]] = {
    "records": 0,
    "unknown_records": {},
    "undecodable_records": {},
    "newer_value_versions": {},
    "last_offset": -1,
}
"""What a task of a former release has not counted."""


@dataclass(frozen=True, slots=True, eq=False)
class BoardSnapshot:
    """All that one micro-batch left behind. Never changed; the next batch makes another.

    `shards` are totals of each offsets partition, by the names of `NO_TOTALS`. `shares` are all share partitions, also
    those of no group.
    """

    groups: GroupMap[BoardGroup] = field(default_factory=GroupMap)
    shards: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    shares: SharesShown = field(default_factory=SharesShown)


class BatchUpdate:
    """What is shown, with rows of a batch taken in."""

    def __init__(self, shown: BoardSnapshot) -> None:
        self._shown = shown
        self._shards = dict(shown.shards)
        self._unread: dict[str, tuple[bytes, str]] = {}
        self._states: dict[str, StateText] = {}
        self._buckets: dict[str, dict[tuple[str, int], OffsetColumns]] = {}
        self._anew: set[str] = set()
        self._shares = SharesDraft(shown.shares)
        self.events: list[tuple[str, str]] = []
        """(group, kind) of each."""
        self.deleted: set[str] = set()

    def take(self, rows: Iterable[Row]) -> None:
        """Take in rows, in the order they were put out in."""
        for partition, kind, group, payload, words in rows:
            match kind:
                case "group":
                    self._unread[group] = payload, words
                    self.deleted.discard(group)
                    if len(self._unread) == IN_A_BLOCK:
                        self._read()
                case "group_deleted":
                    self._unread.pop(group, None)
                    self._states.pop(group, None)
                    self._buckets.pop(group, None)
                    self.deleted.add(group)
                    self._anew.add(group)
                case "offsets":
                    bucket = OffsetColumns(payload, words)
                    self._buckets.setdefault(group, {})[bucket.key] = bucket
                case "event":
                    self.events.append((group, words))
                case "share" | "share_gone" | "share_log":
                    self._shares.take(partition, kind, payload)
                case "shard":
                    self._shards[partition] = {**NO_TOTALS, **json.loads(payload)}
                case _:
                    pass  # "undecodable" and "unreadable" are the log's; a later release's kind is not for this board
        self._read()

    def _read(self) -> None:
        """Of a catch-up there are too many texts to hold all of them until the last has come."""
        self._states.update(zip(self._unread, read([*self._unread.values()]), strict=True))
        self._unread.clear()

    def leave_out_what_is_not_listed(self) -> None:
        """Forget groups that a broker would not list; what is stored has them too."""
        self._states = {name: of for name, of in self._states.items() if of.words.exists}

    def shown(self) -> BoardSnapshot:
        """All of it, in the place of what was shown."""
        changes: dict[str, BoardGroup | None] = dict.fromkeys(self.deleted)
        shares = self._shares.shown()
        for name in self._states.keys() | self._buckets.keys() | self._shares.changed.keys():
            former = None if name in self._anew else self._shown.groups.get(name)
            state = self._states.get(name, former)
            if state is not None:
                own = shares.groups.get(name, NO_SHARES) if state.words.type == SHARE else NO_SHARES
                changes[name] = BoardGroup(name, state, self._merged(name, former), own)
        groups = self._shown.groups.with_changes(changes)
        return BoardSnapshot(groups, self._shards, shares)

    def commit_times_ms(self) -> Iterator[int]:
        """When the newest commit of each bucket was made in which something was committed."""
        for name, buckets in self._buckets.items():
            held = self._shown.groups.get(name)
            former = {} if held is None or name in self._anew else {bucket.key: bucket for bucket in held.buckets}
            for key, bucket in buckets.items():
                if key not in former or bucket.commits > former[key].commits:
                    newest_ms = bucket.newest_commit_ms
                    if newest_ms >= 0:
                        yield newest_ms

    def _merged(self, name: str, former: BoardGroup | None) -> tuple[OffsetColumns, ...]:
        """Buckets by topic and number, the new ones in the place of the former."""
        new = self._buckets.get(name)
        if new is None:
            return () if former is None else former.buckets
        if former is not None:
            new = {bucket.key: bucket for bucket in former.buckets} | new
        return tuple(new[key] for key in sorted(new)) if len(new) > 1 else tuple(new.values())
