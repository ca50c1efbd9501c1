"""How large a history is, what writing it costs, and how soon a question is answered.

    python -m bench.history [--events N] [--groups N] [--days N] [--dir DIR] [--json]

A history is made of events as of a rolling cluster, and one state of a group for every 25. The first hundred
writes are of 1,000 entries, as a monitor makes them, and timed; the rest is written in larger pieces, and merged as a
monitor merges it. Questions are asked as `group-monitor history` asks them, each in a process of its own.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from streaming.history.store import HistoryStore
from streaming.history.tables import DAY_MS, EVENTS, GROUPS, Table, in_order, rows

ROOT = Path(__file__).resolve().parent.parent
BEGIN_MS = 20_000 * DAY_MS
PROGRESS = "progress.json"
WRITES_TIMED = 100
EVENTS_A_STATE = 25
EVENTS_A_PIECE = 250_000
KINDS = ("member_joined", "member_left", "rebalance_started", "rebalance_completed", "offset_rewound")
MEMBERS = [f"service-{place}-{uuid.uuid5(uuid.NAMESPACE_URL, str(place))}" for place in range(64)]


@dataclass(frozen=True)
class Cluster:
    """Groups that events are about."""

    events: int
    groups: int
    days: int

    def group(self, number: int) -> str:
        """Of whom the event of a number is: a tenth of all events are of one group in a hundred."""
        place = number * 2_654_435_761 % 4_294_967_296
        if place % 10 == 0:
            return f"busy-{place // 10 % max(1, self.groups // 100)}"
        return f"team-{place % 37}.service-{place // 10 % self.groups}"

    def time_ms(self, number: int) -> int:
        """Events come evenly."""
        return BEGIN_MS + number * self.days * DAY_MS // self.events

    def event(self, number: int) -> dict[str, Any]:
        """The entry of an event."""
        kind = KINDS[number % len(KINDS)]
        fields = {"time": self.time_ms(number), "group": self.group(number), "kind": kind, "severity": "info"}
        place = {"partition": number % 50, "offset": number}
        return {
            "kind": "event",
            "event": {"id": _id(number), **fields, **place, "detail": json.loads(_detail(number)), "inferred": False},
        }

    def state(self, number: int) -> dict[str, Any]:
        """The entry of a state."""
        state = json.loads(_state(self.group(number), number, self.time_ms(number)))
        return {"kind": "group", "group": self.group(number), "time": self.time_ms(number), "state": state}

    def entries(self, first: int, last: int) -> Iterator[dict[str, Any]]:
        """Entries of the spool, in the order of their time."""
        for number in range(first, last):
            yield self.event(number)
            if number % EVENTS_A_STATE == 0:
                yield self.state(number)

    def tables(self, first: int, last: int) -> dict[Table, pa.Table]:
        """The same as rows, made column by column: ten million would take an hour otherwise."""
        numbers = range(first, last)
        events = {
            "id": [_id(number) for number in numbers],
            "time": [self.time_ms(number) for number in numbers],
            "group": [self.group(number) for number in numbers],
            "kind": [KINDS[number % len(KINDS)] for number in numbers],
            "severity": ["info"] * len(numbers),
            "partition": [number % 50 for number in numbers],
            "offset": list(numbers),
            "detail": [_detail(number) for number in numbers],
            "inferred": [False] * len(numbers),
        }
        some = [number for number in numbers if number % EVENTS_A_STATE == 0]
        states = {
            "group": [self.group(number) for number in some],
            "time": [self.time_ms(number) for number in some],
            "sequence": some,
            "state": [_state(self.group(number), number, self.time_ms(number)) for number in some],
        }
        return {
            EVENTS: in_order(EVENTS, pa.table(events, schema=EVENTS.schema)),
            GROUPS: in_order(GROUPS, pa.table(states, schema=GROUPS.schema)),
        }


def _id(number: int) -> str:
    return f"{number % 50}-{number}-{KINDS[number % len(KINDS)]}-0"


def _detail(number: int) -> str:
    partitions = f"{number % 12},{(number + 5) % 12}"
    return f'{{"member_id":"{MEMBERS[number % 64]}","epoch":{number // 5},"partitions":{{"orders":[{partitions}]}}}}'


def _state(group: str, number: int, time_ms: int) -> str:
    """A group of three members and twelve partitions, of the form and about the size that a monitor writes."""
    members = ",".join(
        f'{{"member_id":"{MEMBERS[(number + place) % 64]}","instance_id":null,"client_id":"service",'
        f'"client_host":"/10.0.0.7","protocol":"consumer","epoch":{number // 5},"state":"Stable",'
        f'"assigned":{{"orders":{parts}}},"pending_revocation":{{}},"target":{{"orders":{parts}}}}}'
        for place, parts in enumerate(("[0,1,2,3]", "[4,5,6,7]", "[8,9,10,11]"))
    )
    offsets = ",".join(
        f'{{"topic":"orders","partition":{partition},"offset":{number * 7 + partition},"leader_epoch":3,"metadata":"",'
        f'"commit_timestamp":{time_ms - partition},"topic_id":null,"subscribed":true}}'
        for partition in range(12)
    )
    return (
        f'{{"group":"{group}","type":"consumer","state":"Stable","epoch":{number // 5},'
        f'"assignment_epoch":{number // 5},'
        f'"protocol":"uniform","simple":false,"members":[{members}],"offsets":[{offsets}],"migration":'
        '{"phase":"upgraded","members":3,"upgraded_members":3,"mixed_since":null,"blockers":[],"leftovers":0}}'
    )


def make(directory: Path, cluster: Cluster) -> dict[str, float]:
    """Write the history, or go on with one that was not finished; returns what that took."""
    progress = directory / PROGRESS
    done: dict[str, Any] = (
        json.loads(progress.read_text()) if progress.exists() else {"first": 0, "writes": [], "compacting": 0.0}
    )
    while done["first"] <= cluster.events:
        first, over = done["first"], done["first"] == cluster.events
        timed = len(done["writes"]) < WRITES_TIMED
        last = min(cluster.events, first + (950 if timed else EVENTS_A_PIECE))
        store = HistoryStore(directory, partial(_clock_ms, cluster, last, over))
        entries = list(cluster.entries(first, last)) if timed else []
        begun = time.perf_counter()
        tables = rows(enumerate(entries, first)) if timed else cluster.tables(first, last)
        for table, ordered in tables.items() if not over else ():
            store.write(table, ordered)
        done["writes"] += [time.perf_counter() - begun] if timed else []
        begun = time.perf_counter()
        store.compact()
        done["compacting"] += time.perf_counter() - begun
        done["first"] = last + over
        progress.write_text(json.dumps(done))
    HistoryStore(directory).set_complete(BEGIN_MS)
    return {
        "write_of_1000_entries_ms": 1_000 * statistics.median(done["writes"]),
        "compaction_seconds": done["compacting"],
    }


def _clock_ms(cluster: Cluster, number: int, over: bool) -> int:
    """The time at which a number is written; two days later when all is over."""
    return cluster.time_ms(number) + over * 2 * DAY_MS


def sizes(directory: Path, events: int) -> dict[str, float]:
    """Bytes on the disk for each row, and how many files there are."""
    store = HistoryStore(directory)
    of = {table: [file for day in store.days(table) for file in store.files(table, day)] for table in (EVENTS, GROUPS)}
    totals = {table: sum(file.path.stat().st_size for file in files) for table, files in of.items()}
    return {
        "files": sum(map(len, of.values())),
        "bytes_an_event": totals[EVENTS] / events,
        "bytes_a_state": totals[GROUPS] / (events // EVENTS_A_STATE),
    }


def ask(directory: Path, cluster: Cluster) -> dict[str, float]:
    """Seconds until the command has answered, the worst of three, start of the process included."""
    middle = str(cluster.time_ms(cluster.events // 2))
    some = next(group for group in map(cluster.group, range(100)) if not group.startswith("busy"))
    questions = {
        "timeline_of_a_group": (some,),
        "timeline_of_a_busy_group": ("busy-0",),
        "timeline_of_a_day": (some, "--since", middle, "--until", str(int(middle) + DAY_MS)),
        "group_in_the_middle": (some, "--at", middle),
        "group_at_the_end": ("busy-0", "--at", str(cluster.time_ms(cluster.events))),
        "group_there_never_was": ("nobody", "--at", middle),
    }
    return {name: max(_asked(directory, words) for _ in range(3)) for name, words in questions.items()}


def _asked(directory: Path, words: tuple[str, ...]) -> float:
    command = [sys.executable, "-m", "streaming", "history", *words, "--dir", str(directory), "--json"]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)  # noqa: S603 - our own command
    seconds = time.perf_counter() - begun
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr.decode())
    return seconds


def main() -> None:
    """Make a history, measure it, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument(
        "--dir", type=Path, help="keep the history there; one that is there is gone on with, or only asked"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    cluster = Cluster(given.events, given.groups, given.days)
    directory = given.dir or Path(tempfile.mkdtemp(prefix="history-"))
    try:
        found: dict[str, float] = {"events": given.events}
        directory.mkdir(parents=True, exist_ok=True)
        found |= make(directory, cluster)
        found |= sizes(directory, given.events)
        found |= {f"{name}_seconds": seconds for name, seconds in ask(directory, cluster).items()}
    finally:
        if given.dir is None:
            shutil.rmtree(directory)
    if given.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        sys.stdout.writelines(f"{name:32} {value:>14,.2f}\n" for name, value in found.items())


if __name__ == "__main__":
    main()
