"""Shapes from recordings of real brokers and from what a monitor answers, with and without their names."""

from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_model.records import consumer_protocol
from lab.builders import assignment, subscription
from streaming.base.errors import CannotTellError, CheckFailed, NoSuchGroupError
from streaming.recording.file_format import Header, RecordedRecord, open_new_recording
from streaming.rehearsal.shape import (
    FROM_A_MONITOR,
    OF_TWO_KINDS,
    MemberShape,
    Shape,
    distinct,
    of_recording,
    of_view,
    renamed,
    scaled,
)
from tests.cooperative_groups import AGAIN, FIRST, JAVA, generation

RECORDINGS: Final = Path(__file__).resolve().parents[2] / "recordings" / "4.3.1"


@pytest.mark.parametrize(
    ("file", "group", "before", "expected"),
    [
        ("classic", "cooperative-sticky-assignor", "classic", ("cooperative-sticky", 3, [6], True)),
        ("classic", "sticky-assignor", "classic", ("sticky", 3, [6], True)),
        ("classic", "streams-application", "classic", ("stream", 2, [2, 2], True)),
        ("consumer", "members-come-and-go", "consumer", (None, 3, [6], False)),
        ("consumer", "regular-expression-on-the-broker", "consumer", (None, 2, [2, 2], False)),
        ("conversions", "upgraded-member-by-member", "classic", ("cooperative-sticky", 2, [4], True)),
    ],
)
def test_shape_of_a_recorded_group(file: str, group: str, before: str, expected: tuple[Any, ...]) -> None:
    """Assignor, members, partitions, and whether it takes what was logged to be such a member."""
    shape = of_recording(RECORDINGS / f"{file}.ndjson.gz", group, before)

    assert expected == (shape.assignor, len(shape.members), [*shape.topics.values()], shape.sent_as_logged)
    assert {*shape.topics} == {topic for member in shape.members for topic in member.topics}


def test_a_group_that_is_another_at_the_end_is_taken_as_it_was() -> None:
    """With the most members of the protocol, and the report says of when; one that is still so needs no such note."""
    left = of_recording(RECORDINGS / "conversions.ndjson.gz", "upgraded-member-by-member", "classic")
    stayed = of_recording(RECORDINGS / "classic.ndjson.gz", "streams-application", "classic")

    assert ["as the group was at 2026-11"] == [note[:27] for note in left.notes if note.startswith("as the group")]
    assert [] == [note for note in stayed.notes if note.startswith("as the group")]


def test_members_of_a_recording_have_their_timeouts_and_instances() -> None:
    """Those that the log has."""
    shape = of_recording(RECORDINGS / "classic.ndjson.gz", "static-members-bounce", "classic")

    assert ["one", "two"] == sorted(str(member.instance_id) for member in shape.members)
    assert all(member.session_timeout_ms > 0 and member.rebalance_timeout_ms > 0 for member in shape.members)
    assert all(member.subscription for member in shape.members)


@pytest.mark.parametrize(("group", "before"), [("no-such", "classic"), ("members-come-and-go", "classic")])
def test_a_group_without_such_members_is_refused(group: str, before: str) -> None:
    """No such group, or none of that protocol."""
    with pytest.raises((CheckFailed, NoSuchGroupError), match=f"--group: found '{group}'"):
        of_recording(RECORDINGS / "consumer.ndjson.gz", group, before)


def test_names_are_replaced_everywhere() -> None:
    """In subscriptions and assignments, too; an assignor's own bytes stay as they are."""
    shape = Shape(
        group="secret",
        type="classic",
        assignor="ours",
        topics={"secret-t": 2},
        members=(
            MemberShape(
                name="secret-client",
                topics=("secret-t",),
                instance_id="secret-i",
                subscription=subscription(["secret-t"], user_data=b"mine"),
                assignment=assignment({"secret-t": [0, 1]}, user_data=b"ours"),
            ),
        ),
    )

    shown = renamed(shape)

    assert "secret" not in repr(shown)
    assert ("group-1", {"topic-1": 2}) == (shown.group, shown.topics)
    (member,) = shown.members
    joined = consumer_protocol.decode_subscription(member.subscription or b"")
    given = consumer_protocol.decode_assignment(member.assignment or b"")
    assert joined is not None
    assert given is not None
    assert (("topic-1",), b"mine", b"ours") == (joined.topics, joined.user_data, given.user_data)


def test_members_that_share_a_client_id_are_numbered_and_it_is_said() -> None:
    """Their reports and their leader tell them apart by name; no number is a name of another member's."""
    shape = Shape(group="g", type="classic", members=tuple(MemberShape(name=name) for name in ("a", "b", "a", "a#1")))

    shown = distinct(shape)

    assert ["a#2", "b", "a#3", "a#1"] == [member.name for member in shown.members]
    assert ("members share the client id a: their names here have a number, as in app#1",) == shown.notes
    assert distinct(shown) is shown


