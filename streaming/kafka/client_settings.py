"""Settings of the three Kafka clients, derived from one section.

- kafka-python asks (log end offsets, topic ids),
- confluent-kafka (librdkafka) reads and writes topics, and is what the demo's traffic uses,
- Kafka's own tools (Java) describe groups, for the tests and for recordings.

Security options mean the same everywhere (`security_settings.py`): certificates and keys are PEM, which all three read.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

from pydantic import SecretStr

from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.handshake_probe import refuse_unreachable
from streaming.kafka.security_settings import (
    confluent_security_settings,
    python_security_settings,
    revealed,
    with_contents,
)

IsolationLevel = Literal["read_committed", "read_uncommitted"]


# Long enough for a slow handshake, short enough for a person to wait for.
_BOOTSTRAP_TIMEOUT_MS: Final = 15_000


def python_settings(kafka: KafkaSection, purpose: str) -> dict[str, Any]:
    """Settings of kafka-python's `KafkaAdminClient`.

    Args:
        kafka: the section.
        purpose: ends the client id, so that brokers' logs tell our clients apart.
    """
    settings: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers.split(","),
        "client_id": f"{kafka.client_id}-{purpose}",
        "request_timeout_ms": kafka.request_timeout_ms,
        "bootstrap_timeout_ms": min(kafka.request_timeout_ms, _BOOTSTRAP_TIMEOUT_MS),
        **python_security_settings(kafka.security),
    }
    return {name: value for name, value in settings.items() if value is not None}


def portable_settings(kafka: KafkaSection, purpose: str) -> dict[str, str]:
    """Settings of confluent-kafka that hold on any machine: certificates and keys are in them as text.

    Raises:
        CannotTellError: a certificate or key file cannot be read.
    """
    return with_contents(confluent_settings(kafka, purpose))


def portable_section(kafka: KafkaSection) -> str:
    """The section as text for another process on this machine, secrets and all; `section_of` reads it."""
    return json.dumps(kafka.model_dump(), default=lambda of: revealed(of) if isinstance(of, SecretStr) else str(of))


def section_of(text: str) -> KafkaSection:
    """Inverse of `portable_section`."""
    return KafkaSection.model_validate_json(text)


def confluent_settings(kafka: KafkaSection, purpose: str) -> dict[str, str]:
    """Settings of confluent-kafka (librdkafka)."""
    settings: dict[str, str | None] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "client.id": f"{kafka.client_id}-{purpose}",
        **confluent_security_settings(kafka.security),
    }
    return {name: value for name, value in settings.items() if value is not None}


PATIENCE_SECONDS: Final = 5.0
"""How long a command asks again: of three brokers one that has just failed is still named, and asked, for a while."""


@contextmanager
def admin_client(kafka: KafkaSection, purpose: str = "admin") -> Iterator[Any]:
    """Open an admin client (`any_release.py`) and close it at the end.

    Raises:
        CannotTellError: no broker answers, it does not let us in, or what was asked within failed.
    """
    from kafka.errors import KafkaError  # imported late: commands that need no broker start sooner

    from streaming.kafka.any_release import AdminClient, asking
    from streaming.kafka.client_errors import Asked

    refuse_unreachable(kafka)
    try:
        admin = AdminClient(patience_seconds=PATIENCE_SECONDS, **python_settings(kafka, purpose))
    except (KafkaError, OSError, ValueError) as error:
        raise CannotTellError(
            f"kafka.bootstrap_servers: found {kafka.bootstrap_servers!r}, which accepts connections but does not "
            f"answer as a broker we may talk to with security.protocol {kafka.security.protocol} "
            f"({reason_of(error)}), accepted: a listener of that protocol, and credentials it knows"
        ) from error
    try:
        with asking(lambda: admin.asked or Asked("brokers' answer")):
            yield admin
    except KafkaError as error:
        raise CannotTellError(f"kafka.bootstrap_servers: {reason_of(error)}") from error
    finally:
        admin.close()


def reason_of(error: BaseException) -> str:
    """The first line that an error has to say for itself."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
