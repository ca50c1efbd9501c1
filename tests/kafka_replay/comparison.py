"""Where Kafka and a replica differ after the same log, and the differences by design, each with its reason.

A difference by design is folded: where it is exactly what its name says, Kafka's side is made the replica's, and the
name is noted. Whatever still differs is a fault of one of the two. Every name is met by some log of the tests.

    by design                     what Kafka has, what the replica has, and why
    a group without records       An empty group of which nothing is left in the log: a simple one whose offsets are
                                  gone or whose transaction was aborted, any other whose epoch was never written. Kafka
                                  keeps it in memory until it cleans up or restarts.
    offsets without a group       A group's tombstone takes it from Kafka's memory, also where offsets of it are left,
                                  which no coordinator lets happen. They stay, and are a simple group's after the next
                                  load; the replica has that group at once.
    the time of a simple group    When a group came to be of which only offsets are known: Kafka takes the clock, the
                                  replica nothing.
    partitions without an epoch   Where a record names no epoch of its partitions (before 4.3), Kafka takes the
                                  member's. The replica says that there is none.
    a deleted target              Kafka marks the tombstone of an assignment epoch by -1 until the group's own follows.
                                  Where the cleaner took that one, because the group came again, the replica has what
                                  a coordinator's memory starts with, and at epoch 1 not the state Assigning.
    readiness by tasks            State of a streams group of a 4.1 broker, which does not write which topology was
                                  found valid. Kafka 4.3 says NotReady until it is; the replica goes by the tasks given.
    a member without an epoch     Of a member whose metadata alone are known, Kafka has the epoch 0 of one that joins,
                                  or nothing at all, and of one whose assignment has ended its last state. The replica
                                  says -1, and that nothing is assigned.

And what makes Kafka's loader give up, after which no group of the partition can be used until the log is mended. The
replica goes on, and must say what it can of all groups. What both hold before is compared. So is what both hold after a
record that Kafka cannot decode: the replica passes it over and counts it, and Kafka is given the log without it.

    the loader gives up on        because
    a record of another layout    Share groups of 4.0 (early access) wrote other values under the same version; damage.
    a later value version         Of a newer broker; the replica reads what it can (KIP-915).
    a tombstone out of order      A tombstone, and what must precede it is not there: a log that was read while it was
                                  cleaned (KAFKA-19862), or a downgrade that forgot records (KIP-915).
    a group of another type       A record of the former protocol, after the group was converted.
    a partition owned twice       An owner that gives a partition up after another got it (KAFKA-16147).
    a streams member by half      Its tombstone, of one of which only the metadata were left.
"""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.replica import Replica
from coordinator_model.state.membership import FIRST_EPOCH
from tests.kafka_replay.held import held_by
from tests.kafka_replay.judge import Held, Judge, Verdict
from tests.kafka_replay.logs import JudgedLog

MISSING: Final = "nothing"

UNDECODABLE: Final = "a record of another layout"
GIVES_UP: Final = {
    UNDECODABLE: re.compile(r"Could not read record with version \d+ from (key|value)'s buffer"),
    "a later value version": re.compile(r"Found an unknown record version"),
    "a tombstone out of order": re.compile(r"Received a tombstone record to delete (member|group|target assignment)"),
    "a group of another type": re.compile(r"Group \S+ is not a \S+ group"),
    "a partition owned twice": re.compile(r"Cannot set the epoch of \S+ to -?\d+ because the partition is still owned"),
    "a streams member by half": re.compile(r'StreamsGroupMember.memberEpoch\(\)" is null'),
}


@dataclass(slots=True)
class Comparison:
    """Faults, and the names of the differences by design and of the reasons to give up that were met."""

    faults: list[str] = field(default_factory=list)
    by_design: set[str] = field(default_factory=set)
    given_up: dict[str, str] = field(default_factory=dict)
    """Name of a log that Kafka gave up → the name of why."""
    places: int = 0
    """How often both were looked at."""

    def look(self, where: str, kafka: Held, replica: Held) -> None:
        """Compare what both hold at one place of a log."""
        self.places += 1
        if kafka == replica:
            return
        kafka = deepcopy(kafka)
        for name in {*kafka["groups"], *replica["groups"]}:
            self.by_design |= {difference for difference, fold in BY_DESIGN.items() if fold(kafka, replica, name)}
        self.faults += [
            f"{where}, {'.'.join(path)}: Kafka has {left!r}, the replica {right!r}"
            for path, left, right in _differing(kafka, replica)
        ]


def compare(log: JudgedLog, judge: Judge, found: Comparison) -> None:
    """Give a log to both. Where Kafka's loader gives up, as far as it came, and on without what it cannot decode."""
    while (verdict := judge.load(log.entries)).failed is not None:
        at, error = verdict.failed.at, verdict.failed.error
        names = [name for name, pattern in GIVES_UP.items() if pattern.search(error)]
        found.given_up[log.name] = names[0] if names else error
        found.faults += [] if names else [f"{log.name}: Kafka gives up: {error}"]
        log = log.unread_by_kafka(at) if UNDECODABLE in names else log.until(at)
    look(log, verdict, found, Replica())


