"""Many accesses to a map state for the price of a few.

Spark's client asks the JVM for one key at a time and waits for each answer: about 80 µs, most of it two processes
waking each other. The connection is a plain stream in which answers come in the order of the requests, so here many
requests are written before the first answer is read; a thousand then cost what a hundred did.

Two sides that both write and do not read would wait for each other for ever. So no more is under way than the buffers
of the connection hold: the requests of a round when values are asked for, the answers when values are put.

What is used of Spark is not public and pinned by the lock of packages; a test holds it to what one access at a time
does. A state without a connection, as in Spark's own tester, is accessed one key at a time.
"""

import pickle
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from pyspark.sql.streaming.stateful_processor import MapState

Key = tuple[Any, ...]

_ROUND: Final = 64
"""Requests of a round; of puts, two rounds are under way at once. Each answer takes ten bytes, and in the buffer of a
Unix socket nearly a kilobyte: some 250 of them fill it."""
_ROUND_BYTES: Final = 32_768
"""Bytes of requests under way at once when answers may be large. Unix sockets hold several times that."""
_DONE: Final = 0


def get_many(state: MapState, keys: Iterable[Key]) -> dict[Key, Key]:
    """Values of the keys that have one."""
    wire = _wire(state)
    if wire is None:
        return {key: value for key in keys if (value := state.getValue(key)) is not None}
    return {key: value for key, value in wire.get(keys) if value is not None}


def put_many(state: MapState, items: Iterable[tuple[Key, Key]]) -> None:
    """Put each value under its key."""
    wire = _wire(state)
    if wire is None:
        for key, value in items:
            state.updateValue(key, value)
    else:
        wire.put(items)


class _Wire:
    """A map state's connection to the JVM, as pyspark's MapStateClient uses it."""

    def __init__(self, client: Any, name: str) -> None:  # noqa: ANN401 - private to Spark
        # Only a worker has it; importing it takes a tenth of a second.
        from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

        self._messages: Any = messages
        self._api = client._stateful_processor_api_client  # noqa: SLF001 - as the module says
        self._dumps, self._loads = pickle.dumps, pickle.loads
        self._name = name

    def get(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Key | None]]:
        """(key, value or None), in the order of the keys."""
        waiting: list[Key] = []
        size = 0
        for key in keys:
            request = self._request(getValue=self._messages.GetValue(userKey=self._dumps(key)))
            if waiting and (size + len(request) > _ROUND_BYTES or len(waiting) >= _ROUND):
                yield from self._answers(waiting)
                waiting, size = [], 0
            self._send(request)
            waiting.append(key)
            size += len(request)
        yield from self._answers(waiting)

    def put(self, items: Iterable[tuple[Key, Key]]) -> None:
        """Put each value under its key."""
        update, dumps = self._messages.UpdateValue, self._dumps
        items = iter(items)
        before: list[Key] = []
        while held := list(islice(items, _ROUND)):
            for key, value in held:
                self._send(self._request(updateValue=update(userKey=dumps(key), value=dumps(value))))
            # The answers to the round before: the JVM is at this one meanwhile, and then we are at the next.
            self._taken(before)
            before = [key for key, _ in held]
        self._taken(before)

    def _taken(self, keys: list[Key]) -> None:
        """Send what is written, and have the answers to requests before it."""
        for _ in self._answers(keys):
            pass

    def _request(self, **call: object) -> bytes:
        messages = self._messages
        of_map = messages.MapStateCall(stateName=self._name, **call)
        request = messages.StateRequest(stateVariableRequest=messages.StateVariableRequest(mapStateCall=of_map))
        dumped: bytes = request.SerializeToString()
        return dumped

    def _send(self, request: bytes) -> None:
        # The version of the messages, then the length.
        self._api.sockfile.write(b"\0\0\0\0" + len(request).to_bytes(4, "big") + request)

    def _answers(self, keys: list[Key]) -> Iterator[tuple[Key, Key | None]]:
        self._api.sockfile.flush()
        for key in keys:
            status, message, value = self._api._receive_proto_message()  # noqa: SLF001 - as the module says
            if status != _DONE:
                raise RuntimeError(f"state {self._name!r}: {message}")
            yield key, self._loads(value) if value else None


def _wire(state: MapState) -> _Wire | None:
    client = getattr(state, "_mapStateClient", None)
    return (
        None
        if client is None or not hasattr(client, "_stateful_processor_api_client")
        else _Wire(
            client,
            state._stateName,  # noqa: SLF001 - as the module says
        )
    )
