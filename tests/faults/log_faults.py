"""Faults of the log itself: the cleaner goes through it, its clocks jump, a later release writes it."""

import json
import time
from typing import Any, Final

from coordinator_model.state.events import INFO
from lab import builders
from lab.coordinator_events import consumer_join, consumer_moves
from lab.monitor_process import until
from tests import hostile_batches
from tests.faults.answers import too_good
from tests.faults.compaction import clean_away, write_on_until
from tests.faults.coordinator_log import Events, Write, hash_of
from tests.faults.processes_of import jvm, peak_mib, stopped, workers
from tests.faults.reported import WITH_GAPS
from tests.faults.trial import Trial

CLEANED: Final = {
    "cleanup.policy": "compact",
    # The brokers' own clock, or segments would be closed by the times that records carry.
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "1000",
}
"""A log that is cleaned at once, but for its last second."""

CLEANED_BEHIND: Final = {**CLEANED, "min.compaction.lag.ms": "45000"}
"""One that is cleaned so long after it was written that it has been read, on a busy machine, too."""

CLEANED_IN_GAPS: Final = {**CLEANED, "min.compaction.lag.ms": "8000"}
"""One that is cleaned only behind a monitor that looks at it every few seconds (`log_continuity.GAP_SECONDS`)."""

FORGOTTEN: Final = {**CLEANED_IN_GAPS, "delete.retention.ms": "15000"}
"""One that keeps tombstones for a quarter of a minute."""

TIMED: Final = {"message.timestamp.after.max.ms": str(2**63 - 1)}
"""A log that takes whatever time a broker believes it is."""

DAY_MS: Final = 86_400_000
YEAR_MS: Final = 365 * DAY_MS


def compacted_while_read(trial: Trial) -> None:
    """The cleaner goes through the log right behind the monitor that reads it, records arriving."""
    for _ in range(trial.rounds):
        before = trial.log.cleaned_away()
        with trial.writing(0.5 / trial.rounds):
            trial.disturbed.await_reported()
        with trial.writing(0.4 / trial.rounds):
            _write_until_cleaned(trial, before)
        trial.times += 1
    trial.worst("records cleaned away", trial.log.cleaned_away())


def compacted_while_away(trial: Trial) -> None:
    """Most records are cleaned away before the next monitor reads them, and it goes on while the cleaner does."""
    trial.compared = WITH_GAPS
    for _ in range(trial.rounds):
        with trial.writing(0.3 / trial.rounds):
            pass
        trial.disturbed.await_reported()
        trial.disturbed.end(trial.monitor)
        before = trial.log.cleaned_away()
        with trial.writing(0.4 / trial.rounds):
            pass
        _write_until_cleaned(trial, before)
        # Many micro-batches, and the cleaner between them. A limit cuts events in two, so it ends with the gap.
        trial.disturbed.set("source.max_offsets_per_trigger=50")
        trial.monitor = trial.disturbed.start()
        write_on_until(trial.log, trial.monitor.is_ready, "it does not catch up")
        trial.disturbed.end(trial.monitor)
        trial.disturbed.set("source.max_offsets_per_trigger=1000000")
        trial.restart()
        trial.times += 1
    trial.worst("records cleaned away", trial.log.cleaned_away())


def compacted_while_stopped(trial: Trial) -> None:
    """A running monitor stands still (SIGSTOP) while most records are cleaned away unread; then it goes on."""
    trial.compared = WITH_GAPS
    for _ in range(trial.rounds):
        with trial.writing(0.3 / trial.rounds):
            pass
        trial.disturbed.await_reported()
        with stopped(trial.monitor):
            before = trial.log.cleaned_away()
            with trial.writing(0.4 / trial.rounds):
                pass
            _write_until_cleaned(trial, before)
        with trial.writing(0.2 / trial.rounds):
            trial.disturbed.await_reported()
        trial.times += 1
    trial.worst("records cleaned away", trial.log.cleaned_away())


def stopped_beyond_retention(trial: Trial) -> None:
    """It stands still for longer than tombstones are kept; a group and offsets are deleted meanwhile, or go back."""
    trial.compared = WITH_GAPS
    for number in range(trial.rounds):
        with trial.writing(0.5 / trial.rounds):
            pass
        names = ghost, survivor = f"ghost-{number}", f"survivor-{number}"
        trial.log.write(*(_commits(name, {0: 100, 1: 100}) for name in names))
        trial.disturbed.await_reported()
        with stopped(trial.monitor):
            trial.log.write([*_forgets(ghost, 0), *_forgets(ghost, 1)], _forgets(survivor, 0))
            trial.log.write(_commits(survivor, {1: 5}))
            clean_away(trial.log, ghost)
        trial.disturbed.await_reported()
        until(lambda: ghost not in trial.monitor.groups(), 120, "a group that is deleted is still shown")  # noqa: B023 - ends in this round
        told = {(event["group"], event["kind"]): event for event in trial.monitor.events(limit="10000")}
        for what in ((ghost, "group_deleted"), (survivor, "offset_deleted"), (survivor, "offset_rewound")):
            assert what in told, f"{what} is not reported"
            assert told[what]["inferred"], told[what]
        with trial.writing(0.3 / trial.rounds):
            pass
        trial.times += 1


