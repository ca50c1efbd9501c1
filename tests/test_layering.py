"""Who may import whom: one table of rooms. Think hard before a row changes, and say why in the change.

A room imports itself, and the rooms and libraries of its row. Rooms stand bottom up: a row names rooms above
it only, so the house has no circles. Libraries have few homes, so that what must start at once does not load Spark, and
a library can be replaced in one place.
"""

import ast
import fnmatch
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("coordinator_model", "streaming", "dashboards")
FOR_WORK: Final = ("bench", "docs", "lab", "release", "supply")
"""Folders that only work on the code needs, besides `tests`."""
TOP: Final = ""
"""The room of the modules that stand directly in a package."""

MODEL: Final = "wire records kinds state groups migration rules clocked gates views figures"

# Room → rooms of the same package that it may import, and libraries. What is used of the model is in `OF_THE_MODEL`.
ROOMS: Final = {
    "coordinator_model": {
        "wire": ("", ""),
        "records": ("wire", ""),
        "kinds": ("", ""),
        "state": ("kinds", ""),
        "groups": ("records state", ""),
        "migration": ("records kinds state groups", ""),
        "rules": ("records kinds state groups migration", ""),
        "clocked": ("kinds state groups migration rules", ""),
        "gates": ("kinds state groups migration rules", ""),
        "views": ("state groups migration rules", ""),
        "figures": ("records state groups migration rules clocked gates views", ""),
        TOP: (MODEL, ""),
    },
    "streaming": {
        "base": ("", "structlog"),
        "config": ("base", "annotated_types pydantic yaml"),
        "kafka": ("base config", "aws_msk_iam_sasl_signer confluent_kafka kafka pydantic"),
        "query": ("base config kafka", "confluent_kafka numpy pandas py4j pyarrow pyspark"),
        "spark": ("base config", "py4j pyarrow pyspark"),
        "end_offsets": ("base kafka", "kafka"),
        "board": ("base end_offsets", "numpy pyarrow"),
        "watchers": ("base config kafka end_offsets board", "kafka numpy"),
        "polling": ("base kafka board", "kafka"),
        "checkpoint": ("base query end_offsets board", "py4j pyarrow pyspark"),
        "metrics": ("base end_offsets board", "isal numpy prometheus_client pyarrow"),
        "recording": ("base config kafka", "confluent_kafka"),
        "reports": ("base recording", ""),
        "sinks": ("base config kafka query board", "kafka"),
        "history": ("base config recording board sinks", "pyarrow"),
        "otlp": ("base config board metrics sinks", "google opentelemetry prometheus_client requests"),
        "web": ("base config end_offsets board metrics reports history", "h11 jinja2 starlette uvicorn"),
        "monitor": (
            (
                "base config kafka query spark end_offsets board watchers polling checkpoint metrics sinks "
                "history otlp web"
            ),
            "kafka py4j pyarrow pyspark structlog",
        ),
        "demo": ("base config query spark board monitor", "confluent_kafka rich"),
        "rehearsal": ("base config kafka recording reports demo", "confluent_kafka"),
        "loading": ("base config kafka spark polling recording reports demo", "kafka"),
        "cli": (
            "base checkpoint config kafka spark recording reports sinks history otlp monitor demo rehearsal loading",
            "dashboards grafana_client rich typer yaml",
        ),
        TOP: ("base cli", "typer"),
    },
}

# Room of streaming → rooms and modules of the model that it may import. All may import what `coordinator_model` itself
# offers; a room that is not here no more than that.
OF_THE_MODEL: Final = {
    "base": "kinds",
    "kafka": "wire records gates",
    "query": "records state rules views figures first_reading replica share_replica",
    "end_offsets": "records lag",
    "board": "records kinds state migration rules clocked gates views figures copies lag",
    "watchers": "records kinds state migration rules clocked gates figures",
    "polling": "wire records state groups migration rules",
    "checkpoint": "state",
    "metrics": "state migration rules clocked gates figures",
    "recording": "records",
    "reports": "records kinds state migration rules views log_replica recording_clock",
    "sinks": "state views",
    "history": "records",
    "otlp": "state",
    "web": "kinds migration clocked gates",
    "monitor": "records state",
    "demo": "kinds",
    "rehearsal": "records state groups migration rules gates views replica log_replica",
    "loading": "records kinds state gates log_replica",
    "cli": ("records kinds state migration rules gates views log_replica share_replica recording_clock topic_growth"),
}

