"""Members that send what was logged: of assignors and protocol types that no client library at hand has as Java has it.

librdkafka has `cooperative-sticky`, but its leader puts user data into assignments once members have any, for which a
coordinator refuses the group; Java's does not. So Java's members are here, too, and cooperative; those that the log
shows to be librdkafka's are run by it.

The classic protocol request by request (JoinGroup 5, SyncGroup 3, Heartbeat 3, LeaveGroup 3: the last versions before
flexible ones), on a thread a member, to the one broker of a rehearsal. The leader gives each member its logged
assignment, user data included, while the members are those that were logged, and after that keeps what each has and
spreads the rest: what a custom assignor would do is not known here.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Self

from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE
from coordinator_model.groups.embedded_subscription import COOPERATIVE_STICKY
from coordinator_model.records import consumer_protocol
from coordinator_model.records.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from streaming.base import kafka_frames
from streaming.rehearsal.shape import MemberShape, Shape

_JOIN: Final = (11, 5)
_HEARTBEAT: Final = (12, 3)
_LEAVE: Final = (13, 3)
_SYNC: Final = (14, 3)
_CONSUMER_HEARTBEAT: Final = (68, 0)

_ILLEGAL_GENERATION: Final = 22
_UNKNOWN_MEMBER_ID: Final = 25
_REBALANCE_IN_PROGRESS: Final = 27
_MEMBER_ID_REQUIRED: Final = 79
_COORDINATOR_BUSY: Final = (14, 15, 16)
_AGAIN: Final = (_ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID, _REBALANCE_IN_PROGRESS, _MEMBER_ID_REQUIRED)

_STOP_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 10.0

_UUID_LENGTH: Final = 37
"""A coordinator makes member ids of the instance id, or the client id, a hyphen and a UUID."""

Held = dict[str, tuple[int, ...]]


class Logged:
    """What a leader gives out: the logged assignments, and what it has given since.

    Args:
        shape: the group as it was logged.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._of = {member.name: member for member in shape.members}
        self._by_prefix = {member.instance_id or member.name: member.name for member in shape.members}
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        """Member id → name."""
        self._given: dict[str, Held] = {}
        """Name → what it was given last."""

    def know(self, member_id: str, name: str) -> None:
        """Remember who joined as whom. A dynamic member that is started again begins with nothing."""
        with self._lock:
            self._know(member_id, name)

    def _know(self, member_id: str, name: str) -> None:
        if member_id not in self._names and name in self._names.values() and not self._of[name].instance_id:
            self._given[name] = {}
        self._names[member_id] = name

    def divide(self, member_ids: Iterable[str]) -> dict[str, bytes]:
        """Member id → assignment."""
        with self._lock:
            member_ids = list(member_ids)
            for member_id in member_ids:
                # The leader may have its answer before another member has read its own.
                named = self._by_prefix.get(member_id[:-_UUID_LENGTH])
                if member_id not in self._names and named is not None:
                    self._know(member_id, named)
            present = {member_id: self._names.get(member_id, member_id) for member_id in member_ids}
            whole = set(present.values()) == self._of.keys()
            if self._shape.protocol_type != CONSUMER_PROTOCOL_TYPE or (whole and self._undecodable()):
                return {
                    id_: (self._of[name].assignment or b"") if name in self._of else b""
                    for id_, name in present.items()
                }
            if whole and not self._given:
                shares = {name: self._logged(name) for name in present.values()}
            else:
                shares = {name: dict(self._given.get(name, {})) for name in present.values()}
            missing = self._free(shares)
            if self._shape.assignor == COOPERATIVE_STICKY:
                # What is taken away has no owner in this round: it is given out in the one that follows.
                shares = balanced(shares, sum(self._shape.topics.values()))
            for topic, partition in missing:
                name = min(shares, key=lambda of: (sum(map(len, shares[of].values())), of))
                shares[name][topic] = (*shares[name].get(topic, ()), partition)
            self._given = shares
            return {member_id: self._encoded(name, shares[name]) for member_id, name in present.items()}

    def _undecodable(self) -> bool:
        blobs = [member.assignment for member in self._shape.members]
        return any(blob and consumer_protocol.decode_assignment(blob) is None for blob in blobs)

    def _logged(self, name: str) -> Held:
        blob = self._of[name].assignment
        found = consumer_protocol.decode_assignment(blob) if blob else None
        return {} if found is None else {part.topic: part.partitions for part in found.assigned_partitions}

    def _free(self, shares: Mapping[str, Held]) -> list[tuple[str, int]]:
        held = {(topic, number) for parts in shares.values() for topic, numbers in parts.items() for number in numbers}
        every = [(topic, number) for topic, count in self._shape.topics.items() for number in range(count)]
        return [place for place in every if place not in held]

    def _encoded(self, name: str, held: Held) -> bytes:
        blob = self._of[name].assignment if name in self._of else None
        found = consumer_protocol.decode_assignment(blob) if blob else None
        parts = tuple(TopicPartition(topic=topic, partitions=numbers) for topic, numbers in held.items() if numbers)
        return consumer_protocol.encode_assignment(
            replace(found or ConsumerProtocolAssignment(), assigned_partitions=parts)
        )


