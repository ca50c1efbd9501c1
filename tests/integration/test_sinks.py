"""What leaves a monitor through Kafka, and who serves page and figures from that alone (`east_and_west`)."""

import json
from typing import Any, Final

import jsonschema
import pytest

from lab.monitor_process import ROOT
from tests.integration.east_and_west import CLASSIC, CONSUMER, DOOMED, EVENTS, GROUPS, SIMPLE, UNSEEN, Reported

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

SCHEMAS: Final = ROOT / "docs" / "schemas"


def test_check_makes_the_topics_as_they_must_be(reported: Reported) -> None:
    """The one of groups is compacted, the one of events is not."""
    assert {
        "kafka_sink.events_topic": f"ok: {EVENTS} has 1 partitions, cleanup.policy delete, made now",
        "kafka_sink.groups_topic": f"ok: {GROUPS} has 1 partitions, cleanup.policy compact, made now",
    } == reported.check


def test_check_says_what_is_amiss_with_a_topic(reported: Reported) -> None:
    """By the option, with what was found, and the command that makes it right."""
    events, groups = reported.unfit

    assert f"kafka_sink.events_topic: found {GROUPS!r} with cleanup.policy 'compact', accepted: 'delete'" == events
    assert "kafka_sink.groups_topic: found no 'not-there', accepted: " in groups
    assert "kafka-topics.sh --create --topic not-there --config cleanup.policy=compact" in groups


@pytest.mark.parametrize("when", ["at first", "after the takeover"])
def test_who_serves_the_topics_shows_what_the_monitor_shows(reported: Reported, when: str) -> None:
    """Every GROUP with its lag, and every figure on /metrics that is not of the process itself."""
    (expected_groups, expected_figures), (groups, figures) = reported.compared[when]

    assert {CLASSIC, CONSUMER, SIMPLE} <= expected_groups.keys()
    assert expected_groups == groups
    # Commits of this story are beyond the end of an empty topic, so there is no lag.
    assert {"kafka_group_commits_total", "kafka_consumergroup_group_offset"} <= expected_figures.keys()
    assert expected_figures == figures


def test_who_serves_goes_on_while_the_monitor_is_away(reported: Reported) -> None:
    """The groups stay, and how long nothing was heard is reported; nothing went wrong that had to be logged."""
    assert {CLASSIC, CONSUMER, SIMPLE, DOOMED} <= reported.away["groups"]
    assert reported.away["age"] > 0
    assert [] == reported.errors["served"]


def test_who_serves_tells_each_event_once(reported: Reported) -> None:
    """Those of two monitors, one after the other: each that follows from the log, whatever is twice in the topic."""
    ids = [event["id"] for event in reported.events["served"]]

    assert sorted(reported.answer.events) == sorted(ids)


def test_events_in_the_topic_say_the_same_when_they_are_there_twice(reported: Reported) -> None:
    """At least once: each is there, and a repeat says nothing else. The key is the group."""
    events: dict[str, Any] = {}
    for topic, key, value in reported.records:
        if topic == EVENTS:
            assert value == events.setdefault(value["id"], value)
            assert (value["group"],) == key

    assert reported.answer.events.keys() == events.keys()


def test_the_newest_records_are_the_groups_there_are(reported: Reported) -> None:
    """A deleted group has a tombstone; the others are as the log has them."""
    newest = {key[1]: value for topic, key, value in reported.records if topic == GROUPS and len(key) == 2}

    assert newest[DOOMED] is None
    assert {CLASSIC, CONSUMER, SIMPLE, UNSEEN} == {group for group, value in newest.items() if value is not None}
    for group, view in reported.answer.views.items():
        offsets = [(of["topic"], of["partition"], of["offset"]) for of in newest[group]["state"]["offsets"]]
        assert [(of["topic"], of["partition"], of["offset"]) for of in view["offsets"]] == offsets


def test_records_are_as_their_schemas_say(reported: Reported) -> None:
    """Every record of both topics, by the documents that others write their readers by."""
    names = {"group-state/1": "group-state", "monitor-state/1": "monitor-state", None: "event"}
    schemas = {name: json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8")) for name in names.values()}
    seen = set()
    for _, _, value in reported.records:
        if value is not None:
            name = names[value.get("format")]
            jsonschema.validate(value, schemas[name])
            seen.add(name)

    assert set(names.values()) == seen
