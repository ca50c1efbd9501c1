"""What coordinators answer, as the board holds it: nothing that they do not say is made up."""

import pytest

from coordinator_model.groups import streams
from coordinator_model.migration import upgrade_blockers
from coordinator_model.rules.subscriptions import subscribed_topics
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.views import group_view
from lab import builders
from streaming.polling import answers
from streaming.polling.answers import NOT_SAID
from tests.streaming.polling import replies

UNKNOWN_STATE = 127


def membership(described: answers.DescribedGroup) -> Membership:
    assert described.membership is not None
    return described.membership


def test_a_stable_classic_group_has_its_subscriptions_and_assignments() -> None:
    """They are read as those of its record; generation and timeouts are not in the answer, and not known."""
    member = builders.member("a", {"t": [0, 1]}, topics=("t", "u"), instance_id="one")
    described = answers.classic_group(replies.classic("g", member))
    group = membership(described).classic

    assert group is not None
    assert ("Stable", "range", NOT_SAID) == (described.state, group.protocol, group.generation)
    assert {"t": (0, 1)} == group.members["a"].assigned
    assert {"t", "u"} == subscribed_topics(membership(described))
    assert ("one", -1, -1) == (
        group.members["a"].instance_id,
        group.members["a"].session_timeout_ms,
        group.members["a"].rebalance_timeout_ms,
    )
    assert [] == upgrade_blockers.blockers(membership(described))


def test_what_blocks_an_upgrade_is_seen() -> None:
    """A custom assignor's user data stands in the answer as in the log."""
    assignment = builders.assignment({"t": [0]}, user_data=b"mine")
    described = answers.classic_group(replies.classic("g", builders.member("a", assignment_bytes=assignment)))

    assert [upgrade_blockers.ASSIGNMENT_USER_DATA] == upgrade_blockers.blockers(membership(described))


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance"])
def test_between_two_generations_a_classic_group_has_no_membership(state: str) -> None:
    """Brokers leave out subscriptions and assignments then: read as such they would be malformed ones."""
    bare = builders.member("a", subscription_bytes=b"", assignment_bytes=b"")

    assert answers.DescribedGroup(state, None) == answers.classic_group(replies.classic("g", bare, state=state))


def test_a_group_that_only_commits_has_no_members_and_no_type() -> None:
    """It is not a classic group without members, which has joined once."""
    described = answers.classic_group(replies.classic("g", state="Empty", protocol_type="", protocol=""))

    assert Membership() == described.membership


def test_a_consumer_group_has_epochs_targets_and_protocols() -> None:
    """A member is Stable where its epoch and partitions are the target's; of any other the state is not known."""
    described = answers.consumer_group(
        replies.consumer(
            "g",
            replies.consumer_member("a", 5, {"t": [0]}),
            replies.consumer_member("b", 4, {"t": [1]}, target={"t": [1, 2]}, member_type=0, regex="t.*"),
            state="Reconciling",
        )
    )
    group = membership(described).modern_group

    assert group is not None
    assert ("Reconciling", 5, 5) == (described.state, group.epoch, group.assignment_epoch)
    assert {"a": 0, "b": UNKNOWN_STATE} == {name: of.state for name, of in group.members.items()}
    assert {"a": False, "b": True} == {name: of.uses_classic_protocol for name, of in group.members.items()}
    assert {"b": (1, 2)} == {name: of[builders.topic_id("t")] for name, of in group.targets.items() if name == "b"}
    assert "t.*" == group.members["b"].subscribed_regex


def test_a_broker_before_4_0_does_not_say_who_uses_the_classic_protocol() -> None:
    """Members are taken for what the group is."""
    reply = replies.consumer("g", replies.consumer_member("a", 5, {"t": [0]}, member_type=0), version=0)
    group = membership(answers.consumer_group(reply)).modern_group

    assert group is not None
    assert not group.members["a"].uses_classic_protocol


def test_a_share_group_has_members_without_targets() -> None:
    """What a member is to read is not in the answer."""
    group = membership(answers.share_group(replies.share("g", "a", {"t": [0, 2]}))).modern_group

    assert group is not None
    assert ("share", {}) == (group.family, group.targets)
    assert {builders.topic_id("t"): (0, 2)} == group.members["a"].assigned


def test_a_streams_group_has_tasks_topology_and_topics() -> None:
    """A member is Stable where its epoch and all of its tasks are the target's; topics are those its tasks read."""
    described = answers.streams_group(
        replies.streams(
            "g",
            replies.streams_member("a", 3, {"0": [0, 1]}),
            replies.streams_member("b", 3, {}, target={"1": [2]}),
            state="Reconciling",
        )
    )
    group = membership(described).modern_group

    assert group is not None
    assert ("Reconciling", "streams", 3, 3, 0) == (
        described.state,
        group.family,
        group.epoch,
        group.assignment_epoch,
        group.topology_epoch,
    )
    assert {"a": streams.MEMBER_STABLE, "b": UNKNOWN_STATE} == {name: of.state for name, of in group.members.items()}
    assert {"0": (0, 1)} == group.members["a"].assigned
    assert {"1": (0,)} == group.members["a"].standby_tasks
    assert {"t", "r"} == subscribed_topics(membership(described))
    shown = group_view.group_view(GroupState(name="g", partition=-1, membership=membership(described)), [], {})
    assert [{"t": [0, 1]}, {}] == [member["assigned"] for member in shown["members"]]
    assert {"r": [2]} == shown["members"][1]["target"]
    assert {"host": "app", "port": 40_000} == shown["members"][0]["user_endpoint"]
    assert ["c"] == shown["topology"]["subtopologies"]["1"]["state_changelog_topics"]
    assert None is shown["topology"]["validated_epoch"]


def test_a_streams_group_without_a_topology_has_none() -> None:
    """It is not initialised yet: its members run nothing."""
    described = answers.streams_group(replies.streams("g", has_topology=False, state="NotReady"))
    group = membership(described).modern_group

    assert group is not None
    assert (None, {}) == (group.topology_epoch, group.subtopologies)


def test_offsets_are_those_that_are_committed() -> None:
    """When is not in the answer, and a partition without a commit has none."""
    found = answers.offsets(replies.offsets({"t": {0: 7, 1: -1}}))

    assert found is not None
    assert {"t": {0: (7, 3, -1)}} == {
        topic: {at: (of.offset, of.leader_epoch, of.commit_timestamp_ms) for at, of in parts.items()}
        for topic, parts in found.items()
    }


def test_offsets_are_whole_or_not_there() -> None:
    """Without one partition the others would look like all."""
    assert None is answers.offsets(replies.offsets({"t": {0: 7}, "u": {0: 1}}, errors={"u": 15}))
