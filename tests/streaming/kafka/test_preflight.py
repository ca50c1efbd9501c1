"""What `check` says of the offsets topic as the brokers describe it."""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, Final, Literal

import pytest
from kafka.errors import KafkaConnectionError

from streaming.base.errors import CannotTellError
from streaming.cli.check import exit_status
from streaming.config.kafka_sections import KafkaSection
from streaming.config.sections import Config
from streaming.kafka import permissions, preflight
from streaming.kafka.preflight import LEADERS, Finding
from tests.streaming.kafka.test_broker_apis import ReleasedBrokers


class Describing:
    """An admin client that knows the offsets topic alone, with the leader of each of its partitions."""

    def __init__(self, *leaders: int) -> None:
        self._leaders = leaders
        self.operations: list[str] | None = ["DESCRIBE", "READ"]

    def describe_topics(self, _: list[str] | None = None) -> list[dict[str, Any]]:
        partitions = [{"partition_index": number, "leader_id": leader} for number, leader in enumerate(self._leaders)]
        topic = {"name": "__consumer_offsets", "topic_id": None, "error_code": 0, "partitions": partitions}
        return [topic | {"authorized_operations": self.operations}]


def found(*leaders: int) -> list[Finding]:
    return list(preflight._topic_findings(Describing(*leaders), KafkaSection()))


def test_partitions_without_a_leader_are_named() -> None:
    """By their numbers, and what follows; what is in them is unknown: exit status 3."""
    (finding,) = (of for of in found(1, -1, 2, -1) if of.name == LEADERS)

    assert "cannot tell" == finding.status
    assert finding.detail.startswith("__consumer_offsets: found partitions 1, 3 without a leader, accepted: none such")
    assert 3 == exit_status(found(1, -1, 2, -1))


def test_with_a_leader_for_each_there_is_nothing_to_say() -> None:
    """Leaders may all be one broker, and it may be broker 0."""
    assert {"ok"} == {of.status for of in found(0, 0)}
    assert 0 == exit_status(found(0, 0))


def test_a_monitor_starts_without_them_and_a_recording_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the others meanwhile; a recording would lack them for good."""
    monkeypatch.setattr(preflight, "_found", lambda *_: found(1, -1))
    config = Config.model_validate({})
    preflight.preflight(config)

    with pytest.raises(CannotTellError, match="partition 1 without a leader"):
        preflight.preflight(config, all_of_it=True)


class Configured(ReleasedBrokers):
    """Brokers that let their configurations be read, those of these kinds, and know topics of these names."""

    def __init__(self, release: str, *kinds: str, topics: Iterable[str] = ("__consumer_offsets",)) -> None:
        super().__init__({1: release})
        self._release = release
        self._kinds = kinds
        self._topics = topics

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{"broker_id": number} for number in self.releases]}

    def describe_configs(self, asked: list[Any], config_filter: str) -> dict[str, Any]:
        (of,) = asked
        (name,) = of.configs
        # A broker says nothing of what it does not know, nor of what may not be described.
        kind = of.resource_type.name.lower()
        known = kind in self._kinds and (kind != "topic" or of.name in self._topics)
        known = known and not (kind == "group" and self._release < "4.0") and config_filter == "all"
        return {kind: {of.name: {name: {"value": "1"}} if known else {}}}

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        return [{"error_code": 0 if name in self._topics else 3} for name in names]


def configs(cluster: Configured) -> dict[str, tuple[str, str]]:
    """Permission on configurations of what → (status, detail)."""
    kafka = KafkaSection()
    found = preflight._OF_THE_LOG[-1].look(cluster, kafka)
    kinds = {permissions.READ_BROKER_CONFIGS.check: "broker", permissions.READ_TOPIC_CONFIGS.check: "topic"}
    return {kinds.get(of.name, "group"): (of.status, of.detail) for of in found}


class PartlyAway(Configured):
    """Of which the first broker is away, and answers nothing about itself."""

    def __init__(self) -> None:
        super().__init__("4.3", *ALL)
        self.releases = {1: KafkaConnectionError("away"), 2: "4.3"}

    def describe_configs(self, asked: list[Any], config_filter: str) -> dict[str, Any]:
        (of,) = asked
        if (of.resource_type.name, of.name) == ("BROKER", "1"):
            raise KafkaConnectionError("away")
        kind, (name,) = of.resource_type.name.lower(), of.configs
        return {kind: {of.name: {name: {"value": "1"}}}}

    def describe_groups(self, groups: list[str], broker: int) -> dict[str, Any]:
        if broker == 1:
            raise KafkaConnectionError("away")
        return {group: {"error": None} for group in groups}


def test_one_broker_that_is_away_keeps_nothing_from_being_looked_at() -> None:
    """Another one says what any of them may say."""
    assert {("ok", "configurations may be read")} == {*configs(PartlyAway()).values()}
    assert ["ok"] == [of.status for of in preflight._suspects_finding(PartlyAway(), KafkaSection())]


def test_what_no_broker_says_leaves_the_rest_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is looked at separately, and has a line for each of its names."""
    monkeypatch.setattr(preflight, "admin_client", lambda *_: nullcontext(NobodyAnswers(0)))

    said = {of.name: of.status for of in preflight.broker_findings(KafkaSection())}

    assert {"offsets topic": "ok", LEADERS: "ok", preflight.DESCRIBE_GROUPS: "cannot tell"}.items() <= said.items()
    assert len({permission.check for permission in permissions.PERMISSIONS}) + 3 == len(said)


