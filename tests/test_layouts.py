"""Every layout a record's value can have is met in the recording of some real broker, or it is said why not.

Those that no broker recorded here writes are held to Kafka's own decoder instead, as all are, with generated records of
every type and version (`tests/integration/test_kafka_oracle.py`).
"""

from tests.layouts import NOT_WRITTEN, known_layouts, recorded_layouts
from tests.record_strategies import types_and_versions
from tests.recorder.recordings import PATHS


def test_each_layout_is_recorded_or_said_not_to_be_written() -> None:
    """None is missing, and none that is there is said not to be."""
    not_written = {layout for layouts in NOT_WRITTEN.values() for layout in layouts}

    assert known_layouts() - not_written == recorded_layouts(*PATHS)


def test_what_is_not_recorded_is_held_to_kafkas_decoder() -> None:
    """Its generated records are of each type and version that there is."""
    generated = {f"{record_type.name} v{version}" for record_type, version in types_and_versions()}
    values = {layout for layouts in NOT_WRITTEN.values() for layout in layouts if not layout.endswith("tombstone")}

    assert set() == {layout for layout in values if " ".join(layout.split()[:2]) not in generated}
