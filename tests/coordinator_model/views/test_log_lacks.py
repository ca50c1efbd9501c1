"""What the log of old brokers does not hold is said of the groups that it matters to, and of no others."""

from typing import Any

import pytest

from coordinator_model.views.log_lacks import lacks
from coordinator_model.wire.primitives import ZERO_UUID
from lab.builders import RecordBytes, consumer_group_epoch, group_metadata, member, offset_commit
from lab.coordinator_events import consumer_join
from tests.histories import at, history

STATIC = group_metadata("g", generation=1, members=[member("m", {"t": [0]}, instance_id="i")])
DYNAMIC = group_metadata("g", generation=1, members=[member("m", {"t": [0]})])
OLD, NEW = offset_commit("g", "t", 0, 5, version=3), offset_commit("g", "t", 1, 5)
ZEROS = offset_commit("g", "t", 0, 5, id_of_topic=ZERO_UUID)


def codes(*records: RecordBytes, **known: Any) -> list[str]:
    """What is said to be lacking of the group that these records make."""
    view = history(at(0, *records)).replayed().view("g")
    return [each["code"] for each in lacks(view, **{"has_topic_ids": None, **known})]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"has_topic_ids": False}, True),
        ({"has_topic_ids": None}, True),
        ({"has_topic_ids": False, "release": (2, 6, 3)}, True),
        ({"has_topic_ids": True}, False),
        ({"has_topic_ids": False, "release": (2, 7)}, False),
    ],
)
def test_return_of_a_static_member_is_not_in_the_log_of_brokers_before_2_7(known: dict[str, Any], said: bool) -> None:
    """Where it is not known what they are it may be so; those with topic ids are newer."""
    assert ["static_returns"] * said == codes(STATIC, **known)


def test_group_without_static_members_of_the_classic_protocol_lacks_no_return() -> None:
    """The consumer protocol writes it on every broker that has it."""
    assert [] == codes(DYNAMIC, has_topic_ids=False)
    assert [] == codes(*consumer_join("g", "m", epoch=2, targets={"m": {"t": [0]}}, instance_id="i"))
    assert [] == codes(consumer_group_epoch("g", 1))


@pytest.mark.parametrize(
    ("commits", "said"), [((OLD,), True), ((ZEROS,), True), ((NEW,), False), ((OLD, NEW), False), ((), False)]
)
def test_commits_of_which_none_names_a_topic_id_are_said_to_lack_it(
    commits: tuple[RecordBytes, ...], said: bool
) -> None:
    """All zeros are no id; one that names an id shows that the brokers write them."""
    assert ["topic_ids"] * said == codes(DYNAMIC, *commits, has_topic_ids=True)