def balanced(shares: Mapping[str, Held], total: int) -> dict[str, Held]:
    """What members keep, so that each of them can have as many partitions as another, give or take one."""
    least, more = divmod(total, len(shares))
    kept: dict[str, Held] = {}
    by_load = sorted(shares, key=lambda name: -sum(map(len, shares[name].values())))
    for number, name in enumerate(by_load):
        places = [(topic, partition) for topic, numbers in shares[name].items() for partition in numbers]
        kept[name] = {}
        for topic, partition in places[: least + (number < more)]:
            kept[name][topic] = (*kept[name].get(topic, ()), partition)
    return kept


class WireMember:
    """One such member, on a thread of its own from the moment it is made.

    Attributes:
        name: its client id.
        refusal: what the coordinator refused it with, or None.
        failure: None; a connection that is lost is made again.
    """

    def __init__(
        self, bootstrap_servers: str, shape: Shape, member: MemberShape, logged: Logged, heartbeat_seconds: float
    ) -> None:
        self.name = member.name
        self._heartbeat_seconds = heartbeat_seconds
        self.refusal: str | None = None
        self.failure: str | None = None
        self._shape, self._member, self._logged = shape, member, logged
        self._owned: Held = {}
        """What it claims when it joins, of a cooperative assignor."""
        self._servers = bootstrap_servers
        self._member_id = ""
        self._generation = -1
        self._stopping = threading.Event()
        self._says_goodbye = True
        self._connection: _Connection | None = None
        self._thread = threading.Thread(target=self._run, name=f"member-{member.name}", daemon=True)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let it begin to close; `stop` waits for it."""
        self._stopping.set()

    def stop(self) -> None:
        """Close as an application that is shut down: a dynamic member leaves, a static one does not."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            # It waits for others to join; leaving needs a connection of its own.
            self._leave()
            self._cut()
            self._thread.join()

    def kill(self) -> None:
        """End without a word to the group."""
        self._says_goodbye = False
        self._stopping.set()
        self._cut()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set() and self.refusal is None:
            # A cut connection is how it is killed; a broker that goes ends the rehearsal elsewhere.
            with suppress(OSError), _Connection(self._servers, self.name, self._patience()) as connection:
                self._connection = connection
                while not self._stopping.is_set() and self.refusal is None:
                    if self._join(connection):
                        self._stay(connection)
            self._stopping.wait(0.1)
        if self._says_goodbye:
            self._leave()

    def _patience(self) -> float:
        return self._member.rebalance_timeout_ms / 1000 + _ANSWER_SECONDS

    def _join(self, connection: _Connection) -> bool:
        protocols = _array([_string(self._shape.assignor or "") + _bytes(self._subscription())])
        body = (
            _string(self._shape.group)
            + struct.pack(">ii", self._member.session_timeout_ms, self._member.rebalance_timeout_ms)
            + _string(self._member_id)
            + _string(self._member.instance_id)
            + _string(self._shape.protocol_type)
            + protocols
        )
        answer = connection.ask(_JOIN, body)
        answer.int32()
        error = answer.int16()
        generation = answer.int32()
        answer.string()
        leader, member_id = answer.string(), answer.string()
        if error == _MEMBER_ID_REQUIRED:
            self._member_id = member_id or ""
        elif error == _UNKNOWN_MEMBER_ID:
            self._member_id, self._owned = "", {}
        if error:
            self._judge("JoinGroup", error)
            return False
        self._member_id, self._generation = member_id or "", generation
        self._logged.know(self._member_id, self.name)
        members = [_member_of(answer) for _ in range(answer.int32())]
        given = self._logged.divide(members) if leader == self._member_id else {}
        return self._sync(connection, given)

    def _sync(self, connection: _Connection, given: Mapping[str, bytes]) -> bool:
        assignments = _array([_string(member_id) + _bytes(blob) for member_id, blob in given.items()])
        answer = connection.ask(_SYNC, self._named() + assignments)
        answer.int32()
        error = answer.int16()
        if error:
            self._judge("SyncGroup", error)
            return False
        return not self._has_lost(answer.blob())

    def _subscription(self) -> bytes:
        return _to_join_with(self._shape, self._member, self._owned, self._generation)

    def _has_lost(self, blob: bytes) -> bool:
        """Take what is assigned; a cooperative member that has to let go of something joins again at once."""
        if self._shape.assignor != COOPERATIVE_STICKY:
            return False
        found = consumer_protocol.decode_assignment(blob)
        was = _places(self._owned)
        parts = () if found is None else found.assigned_partitions
        self._owned = {part.topic: part.partitions for part in parts}
        return bool(was - _places(self._owned))

    def _stay(self, connection: _Connection) -> None:
        while not self._stopping.wait(self._heartbeat_seconds):
            answer = connection.ask(_HEARTBEAT, self._named())
            answer.int32()
            error = answer.int16()
            if error:
                self._judge("Heartbeat", error)
                if error == _UNKNOWN_MEMBER_ID:
                    self._member_id, self._owned = "", {}
                return

    def _judge(self, request: str, error: int) -> None:
        if error in _COORDINATOR_BUSY:
            self._stopping.wait(0.1)
        elif error not in _AGAIN:
            self.refusal = f"{request}: error {error} of the coordinator"

    def _leave(self) -> None:
        if not self._member_id or self._member.instance_id is not None:
            return
        body = _string(self._shape.group) + _array([_string(self._member_id) + _string(None)])
        with suppress(OSError), _Connection(self._servers, self.name, _ANSWER_SECONDS) as connection:
            connection.ask(_LEAVE, body)
        self._member_id = ""

    def _cut(self) -> None:
        if self._connection is not None:
            self._connection.cut()

    def _named(self) -> bytes:
        """Group, generation, member, instance: what three requests begin with."""
        return (
            _string(self._shape.group)
            + struct.pack(">i", self._generation)
            + _string(self._member_id)
            + _string(self._member.instance_id)
        )


