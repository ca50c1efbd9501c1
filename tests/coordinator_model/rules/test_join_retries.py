"""A static client that retries its join under new member ids while a broker dies: one process, not two that contend."""

from random import Random
from typing import Final

import pytest

from tests.side_by_side import Scene
from tests.simulator import faults

SEEDS: Final = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_client_that_retries_its_join_contends_with_none(seed: int) -> None:
    """However often and however fast: its client id and host stay the same."""
    chance, scene = Random(seed), Scene(seed)
    scene.classic_members(chance.randint(1, 3), static=True)
    member = chance.choice(list(scene.group.members.values()))
    faults.flap(
        scene.coordinator,
        scene.group,
        member,
        times=chance.randint(3, 12),
        every_ms=chance.choice((3_200, 6_000, 20_000)),
    )

    events, _ = scene.reported()

    assert [] == [of for of in events if of.kind in ("static_member_contended", "duplicate_assignment", "stale_claim")]
