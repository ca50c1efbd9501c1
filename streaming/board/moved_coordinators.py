"""Members that are gone after their rebalance timeout, and a coordinator that began it again meanwhile.

The log has no record of a coordinator that moves to another broker, which loads its groups and starts their timers
(`coordinator_model/rules/fencing.py`). Who looks at the leaders of the offsets topic knows it:

    the coordinator moved while the member was waited for, and since then      the event is
    the rebalance timeout passed                                               `member_fenced`, waited for since then
    less, and more than it takes to notice that a leader is another one        `member_left`: it left, or its session
                                                                               expired
"""

import json
from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

from coordinator_model.state.events import SEVERITIES
from streaming.base.batch_rows import Row
from streaming.end_offsets.store import EndOffsets

FENCED: Final = "member_fenced"
LEFT: Final = "member_left"

NOTICED_WITHIN_MS: Final = 30_000
"""So long a move may have been unnoticed."""

_OTHER_ORDINALS: Final = 1 << 32
"""Beyond those of the members whose leaving the log shows."""

_OF_LEFT: Final = ("member_id", "instance_id", "client_id", "client_host", "protocol")


def retimed(rows: Sequence[Row], ends: EndOffsets, offsets_topic: str) -> list[Row]:
    """Events of a micro-batch, with those of such members as they are to be reported."""
    return [_retimed(row, ends, offsets_topic) if row.words == FENCED else row for row in rows]


def _retimed(row: Row, ends: EndOffsets, offsets_topic: str) -> Row:
    event: dict[str, Any] = json.loads(row.payload)
    detail = event["detail"]
    moved_ms = ends.leader_moves(offsets_topic, event["partition"]).last_ms
    if moved_ms is None or not event["time"] - detail["waited_ms"] < moved_ms <= event["time"]:
        return row
    since_ms = event["time"] - moved_ms
    if since_ms + NOTICED_WITHIN_MS >= detail["timeout_ms"]:
        return row._replace(payload=json.dumps({**event, "detail": {**detail, "waited_ms": since_ms}}).encode())
    left = {
        **event,
        "id": f"{event['partition']}-{event['offset']}-{LEFT}-{_OTHER_ORDINALS + crc32(detail['member_id'].encode())}",
        "kind": LEFT,
        "severity": SEVERITIES[LEFT],
        "detail": {name: detail[name] for name in _OF_LEFT},
        "inferred": False,
    }
    return row._replace(payload=json.dumps(left).encode(), words=LEFT)
