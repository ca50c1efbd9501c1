"""Copies of groups in other partitions of the log than the one they live in (`coordinator_model/copies.py`).

A micro-batch has rows of all partitions. Between it and whatever shows or keeps it stands this: rows of the copy that
is the group are let through, those of others kept here. Where another copy becomes the group, as the one that was ends,
its rows take their place. No other part needs to know that there are copies.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from coordinator_model import copies
from coordinator_model.copies import CREATED, IN_TWO_PARTITIONS, CopyEvent, Doubled
from coordinator_model.state.events import event_view
from coordinator_model.state.group_state import GroupState
from streaming.base.batch_rows import Row
from streaming.base.persistent_map import GroupMap
from streaming.board.batch_update import BatchUpdate, BoardSnapshot
from streaming.board.board_group import BoardGroup

_ENDED: Final = -1
"""When a copy that ended was last written, beside those that exist."""

_EVENT: Final = "event"

Of = Mapping[int, BoardGroup]
"""Partition → copy."""


class Named(NamedTuple):
    """A group in several partitions.

    Attributes:
        partitions: where copies are, ascending.
        lives_in: which of them is the group.
    """

    partitions: tuple[int, ...]
    lives_in: int

    def as_json(self) -> dict[str, Any]:
        """As the API and events have it."""
        return {"partitions": list(self.partitions), "lives_in": self.lives_in}


class Copies:
    """Copies that are not their groups; written by one thread, read by many."""

    def __init__(self) -> None:
        self._aside: Mapping[str, Of] = {}
        """Group → its copies but for the one that is shown; never changed, but replaced."""
        self._partitions: int | None = None
        self._last: tuple[int, Mapping[str, Of], GroupMap[BoardGroup]] | None = None
        """The last batch with copies, and what there was before it: it may be repeated, with more rows than before."""

    # --- reading ---

    def __len__(self) -> int:
        return len(self._aside)

    def named(self, shown: GroupMap[BoardGroup]) -> dict[str, Named]:
        """Groups in several partitions by name, as they are shown."""
        found = {}
        for group, others in sorted(self._aside.items()):
            held = shown.get(group)
            if held is not None:
                found[group] = Named(tuple(sorted({*others, held.partition})), held.partition)
        return found

    def of(self, group: str, lives_in: int) -> Named | None:
        """The same of a group that is shown as of this partition; None where there is but one copy."""
        others = self._aside.get(group)
        return None if others is None else Named(tuple(sorted({*others, lives_in})), lives_in)

    def states(self, groups: Collection[str] = ()) -> list[GroupState]:
        """States of the copies that are not the groups, of these or all."""
        return [
            of.state for name, others in self._aside.items() if not groups or name in groups for of in others.values()
        ]

    # --- writing ---

    def clear(self) -> None:
        """There is nothing."""
        self._aside, self._last = {}, None

    def loaded(self, rows: Iterable[Row], into: BatchUpdate, partitions: int | None) -> BoardSnapshot:
        """What is to be shown of all that the state holds.

        Args:
            rows: each group whole; of partition -1 where it is not known, and there is no copy.
            into: takes those of the first copy of each.
            partitions: how many the log has; None where that is not known.
        """
        self.clear()
        more: dict[int, list[Row]] = {}
        into.take(_first_copies(rows, more))
        into.leave_out_what_is_not_listed()
        snapshot = into.shown()
        if not more:
            return snapshot
        others: dict[str, dict[int, BoardGroup]] = {}
        for partition, of_partition in more.items():
            update = BatchUpdate(BoardSnapshot())
            update.take(of_partition)
            update.leave_out_what_is_not_listed()
            for name, copy in update.shown().groups.items():
                others.setdefault(name, {})[partition] = copy
        groups: dict[str, BoardGroup] = {}
        aside: dict[str, Of] = {}
        for name, of in others.items():
            first = snapshot.groups.get(name)
            every = of if first is None else {**of, first.partition: first}
            lives_in = _lives_in(name, every, partitions)
            groups[name] = every[lives_in]
            _keep(aside, name, every, lives_in)
        self._aside, self._partitions = aside, partitions
        return BoardSnapshot(snapshot.groups.with_changes(groups), snapshot.shards)

    def settled(
        self, batch_id: int, rows: Sequence[Row], shown: GroupMap[BoardGroup], partitions: int | None
    ) -> Sequence[Row]:
        """The rows of a micro-batch as they are to be shown and kept.

        Args:
            batch_id: of the batch; the same again is taken to what was there before it.
            rows: of all copies.
            shown: groups as they are shown before it.
            partitions: how many the log has; None where that is not known.
        """
        if self._last is not None and self._last[0] == batch_id:
            _, self._aside, shown = self._last
        self._last = None
        several = self._several(rows, shown)
        if partitions != self._partitions:
            several |= self._aside.keys()
            self._partitions = partitions
        if not several:
            return rows
        self._last = batch_id, self._aside, shown
        return self._told_apart(several, rows, shown, partitions)

    def _several(self, rows: Sequence[Row], shown: GroupMap[BoardGroup]) -> set[str]:
        """Groups of which there are, or may be, several copies, and that these rows are about."""
        partition_of: dict[str, int] = {}
        # What is of a partition, and of no group, names none.
        several = {
            row.group
            for row in rows
            if row.group and partition_of.setdefault(row.group, row.partition) != row.partition
        }
        for name, partition in partition_of.items():
            held = shown.get(name)
            if (held is not None and held.partition != partition) or name in self._aside:
                several.add(name)
        return several

    def _told_apart(
        self, several: Collection[str], rows: Sequence[Row], shown: GroupMap[BoardGroup], partitions: int | None
    ) -> list[Row]:
        found: list[Row] = []
        by_partition: dict[int, list[Row]] = {}
        events: dict[str, list[Row]] = {name: [] for name in several}
        for row in rows:
            if row.group not in events:
                found.append(row)
            elif row.kind == _EVENT:
                events[row.group].append(row)
            else:
                by_partition.setdefault(row.partition, []).append(row)
        before = {name: _before(shown.get(name), self._aside.get(name, {})) for name in several}
        after = _after(before, by_partition)
        aside = dict(self._aside)
        for name in sorted(several):
            was, now = shown.get(name), after[name]
            lives_in = _lives_in(name, now, partitions) if now else None
            _keep(aside, name, now, lives_in)
            found += _rows_of(name, was, None if lives_in is None else now[lives_in], by_partition)
            found += _events_of(name, events[name], before[name], now, partitions)
        self._aside = aside
        return found


def _first_copies(rows: Iterable[Row], more: dict[int, list[Row]]) -> Iterator[Row]:
    """Rows of that copy of each group that comes first; those of others are put into `more`, by partition."""
    partition_of: dict[str, int] = {}
    for row in rows:
        partition = row.partition
        if partition < 0 or not row.group or partition_of.setdefault(row.group, partition) == partition:
            yield row
        else:
            more.setdefault(partition, []).append(row)


def _lives_in(group: str, of: Of, partitions: int | None) -> int:
    if len(of) == 1:
        return next(iter(of))
    # A partition beyond those that are known: how many there are now will be known in a moment.
    known = partitions if partitions is not None and max(of) < partitions else None
    return copies.lives_in(group, {at: _written_ms(copy) for at, copy in of.items()}, known)


def _written_ms(copy: BoardGroup) -> int:
    return max(copy.summary.last_step_ms, copy.newest_commit_ms or 0)


def _keep(aside: dict[str, Of], name: str, of: Of, lives_in: int | None) -> None:
    """Keep the copies of a group but for the one that is shown."""
    others = {at: copy for at, copy in of.items() if at != lives_in}
    if others:
        aside[name] = others
    else:
        aside.pop(name, None)


def _before(held: BoardGroup | None, others: Of) -> Of:
    return others if held is None else {**others, held.partition: held}


def _after(before: Mapping[str, Of], rows: Mapping[int, Sequence[Row]]) -> dict[str, dict[int, BoardGroup]]:
    """The copies of groups with rows of a batch taken in, each by those of its partition."""
    after = {name: dict(of) for name, of in before.items()}
    for partition, of_partition in rows.items():
        held = {name: of[partition] for name, of in before.items() if partition in of}
        update = BatchUpdate(BoardSnapshot(GroupMap[BoardGroup]().with_changes(held)))
        update.take(of_partition)
        groups = update.shown().groups
        for name in {row.group for row in of_partition}:
            copy = groups.get(name)
            if copy is None:
                after[name].pop(partition, None)
            else:
                after[name][partition] = copy
    return after


def _rows_of(
    name: str, was: BoardGroup | None, now: BoardGroup | None, rows: Mapping[int, Sequence[Row]]
) -> Iterator[Row]:
    """Rows that make what is shown of a group what it is now."""
    if was is not None and (now is None or now.partition == was.partition):
        yield from (row for row in rows.get(was.partition, ()) if row.group == name)
        return
    if was is not None:
        yield Row(was.partition, "group_deleted", name)
    if now is not None:
        yield Row(now.partition, "group", name, words=now.text)
        yield from (Row(now.partition, "offsets", name, *bucket.packed) for bucket in now.buckets)


def _events_of(name: str, rows: Sequence[Row], before: Of, after: Of, partitions: int | None) -> Iterator[Row]:
    """Those of the events of a group's copies that are the group's, and that there are copies."""
    events = [json.loads(row.payload) for row in rows]
    of_copies = [CopyEvent(of["time"], of["partition"], of["offset"], of["kind"]) for of in events]

    def living(there: Collection[int]) -> int:
        written_ms = {at: _written_ms(after[at]) if at in after else _ENDED for at in there}
        known = partitions if partitions is not None and max(there) < partitions else None
        return copies.lives_in(name, written_ms, known)

    # A copy that was made without rules has no event of its creation.
    made = after.keys() - before.keys() - {of.partition for of in of_copies if of.kind == CREATED}
    own, doubled = copies.of_the_group(of_copies, before.keys() | made, living)
    yield from (row for number, row in enumerate(rows) if number in own)
    for each in doubled:
        yield _named(name, of_copies[each.shown_by], each)
    if made and len(after) > 1 and not doubled:
        at = max(made)
        offset = after[at].state.last_step_offset
        shown_by = CopyEvent(_written_ms(after[at]), at, max(0, offset), CREATED)
        is_doubled = Doubled(0, tuple(sorted(after)), living(after))
        # Of a group that only commits it is not known which record was its first.
        yield _named(name, shown_by, is_doubled, ordinal=0 if offset >= 0 else crc32(name.encode()))


def _named(name: str, shown_by: CopyEvent, doubled: Doubled, ordinal: int = 0) -> Row:
    """The event that names a group in several partitions."""
    event = copies.doubled_event(name, shown_by, doubled, ordinal)
    return Row(shown_by.partition, _EVENT, name, json.dumps(event_view(event)).encode(), IN_TWO_PARTITIONS)
