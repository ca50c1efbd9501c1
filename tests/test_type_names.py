"""One name, one type: public classes and aliases of the product, by module."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tests.test_layering import PACKAGES, tree, under

# Name → (homes, why it may have several). A row goes when its name has one home.
SEVERAL: Final = {
    "AdminClient": (2, "of two libraries, each behind the same few calls; a module uses one"),
    "Board": (2, "dashboards are Grafana's boards, and import nothing of the monitor's"),
    "Detail": (5, "all are an event's detail as JSON: they are to become one with what an event is"),
    "Event": (4, "all are the contract's EVENT: as an object in the model, as JSON behind it"),
    "Finding": (2, "what a look at permissions found; what a rule found"),
    "GroupsClient": (3, "protocols: each room says what it asks of `polling.client.KafkaGroupsClient`"),
    "Key": (2, "the key of a value in Spark's state, in the store and in the pipe to it"),
    "Kind": (2, "a metric's kind is Prometheus's word; a kind of event is the model's"),
    "Moment": (2, "a scrape's, which has samples; the one that clocked rules are asked at"),
    "Offsets": (3, "by partition of the log; by topic and partition of a group"),
    "Place": (2, "a topic's partition; the place of a member that left, whose name is in stored states"),
    "Position": (3, "Spark's offset of the source, as JSON; a record's place in the log"),
    "Row": (2, "a dashboard's; of a micro-batch"),
    "Samples": (2, "with labels that are groups; with labels of any name"),
    "Scope": (2, "a dashboard's variables; the groups that are shown"),
    "Source": (2, "where a log that is loaded comes from; what a metric's samples come from"),
    "Step": (2, "of a push to Grafana; of a group, whose name is in stored states"),
    "TopicPartition": (2, "a struct of Kafka's consumer protocol; a pair that is a key"),
}


def test_a_name_is_one_type() -> None:
    """Who reads a public class's or alias's name knows which it is; what has several homes says why."""
    homes: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for module in under(package):
            for name in types_of(tree(module)):
                homes[name].append(module)
    several = {name: modules for name, modules in homes.items() if len(modules) > 1}

    assert {name: number for name, (number, _) in SEVERAL.items()} == {
        name: len(modules) for name, modules in several.items()
    }, several


def test_classes_and_aliases_are_types_and_values_are_none() -> None:
    """Constants, type variables, private names, and what stands within functions and classes are no types."""
    module = ast.parse(
        "class A:\n    class B: ...\n"
        "Cc = Mapping[str, int]\n"
        "Dd: TypeAlias = int\n"
        "Ff = NewType('Ff', str)\n"
        "LIMIT: Final = 1\n"
        "WORD = 1\n"
        "Held = TypeVar('Held')\n"
        "_Jj = int\n"
        "class _K: ...\n"
    )

    assert ["A", "Cc", "Dd", "Ff"] == [*types_of(module)]


def types_of(module: ast.Module) -> Iterator[str]:
    """Names of public classes and aliases that a module defines."""
    for node in module.body:
        match node:
            case ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not _is_variable(value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                pass
            case _:
                continue
        # What is all in capitals is a constant.
        if name[0].isupper() and (isinstance(node, ast.ClassDef) or not name.isupper()):
            yield name


def _is_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"