def _write_until_cleaned(trial: Trial, before: int) -> None:
    """Write on until the cleaner has taken another 500 records."""
    write_on_until(trial.log, lambda: trial.log.cleaned_away() > before + 500, "the cleaner leaves everything")


def _commits(group: str, offsets: dict[int, int]) -> Events:
    now_ms = _now_ms()
    return _at(
        group, now_ms, *(builders.offset_commit(group, "t", of, at, timestamp=now_ms) for of, at in offsets.items())
    )


def _forgets(group: str, partition: int) -> Events:
    return _at(group, _now_ms(), builders.offset_commit_tombstone(group, "t", partition))


def topic_grown(trial: Trial) -> None:
    """The topic is given another partition under a running monitor, and records arrive there, too."""
    for number in range(trial.rounds):
        with trial.writing(0.4 / trial.rounds):
            trial.log.grow()
            new = trial.log.partitions - 1
            joined = f"joined-{number}"
            member = consumer_join(joined, "m-1", epoch=1, targets={"m-1": {"t": [0, 1, 2, 3]}})
            trial.log.write([Write(new, _now_ms(), *record) for record in member])
            begun = time.monotonic()
            until(lambda: trial.monitor.groups().get(joined, {}).get("state") == "Stable", 120, "it is not followed")  # noqa: B023 - ends in this round
            trial.worst("longest time until a new partition is shown, s", time.monotonic() - begun)
        for offset in range(1, 200):
            record = builders.offset_commit(f"new-{number}-{offset % 7}", "t", 0, offset, timestamp=_now_ms())
            trial.log.write([Write(new, _now_ms(), *record)])
        with trial.writing(0.3 / trial.rounds):
            trial.disturbed.await_reported()
        trial.monitor.kill()
        trial.restart()
        with trial.writing(0.2 / trial.rounds):
            pass
        trial.times += 1


def later_release(trial: Trial) -> None:
    """The brokers are upgraded: from one record to the next there are unknown types and versions."""
    for number in range(trial.rounds):
        with trial.writing(0.9 / trial.rounds):
            for type_ in LATER_TYPES:
                trial.log.write(unknown(type_, number))
            trial.log.write(later_version(number))
        trial.times += 1
    trial.disturbed.await_reported()
    counted = trial.monitor.samples()["group_monitor_unknown_records_total"]
    found = {dict(labels)["record_type"]: value for labels, value in counted.items()}
    for type_ in LATER_TYPES:
        assert trial.rounds == found[str(type_)], found
    assert 200 == trial.monitor.get("/ready")[0]
    trial.worst("records of unknown types", sum(found.values()))


LATER_TYPES: Final = (40, 1_000, 32_767)
"""Of releases to come."""


def unknown(type_: int, number: int) -> Events:
    """A record of an unknown type, with bytes that mean nothing here."""
    place = number % 4
    return [Write(place, _now_ms(), type_.to_bytes(2) + bytes([number % 256, 255, 7]), b"\x00\x05\xff")]


def later_version(number: int) -> Events:
    """A commit in an unknown value version: the group is known, what it committed is not."""
    key, _ = builders.offset_commit(f"later-{number}", "t", 0, 1)
    return [Write(hash_of(f"later-{number}"), _now_ms(), key, (99).to_bytes(2) + b"\x01\x02\x03")]


BOMBED, UNREADABLE = 0, 1
"""Partitions of which a value is too large, and a batch cannot be read."""
MOST_WORKER_MIB: Final = 1_300
"""Of a worker that reads a batch of 400 MB: that, its copy, and what it has besides."""
MOST_JVM_MIB: Final = 2_500


def unreadable_batches(trial: Trial) -> None:
    """Batches of 400 KB with a value of 400 MB, and of 12 KB beyond librdkafka's limit, records arriving; restarts."""
    key, _ = builders.group_metadata("bombed", generation=1, members=[])
    zeros = hostile_batches.gzip_bomb(key, 400_000_000)
    beyond = hostile_batches.zstd_bomb(key, 400_000_000)
    for number in range(1, trial.rounds + 1):
        servers, topic = trial.log.bootstrap_servers, trial.log.topic
        with trial.writing(0.4 / trial.rounds):
            hostile_batches.write(servers, topic, BOMBED, zeros)
            first = hostile_batches.write(servers, topic, UNREADABLE, beyond)
            begun = time.monotonic()
            until(lambda: UNREADABLE in _ready(trial).get("unreadable", ()), 120, lambda: f"/ready: {_ready(trial)}")
            trial.worst("longest time until /ready names the partition, s", time.monotonic() - begun)
            trial.disturbed.await_reported()
        trial.worst("largest worker, MiB", max(map(peak_mib, workers(trial.monitor)), default=0.0))
        trial.worst("largest JVM, MiB", peak_mib(jvm(trial.monitor)))
        _expect_doubt(trial, number)
        with trial.writing(0.2 / trial.rounds):
            trial.disturbed.await_reported()
        said = [line for line in trial.monitor.error_lines() if "event=unreadable_batch" in line]
        assert any(f"first_offset={first} last_offset={first}" in line for line in said), said
        assert len(said) <= number, said
        trial.monitor.kill()
        trial.restart()
        _expect_doubt(trial, number)
        with trial.writing(0.2 / trial.rounds):
            trial.disturbed.await_reported()
        trial.times += 1
    assert trial.figures["largest worker, MiB"] < MOST_WORKER_MIB, trial.figures
    assert trial.figures["largest JVM, MiB"] < MOST_JVM_MIB, trial.figures


