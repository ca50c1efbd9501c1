"""`decode`: records as text or JSON, from a recording or from a key and a value in hexadecimal."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coordinator_model.records.classic_group import GroupMetadataValue
from coordinator_model.records.consumer_group import ConsumerGroupMemberMetadataValue
from coordinator_model.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
)
from coordinator_model.records.serde import DecodedRecord, Record, UndecodableRecord, UnknownRecord, decode_record
from coordinator_model.records.share_state_types import (
    DecodedShareState,
    ShareStateRecord,
    decode_share_state,
)
from coordinator_model.records.topics import SHARE_STATE_TOPIC
from coordinator_model.records.upstream_json import record_json, struct_json
from streaming.base.errors import UsageError
from streaming.base.times import time_text
from streaming.cli.render import output
from streaming.recording.file_format import RecordedRecord, open_recording

_NO_VALUE = ("", "-", "null")
_CONSUMER = "consumer"


def decode(
    file: Annotated[str, typer.Argument(metavar="FILE|KEY_HEX", help="A recording, or a record's key.")],
    value: Annotated[
        str | None, typer.Argument(metavar="[VALUE_HEX]", help="The record's value; null or - for a tombstone.")
    ] = None,
    share_state: Annotated[
        bool,
        typer.Option(
            "--share-state", help=f"Key and value are of {SHARE_STATE_TOPIC}: its types are numbered from 0, too."
        ),
    ] = False,
    json: output.Json = False,
) -> None:
    """Decode records of the group or share coordinator: a whole recording, or one key and value."""
    if value is not None:
        key, content = _bytes("KEY_HEX", file), None if value in _NO_VALUE else _bytes("VALUE_HEX", value)
        decoded = _decoded(key, content, share_state=share_state)
        if isinstance(decoded, UndecodableRecord):
            raise UsageError(
                f"KEY_HEX VALUE_HEX: found a record that does not decode ({decoded.reason}), accepted: key and value "
                f"of a {SHARE_STATE_TOPIC if share_state else '__consumer_offsets'} record"
            )
        output.print_line(output.json_text(_json(decoded, key, content)) if json else _text(decoded, key, content))
        return
    if not Path(file).exists() and _is_hex(file):
        raise UsageError("VALUE_HEX: found nothing, accepted: the value in hexadecimal, or null for a tombstone")
    with open_recording(Path(file)) as recording, output.progress(f"decoding {file}") as advance:
        for count, record in enumerate(recording.both_logs()):
            if count % 1000 == 0:
                advance(recording.fraction_read)
            output.print_line(_recorded_json(record) if json else _recorded_text(record))


def _recorded_json(record: RecordedRecord) -> str:
    log = {"log": SHARE_STATE_TOPIC} if record.share_state else {}
    place = {**log, "partition": record.partition, "offset": record.offset, "timestamp": record.timestamp_ms}
    decoded = _decoded(record.key, record.value, share_state=record.share_state)
    return output.json_text({**place, **_json(decoded, record.key, record.value)})


def _recorded_text(record: RecordedRecord) -> str:
    decoded = _decoded(record.key, record.value, share_state=record.share_state)
    log = f"{SHARE_STATE_TOPIC} " if record.share_state else ""
    place = f"{log}{record.partition}/{record.offset} {time_text(record.timestamp_ms)}"
    return f"{place} {_text(decoded, record.key, record.value)}"


def _decoded(key: bytes, value: bytes | None, *, share_state: bool) -> DecodedRecord | DecodedShareState:
    return decode_share_state(key, value) if share_state else decode_record(key, value)


def _json(decoded: DecodedRecord | DecodedShareState, key: bytes, value: bytes | None) -> dict[str, Any]:
    """A record as Kafka's own converters show it; what they have no form for comes with its bytes."""
    form = record_json(decoded)
    if not isinstance(decoded, Record | ShareStateRecord):
        form["hex"] = {"key": key.hex(), "value": None if value is None else value.hex()}
    return form


def _text(decoded: DecodedRecord | DecodedShareState, key: bytes, value: bytes | None) -> str:
    raw = f"key={key.hex()} value={'null' if value is None else value.hex()}"
    match decoded:
        case Record() | ShareStateRecord():
            form = record_json(decoded)
            head = f"{decoded.type.name} {_fields(form['key']['data'])}"
            if decoded.value is None:
                return f"{head} | tombstone"
            data = form["value"]["data"]
            _embed(decoded.value, data)
            return f"{head} | v{decoded.value_version} {_fields(data)}"
        case UnknownRecord():
            group = "" if decoded.group_name is None else f" group={_field(decoded.group_name)}"
            return f"UNKNOWN type={decoded.record_type}{group} {raw}"
        case UndecodableRecord():
            kind = "" if decoded.record_type is None else f" type={decoded.record_type}"
            return f"UNDECODABLE{kind} ({decoded.reason}) {raw}"


def _embed(value: object, data: dict[str, Any]) -> None:
    """Put what consumers embedded in the place of its base64, where it can be read."""
    if isinstance(value, GroupMetadataValue) and value.protocol_type == _CONSUMER:
        for member, shown in zip(value.members, data["members"], strict=True):
            shown["subscription"] = _embedded(decode_subscription(member.subscription)) or shown["subscription"]
            shown["assignment"] = _embedded(decode_assignment(member.assignment)) or shown["assignment"]
    if isinstance(value, ConsumerGroupMemberMetadataValue) and value.classic_member_metadata is not None:
        protocols = value.classic_member_metadata.supported_protocols
        for protocol, shown in zip(protocols, data["classicMemberMetadata"]["supportedProtocols"], strict=True):
            shown["metadata"] = _embedded(decode_subscription(protocol.metadata)) or shown["metadata"]


def _embedded(struct: ConsumerProtocolSubscription | ConsumerProtocolAssignment | None) -> dict[str, Any] | None:
    """A struct of the consumer protocol in the form of the record around it; None if there is none."""
    if struct is None:
        return None
    return {"version": struct.version, **struct_json(struct, min(struct.version, struct.SCHEMA.highest))}


def _fields(data: dict[str, Any]) -> str:
    return " ".join(f"{name}={_field(value)}" for name, value in data.items())


def _field(value: object) -> str:
    if isinstance(value, str) and value and value.isprintable() and not set(value) & set(' "='):
        return value
    return output.json_text(value)


def _is_hex(text: str) -> bool:
    return len(text) % 2 == 0 and bool(text) and not set(text.lower()) - set("0123456789abcdef")


def _bytes(name: str, text: str) -> bytes:
    if not _is_hex(text):
        found = text if len(text) <= 40 else f"{text[:39]}…"  # noqa: PLR2004 - what fits a line beside the rest
        raise UsageError(f"{name}: found {found!r}, accepted: an even number of hexadecimal digits")
    return bytes.fromhex(text)
