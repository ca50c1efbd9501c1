"""The queue's files as releases before 0.2 left them, to be read once: segments of frames, in lines of JSON.

00000000000000000000.ndjson     a segment, called after the position of its first entry
    {"format":"spool/1","batches":{SOURCE:LAST BATCH},"told":[ID,…]}
    {"first":0,"entries":2,"time":ms,"source":SOURCE,"batch":n or null,"bytes":n,"crc":n}
    ENTRY…
READER.json                     {"next":position}
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def frames(path: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """(header, entries) of each frame; a segment's head is a header without entries.

    Raises:
        ValueError: after those before it, for a frame that is not whole.
    """
    with path.open("rb") as file:
        while line := file.readline():
            header = json.loads(line)
            yield header, [json.loads(file.readline()) for _ in range(header.get("entries", 0))]