def _ready(trial: Trial) -> dict[str, Any]:
    status, body = trial.monitor.get("/ready")
    assert 200 == status, body
    found: dict[str, Any] = json.loads(body)
    return found


def _expect_doubt(trial: Trial, batches: int) -> None:
    """Of the one partition, whatever its groups have committed since; the value was one record like others."""
    assert [UNREADABLE] == _ready(trial)["unreadable"]
    groups = json.loads(trial.monitor.get("/api/v1/groups")[1])["groups"]
    doubted = {of["group"] for of in groups if "doubt" in of}
    assert doubted
    assert {UNREADABLE} == {of["doubt"]["partition"] for of in groups if "doubt" in of}
    for name in doubted:
        assert [] == too_good(trial.monitor, name)
    samples = trial.monitor.samples()
    assert batches == sum(samples["group_monitor_unreadable_batches_total"].values()), samples
    assert [1] == [*samples["group_monitor_offsets_partitions_unreadable"].values()]
    assert batches <= sum(samples["group_monitor_undecodable_records_total"].values())


def clocks_jump(trial: Trial) -> None:
    """The brokers' clocks jump back by a day and ahead by a year, in the middle of rebalances, and are right again."""
    groups: list[str] = []
    for number in range(trial.rounds):
        begun_ms = _now_ms()
        for jump_ms in (-DAY_MS, YEAR_MS):
            group = f"jumped-{number}-{'back' if jump_ms < 0 else 'ahead'}"
            groups.append(group)
            trial.log.write(*half_a_rebalance(group, jump_ms))
            trial.disturbed.await_reported()
            # The watch looks every second.
            time.sleep(3)
            seconds = {
                dict(labels)["group"]: value
                for labels, value in trial.monitor.samples()["kafka_group_rebalancing_seconds"].items()
            }
            trial.worst("longest rebalance shown, s", seconds[group])
            assert seconds[group] <= (_now_ms() - begun_ms) / 1000 + 5, seconds
            trial.log.write(*the_other_half(group))
            until(lambda: trial.monitor.groups()[group]["state"] == "Stable", 60, "the rebalance does not end")  # noqa: B023 - ends in this round
        with trial.writing(0.5 / trial.rounds):
            pass
        trial.times += 1
    for group in groups:
        reported = trial.monitor.events(group=group)
        # A clock that went back, or ahead and back again, leaves no duration at all.
        durations = [of["detail"]["duration_ms"] for of in reported if of["kind"] == "rebalance_completed"]
        assert [0, None] == durations, reported
        assert [] == [of for of in reported if of["severity"] != INFO], reported


def half_a_rebalance(group: str, jump_ms: int) -> list[Events]:
    """A group that is well, and a member that joins it when the clock has jumped: another one has to revoke."""
    now_ms = _now_ms()
    both = {"m-1": {"t": [0, 1]}, "m-2": {"t": [2, 3]}}
    alone = consumer_join(group, "m-1", epoch=1, targets={"m-1": {"t": [0, 1, 2, 3]}})
    joins = consumer_join(group, "m-2", epoch=2, targets=both, assigned={})
    revokes = consumer_moves(
        group, "m-1", epoch=1, previous_epoch=1, assigned={"t": [0, 1]}, pending={"t": [2, 3]}, state=1
    )
    jumped_ms = now_ms + jump_ms
    commit = builders.offset_commit(group, "t", 0, 5, timestamp=jumped_ms)
    return [
        _at(group, now_ms, *alone),
        _at(group, jumped_ms, *joins),
        _at(group, jumped_ms + 500, *revokes),
        _at(group, jumped_ms + 600, commit),
    ]


def the_other_half(group: str) -> list[Events]:
    """The clock is right again, and the rebalance ends."""
    now_ms = _now_ms()
    return [
        _at(group, now_ms, *consumer_moves(group, "m-1", epoch=2, previous_epoch=1, assigned={"t": [0, 1]})),
        _at(group, now_ms + 300, *consumer_moves(group, "m-2", epoch=2, previous_epoch=2, assigned={"t": [2, 3]})),
        _at(group, now_ms + 400, builders.offset_commit(group, "t", 0, 6, timestamp=now_ms)),
    ]


def _at(group: str, time_ms: int, *records: builders.RecordBytes) -> Events:
    return [Write(hash_of(group), time_ms, *record) for record in records]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
