"""Every fault that a monitor is put through, as a table: a name, and what is done, which is the docstring.

A fault does what it says `trial.rounds` times while the log is being written, counts it in `trial.times`, and leaves a
monitor running, which is then compared with what follows from the log.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final
from urllib.parse import urlsplit

from lab.monitor_process import until
from streaming.checkpoint.identity import IDENTITY_FILE, REBUILD, STATE_LAYOUT
from streaming.demo.embedded_broker import EmbeddedBroker
from tests.faults import damage, victim
from tests.faults.coordinator_log import story
from tests.faults.disk import SmallDisk
from tests.faults.hanging_faults import descriptors_used_up, jvm_hangs, workers_hang
from tests.faults.leader_faults import (
    BALANCED,
    UNCLEAN,
    brokers_rolled,
    empty_broker,
    leader_moved,
    long_tail_lost,
    short_tail_lost,
    without_leader,
    without_leader_at_start,
)
from tests.faults.log_faults import (
    CLEANED,
    CLEANED_BEHIND,
    CLEANED_IN_GAPS,
    FORGOTTEN,
    TIMED,
    clocks_jump,
    compacted_while_away,
    compacted_while_read,
    compacted_while_stopped,
    later_release,
    stopped_beyond_retention,
    topic_grown,
    unreadable_batches,
)
from tests.faults.processes_of import jvm, kill_executor, kill_workers
from tests.faults.reported import FROM_FORMER
from tests.faults.sink_faults import history_disk_away, sink_brokers_away
from tests.faults.three_brokers import ThreeBrokers
from tests.faults.trial import Fault, Trial

OUTAGE_SECONDS: Final = 75.0


def killed_at_every_stage(trial: Trial) -> None:
    """`kill -9` of the driver at each of six stages of a micro-batch, records arriving."""
    with trial.writing(0.05):
        pass
    # The first stage is in what is resumed.
    trial.disturbed.await_reported()
    trial.disturbed.end(trial.monitor)
    for _ in range(trial.rounds):
        for stage in victim.STAGES:
            with trial.writing(0.85 / trial.rounds / len(victim.STAGES)):
                trial.disturbed.start_and_die(stage)
                trial.times += 1
    trial.restart()


def killed_at_random(trial: Trial) -> None:
    """`kill -9` of the driver at random times from 0 to 4 s after it is ready, records arriving."""
    for _ in range(trial.rounds):
        with trial.writing(0.9 / trial.rounds):
            time.sleep(trial.chance.uniform(0, 4))
            trial.monitor.kill()
            trial.times += 1
            trial.restart()


def killed_while_starting(trial: Trial) -> None:
    """`kill -9` of the driver at random times from 0 to 15 s after its start, records arriving."""
    for _ in range(trial.rounds):
        trial.monitor.kill()
        with trial.writing(0.9 / trial.rounds):
            trial.monitor = trial.disturbed.start()
            time.sleep(trial.chance.uniform(0, 15))
            trial.monitor.kill()
            trial.times += 1
            trial.restart()


def workers_killed(trial: Trial) -> None:
    """`kill -9` of all Python workers of Spark at once, records arriving."""
    for _ in range(trial.rounds):
        with trial.writing(0.9 / trial.rounds):
            trial.worst("most workers at once", kill_workers(trial.monitor))
            trial.times += 1


def executor_killed(trial: Trial) -> None:
    """`kill -9` of one of two executors (`spark.master: local-cluster[2,1,1024]`), records arriving."""
    for _ in range(trial.rounds):
        with trial.writing(0.9 / trial.rounds):
            kill_executor(trial.monitor)
            trial.times += 1


def jvm_killed(trial: Trial) -> None:
    """`kill -9` of Spark's JVM: the monitor says so, ends, and is started again as a service manager would."""
    for _ in range(trial.rounds):
        with trial.writing(0.9 / trial.rounds):
            os.kill(jvm(trial.monitor), signal.SIGKILL)
            status = trial.monitor.await_end(60)
            assert 1 == status
            assert "its JVM ended" in trial.monitor.error_lines()[-1]
            trial.times += 1
            trial.restart()


def disk_filled(trial: Trial) -> None:
    """The disk of the checkpoint is full to the last byte, records arriving; once logged, there is room again."""
    trial.disturbed.end(trial.monitor)
    disk = trial.stack.enter_context(SmallDisk(trial.directory / "small-disk"))
    assert disk.is_mounted, "no file system could be mounted"
    trial.disturbed.state = disk.directory / "state"
    trial.restart()
    for number in range(1, trial.rounds + 1):
        disk.fill()
        begun = time.monotonic()
        with trial.writing(0.9 / trial.rounds):
            until(lambda: number == reported(trial, "disk_full"), 120, "no word of a full disk")  # noqa: B023 - ends in this round
        trial.worst("longest time until it was reported, s", time.monotonic() - begun)
        disk.make_room()
        until(lambda: number == reported(trial, "disk_has_room_again"), 120, "it does not go on")  # noqa: B023 - as above
        trial.times += 1


