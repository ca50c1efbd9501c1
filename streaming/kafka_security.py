"""How to be let in, in the words of each of the three Kafka clients.

Certificates are given by path where a client runs beside us, and by content where it reads the log, on executors that
may have no copies of the files; Kafka's Java client gets them by content, too. With OAUTHBEARER every client fetches
its own tokens from the same endpoint: the Java client and librdkafka by themselves, kafka-python through
`streaming.oauth_tokens`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from streaming.config_sections import KafkaSecuritySection
from streaming.errors import CannotTellError

_JAAS_MODULES: Final[Mapping[str, str]] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_OAUTH_LOGIN: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"

_LIBRDKAFKA_FILES: Final = {
    "ca_file": ("ssl.ca.location", "ssl.ca.pem"),
    "certificate_file": ("ssl.certificate.location", "ssl.certificate.pem"),
    "key_file": ("ssl.key.location", "ssl.key.pem"),
    "oauth_ca_file": ("https.ca.location", "https.ca.pem"),
}
"""Our option → librdkafka's for a PEM file by its name, and by its content."""

_ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""System property without which Kafka's Java client, from 4.0 on, asks no token endpoint; 3.9 heeds it, too."""


def python_security_settings(security: KafkaSecuritySection) -> dict[str, Any]:
    """Settings of kafka-python's clients; of those None what has no value."""
    settings: dict[str, Any] = {"security_protocol": security.protocol}
    if security.uses_sasl:
        settings["sasl_mechanism"] = security.sasl_mechanism
    if security.uses_oauth:
        from streaming.oauth_tokens import token_provider  # imported late: it loads kafka-python

        settings["sasl_oauth_token_provider"] = token_provider(security)
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


def java_security_settings(security: KafkaSecuritySection) -> dict[str, str]:
    """Settings of Kafka's Java clients, without any prefix; empty for PLAINTEXT.

    Raises:
        CannotTellError: a certificate or key file cannot be read.
    """
    settings: dict[str, str] = {}
    if security.protocol != "PLAINTEXT":
        settings["security.protocol"] = security.protocol
    if security.uses_sasl:
        mechanism = security.sasl_mechanism or "PLAIN"
        settings["sasl.mechanism"] = mechanism
        given = _oauth_login(security) if security.uses_oauth else _password_login(security)
        words = " ".join(f"{name}={_quoted(value)}" for name, value in given.items())
        settings["sasl.jaas.config"] = f"{_JAAS_MODULES[mechanism]} required {words};"
    if security.uses_oauth:
        settings["sasl.login.callback.handler.class"] = _OAUTH_LOGIN
        settings["sasl.oauthbearer.token.endpoint.url"] = security.oauth_token_url or ""
    if security.uses_tls:
        settings.update(_java_tls_settings(security))
    return settings


def java_system_properties(security: KafkaSecuritySection) -> list[str]:
    """Options of a JVM whose Kafka clients get `java_security_settings`; none of them is secret."""
    return [f"-D{_ALLOWED_URLS}={security.oauth_token_url}"] if security.uses_oauth else []


def confluent_security_settings(security: KafkaSecuritySection) -> dict[str, str | None]:
    """Settings of confluent-kafka (librdkafka); of those None what has no value."""
    settings: dict[str, str | None] = {"security.protocol": security.protocol.lower()}
    if security.uses_sasl:
        settings["sasl.mechanisms"] = security.sasl_mechanism
    if security.uses_oauth:
        settings["sasl.oauthbearer.method"] = "oidc"
        settings["sasl.oauthbearer.client.id"] = security.oauth_client_id
        settings["sasl.oauthbearer.client.secret"] = revealed(security.oauth_client_secret)
        settings["sasl.oauthbearer.token.endpoint.url"] = security.oauth_token_url
        settings["sasl.oauthbearer.scope"] = security.oauth_scope
        settings["https.ca.location"] = _text(security.oauth_ca_file)
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


def _password_login(security: KafkaSecuritySection) -> dict[str, str]:
    return {"username": security.username or "", "password": revealed(security.password) or ""}


def _oauth_login(security: KafkaSecuritySection) -> dict[str, str]:
    given = {
        "clientId": security.oauth_client_id or "",
        "clientSecret": revealed(security.oauth_client_secret) or "",
    }
    if security.oauth_scope is not None:
        given["scope"] = security.oauth_scope
    if security.oauth_ca_file is not None:
        # The endpoint is another server than the broker: its trust is the login's, not the connection's.
        given["ssl.truststore.type"] = "PEM"
        given["ssl.truststore.certificates"] = _content("oauth_ca_file", security.oauth_ca_file)
    return given


def _java_tls_settings(security: KafkaSecuritySection) -> dict[str, str]:
    settings: dict[str, str] = {}
    if security.ca_file is not None:
        settings["ssl.truststore.type"] = "PEM"
        settings["ssl.truststore.certificates"] = _content("ca_file", security.ca_file)
    if security.certificate_file is not None and security.key_file is not None:
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.certificate.chain"] = _content("certificate_file", security.certificate_file)
        settings["ssl.keystore.key"] = _content("key_file", security.key_file)
    if security.key_password is not None:
        settings["ssl.key.password"] = security.key_password.get_secret_value()
    if not security.check_hostname:
        settings["ssl.endpoint.identification.algorithm"] = ""
    return settings


def _content(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise CannotTellError(f"kafka.security.{option}: found {str(path)!r}, accepted: a readable PEM file") from None


def _quoted(text: str) -> str:
    # JAAS reads the value as a Java string literal, which ends at a line's end.
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
