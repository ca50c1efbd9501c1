"""Events of the topic in envelopes of CloudEvents 1.0, in the two modes of its Kafka protocol binding.

    mode         value                           headers
    binary       the event, as without envelope  ce_specversion, ce_id, …; content-type application/json
    structured   the envelope, the event in data content-type application/cloudevents+json

The attributes, with `cluster` and fields of the event:

    specversion      1.0
    id               id
    source           /group-monitor/CLUSTER, percent-encoded; a repeat has the same source and id
    type             group-monitor.KIND
    time             time, RFC 3339 in UTC
    subject          group, but for characters that an attribute may not have; not where nothing is left
    datacontenttype  application/json
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal
from urllib.parse import quote

EventsFormat = Literal["json", "cloudevents_binary", "cloudevents_structured"]
Headers = tuple[tuple[str, bytes], ...]

_JSON: Final = "application/json"
_ENVELOPE: Final = b"application/cloudevents+json; charset=UTF-8"
_REFUSED: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
"""What a String may not have (CloudEvents 1.0, "Type System"): control characters, surrogates, noncharacters."""


def enveloped(cluster: str, event: Mapping[str, Any], value: bytes, how: EventsFormat) -> tuple[bytes, Headers]:
    """Value and headers of an event whose value without envelope is given."""
    if how == "json":
        return value, ()
    attributes = _attributes(cluster, event)
    if how == "cloudevents_structured":
        envelope = json.dumps(attributes, separators=(",", ":")).encode("ascii")
        return envelope[:-1] + b',"data":' + value + b"}", (("content-type", _ENVELOPE),)
    named = {"content-type": attributes.pop("datacontenttype"), **{f"ce_{name}": of for name, of in attributes.items()}}
    return value, tuple((name, of.encode()) for name, of in named.items())


def opened(held: Any) -> Any:  # noqa: ANN401 - JSON
    """The event in a decoded value: in its envelope, or without."""
    return held["data"] if isinstance(held, dict) and "specversion" in held and "data" in held else held


def _attributes(cluster: str, event: Mapping[str, Any]) -> dict[str, str]:
    time = datetime.fromtimestamp(event["time"] / 1_000, UTC).isoformat(timespec="milliseconds")
    subject = _REFUSED.sub("\ufffd", event["group"] or "")
    return {
        "specversion": "1.0",
        "id": str(event["id"]),
        "source": f"/group-monitor/{quote(cluster, safe='')}",
        "type": f"group-monitor.{event['kind']}",
        "time": time.replace("+00:00", "Z"),
        **({"subject": subject} if subject else {}),
        "datacontenttype": _JSON,
    }
