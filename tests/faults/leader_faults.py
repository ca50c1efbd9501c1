"""Faults of who leads the log: its partitions move, stay without leader, and come back with less than was read."""

import time
from typing import Any, Final
from urllib.parse import quote

from tests import builders
from tests.faults.coordinator_log import PARTITIONS, Write
from tests.faults.leaders import Leaders
from tests.faults.reported import Cut, Reported, after_cuts
from tests.faults.three_brokers import ThreeBrokers
from tests.faults.trial import Trial
from tests.integration.monitor_process import until

VISIBLE_SECONDS: Final = 5.0
"""From a leader's move to a new commit on the page."""
HOPELESS_SECONDS: Final = 60.0
"""Longer than this no one waits to write down how long it was."""
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
    leaders, others = Leaders(trial.log.bootstrap_servers, trial.log.topic), set(range(PARTITIONS)) - {CUT}
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
    return [event for event in trial.monitor.events() if event["kind"] == "log_truncated"]


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
    """A group of a partition, whatever partition it hashes to: one that commits when something is to be seen."""
    return f"marker-{partition}"


def shown_offset(trial: Trial, partition: int) -> int | None:
    """What is shown of it."""
    status, _ = trial.monitor.get(path := f"/api/v1/groups/{quote(marker(partition))}")
    if status != 200:
        return None
    shown: dict[str, Any] = trial.monitor.json(path)
    return next((of["offset"] for of in shown["offsets"]), None)
