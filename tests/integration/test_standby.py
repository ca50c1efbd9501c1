"""A monitor that stands by, and takes over from one that was killed (`east_and_west`)."""

import pytest

from tests.integration.east_and_west import DOOMED, UNSEEN, Reported

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_second_monitor_is_refused_a_state_directory_in_use(reported: Reported) -> None:
    """At once, by an error that says who has it and what helps."""
    status, errors = reported.refused

    assert 2 == status
    assert any("in use by process" in line and "--standby" in line for line in errors)


def test_the_standby_shows_what_follows_from_the_log(reported: Reported) -> None:
    """Every group, member, epoch and offset as an undisturbed replay of the log has them, what came unseen included."""
    assert UNSEEN in reported.views
    assert DOOMED not in reported.views
    assert reported.answer.views == reported.views


def test_nothing_is_lost_and_nothing_is_reported_under_another_id(reported: Reported) -> None:
    """The events of both monitors, once each, are those that an undisturbed replay shows, word for word."""
    events = {event["id"]: {of: event[of] for of in event.keys() - {"text"}} for event in reported.events["standby"]}

    assert len(reported.events["standby"]) == len(events)
    assert {of: reported.answer.events[of] for of in events} == events
    assert reported.answer.events.keys() == events.keys()


def test_taking_over_is_all_there_is_to_say(reported: Reported) -> None:
    """No error, and no warning but that the other one's JVM has yet to end."""
    print(f"takeover: {reported.takeover_seconds:.1f} s")  # noqa: T201 - for a run with -s
    reported_of = [line for line in reported.errors["standby"] if "level=info" not in line]

    assert [] == [line for line in reported_of if "event=waits_for_former_jvm" not in line]