def look(log: JudgedLog, verdict: Verdict, found: Comparison, replica: Replica) -> None:
    """Replay the log, and compare at each of its places."""
    assert len(log.read) == len(verdict.shown)
    read = 0
    for until, kafka in zip(log.read, verdict.shown, strict=True):
        for of in log.records[read:until]:
            replica.replay(of.place, of.key, of.value)
        read = until
        if until == len(log.records):
            replica.settle()
        found.look(f"{log.name} after {until} records", kafka, held_by(replica))
    unknown = {str(type_): verdict.unknown_types.count(type_) for type_ in verdict.unknown_types}
    if unknown != replica.counters.unknown_records:
        found.faults.append(f"{log.name}: unknown to Kafka {unknown}, to us {replica.counters.unknown_records}")


def _group_without_records(kafka: Held, replica: Held, name: str) -> bool:
    if name in replica["groups"] or name in kafka["offsets"]:
        return False
    group = kafka["groups"][name]
    unwritten = group["epoch"] == (0 if group["type"] == "classic" else FIRST_EPOCH)
    if not unwritten or group["members"] or group.get("targets") or group["state"] != "Empty":
        return False
    del kafka["groups"][name]
    return True


def _offsets_without_group(kafka: Held, replica: Held, name: str) -> bool:
    ours = replica["groups"].get(name, {})
    if name in kafka["groups"] or name not in kafka["offsets"] or not ours.get("simple") or ours["epoch"] != 0:
        return False
    kafka["groups"][name] = ours
    return True


def _time_of_simple_group(kafka: Held, replica: Held, name: str) -> bool:
    group, ours = kafka["groups"].get(name, {}), replica["groups"].get(name, {})
    if not group.get("simple") or ours.get("state_timestamp_ms") != -1 or group["state_timestamp_ms"] == -1:
        return False
    group["state_timestamp_ms"] = -1
    return True


def _partitions_without_epoch(kafka: Held, replica: Held, name: str) -> bool:
    met = False
    for member, ours in _members(kafka, replica, name):
        newest = member.get("newest_partition_epoch", -1)
        if newest != -1 and ours.get("newest_partition_epoch") == -1 and newest == max(member["epoch"], 0):
            member["newest_partition_epoch"] = -1
            met = True
    return met


def _deleted_target(kafka: Held, replica: Held, name: str) -> bool:
    group, ours = kafka["groups"].get(name, {}), replica["groups"].get(name, {})
    if (group.get("assignment_epoch"), ours.get("assignment_epoch")) != (-1, FIRST_EPOCH):
        return False
    group["assignment_epoch"] = FIRST_EPOCH
    if group["state"] == "Assigning" and group["epoch"] == FIRST_EPOCH:
        group["state"] = ours["state"]
    return True


def _readiness_by_tasks(kafka: Held, replica: Held, name: str) -> bool:
    group, ours = kafka["groups"].get(name, {}), replica["groups"].get(name, {})
    if group.get("type") != "streams" or group["state"] != "NotReady" or group["validated_topology_epoch"] != -1:
        return False
    given = any(target["active"] for target in group["targets"].values())
    if not given or ours.get("state") not in ("Assigning", "Reconciling", "Stable"):
        return False
    group["state"] = ours["state"]
    return True


def _member_without_epoch(kafka: Held, replica: Held, name: str) -> bool:
    met = False
    for member, ours in _members(kafka, replica, name):
        if ours.get("epoch") == -1 and member.get("epoch") in (0, None):
            blank = ("epoch", "previous_epoch", "state", "assigned", "pending_revocation", "newest_partition_epoch")
            member.update({key: ours[key] for key in blank if key in ours and not member.get(key)})
            met = True
        elif ours.get("epoch") == member.get("epoch") == -1 and member["state"] != ours["state"]:
            member["state"] = ours["state"]
            met = True
    return met


def _members(kafka: Held, replica: Held, name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    ours = replica["groups"].get(name, {}).get("members", {})
    for member_id, member in kafka["groups"].get(name, {}).get("members", {}).items():
        yield member, ours.get(member_id, {})


BY_DESIGN: Final[dict[str, Callable[[Held, Held, str], bool]]] = {
    "a group without records": _group_without_records,
    "offsets without a group": _offsets_without_group,
    "the time of a simple group": _time_of_simple_group,
    "partitions without an epoch": _partitions_without_epoch,
    "a deleted target": _deleted_target,
    "readiness by tasks": _readiness_by_tasks,
    "a member without an epoch": _member_without_epoch,
}


def _differing(left: Any, right: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from _differing(left.get(key, MISSING), right.get(key, MISSING), (*path, key))
    elif left != right:
        yield path, left, right
