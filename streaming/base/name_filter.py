"""Names chosen by shell patterns, case counting: `*`, `?`, `[…]` as in fnmatch."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import Final, TypeVar

REMEMBERED_NAMES: Final = 65_536

LONGEST_REMEMBERED: Final = 256
"""Names may have 32 KB: of so many that would be gigabytes."""

_Answer = TypeVar("_Answer")


def remembered(answer: Callable[[str], _Answer]) -> Callable[[str], _Answer]:
    """The same, with what it said of the latest names remembered, of all but the longest."""
    known = lru_cache(maxsize=REMEMBERED_NAMES)(answer)
    return lambda name: (known if len(name) <= LONGEST_REMEMBERED else answer)(name)


LONGEST_PATTERN: Final = 1_000
"""Characters of a pattern that a caller may ask for: what takes time to read grows with the square of it."""

_Match = Callable[[str], re.Match[str] | None]
_Rule = tuple[_Match, _Match]


class NameFilter:
    """Names that an include pattern matches and no exclude pattern does.

    Args:
        include: patterns, one of which must match.
        exclude: patterns, none of which may match.
    """

    def __init__(self, include: Iterable[str] = ("*",), exclude: Iterable[str] = ()) -> None:
        included, excluded = tuple(include), tuple(exclude)
        self.takes_all = "*" in included and not excluded
        self._rules: tuple[_Rule, ...] = () if self.takes_all else ((_any_of(included), _any_of(excluded)),)
        self._answer = remembered(self._judge)

    def __call__(self, name: str) -> bool:
        """Whether the name is chosen."""
        return self.takes_all or self._answer(name)

    def within(self, outer: "NameFilter") -> "NameFilter":
        """The filter of names that both choose."""
        both = NameFilter()
        both.takes_all = self.takes_all and outer.takes_all
        both._rules = outer._rules + self._rules  # noqa: SLF001 - of another of us
        return both

    def _judge(self, name: str) -> bool:
        return all(included(name) is not None and excluded(name) is None for included, excluded in self._rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The groups and the topics that are chosen; all by default."""

    groups: NameFilter = field(default_factory=NameFilter)
    topics: NameFilter = field(default_factory=NameFilter)

    def within(self, outer: "Scope") -> "Scope":
        """What both choose."""
        return Scope(groups=self.groups.within(outer.groups), topics=self.topics.within(outer.topics))


def is_pattern(name: str) -> bool:
    """Whether a shell pattern may be meant; names may have these letters, too."""
    return not set("*?[").isdisjoint(name)


def pattern(text: str) -> Callable[[str], bool]:
    """Whether a name matches a shell pattern, which is read once."""
    match = re.compile(translate(text)).match
    return lambda name: match(name) is not None


def one_of(named: Collection[str], match: str | None) -> Callable[[str], bool]:
    """Whether a name is one of those named or matches the shell pattern; any does where neither is given."""
    if match is None:
        return (lambda _: True) if not named else frozenset(named).__contains__
    matches = pattern(match)
    return lambda name: name in named or matches(name)


def _any_of(patterns: Iterable[str]) -> _Match:
    found = [translate(pattern) for pattern in patterns]
    return re.compile("|".join(found) if found else r"(?!)").match
