"""Who may import whom. The tables are the rules; think hard before a row changes, and say why in the change.

The model is read bottom up: a module imports what stands in an earlier layer than its own. In streaming, each library
has few homes, so that what must start at once does not load Spark and a library can be replaced in one place.
"""

import ast
import fnmatch
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("coordinator_model", "streaming", "dashboards")

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
    ("coordinator_model.snapshot", "coordinator_model.structs"), frozenset({"exec"})
)

# Earliest first; a pattern after another takes what the first has left.
MODEL_LAYERS: Final = (
    ("wire",),
    ("schema",),
    ("structs",),
    ("records.keys",),
    ("records", "records.*"),
    ("record_types",),
    ("serde",),
    ("json_form",),
    ("events",),
    ("conclusions",),
    ("clocks", "group_state", "offsets", "lag"),
    ("groups", "groups.claims", "groups.modern"),
    ("groups.*",),
    ("classic_members", "downgrades", "holders", "leftovers", "streams_tasks", "upgrade_blockers"),
    ("coherence", "invariants", "migration", "ownership", "roster"),
    ("subscriptions",),
    ("causes", "scaling", "statics"),
    ("rebalances",),
    ("handovers",),
    ("snapshot",),
    ("broker_releases", "gate", "overdue", "unassigned"),
    ("downgrade_gate", "involved", "suspects", "upgrade_gate"),
    ("steps",),
    ("commits",),
    ("replica",),
    ("looks",),
    ("modern_view",),
    ("view",),
    ("",),
)
# Layers whose modules may import each other: records of one family appear in those of another.
LAYERS_OF_SIBLINGS: Final = (("records", "records.*"),)

# (who, what, why it is kept apart although the order would let it)
KEPT_APART: Final = (
    ("coordinator_model.lag", "coordinator_model.*", "figures only: it serves a board that knows no records"),
    ("coordinator_model.group_state", "coordinator_model.*", "state is data; what moves it stands above"),
    ("coordinator_model.offsets", "coordinator_model.*", "as above"),
    ("coordinator_model.events", "coordinator_model.*", "an event is data"),
    ("coordinator_model.invariants", "coordinator_model.records.*", "invariants ask states, not records"),
    ("coordinator_model.coherence", "coordinator_model.records.*", "as above"),
    ("coordinator_model.migration", "coordinator_model.records.*", "as above"),
    ("coordinator_model.classic_members", "coordinator_model.records.*", "as above"),
    ("coordinator_model.upgrade_blockers", "coordinator_model.records.*", "as above"),
    ("coordinator_model.streams_tasks", "coordinator_model.records.*", "as above"),
    ("coordinator_model.downgrades", "coordinator_model.records.*", "as above"),
    ("coordinator_model.roster", "coordinator_model.records.*", "as above"),
    ("coordinator_model.snapshot", "coordinator_model.serde", "a checkpoint holds states, not records"),
    ("coordinator_model.*", "streaming*", "the model knows nobody"),
    ("coordinator_model.*", "dashboards*", "as above"),
    ("streaming.metrics", "streaming.*", "the catalogue is data that dashboards read too"),
    ("streaming.java", "streaming.[!e]*", "runs before anything is installed"),
)

# Library → the modules of streaming that may import it.
LIBRARY_HOMES: Final = {
    "pyspark": "session source packing processor bundle entries state_calls sink progress job schemas restart "
    "state_directory worker_daemon class_archive rehearsal",
    "pandas": "processor",
    "numpy": "log_reader packing reduction source",
    "pyarrow": "entries log_reader output packing rehearsal reduction restart source history.*",
    "kafka": "kafka_client lazy_admin log_recorder end_offsets watched_log open_transactions session_timeouts "
    "sink_topics topic_reader kafka_probe oauth_tokens",
    "confluent_kafka": "log_reader source traffic kafka_tools kafka_writer",
    "py4j": "job kafka_tools session state_directory",
    "prometheus_client": "exporter",
    "yaml": "config",
    "pydantic": "config config_sections config_reference kafka_security",
    "annotated_types": "config",
    "structlog": "*",
    "starlette": "pages",
    "uvicorn": "server http_protocol",
    "h11": "http_protocol",
    "jinja2": "pages",
    "typer": "__main__ cli.*",
    "rich": "terminal cli.*",
    "grafana_foundation_sdk": "",
    # Not in the command itself: what is said to Grafana is told apart from what is said to the user.
    "grafana_client": "grafana",
}

