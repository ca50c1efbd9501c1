"""Writes records.md, events.md, and lists and tables of other pages.

With `--check` it compares them, and writes nothing.

What they say is taken from where it holds: the registry of record types and its handlers, the recordings of real
brokers, the kinds of events, the alert rules, the docstrings of the tests that hold each of them, and what
`make brokers`, `make faults`, `make attack` and `make soak` found.
"""

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from coordinator_model.kinds.table import KINDS, Alarm
from coordinator_model.records.record_types import RECORD_SCHEMAS, SCHEMA_OF_KEY, RecordType
from coordinator_model.records.share_state_types import SHARE_STATE_SCHEMAS
from coordinator_model.replica import HANDLERS
from coordinator_model.share_replica import APPLY as SHARE_STATE_HANDLERS
from coordinator_model.state.events import INFO, MEANINGS, SEVERITIES
from dashboards.alert import Alert
from dashboards.alerts import ALERTS
from streaming.board.polls import OFF
from streaming.kafka.permissions import (
    ADMIN_PERMISSIONS,
    PERMISSIONS,
    READ_RECORDS,
    SINK_PERMISSIONS,
    Permission,
    acl_commands,
)
from tests.alarm_cases import ANY_ALARM, CASES
from tests.attack import results as attacks
from tests.brokers import loading_page as loading
from tests.brokers import page as brokers
from tests.faults import page as faults
from tests.layouts import NOT_WRITTEN, known_layouts, recorded_layouts
from tests.recorder.recordings import PATHS, UNREAD, release_of
from tests.recorder.scenarios import BY_GROUP
from tests.recorder.versions import VERSIONS
from tests.soak import report as soak

TESTS: Final = Path(__file__).resolve().parent
ROOT: Final = TESTS.parent
DOCS: Final = ROOT / "docs"
COMMAND: Final = "python -m tests.doc_tables"

_HEADER: Final = f"<!-- Made by `{COMMAND}`; change what it reads instead. -->\n"
_PERMISSIONS_BEGIN: Final = f"<!-- From here on made by `{COMMAND}` from streaming/kafka/permissions.py. -->"
_PERMISSIONS_END: Final = "<!-- End of what is made. -->"
_POLLED_BEGIN: Final = f"<!-- From here on made by `{COMMAND}` from permissions.py and streaming/board/polls.py. -->"
_POLLED_END: Final = "<!-- End of what is made of polled groups. -->"
_YES: Final = "●"
_OF_AN_OFFSET: Final = "The committed offset of one partition: the latest counts, a tombstone deletes it."


# -- records ----------------------------------------------------------------------------------------------------------


def records() -> str:
    """The page of record types."""
    rows = [
        (
            str(int(type_)),
            type_.name,
            f"{versions[0]}-{versions[-1]}" if len(versions := schema.value.SCHEMA.versions) > 1 else str(versions[0]),
            _done_with(type_),
            _tested_in(type_),
        )
        for type_, schema in RECORD_SCHEMAS.items()
    ]
    return "\n".join(
        (
            _HEADER,
            "# Records of the group coordinator\n",
            "What the replica does with each record type of `__consumer_offsets`, and where in",
            "`tests/coordinator_model` that is tested. The recordings of real brokers below are replayed as well, and",
            "compared with what Kafka's own tools printed (`tests/test_recordings.py`). What the coordinator writes:",
            "[The coordinator's log](coordinator-log.md).\n",
            *_table(("type", "name", "value versions", "effect on the replica", "tested in"), rows),
            "",
            "Delivery state of share groups is in another log, `__share_group_state`, with types from 0 on, too:\n",
            *_table(("type", "name", "value versions", "effect on the replica", "tested in"), _share_state_rows()),
            "",
            "An unknown type is counted and reported once (`unknown_record`), a record that does not decode is counted",
            "and skipped; neither affects other records. Only early access has such:",
            f"{_unread()}.\n",
            "## Layouts, and the releases whose brokers wrote them\n",
            "A layout is a value version, with or without a tagged field. ● is in a recording of that release.\n",
            *_table(("layout", *(version.name for version in VERSIONS), "otherwise"), _layout_rows()),
            "",
            "Layouts without ● are compared with Kafka's own decoder, like all others",
            "(`tests/integration/test_kafka_oracle.py`), and what a replica holds with what Kafka's coordinator holds",
            "(`tests/coordinator_model/test_kafka_replay.py`; your recordings: `python -m tests.kafka_replay FILE`).\n",
            "## Recorded scenarios\n",
            "Each was played by Kafka's own clients of the release (`python -m tests.recorder`).\n",
            *_table(("group", *(version.name for version in VERSIONS), "what happens", "alarms"), _scenario_rows()),
            "",
        )
    )