def checkpoint_damaged(trial: Trial) -> None:
    """Files of the checkpoint cut, zeroed or deleted in eight ways, each refused in one line; then `--rebuild`."""
    with trial.writing(0.5):
        until(lambda: bool(trial.monitor.groups()), 60, "no group is shown")
    trial.disturbed.await_reported()
    trial.disturbed.await_noted()
    trial.disturbed.end(trial.monitor)
    for _ in range(trial.rounds):
        for break_it in damage.DAMAGES.values():
            with damage.done(trial.disturbed.state, break_it):
                line = trial.disturbed.refused()
            assert REBUILD in line, line
            trial.times += 1
    damage.lose_checkpoint(trial.disturbed.state)
    trial.restart("--rebuild")


def older_release(trial: Trial) -> None:
    """The state directory that a release with another layout of the state left: refused by name; then `--rebuild`."""
    trial.log.write(*trial.events[: damage.LEFT_BEHIND])
    trial.events = trial.events[damage.LEFT_BEHIND :]
    trial.disturbed.await_reported()
    trial.disturbed.end(trial.monitor)
    damage.left_by_older_release(trial.disturbed.state)
    line = trial.disturbed.refused()
    assert "state_layout 2" in line, line
    assert REBUILD in line, line
    trial.times += 1
    # Not meanwhile: what is written before it begins to read is from before its live tail, and not reported.
    trial.restart("--rebuild")
    with trial.writing(0.3):
        pass


def former_release(trial: Trial) -> None:
    """The state directory that the release before packs left: resumed from, in the middle of the story."""
    trial.events, trial.compared = story(), FROM_FORMER
    trial.log.write(*trial.events[: damage.LEFT_BEHIND])
    trial.events = trial.events[damage.LEFT_BEHIND :]
    trial.disturbed.await_reported()
    trial.disturbed.end(trial.monitor)
    damage.left_by_former_release(trial.disturbed.state)
    trial.restart()
    assert 0 == reported(trial, "state_rebuilt")
    held = json.loads((trial.disturbed.state / IDENTITY_FILE).read_text())
    assert STATE_LAYOUT == held["state_layout"], held
    trial.times += 1
    with trial.writing(0.3):
        pass


def broker_stopped(trial: Trial) -> None:
    """The only broker is stopped for 75 s and started again."""
    for _ in range(trial.rounds):
        with trial.writing(0.4 / trial.rounds):
            pass
        assert isinstance(trial.broker, EmbeddedBroker)
        trial.broker.stop()
        begun = time.monotonic()
        until(lambda: time.monotonic() - begun > OUTAGE_SECONDS, 2 * OUTAGE_SECONDS, "time stands still")  # noqa: B023 - ends in this round
        assert [200, 200] == [trial.monitor.get(path)[0] for path in ("/healthz", "/metrics")]
        trial.broker.start()
        begun = time.monotonic()
        with trial.writing(0.4 / trial.rounds):
            pass
        trial.disturbed.await_reported()
        trial.worst("longest time from the broker's start to all being reported, s", time.monotonic() - begun)
        trial.times += 1


def leaders_killed(trial: Trial) -> None:
    """Of three brokers, two lead most of the log: each in turn is ended by `kill -9`, and started again."""
    assert isinstance(trial.broker, ThreeBrokers)
    for _ in range(trial.rounds):
        for broker in trial.broker.followers:
            begun = time.monotonic()
            broker.kill()
            with trial.writing(0.4 / trial.rounds):
                pass
            trial.disturbed.await_reported()
            trial.worst("longest time from the kill to all being reported, s", time.monotonic() - begun)
            broker.start()
            until(broker.coordinates, 120, "a broker does not come back")
            trial.times += 1


def topic_recreated_while_running(trial: Trial) -> None:
    """The topic is deleted and recreated under a running monitor, and filled beyond what was read; then `--rebuild`."""
    for _ in range(trial.rounds):
        with trial.writing(0.2 / trial.rounds):
            pass
        trial.disturbed.await_reported()
        trial.log.remove()
        trial.log.make()
        with trial.writing(0.5 / trial.rounds):
            status = trial.monitor.await_end(180)
        line = trial.monitor.error_lines()[-1]
        assert status in (1, 2), line
        assert REBUILD in line, line
        trial.times += 1
        rebuilt(trial)


