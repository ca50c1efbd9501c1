"""Faults of who leads the log: its partitions move, stay without leader, and come back with less than was read."""

import json
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, suppress
from itertools import count
from typing import Any, Final
from urllib.parse import quote

from coordinator_model.state.shards import offsets_partition
from lab import builders
from lab.monitor_process import MonitorProcess, until
from tests.faults.answers import too_good
from tests.faults.coordinator_log import PARTITIONS, Write
from tests.faults.disturbed import PATIENCE_SECONDS, Disturbed
from tests.faults.leaders import Leaders
from tests.faults.reported import Cut, Reported, after_cuts
from tests.faults.three_brokers import ThreeBrokers
from tests.faults.trial import Trial

VISIBLE_SECONDS: Final = 5.0
"""From a leader's move to a new commit on the page."""
HOPELESS_SECONDS: Final = 60.0
"""A longer wait is not measured."""
READ_S: Final = "longest time from a commit to its being shown while other partitions have no leader, s"
AT_MOST_S: Final = "longest time from a leader's move to a new commit shown, s"

BALANCED: Final = {
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "5",
    "leader.imbalance.per.broker.percentage": "0",
}
"""Brokers that give leadership back by themselves, and soon."""


def leader_moved(trial: Trial) -> None:
    """The leader of each partition moves while the old one lives, by reassignment and by preferred election."""
    leaders, late = Leaders(trial.log.bootstrap_servers, trial.log.topic), []
    with trial.writing(0.05):
        pass
    # The first micro-batch of a monitor takes seconds, under any leader.
    trial.disturbed.await_reported()
    for _ in range(trial.rounds):
        for move in (_reassigned, _handed_on):
            for partition in range(PARTITIONS):
                with trial.writing(0.9 / trial.rounds / 2 / PARTITIONS):
                    seconds = await_shown(trial, partition, since=move(leaders, partition))
                    trial.times += 1
                if seconds > VISIBLE_SECONDS:
                    late.append(f"partition {partition} {move.__name__}: shown after {seconds:.1f} s")
    assert [] == late, late


def _reassigned(leaders: Leaders, partition: int) -> float:
    """Another broker holds the partition in place of the one that led it."""
    held = leaders.replicas()[partition]
    (other,) = {1, 2, 3} - set(held)
    leaders.reassign({partition: [*held[1:], other]})
    leaders.await_led({partition: held[1]})
    return time.monotonic()


def _handed_on(leaders: Leaders, partition: int) -> float:
    """The preferred leader is another one now, and is elected."""
    first, *others = leaders.replicas()[partition]
    leaders.reassign({partition: [*others, first]})
    assert first == leaders.now()[partition]
    leaders.elect_preferred(partition)
    leaders.await_led({partition: others[0]})
    return time.monotonic()


def brokers_rolled(trial: Trial) -> None:
    """A rolling restart of all three brokers, which give leadership back by themselves (auto.leader.rebalance)."""
    assert isinstance(trial.broker, ThreeBrokers)
    leaders, late = Leaders(trial.log.bootstrap_servers, trial.log.topic), []
    preferred = {number: nodes[0] for number, nodes in leaders.replicas().items()}
    for _ in range(trial.rounds):
        for number, node in trial.broker.nodes.items():
            with trial.writing(0.9 / trial.rounds / 3):
                node.stop()
                node.start()
                leaders.await_led(preferred)
                moved = time.monotonic()
                for partition in (of for of, leader in preferred.items() if leader == number):
                    seconds = await_shown(trial, partition, since=moved)
                    if seconds > VISIBLE_SECONDS:
                        late.append(f"partition {partition} back at {number}: shown after {seconds:.1f} s")
                trial.times += 1
    assert [] == late, late


UNCLEAN: Final = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
"""A log whose end may be lost."""
ALL: Final = frozenset(range(PARTITIONS))
CUT: Final = 0
"""Partition that loses its end, held by brokers 2 and 3; the others are led by the first."""


