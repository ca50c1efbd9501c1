"""What a section of the configuration is made of: options with their default, meaning and accepted values."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

MIB: Final = 1024 * 1024
MAX_PORT: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a configuration.

    Attributes:
        option: dotted path of the option, for example `http.port`.
        found: the value as it may be shown; secrets never get here.
        accepted: what would have been right.
        involves: the other options (dotted) the judgement rests on.
        origin: where the value came from: `FILE:LINE`, an environment variable or the command line.
    """

    option: str
    found: str
    accepted: str
    involves: tuple[str, ...] = ()
    origin: str = ""

    def __str__(self) -> str:
        where = f"{self.origin}: " if self.origin else ""
        return f"{where}{self.option}: found {self.found}, accepted: {self.accepted}"


def _not_bool(value: object) -> object:
    # pydantic reads YAML's true as the number 1.
    if isinstance(value, bool):
        raise ValueError("a truth value")  # noqa: TRY004 - pydantic turns only ValueError into a problem of the field
    return value


Whole = Annotated[int, BeforeValidator(_not_bool)]


Positive = Annotated[Whole, Field(ge=1)]


NotNegative = Annotated[Whole, Field(ge=0)]


Port = Annotated[Whole, Field(ge=0, le=MAX_PORT)]


Text = Annotated[str, Field(min_length=1)]


def _at_home(value: Path) -> Path:
    return Path(os.path.expanduser(value))  # noqa: PTH111 - without a home it stays, where Path would raise


HomePath = Annotated[Path, AfterValidator(_at_home)]
"""A path in which `~` is the home directory."""


def option(default: Any, meaning: str, *, accepted: str | None = None) -> Any:  # noqa: ANN401 - as pydantic's Field
    """Declare an option.

    Args:
        default: its value when nothing is said.
        meaning: what it does, one or two sentences; ends up in the reference file.
        accepted: what it accepts, where type and bounds do not say it well enough.
    """
    return Field(default=default, description=meaning, json_schema_extra={"accepted": accepted} if accepted else None)


class Section(BaseModel):
    """A part of the configuration: immutable, and without options it does not know."""

    # Input is kept out of pydantic's own messages: a secret may be part of it.
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def rules(self) -> Iterator[Problem]:
        """Yield what does not fit together; option names are relative to the section."""
        yield from ()


def all_rules(section: Section, prefix: str = "") -> Iterator[Problem]:
    """Yield the problems of a section and of those inside it, option names dotted from the root."""
    for problem in section.rules():
        yield Problem(
            option=prefix + problem.option,
            found=problem.found,
            accepted=problem.accepted,
            involves=tuple(prefix + name for name in problem.involves),
        )
    for name in type(section).model_fields:
        inner = getattr(section, name)
        if isinstance(inner, Section):
            yield from all_rules(inner, f"{prefix}{name}.")


def together(first: str, first_value: object, second: str, second_value: object) -> Iterator[Problem]:
    """The problem of two options of which only one has a value."""
    if (first_value is None) != (second_value is None):
        missing, given = (first, second) if first_value is None else (second, first)
        yield Problem(option=missing, found="none", accepted=f"a value, as {given} has one", involves=(given,))


def must_be_file(name: str, path: Path) -> Iterator[Problem]:
    """The problem of an option whose path is no file."""
    if not path.is_file():
        yield Problem(option=name, found=f"{str(path)!r}, which is no file", accepted="a readable PEM file")