# Commands that need no Kafka and no Spark: what they load, their imports' imports included, is ours, small and quick.
LIGHT_COMMANDS: Final = ("streaming.cli.decode", "streaming.cli.replay")
LIGHT_LIBRARIES: Final = frozenset({"typer", "rich"})

# The one door from the command line to the dashboards.
IMPORTERS_OF_DASHBOARDS: Final = frozenset({"streaming.cli.dashboards"})


@cache
def modules() -> dict[str, Path]:
    """Every module of ours by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


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


def model_layer(module: str) -> int:
    name = module.removeprefix("coordinator_model").removeprefix(".")
    for number, patterns in enumerate(MODEL_LAYERS):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            return number
    raise AssertionError(f"{module} stands in no layer: give it one in MODEL_LAYERS")


def under(package: str) -> list[str]:
    return [name for name in modules() if name == package or name.startswith(f"{package}.")]


def library(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("module", under("coordinator_model"))
def test_model_uses_the_quiet_part_of_the_standard_library(module: str) -> None:
    """The model imports itself and what of the standard library knows no clock, file, network or log."""
    foreign = {library(name) for name in imports(module)} - MODEL_STDLIB - {"coordinator_model"}

    assert set() == foreign


@pytest.mark.parametrize("module", under("coordinator_model"))
def test_model_opens_and_prints_nothing(module: str) -> None:
    """What needs no import to reach the outside is not called by the model either."""
    calls = [node.func for node in ast.walk(tree(module)) if isinstance(node, ast.Call)]
    called = {function.id for function in calls if isinstance(function, ast.Name)}

    assert set() == called & MODEL_BUILTINS_REFUSED - MODEL_BUILTINS_CALLED.get(module, frozenset())


@pytest.mark.parametrize("module", under("coordinator_model"))
def test_model_imports_point_downwards(module: str) -> None:
    """A module of the model imports from earlier layers, or from its siblings where a layer says so."""
    own = model_layer(module)
    accepted = own + 1 if MODEL_LAYERS[own] in LAYERS_OF_SIBLINGS else own
    of_model = {name for name in imports(module) if library(name) == "coordinator_model"}

    assert set() == {name for name in of_model if model_layer(name) >= accepted}


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


@pytest.mark.parametrize("module", under("streaming"))
def test_each_library_has_its_homes(module: str) -> None:
    """A library is imported where LIBRARY_HOMES says, and one that the table does not name nowhere."""
    name = module.removeprefix("streaming").removeprefix(".")
    foreign = {library(each) for each in imports(module)} - sys.stdlib_module_names - {*PACKAGES}
    homeless = {
        each
        for each in foreign
        if not any(fnmatch.fnmatchcase(name, home) for home in LIBRARY_HOMES.get(each, "").split())
    }

    assert set() == homeless


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


@pytest.mark.parametrize("module", under("dashboards"))
def test_dashboards_read_the_catalogue_only(module: str) -> None:
    """Of ours, dashboards import themselves and the catalogue of metrics."""
    ours = {name for name in imports(module) if library(name) in {"streaming", "coordinator_model", "tests"}}

    assert set() == ours - {"streaming.metrics"}


@pytest.mark.parametrize("module", [*under("streaming"), *under("coordinator_model")])
def test_nobody_imports_dashboards_tests_or_the_benchmark(module: str) -> None:
    """They are looked at and run, not used; the command that builds dashboards is their one door."""
    used = {library(name) for name in imports(module)} & {"bench", "dashboards", "tests"}

    assert set() == (set() if module in IMPORTERS_OF_DASHBOARDS else used)
