"""Checks of the brokers before anything starts: they answer, the offsets topic is there, permissions suffice."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from coordinator_model.gates.broker_abilities import GROUP_CONFIGS, Broker, lacking, names_of
from coordinator_model.records.topics import SHARE_STATE_TOPIC
from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.config.sections import Config
from streaming.kafka import permissions
from streaming.kafka.broker_apis import asked_each
from streaming.kafka.broker_queries import OF_EVERY_RELEASE, _operations, describe_topics
from streaming.kafka.client_settings import admin_client, reason_of

Status = Literal["ok", "note", "fail", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found out.

    Attributes:
        name: what was checked.
        status: "ok", "note" (it does not hold, and can be done without), "fail" (it does not hold) or "cannot tell" (no
            access to the answer).
        detail: one line; for what is not ok it names the option, what was found and what is accepted.
    """

    name: str
    status: Status
    detail: str


LEADERS: Final = "offsets partitions"
"""What `check` calls it that each partition of the offsets topic has a leader."""

DESCRIBE_GROUPS: Final = permissions.DESCRIBE_GROUPS.check
"""What `check` calls the permission to ask coordinators about groups that are suspected to hang."""


_NOBODYS_GROUP: Final = "some-group"


_NOBODYS_TOPIC: Final = "some-topic"


def broker_findings(
    kafka: KafkaSection, *, polled: bool = False, share_groups: Literal["auto"] | bool = "auto"
) -> list[Finding]:
    """Look at everything the monitor needs of the brokers; what cannot be looked at is said to be so.

    Args:
        kafka: where they are.
        polled: whether groups are to be polled (`source.kind: admin`), and the log not read.
        share_groups: as `share_groups.enabled`.
    """
    if polled:
        return _found(kafka, _POLLED)
    first, *others = _OF_THE_LOG
    return _found(kafka, [first, *_share_parts(share_groups), *others])


def _found(kafka: KafkaSection, parts: "Sequence[_Part]") -> list[Finding]:
    try:
        with admin_client(kafka, "check") as admin:
            findings = [Finding("broker", "ok", f"{kafka.bootstrap_servers} answers")]
            for part in parts:
                findings += _of_part(part, admin, kafka)
            return findings
    except CannotTellError as error:
        first = Finding("broker", "cannot tell", str(error))
    names = (name for part in parts for name in part.names)
    return [first, *(Finding(name, "cannot tell", "no broker to ask") for name in names)]


def _of_part(part: "_Part", admin: Any, kafka: KafkaSection) -> list[Finding]:  # noqa: ANN401 - kafka-python has no types
    """What a part finds; a broker that is away keeps no other part from being looked at."""
    from kafka.errors import KafkaError  # see admin_client

    found: list[Finding] = []
    try:
        found.extend(part.look(admin, kafka))
    except KafkaError as error:
        missing = part.names[len(found) :]
        found += [Finding(name, "cannot tell", f"kafka.bootstrap_servers: {reason_of(error)}") for name in missing]
    return found


def instead(findings: Iterable[Finding]) -> Iterator[Finding]:
    """What there is where the log is there and may not be read."""
    for found in findings:
        denied = found.name == "offsets topic" and "Authorization" in found.detail
        if found.status == "fail" and (denied or found.name == permissions.READ_LOG.check):
            accepted = "also admin, which polls groups and knows less (docs/permissions.md)"
            yield Finding("source", "note", f"source.kind: found log, which may not be read, accepted: {accepted}")


def preflight(config: Config, *, all_of_it: bool = False) -> None:
    """Look before starting: brokers reachable, the offsets topic there, and we may read it.

    Args:
        config: where to look.
        all_of_it: whether each partition has to have a leader; a monitor reads the others meanwhile.

    Raises:
        CannotTellError: the first thing that is not so.
    """
    # What else `check` looks at can be done without.
    polled = config.source.kind == "admin"
    essential: Sequence[_Part] = (_POLLED if polled else _OF_THE_LOG)[:1]
    if config.share_groups.enabled is True and not polled:
        essential = (*essential, *_share_parts(True))
    for finding in _found(config.kafka, essential):
        needed = all_of_it or finding.name != LEADERS
        if needed and finding.status in ("fail", "cannot tell"):
            raise CannotTellError(finding.detail)