def test_more_members_than_can_be_run_are_scaled_down_and_it_is_said() -> None:
    """Fifty are run; a smaller group is left as it is."""
    many = Shape(group="g", type="classic", members=tuple(MemberShape(name=str(number)) for number in range(60)))

    assert 50 == len(scaled(many).members)
    assert "50 of 60 members" in scaled(many).notes[0]
    assert scaled(many, 60) is many


def view(**changed: Any) -> dict[str, Any]:
    """A GROUP as a monitor answers it."""
    one = {
        "member_id": "m", "instance_id": None, "client_id": "c", "protocol": "classic",
        "assigned": {"t": [0, 3]}, "target": {"t": [0, 3]}, "session_timeout_ms": 9_000, "rebalance_timeout_ms": None,
        "subscription": {"topics": ["t", "u"], "regex": None, "regex_topics": None},
    }  # fmt: skip
    group = {
        "group": "g",
        "protocol": "range",
        "protocol_type": "consumer",
        "members": [one],
        "offsets": [],
        "migration": {"blockers": []},
    }
    return {**group, **changed}


def test_shape_of_a_running_monitor_s_group() -> None:
    """Partitions as far as anybody is assigned or commits them; what the monitor does not tell is said."""
    offset = {"topic": "t", "partition": 5}

    shape = of_view(view(offsets=[offset]), "classic")

    assert ({"t": 6, "u": 1}, "range", (FROM_A_MONITOR,)) == (shape.topics, shape.assignor, shape.notes)
    (member,) = shape.members
    assert (("t", "u"), 9_000, 300_000) == (member.topics, member.session_timeout_ms, member.rebalance_timeout_ms)


def of_client(name: str, user_data_bytes: int, *, leader: bool = False) -> dict[str, Any]:
    """A member on cooperative-sticky as a monitor shows it."""
    (member,) = view()["members"]
    claim = {"assignor": "cooperative-sticky", "version": 3, "user_data_bytes": user_data_bytes}
    return {**member, "member_id": name, "client_id": name, "claims": [claim], "leader": leader}


@pytest.mark.parametrize(
    ("leader", "other", "blockers", "light"),
    [
        (0, 0, ["librdkafka_cooperative_sticky"], ["leader", "other"]),
        (8, 8, ["assignment_user_data", "librdkafka_cooperative_sticky"], ["leader", "other"]),
        (0, 4, ["assignment_user_data", "librdkafka_cooperative_sticky"], ["leader"]),
        (4, 8, [], ["other"]),
        (4, 4, [], []),
        (8, 8, [], []),
    ],
)
def test_members_of_librdkafka_on_cooperative_sticky_are_run_by_it(
    leader: int, other: int, blockers: list[str], light: list[str]
) -> None:
    """What it does when members rejoin decides; Java's are as they were, and the report says that there are both."""
    members = [of_client("leader", leader, leader=True), of_client("other", other)]
    shape = of_view(view(protocol="cooperative-sticky", members=members, migration={"blockers": blockers}), "classic")

    assert light == [member.name for member in shape.members if member.librdkafka]
    assert ["leader"] == [member.name for member in shape.members if member.leads]
    assert (OF_TWO_KINDS in shape.notes) == (len(light) == 1)
    assert shape.has_librdkafka == bool(light)


@pytest.mark.parametrize(
    ("clients", "light"), [([FIRST, FIRST], 2), ([AGAIN, AGAIN], 2), ([JAVA, AGAIN], 1), ([JAVA, JAVA], 0)]
)
def test_members_of_librdkafka_are_seen_in_a_recording(clients: list[str], light: int, tmp_path: Path) -> None:
    """By what they joined with."""
    file = tmp_path / "log.ndjson"
    key, value = generation(5, clients)
    with open_new_recording(file, Header(kafka_version="4.3.1", offsets_topic_partitions=1, topics=())) as recording:
        recording.write(RecordedRecord(partition=0, offset=0, timestamp_ms=1, key=key, value=value))

    shape = of_recording(file, "g", "classic")

    assert light == sum(member.librdkafka for member in shape.members)
    assert ["app-0"] == [member.name for member in shape.members if member.leads]


def test_what_a_running_monitor_cannot_tell_is_not_invented() -> None:
    """User data of a custom assignor is in the log alone; a group without such members cannot be rolled."""
    with pytest.raises(CannotTellError, match="accepted: --from RECORDING"):
        of_view(view(migration={"blockers": ["assignment_user_data"]}), "classic")
    with pytest.raises(CannotTellError, match="protocol type connect"):
        of_view(view(protocol_type="connect"), "classic")
    with pytest.raises(CheckFailed, match="without members of the consumer protocol"):
        of_view(view(), "consumer")


def test_a_group_in_the_middle_of_its_roll_has_no_shape() -> None:
    """Half of its members are not its size."""
    (classic,) = view()["members"]

    with pytest.raises(CheckFailed, match="with 1 of 2 members rolled, accepted: a group before its roll"):
        of_view(view(members=[classic, {**classic, "protocol": "consumer"}]), "classic")