# What the model may use of the standard library: no clock, no file, no network, no log, no chance, no thread.
MODEL_STDLIB: Final = set(
    """
    __future__ abc array base64 binascii bisect collections copy dataclasses enum functools heapq itertools json math
    operator re string struct types typing
    """.split()  # noqa: SIM905 - a list literal takes a line a word
)
MODEL_BUILTINS_REFUSED: Final = frozenset({"open", "print", "input", "exec", "eval", "__import__"})

# Schemas, and snapshots of classes, are compiled to functions; the text holds nothing but what these say in the code.
MODEL_BUILTINS_CALLED: Final = dict.fromkeys(
    ("coordinator_model.state.snapshot", "coordinator_model.wire.codec"), frozenset({"exec"})
)

# (who, what, why it is kept apart although the rooms would let it)
KEPT_APART: Final = (
    ("coordinator_model.lag", "coordinator_model.*", "figures only: it serves a board that knows no records"),
    (
        "coordinator_model.rules.*",
        "coordinator_model.records.[!s]*",
        "rules ask states; layouts are the groups' business",
    ),
    ("streaming.metrics.catalogue", "streaming.*", "the catalogue is data that dashboards read too"),
    ("streaming.watchers.*", "streaming.kafka.lazy_admin", "streaming/kafka/cluster_client.py asks brokers for them"),
    ("streaming.spark.java", "streaming.[!bs]*", "runs before anything is installed"),
    ("streaming.spark.java", "streaming.spark.[!c]*", "it does, with cds_archive"),
    ("streaming.spark.cds_archive", "streaming.[!b]*", "java does"),
)

# Room within a room → its door, which alone is imported from outside it.
DOORS: Final = {"streaming.query.first_reading": "streaming.query.first_reading.door"}

# Commands that need no Kafka and no Spark: what they load, their imports' imports included, is ours, small and quick.
LIGHT_COMMANDS: Final = ("streaming.cli.decode", "streaming.cli.replay")
LIGHT_LIBRARIES: Final = frozenset({"typer", "rich"})

# The one door from the command line to the dashboards.
IMPORTERS_OF_DASHBOARDS: Final = frozenset({"streaming.cli.dashboards"})


@cache
def modules() -> dict[str, Path]:
    """Every module of ours by its dotted name, but for tests."""
    found = {}
    for package in (*PACKAGES, *FOR_WORK):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


@cache
def imports(module: str, *, loaded_only: bool = False) -> set[str]:
    """What a module imports, as dotted names; those in functions too, or only those that loading it takes."""
    nodes = loaded_nodes(tree(module)) if loaded_only else ast.walk(tree(module))
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide the direction"
            source = node.module or ""
            submodules = {f"{source}.{alias.name}" for alias in node.names} & modules().keys()
            names.update(submodules or {source})
    return names


def loaded_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is loaded: not the bodies of functions, nor what is for the type checker."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from loaded_nodes(child)


def place(module: str) -> tuple[str, str]:
    """(package, room) of a module of ours."""
    package, *rest = module.split(".")
    return package, rest[0] if rest and (ROOT / package / rest[0]).is_dir() else TOP


def of_rooms() -> list[str]:
    """The modules that stand in rooms."""
    return [name for package in ROOMS for name in under(package)]


def under(package: str) -> list[str]:
    return [name for name in modules() if name == package or name.startswith(f"{package}.")]


def library(name: str) -> str:
    return name.partition(".")[0]


# Each rule is one test of all modules: a test for each module and rule is a thousand, and takes ten times as long.