class NobodyAnswers(Describing):
    """Brokers that describe the log, and say nothing more."""

    def __init__(self, *leaders: int) -> None:
        super().__init__(*leaders)
        self._manager = self
        self.operations = ["DESCRIBE", "READ"]

    def __getattr__(self, name: str) -> Any:
        def away(*_: object, **__: object) -> None:
            raise KafkaConnectionError(name)

        return away


ALL: Final = ("broker", "topic", "group")


@pytest.mark.parametrize("release", ["2.0", "3.9"])
def test_a_release_without_configurations_of_groups_is_not_short_of_a_permission(release: str) -> None:
    """It has no such thing, and nothing is to be granted; what it has may be read."""
    found = configs(Configured(release, *ALL))

    assert ("ok", f"there is no such thing before 4.0: broker 1 ({release})") == found["group"]
    assert {("ok", "configurations may be read")} == {found["broker"], found["topic"]}


def test_a_release_that_has_them_is() -> None:
    """Where brokers say nothing of them, the permission is missing; with it all is well."""
    assert {"ok"} == {status for status, _ in configs(Configured("4.0", *ALL)).values()}
    status, detail = configs(Configured("4.0", "broker", "topic"))["group"]

    assert ("note", True) == (status, "found no permission DESCRIBE_CONFIGS on groups in general" in detail)


def test_a_topic_that_is_not_there_yet_is_not_short_of_a_permission() -> None:
    """It comes with the first group; one that is there and says nothing may not be asked."""
    missing, denied = configs(Configured("4.3", *ALL, topics=())), configs(Configured("4.3", "broker", "group"))

    assert ("cannot tell", "there is no topic __consumer_offsets yet") == missing["topic"]
    assert "note" == denied["topic"][0]
    assert "found no permission DESCRIBE_CONFIGS on __consumer_offsets" in denied["topic"][1]


@pytest.mark.parametrize(
    ("operations", "status", "said"),
    [
        (None, "note", "brokers before 2.3 do not say"),
        ([], "fail", "found the permission nothing"),
        (["DESCRIBE"], "fail", "found the permission DESCRIBE on"),
        (["DESCRIBE", "READ"], "ok", "may be read"),
    ],
)
def test_permission_to_read_that_a_broker_does_not_say_is_no_permission(
    operations: list[str] | None, status: str, said: str
) -> None:
    """Nor is it none: a monitor starts and finds out."""
    describing = Describing(0)
    describing.operations = operations
    (finding,) = (
        of for of in preflight._topic_findings(describing, KafkaSection()) if of.name == permissions.READ_LOG.check
    )

    assert (status, True) == (finding.status, said in finding.detail)


class SharesDescribed:
    """An admin client that is asked about the share coordinator's log."""

    def __init__(self, error_code: int, operations: list[str] | None) -> None:
        self._answer = {"error_code": error_code, "authorized_operations": operations}

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        assert ["__share_group_state"] == names
        return [self._answer]


THERE, ABSENT, DENIED = (0, ["DESCRIBE", "READ"]), (3, None), (29, None)


@pytest.mark.parametrize(
    ("enabled", "described", "status", "said"),
    [
        ("auto", THERE, "ok", "may be read"),
        ("auto", (0, None), "ok", "may be read"),
        ("auto", ABSENT, "ok", "Kafka makes it with the first share group"),
        ("auto", (0, ["DESCRIBE"]), "note", "no permission READ on __share_group_state"),
        ("auto", DENIED, "note", "lag of share groups is not known"),
        (True, THERE, "ok", "may be read"),
        (True, ABSENT, "fail", "share_groups.enabled: found true, and there is no __share_group_state yet"),
        (True, (0, ["DESCRIBE"]), "fail", "no permission READ on __share_group_state"),
        (True, DENIED, "fail", "accepted: with it, or share_groups.enabled: auto"),
    ],
)
def test_share_groups_are_done_without_unless_asked_for(
    enabled: bool | Literal["auto"], described: tuple[int, list[str] | None], status: str, said: str
) -> None:
    """Where the log is not there, or may not be read, with `true` nothing starts."""
    (part,) = preflight._share_parts(enabled)
    (finding,) = part.look(SharesDescribed(*described), KafkaSection())

    assert (part.names, status) == ((finding.name,), finding.status)
    assert said in finding.detail


def test_share_groups_that_are_not_wanted_are_not_looked_at() -> None:
    """Nor are those of groups that are polled."""
    assert [] == preflight._share_parts(False)


@pytest.mark.parametrize("enabled", ["auto", True])
def test_a_run_ends_where_share_groups_are_asked_for_in_vain(
    enabled: bool | Literal["auto"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start and before anything is read; with `auto` it runs."""
    describing = Describing(0)
    answers = {"__consumer_offsets": describing.describe_topics(), "__share_group_state": [{"error_code": 3}]}
    monkeypatch.setattr(describing, "describe_topics", lambda names: answers[names[0]])
    monkeypatch.setattr(preflight, "admin_client", lambda *_: nullcontext(describing))
    config = Config.model_validate({"share_groups": {"enabled": enabled}})

    with nullcontext() if enabled == "auto" else pytest.raises(CannotTellError, match=r"share_groups\.enabled"):
        preflight.preflight(config)


def test_commands_that_grant_have_no_line_that_an_older_release_refuses() -> None:
    """What came with 4.0 stands in a line of its own, so that all else can be granted on 2.x and 3.x."""
    commands = permissions.acl_commands(permissions.PERMISSIONS, "User:m", "h:1")
    since = [of for of in commands if "DescribeConfigs" in of and "--group" in of]

    assert ["--operation DescribeConfigs --group '*'"] == [of.partition("User:m ")[2] for of in since]
    assert 1 == sum("--operation Describe --group '*'" in of for of in commands)
    assert not [of for of in commands if "prefixed" in of]
