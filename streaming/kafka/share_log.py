"""The share coordinator's log, looked for: whether it is there, and may be read."""

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # exported, though not by name

from coordinator_model.records.topics import SHARE_STATE_TOPIC
from streaming.kafka.librdkafka import AdminClient
from streaming.kafka.msk_iam import connectable
from streaming.kafka.plain_consumer import QUIET

ASK_SECONDS: Final = 5.0


def look_for(settings: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the topic is there, and may be read; one that may not be described seems not to be there.

    Asked for by its name alone, a client that may make topics would have the broker make it.

    Args:
        settings: of librdkafka.

    Raises:
        KafkaException: no broker answers.
    """
    admin = AdminClient(connectable({**settings, **QUIET}))
    described = admin.describe_topics(
        TopicCollection([SHARE_STATE_TOPIC]), include_authorized_operations=True, request_timeout=ASK_SECONDS
    )
    try:
        topic = described[SHARE_STATE_TOPIC].result()
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return False, False
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return True, False
        raise
    operations = topic.authorized_operations
    return True, operations is None or AclOperation.READ in operations
