"""librdkafka and Amazon MSK with IAM: the function that signs tokens is put into the settings where a client is made.

Settings cross processes as text, so what they hold is the region. Loads nothing at first: Spark's workers come by here
where no MSK is near.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

REGION_SETTING: Final = "group-monitor.aws.msk.region"
"""No setting of librdkafka's: `connectable` takes it out."""


def connectable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a client of librdkafka takes, in the process that it runs in."""
    held = dict(settings)
    region = held.pop(REGION_SETTING, None)
    if region is not None:
        from streaming.kafka.oauth_tokens import msk_tokens  # imported late, as said above

        def token(_: str) -> tuple[str, float]:
            lasting = msk_tokens(region).lasting()
            return lasting.text, time.time() + lasting.life_seconds

        held["oauth_cb"] = token
    return held
