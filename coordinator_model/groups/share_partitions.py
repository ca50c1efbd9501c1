"""Share partitions (KIP-932): what a record of ``__share_group_state`` does to one.

    snapshot             the whole state, in place of whatever there was
    update               a change to it: merged as `ShareCoordinatorShard` and `PersisterStateBatchCombiner` do
    update alone         the state, where no snapshot is there: the log was cut off, or read from its middle
    snapshot tombstone   the end of it
    update tombstone     never written; passed over

Of an offset that is written twice the higher delivery count wins, then the higher state, whichever came first: a write
that is tried again changes nothing. (`docs/coordinator-log.md`, "Share partitions".)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

from coordinator_model.records.share_state import ShareSnapshotValue, ShareUpdateValue, StateBatch
from coordinator_model.state.share_partition import DONE, NOT_INITIALIZED, NOT_KNOWN, Batch, SharePartition

_FIRST: Final = itemgetter(0)
_LAST: Final = itemgetter(1)


def replay_snapshot(held: SharePartition, value: ShareSnapshotValue) -> None:
    """Type 0: the whole state."""
    before = NOT_INITIALIZED if is_of_another_epoch(held, value) else held.highest_start_offset
    held.highest_start_offset = max(before, value.start_offset)
    held.snapshot_epoch = value.snapshot_epoch
    held.state_epoch = value.state_epoch
    held.leader_epoch = value.leader_epoch
    held.start_offset = value.start_offset
    held.delivery_complete_count = value.delivery_complete_count
    held.batches = combined((), _batches(value.state_batches), NOT_INITIALIZED)
    held.create_ms = value.create_timestamp
    held.write_ms = value.write_timestamp


def replay_update(held: SharePartition, value: ShareUpdateValue) -> None:
    """Type 1: a change. The snapshot epoch is not compared with the snapshot's, and does not replace it."""
    if value.leader_epoch != NOT_KNOWN:
        held.leader_epoch = value.leader_epoch
    if value.start_offset != NOT_INITIALIZED:
        held.start_offset = value.start_offset
        held.highest_start_offset = max(held.highest_start_offset, value.start_offset)
    held.delivery_complete_count = value.delivery_complete_count
    cut_at = held.start_offset
    if held.last_offset < 0:  # an update alone is the state, and taken as it is
        held.snapshot_epoch, cut_at = value.snapshot_epoch, NOT_INITIALIZED
    held.batches = combined(held.batches, _batches(value.state_batches), cut_at)


def first_not_done(held: SharePartition) -> int | None:
    """The start offset moved past all that is done behind it; None while it is not initialized."""
    if held.start_offset == NOT_INITIALIZED:
        return None
    at = held.start_offset
    for batch in held.batches:
        if batch.first > at or batch.state not in DONE:
            break
        at = max(at, batch.last + 1)
    return at


def newly_done(held: SharePartition, value: ShareSnapshotValue | ShareUpdateValue) -> list[Batch]:
    """What becomes done by a record that is yet to be applied: each offset once, however often it is written.

    A new state epoch begins with nothing done. What lies below a start offset of this one was counted when it was done.
    """
    if not any(each.delivery_state in DONE for each in value.state_batches):
        return []
    is_new = isinstance(value, ShareSnapshotValue) and is_of_another_epoch(held, value)
    floor, known = (NOT_INITIALIZED, []) if is_new else (held.highest_start_offset, held.batches)
    written = _batches(value.state_batches)
    is_last = len(written) == 1 and (not known or known[-1].last < written[0].first)
    if is_last and floor <= written[0].first <= written[0].last:
        return written  # as members go on
    if len(written) > 1 or written[0].first < floor:
        written = combined((), written, floor)
    return [new for batch in written if batch.state in DONE for new in _not_done_in(known, batch)]


def is_of_another_epoch(held: SharePartition, value: ShareSnapshotValue) -> bool:
    """Whether a snapshot is of another state epoch than what is held, as after a reset."""
    return held.create_ms > 0 and held.state_epoch != value.state_epoch


def combined(so_far: Sequence[Batch], new: Iterable[Batch], start_offset: int) -> list[Batch]:
    """Batches and new ones in one list, from the start offset on; all of them where that is NOT_INITIALIZED.

    `so_far` is such a list. What ends before it begins is not a batch.
    """
    found = list(so_far)
    for batch in sorted(new):  # the order makes no difference but to the time that a long list takes
        if batch.first > batch.last:
            continue
        if not found or found[-1].last < batch.first:
            found[-1:] = _joined((*found[-1:], batch))
            continue
        # Those it overlaps, and a neighbour on either side.
        begin = bisect_left(found, batch.first - 1, key=_LAST)
        end = bisect_right(found, batch.last + 1, lo=begin, key=_FIRST)
        found[begin:end] = _joined(_laid_over(found[begin:end], batch)) if begin < end else (batch,)
    if start_offset == NOT_INITIALIZED:
        return found
    kept = found[bisect_left(found, start_offset, key=_LAST) :]
    if kept and kept[0].first < start_offset:
        kept[0] = kept[0]._replace(first=start_offset)
    return kept


def _laid_over(of: Sequence[Batch], new: Batch) -> Iterable[Batch]:
    """The pieces of batches that lie apart, ascending, and of one more, which wins where it outranks them."""
    at = new.first
    for old in of:
        if old.first < new.first:
            yield Batch(old.first, min(old.last, new.first - 1), old.state, old.deliveries)
        elif at < old.first and at <= new.last:
            yield Batch(at, min(old.first - 1, new.last), new.state, new.deliveries)
        first, last = max(old.first, new.first), min(old.last, new.last)
        if first <= last:
            winner = new if (new.deliveries, new.state) > (old.deliveries, old.state) else old
            yield Batch(first, last, winner.state, winner.deliveries)
            at = last + 1
        if old.last > new.last:
            at = max(at, new.last + 1)
            yield Batch(max(old.first, new.last + 1), old.last, old.state, old.deliveries)
    if at <= new.last:
        yield Batch(at, new.last, new.state, new.deliveries)


def _not_done_in(known: Sequence[Batch], new: Batch) -> Iterable[Batch]:
    """The pieces of a batch that are not done in others, ascending, and that none of them outranks."""
    at, number = new.first, bisect_left(known, new.first, key=_LAST)
    while number < len(known) and known[number].first <= new.last:
        old, number = known[number], number + 1
        if old.state not in DONE and (old.deliveries, old.state) <= (new.deliveries, new.state):
            continue
        if at < old.first:
            yield Batch(at, old.first - 1, new.state, new.deliveries)
        at = max(at, old.last + 1)
    if at <= new.last:
        yield Batch(at, new.last, new.state, new.deliveries)


def _joined(batches: Iterable[Batch]) -> list[Batch]:
    found: list[Batch] = []
    for batch in batches:
        if found and found[-1].last + 1 == batch.first and found[-1][2:] == batch[2:]:
            found[-1] = Batch(found[-1].first, batch.last, batch.state, batch.deliveries)
        else:
            found.append(batch)
    return found


def _batches(batches: Iterable[StateBatch]) -> list[Batch]:
    return [Batch(of.first_offset, of.last_offset, of.delivery_state, of.delivery_count) for of in batches]