def short_tail_lost(trial: Trial) -> None:
    """An unclean election loses a tail of 10 s that was read; the log has grown back within seconds."""
    _tail_lost(trial, tail_seconds=10, shorter_seconds=0)


def long_tail_lost(trial: Trial) -> None:
    """An unclean election loses a tail of 80 s that was read; the log stays shorter for 40 s."""
    _tail_lost(trial, tail_seconds=80, shorter_seconds=40)


def _tail_lost(trial: Trial, tail_seconds: float, shorter_seconds: float) -> None:
    assert isinstance(trial.broker, ThreeBrokers)
    leaders, others = Leaders(trial.log.bootstrap_servers, trial.log.topic), ALL - {CUT}
    cuts = []
    for number in range(1, trial.rounds + 1):
        with trial.writing(0.2 / trial.rounds):
            pass
        first, second = leaders.replicas()[CUT]
        trial.broker.nodes[second].stop()
        before = trial.log.ends()[CUT]
        with trial.writing(0.3 / trial.rounds):
            commit(trial, CUT, 1, group=f"phantom-{number}")
            time.sleep(tail_seconds)
        lost = trial.log.ends()[CUT] - before
        reported = trial.disturbed.await_reported()
        trial.broker.nodes[first].kill()
        trial.broker.nodes[second].start()
        leaders.await_led({CUT: second})
        elected = time.monotonic()
        assert before == trial.log.ends()[CUT]
        with trial.writing(0.1 / trial.rounds, others):
            time.sleep(shorter_seconds)
        while trial.log.ends()[CUT] < before + lost + 50:
            with trial.writing(0.02 / trial.rounds):
                pass
        await_shown(trial, CUT, since=max(elected + shorter_seconds, time.monotonic()))
        until(lambda: number == len(truncations(trial)), 30, "no log_truncated is reported")  # noqa: B023 - ends in this round
        cuts.append(cut_now(trial, CUT, reported))
        trial.broker.nodes[first].start()
        leaders.await_led({CUT: second})
        trial.worst("records lost", lost)
        trial.times += 1
        trial.compared = after_cuts(*cuts[-1:])


def cut_now(trial: Trial, partition: int, reported: Reported) -> Cut:
    """What is known of a cut once it was noticed, and the log is longer than before; what comes now is news."""
    trial.live_from = {**(trial.live_from or {}), partition: trial.log.ends()[partition]}
    return Cut(
        partition=partition,
        reported=frozenset(reported.events),
        live_from=trial.live_from[partition],
        alarms=frozenset(trial.log.undisturbed().events),
    )


def truncations(trial: Trial) -> list[dict[str, Any]]:
    """Events that say that a partition lost its end."""
    return [event for event in trial.monitor.events(limit="10000") if event["kind"] == "log_truncated"]


DOWN: Final = ((2,), (3,), (2, 3))
"""Brokers that are gone: then one partition has no leader, or three, or all four."""
NOTICED_SECONDS: Final = 10.0


