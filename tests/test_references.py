"""What code and documents name in backticks is there: files by their names, members by those of our classes."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
WRITTEN: Final = (
    *("coordinator_model", "streaming", "dashboards", "conf"),
    *("bench", "docs", "lab", "release", "supply", "tests"),
)
TEXTS: Final = {".py", ".md", ".yaml", ".js", ".toml"}

FILE: Final = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|js|ya?ml|ndjson|json|lock|toml))`")
TO_BE_FILLED_IN: Final = re.compile(r"[A-Z]{4}|^[A-Z]\w+\.json$")
"""Names with a word that stands for one, and Kafka's own schemas."""

MEMBER: Final = re.compile(r"`([A-Z]\w+)\.(?!(?:json|java|md)`)([a-z_]\w*)(?:\(\))?`")

OF_OTHERS: Final = frozenset({"AssignmentInfo", "DataFrame", "GroupMetadataManager", "KafkaTCPTransport"})
"""Classes of Kafka, its clients and Spark; any other that is named is one of ours, also after it was renamed."""

MADE_ELSEWHERE: Final = frozenset(
    {
        # By a monitor, in its state directory and its checkpoint.
        "monitor.json", "resume.json", "identity.json", "events.db", "end-offsets.json",
        "lease.json", "coordinators-agreed.json",
        # By a rehearsal that is to keep it.
        "report.json",
        # By users, and by other programs.
        "monitor.yaml", "demo.yaml",
    }
)  # fmt: skip
"""Files that are named and stand in no checkout."""

NOT_READ: Final = ("tests/recordings/", "docs/decisions/", "dashboards/generated/")
"""Decisions say what was when they were taken."""


@cache
def files() -> frozenset[str]:
    """All files of the checkout that are not made by it, by their paths."""
    found = (path for name in (*WRITTEN, ".") for path in (ROOT / name).glob("*" if name == "." else "**/*"))
    return frozenset(path.relative_to(ROOT).as_posix() for path in found if path.is_file())


def texts(room: str) -> list[str]:
    """Those of a folder, or of the root, that are read here."""
    of_room = (of for of in files() if (of.partition("/")[0] if "/" in of else ".") == room)
    return sorted(of for of in of_room if Path(of).suffix in TEXTS and not of.startswith(NOT_READ))


@cache
def members() -> dict[str, set[str]]:
    """Class of ours → what its instances and itself have, those of classes of the same name together."""
    found: dict[str, set[str]] = defaultdict(set)
    for of in files():
        if of.endswith(".py"):
            for node in ast.walk(ast.parse((ROOT / of).read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found[node.name] |= set(_members(node))
    return found


def _members(node: ast.ClassDef) -> Iterator[str]:
    # What a base class has is not known here.
    if any(ast.unparse(base) not in ("NamedTuple", "Protocol", "object", "Enum") for base in node.bases):
        yield "*"
    for of in ast.walk(node):
        if isinstance(of, ast.FunctionDef | ast.AsyncFunctionDef):
            yield of.name
        elif isinstance(of, ast.AnnAssign | ast.Assign):
            for target in of.targets if isinstance(of, ast.Assign) else [of.target]:
                yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))
                yield from (each.attr for each in ast.walk(target) if isinstance(each, ast.Attribute))


@pytest.mark.parametrize("room", [".", *WRITTEN])
def test_what_is_named_is_there(room: str) -> None:
    """A file by its path from anywhere up to the root, or by its name alone; a member of a class of ours."""
    lost, unknown = [], []
    for file in texts(room):
        text = (ROOT / file).read_text(encoding="utf-8")
        named = {name for name in FILE.findall(text) if not TO_BE_FILLED_IN.search(name)}
        lost += [
            (file, name)
            for name in sorted(named)
            if Path(name).name not in MADE_ELSEWHERE and not any(f"/{of}".endswith(f"/{name}") for of in files())
        ]
        unknown += [
            (file, f"{of}.{member}")
            for of, member in MEMBER.findall(text)
            if of not in OF_OTHERS and not {member, "*"} & members().get(of, set())
        ]

    assert ([], []) == (lost, unknown)
