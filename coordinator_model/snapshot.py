"""State ⇄ text, for the checkpoint: what is written today must be read by the next release.

The text is JSON: `[FORMAT, object]`, an object holding only the fields that differ from their defaults. So a field
added later is absent from older text and takes its default, and a field that went away is passed over; only a
change of meaning needs a new format number, which `load_*` then refuses or translates.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final

from coordinator_model.group_state import GroupState
from coordinator_model.offsets import OffsetBucket

FORMAT: Final = 1

_Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class SnapshotFormatError(ValueError):
    """The text is of a format this release does not read."""


def dump_group(state: GroupState) -> str:
    """Everything remembered of a group but its offsets."""
    return _dump(GroupState, state)


def load_group(text: str) -> GroupState:
    """Inverse of `dump_group`; raises SnapshotFormatError."""
    return typing.cast("GroupState", _load(GroupState, text))


def dump_offsets(bucket: OffsetBucket) -> str:
    """One offset bucket."""
    return _dump(OffsetBucket, bucket)


def load_offsets(text: str) -> OffsetBucket:
    """Inverse of `dump_offsets`; raises SnapshotFormatError."""
    return typing.cast("OffsetBucket", _load(OffsetBucket, text))


def _dump(cls: type, value: object) -> str:
    encode, _ = _codec(cls)
    return json.dumps([FORMAT, encode(value)], separators=(",", ":"), ensure_ascii=False)


def _load(cls: type, text: str) -> object:
    found, body = json.loads(text)
    if found != FORMAT:
        raise SnapshotFormatError(f"snapshot format: found {found}, this release reads {FORMAT}")
    _, decode = _codec(cls)
    return decode(body)


@cache
def _codec(hint: Any) -> _Codec:
    """(encode, decode) of a type hint: scalars, optionals, tuples, lists, mappings and dataclasses of such."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_dataclass(hint):
        return _dataclass_codec(typing.cast("type", hint))
    if origin in (types.UnionType, typing.Union):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        encode, decode = _codec(inner)
        return (lambda v: None if v is None else encode(v), lambda v: None if v is None else decode(v))
    if origin in (tuple, list):
        encode, decode = _codec(arguments[0])
        return (lambda v: [encode(item) for item in v], lambda v: origin(decode(item) for item in v))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_codec(*arguments)
    if hint in (str, int, bool):
        return (_same, _same)
    raise TypeError(f"snapshots hold no {hint!r}")


def _same(value: Any) -> Any:
    return value


def _mapping_codec(key_type: type, value_type: Any) -> _Codec:
    encode, decode = _codec(value_type)
    return (
        lambda v: {str(key): encode(item) for key, item in v.items()},
        lambda v: {key_type(key): decode(item) for key, item in v.items()},
    )


def _dataclass_codec(cls: type) -> _Codec:
    hints = typing.get_type_hints(cls)
    parts = [(f.name, _default(f), *_codec(hints[f.name])) for f in fields(cls)]
    decoders = {name: decode for name, _, _, decode in parts}

    def encode(value: Any) -> dict[str, Any]:
        held = ((name, default, encode_part, getattr(value, name)) for name, default, encode_part, _ in parts)
        return {name: encode_part(item) for name, default, encode_part, item in held if item != default}

    def decode(body: dict[str, Any]) -> Any:
        return cls(**{name: decoders[name](item) for name, item in body.items() if name in decoders})

    return encode, decode


def _default(part: Field[Any]) -> object:
    if part.default_factory is not MISSING:
        return part.default_factory()
    return part.default
