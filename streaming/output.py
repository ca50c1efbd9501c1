"""Rows on their way from the stateful step to the sinks: many in one.

Spark turns every row from Arrow's form into its own and back into Arrow's, and has three megabytes for a thousand
groups that it never looks into. So rows travel as it does not see them: a stream of Arrow record batches, compressed.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from streaming.packing import dumped
from streaming.schemas import OutputRow

_LAYOUT: Final = pa.schema(
    [("partition", pa.int32()), ("kind", pa.string()), ("group", pa.string()), ("payload", pa.large_string())]
)
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="lz4")


def packed_output(rows: Sequence[OutputRow]) -> bytes:
    """Rows as what `unpacked_output` reads."""
    columns = [pa.array(column, of.type) for column, of in zip(zip(*rows, strict=True), _LAYOUT, strict=True)]
    return dumped(pa.Table.from_arrays(columns, schema=_LAYOUT), _COMPRESSED)


def unpacked_output(packs: Iterable[bytes]) -> list[OutputRow]:
    """Rows of some packs, in their order."""
    rows: list[OutputRow] = []
    for pack in packs:
        columns = pa.ipc.open_stream(pack).read_all().columns
        rows += map(OutputRow._make, zip(*(column.to_pylist() for column in columns), strict=True))
    return rows