def _listing_findings(admin: Any, _: KafkaSection) -> Iterator[Finding]:  # noqa: ANN401 - kafka-python has no types
    """Whether groups may be described, and whether the others would be listed."""
    listed, all_may_be = len(admin.list_groups()), _groups_may_be_described(admin)
    wanted = permissions.POLL_GROUPS
    if all_may_be:
        yield Finding(wanted.check, "ok", f"{listed} groups are listed, and may be described")
    elif listed:
        yield _note(wanted, f"those that may not be described are not shown; {listed} groups are listed")
    else:
        lacks = "kafka.security: found no permission DESCRIBE on groups in general, and no group that is listed"
        yield Finding(wanted.check, "cannot tell", f"{lacks}, accepted: DESCRIBE on the groups that are wanted")
    operations = _operations(admin.describe_cluster().get("authorized_operations"))
    if all_may_be or (operations is not None and "DESCRIBE" in operations):
        yield Finding(permissions.LIST_GROUPS.check, "ok", "all groups are listed")
    else:
        yield _note(permissions.LIST_GROUPS, permissions.LIST_GROUPS.without)


def _topic_findings(admin: Any, kafka: KafkaSection) -> Iterator[Finding]:  # noqa: ANN401 - kafka-python has no types
    from kafka.errors import for_code  # see admin_client

    name = kafka.offsets_topic
    described = admin.describe_topics([name])[0]
    code = described["error_code"]
    if code != 0:
        problem = for_code(code).__name__.removesuffix("Error")
        detail = f"kafka.offsets_topic: found {name!r}, {problem} on this cluster, accepted: "
        missing = "an existing topic (Kafka makes __consumer_offsets when the first group joins or commits)"
        denied = "a topic this user has the DESCRIBE and READ permission on"
        yield Finding("offsets topic", "fail", detail + (denied if "Authorization" in problem else missing))
        yield Finding(LEADERS, "cannot tell", f"{name} is not there")
        yield Finding(permissions.READ_LOG.check, "cannot tell", f"{name} is not there to be read")
        return
    yield Finding("offsets topic", "ok", f"{name} has {len(described['partitions'])} partitions")
    without = sorted(of["partition_index"] for of in described["partitions"] if of["leader_id"] < 0)
    if without:
        which = f"partition{'s' if len(without) > 1 else ''} {', '.join(map(str, without))}"
        lost = "of groups that may be there nothing is known, and a monitor that starts is not ready"
        yield Finding(LEADERS, "cannot tell", f"{name}: found {which} without a leader, accepted: none such; {lost}")
    else:
        yield Finding(LEADERS, "ok", f"every partition of {name} has a leader")
    operations = _operations(described.get("authorized_operations"))
    if operations is None:
        said = f"brokers before 2.3 do not say whether {name} may be read: reading it shows"
        yield Finding(permissions.READ_LOG.check, "note", said)
        return
    if "READ" not in operations:
        held = ", ".join(operations) or "nothing"
        yield Finding(
            permissions.READ_LOG.check, "fail", f"kafka.security: found the permission {held} on {name}, accepted: READ"
        )
        return
    yield Finding(permissions.READ_LOG.check, "ok", f"{name} may be read")


