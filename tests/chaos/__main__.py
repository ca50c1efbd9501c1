"""`make chaos MINUTES=60 SEED=1`: three brokers and a monitor in chaos, compared with Kafka's Admin client at rest.

Faults of a printed seed are done to brokers and, at the same time, to groups, topics and the monitor. Every minute they
stop, all is healed, and once Kafka says the same twice the monitor has to say that, too. All the while it is asked for
groups whose partition has no leader, of which it must say nothing good. Ends with status 0 if there was no difference,
no wrong answer, and no commit shown too late after a leader's move.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka import KafkaException

from lab.monitor_process import until
from tests.chaos.deeds import TO_BROKERS, TO_OTHERS, Doing
from tests.chaos.kafka_answers import Groups, differences, of_kafka, of_monitor
from tests.chaos.sampler import Sampler
from tests.chaos.scene import OFFSETS, Scene, say, set_up

FAULTS_SECONDS: Final = 45.0
CLIENTS_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 90.0
"""How long groups may take to come to rest."""
READY_SECONDS: Final = 150.0
AGREE_SECONDS: Final = 60.0
"""How long the monitor may take to say what Kafka says; a lag is sampled, an offset beyond the end doubted, in time."""
VISIBLE_SECONDS: Final = 5.0
NOT_COMPARED: Final = "nothing was compared: Kafka did not say the same twice"
"""A difference until something is, or a moment without an answer would pass for a good one."""


@dataclass
class Moment:
    """A quiet moment.

    Attributes:
        differences: what the monitor said otherwise than Kafka.
        in_flux: groups that did not come to rest, and were compared but for their state and members.
        took: seconds until all was whole, at rest, ready, the same.
    """

    differences: list[str] = field(default_factory=list)
    in_flux: list[str] = field(default_factory=list)
    took: list[float] = field(default_factory=list)


def main() -> int:
    """Run; returns 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--keep", type=Path, help="a directory for what brokers and monitors leave")
    options = parser.parse_args()
    say(f"seed {options.seed}")
    chance = Random(options.seed)
    with ExitStack() as stack:
        made = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        scene = set_up(stack, made, chance)
        moments: list[Moment] = []
        end = time.monotonic() + 60 * options.minutes
        with Sampler(scene, Random(chance.random())) as sampler:
            moments.append(_told(0, quiet_moment(scene)))
            while time.monotonic() < end:
                faults(scene, chance)
                moments.append(_told(len(moments), quiet_moment(scene)))
                if moments[-1].differences and options.keep is not None:
                    _keep_logs(scene, options.keep / f"moment-{len(moments) - 1}")
    return verdict(options.seed, moments, sampler, scene)


def _keep_logs(scene: Scene, directory: Path) -> None:
    """Each broker's copy of the offsets topic as it is now: the cleaner goes on."""
    for number, node in scene.brokers.nodes.items():
        for log in node.data_dir.glob(f"log/{OFFSETS}-*"):
            # A segment may be swapped for a cleaned one meanwhile.
            with suppress(OSError, shutil.Error):
                shutil.copytree(log, directory / str(number) / log.name)


def faults(scene: Scene, chance: Random) -> None:
    """Do what is done for a while."""
    scene.calm.clear()
    scene.load.is_on.set()
    to_brokers, to_others = Random(chance.random()), Random(chance.random())
    with Doing(scene, TO_BROKERS, to_brokers, (1, 5)), Doing(scene, TO_OTHERS, to_others, (2, 8)):
        time.sleep(FAULTS_SECONDS)
        scene.calm.set()


