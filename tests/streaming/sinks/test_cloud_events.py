"""Envelopes of events, read by the SDK of CloudEvents as other programs read them."""

import unicodedata
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary, from_structured
from cloudevents.core.formats.json import JSONFormat

from streaming.sinks import cloud_events, topic_format
from streaming.sinks.cloud_events import EventsFormat
from tests.streaming.sinks.test_topic_format import RECORDINGS, board_of

CLUSTER: Final = "prod / ü"
MODES: Final = {"cloudevents_binary": from_binary, "cloudevents_structured": from_structured}
EVENT: Final = {
    "id": "0-17-1",
    "time": 1_700_000_000_250,
    "group": "g",
    "kind": "member_joined",
    "severity": "info",
    "detail": {},
}


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    """What the model made of real logs: a kind of event each, as often as it is there."""
    return [dict(event) for path in RECORDINGS[:2] for event in board_of(path).latest_events(10_000)]


def read(event: dict[str, Any], how: EventsFormat) -> Any:
    """The CloudEvent that the SDK makes of what is written."""
    plain = topic_format.event_record(CLUSTER, event)[1]
    value, headers = cloud_events.enveloped(CLUSTER, event, plain, how)
    return MODES[how](KafkaMessage(headers=dict(headers), key=None, value=value), JSONFormat())


@pytest.mark.parametrize("how", MODES)
def test_every_event_is_a_cloud_event(events: list[dict[str, Any]], how: EventsFormat) -> None:
    """With the event as its data, and id, time, kind and group among its attributes."""
    assert len(events) > 50
    for event in events:
        envelope = read(event, how)

        assert {**event, "cluster": CLUSTER} == envelope.get_data()
        assert ("1.0", str(event["id"])) == (envelope.get_specversion(), envelope.get_id())
        assert (f"group-monitor.{event['kind']}", event["group"]) == (envelope.get_type(), envelope.get_subject())
        assert "/group-monitor/prod%20%2F%20%C3%BC" == envelope.get_source()
        assert "application/json" == envelope.get_datacontenttype()
        assert datetime.fromtimestamp(event["time"] / 1_000, UTC) == envelope.get_time()


def test_both_modes_say_the_same_and_without_envelope_nothing_is_added() -> None:
    """The binding's two content types; in binary mode the value is the event's own."""
    value = topic_format.event_record(CLUSTER, EVENT)[1]
    binary = cloud_events.enveloped(CLUSTER, EVENT, value, "cloudevents_binary")
    structured = cloud_events.enveloped(CLUSTER, EVENT, value, "cloudevents_structured")

    assert (value, ()) == cloud_events.enveloped(CLUSTER, EVENT, value, "json")
    assert value == binary[0]
    assert {b"application/json"} == {of for name, of in binary[1] if name == "content-type"}
    assert (("content-type", b"application/cloudevents+json; charset=UTF-8"),) == structured[1]
    assert read(EVENT, "cloudevents_binary").get_attributes() == read(EVENT, "cloudevents_structured").get_attributes()


@pytest.mark.parametrize("how", ["json", *MODES])
def test_what_is_written_is_read_again(how: EventsFormat) -> None:
    """`serve` reads a topic whose format was changed meanwhile."""
    value, _ = cloud_events.enveloped(CLUSTER, EVENT, topic_format.event_record(CLUSTER, EVENT)[1], how)

    assert {**EVENT, "cluster": CLUSTER} == topic_format.read_event(value)


@pytest.mark.parametrize("value", [b'{"specversion":"1.0","data":[]}', b'{"specversion":"1.0"}', b'{"data":{}}'])
def test_an_envelope_of_something_else_is_no_event(value: bytes) -> None:
    """Others may write to the topic, too."""
    with pytest.raises(ValueError, match="no event"):
        topic_format.read_event(value)


@pytest.mark.parametrize("how", MODES)
def test_a_group_of_any_name_has_a_subject_that_may_be_one(how: EventsFormat) -> None:
    """No control character, no half of a surrogate pair, no noncharacter; the data has the name as it is."""
    for name in ("a\x00b\n", "\udcff", "\ufffe", "😀", "%2F", '"'):
        envelope = read({**EVENT, "group": name}, how)
        subject = envelope.get_subject()

        assert name == envelope.get_data()["group"]
        assert [] == [of for of in subject if unicodedata.category(of) in ("Cc", "Cs", "Cn")]
        assert subject == name or "\ufffd" in subject

    assert read({**EVENT, "group": ""}, how).get_subject() is None
