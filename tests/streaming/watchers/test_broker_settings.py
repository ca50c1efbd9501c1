"""What is made of the brokers' answers about conversions."""

from typing import Any

import pytest

from streaming.kafka.broker_queries import serves_consumers, strictness


@pytest.mark.parametrize(
    ("protocols", "group_version", "expected"),
    [
        (["classic,consumer,streams"], {"supported": (0, 1), "finalized": (0, 1)}, True),
        (["classic, Consumer", "classic,consumer"], {"supported": (0, 1), "finalized": (1, 1)}, True),
        # One broker of a roll that is under way does not serve it.
        (["classic,consumer", "classic"], {"supported": (0, 1), "finalized": (0, 1)}, False),
        # The feature is there and was not raised, as in a cluster that was upgraded without it.
        (["classic,consumer"], {"supported": (0, 1)}, False),
        (["classic,consumer"], {"supported": (0, 1), "finalized": (0, 0)}, False),
        # Before 4.0 there was no such feature.
        (["classic,consumer"], {}, True),
        (["classic"], {}, False),
        ([], {}, None),
        ([], {"supported": (0, 1), "finalized": (0, 1)}, None),
        ([], {"supported": (0, 1)}, False),
    ],
)
def test_consumer_protocol_is_enabled_by_configuration_and_feature(
    protocols: list[str], group_version: dict[str, Any], expected: bool | None
) -> None:
    """Both have to allow it, on every broker."""
    assert expected is serves_consumers(protocols, group_version)


def test_policies_in_the_order_of_what_they_allow_consumers_to_be_upgraded() -> None:
    """One that is not known could forbid it."""
    policies = ["bidirectional", "upgrade", "downgrade", "disabled", "of a later release"]

    assert policies[::-1] == sorted(policies, key=strictness)
    assert "Disabled" == min(["upgrade", "Disabled"], key=strictness)