def topic_recreated_while_away(trial: Trial) -> None:
    """The topic is deleted and recreated while no monitor runs; the next one refuses in one line; then `--rebuild`."""
    for _ in range(trial.rounds):
        with trial.writing(0.2 / trial.rounds):
            pass
        trial.disturbed.await_reported()
        trial.disturbed.end(trial.monitor)
        trial.log.remove()
        trial.log.make()
        assert "topic_id" in trial.disturbed.refused()
        trial.times += 1
        rebuilt(trial)


def rebuilt(trial: Trial) -> None:
    """Go on with a log of its own, which begins empty as this reading does."""
    trial.live_from = trial.log.ends()
    trial.disturbed.reported_file.write_text("")
    trial.restart("--rebuild")


def scrapers_hang(trial: Trial) -> None:
    """Forty clients ask for /metrics and the stream of events, and read nothing of the answers, records arriving."""
    for _ in range(trial.rounds):
        with ExitStack() as hanging:
            for number in range(40):
                path = "/metrics" if number % 2 else "/api/v1/events/stream"
                hanging.enter_context(hang_on(trial.monitor.url, path))
            with trial.writing(0.9 / trial.rounds):
                begun = time.monotonic()
                trial.disturbed.await_reported()
            assert 200 == trial.monitor.get("/metrics")[0]
            trial.worst("longest time from a record to its being reported, s", time.monotonic() - begun)
        trial.times += 1


def hang_on(url: str, path: str) -> socket.socket:
    """A client that asks and does not listen."""
    where = urlsplit(url)
    client = socket.create_connection((str(where.hostname), where.port or 80), timeout=10)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
    return client


def reported(trial: Trial, event: str) -> int:
    """How often the monitor has logged something."""
    return sum(f"event={event}" in line for line in trial.monitor.error_lines())


FAULTS: Final[dict[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        killed_at_every_stage,
        killed_at_random,
        killed_while_starting,
        workers_killed,
        executor_killed,
        jvm_killed,
        disk_filled,
        checkpoint_damaged,
        older_release,
        former_release,
        broker_stopped,
        leaders_killed,
        leader_moved,
        brokers_rolled,
        short_tail_lost,
        long_tail_lost,
        empty_broker,
        without_leader,
        without_leader_at_start,
        topic_recreated_while_running,
        topic_recreated_while_away,
        topic_grown,
        scrapers_hang,
        descriptors_used_up,
        workers_hang,
        jvm_hangs,
        compacted_while_read,
        compacted_while_away,
        compacted_while_stopped,
        stopped_beyond_retention,
        clocks_jump,
        later_release,
        unreadable_batches,
        sink_brokers_away,
        history_disk_away,
    )
}
"""Name → what is done, in the order of the page."""

OPTIONS: Final = {
    "executor_killed": ("spark.master=local-cluster[2,1,1024]",),
}
"""Options of the monitor that a fault is done to."""

LOG_SETTINGS: Final[dict[str, Mapping[str, str]]] = {
    "compacted_while_read": CLEANED_BEHIND,
    "compacted_while_away": CLEANED,
    "compacted_while_stopped": CLEANED_IN_GAPS,
    "stopped_beyond_retention": FORGOTTEN,
    "clocks_jump": TIMED,
    "short_tail_lost": UNCLEAN,
    "long_tail_lost": UNCLEAN,
    "empty_broker": UNCLEAN,
}
"""Settings of the log that a fault is done with."""

PLACED: Final[dict[str, Sequence[Sequence[int]]]] = {
    "leader_moved": ((2, 3), (3, 2), (2, 1), (3, 1)),
    "short_tail_lost": ((2, 3), (1, 2), (1, 3), (1, 2)),
    "long_tail_lost": ((2, 3), (1, 2), (1, 3), (1, 2)),
    "empty_broker": ((2,), (1,), (3,), (1,)),
    "without_leader": ((2,), (3,), (3,), (3,)),
    "without_leader_at_start": ((2,), (3,), (3,), (3,)),
}
"""Brokers that hold each partition of the log, where not all of them do."""

OF_THREE: Final[dict[str, Mapping[str, str]]] = {
    "leaders_killed": {},
    "leader_moved": {"auto.leader.rebalance.enable": "false"},
    "brokers_rolled": BALANCED,
    "short_tail_lost": {},
    "long_tail_lost": {},
    # With a disk that the controller does not know yet it is not elected when it comes back, but when the controller
    # looks for partitions without leader: every five minutes, unless this says more often.
    "empty_broker": {"unclean.leader.election.interval.ms": "1000"},
    "without_leader": {},
    "without_leader_at_start": {},
}
"""Those done to a cluster of three brokers → settings of the brokers."""
