"""Hypothesis strategies for whole logs: lawful ones of a simulated coordinator, and ones that no one would write."""

from dataclasses import fields, replace
from typing import Any, Final

from hypothesis import strategies as st

from coordinator_model.records.serde import Record, encode_record
from tests.histories import History, at, history
from tests.record_strategies import records, types_and_versions
from tests.side_by_side import lawful
from tests.simulator.coordinator import ReferenceCoordinator

_SMALL: Final[dict[str, st.SearchStrategy[Any]]] = {
    "group": st.sampled_from(("g", "h")),
    "group_id": st.sampled_from(("g", "h")),
    "member_id": st.sampled_from(("a", "b")),
    "topic": st.sampled_from(("t", "")),
    "partition": st.sampled_from((0, 63, 64, -1, 2**31 - 1)),
    "regular_expression": st.just("rx-.*"),
}
"""Key fields that come from few values, so that records meet."""


@st.composite
def _records_that_meet(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    record: Record = draw(st.sampled_from(types_and_versions()).flatmap(lambda row: records(*row)))
    names = [part.name for part in fields(record.key)]
    key = replace(record.key, **{name: draw(_SMALL[name]) for name in names})
    return encode_record(key, None if draw(st.booleans()) else record.value, record.value_version)


def nonsense(max_size: int = 12) -> st.SearchStrategy[History]:
    """Well-formed records in an order and with values no broker would write, and some bytes that are no records."""
    key_values = st.one_of(_records_that_meet(), st.tuples(st.binary(max_size=24), st.none() | st.binary(max_size=24)))
    moments = st.tuples(st.integers(0, 3), st.lists(key_values, min_size=1, max_size=4)).map(
        lambda of: at(of[0], *of[1])
    )
    return st.lists(moments, max_size=max_size).map(lambda of: history(*of))


def simulated() -> st.SearchStrategy[ReferenceCoordinator]:
    """A coordinator of two groups that has had some events."""
    return st.integers(0, 2**32).map(lawful)
