"""`make brokers`: a monitor beside a real broker of each release, compared with that release's own tool.

    python -m tests.brokers [--which RELEASE[,RELEASE…]] [--only-upgrades]

Keeps a recording of each (`tests/recordings/moments`), and writes what came of it into `results.json`, of which
`python -m tests.doc_tables` makes a table. Ends with status 1 where anything differs. A release whose jars or Java
cannot be had is skipped by name, and counted.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from lab.monitor_process import MonitorProcess, until
from streaming.base.errors import CannotTellError
from tests.brokers import moments as recordings
from tests.brokers import results
from tests.brokers.moments import Moment, views_at
from tests.brokers.node import OFFSETS_PARTITIONS, Node
from tests.brokers.printed import Printout, ReleaseTool, Said, differences, said
from tests.brokers.releases import BY_NAME, Release
from tests.brokers.results import Result
from tests.brokers.story import UNCERTAIN, Expected, Story
from tests.brokers.upgrades import asked, attempts, codes

_MOMENT_SECONDS: Final = 180.0
"""How long a moment may take to come, on a busy machine."""
_READY_SECONDS: Final = 300.0
_LONGEST: Final = 4000
"""Characters of a trace that are printed: some carry the stacks of a JVM."""
_OFFSETS_TOPIC: Final = "__consumer_offsets"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.brokers", description="Try brokers of each release.")
    parser.add_argument("--which", default=",".join(BY_NAME), help="names of releases, by default all")
    parser.add_argument("--only-upgrades", action="store_true", help="leave out the moments; their rows stay")
    chosen = parser.parse_args()
    names = chosen.which.split(",")
    if unknown := [name for name in names if name not in BY_NAME]:
        parser.error(f"--which: found {', '.join(unknown)}, accepted: {', '.join(BY_NAME)}")
    found = []
    for name in names:
        begun = time.monotonic()
        found.append(tried(BY_NAME[name], only_upgrades=chosen.only_upgrades))
        results.save(found[-1:])
        say(f"{row(found[-1])}  ({time.monotonic() - begun:.0f} s)")
    skipped = [of.release for of in found if of.skipped is not None]
    wrong = [of.release for of in found if of.skipped is None and not of.is_right]
    say(f"{len(found) - len(skipped)} releases tried, {len(skipped)} skipped{named(skipped)}")
    say(f"{len(wrong)} of them not as it has to be{named(wrong)}")
    return 1 if wrong else 0


def named(names: list[str]) -> str:
    """`: one, two`, nothing of none."""
    return f": {', '.join(names)}" if names else ""


def row(found: Result) -> str:
    """A release in a few lines."""
    if found.skipped is not None:
        return f"{found.release}: skipped, {found.skipped}"
    first = (
        f"{found.release} ({found.runs_on}): check {found.check[0]}, monitor {equal(found.monitor)}, "
        f"record and replay {equal(found.recording)}, gate downgrade {found.downgrade[0]}"
    )
    lines = [first, *(f"  check: {of}" for of in found.check[1])]
    for what, by_moment in (("monitor", found.monitor), ("recording", found.recording)):
        lines += [f"  {what}, {moment}: {of}" for moment, unlike in by_moment.items() for of in unlike]
    for of in found.upgrades:
        lines.append(
            f"  {'ok   ' if of['right'] else 'WRONG'} {of['kind']}: gate {of['gate'][0]} {','.join(of['gate'][1])}; "
            f"plan {of['plan'][0]} {','.join(of['plan'][1])}; broker {of['broker']}"
        )
    lines += [] if found.failed is None else [f"  failed: {found.failed}"]
    return "\n".join(lines)


def equal(by_moment: dict[str, list[str]]) -> str:
    """`5 of 5 equal`."""
    return f"{sum(not unlike for unlike in by_moment.values())} of {len(by_moment)} equal"


def tried(release: Release, *, only_upgrades: bool) -> Result:
    """Try one release."""
    kept = {of.release: of for of in results.load()}.get(release.name)
    row: dict[str, Any] = {"release": release.name}
    if only_upgrades and kept is not None:
        row |= {"monitor": kept.monitor, "recording": kept.recording}
    with tempfile.TemporaryDirectory(prefix="brokers-") as held, ExitStack() as ends:
        directory = Path(held)
        try:
            node = Node(release, directory / "broker")
        except RuntimeError as error:
            return Result(**row, skipped=str(error).splitlines()[0])
        zookeeper = ", ZooKeeper" if release.needs_zookeeper else ""
        row["runs_on"] = f"Java {'11' if release.needs_java_11 else '17 or 21'}{zookeeper}"
        try:
            ends.enter_context(node)
            monitor = MonitorProcess(directory / "monitor", node.bootstrap_servers, state=directory / "state")
            ends.enter_context(monitor)
            until(monitor._has_said_where, _READY_SECONDS, "the monitor does not say where it listens")
            monitor.await_ready(_READY_SECONDS)
            row["check"] = checked(monitor)
            tool = ends.enter_context(ReleaseTool(release, node.bootstrap_servers, log=directory / "tool.log"))
            story = ends.enter_context(Story(release, node, tool, directory))
            story.begin()
            if not only_upgrades:
                play(release, story, tool, monitor, row)
            status, answer = asked(monitor, "gate", "downgrade", "--target-version", release.version)
            row["downgrade"] = (status, codes(answer))
            tries = attempts(release, node.bootstrap_servers, monitor, directory)
            row["upgrades"] = [asdict(attempt) for attempt in tries]
        except Exception as error:  # noqa: BLE001 - after any error the other releases are tried
            say(traceback.format_exc()[:_LONGEST])
            row["failed"] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
    return Result(**row)


def checked(monitor: MonitorProcess) -> tuple[int, list[str]]:
    """Exit status of `check` with the monitor's own configuration, and each line that is not ok."""
    command = [sys.executable, "-m", "streaming", "check", "--config", str(monitor.config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell takes part
    try:
        found = json.loads(done.stdout)["checks"]
    except ValueError:
        return done.returncode, [(done.stderr.strip().splitlines() or ["nothing"])[-1]]
    return done.returncode, [f"{of['status']}: {of['check']}: {of['detail']}" for of in found if of["status"] != "ok"]


def play(release: Release, story: Story, tool: ReleaseTool, monitor: MonitorProcess, row: dict[str, Any]) -> None:
    """The five moments: the running monitor at each of them, and the recording afterwards."""
    reached, row["monitor"], row["recording"] = [], {}, {}
    groups: set[str] = set()
    for name, expected in story.moments():
        groups |= expected.keys()
        moment, unlike = agreement(release, name, expected, sorted(groups), tool, monitor, story.servers)
        row["monitor"][name] = unlike
        if not moment.until:
            raise CannotTellError(f"{name}: {unlike[0]}")
        reached.append(moment)
    with tempfile.TemporaryDirectory(prefix="recorded-") as held:
        log = recordings.log_of(release.name, Path(held))
        command = [sys.executable, "-m", "streaming", "record", "--bootstrap-server", story.servers, "--out", str(log)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell takes part
        if done.returncode != 0:
            raise CannotTellError(f"record ended with {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
        for moment in reached:
            views = views_at(log, moment)
            row["recording"][moment.name] = unlike_at(release, moment, views)
        recordings.save(release.name, reached)
        recordings.log_of(release.name).write_bytes(log.read_bytes())


def unlike_at(release: Release, moment: Moment, views: dict[str, Any]) -> list[str]:
    """Differences between replayed groups and what the tool printed, all groups."""
    return [
        f"{group}: {of}"
        for group in sorted(moment.printed.keys() | views.keys())
        for of in differences(
            said(moment.printed[group]) if group in moment.printed else None,
            views.get(group),
            writes_static_returns=release.writes_static_returns,
        )
    ]


def agreement(
    release: Release,
    name: str,
    expected: Expected,
    groups: list[str],
    tool: ReleaseTool,
    monitor: MonitorProcess,
    servers: str,
) -> tuple[Moment, list[str]]:
    """The moment as soon as the tool says what is expected, twice, and the monitor the same in between.

    Where that never comes, the last that was said, with its differences.
    """
    deadline = time.monotonic() + _MOMENT_SECONDS
    unlike = ["the tool never answered"]
    moment = Moment(name, {}, {})
    while time.monotonic() < deadline:
        before = all_said(tool, groups)
        if before is None or not holds(expected, before[1]):
            unlike = [f"the tool never said {expected}, but {before and before[1]}"]
            time.sleep(0.3)
            continue
        ends = ends_of(servers)
        views = monitor.groups()
        after = all_said(tool, groups)
        if after is not None and before[1] == after[1]:
            moment = Moment(name, ends, after[0])
            unlike = unlike_at(release, moment, views)
            if not unlike:
                break
        time.sleep(0.3)
    return moment, unlike


def all_said(tool: ReleaseTool, groups: list[str]) -> tuple[dict[str, Printout], dict[str, Said | None]] | None:
    """What the tool prints of groups, and what that says; None while a coordinator is not there yet."""
    try:
        printed = {group: tool.printed(group) for group in groups}
        return printed, {group: said(printout) for group, printout in printed.items()}
    except (CannotTellError, ValueError, KeyError):
        return None


def holds(expected: Expected, found: dict[str, Said | None]) -> bool:
    """Whether each group is in its state, with so many members who have read all there is."""
    for group, wanted in expected.items():
        of = found[group]
        if wanted is None or of is None:
            if (wanted is None) != (of is None):
                return False
            continue
        if wanted != UNCERTAIN and (of["state"], of["member_count"]) != wanted:
            return False
        if of["members"] and any(offset.get("lag") != 0 for offset in of["offsets"].values()):
            return False
    return True


def ends_of(servers: str) -> dict[int, int]:
    """Where each partition of the coordinator's log ends."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused", "log_level": 0})
    try:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(_OFFSETS_TOPIC, number), timeout=10)[1]
            for number in range(OFFSETS_PARTITIONS)
        }
    finally:
        consumer.close()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