def asked_why(bootstrap_servers: str, shape: Shape, member: MemberShape) -> str | None:
    """Why the coordinator refuses a member of the consumer protocol, in its own words; None if it does not.

    The same request as the member's own; of a client's error only the code is left.
    """
    body = (
        _compact(shape.group)
        + _compact("")
        + struct.pack(">i", 0)
        + _compact(member.instance_id)
        + _compact(None)
        + struct.pack(">i", member.rebalance_timeout_ms)
        + _varint(len(member.topics) + 1)
        + b"".join(map(_compact, member.topics))
        + _compact(None)
        + _varint(1)
        + b"\x00"
    )
    with _Connection(bootstrap_servers, member.name, _ANSWER_SECONDS) as connection:
        answer = connection.ask(_CONSUMER_HEARTBEAT, body, flexible=True)
    answer.int32()
    error = answer.int16()
    return None if not error else answer.compact() or f"error {error}"


def _to_join_with(shape: Shape, member: MemberShape, owned: Held, generation: int) -> bytes:
    """The logged subscription with what its member owns here, not what it owned there."""
    blob = member.subscription
    if shape.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return blob or b""
    found = None if blob is None else consumer_protocol.decode_subscription(blob)
    if blob is not None and found is None:
        return blob
    found = found or consumer_protocol.ConsumerProtocolSubscription(topics=member.topics)
    parts = tuple(TopicPartition(topic=topic, partitions=numbers) for topic, numbers in owned.items())
    if shape.assignor == COOPERATIVE_STICKY:
        found = replace(found, user_data=None)
    return consumer_protocol.encode_subscription(
        replace(found, owned_partitions=parts, generation_id=generation if owned else -1)
    )


def _places(held: Held) -> set[tuple[str, int]]:
    return {(topic, number) for topic, numbers in held.items() for number in numbers}


def _member_of(answer: _Answer) -> str:
    member_id = answer.string() or ""
    answer.string()
    answer.blob()
    return member_id


class _Answer:
    """A response, read from its beginning."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position

    def int16(self) -> int:
        return self._number(">h", 2)

    def int32(self) -> int:
        return self._number(">i", 4)

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode()

    def blob(self) -> bytes:
        return self._take(max(self.int32(), 0))

    def compact(self) -> str | None:
        length = shift = 0
        while True:
            byte = self._take(1)[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 - the last byte of a number has no highest bit
                break
        return self._take(length - 1).decode() if length else None

    def _number(self, layout: str, size: int) -> int:
        (number,) = struct.unpack(layout, self._take(size))
        return int(number)

    def _take(self, count: int) -> bytes:
        part = self._data[self._position : self._position + count]
        if len(part) < count:
            raise ConnectionResetError
        self._position += count
        return part


class _Connection:
    """Requests to one broker, one after another; use as a context manager. Raises OSError."""

    def __init__(self, server: str, client_id: str, patience_seconds: float) -> None:
        host, _, port = server.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS)
        self._socket.settimeout(patience_seconds)
        self._client_id = client_id

    def ask(self, api: tuple[int, int], body: bytes, *, flexible: bool = False) -> _Answer:
        head = struct.pack(">hhi", *api, 1) + _string(self._client_id) + (b"\x00" if flexible else b"")
        # Behind the correlation id, and the tags of a flexible header.
        return _Answer(kafka_frames.ask(self._socket, head + body), 5 if flexible else 4)

    def cut(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def _compact(text: str | None) -> bytes:
    if text is None:
        return b"\x00"
    data = text.encode()
    return _varint(len(data) + 1) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