def _share_state_rows() -> list[tuple[str, ...]]:
    return [
        (
            str(int(type_)),
            type_.name,
            str(schema.value.SCHEMA.highest),
            _said_by(SHARE_STATE_HANDLERS[type_], int(type_)),
            "`test_share_partitions.py`",
        )
        for type_, schema in SHARE_STATE_SCHEMAS.items()
    ]


def _done_with(type_: RecordType) -> str:
    handler = HANDLERS.get(type_)
    return _OF_AN_OFFSET if handler is None else _said_by(handler, int(type_))


def _said_by(handler: Callable[..., object], number: int) -> str:
    sentence = _sentence(handler.__doc__ or "").removeprefix(f"Type {number}: ")
    return sentence[0].upper() + sentence[1:]


def _tested_in(type_: RecordType) -> str:
    """The tests of the module whose business it is; they have to write such records."""
    handler = HANDLERS.get(type_)
    module = "offset_commits" if handler is None else f"{_family(type_)}_groups"
    if module not in _tests_by_type()[type_]:
        raise SystemExit(f"error: test_{module}.py: found no record of type {int(type_)}, accepted: one at least")
    return f"`test_{module}.py`"


def _family(type_: RecordType) -> str:
    first = type_.name.partition("_")[0].lower()
    return first if first in {"consumer", "share", "streams"} else "classic"


def _unread() -> str:
    """Recording by recording, what of it the replica does not read."""
    return "; ".join(
        f"of {name} records of type {_and(unknown)} are unknown, and those of type {_and(undecodable)} do not decode"
        for name, (unknown, undecodable) in UNREAD.items()
    )


def _and(types: Iterable[str]) -> str:
    return " and ".join(types)


def _layout_rows() -> Iterator[tuple[str, ...]]:
    by_release = _layouts_by_release()
    why = {layout: reason for reason, layouts in NOT_WRITTEN.items() for layout in layouts}
    order = {type_.name: int(type_) for type_ in RecordType}
    for layout in sorted(known_layouts(), key=lambda layout: (order[layout.partition(" ")[0]], layout)):
        met = (_YES if layout in by_release[version.name] else "" for version in VERSIONS)
        yield (f"`{layout}`", *met, why.get(layout, ""))


@cache
def _layouts_by_release() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path in PATHS:
        found[release_of(path)] |= recorded_layouts(path)
    return found


def _scenario_rows() -> Iterator[tuple[str, ...]]:
    for group, scenario in BY_GROUP.items():
        reported = ", ".join(f"`{kind}`" for kind in sorted(scenario.alarms))
        played = (_YES if scenario.is_for(version) else "" for version in VERSIONS)
        yield group, *played, _sentence(scenario.play.__doc__ or ""), reported


@cache
def _tests_by_type() -> dict[RecordType, set[str]]:
    """Record type → test modules of the model that make such records by the builders."""
    types_of_key = {key.__name__: row.record_type for key, row in SCHEMA_OF_KEY.items()}
    builders = {
        name: types_of_key[used]
        for name, words in _words_by_function(ROOT / "lab" / "builders.py").items()
        for used in words & types_of_key.keys()
    }
    found: dict[RecordType, set[str]] = defaultdict(set)
    for path in (TESTS / "coordinator_model").rglob("test_*.py"):
        for name in _words(ast.parse(path.read_text("utf-8"))) & builders.keys():
            found[builders[name]].add(path.stem.removeprefix("test_"))
    return found


# -- events -----------------------------------------------------------------------------------------------------------


