"""The table of docs/brokers.md, from what `make brokers` found (`tests/doc_tables.py`)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tests.brokers import results
from tests.brokers.moments import log_of
from tests.brokers.releases import BY_NAME, RELEASES
from tests.brokers.results import Result
from tests.layouts import recorded_layouts

_MADE: Final = re.compile(r"(<!-- Made by `[^`]+` of what `make brokers` found -->\n).*?(?=<!-- end -->)", re.DOTALL)
_HEAD: Final = (
    "Kafka",
    "on",
    "monitor like its tool, moments",
    "recording like its tool, moments",
    "a group's first member of the consumer protocol",
    "`gate upgrade` before that",
    "values in its log",
)
_GATE: Final = {0: "open", 1: "closed", 3: "cannot tell"}


def page(current: str, found: Iterable[Result] | None = None) -> str:
    """The page with its table as it should be."""
    text = "\n".join(_lines(list(results.load() if found is None else found)))
    return _MADE.sub(lambda match: f"{match[1]}{text}\n", current)


def _lines(found: list[Result]) -> Iterator[str]:
    tried = [of for of in found if of.skipped is None]
    yield f"| {' | '.join(_HEAD)} |"
    yield "|" + "---|" * len(_HEAD)
    yield from (f"| {' | '.join(_cells(of))} |" for of in tried)
    left_out = {of.release: of.skipped for of in found if of.skipped is not None}
    left_out |= {of.name: "not yet" for of in RELEASES if of.name not in {row.release for row in found}}
    if left_out:
        yield "\nNot tried:\n"
        yield from (f"- {_name(release)}: {why}" for release, why in left_out.items())


def _cells(found: Result) -> tuple[str, ...]:
    return (
        _name(found.release),
        found.runs_on,
        _equal(found.monitor),
        _equal(found.recording),
        _by_answer(found.upgrades, lambda of: of["broker"]),
        _by_answer(found.upgrades, lambda of: _GATE.get(of["gate"][0], f"exit status {of['gate'][0]}")),
        _values(found.release),
    )


def _name(release: str) -> str:
    """`3.9.2, consumer protocol turned on`."""
    of = BY_NAME[release]
    return f"{of.version}, consumer protocol turned on" if of.with_consumer else of.version


def _values(release: str) -> str:
    """Versions of the values that its recording has: `OFFSET_COMMIT v3, GROUP_METADATA v3`."""
    log = log_of(release)
    layouts = recorded_layouts(log) if log.is_file() else ()
    return ", ".join(sorted(layout for layout in layouts if not layout.endswith(" tombstone")))


def _equal(by_moment: Mapping[str, list[str]]) -> str:
    return f"{sum(not unlike for unlike in by_moment.values())} of {len(by_moment)}"


def _by_answer(attempts: Iterable[Mapping[str, Any]], answer: Any) -> str:
    """`closed`, or where kinds of groups differ `open (java range), closed (librdkafka cooperative-sticky)`."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for of in attempts:
        kinds[answer(of)].append(of["kind"])
    if len(kinds) <= 1:
        return next(iter(kinds), "not tried yet")
    return "; ".join(f"{said} ({', '.join(of)})" for said, of in kinds.items())
