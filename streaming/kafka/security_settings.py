"""Maps our security options to each Kafka client's settings.

Certificates are given by path where a client runs beside us, and by content where it reads the log, on executors that
may have no copies of the files. With OAUTHBEARER each client fetches its own tokens from the same endpoint: librdkafka
directly, kafka-python through `streaming.kafka.oauth_tokens`. For Amazon MSK both sign them
(`streaming.kafka.msk_iam`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSecuritySection
from streaming.kafka.msk_iam import REGION_SETTING

_LIBRDKAFKA_FILES: Final = {
    "ca_file": ("ssl.ca.location", "ssl.ca.pem"),
    "certificate_file": ("ssl.certificate.location", "ssl.certificate.pem"),
    "key_file": ("ssl.key.location", "ssl.key.pem"),
    "oauth_ca_file": ("https.ca.location", "https.ca.pem"),
}
"""Our option → librdkafka's for a PEM file by its name, and by its content."""


def python_security_settings(security: KafkaSecuritySection) -> dict[str, Any]:
    """Settings of kafka-python's clients; of those None what has no value."""
    settings: dict[str, Any] = {"security_protocol": security.protocol}
    if security.uses_sasl:
        settings["sasl_mechanism"] = security.sasl_mechanism
    if security.uses_oauth:
        from streaming.kafka.oauth_tokens import token_provider  # imported late: it loads kafka-python

        settings["sasl_oauth_token_provider"] = token_provider(security)
    elif security.uses_kerberos:
        settings["sasl_kerberos_service_name"] = security.kerberos_service_name
    elif security.uses_sasl:
        settings["sasl_plain_username"] = security.username
        settings["sasl_plain_password"] = revealed(security.password)
    if security.uses_tls:
        settings["ssl_check_hostname"] = security.check_hostname
        settings["ssl_cafile"] = _text(security.ca_file)
        settings["ssl_certfile"] = _text(security.certificate_file)
        settings["ssl_keyfile"] = _text(security.key_file)
        settings["ssl_password"] = revealed(security.key_password)
    return settings


def confluent_security_settings(security: KafkaSecuritySection) -> dict[str, str | None]:
    """Settings of confluent-kafka (librdkafka); of those None what has no value."""
    settings: dict[str, str | None] = {"security.protocol": security.protocol.lower()}
    if security.uses_sasl:
        settings["sasl.mechanisms"] = security.sasl_mechanism
    if security.aws_msk_region is not None:
        settings[REGION_SETTING] = security.aws_msk_region
    elif security.uses_oauth:
        settings["sasl.oauthbearer.method"] = "oidc"
        settings["sasl.oauthbearer.client.id"] = security.oauth_client_id
        settings["sasl.oauthbearer.client.secret"] = revealed(security.oauth_client_secret)
        settings["sasl.oauthbearer.token.endpoint.url"] = security.oauth_token_url
        settings["sasl.oauthbearer.scope"] = security.oauth_scope
        settings["https.ca.location"] = _text(security.oauth_ca_file)
    elif security.uses_kerberos:
        settings["sasl.kerberos.service.name"] = security.kerberos_service_name
        # Its own kinit, with a keytab of its own, would be a second way: GSSAPI knows the account's cache and keytab.
        settings["sasl.kerberos.kinit.cmd"] = ":"
    elif security.uses_sasl:
        settings["sasl.username"] = security.username
        settings["sasl.password"] = revealed(security.password)
    if security.uses_tls:
        settings["ssl.ca.location"] = _text(security.ca_file)
        settings["ssl.certificate.location"] = _text(security.certificate_file)
        settings["ssl.key.location"] = _text(security.key_file)
        settings["ssl.key.password"] = revealed(security.key_password)
        settings["ssl.endpoint.identification.algorithm"] = "https" if security.check_hostname else "none"
    return settings


def with_contents(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of librdkafka with the content of certificates and keys in the place of their files' names.

    Raises:
        CannotTellError: one of them cannot be read.
    """
    held = dict(settings)
    for option, (located, content) in _LIBRDKAFKA_FILES.items():
        if located in held:
            held[content] = _content(option, Path(held.pop(located)))
    return held


def revealed(secret: SecretStr | None) -> str | None:
    """The text of a secret, for those who must send it."""
    return None if secret is None else secret.get_secret_value()


def _content(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise CannotTellError(f"kafka.security.{option}: found {str(path)!r}, accepted: a readable PEM file") from None


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
