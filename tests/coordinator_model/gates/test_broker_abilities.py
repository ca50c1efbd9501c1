"""What brokers can do decides before what they are configured to do: gate and plan, by mixes of releases."""

from dataclasses import replace
from typing import Any, Final

import pytest

from coordinator_model.gates.broker_abilities import ABILITIES, Broker, recorded
from coordinator_model.gates.plan import PlannedGroup, planned
from coordinator_model.gates.upgrade import upgrade_gate
from coordinator_model.gates.verdict import BrokerSettings, Cluster
from lab.builders import group_metadata, member, new_group_metadata
from tests.brokers_by_release import ALLOWING, api_versions, broker, brokers
from tests.histories import History, at, history

CONSUMERS: Final = history(at(0, group_metadata("g", generation=1, members=[member("m", {"t": [0]})])))
EMPTY: Final = history(at(0, new_group_metadata("g")))

OF_4_3: Final = brokers(["4.3"] * 3)
LOWEST_3_6: Final = brokers(["4.3", "3.6", "4.0"])
LOWEST_3_7: Final = brokers(["3.7", "3.8"])
OF_3_9: Final = brokers(["3.9"])


def gate(settings: BrokerSettings, log: History = CONSUMERS) -> dict[str, Any]:
    return upgrade_gate(log.replayed().states.values(), Cluster(settings=settings))


def plan(settings: BrokerSettings, log: History = CONSUMERS) -> PlannedGroup:
    return planned(log.replayed().states["g"], settings)


@pytest.mark.parametrize(
    ("release", "lacks"),
    [
        ("2.0", set(ABILITIES)),
        ("3.6", set(ABILITIES)),
        ("3.7", set(ABILITIES) - {"consumer_protocol"}),
        ("3.8", {"consumer_protocol_ga", "group_configs", "lists_group_configs"}),
        ("3.9", {"consumer_protocol_ga", "group_configs", "lists_group_configs"}),
        ("4.0", {"lists_group_configs"}),
        ("4.1", set()),
        ("4.3", set()),
    ],
)
def test_requests_that_a_release_serves_are_what_it_can_do(release: str, lacks: set[str]) -> None:
    """By the ApiVersions of real brokers of it."""
    assert lacks == ABILITIES.keys() - broker(1, release).abilities


def test_requests_that_are_switched_on_early_make_no_later_release() -> None:
    """3.7 with `unstable.api.versions.enable`, as the consumer protocol needs there, names ConsumerGroupDescribe."""
    early = Broker.of(1, "3.7", {**api_versions("3.7"), 69: (0, 0)})

    assert {"consumer_protocol"} == early.abilities
    assert ["brokers_first"] == [of["code"] for of in gate(replace(ALLOWING, brokers=[early]))["reasons"]]


@pytest.mark.parametrize(
    ("release", "able"),
    [
        ("2.0.1", frozenset()),
        ("3.6", frozenset()),
        ("3.7.2", frozenset({"consumer_protocol"})),
        ("3.8", None),
        ("4.3.1", None),
        ("trunk", None),
        (None, None),
    ],
)
def test_release_of_a_recording_says_where_no_group_could_be_upgraded(
    release: str | None, able: frozenset[str] | None
) -> None:
    """Whether any other could depends on more than that."""
    found = recorded(release)

    assert able == (None if found is None else found[0].abilities)
    if found is not None:
        assert "closed" == gate(BrokerSettings(brokers=found))["verdict"]
        assert "blocked" == plan(BrokerSettings(brokers=found)).readiness


UNSAID: Final[dict[str, Any]] = {"migration_policy": None, "consumer_max_size": None}

