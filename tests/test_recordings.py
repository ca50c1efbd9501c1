"""Recordings of real brokers, replayed, against what Kafka's own tools said at their end.

Every recording in `tests/recordings` has a `NAME.truth.json` with the answers of the tools as text. Those in a folder
named after a release were made by `tests.recorder`, whose table of scenarios says which alarms each group is worth.
"""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from coordinator_model.state.events import INFO
from streaming.__main__ import app
from tests import kafka_said
from tests.histories import History, Reported, recording
from tests.moments import overdue
from tests.recorder.recordings import PATHS, UNREAD, name_of, release_of
from tests.recorder.scenarios import BY_GROUP, FAMILIES
from tests.recorder.versions import BY_NAME, VERSIONS
from tests.side_by_side import without_past

# Of the first recording, which was made before there was a table of scenarios.
FIRST_ALARMS: Final = {"rec-full": {"downgrade_started"}}

CUTS: Final = 12
"""At how many places each recording is cleaned."""


@cache
def log(path: Path) -> History:
    return recording(path)


@cache
def reported(path: Path) -> Reported:
    return log(path).replayed()


@cache
def truths(path: Path) -> dict[str, kafka_said.Truth]:
    found: dict[str, kafka_said.Truth] = json.loads(
        path.with_name(path.name.partition(".ndjson")[0] + ".truth.json").read_text(encoding="utf-8")
    )
    return found


def living(path: Path) -> list[str]:
    return [group for group, truth in truths(path).items() if kafka_said.exists(truth)]


def cases() -> list[Any]:
    return [pytest.param(path, group, id=f"{name_of(path)}-{group}") for path in PATHS for group in living(path)]


def expected_alarms(path: Path, group: str) -> set[str]:
    if group not in BY_GROUP:
        return FIRST_ALARMS.get(group, set())
    return set(BY_GROUP[group].alarms_of(BY_NAME[release_of(path)]))


def timeless(views: dict[str, Any]) -> dict[str, Any]:
    """GROUP views without what depends on the moment at which they are looked at, or comes of another log."""
    for view in views.values():
        view.pop("share_partitions", None)
        for member in view["members"]:
            member.pop("classic_protocol", None)
    return views


def alarms(found: Reported, group: str) -> set[str]:
    return {event.kind for event in found.events if event.group == group and event.severity != INFO} - {
        "unknown_record"
    }


def test_every_scenario_of_every_release_is_recorded() -> None:
    """What a release can do and is not there was forgotten, or did not come off."""
    expected = {
        (version.name, family): {scenario.group for scenario in scenarios if scenario.is_for(version)}
        for version in VERSIONS
        for family, scenarios in FAMILIES.items()
    }
    found = {
        (path.parent.name, path.name.partition(".")[0]): set(truths(path)) for path in PATHS if path.suffix == ".gz"
    }

    assert {place: groups for place, groups in expected.items() if groups} == found


@pytest.mark.parametrize("path", PATHS, ids=name_of)
class TestWhole:
    """What holds for a recording as a whole."""

    def test_groups_are_those_kafka_knows(self, path: Path) -> None:
        """No group is missing, none is invented, and a deleted one is gone."""
        assert set(living(path)) == set(reported(path).views)

    def test_every_record_decodes(self, path: Path) -> None:
        """Records of a real broker hold nothing unknown, but where a release is known for it."""
        counters = reported(path).counters

        assert len(log(path)) == counters.records
        assert UNREAD.get(name_of(path), ({}, {})) == (counters.unknown_records, counters.undecodable_records)

    def test_state_and_events_are_the_same_cut_and_restored_anywhere(self, path: Path) -> None:
        """At every record the whole state goes through its snapshots and back, and all is reported as if it had not."""
        for sizes in ([1] * len(log(path)), [7] * len(log(path))):
            pieces = log(path).replayed_in_batches(sizes)

            assert reported(path).views == pieces.views
            assert reported(path).event_texts() == pieces.event_texts()

    def test_cleaned_anywhere_it_ends_in_the_same_groups(self, path: Path) -> None:
        """The cleaner keeps the last record of each key: states come out the same, and no alarm is made up."""
        chance = Random(name_of(path))
        for before in (*(chance.randrange(len(log(path))) for _ in range(CUTS)), len(log(path))):
            compacted = log(path).compacted(before).replayed()

            assert without_past(reported(path).views) == without_past(compacted.views)
            assert Counter() == compacted.alarms() - reported(path).alarms()

    def test_read_by_who_came_later_it_ends_in_the_same_groups(self, path: Path) -> None:
        """All of it was there before the monitor: no alarm is added, and state is the same."""
        end = max(record.place.offset for record in log(path).records) + 1
        caught_up = log(path).replayed(live_from=end)

        assert reported(path).views == caught_up.views
        assert Counter() == caught_up.alarms() - reported(path).alarms()

    def test_nothing_is_overdue_at_its_end(self, path: Path) -> None:
        """Everybody did what was to be done in time, or has time left."""
        end_ms = max(record.place.timestamp_ms for record in log(path).records)

        assert [] == [event for state in reported(path).states.values() for event in overdue(state, end_ms)]

    def test_replay_command_tells_the_same(self, path: Path) -> None:
        """`group-monitor replay` looks as time passes, too: nothing more comes of it, and groups are the same.

        It shows them as of the recording's end, which only what members on the classic protocol do depends on.
        """
        result = CliRunner().invoke(app, ["replay", str(path), "--json"])
        replayed = json.loads(result.stdout)

        assert timeless(json.loads(json.dumps(reported(path).views))) == timeless(replayed["groups"])
        assert reported(path).alarms() == Counter(
            (event["group"], event["kind"]) for event in replayed["events"] if event["severity"] != INFO
        )


@pytest.mark.parametrize(("path", "group"), cases())
class TestGroup:
    """A group as Kafka's tools showed it."""

    def test_state_and_epochs(self, path: Path, group: str) -> None:
        """State, number of members, and both epochs where they are reported, are Kafka's."""
        expected = kafka_said.state(truths(path)[group])
        view = reported(path).view(group)
        found = {**view, "members": len(view["members"])}
        if view["type"] == "classic":
            assert (None, None) == (expected.pop("epoch"), expected.pop("assignment_epoch"))

        assert expected == {key: found[key] for key in expected}

    def test_members_and_assignments(self, path: Path, group: str) -> None:
        """Members, their clients, epochs, protocols, what they own and what they shall own are Kafka's."""
        expected = kafka_said.members(truths(path)[group])
        release = BY_NAME[release_of(path)].number
        found = [kafka_said.as_reported(member, release) for member in reported(path).view(group)["members"]]

        assert len(expected) == len(found)
        assert expected == [{key: view[key] for key in member} for member, view in zip(expected, found, strict=True)]

    def test_committed_offsets(self, path: Path, group: str) -> None:
        """Every committed offset is Kafka's, and there is no other."""
        expected = kafka_said.offsets(truths(path)[group])
        found = {
            (offset["topic"], offset["partition"]): offset["offset"] for offset in reported(path).view(group)["offsets"]
        }

        assert expected is None or expected == found


@pytest.mark.parametrize(
    ("path", "group"),
    [pytest.param(path, group, id=f"{name_of(path)}-{group}") for path in PATHS for group in truths(path)],
)
def test_alarms_are_those_of_the_scenario(path: Path, group: str) -> None:
    """What went wrong in it is reported, and nothing else."""
    assert expected_alarms(path, group) == alarms(reported(path), group)
