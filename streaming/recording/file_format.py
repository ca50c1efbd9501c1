"""Recordings of the coordinators' logs: one header line, then one record a line, as JSON, plain or gzipped.

    {"format":"group-recording/1","kafka_version":…,"offsets_topic_partitions":50,"topics":[{"id":…,"name":…,"partitions":n}]}
    {"partition":n,"offset":n,"timestamp":ms,"key":base64,"value":base64|null}

The header may have `"live_from": {"PARTITION": offset}`: where the log ended when the recording began. Records below it
are history, of which nothing is an alarm; without it all of them are live.

Lines of the share coordinator's log have `"log":"__share_group_state"` besides. Of that the header may have
`"share_state_partitions"` (50), `"share_live_from"`, `"delivery_count_limits": {"": n, GROUP: n}`, and, in a topic that
may have offsets without a record, `"gaps": true`.

Records of one partition are in offset order, partitions in any order. Files are read and written a line at a time. A
line that is not as above ends the reading with an error that names it; whether key and value *decode* is not looked at
here.
"""

import gzip
import io
import json
import os
import re
import zlib
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypeGuard

from coordinator_model.records.topics import SHARE_STATE_TOPIC
from streaming.base.errors import UsageError

FORMAT: Final = "group-recording/1"
_parse: Final = json.JSONDecoder().decode
"""`json.loads` guesses at the encoding of every line first; a recording's is UTF-8."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_PARTITION: Final = re.compile("0|[1-9][0-9]{0,9}")
_TOPIC_ID_LENGTH: Final = 22
_NO_TOPIC_ID: Final = _TOPIC_ID_LENGTH * "A"
"""Sixteen bytes of zeros, which is how Kafka writes that there is none."""

_OFFSETS: Final = "__consumer_offsets"
_SHARE_STATE_PARTITIONS: Final = 50
"""Kafka's default, where a header does not say."""

_SHOWN_CHARACTERS: Final = 60
_LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes of the longest line: a record of tens of megabytes fits, a small file that unzips without end does not."""


_MOST_PARTITIONS: Final = 5_000_000
"""Of all topics of a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTopic:
    """A topic as it was when the recording was made.

    `id` is the 22-character text form of its topic id, None where brokers had none (before 2.8). `gaps` says that some
    of its offsets may have no record: markers of transactions, or what was compacted away.
    """

    id: str | None
    name: str
    partitions: int
    gaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """First line of a recording.

    Attributes:
        kafka_version: release of the broker, None if it was not known.
        offsets_topic_partitions: partitions of the offsets topic; a group's partition follows from it.
        topics: the topics that ids in the records stand for.
        live_from: by partition, where the log ended when the recording began: below it nothing is an alarm. Empty where
            all is live.
        share_state_partitions: partitions of the share coordinator's log.
        share_live_from: as `live_from`, of that log.
        delivery_count_limits: group → after how many deliveries a record is given up; the brokers' own stands under "".
            Empty where it is not known.
    """

    kafka_version: str | None
    offsets_topic_partitions: int
    topics: tuple[RecordedTopic, ...]
    live_from: dict[int, int] = field(default_factory=dict)
    share_state_partitions: int = _SHARE_STATE_PARTITIONS
    share_live_from: dict[int, int] = field(default_factory=dict)
    delivery_count_limits: dict[str, int] = field(default_factory=dict)

    @property
    def topic_names(self) -> dict[str, str]:
        """Topic id to topic name."""
        return {topic.id: topic.name for topic in self.topics if topic.id is not None}

    @property
    def topic_ids(self) -> dict[str, str]:
        """Topic name to topic id."""
        return {name: id_ for id_, name in self.topic_names.items()}


