"""State ⇄ text, for the checkpoint: what is written today must be read by the next release.

The text is JSON: `[FORMAT, object]`, an object holding only the fields that differ from their defaults. So a field
added later is absent from older text and takes its default, and a field that went away is passed over; only a
change of meaning needs a new format number, which `load_*` then refuses or translates.

Offsets are kept as numbers and words (`packed_offsets.py`). Where text alone may be, their numbers stand in the line
after the words, in base64; format 1 of that text had an object for each offset, and is read too.
"""

from __future__ import annotations

import json
import re
import types
import typing
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from coordinator_model.state import packed_offsets
from coordinator_model.state.alarms import FORMER_FIELDS, away_of_former_release, of_former_release
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import OffsetBucket
from coordinator_model.state.packed_offsets import PackedOffsets, SnapshotFormatError, check_format, refusal

FORMAT: Final = 1
"""Of groups."""
_OFFSETS_FORMATS: Final = (FORMAT, packed_offsets.FORMAT)
"""Of the text of offset buckets; written is the last."""


def dump_group(state: GroupState) -> str:
    """Everything remembered of a group but its offsets."""
    return _dump(GroupState, state)


def load_group(text: str) -> GroupState:
    """Inverse of `dump_group`, whatever stands in the lines after it; raises SnapshotFormatError."""
    head = text.partition("\n")[0]
    group = _body(head)
    if _OF_FORMER_RELEASE.search(head) is not None:
        group["alarms"] = of_former_release(group) | group.get("alarms", {})
    if '"absent_since_ms":' in head and '"absences":' not in head:
        group |= away_of_former_release(group)
    return typing.cast("GroupState", _codec(GroupState).decode(group))


_OF_FORMER_RELEASE: Final = re.compile(rf'"(?:{"|".join(FORMER_FIELDS)})":')
"""Looked for in the text, since almost no group has any of them."""


def text_of_offsets(packed: PackedOffsets) -> str:
    """One offset bucket as text."""
    numbers, said = packed
    return f"{said}\n{b2a_base64(numbers, newline=False).decode('ascii')}"


def offsets_of_text(text: str) -> PackedOffsets:
    """Inverse of `text_of_offsets`, also of format 1; raises SnapshotFormatError."""
    said, _, numbers = text.partition("\n")
    check_format(said, _OFFSETS_FORMATS)
    if not numbers:
        return packed_offsets.dump_offsets(typing.cast("OffsetBucket", _load(OffsetBucket, text)))
    return a2b_base64(numbers), said


_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)


def _dump(cls: type, value: object) -> str:
    return _JSON.encode([FORMAT, _codec(cls).encode(value)])


def _load(cls: type, text: str) -> object:
    return _codec(cls).decode(_body(text))


def _body(text: str) -> dict[str, Any]:
    """The object in a text; raises SnapshotFormatError."""
    found, body = json.loads(text)
    if found != FORMAT:
        raise SnapshotFormatError(refusal(found, (FORMAT,)))
    return typing.cast("dict[str, Any]", body)


class _Codec(NamedTuple):
    """How values of a type become what JSON holds, and come back from what was read of it.

    `is_plain` says that they are written as they are, `is_same` that they are read so.
    """

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    is_plain: bool
    is_same: bool


def _same(value: Any) -> Any:
    return value


@cache
def _codec(hint: Any) -> _Codec:
    """Of a type hint: scalars, optionals, tuples, lists, mappings and dataclasses of such."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_dataclass(hint):
        return _dataclass_codec(typing.cast("type", hint))
    if origin in (types.UnionType, typing.Union):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        encode, decode, is_plain, is_same = _codec(inner)
        return _Codec(
            _same if is_plain else lambda v: None if v is None else encode(v),
            _same if is_same else lambda v: None if v is None else decode(v),
            is_plain,
            is_same,
        )
    if origin in (tuple, list):
        return _sequence_codec(origin, _codec(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_codec(arguments[0], _codec(arguments[1]))
    if hint in (str, int, bool):
        return _Codec(_same, _same, True, True)
    raise TypeError(f"snapshots hold no {hint!r}")


def _sequence_codec(origin: type, of: _Codec) -> _Codec:
    encode, decode, is_plain, is_same = of
    return _Codec(
        _same if is_plain else lambda v: [encode(item) for item in v],
        origin if is_same else lambda v: origin(map(decode, v)),
        is_plain,
        is_same and origin is list,
    )


def _mapping_codec(key_type: type, of: _Codec) -> _Codec:
    """JSON writes a number that is a key as text of its own accord."""
    encode, decode, is_plain, is_same = of
    if key_type is str:
        reads = _same if is_same else lambda v: {key: decode(item) for key, item in v.items()}
    else:
        reads = lambda v: {key_type(key): decode(item) for key, item in v.items()}  # noqa: E731 - as the others
    writes = _same if is_plain else lambda v: {key: encode(item) for key, item in v.items()}
    return _Codec(writes, reads, is_plain, is_same and key_type is str)


def _dataclass_codec(cls: type) -> _Codec:
    hints = typing.get_type_hints(cls)
    codecs = {of.name: _codec(hints[of.name]) for of in _kept(cls)}
    decoders = {name: codec.decode for name, codec in codecs.items() if not codec.is_same}
    known = codecs.keys()

    def decode(body: dict[str, Any]) -> Any:
        if not body.keys() <= known:
            body = {name: item for name, item in body.items() if name in known}
        for name in body.keys() & decoders.keys():
            body[name] = decoders[name](body[name])
        return cls(**body)

    return _Codec(_encoder(cls, codecs), decode, False, False)


def _kept(cls: type) -> list[Field[Any]]:
    return [of for of in fields(cls) if of.metadata.get("kept", True)]


def _encoder(cls: type, codecs: Mapping[str, _Codec]) -> Callable[[Any], Any]:
    """A function compiled for the class: most fields of most objects have their defaults, and cost a comparison."""
    names: dict[str, Any] = {}
    lines = ["def encode(value):", "    body = {}"]
    for number, of in enumerate(_kept(cls)):
        codec, default = codecs[of.name], _default(of)
        names |= {f"default_{number}": default, f"encode_{number}": codec.encode}
        lines.append(f"    item = value.{of.name}")
        if is_dataclass(default) and not codec.encode(default):
            # One that has all its defaults is written as nothing, so it need not be compared.
            lines += [f"    item = encode_{number}(item)", f"    if item: body[{of.name!r}] = item"]
            continue
        differs = f"item is not default_{number} and item != default_{number}"
        if default is None:
            differs = "item is not None"
        elif default in ({}, (), []):
            differs = "item"
        written = "item" if codec.is_plain else f"encode_{number}(item)"
        lines.append(f"    if {differs}: body[{of.name!r}] = {written}")
    lines.append("    return body")
    exec("\n".join(lines), names)  # noqa: S102 - names of fields, and what is made above
    encode: Callable[[Any], Any] = names["encode"]
    return encode


def _default(part: Field[Any]) -> object:
    if part.default_factory is not MISSING:
        return part.default_factory()
    return part.default