def _share_findings(admin: Any, *, is_needed: bool) -> Iterator[Finding]:  # noqa: ANN401 - kafka-python has no types
    """Whether the share coordinator's log is there, and may be read."""
    name, wanted = SHARE_STATE_TOPIC, permissions.READ_SHARE_LOG
    (described,) = admin.describe_topics([name])
    operations = _operations(described.get("authorized_operations"))
    if not _is_there(admin, name):
        absent = f"there is no {name} yet: Kafka makes it with the first share group"
        found = f"share_groups.enabled: found true, and {absent}; accepted: auto, which waits for it"
        yield Finding(wanted.check, *(("fail", found) if is_needed else ("ok", absent)))
    elif described["error_code"] == 0 and (operations is None or "READ" in operations):
        yield Finding(wanted.check, "ok", f"{name} may be read")
    elif is_needed:
        denied = f"kafka.security: found no permission READ on {name}, which share_groups.enabled: true needs"
        yield Finding(wanted.check, "fail", f"{denied}; accepted: with it, or share_groups.enabled: auto")
    else:
        yield _note(wanted, wanted.without)


def _lag_finding(admin: Any, permission: permissions.Permission, lost: str) -> Finding:  # noqa: ANN401 - as above
    """Whether topics in general may be described: brokers say that we may not know before that there is none."""
    from kafka.errors import TopicAuthorizationFailedError  # see admin_client

    count = len(describe_topics(admin))
    (nobodys,) = admin.describe_topics([_NOBODYS_TOPIC])
    if nobodys["error_code"] != TopicAuthorizationFailedError.errno:
        return Finding(permission.check, "ok", f"{count} topics can be described")
    return _note(permission, lost, f"; {count} topics can be described")


def _suspects_finding(admin: Any, _: KafkaSection) -> Iterator[Finding]:  # noqa: ANN401 - kafka-python has no types
    """Whether coordinators would answer about groups that are suspected to hang (`hang_sampler.py`)."""
    if _groups_may_be_described(admin):
        yield Finding(DESCRIBE_GROUPS, "ok", "groups may be described")
    else:
        yield _note(permissions.DESCRIBE_GROUPS, "stuck rebalances of classic groups are found with it only")


def _groups_may_be_described(admin: Any) -> bool:  # noqa: ANN401 - kafka-python has no types
    """Any broker may be asked about any name: it says that we may not know before it says that it does not know."""
    reported = _of_any(admin, lambda broker: admin.describe_groups([_NOBODYS_GROUP], broker)).get(_NOBODYS_GROUP, {})
    return "GroupAuthorizationFailed" not in (reported.get("error") or "")


def _of_any(admin: Any, question: Callable[[int], Any]) -> Any:  # noqa: ANN401 - kafka-python has no types
    """What one broker says, given its id; raises KafkaError where none answers."""
    from kafka.errors import KafkaError  # see admin_client

    from streaming.kafka.any_release import kind_of

    away: KafkaError | None = None
    for broker in admin.describe_cluster()["brokers"]:
        try:
            return question(broker["broker_id"])
        except KafkaError as error:
            if kind_of(error) != "away":
                raise
            away = error
    assert away is not None  # noqa: S101 - a cluster has brokers
    raise away


def _configs_findings(
    admin: Any,  # noqa: ANN401 - kafka-python has no types
    kafka: KafkaSection,
    wanted: Collection[permissions.Permission],
) -> Iterator[Finding]:
    """Whether gates learn the brokers' settings, how long tombstones stay, and how long static members may be away."""
    from kafka.admin import ConfigResourceType  # see admin_client
    from kafka.errors import KafkaError

    old: Sequence[Broker] = ()
    with suppress(KafkaError):  # where one is away it is not known what it lacks
        old = lacking([of.broker for of in asked_each(admin)], GROUP_CONFIGS)
    # kafka-python passes over what a broker refuses to tell: there is no answer then.
    asked: tuple[tuple[permissions.Permission, Any, str | None, str], ...] = (
        (permissions.READ_BROKER_CONFIGS, ConfigResourceType.BROKER, None, OF_EVERY_RELEASE),
        (permissions.READ_TOPIC_CONFIGS, ConfigResourceType.TOPIC, kafka.offsets_topic, "delete.retention.ms"),
        (permissions.READ_GROUP_CONFIGS, ConfigResourceType.GROUP, _NOBODYS_GROUP, "consumer.session.timeout.ms"),
    )
    for permission, kind, name, config in asked:
        if permission not in wanted:
            continue
        if permission is permissions.READ_GROUP_CONFIGS and old:
            said = f"there is no such thing before {permission.since}: {names_of(old)}"
            yield Finding(permission.check, "ok", said)
            continue
        described = partial(_is_described, admin, kind, config)
        if _of_any(admin, described) if name is None else described(name):
            yield Finding(permission.check, "ok", "configurations may be read")
        elif permission is permissions.READ_TOPIC_CONFIGS and not _is_there(admin, kafka.offsets_topic):
            yield Finding(permission.check, "cannot tell", f"there is no topic {name} yet")
        else:
            yield _note(permission, f"without it, {permission.without.replace('*', '')}")


