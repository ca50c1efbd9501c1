"""Which offsets partition a group is in."""

import pytest

from coordinator_model.state.shards import offsets_partition


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("", 0),
        ("g-con", 48),
        ("g-scon", 43),  # a negative hash: floorMod would say 7
        ("g-migs", 16),
        ("polygenelubricants", 0),  # the smallest int, whose absolute value is no int
        ("группа", 8),
        ("😀grp", 36),  # two UTF-16 code units in one character
    ],
)
def test_partition_of_a_group(group: str, expected: int) -> None:
    """A group's records are in the partition Kafka puts them, seen on a live broker of 50 partitions."""
    assert expected == offsets_partition(group, 50)
