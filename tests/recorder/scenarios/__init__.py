"""The table: family → scenarios. A recording holds the groups of one family of one release."""

from collections.abc import Mapping
from typing import Final

from tests.recorder.scenarios import classic, consumer, conversions, offsets, share_and_streams
from tests.recorder.scene import Scenario

FAMILIES: Final[Mapping[str, tuple[Scenario, ...]]] = {
    "classic": classic.SCENARIOS,
    "consumer": consumer.SCENARIOS,
    "conversions": conversions.SCENARIOS,
    "offsets": offsets.SCENARIOS,
    "share-and-streams": share_and_streams.SCENARIOS,
}

BY_GROUP: Final[Mapping[str, Scenario]] = {
    scenario.group: scenario for scenarios in FAMILIES.values() for scenario in scenarios
}
