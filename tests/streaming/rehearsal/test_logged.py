"""What the leader of members that send what was logged gives out."""

from dataclasses import replace
from typing import Final
from uuid import uuid4

from coordinator_model.records import consumer_protocol
from lab.builders import assignment
from streaming.rehearsal.shape import MemberShape, Shape, distinct
from streaming.rehearsal.wire_member import Logged

SHAPE: Final = Shape(
    group="g",
    type="classic",
    assignor="ours",
    topics={"t": 4},
    members=(
        MemberShape(name="a", assignment=assignment({"t": [0, 3]}, user_data=b"plan")),
        MemberShape(name="b", assignment=assignment({"t": [1, 2]}, user_data=b"plan")),
    ),
)


def divided(logged: Logged, *members: str) -> dict[str, list[int]]:
    """Member → partitions of t; every assignment carries the user data."""
    found = {}
    for member_id, blob in logged.divide(members).items():
        given = consumer_protocol.decode_assignment(blob)
        assert given is not None
        found[member_id] = sorted(number for part in given.assigned_partitions for number in part.partitions)
    return found


def known(shape: Shape) -> Logged:
    logged = Logged(shape)
    for name in ("a", "b", "c"):
        logged.know(f"id-{name}", name)
    return logged


def test_the_members_that_were_logged_have_what_was_logged() -> None:
    """User data included."""
    logged = known(SHAPE)

    blobs = logged.divide(["id-a", "id-b"])

    assert {f"id-{member.name}": member.assignment for member in SHAPE.members} == blobs


def test_members_that_share_a_client_id_have_what_each_of_them_had() -> None:
    """As Java's default client id has it; a leader that knows neither by name yet gives no partition twice."""
    one, two = (replace(member, name="app") for member in SHAPE.members)
    shape = distinct(replace(SHAPE, members=(one, two)))
    ids = [f"{member.name}-{uuid4()}" for member in shape.members]

    assert [[0, 3], [1, 2]] == list(divided(Logged(shape), *ids).values())


def test_other_members_keep_what_they_have_and_share_the_rest() -> None:
    """The member that is left takes what the other had; one that comes back takes nothing that is held."""
    logged = known(SHAPE)
    divided(logged, "id-a", "id-b")

    assert {"id-a": [0, 1, 2, 3]} == divided(logged, "id-a")
    assert {"id-a": [0, 1, 2, 3], "id-b": []} == divided(logged, "id-a", "id-b")


def test_a_cooperative_leader_takes_away_in_one_round_and_gives_in_the_next() -> None:
    """No one is given what another still has; then all have as many, give or take one."""
    logged = known(replace(SHAPE, assignor="cooperative-sticky"))
    divided(logged, "id-a", "id-b")
    divided(logged, "id-a")

    assert {"id-a": [0, 3], "id-b": []} == divided(logged, "id-a", "id-b")
    assert {"id-a": [0, 3], "id-b": [1, 2]} == divided(logged, "id-a", "id-b")


def test_a_dynamic_member_that_is_started_again_begins_with_nothing() -> None:
    """The other keeps what it has, and what the former process had is free."""
    logged = known(SHAPE)
    divided(logged, "id-a", "id-b")
    logged.know("id-a2", "a")

    assert {"id-a2": [0, 3], "id-b": [1, 2]} == divided(logged, "id-a2", "id-b")


def test_a_leader_knows_members_whose_own_answer_is_yet_to_be_read() -> None:
    """Ids begin with the client id or the instance id: what members were given is theirs in the next round, too."""
    shape = replace(SHAPE, members=(SHAPE.members[0], replace(SHAPE.members[1], instance_id="i-b")))
    logged = Logged(shape)
    a, b = (f"{name}-{uuid4()}" for name in ("a", "i-b"))
    logged.know(a, "a")

    first = divided(logged, a, b)
    logged.know(b, "b")

    assert {a: [0, 3], b: [1, 2]} == first == divided(logged, a, b)


def test_what_is_no_consumer_s_is_given_out_byte_by_byte() -> None:
    """No one here knows the format of a protocol type of its own."""
    shape = Shape(
        group="g", type="classic", protocol_type="connect", members=(MemberShape(name="a", assignment=b"\x01"),)
    )

    assert {"id-a": b"\x01", "id-b": b""} == known(shape).divide(["id-a", "id-b"])
