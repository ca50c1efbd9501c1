"""Ends the doubt in a partition with a batch that cannot be read: its coordinator is asked what its groups are.

What the batch held is not known, so neither is whether groups are as they are shown; what they do later does not tell.
But a coordinator holds them in memory, and answers about each (`polling/client.py`). Once it has said of every group of
the partition what is shown of it (`polling/agreement.py`), whether in one round or in several, nothing is in doubt any
more. A group that differs, or may not be described, leaves the partition in doubt: `--rebuild` reads the log again,
and finds what can be read of it.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from coordinator_model.state.shards import offsets_partition
from streaming.base import atomic_files
from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.persistent_map import GroupMap
from streaming.base.threads import Connection, Repeating
from streaming.base.times import now_ms
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.polling.agreement import agrees
from streaming.polling.client import Round

AGREED_FILE: Final = "coordinators-agreed.json"
FORMAT: Final = "coordinators-agreed/1"

LOOK_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 3.0
"""After an answer, until it is looked what is shown: what it tells of may not have been read."""

_log = get_logger("coordinator_check")


class GroupsClient(Protocol):
    """What is asked of a cluster."""

    def ask(self, shown: Mapping[str, str], wanted: Callable[[str], bool]) -> Round:
        """What brokers say of the groups that are wanted, and of those shown → their types. Raises KafkaError."""
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


class CoordinatorCheck:
    """The thread that asks, while something is in doubt.

    Args:
        board: what is shown, and what of it is in doubt.
        connect: makes a client; called again after a failure.
        directory: where it is kept which coordinators agreed: the option `state.dir`.
        query_id: of the query that fills the board; another one counts its batches from 1 again.
        settle_seconds: see `SETTLE_SECONDS`.
    """

    def __init__(
        self,
        board: Board,
        connect: Callable[[], GroupsClient],
        directory: Path,
        query_id: Callable[[], str],
        *,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        self._board = board
        self._connection = Connection(connect)
        self._file = directory / AGREED_FILE
        self._query_id = query_id
        self._settle_seconds = settle_seconds
        self._agreed: dict[tuple[int, int], frozenset[str]] = {}
        """(partition, number of its last batch) → groups of which the answer was what is shown."""
        self._differ: dict[int, tuple[str, ...]] = {}
        self._outage = Outage(_log, "coordinators", now_ms)
        self._thread = Repeating("coordinator-check", LOOK_SECONDS, self.check, self._connection.drop)
        self.stop = self._thread.stop

    def start(self) -> None:
        """Take what is known from a former run, and begin."""
        self._board.health.set_agreed(self._kept())
        self._thread.start()

    def check(self) -> None:
        """Ask about the partitions in doubt, if there are any. Never raises for what a client throws."""
        health = self._board.health
        pending, partitions = health.unreadable(), health.offsets_partitions
        if not pending or partitions is None:
            self._connection.drop()
            self._agreed, self._differ = {}, {}
            return
        if not health.caught_up:
            return
        before = self._board.shown.groups
        in_doubt = self._board.doubted(self._board.moment())
        shown = {name: before[name].words.type for name in in_doubt if name in before}
        try:
            found = self._connection.client.ask(shown, lambda name: offsets_partition(name, partitions) in pending)
        except Exception as error:  # noqa: BLE001 - whatever a client throws, the next look may succeed
            self._outage.failed(error)
            self._connection.drop()
            return
        self._outage.succeeded()
        self._thread.stopping.wait(self._settle_seconds)
        if found.failure is not None:
            return
        after = self._board.shown.groups
        for partition, batches in pending.items():
            number = batches[-1].number
            names = {name for name, of in in_doubt.items() if of == partition and name in after}
            names |= {name for name in found.listed if offsets_partition(name, partitions) == partition}
            self._take(partition, number, names, {name for name in names if _agrees(name, found, before, after)})

    def _take(self, partition: int, number: int, names: set[str], agreed: set[str]) -> None:
        known = self._agreed.get((partition, number), frozenset()) & names | agreed
        self._agreed[partition, number] = known
        differ = tuple(sorted(names - known))
        if not differ:
            health = self._board.health
            health.set_agreed({**health.agreed, partition: number})
            self._keep(health.agreed)
            _log.info("coordinator_agrees", partition=partition, groups=len(names))
        elif self._differ.get(partition) != differ:
            _log.warning("coordinator_differs", partition=partition, groups=len(differ), first=differ[0])
        self._differ[partition] = differ

    def _kept(self) -> Mapping[int, int]:
        try:
            held = json.loads(self._file.read_text(encoding="utf-8"))
            if (held["format"], held["query"]) == (FORMAT, self._query_id()):
                return {int(partition): int(number) for partition, number in held["partitions"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            pass  # they are asked again
        return {}

    def _keep(self, agreed: Mapping[int, int]) -> None:
        held: dict[str, Any] = {"format": FORMAT, "query": self._query_id(), "partitions": agreed}
        try:
            atomic_files.replace(self._file, json.dumps(held))
        except OSError as error:
            _log.warning("agreement_not_kept", reason=error.strerror)


def _agrees(name: str, found: Round, before: GroupMap[BoardGroup], after: GroupMap[BoardGroup]) -> bool:
    looks = [held for held in (before.get(name), after.get(name)) if held is not None]
    return name in found.answered and agrees(found.answered[name], looks)