@dataclass(frozen=True, slots=True)
class RecordedRecord:
    """One record: place, time (ms since the epoch) and bytes; value None is a tombstone.

    `share_state` is whether it is of the share coordinator's log, not of the offsets topic.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None
    share_state: bool = False


class RecordingReader:
    """A recording opened by `open_recording`: the header, and the records once, in file order.

    Iterating gives the records of the offsets topic alone, `both_logs` those of both. Either raises UsageError, naming
    file and line, at the first line that is not a record.
    """

    def __init__(self, path: Path, stream: io.BufferedIOBase, raw: io.BufferedIOBase) -> None:
        self.path = path
        self._stream = stream
        self._raw = raw
        self._size = max(os.fstat(raw.fileno()).st_size, 1)
        self._line = 0
        self._last_offsets: dict[int, int] = {}
        self._last_share_offsets: dict[int, int] = {}
        self.header = self._read_header()

    @property
    def fraction_read(self) -> float:
        """How much of the file has been read, 0 to 1, for a progress display."""
        return min(self._raw.tell() / self._size, 1.0)

    def __iter__(self) -> Iterator[RecordedRecord]:
        return (record for record in self.both_logs() if not record.share_state)

    def both_logs(self) -> Iterator[RecordedRecord]:
        """The records of the offsets topic and of the share coordinator's log."""
        while line := self._next_line():
            yield self._record(line)

    def _read_header(self) -> Header:
        line = self._next_line()
        fields = self._object(line, "a header object")
        if fields.get("format") != FORMAT:
            self._refuse(_quoted(fields, "format"), f'"format": "{FORMAT}"')
        version = fields.get("kafka_version")
        if version is not None and not (isinstance(version, str) and _is_text(version)):
            self._refuse(_quoted(fields, "kafka_version"), '"kafka_version" as text or null')
        partitions = fields.get("offsets_topic_partitions")
        if not _is_int(partitions) or partitions < 1:
            self._refuse(
                _quoted(fields, "offsets_topic_partitions"), '"offsets_topic_partitions" as a whole number, 1 or more'
            )
        topics = fields.get("topics")
        if not isinstance(topics, list):
            self._refuse(_quoted(fields, "topics"), '"topics" as a list')
        read = tuple(self._topic(topic) for topic in topics)
        # Who owns which of them is asked of all: a number costs its writer nothing, and its reader memory.
        if (in_all := sum(topic.partitions for topic in read)) > _MOST_PARTITIONS:
            self._refuse(f"{in_all} partitions of all topics", f"at most {_MOST_PARTITIONS}, more than a cluster has")
        share_partitions = fields.get("share_state_partitions", _SHARE_STATE_PARTITIONS)
        if not _is_int(share_partitions) or share_partitions < 1:
            self._refuse(
                _quoted(fields, "share_state_partitions"), '"share_state_partitions" as a whole number, 1 or more'
            )
        limits = fields.get("delivery_count_limits", {})
        if not isinstance(limits, dict) or not all(_is_int(limit) and limit >= 1 for limit in limits.values()):
            accepted = '"delivery_count_limits" as an object of groups and whole numbers, 1 or more'
            self._refuse(_quoted(fields, "delivery_count_limits"), accepted)
        return Header(
            kafka_version=version,
            offsets_topic_partitions=partitions,
            topics=read,
            live_from=self._live_from(fields, "live_from", partitions),
            share_state_partitions=share_partitions,
            share_live_from=self._live_from(fields, "share_live_from", share_partitions),
            delivery_count_limits=limits,
        )

    def _live_from(self, fields: dict[str, Any], name: str, partitions: int) -> dict[int, int]:
        reported = fields.get(name)
        if reported is None:
            return {}
        if (
            not isinstance(reported, dict)
            or not all(_PARTITION.fullmatch(name) and int(name) < partitions for name in reported)
            or not all(_is_int(of) and of >= 0 for of in reported.values())
        ):
            self._refuse(
                _quoted(fields, name),
                f'"{name}" as an object of partitions, 0 to {partitions - 1}, and offsets, 0 or more',
            )
        return {int(partition): offset for partition, offset in reported.items()}

    def _topic(self, topic: object) -> RecordedTopic:
        if (
            not isinstance(topic, dict)
            or not isinstance(topic.get("id"), str)
            or len(topic["id"]) != _TOPIC_ID_LENGTH
            or not isinstance(topic.get("name"), str)
            or not _is_text(topic["id"] + topic["name"])
            or not _is_int(topic.get("partitions"))
            or topic["partitions"] < 0
            or not isinstance(topic.get("gaps", False), bool)
        ):
            self._refuse(
                f"the topic {_shortened(json.dumps(topic))}",
                '{"id": 22 characters of base64url, "name": text, "partitions": n}',
            )
        known = None if topic["id"] == _NO_TOPIC_ID else topic["id"]
        gaps = topic.get("gaps", False)
        return RecordedTopic(id=known, name=topic["name"], partitions=topic["partitions"], gaps=gaps)

    def _record(self, line: bytes) -> RecordedRecord:
        fields = self._object(line, "a record object")
        try:
            partition, offset, timestamp = fields["partition"], fields["offset"], fields["timestamp"]
            key, value = fields["key"], fields["value"]
        except KeyError as error:
            self._refuse(f"no {error.args[0]!r}", "partition, offset, timestamp, key and value")
        if not type(partition) is type(offset) is type(timestamp) is int:
            name = next(name for name in ("partition", "offset", "timestamp") if not _is_int(fields[name]))
            self._refuse(_quoted(fields, name), f'"{name}" as a whole number')
        share_state = "log" in fields and self._is_share_state(fields)
        partitions = self.header.share_state_partitions if share_state else self.header.offsets_topic_partitions
        if not 0 <= partition < partitions:
            self._refuse(_quoted(fields, "partition"), f'"partition" from 0 to {partitions - 1}, as the header says')
        last_offsets = self._last_share_offsets if share_state else self._last_offsets
        last = last_offsets.get(partition, -1)
        if offset <= last:
            self._refuse(f"offset {offset} after {last} in partition {partition}", "offsets in ascending order from 0")
        last_offsets[partition] = offset
        return RecordedRecord(
            partition,
            offset,
            timestamp,
            self._bytes("key", key),
            None if value is None else self._bytes("value", value),
            share_state,
        )

    def _is_share_state(self, fields: dict[str, Any]) -> bool:
        log = fields["log"]
        if log not in (SHARE_STATE_TOPIC, _OFFSETS):
            self._refuse(_quoted(fields, "log"), f'"log": "{SHARE_STATE_TOPIC}", or none')
        return bool(log == SHARE_STATE_TOPIC)

    def _bytes(self, name: str, text: object) -> bytes:
        try:
            # Anything but text fails here too, as would text beyond ASCII: base64 has neither.
            return a2b_base64(str.encode(text, "ascii"), strict_mode=True)  # type: ignore[arg-type]  # see above
        except (TypeError, Base64Error, UnicodeEncodeError):
            accepted = "base64 text" + (" or null" if name == "value" else "")
            self._refuse(_quoted({name: text}, name), f'"{name}" as {accepted}')

    def _object(self, line: bytes, expected: str) -> dict[str, Any]:
        try:
            fields = _parse(line.decode())
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            found = _shortened(line.decode("utf-8", "replace").strip()) or "nothing"
            self._refuse(found, f"{expected} as JSON")
        return fields

    def _next_line(self) -> bytes:
        self._line += 1
        try:
            line = self._stream.readline(_LONGEST_LINE + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._refuse(f"damaged gzip data ({_shortened(str(error))})", "a complete .ndjson.gz file")
        except OSError as error:
            self._refuse(f"an unreadable file ({error.strerror})", "a recording")
        if len(line) > _LONGEST_LINE:
            self._refuse("a line without end", f"lines of {_LONGEST_LINE} bytes at most")
        return line

    def _refuse(self, found: str, accepted: str) -> NoReturn:
        raise UsageError(f"{self.path}:{self._line}: found {found}, accepted: {accepted}") from None


_ABSENT: Final[dict[str, Any]] = {
    "live_from": {},
    "share_state_partitions": _SHARE_STATE_PARTITIONS,
    "share_live_from": {},
    "delivery_count_limits": {},
}
"""Fields of a header that are not written where they are this."""


class RecordingWriter:
    """A recording being made; `open_new_recording` opens it."""

    def __init__(self, stream: io.BufferedIOBase, header: Header) -> None:
        self._stream = stream
        self.records = 0
        reported = asdict(header)
        for topic in reported["topics"]:
            topic["id"] = topic["id"] or _NO_TOPIC_ID
            if not topic["gaps"]:
                del topic["gaps"]
        for name, absent in _ABSENT.items():
            if reported[name] == absent:
                del reported[name]
        self._write({"format": FORMAT, **reported})

    def write(self, record: RecordedRecord) -> None:
        """Append a record; the caller sees to offset order within a partition."""
        self._write(
            {
                **({"log": SHARE_STATE_TOPIC} if record.share_state else {}),
                "partition": record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp_ms,
                "key": _base64(record.key),
                "value": None if record.value is None else _base64(record.value),
            }
        )
        self.records += 1

    def _write(self, fields: dict[str, Any]) -> None:
        line = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        self._stream.write(line.encode("utf-8") + b"\n")


@contextmanager
def open_recording(path: Path, option: str = "FILE") -> Iterator[RecordingReader]:
    """Open a recording for reading; gzip is recognized by its first bytes.

    `option` is what named the file, for what is said if it cannot be read.

    Raises:
        UsageError: there is no such file, or its first line is no header.
    """
    try:
        raw = path.open("rb")
    except OSError as error:
        raise UsageError(f"{option}: found {str(path)!r} ({error.strerror}), accepted: a recording") from None
    with raw:
        zipped = raw.peek(len(_GZIP_MAGIC))[: len(_GZIP_MAGIC)] == _GZIP_MAGIC
        stream = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if zipped else raw
        yield RecordingReader(path, stream, raw)


class _NewFile:
    """A file that appears under its name only when it is complete; a failure leaves no half of it behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f"{path.name}.partial")

    def __enter__(self) -> Self:
        # A name of ours in a directory that others may write to: what they put there is not followed, and group names,
        # client ids and hosts are for the account alone until it says otherwise.
        self._partial.unlink(missing_ok=True)
        raw = os.fdopen(os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")
        self.stream: Any = gzip.open(raw, "wb", compresslevel=6) if self._path.suffix == ".gz" else raw
        self._raw = raw
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.stream is not self._raw:
            self.stream.close()
        self._raw.close()
        if kind is None:
            self._partial.replace(self._path)
        else:
            self._partial.unlink(missing_ok=True)


@contextmanager
def open_new_recording(path: Path, header: Header, option: str = "--out") -> Iterator[RecordingWriter]:
    """Open a recording for writing, gzipped if the name ends in `.gz`; it gets its name when it is complete.

    `option` is the one that named the file, for what is said if it cannot be written.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        with _NewFile(path) as new:
            yield RecordingWriter(new.stream, header)
    except OSError as error:
        if error.filename is None:
            raise
        raise UsageError(
            f"{option}: found {str(path)!r} ({error.strerror}), accepted: a file that can be written"
        ) from None


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: str) -> bool:
    """Whether it can be written: JSON can name half a surrogate pair, which no encoding has."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _quoted(fields: dict[str, Any], name: str) -> str:
    return f'"{name}": {_shortened(json.dumps(fields[name]))}' if name in fields else f'no "{name}"'


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")