def _is_described(admin: Any, kind: Any, config: str, name: object) -> bool:  # noqa: ANN401 - kafka-python has no types
    from kafka.admin import ConfigResource  # see admin_client

    reported = admin.describe_configs([ConfigResource(kind, str(name), {config: None})], config_filter="all")
    return bool(reported.get(kind.name.lower(), {}).get(str(name)))


class _Part(NamedTuple):
    """What is looked at together.

    Attributes:
        names: of what it finds, in their order.
        look: given an admin client and where the brokers are.
    """

    names: tuple[str, ...]
    look: Callable[[Any, KafkaSection], Iterator[Finding]]


def _topics_finding(admin: Any, _: KafkaSection) -> Iterator[Finding]:  # noqa: ANN401 - kafka-python has no types
    yield _lag_finding(admin, permissions.DESCRIBE_TOPICS, "lag is shown for no others")


def _polled_topics_finding(admin: Any, _: KafkaSection) -> Iterator[Finding]:  # noqa: ANN401 - as above
    yield _lag_finding(admin, permissions.POLL_TOPICS, permissions.POLL_TOPICS.without)


def _configs_part(*wanted: permissions.Permission) -> _Part:
    return _Part(
        tuple(permission.check for permission in wanted), lambda admin, kafka: _configs_findings(admin, kafka, wanted)
    )


def _share_parts(enabled: Literal["auto"] | bool) -> "list[_Part]":
    if enabled is False:
        return []
    look = partial(_share_findings, is_needed=enabled is True)
    return [_Part((permissions.READ_SHARE_LOG.check,), lambda admin, _: look(admin))]


_OF_THE_LOG: Final = (
    _Part(("offsets topic", LEADERS, permissions.READ_LOG.check), _topic_findings),
    _Part((permissions.DESCRIBE_TOPICS.check,), _topics_finding),
    _Part((DESCRIBE_GROUPS,), _suspects_finding),
    _configs_part(permissions.READ_BROKER_CONFIGS, permissions.READ_TOPIC_CONFIGS, permissions.READ_GROUP_CONFIGS),
)
_POLLED: Final = (
    _Part((permissions.POLL_GROUPS.check, permissions.LIST_GROUPS.check), _listing_findings),
    _Part((permissions.POLL_TOPICS.check,), _polled_topics_finding),
    _configs_part(permissions.READ_BROKER_CONFIGS),
)
"""The first part is what a monitor cannot do without."""


def _is_there(admin: Any, topic: str) -> bool:  # noqa: ANN401 - kafka-python has no types
    """Whether a topic is, as far as it may be described: brokers say that we may not before that there is none."""
    from kafka.errors import UnknownTopicOrPartitionError  # see admin_client

    (described,) = admin.describe_topics([topic])
    return bool(described["error_code"] != UnknownTopicOrPartitionError.errno)


def _note(permission: permissions.Permission, lost: str, more: str = "") -> Finding:
    things = "the cluster" if permission.resource == "cluster" else f"{permission.resource}s in general"
    if permission.name not in ("", "*"):
        things = permission.name
    lacks = f"kafka.security: found no permission {permission.operation} on {things}, accepted: with it, and without"
    return Finding(permission.check, "note", f"{lacks}; {lost}{more}")