def without_leader(trial: Trial) -> None:
    """One, several, all partitions without leader, nothing arriving or records of the others; leaders come back."""
    assert isinstance(trial.broker, ThreeBrokers)
    commit_in_all(trial)
    trial.disturbed.await_reported()
    times = 2 * len(DOWN) * trial.rounds
    for number in range(times):
        down, loaded = DOWN[number // 2 % len(DOWN)], bool(number % 2)
        gone = _lose(trial, down)
        with trial.writing(0.6 / times if loaded else 0.0, ALL - gone):
            assert 200 == expect_unread(trial, gone)
            for partition in ALL - gone:
                trial.worst(READ_S, await_shown(trial, partition, since=time.monotonic()))
        _come_back(trial, down)
        trial.times += 1
        with trial.writing(0.3 / times):
            pass
        trial.disturbed.await_reported()
        until(lambda: not ready(trial)[1].get("without_leader"), 30, lambda: f"/ready still says {ready(trial)}")
    lines = [line for line in trial.monitor.error_lines() if "leader" in line]
    assert len(lines) <= 4 * times, "\n".join(lines)


def without_leader_at_start(trial: Trial) -> None:
    """One, several, all partitions have no leader when a monitor is started, the first ever or not; they come back."""
    assert isinstance(trial.broker, ThreeBrokers)
    commit_in_all(trial)
    trial.disturbed.await_reported()
    times = len(DOWN) * trial.rounds
    for number in range(times):
        with trial.writing(0.4 / times):
            pass
        trial.disturbed.await_reported()
        trial.disturbed.end(trial.monitor)
        down = DOWN[number % len(DOWN)]
        gone = _lose(trial, down)
        trial.monitor = trial.disturbed.start()
        with trial.writing(0.2 / times, ALL - gone):
            assert 503 == expect_unread(trial, gone)
        if number < len(DOWN):
            first_ever(trial, gone)
        _come_back(trial, down)
        trial.disturbed.await_ready(trial.monitor)
        trial.times += 1
        with trial.writing(0.3 / times):
            pass


def first_ever(trial: Trial, gone: AbstractSet[int]) -> None:
    """A monitor without any state: what may be in a partition that it never read is not denied."""
    with ExitStack() as stack:
        monitor = Disturbed(stack, trial.directory / f"first-{len(gone)}", trial.log).start()
        until(
            lambda: _says_without_leader(monitor, gone),
            PATIENCE_SECONDS,
            lambda: f"/ready says {monitor.get('/ready')}",
        )
        assert 503 == monitor.get("/ready")[0]
        for partition in gone:
            status, answer = monitor.get(f"/api/v1/groups/{marker(partition)}")
            assert 503 == status, answer
            assert [] == too_good(monitor, marker(partition))


def empty_broker(trial: Trial) -> None:
    """A broker comes back empty under its id: the log of the partition that only it held starts at 0 again."""
    assert isinstance(trial.broker, ThreeBrokers)
    leaders, cuts = Leaders(trial.log.bootstrap_servers, trial.log.topic), []
    for number in range(1, trial.rounds + 1):
        with trial.writing(0.3 / trial.rounds):
            commit(trial, CUT, 1, group=f"phantom-{number}")
        reported = trial.disturbed.await_reported()
        lost = trial.log.ends()[CUT]
        node = trial.broker.nodes[2]
        _lose(trial, (2,))
        node.lose_everything()
        node.start()
        leaders.await_led({CUT: 2})
        elected = time.monotonic()
        assert 0 == trial.log.ends()[CUT]
        with trial.writing(0.2 / trial.rounds):
            pass
        await_shown(trial, CUT, since=elected)
        until(lambda: number == len(truncations(trial)), 30, "no log_truncated is reported")  # noqa: B023 - ends in this round
        while trial.log.ends()[CUT] < lost + 50:
            with trial.writing(0.02 / trial.rounds):
                pass
        await_shown(trial, CUT, since=time.monotonic())
        cuts.append(cut_now(trial, CUT, reported))
        trial.worst("records lost", lost)
        trial.times += 1
        trial.compared = after_cuts(*cuts[-1:])


def _lose(trial: Trial, down: Sequence[int]) -> AbstractSet[int]:
    """End brokers as machines fail; returns the partitions that have no leader then."""
    assert isinstance(trial.broker, ThreeBrokers)
    leaders = Leaders(trial.log.bootstrap_servers, trial.log.topic)
    gone = {number for number, nodes in leaders.replicas().items() if set(nodes) <= set(down)}
    for number in down:
        trial.broker.nodes[number].kill()
    until(lambda: leaders.without() == gone, PATIENCE_SECONDS, lambda: f"{leaders.now()}, not without {gone}")
    return gone


def _come_back(trial: Trial, down: Sequence[int]) -> None:
    assert isinstance(trial.broker, ThreeBrokers)
    for number in down:
        trial.broker.nodes[number].start()
    leaders = Leaders(trial.log.bootstrap_servers, trial.log.topic)
    until(lambda: not leaders.without(), PATIENCE_SECONDS, lambda: f"{leaders.now()}")
    back = time.monotonic()
    for partition in ALL:
        trial.worst("longest time from a leader's return to a new commit shown, s", await_shown(trial, partition, back))


def expect_unread(trial: Trial, gone: AbstractSet[int]) -> int:
    """Nothing good is said of what is in partitions without leader, they are named; returns the status of /ready."""
    begun = time.monotonic()
    until(
        lambda: _says_without_leader(trial.monitor, gone),
        PATIENCE_SECONDS,
        lambda: f"{gone} have no leader, and /ready says {ready(trial)}",
    )
    trial.worst("longest time until /ready names partitions without leader, s", time.monotonic() - begun)
    (value,) = trial.monitor.samples()["group_monitor_offsets_partitions_without_leader"].values()
    assert len(gone) == value
    for partition in gone:
        assert [] == too_good(trial.monitor, marker(partition))
        status, answer = trial.monitor.get(f"/api/v1/groups/{marker(partition)}")
        assert 503 == status or json.loads(answer).get("doubt"), answer
        status, answer = trial.monitor.get(f"/api/v1/groups/{nobody(partition)}")
        assert 503 == status, answer
    for partition in ALL - gone:
        status, answer = trial.monitor.get(f"/api/v1/groups/{nobody(partition)}")
        assert trial.monitor.get("/ready")[0] == 503 or 404 == status, answer
    return ready(trial)[0]


def _says_without_leader(monitor: MonitorProcess, gone: AbstractSet[int]) -> bool:
    """Whether /ready names exactly these."""
    with suppress(OSError):
        return bool(sorted(gone) == json.loads(monitor.get("/ready")[1]).get("without_leader"))
    return False


def ready(trial: Trial) -> tuple[int, dict[str, Any]]:
    """Status and answer of /ready."""
    status, body = trial.monitor.get("/ready")
    return status, json.loads(body)


def nobody(partition: int) -> str:
    """A name that hashes to a partition, and that no group has."""
    return next(name for name in (f"nobody-{n}" for n in count()) if partition == offsets_partition(name, PARTITIONS))


def commit_in_all(trial: Trial) -> None:
    """So that the group of each partition is known."""
    for partition in ALL:
        commit(trial, partition, 1)


def await_shown(trial: Trial, partition: int, since: float) -> float:
    """Commit in a partition, and wait until it is shown; returns how long that is since a moment, and notes it."""
    offset = int(1000 * time.time())
    commit(trial, partition, offset)
    wanted = HOPELESS_SECONDS
    until(
        lambda: offset == shown_offset(trial, partition),
        wanted,
        f"a commit in {partition} is not shown in {wanted:g} s",
    )
    seconds = time.monotonic() - since
    trial.worst(AT_MOST_S, seconds)
    return seconds


def commit(trial: Trial, partition: int, offset: int, group: str = "") -> None:
    """A commit of a group that only commits in this partition."""
    time_ms = int(1000 * time.time())
    record = builders.offset_commit(group or marker(partition), "t", 0, offset, timestamp=time_ms)
    trial.log.write([Write(partition, time_ms, *record)])


def marker(partition: int) -> str:
    """A group of a partition, and that hashes to it: it commits when something is to be seen."""
    return next(name for name in (f"marker-{n}" for n in count()) if partition == offsets_partition(name, PARTITIONS))


def shown_offset(trial: Trial, partition: int) -> int | None:
    """What is shown of it."""
    status, _ = trial.monitor.get(path := f"/api/v1/groups/{quote(marker(partition))}")
    if status != 200:
        return None
    shown: dict[str, Any] = trial.monitor.json(path)
    return next((of["offset"] for of in shown["offsets"]), None)