def events() -> str:
    """The page of events, and of what each alarm and alert rule is held to."""
    alarms = [kind for kind, severity in SEVERITIES.items() if severity != INFO]
    return "\n".join(
        (
            _HEADER,
            "# Events\n",
            "What the monitor concludes from the log. Verdicts (warning and critical) are drawn at the end of a",
            "coordinator event, on the live tail only, and reported once while they last.\n",
            *_table(
                ("event", "severity", "what has happened", "alert rule"),
                ((f"`{kind}`", SEVERITIES[kind], MEANINGS[kind], _rules(kind)) for kind in SEVERITIES),
            ),
            "",
            "## What each verdict reads, and its limits\n",
            "All times are the log's, or the brokers' clocks'. A verdict that opens is over with a *record*, by *time*",
            "in which none is written, or when a *look* with a clock no longer finds it; any other is of one moment.\n",
            *_table(
                ("verdict", "reads", "over with", "limits"),
                ((f"`{kind}`", KINDS[kind].reads, _over(kind), KINDS[kind].limits) for kind in alarms),
            ),
            "",
            "## What each alarm is held to\n",
            "Tests in `tests/coordinator_model` in which it must speak, and those of look-alikes in which it must stay",
            "silent. In these, only what really happened may raise an alarm:\n",
            *_cases(ANY_ALARM),
            "",
            *(line for kind in alarms if kind in CASES for line in _alarm(kind)),
            "## What each alert rule is held to\n",
            "Cases in `tests/dashboards/alerts`, run by promtool. What the rules are: [Alerts](alerts.md).\n",
            *(line for alert in ALERTS for line in _rule(alert)),
        )
    )


def _over(kind: str) -> str:
    row = KINDS[kind]
    return row.ends if isinstance(row, Alarm) else ""


def _alarm(kind: str) -> Iterator[str]:
    yield f"### `{kind}`\n"
    yield "Speaks:\n"
    yield from _cases(CASES[kind].reported)
    yield "\nSilent:\n"
    yield from _cases(CASES[kind].silent)
    recorded = [group for group, scenario in BY_GROUP.items() if kind in scenario.alarms]
    others = len(BY_GROUP) - len(recorded)
    reported = f"speaks in {', '.join(recorded)}, " if recorded else ""
    yield f"\nRecorded groups of real brokers: {reported}silent in the {'other ' if recorded else ''}{others}.\n"


def _cases(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        module, _, test = name.partition(".")
        yield f"- {_docstring(module, test)} (`test_{module}.py::test_{test}`)"


def _docstring(module: str, test: str) -> str:
    rooms = (TESTS / "coordinator_model", TESTS / "streaming" / "query", TESTS / "streaming" / "watchers")
    paths = (path for room in rooms for path in room.rglob(f"test_{module}.py"))
    for node in (node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))):
        if isinstance(node, ast.FunctionDef) and node.name == f"test_{test}":
            return _sentence(ast.get_docstring(node) or "")
    raise SystemExit(f"error: tests/alarm_cases.py: found {module}.{test}, accepted: tests that there are")


def _rules(kind: str) -> str:
    return ", ".join(alert.name for alert in ALERTS if alert.event == kind)


def _rule(alert: Alert) -> Iterator[str]:
    yield f"### {alert.name}\n"
    cases = yaml.safe_load((TESTS / "dashboards" / "alerts" / f"{alert.name}.test.yaml").read_text("utf-8"))
    yield from (f"- {case['name']}" for case in cases["tests"])
    yield ""


