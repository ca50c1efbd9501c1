"""Librdkafka's operations of coordinators, in a process of their own: it aborts when a broker goes away under them.

"Assertion `eonce->refcnt > 0' failed", of each operation that looks for a coordinator (librdkafka's issue 4605).
"""

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

_Said = TypeVar("_Said")

_admin: dict[str, AdminClient] = {}
"""Of the process; settings are its key's."""


class Apart:
    """Asks brokers; used by several threads."""

    def __init__(self, settings: Mapping[str, str | int]) -> None:
        self._settings = settings
        self._pool = self._new()

    def ask(self, question: Callable[..., _Said], *arguments: Any) -> _Said:
        """What a function of a module says, given an AdminClient and arguments.

        Raises:
            KafkaException: brokers do not say it now, or the process has ended.
        """
        pool = self._pool
        try:
            said: _Said | _Refused = pool.submit(_asked, self._settings, question, arguments).result(120)
        except (BrokenProcessPool, TimeoutError, RuntimeError) as error:
            if self._pool is pool:
                self._pool = self._new()
            raise KafkaException(KafkaError(KafkaError._FAIL, f"the client's process: {error!r}")) from error
        if isinstance(said, _Refused):
            raise KafkaException(KafkaError(said.code, said.text))
        return said

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def _new() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


class _Refused(NamedTuple):
    """An error of librdkafka, which does not cross to another process itself."""

    code: int
    text: str


def _asked(settings: Mapping[str, str | int], question: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    name = repr(settings)
    if name not in _admin:
        _admin[name] = AdminClient({**settings})
    try:
        return question(_admin[name], *arguments)
    except KafkaException as error:
        return _Refused(error.args[0].code(), error.args[0].str())
