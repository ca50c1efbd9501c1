"""What members of a rehearsal are made with."""

from pathlib import Path

import pytest

from coordinator_model.state.membership import CLASSIC
from streaming.base.errors import UsageError
from streaming.rehearsal.members import Members
from streaming.rehearsal.shape import MemberShape, Shape


@pytest.mark.parametrize("given", ["soon", "0", "-1", "0.5"])
def test_an_interval_of_heartbeats_that_is_none_is_named(given: str, tmp_path: Path) -> None:
    """Members that send what was logged have no client that would refuse it; nothing is started."""
    member = MemberShape(name="a")
    shape = Shape(group="g", type=CLASSIC, assignor="cooperative-sticky", members=(member,))
    members = Members("127.0.0.1:9", shape, tmp_path, {"heartbeat.interval.ms": given})

    with pytest.raises(UsageError, match=r"--member-config: found heartbeat\.interval\.ms="):
        members.start(member, CLASSIC)
