"""Offsets that went back without a topic id, and what brokers say of the topic: is it still the one it was?

Brokers before 4.1 write no topic id with a commit, and no broker does in a transaction. The log tells most topics that
were made again from offsets that go back (`coordinator_model/rules/offset_commits.py`); what is left it marks
(`may_be_recreated`), and here it is compared with what the sampler heard, by the first row that holds:

    brokers say of the topic                                                      the event is
    another id than before, noticed after the former commit                       `topic_recreated`, inferred
    the same id, or none, and an end that is at or beyond the former offset       `offset_rewound`, and no doubt
    anything else, or nothing                                                     `offset_rewound`, as it was marked

Ids are known of brokers since 2.8; a log that is as long as it was is the former one on any. An end counts that was
sampled less than a consumer's first commit to a new topic takes before the event.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final
from zlib import crc32

from coordinator_model.state.events import SEVERITIES
from streaming.base.batch_rows import Row
from streaming.end_offsets.store import EndOffsets, Recreated

REWOUND: Final = "offset_rewound"
RECREATED: Final = "topic_recreated"

FIRST_COMMIT_MS: Final = 5_000
"""auto.commit.interval.ms."""

_OF_HANDOVERS: Final = ("after_handover", "former_owner", "present_owner", "handover_time", "handed_over")

_NOT_SHOWN: Final = dict.fromkeys(("partition", "to", "from"))

Detail = dict[str, Any]


def told_apart(rows: Sequence[Row], ends: EndOffsets) -> list[Row]:
    """Events of a micro-batch, with those of such offsets as they are to be reported."""
    return [each for row in rows for each in (_compared(row, ends) if row.words == REWOUND else (row,))]


def _compared(row: Row, ends: EndOffsets) -> Iterator[Row]:
    event: dict[str, Any] = json.loads(row.payload)
    detail = event["detail"]
    unclear = detail.get("may_be_recreated", [])
    new = {of: again for of in unclear if (again := _recreated(of, event, ends)) is not None}
    same = {of for of in unclear if of not in new and _is_as_long(of, event, ends)}
    if not new and not same:
        yield row
        return
    rest = _without(detail, new.keys(), same)
    if rest is not None:
        yield row._replace(payload=json.dumps({**event, "detail": rest}).encode())
    for topic, again in new.items():
        found = {"topic": topic, **_NOT_SHOWN, **_furthest(_shown(detail, {topic}))}
        of_topic = {
            **event,
            "id": f"{event['partition']}-{event['offset']}-{RECREATED}-{crc32(topic.encode())}",
            "kind": RECREATED,
            "severity": SEVERITIES[RECREATED],
            "detail": {**found, "former_topic_id": again.former_id, "topic_id": again.id},
            "inferred": True,
        }
        yield row._replace(payload=json.dumps(of_topic).encode(), words=RECREATED)


def _recreated(topic: str, event: Mapping[str, Any], ends: EndOffsets) -> Recreated | None:
    """What the brokers said of another topic of that name, if the former commit is of the former one."""
    again = ends.recreated.get(topic)
    if again is None or event["time"] < again.seen_ms - FIRST_COMMIT_MS:
        return None
    return again if event["detail"]["former_commit"] < again.noticed_ms else None


def _is_as_long(topic: str, event: Mapping[str, Any], ends: EndOffsets) -> bool:
    """Whether every partition that went back has all that it had."""
    shown = _shown(event["detail"], {topic})
    if len(shown) < len(event["detail"]["partitions"].get(topic, ())):
        return False
    with ends.lock:
        for at, of in shown.items():
            known = ends.partition(topic, int(at.rpartition("/")[2]))
            if known is None or known.high_watermark is None or known.high_watermark < of["from"]:
                return False
            if known.sampled_ms < event["time"] - FIRST_COMMIT_MS:
                return False
    return True


def _without(detail: Detail, gone: AbstractSet[str], same: AbstractSet[str]) -> Detail | None:
    """The rewind without topics that are others now, and without doubt of those that are the same; None for nothing."""
    rest = {**detail, "partitions": {of: parts for of, parts in detail["partitions"].items() if of not in gone}}
    if not rest["partitions"]:
        return None
    unclear = [of for of in detail["may_be_recreated"] if of not in gone and of not in same]
    if unclear:
        rest["may_be_recreated"] = unclear
    else:
        del rest["may_be_recreated"], rest["former_commit"]
    if not gone:
        return rest
    rest["offsets"] = _shown(detail, detail["partitions"].keys() - gone)
    handed = {of: parts for of, parts in detail.get("handed_over", {}).items() if of not in gone}
    if handed and detail["topic"] not in gone:
        return {**rest, "handed_over": handed}
    rest = {name: of for name, of in rest.items() if name not in _OF_HANDOVERS}
    return rest | _furthest(rest["offsets"])


def _shown(detail: Detail, topics: AbstractSet[str]) -> dict[str, dict[str, int]]:
    """`topic/partition` → from and to, of offsets of these topics that the event names."""
    return {at: of for at, of in detail["offsets"].items() if at.rpartition("/")[0] in topics}


def _furthest(offsets: Mapping[str, Mapping[str, int]]) -> Detail:
    """What went back furthest, as an event's detail says it; nothing where none is shown."""
    if not offsets:
        return {}
    at = max(offsets, key=lambda name: offsets[name]["from"] - offsets[name]["to"])
    topic, _, partition = at.rpartition("/")
    return {"topic": topic, "partition": int(partition), **offsets[at]}
