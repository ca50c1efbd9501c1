"""The schema language and its codec, on structs made for the purpose: no record takes part."""

from dataclasses import MISSING, dataclass
from typing import Annotated, Any, ClassVar

import pytest

from coordinator_model.wire.codec import decode_struct, encode_struct
from coordinator_model.wire.primitives import BufferUnderflow, UnexpectedNull, UnsupportedVersion
from coordinator_model.wire.schema import (
    OFF_WIRE,
    ArrayOf,
    Bytes,
    Int8,
    Int16,
    Int32,
    OmittedAs,
    Schema,
    Since,
    String,
    Tag,
    Until,
    WireType,
    field_specs,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A nested struct with a tagged field of its own."""

    name: String
    weight: Annotated[Int16, Tag(3)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One of everything."""

    SCHEMA: ClassVar[Schema] = Schema(lowest=1, highest=3, flexible_since=2, written=2)

    height: Int32
    girth: Annotated[Int8, Since(2)] = -1
    owner: Annotated[String | None, Until(2)] = None
    leaves: tuple[Leaf, ...]
    fruit: Leaf | None
    rings: tuple[Int32, ...] | None
    bark: Annotated[Bytes, Since(3), Tag(9)] = b""
    nest: Annotated[Leaf | None, Since(2), Tag(0), OmittedAs(Leaf(name=""))]
    note: Annotated[str, OFF_WIRE] = "not written"


FULL = Tree(
    height=7,
    girth=2,
    owner="me",
    leaves=(Leaf(name="a"), Leaf(name="b", weight=5)),
    fruit=Leaf(name="f"),
    rings=(1, 2),
    nest=Leaf(name="n"),
)
BARE = Tree(height=7, leaves=(), fruit=None, rings=None, nest=Leaf(name=""))


def test_annotations_are_the_schema() -> None:
    """Type, null, versions, tag and default are read off the annotation, in the order of the wire."""
    specs = {spec.name: spec for spec in field_specs(Tree)}

    assert ["height", "girth", "owner", "leaves", "fruit", "rings", "bark", "nest"] == list(specs)
    assert (WireType.INT32, False, MISSING) == (specs["height"].type, specs["height"].nullable, specs["height"].default)
    assert (2, None) == (specs["girth"].since, specs["girth"].until)
    assert (WireType.STRING, True, 2) == (specs["owner"].type, specs["owner"].nullable, specs["owner"].until)
    assert ArrayOf(Leaf) == specs["leaves"].type
    assert (ArrayOf(WireType.INT32), True) == (specs["rings"].type, specs["rings"].nullable)
    assert (9, b"") == (specs["bark"].tag, specs["bark"].default)
    assert Leaf(name="") == specs["nest"].default


def test_field_without_a_wire_type_is_a_mistake() -> None:
    """A plain annotation would be neither written nor missed, so it is refused when the schema is read."""

    @dataclass(frozen=True)
    class Wrong:
        count: int

    with pytest.raises(TypeError, match=r"Wrong\.count: <class 'int'> has no wire type"):
        field_specs(Wrong)


def test_field_of_some_versions_needs_a_default() -> None:
    """Otherwise no one could say what a version without it means."""

    @dataclass(frozen=True)
    class Wrong:
        count: Annotated[Int32, Since(2)]

    with pytest.raises(TypeError, match=r"Wrong\.count is not in every version"):
        field_specs(Wrong)


@pytest.mark.parametrize(
    ("struct", "version", "raw"),
    [
        pytest.param(
            BARE,
            1,
            "00000007ffff00000000ffffffffff",
            id="non-flexible: legacy lengths and nulls, nothing behind the struct",
        ),
        pytest.param(
            BARE,
            2,
            "00000007ff0001ff0000",
            id="flexible: compact lengths and nulls, an empty tagged section behind the struct",
        ),
        pytest.param(BARE, 3, "00000007ff01ff0000", id="a field that ended is gone"),
        pytest.param(
            FULL,
            2,
            "0000000702036d6503026100026201030200050102660003000000010000000201000401026e00",
            id="each struct has its own tags, arrays of integers lie flat, a tagged struct has its presence mark",
        ),
    ],
)
def test_struct_has_these_bytes(struct: Tree, version: int, raw: str) -> None:
    """Layouts follow the version."""
    assert bytes.fromhex(raw) == encode_struct(struct, version)


@pytest.mark.parametrize("struct", [BARE, FULL])
def test_struct_survives_a_round_trip(struct: Tree) -> None:
    """What version 2 has comes back; attributes off the wire take their default."""
    assert struct == decode_struct(Tree, 2, encode_struct(struct, 2), 0)


def test_field_that_a_version_lacks_takes_its_default() -> None:
    """Reading version 1 gives the defaults of what came later."""
    read = decode_struct(Tree, 1, encode_struct(FULL, 1), 0)

    assert (-1, b"", Leaf(name="")) == (read.girth, read.bark, read.nest)
    assert (1, 1) == tuple(leaf.weight for leaf in read.leaves)


def test_null_that_is_not_the_default_is_written_out() -> None:
    """An omitted tag means the default; a tagged null struct therefore needs a mark of its own."""
    raw = encode_struct(Tree(height=7, leaves=(), fruit=None, rings=None, nest=None), 2)

    assert raw.endswith(bytes.fromhex("01000100"))
    assert decode_struct(Tree, 2, raw, 0).nest is None


def test_struct_cut_anywhere_underflows() -> None:
    """No prefix of a struct reads as a whole one."""
    raw = encode_struct(FULL, 2)
    for length in range(len(raw)):
        with pytest.raises(BufferUnderflow):
            decode_struct(Tree, 2, raw[:length], 0)


@pytest.mark.parametrize(
    ("schema", "version", "expected"),
    [
        (Schema(highest=4, flexible_since=4), 4, 4),
        (Schema(highest=4, flexible_since=4), 9, 4),
        (Schema(highest=4, flexible_since=4), 0, 0),
        (Schema(highest=3), 3, 3),
    ],
)
def test_layout_of_a_version_is_its_own_or_the_highest_flexible(schema: Schema, version: int, expected: int) -> None:
    """Flexible layouts read their successors (KIP-915)."""
    assert expected == schema.layout_version(version)


@pytest.mark.parametrize(
    ("schema", "version"),
    [(Schema(highest=3), 4), (Schema(highest=4, flexible_since=4), -1), (Schema(lowest=1, highest=2), 0)],
)
def test_layout_of_other_versions_is_unknown(schema: Schema, version: int) -> None:
    """A layout that is not flexible says nothing of its successor."""
    with pytest.raises(UnsupportedVersion, match=f"version {version}, known are"):
        schema.layout_version(version)


@pytest.mark.parametrize("changes", [{"leaves": None}, {"leaves": (Leaf(name=None),)}])  # type: ignore[arg-type]  # the point
def test_null_where_none_is_allowed_is_refused(changes: dict[str, Any]) -> None:
    """In a field and in an element of an array, by name."""
    struct = Tree(**{"height": 1, "leaves": (), "fruit": None, "rings": None, "nest": None, **changes})

    with pytest.raises(UnexpectedNull, match=r"Tree\.leaves"):
        encode_struct(struct, 1)