DECIDED: Final[dict[str, tuple[BrokerSettings, str, str | None, str, str | None]]] = {
    # The one who would go.
    "all of 4.3": (ALLOWING, "open", None, "ready", None),
    "preview, switched on": (replace(ALLOWING, brokers=OF_3_9), "cannot_tell", "preview", "care", "preview"),
    # The one whom brokers would refuse.
    "one of 3.6 among 4.x": (
        replace(ALLOWING, brokers=LOWEST_3_6), "closed", "brokers_first", "blocked", "brokers_first",
    ),
    "one of 3.7 among 3.8": (
        replace(ALLOWING, brokers=LOWEST_3_7), "closed", "brokers_first", "blocked", "brokers_first",
    ),
    "all of 2.0": (
        BrokerSettings(asked=True, brokers=brokers(["2.0"] * 3)), "closed", "brokers_first", "blocked", "brokers_first",
    ),
    "protocol off": (
        replace(ALLOWING, consumer_protocol=False), "closed", "consumer_protocol", "blocked", "consumer_protocol",
    ),
    "preview, off": (
        replace(ALLOWING, brokers=OF_3_9, consumer_protocol=False),
        "closed", "brokers_first", "blocked", "brokers_first",
    ),
    "policy disabled": (
        replace(ALLOWING, migration_policy="disabled"), "closed", "migration_policy", "blocked", "migration_policy",
    ),
    # Where it cannot be known.
    "no permission": (
        replace(ALLOWING, consumer_protocol=None, **UNSAID),
        "cannot_tell", "broker_configuration", "unknown", "broker_configuration",
    ),
    "out of reach": (
        BrokerSettings(asked=True), "cannot_tell", "broker_configuration", "unknown", "broker_configuration",
    ),
    # No broker is asked for a recording: the gate opens for none, and the plan is the log's.
    "nobody asked": (BrokerSettings(), "cannot_tell", "broker_configuration", "ready", None),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "verdict", "reason", "readiness", "why"), DECIDED.values(), ids=DECIDED)
def test_the_broker_that_can_least_decides(
    settings: BrokerSettings, verdict: str, reason: str | None, readiness: str, why: str | None
) -> None:
    """Which broker leads the group is not known, so each has to convert it; and what is not known is not yes."""
    answer, found = gate(settings), plan(settings)
    codes = [of["code"] for of in answer["reasons"]]

    assert (verdict, [] if reason is None else [reason]) == (answer["verdict"], codes)
    assert (readiness, why) == (found.readiness, found.reasons[0] if why is not None else None)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            replace(ALLOWING, brokers=LOWEST_3_6),
            "broker 2 (3.6) without the consumer protocol (ConsumerGroupHeartbeat)",
        ),
        (replace(ALLOWING, brokers=LOWEST_3_7), "broker 1 (3.7) from before group.consumer.migration.policy (3.8)"),
        (replace(ALLOWING, brokers=OF_3_9, consumer_protocol=False), "broker 1 (3.9) with the consumer protocol as a"),
        (replace(ALLOWING, brokers=brokers(["2.0"] * 5)), "broker 3 (2.0) and 2 more without"),
    ],
)
def test_which_brokers_come_first_is_said(settings: BrokerSettings, expected: str) -> None:
    """With what they lack, and what can be done on that release: there is no setting for it."""
    (text,) = (of["text"] for of in gate(settings)["reasons"] if of["code"] == "brokers_first")

    assert text.startswith("The brokers first: ")
    assert expected in text
    assert "Upgrade every broker to 4.0 or later" in text
    assert "group.version" not in text


@pytest.mark.parametrize(
    ("settings", "verdict", "readiness"),
    [
        (replace(ALLOWING, brokers=LOWEST_3_6), "closed", "blocked"),
        (replace(ALLOWING, consumer_protocol=False), "closed", "blocked"),
        # An empty group becomes a consumer group with its first member, under any policy.
        (replace(ALLOWING, brokers=LOWEST_3_7), "open", "unknown"),
        (replace(ALLOWING, migration_policy="disabled"), "open", "unknown"),
    ],
)
def test_a_group_without_members_needs_the_protocol_alone(
    settings: BrokerSettings, verdict: str, readiness: str
) -> None:
    """A broker that has it takes the first consumer of the new protocol; one that has not refuses it."""
    assert (verdict, readiness) == (gate(settings, EMPTY)["verdict"], plan(settings, EMPTY).readiness)


def test_what_blocks_a_group_is_not_hidden_by_what_is_unknown() -> None:
    """Brokers may be silent: that the log shows a group which no broker would take stays known."""
    silent = replace(ALLOWING, consumer_protocol=None, **UNSAID)
    twice = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]}), member("b", {"t": [0]})]))
    )

    assert ("closed", "blocked") == (gate(silent, twice)["verdict"], plan(silent, twice).readiness)