def breaking(modules_: Iterable[str], rule: Callable[[str], Collection[str]]) -> dict[str, Collection[str]]:
    """Module → what breaks the rule in it; modules of which nothing does are left out."""
    return {module: found for module in modules_ if (found := rule(module))}


def test_model_uses_the_quiet_part_of_the_standard_library() -> None:
    """The model imports itself and what of the standard library knows no clock, file, network or log."""

    def foreign(module: str) -> set[str]:
        return {library(name) for name in imports(module)} - MODEL_STDLIB - {"coordinator_model"}

    assert {} == breaking(under("coordinator_model"), foreign)


def test_model_opens_and_prints_nothing() -> None:
    """What needs no import to reach the outside is not called by the model either."""

    def refused(module: str) -> set[str]:
        calls = [node.func for node in ast.walk(tree(module)) if isinstance(node, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        return called & MODEL_BUILTINS_REFUSED - MODEL_BUILTINS_CALLED.get(module, frozenset())

    assert {} == breaking(under("coordinator_model"), refused)


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_stand_bottom_up(package: str) -> None:
    """A row names only rooms of earlier rows, and the table has every room of the house and no other."""
    seen: list[str] = []
    for room, (rooms, _) in ROOMS[package].items():
        assert set() == set(rooms.split()) - set(seen), f"{package}.{room} names a room below it"
        seen.append(room)

    assert {place(module)[1] for module in under(package)} == set(seen)


@pytest.mark.parametrize("package", ROOMS)
def test_every_room_opens_with_its_sentence(package: str) -> None:
    """A room's `__init__.py` says what the room is for, in which order to read it, and, as here, what it may import."""
    for room, (rooms, libraries) in ROOMS[package].items():
        if room == TOP:
            continue
        opening = ast.get_docstring(tree(f"{package}.{room}")) or ""
        may = f"May import: {', '.join(rooms.split()) or 'no other room'}"
        may += f"; libraries {', '.join(libraries.split())}." if libraries else "."

        assert opening.partition("\n")[0].endswith("."), f"{package}/{room}/__init__.py"
        assert "\n\nReading order: " in opening, f"{package}/{room}/__init__.py"
        assert may in opening.replace("\n", " "), f"{package}/{room}/__init__.py: {may}"


def test_modules_import_what_their_room_may() -> None:
    """A module imports its own room, the rooms of its row, the model, and the libraries of its row."""

    def foreign(module: str) -> set[str]:
        package, room = place(module)
        rooms, libraries = (words.split() for words in ROOMS[package][room])
        names = imports(module)
        accepted = {*sys.stdlib_module_names, package, "coordinator_model", *libraries}
        of_other_rooms = {name for name in names if library(name) == package and place(name)[1] not in {room, *rooms}}
        return of_other_rooms | {library(name) for name in names} - accepted

    assert {} == breaking(of_rooms(), foreign)


def test_modules_import_what_their_room_may_of_the_model() -> None:
    """A room that is new to a room of the model, or to another way into it, says so in `OF_THE_MODEL`."""

    def foreign(module: str) -> set[str]:
        return ways_in(module) - {TOP, *OF_THE_MODEL.get(place(module)[1], "").split()}

    assert {} == breaking(under("streaming"), foreign)


def test_ways_into_the_model_are_there_and_used() -> None:
    """The table has no row of a room, and no word in a row, that nothing in it needs."""
    used: dict[str, set[str]] = {}
    for module in under("streaming"):
        used.setdefault(place(module)[1], set()).update(ways_in(module))

    assert {} == {room: left for room, ways in OF_THE_MODEL.items() if (left := {*ways.split()} - used[room])}


def ways_in(module: str) -> set[str]:
    """Rooms of the model that a module imports from, and modules that stand in none; `TOP` is the package itself."""
    names = {name for name in imports(module) if library(name) == "coordinator_model"}
    return {name.partition(".")[2].partition(".")[0] for name in names}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not for type checkers either: what two modules share stands in a third."""
    house = {module: imports(module) & modules().keys() for module in modules()}
    order: TopologicalSorter[str] = TopologicalSorter({of: names - {of} for of, names in house.items()})

    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(" ← ".join(error.args[1]))


@pytest.mark.parametrize(("who", "what", "why"), KEPT_APART)
def test_kept_apart(who: str, what: str, why: str) -> None:
    """What the order alone would allow, but would tie together what grows for different reasons."""
    crossing = {
        (module, name)
        for module in modules()
        if fnmatch.fnmatchcase(module, who)
        for name in imports(module)
        if fnmatch.fnmatchcase(name, what)
    }

    assert set() == crossing, why


@pytest.mark.parametrize(("room", "door"), DOORS.items())
def test_a_room_with_a_door_is_entered_by_it(room: str, door: str) -> None:
    """What is behind it may change without a look at who uses it."""

    def past_it(module: str) -> set[str]:
        inside = {name for name in imports(module) if name == room or name.startswith(f"{room}.")}
        return set() if module.startswith(f"{room}.") else inside - {door}

    assert {} == breaking(modules(), past_it)
    assert any(door in imports(module) for module in modules() if not module.startswith(room))


@pytest.mark.parametrize("command", LIGHT_COMMANDS)
def test_light_commands_load_the_model_alone(command: str) -> None:
    """`decode` and `replay` start at once: nothing they load, however far away, imports Spark or a Kafka client."""
    seen: set[str] = set()
    waiting = [command]
    libraries: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        loaded = imports(module, loaded_only=True)
        waiting.extend(loaded & modules().keys())
        libraries |= {library(name) for name in loaded}

    assert set() == libraries - sys.stdlib_module_names - {*PACKAGES} - LIGHT_LIBRARIES


def test_dashboards_read_the_catalogue_only() -> None:
    """Of ours, dashboards import themselves and the catalogue of metrics."""

    def ours(module: str) -> set[str]:
        used = {name for name in imports(module) if library(name) in {"streaming", "coordinator_model", "tests"}}
        return used - {"streaming.metrics.catalogue"}

    assert {} == breaking(under("dashboards"), ours)


def test_nobody_imports_dashboards_or_what_is_for_work() -> None:
    """They are looked at and run, not used; the command that builds dashboards is their one door."""

    def used(module: str) -> set[str]:
        found = {library(name) for name in imports(module)} & {"dashboards", "tests", *FOR_WORK}
        return set() if module in IMPORTERS_OF_DASHBOARDS else found

    assert {} == breaking([*under("streaming"), *under("coordinator_model")], used)


def test_tests_are_imported_by_tests_alone() -> None:
    """What benchmarks and scripts share with them stands in `lab`."""
    assert {} == breaking(modules(), lambda module: {name for name in imports(module) if library(name) == "tests"})


def test_the_lab_knows_the_product_alone() -> None:
    """What it offers is for tests of any kind, so it knows none, and no benchmark."""

    def of_others(module: str) -> set[str]:
        return {library(name) for name in imports(module)} & {"dashboards", *FOR_WORK} - {"lab"}

    assert {} == breaking(under("lab"), of_others)


def test_a_board_is_changed_by_its_methods_alone() -> None:
    """Nor its findings, nor its health: no attribute is assigned from outside, what is found out enters by a method."""
    assert {} == breaking(under("streaming"), lambda module: assigned_to_boards(tree(module)))


@pytest.mark.parametrize(
    "assignment", ["board.a = 1", "self.board.a += 1", "self._board.a: int = 1", "board.a, b = c", "board.health.a = 1"]
)
def test_assignments_to_boards_are_found(assignment: str) -> None:
    """In each form that Python has for them."""
    assert 1 == len(assigned_to_boards(ast.parse(assignment)))


def assigned_to_boards(module: ast.Module) -> list[str]:
    """Targets of assignments that are attributes of something called a board."""
    stored = (node for node in ast.walk(module) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return [
        ast.unparse(node)
        for node in stored
        if re.search(r"(^|\W)_?board(\.findings|\.health)?$", ast.unparse(node.value))
    ]
