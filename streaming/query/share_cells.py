"""Records of the share coordinator's log between Spark's tasks, many in one cell, beside those of the first log.

A cell of the second log begins with `MARK`, which no stream of Arrow does, so the stateful step tells them apart. What
is said beside the records is JSON in the metadata.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from streaming.query.row_codec import LOG_LAYOUT, ROWS_A_CELL, dumped, loaded

SHARE_LOG: Final = 1 << 20
"""Where a partition stands for one of the share coordinator's log, this is added to its number: more than there are of
the first log."""

MARK: Final = b"share-1\n"

_SAID: Final = b"said"


class Pruned(NamedTuple):
    """Where the log began when it was found that what was to be read is deleted, and where it ended then."""

    first: int
    end: int


class Facts(NamedTuple):
    """What brokers say that bears on what is read; empty where they do not say.

    Attributes:
        limits: group → after how many deliveries a record is given up; under "" the brokers' own.
        names: topic id → name.
    """

    limits: Mapping[str, int] = {}
    names: Mapping[str, str] = {}


class CellNotes(NamedTuple):
    """What a cell says beside records, by partition of the second log as JSON has it.

    Attributes:
        notes: `log_continuity.Note`s.
        pruned: `Pruned`s.
        ends: next offset after this micro-batch.
        limits: as `Facts`.
        looked: whether offsets hold a record that were archived below the limit (`share_looks.by_id`).
    """

    notes: Mapping[str, Any]
    pruned: Mapping[str, Any]
    ends: Mapping[str, int]
    limits: Mapping[str, int]
    looked: Mapping[str, Mapping[str, bool]]


NOTHING_SAID: Final = CellNotes({}, {}, {}, {}, {})


def share_cells(rows: pa.Table, keys: Sequence[int], said: CellNotes) -> Iterator[tuple[int, bytes]]:
    """Records of `LOG_LAYOUT` as (key of a bundle, cell): of each bundle of which something is planned."""
    bundles = (rows["partition"].to_numpy() + SHARE_LOG) % len(keys)
    for bundle, key in enumerate(keys):
        ends = {name: end for name, end in said.ends.items() if (int(name) + SHARE_LOG) % len(keys) == bundle}
        if not ends:
            continue
        own = rows.filter(pa.array(bundles == bundle))
        mine = said._replace(
            notes={name: note for name, note in said.notes.items() if name in ends},
            pruned={name: of for name, of in said.pruned.items() if name in ends},
            ends=ends,
        )
        for at in range(0, own.num_rows or 1, ROWS_A_CELL):
            yield key, _cell(own.slice(at, ROWS_A_CELL), mine if not at else NOTHING_SAID)


def _cell(rows: pa.Table, said: CellNotes) -> bytes:
    with_said = rows.select(LOG_LAYOUT.names).replace_schema_metadata({_SAID: json.dumps(said._asdict())})
    return MARK + dumped(with_said, compressed=True)


def share_rows(cell: bytes) -> tuple[pa.Table, CellNotes]:
    """Records of a cell, and what is said."""
    table = loaded(cell[len(MARK) :])
    return table, CellNotes(**json.loads((table.schema.metadata or {})[_SAID]))
