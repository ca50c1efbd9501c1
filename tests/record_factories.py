"""Every factory of `lab/builders.py` that makes a record, called with the least it asks for."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

from coordinator_model.records.record_types import RecordType
from coordinator_model.records.serde import Record, decode_record
from lab import builders
from lab.builders import RecordBytes

_SAMPLES: Final[dict[str, Any]] = {"topics": {"t": 1}, "partitions": {"t": [0]}, "subtopologies": {"0": ["t"]}}
"""Of what is neither a text nor a number."""

FACTORIES: Final[dict[str, Callable[..., RecordBytes]]] = {
    name: factory
    for name, factory in inspect.getmembers(builders, inspect.isfunction)
    if factory.__module__ == builders.__name__
    and inspect.signature(factory, eval_str=True).return_annotation == RecordBytes
}
"""By name."""


def built(factory: Callable[..., RecordBytes]) -> Record:
    """The record that a factory makes of the least it asks for; all are of one group."""
    asked = [of for of in inspect.signature(factory).parameters.values() if of.default is inspect.Parameter.empty]
    record = decode_record(*factory(**{of.name: _sample(of) for of in asked}))
    assert isinstance(record, Record)
    return record


def with_tombstones() -> Iterator[tuple[RecordType, Record, Record]]:
    """(type, record, its tombstone) of each factory that has one of a tombstone beside it."""
    for name in FACTORIES:
        if f"{name}_tombstone" in FACTORIES:
            record = built(FACTORIES[name])
            yield record.type, record, built(FACTORIES[f"{name}_tombstone"])


def _sample(of: inspect.Parameter) -> Any:
    return _SAMPLES[of.name] if of.name in _SAMPLES else {str: of.name, int: 1}[of.annotation]
