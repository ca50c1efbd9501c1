"""What a row of `table.py` is: a figure's name, how it is worked out of a state, and how it is packed.

A number is packed as one int64 among the others, so that those of many groups are columns at once. A word is an
attribute of an object that groups share, and JSON where it is stored.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast, dataclass_transform

from coordinator_model.figures.workings import Workings

NONE: Final = -(1 << 63)
"""A number that is not there."""

Value = TypeVar("Value")
Words = TypeVar("Words")

_ONE: Final = struct.Struct("=q")


class HasNumbers(Protocol):
    """Whatever holds the numbers of a group, packed by `packing`."""

    @property
    def numbers(self) -> bytes:
        """All of them."""
        ...


class _NumberRow:
    """A row of a class of numbers; its place is its place among the rows."""

    def __init__(self, worked_out: Callable[[Workings], int | None]) -> None:
        self.worked_out: Final = worked_out

    def __set_name__(self, owner: type, name: str) -> None:
        self._at = list(number_rows(owner)).index(name) * _ONE.size

    def _packed(self, of: HasNumbers) -> int:
        found: int = _ONE.unpack_from(of.numbers, self._at)[0]
        return found


class Number(_NumberRow):
    """A number that every group has."""

    def __init__(self, worked_out: Callable[[Workings], int]) -> None:
        super().__init__(worked_out)

    def __get__(self, of: HasNumbers, _: type) -> int:
        return self._packed(of)


class NumberOrNone(_NumberRow):
    """A number that may not be there, packed as `NONE` then."""

    def __get__(self, of: HasNumbers, _: type) -> int | None:
        found = self._packed(of)
        return None if found == NONE else found


def number_rows(table: type) -> dict[str, Callable[[Workings], int | None]]:
    """Name → how it is worked out, of the numbers of a class, in the order in which they are packed."""
    return {name: row.worked_out for name, row in vars(table).items() if isinstance(row, _NumberRow)}


def packing(count: int) -> struct.Struct:
    """How so many numbers are packed."""
    return struct.Struct(f"={count}q")


class WordRow(NamedTuple):
    """A row of a class of words: how it is worked out, and how it is made of what JSON has of it."""

    worked_out: Callable[[Workings], Any]
    of_json: Callable[[Any], Any]


def tupled(value: Any) -> Any:  # noqa: ANN401 - what JSON holds
    """What JSON has as lists, as tuples."""
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def word(worked_out: Callable[[Workings], Value], of_json: Callable[[Any], Any] = tupled) -> Value:
    """A row of a class of `words`; it says that it is a value of that type, as fields of dataclasses do."""
    return cast("Value", field(metadata={"row": WordRow(worked_out, of_json)}))


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(word,))
def words(table: type[Words]) -> type[Words]:
    """A class of words: its fields are rows, made by `word`, in the order in which they are stored."""
    return dataclass(frozen=True, slots=True, eq=False)(table)


def word_rows(table: type) -> dict[str, WordRow]:
    """Name → row, of the words of a class."""
    return {of.name: of.metadata["row"] for of in fields(table)}