def unheld() -> list[str]:
    """Kinds beyond information that the model makes and no test is named for."""
    made = {
        node.value
        for path in (ROOT / "coordinator_model").rglob("*.py")
        if path.parent.name != "kinds"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return [kind for kind in SEVERITIES if SEVERITIES[kind] != INFO and kind in made and kind not in CASES]


# -- permissions ------------------------------------------------------------------------------------------------------


def permissions(page: str) -> str:
    """The page of permissions with the list between its marks rewritten."""
    return _between(page, _PERMISSIONS_BEGIN, _PERMISSIONS_END, _permissions())


def _between(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"error: docs/permissions.md: found no {begin} and {end}")
    return before + "\n".join((begin, "", *lines, "", end)) + after


def _permissions() -> Iterator[str]:
    yield from _permission_list(
        PERMISSIONS,
        "Needed:\n",
        "\nWhat may be left out, one by one, with what is lost:\n",
        "\nFor a principal `User:monitor`, with Kafka's own tool:\n",
    )
    yield "\n### For topics that are written to in transactions\n"
    yield "None of the above, and not looked at by `check`: it shows a principal the records themselves.\n"
    yield from _permission_table([READ_RECORDS])
    yield "\n### For the topics of sinks\n"
    yield from _permission_list(
        SINK_PERMISSIONS,
        "Only where `kafka_sink` names them, on the brokers that have them, by the names given there. Needed:\n",
        "\nWhat may be left out:\n",
        "",
    )


def polled(page: str) -> str:
    """The same page with what holds where groups are polled rewritten between its marks."""
    return _between(page, _POLLED_BEGIN, _POLLED_END, _polled())


def _polled() -> Iterator[str]:
    yield from _permission_list(
        ADMIN_PERMISSIONS, "Needed, in the place of the above:\n", "\nWhat may be left out:\n", ""
    )
    yield "\nWhat is off then, and why:\n"
    yield from _table(("off", "because"), OFF.items())


def _permission_list(permissions: Sequence[Permission], needed: str, optional: str, commands: str) -> Iterator[str]:
    """Both tables and the commands that grant all of it, each below the words before it."""
    yield needed
    yield from _permission_table(each for each in permissions if each.needed)
    yield optional
    yield from _permission_table(each for each in permissions if not each.needed)
    yield commands
    yield from _acl_block(permissions)


def _acl_block(permissions: Sequence[Permission]) -> Iterator[str]:
    """A block for each release from which on brokers take what is in it: they refuse a line with what they lack."""
    for since in sorted({each.since or "" for each in permissions}):
        if since:
            yield f"\nFrom Kafka {since} on as well; older brokers have no such thing, and refuse the line:\n"
        wanted = [each for each in permissions if (each.since or "") == since]
        yield "```console"
        yield from (f"$ {command}" for command in acl_commands(wanted, "User:monitor", "localhost:9092"))
        yield "```"


def _permission_table(permissions: Iterable[Permission]) -> Iterator[str]:
    head = ("operation", "on", "what for", "without it", "`check` calls it")
    rows = ((each.operation, _resource(each), each.purpose, each.without, each.check) for each in permissions)
    yield from _table(head, rows)


def _resource(permission: Permission) -> str:
    if permission.resource == "cluster":
        return "the cluster"
    if permission.name == "*":
        return f"all {permission.resource}s" + (f" (from {permission.since} on)" if permission.since else "")
    return f"{permission.resource} `{permission.name}`"


# -- words ------------------------------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield "|" + "---|" * len(head)
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _sentence(docstring: str) -> str:
    """Its first line."""
    return docstring.strip().split("\n", 1)[0]


def _words_by_function(path: Path) -> dict[str, set[str]]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name: _words(node) for node in tree.body if isinstance(node, ast.FunctionDef)}


def _words(tree: ast.AST) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with `--check` compare; the exit status is 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write tables of records, events, alerts, permissions.")
    parser.add_argument("--check", action="store_true", help="compare with what is written, and write nothing")
    check = parser.parse_args(arguments).check
    if missing := unheld():
        sys.stderr.write(f"error: tests/alarm_cases.py: found no tests of {', '.join(missing)}\n")
        return 1
    page, tried, attacked = DOCS / "permissions.md", DOCS / "faults.md", DOCS / "security.md"
    made = {DOCS / "records.md": records(), DOCS / "events.md": events()}
    made[page] = polled(permissions(page.read_text("utf-8")))
    made[tried] = faults.page(tried.read_text("utf-8"))
    made[attacked] = attacks.page(attacked.read_text("utf-8"))
    releases = DOCS / "brokers.md"
    made[releases] = brokers.page(releases.read_text("utf-8"))
    made[loading.PAGE] = loading.page(loading.PAGE.read_text("utf-8"))
    soaked = DOCS / "lab.md"
    made[soaked] = soak.page(soaked.read_text("utf-8"))
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text("utf-8") != text]
    if not check:
        for path in stale:
            path.write_text(made[path], encoding="utf-8")
    elif stale:
        names = ", ".join(f"docs/{path.name}" for path in stale)
        sys.stderr.write(f"error: {names}: stale; run `{COMMAND}` and commit the result\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
