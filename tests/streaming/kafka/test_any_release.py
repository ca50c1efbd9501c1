"""What the admin client says of brokers, by their release."""

import uuid

import pytest
from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError, KafkaError, TopicAuthorizationFailedError

from streaming.kafka import any_release, broker_queries
from streaming.kafka.any_release import AdminClient
from tests.streaming.kafka.brokers_of_a_release import EPOCH, RELEASES, TOPIC_ID, BrokerOfARelease, client_of

each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda of: ".".join(map(str, of)))


@each_release
def test_a_cluster_is_described(release: tuple[int, int]) -> None:
    """Its id and its brokers; by Metadata where there is no DescribeCluster (before 2.8)."""
    client = client_of(BrokerOfARelease(release))

    described = client.describe_cluster()

    assert "c" == broker_queries.cluster_id(client)
    assert [1] == [broker["broker_id"] for broker in described["brokers"]]


@each_release
def test_topics_are_described_with_their_id_where_there_is_one(release: tuple[int, int]) -> None:
    """Brokers before 2.8 have none: that is no id, and not one of zeros."""
    client = client_of(BrokerOfARelease(release))

    (of_name,) = broker_queries.describe_topics(client, ["t"])
    (of_all,) = broker_queries.describe_topics(client)

    assert ("AAAAAAAAAAAAAAAAAAAABw" if release >= (2, 8) else None) == of_name.id == of_all.id
    assert ("t", 1) == (of_name.name, of_name.partitions)


@each_release
def test_an_id_of_zeros_is_none(release: tuple[int, int]) -> None:
    """As brokers say it that still write for those before 2.8 (inter.broker.protocol.version)."""
    client = client_of(BrokerOfARelease(release, topic_id=None))

    assert [None] == [topic.id for topic in broker_queries.describe_topics(client, ["t"])]
    assert broker_queries.topic_id(str(uuid.UUID(int=0))) is None


@each_release
def test_topics_are_found_by_id_where_the_broker_can(release: tuple[int, int]) -> None:
    """Before 3.1 it cannot: those asked for by name are found all the same."""
    broker = BrokerOfARelease(release)
    client = client_of(broker)

    assert (["t"] if release >= (3, 1) else []) == [topic["name"] for topic in client.describe_topics([TOPIC_ID])]
    assert "named" in [topic["name"] for topic in client.describe_topics(["named", TOPIC_ID])]


@each_release
def test_epochs_of_leaders_that_may_be_outdated_are_not_told(release: tuple[int, int]) -> None:
    """Before 2.4 Metadata may have the epoch of a former leader (KAFKA-9212), or none at all."""
    (topic,) = client_of(BrokerOfARelease(release)).describe_topics(["t"])

    assert (EPOCH if release >= (2, 4) else -1) == topic["partitions"][0]["leader_epoch"]


@each_release
def test_features_are_told_where_there_are_any(release: tuple[int, int]) -> None:
    """Brokers before 2.4 have no such request, and no features."""
    features = client_of(BrokerOfARelease(release)).describe_features()

    assert ({"metadata.version"} if release >= (2, 4) else set()) == features.keys()


@each_release
def test_groups_are_described_whoever_their_members_are(release: tuple[int, int]) -> None:
    """Kafka Connect's are no consumers: what they say of themselves is not ours to read."""
    described = client_of(BrokerOfARelease(release)).describe_groups(["connect", "r"], 1)

    connect = described["connect"]
    assert ("Stable", 1, None) == (connect["group_state"], len(connect["members"]), connect["error"])
    assert "[Error 30] GroupAuthorizationFailedError" == described["r"]["error"]


@each_release
def test_groups_with_configurations_are_listed_from_4_1_on(release: tuple[int, int]) -> None:
    """Asked for groups, brokers list client metrics from 3.7 on: that is no answer."""
    client = client_of(BrokerOfARelease(release))

    if release >= (4, 1):
        assert {"group": ["g"]} == client.list_config_resources(["GROUP"])
    else:
        with pytest.raises(IncompatibleBrokerVersion):
            client.list_config_resources(["GROUP"])


@pytest.mark.parametrize(
    ("error", "patience_seconds", "times"),
    [
        pytest.param(KafkaConnectionError("one"), 60.0, 3, id="a broker that is away: another may answer"),
        pytest.param(KafkaConnectionError("one"), 0.0, 1, id="without patience"),
        pytest.param(TopicAuthorizationFailedError("one"), 60.0, 1, id="a no is an answer"),
    ],
)
def test_a_question_is_asked_again_where_a_broker_is_away(
    monkeypatch: pytest.MonkeyPatch, error: KafkaError, patience_seconds: float, times: int
) -> None:
    """For as long as there is patience, and brokers are looked at again before."""
    monkeypatch.setattr(any_release, "AGAIN_SECONDS", 0.0)
    client, asked = AdminClient.__new__(AdminClient), []
    client._patience_seconds, client._manager = patience_seconds, None

    def method(_: AdminClient) -> str:
        asked.append(method)
        if len(asked) < 3:
            raise error
        return "answered"

    if times == 3:
        assert "answered" == any_release._guarded(method)(client)
    else:
        with pytest.raises(type(error)):
            any_release._guarded(method)(client)
    assert times == len(asked)
