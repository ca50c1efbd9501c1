"""The threads beside a board that ask brokers and look at the clock: the same for whoever fills the board."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from streaming import kafka_client
from streaming.board import Board
from streaming.clock_jumps import ClockJumps
from streaming.config_sections import Config
from streaming.end_offsets import EndOffsetSampler, KafkaOffsetsClient
from streaming.lag_history import LagSampler
from streaming.session_timeouts import KafkaConfigsClient, SessionTimeoutSampler
from streaming.suspect_sampler import KafkaGroupsClient, SuspectSampler
from streaming.watch import Watch


class Watcher(Protocol):
    """A thread."""

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """End."""
        ...


def watchers(
    config: Config,
    board: Board,
    publish: Callable[[Sequence[Mapping[str, Any]]], object],
    clock_ms: Callable[[], int],
    ends_file: Path | None,
) -> list[Watcher]:
    """All of them, in the order to be started.

    Args:
        config: where the brokers are.
        board: what they feed and look at.
        publish: takes events that no record told, each with its id.
        clock_ms: the wall clock.
        ends_file: where the histories of log ends survive a restart; None for nowhere.
    """
    kafka, ends = config.kafka, board.ends

    def settings(purpose: str) -> dict[str, Any]:
        return kafka_client.python_settings(kafka, purpose)

    sampler = EndOffsetSampler(
        ends,
        lambda: KafkaOffsetsClient(settings("end-offsets")),
        board.wanted,
        offsets_topic=kafka.offsets_topic,
        interval_ms=config.end_offsets.interval_ms,
        file=ends_file,
    )
    suspects = SuspectSampler(board, lambda: KafkaGroupsClient(settings("suspects")), clock_ms)
    timeouts = SessionTimeoutSampler(board, lambda: KafkaConfigsClient(settings("session-timeouts")), clock_ms)
    watch = Watch(board, publish, clock_ms, lambda: suspects.answers, ClockJumps().settling)
    lag = LagSampler(board.lag_history, lambda: board.shown.groups, ends, lambda: board.ready()[0], clock_ms)
    return [sampler, suspects, timeouts, watch, lag]
