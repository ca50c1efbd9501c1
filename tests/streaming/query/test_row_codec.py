"""Packing: what source tasks read, in a few rows for the stateful tasks."""

from streaming.query.row_codec import ROWS_A_CELL, LogRow, dumped, packed, partitions_cut, unpacked, unpacked_table
from tests.streaming.shard import log_rows

KEYS = (40, 41, 42)


def test_partitions_of_a_bundle_share_a_row() -> None:
    """Partitions go round the bundles; a bundle of which nothing was read has no row."""
    rows = log_rows([(partition, 7, 1_000, b"k", b"v") for partition in (0, 1, 3, 4)])

    batch = packed([rows], KEYS)

    assert [40, 41] == batch["bundle"].to_pylist()
    assert [[0, 3], [1, 4]] == [[row.partition for row in unpacked([blob])] for blob in batch["rows"].to_pylist()]


def test_records_come_out_as_they_went_in() -> None:
    """Tombstones, keyless records and empty values are three things, and stay so."""
    cells = [(2, 5, 1_000, b"k", None), (2, 6, 1_001, None, b"v"), (2, 7, 1_002, b"", b"")]

    (blob,) = packed([log_rows(cells)], KEYS)["rows"].to_pylist()

    assert [LogRow(*cell, 1) for cell in cells] == unpacked([blob])


def test_many_rows_of_a_bundle_leave_in_several_cells() -> None:
    """No cell is larger for a longer log, nor as large as its rows; no row is lost, and their order is kept."""
    cells = [(2, offset, 1_000 + offset, f"k{offset}".encode(), b"v" * 100) for offset in range(ROWS_A_CELL * 2 + 1)]

    batch = packed([log_rows(cells)], KEYS)

    blobs = batch["rows"].to_pylist()
    assert [42] * 3 == batch["bundle"].to_pylist()
    assert [ROWS_A_CELL, ROWS_A_CELL, 1] == [len(unpacked([blob])) for blob in blobs]
    assert len(blobs[0]) < len(dumped(log_rows(cells[:ROWS_A_CELL]))) / 2
    assert [LogRow(*cell, 1) for cell in cells] == unpacked(blobs)


def test_a_partition_read_by_two_tasks_is_put_in_order() -> None:
    """The two readers of a partition are different tasks: its records are merged by offset."""
    of_one = log_rows([(2, 9, 1_009, b"k", None), (5, 1, 1_001, b"k", None)])
    of_other = log_rows([(2, 8, 1_008, b"k", None)])

    blobs = [blob for rows in (of_one, of_other) for blob in packed([rows], KEYS)["rows"].to_pylist()]

    assert [(2, 8), (2, 9), (5, 1)] == [(row.partition, row.offset) for row in unpacked(blobs)]


def test_rows_say_of_which_partitions_there_is_more() -> None:
    """A partition that is cut, and brings nothing, is not named: there is nothing of it to be cut off."""
    rows = log_rows([(partition, 7, 1_000, b"k", b"v") for partition in (0, 1, 3, 4)])

    blobs = packed([rows], KEYS, cut=[3, 4, 5])["rows"].to_pylist()

    assert {3, 4} == partitions_cut(unpacked_table(blobs))
