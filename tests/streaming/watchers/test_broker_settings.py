"""What is made of the brokers' answers about conversions."""

from typing import Any

import pytest

from streaming.kafka.broker_queries import finalized_levels, serves_consumers, strictness


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
    features = {} if not group_version else {"group.version": group_version}

    assert expected is serves_consumers(protocols, [features] * max(1, len(protocols)), all_say=False)


def test_policies_in_the_order_of_what_they_allow_consumers_to_be_upgraded() -> None:
    """One that is not known could forbid it."""
    policies = ["bidirectional", "upgrade", "downgrade", "disabled", "of a later release"]

    assert policies[::-1] == sorted(policies, key=strictness)
    assert "Disabled" == min(["upgrade", "Disabled"], key=strictness)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({}, {}),
        ({"metadata.version": {"supported": (7, 30), "finalized": (29, 29)}}, {"metadata.version": 29}),
        (
            {
                "metadata.version": {"supported": (7, 30), "finalized": (29, 29)},
                "group.version": {"supported": (0, 1), "finalized": (1, 1)},
                "share.version": {"supported": (0, 1)},
            },
            {"group.version": 1, "metadata.version": 29},
        ),
        # A broker that has yet to hear from its controller.
        ({"metadata.version": {"supported": (7, 30)}, "group.version": {"supported": (0, 1)}}, None),
    ],
)
def test_levels_that_a_broker_does_not_say_are_not_known(
    features: dict[str, Any], expected: dict[str, int] | None
) -> None:
    """A cluster of ZooKeeper has no levels; where there is a metadata.version there is a level of it."""
    assert expected == finalized_levels(features)
