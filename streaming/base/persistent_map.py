"""All groups as of one moment, as a mapping that is never changed, and of which the next one is cheap to make.

A micro-batch touches some hundred groups of a hundred thousand, and readers go on with what they have. So the groups
are kept in many small dictionaries, by the hash of their name: the next mapping copies those that are touched and
shares the others. What a reader has not seen yet is found likewise, by a look at the dictionaries that are not shared.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from itertools import chain
from typing import Final, Generic, TypeVar, overload

Held = TypeVar("Held")
Other = TypeVar("Other")

PARTS: Final = 4_096
"""Of a hundred thousand groups two hundred are changed: then five thousand are copied, and looked at by each reader."""

_NOTHING: Final[dict[str, object]] = {}


class GroupMap(Mapping[str, Held], Generic[Held]):
    """Group name → what is held of it."""

    __slots__ = ("_length", "_parts")

    def __init__(self) -> None:
        self._parts: tuple[dict[str, Held], ...] = (_NOTHING,) * PARTS  # type: ignore[assignment]  # all are empty
        self._length = 0

    def __getitem__(self, name: str) -> Held:
        return self._parts[hash(name) % PARTS][name]

    @overload
    def get(self, name: str, default: None = None, /) -> Held | None: ...

    @overload
    def get(self, name: str, default: Other, /) -> Held | Other: ...

    def get(self, name: str, default: Other | None = None, /) -> Held | Other | None:
        """As any mapping's, but for the error that one raises and catches for each group there is not."""
        return self._parts[hash(name) % PARTS].get(name, default)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._length

    def items(self) -> ItemsView[str, Held]:
        """Names and what is held of them."""
        return _Items(self)

    def values(self) -> ValuesView[Held]:
        """What is held of all."""
        return _Values(self)

    def with_changes(self, changes: Mapping[str, Held | None]) -> "GroupMap[Held]":
        """The next mapping: with these groups in place of those of their name, without those that are None."""
        parts = list(self._parts)
        length = self._length
        for name, held in changes.items():
            number = hash(name) % PARTS
            part = parts[number]
            if part is self._parts[number]:
                part = parts[number] = dict(part)
            length -= len(part)
            if held is None:
                part.pop(name, None)
            else:
                part[name] = held
            length += len(part)
        made: GroupMap[Held] = GroupMap()
        made._parts = tuple(parts)
        made._length = length
        return made

    def since(self, former: "GroupMap[Held]") -> Iterator[tuple[str, Held | None, Held | None]]:
        """(name, what was held, what is held) of all groups that changed since a former mapping; None for no group."""
        for was, now in zip(former._parts, self._parts, strict=True):  # noqa: SLF001 - of another of us
            if was is now:
                continue
            yield from [(name, was.get(name), held) for name, held in now.items() if was.get(name) is not held]
            yield from [(name, before, None) for name, before in was.items() if name not in now]


class _Items(ItemsView[str, Held]):
    """Without a look for each name."""

    _mapping: GroupMap[Held]

    def __iter__(self) -> Iterator[tuple[str, Held]]:
        return chain.from_iterable(map(dict.items, self._mapping._parts))  # noqa: SLF001 - a view of it


class _Values(ValuesView[Held]):
    """Likewise."""

    _mapping: GroupMap[Held]

    def __iter__(self) -> Iterator[Held]:
        return chain.from_iterable(map(dict.values, self._mapping._parts))  # noqa: SLF001 - a view of it