def quiet_moment(scene: Scene) -> Moment:
    """Let all heal and come to rest, and compare."""
    moment, begun = Moment(), time.monotonic()

    def took() -> None:
        moment.took.append(time.monotonic() - begun)

    scene.calm.set()
    try:
        scene.heal()
    except AssertionError as error:
        say(f"  the cluster does not heal: {error}")
    took()
    scene.load.is_on.clear()
    if not _within(CLIENTS_SECONDS, lambda: all(of.idle.is_set() for of in scene.workers)):
        say(f"  still at work: {', '.join(of.name for of in scene.workers if not of.idle.is_set())}")
    settled = at_rest(scene)
    moment.in_flux = [name for name, said in settled.items() if not said.is_at_rest]
    took()
    is_ready = _within(READY_SECONDS, scene.monitor.is_ready)
    took()
    moment.differences = [NOT_COMPARED]
    _within(AGREE_SECONDS, lambda: _agrees(scene, moment))
    if not is_ready:
        moment.differences.append(f"not ready after {READY_SECONDS:g} s")
        say(f"  not ready: {_said_of_ready(scene)}\n{scene.monitor.process.what_it_said()}")
    took()
    return moment


def _said_of_ready(scene: Scene) -> str:
    try:
        return scene.monitor.get("/ready")[1]
    except OSError as error:
        return repr(error)


def at_rest(scene: Scene) -> Groups:
    """What Kafka says once it says the same twice, and all groups are at rest, if they come to rest."""
    said: list[Groups] = [{}]

    def is_at_rest() -> bool:
        now = _kafka(scene)
        same = now is not None and now == said[-1] and all(of.is_at_rest for of in now.values())
        said.append(now if now is not None else {})
        time.sleep(1)
        return same

    _within(SETTLE_SECONDS, is_at_rest)
    return said[-1]


def _agrees(scene: Scene, moment: Moment) -> bool:
    """Compare; what Kafka says differently before and after is not compared."""
    before = _kafka(scene)
    try:
        shown = of_monitor(json.loads(scene.monitor.get("/api/v1/groups")[1]))
    except (OSError, ValueError, KeyError, AssertionError) as error:
        moment.differences = [f"the monitor gives no answer: {error!r}"]
        return False
    after = _kafka(scene)
    if before is None or before != after:
        return False
    moment.differences = differences(before, shown)
    return not moment.differences


def _kafka(scene: Scene) -> Groups | None:
    """What Kafka says; None where it does not now."""
    with suppress(KafkaException):
        return scene.apart.ask(of_kafka)
    return None


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold."""
    try:
        until(holds, seconds, "")
    except AssertionError:
        return False
    return True


def _told(number: int, moment: Moment) -> Moment:
    whole, rest, ready, agreed = moment.took
    say(
        f"quiet moment {number}: {len(moment.differences)} differences; whole after {whole:.0f} s, "
        f"at rest {rest:.0f} s, ready {ready:.0f} s, the same {agreed:.0f} s"
    )
    for difference in moment.differences:
        say(f"  DIFFERENT: {difference}")
    for group in moment.in_flux:
        say(f"  not at rest: {group}")
    return moment


def verdict(seed: int, moments: list[Moment], sampler: Sampler, scene: Scene) -> int:
    """The table."""
    late = [f"{seconds:.1f} s: {what}" for seconds, what in scene.moved if seconds > VISIBLE_SECONDS]
    wrong = {
        "differences to Kafka's Admin client": sum(len(of.differences) for of in moments),
        "wrong answers of groups that may be in a partition without leader": len(sampler.wrong),
        "leader moves after which a new commit was shown later than 5 s": len(late),
        "ends of the monitor that nobody asked for": len(scene.monitor.ended_alone),
    }
    rows = {
        "seed": seed,
        "quiet moments": len(moments),
        **wrong,
        "leader moves measured": len(scene.moved),
        "longest time from a leader's move to a new commit shown, s": round(max(scene.moved, default=(0.0, ""))[0], 1),
        "longest time from brokers healed to all the same, s": round(
            max(of.took[-1] - of.took[0] for of in moments), 1
        ),
        "groups that did not come to rest": sum(len(of.in_flux) for of in moments),
        "starts of the monitor": scene.monitor.runs,
        **dict(sorted(sampler.counts.items())),
    }
    print("\n| what | |\n|---|---|")  # noqa: T201 - as said
    for name, value in rows.items():
        print(f"| {name} | {value} |")  # noqa: T201 - as said
    for line in (*late, *scene.monitor.ended_alone):
        print(line)  # noqa: T201 - as said
    return 1 if any(wrong.values()) or not moments else 0


if __name__ == "__main__":
    sys.exit(main())
