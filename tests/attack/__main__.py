"""`make attack`: a broker and a monitor on loopback, attacked in every way that once worked, or might.

    python -P -m tests.attack [--which NAME[,NAME…]] [--write]

Each attack is bounded; all take some minutes. During each, the probes are asked as an orchestrator asks them, and an
offset is committed that has to be shown afterwards. Ends with status 1 where anything did not hold: a probe was
refused, the commit is not shown, or memory and descriptors are not back to within a tenth of what they were. Attacks
that are tests (`by_tests.py`) come last.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from typing import Final
from unittest import mock

from coordinator_model.state.shards import offsets_partition
from streaming.demo.embedded_broker import EmbeddedBroker
from tests.attack import attacks, by_tests, results
from tests.attack.attacks import ATTACKS, Attack
from tests.attack.results import HEADERS, Result, left
from tests.attack.scene import SHOWN_SECONDS, Figures, Scene, make_topic

REST_SECONDS: Final = 240.0
"""How long what was held may take to come back: closed connections, collected memory."""
START_SECONDS: Final = 240.0
"""A broker's, on a machine that others use as well."""
BY_TESTS: Final = "by_tests"
"""The name of all that are tests."""
LOOK_SECONDS: Final = 4.0
"""Between two looks, and two commits, while it comes to rest."""
WARM_SECONDS: Final = 20.0
"""A start is followed by trims of memory, and the first answers load what makes them."""
WARM_GROUPS: Final = 300
OFFSETS_PARTITIONS: Final = 50
"""As a broker has by default."""
REST_AT_FIRST_SECONDS: Final = 75.0
"""What was needed for these groups is returned by then, by the last of the collections (`monitor/memory_trim.py`)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack; returns 1 where anything did not hold."""
    parser = argparse.ArgumentParser(prog="make attack", description="Attack a monitor.")
    names = [*(attack.does.__name__ for attack in ATTACKS), BY_TESTS]
    parser.add_argument("--which", default=",".join(names), help="names of attacks, by default all")
    parser.add_argument("--keep", type=Path, help="a directory for what broker and monitors leave")
    parser.add_argument("--write", action="store_true", help="keep the figures for the docs")
    chosen = parser.parse_args(arguments)
    wanted = chosen.which.split(",")
    if unknown := [name for name in wanted if name not in names]:
        parser.error(f"--which: found {', '.join(unknown)}, accepted: {', '.join(names)}")
    chosen_attacks = [attack for attack in ATTACKS if attack.does.__name__ in wanted]
    found: list[Result] = []
    for row in _tried_on_monitors(chosen_attacks, chosen.keep) if chosen_attacks else ():
        say(" | ".join(row.cells()))
        found.append(row)
        if chosen.write:
            results.save([row], {})
    say("")
    for line in table(found):
        say(line)
    of_tests = by_tests.run() if BY_TESTS in wanted else {}
    broken = [test for test, came in of_tests.items() if came == by_tests.BROKEN]
    say(f"{len(of_tests)} that are tests, of which did not hold: {', '.join(broken) or 'none'}")
    if chosen.write:
        results.save([], of_tests)
    return 1 if broken or any(row.broken for row in found) else 0


def _tried_on_monitors(chosen: Sequence[Attack], keep: Path | None) -> Iterator[Result]:
    """What came of each, as it comes, on one monitor for all of a kind."""
    with ExitStack() as stack:
        directory = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attack-")))
        with mock.patch.object(EmbeddedBroker, "_START_SECONDS", START_SECONDS):
            broker = stack.enter_context(EmbeddedBroker(directory / "broker"))
        make_topic(broker.bootstrap_servers)
        for kind in dict.fromkeys(attack.kind for attack in chosen):
            with Scene(kind, broker.bootstrap_servers, directory / kind) as scene:
                warm_up(scene)
                for attack in chosen:
                    if attack.kind == kind:
                        yield tried(attack, scene)


def warm_up(scene: Scene) -> None:
    """Have it follow groups as people name them, answer at each address, forget the groups, and come to rest.

    What a process takes for good as it first does a thing is not the attack's.
    """
    named = (f"orders-of-shop-{number}" for number in range(2 * WARM_GROUPS))
    # After the attack before, coordinators may not have loaded partitions with what they have not written.
    lost = (attacks.BOMBED, attacks.UNREADABLE)
    groups = [name for name in named if offsets_partition(name, OFFSETS_PARTITIONS) not in lost][:WARM_GROUPS]
    scene.commit(dict.fromkeys(groups, 1))
    for _ in range(2):
        is_shown = scene.commit_one()
        end = time.monotonic() + WARM_SECONDS / 2
        while time.monotonic() < end or not is_shown():
            for path in ("/", "/metrics", "/api/v1/groups", "/plan", "/roll"):
                scene.status(path)
            time.sleep(0.2)
        scene.delete(groups)
    end = time.monotonic() + REST_AT_FIRST_SECONDS
    while time.monotonic() < end:
        scene.commit_one()
        time.sleep(LOOK_SECONDS)


def tried(attack: Attack, scene: Scene) -> Result:
    """What came of an attack."""
    begun, before = time.monotonic(), scene.figures()
    broken: list[str] = []
    with scene.probed() as probes:
        is_shown = scene.commit_one()
        try:
            attack.does(scene)
        except (AssertionError, OSError, HTTPException) as error:
            broken.append(str(error).partition("\n")[0])
    shown = _within(SHOWN_SECONDS, is_shown)
    after = _at_rest(scene, before)
    if not shown:
        broken.append("a commit of meanwhile is not shown")
    if not attack.may_refuse:
        broken += [f"{path} without an answer {of} times" for path, of in probes.unanswered.items() if of]
        broken += [f"unhealthy {probes.refused['/healthz']} times"] if probes.refused["/healthz"] else []
    if scene.status("/healthz") != 200 or scene.status("/ready") != 200:
        broken.append("probes are refused afterwards")
    return Result(
        attack=attack.name,
        before=before,
        during=probes.most or before,
        after=after,
        asked=probes.asked,
        unanswered=sum(probes.unanswered.values()),
        unhealthy=probes.refused["/healthz"],
        unready=probes.refused["/ready"],
        slowest_seconds=round(probes.slowest_seconds, 3),
        shown=shown,
        seconds=round(time.monotonic() - begun, 1),
        broken=[*broken, *left(before, after)],
    )


def _at_rest(scene: Scene, before: Figures) -> Figures:
    """What is held once it is back, or after a while, in which an offset is committed now and then, as everywhere.

    Spark remembers the last micro-batch until the next one, and ends workers that have nothing to do for a minute.
    """

    def is_back() -> bool:
        scene.commit_one()
        return not left(before, scene.figures())

    _within(REST_SECONDS, is_back, every_seconds=LOOK_SECONDS)
    return scene.figures()


def _within(seconds: float, holds: Callable[[], bool], *, every_seconds: float = 0.5) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(every_seconds)
    return True


def table(found: Sequence[Result]) -> list[str]:
    """Columns as wide as they need."""
    rows = [HEADERS, *(tuple(row.cells()) for row in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def say(text: str) -> None:
    """A line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
