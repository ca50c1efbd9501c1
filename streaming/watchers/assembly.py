"""The threads beside a board that ask brokers and look at the clock: the same however the board is filled."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from streaming.board.board import Board
from streaming.board.lag_columns import Lags
from streaming.config.sections import Config
from streaming.end_offsets.client import KafkaOffsetsClient
from streaming.end_offsets.first_records import RecordLooks
from streaming.end_offsets.sampler import EndOffsetSampler
from streaming.end_offsets.share_log import POLLED
from streaming.kafka import client_settings
from streaming.kafka.cluster_client import ClusterClient
from streaming.kafka.leader_epochs import LeaderEpochs
from streaming.watchers import share_log_watch
from streaming.watchers.broker_watch import BrokerWatch
from streaming.watchers.clock_doubt import ClockJumps
from streaming.watchers.cut_logs import CutLogs
from streaming.watchers.hang_sampler import HangSampler
from streaming.watchers.lag_sampler import LagSampler
from streaming.watchers.lag_times import LagTimes
from streaming.watchers.load_watch import LoadWatch
from streaming.watchers.no_records import NoRecords
from streaming.watchers.overdue_watch import OverdueWatch
from streaming.watchers.session_timeouts import SessionTimeoutSampler
from streaming.watchers.share_log_watch import ShareLogWatch
from streaming.watchers.share_watch import ShareWatch


class Watcher(Protocol):
    """A thread."""

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """End."""
        ...


def watchers(  # noqa: PLR0913 - where they ask, what they feed, and whose board it is
    config: Config,
    board: Board,
    publish: Callable[[Sequence[Mapping[str, Any]]], object],
    clock_ms: Callable[[], int],
    ends_file: Path | None,
    *,
    reads_log: bool = True,
) -> list[Watcher]:
    """All of them, in the order to be started.

    Args:
        config: where the brokers are.
        board: what they feed and look at.
        publish: takes events that no record showed, each with its id.
        clock_ms: the wall clock.
        ends_file: where the histories of log ends survive a restart; None for nowhere.
        reads_log: whether this monitor reads logs itself, where groups are not polled; else another one's topics.
    """
    kafka, ends, polled = config.kafka, board.ends, config.source.kind == "admin"

    def settings(purpose: str) -> dict[str, Any]:
        return client_settings.python_settings(kafka, purpose)

    sampler = EndOffsetSampler(
        ends,
        lambda: KafkaOffsetsClient(settings("end-offsets")),
        board.wanted,
        offsets_topic="" if polled else kafka.offsets_topic,
        interval_ms=config.end_offsets.interval_ms,
        file=ends_file,
    )
    suspects = HangSampler(board, lambda: ClusterClient(settings("suspects")), clock_ms)
    timeouts = SessionTimeoutSampler(board, lambda: ClusterClient(settings("session-timeouts")), clock_ms)
    loads = LoadWatch(board, lambda: ClusterClient(settings("coordinators")), publish, clock_ms)
    watch = OverdueWatch(
        board,
        publish,
        clock_ms,
        lambda: suspects.answers,
        ClockJumps().settling,
        unsettled_after_ms=config.alarms.unsettled_after_ms,
    )

    share_groups = ShareWatch(board, publish)

    def look(lags: Lags, now_ms: int) -> None:
        suspects.look(lags, now_ms)
        loads.look(lags, now_ms)
        share_groups.look(lags, now_ms)

    lag = LagSampler(
        board.lag_history, lambda: board.shown.groups, ends, lambda: board.health.ready()[0], clock_ms, look
    )
    times = LagTimes(ends, lambda: ClusterClient(settings("lag-times")), board.lag_history.without_time, clock_ms)
    no_records = NoRecords(
        ends,
        lambda: RecordLooks(settings("first-records")),
        board.lag_history.may_hold_no_record,
        clock_ms,
    )
    cut_logs = CutLogs(
        ends,
        lambda: LeaderEpochs(settings("cut-logs")),
        lambda: board.shown.groups,
        lambda: board.health.ready()[0],
        clock_ms,
    )
    look_for_shares = None
    if polled:
        ends.share_log.see("off", POLLED)
    elif config.share_groups.enabled is False:
        ends.share_log.see("off")
    elif reads_log:
        look_for_shares = share_log_watch.looking(client_settings.confluent_settings(kafka, "share-log"))
    # Coordinators of polled groups are asked anyway, and who is away for how long is in the log alone.
    asking = () if polled else (suspects, timeouts, loads)
    brokers = BrokerWatch(board, lambda: ClusterClient(settings("broker-watch")), publish, clock_ms)
    shares = (ShareLogWatch(board, look_for_shares, clock_ms),) if look_for_shares is not None else ()
    looking = (no_records,) if config.end_offsets.read_records else ()
    return [sampler, brokers, *asking, watch, lag, times, *looking, cut_logs, *shares]
