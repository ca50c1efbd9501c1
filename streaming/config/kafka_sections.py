"""Sections about the brokers: where they are, and how a client is authenticated."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from streaming.config.section import MAX_PORT, MIB, Positive, Problem, Section, Text, must_be_file, option, together


def bootstrap_servers_text(value: object) -> object:
    """The one text that a list of servers stands for."""
    return ",".join(str(entry) for entry in value) if isinstance(value, list) else value


SERVERS: Final = (
    "HOST:PORT[,HOST:PORT…] or a list of HOST:PORT, without PLAINTEXT:// and the like: that is security.protocol"
)
"""What is accepted as bootstrap servers. Java's clients take a scheme there, and ignore it."""


def host_port_list(value: str) -> str:
    """The value, if it is HOST:PORT[,HOST:PORT…]; raises ValueError."""
    for entry in value.split(","):
        host, _, port = entry.strip().rpartition(":")
        if not host or "/" in host or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
            raise ValueError(entry)
    return ",".join(entry.strip() for entry in value.split(","))


def http_url(value: str) -> str:
    """The value, if it is an address without credentials in it; raises ValueError."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError
    return value


def _aws_region(value: str) -> str:
    # It becomes part of a host name.
    if not re.fullmatch(r"[a-z]{2,}(-[a-z]+)+-\d+", value):
        raise ValueError(value)
    return value


SASL_MECHANISMS = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]


class KafkaSecuritySection(Section):
    """How to be let in."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = option(
        "PLAINTEXT", "Kafka's security.protocol."
    )
    sasl_mechanism: SASL_MECHANISMS | None = option(
        None, "Kafka's sasl.mechanism; needed with SASL_PLAINTEXT and SASL_SSL."
    )
    username: str | None = option(None, "SASL user name; with PLAIN and SCRAM.")
    password: SecretStr | None = option(None, "SASL password; with PLAIN and SCRAM.")
    aws_msk_region: Annotated[str, AfterValidator(_aws_region)] | None = option(
        None,
        "Region of an Amazon MSK cluster with IAM: with OAUTHBEARER, tokens are signed with the AWS credentials found "
        "where each process runs (environment, profile, role), and none are fetched. Needs group-monitor[msk].",
        accepted="a region of AWS, as eu-central-1",
    )
    kerberos_service_name: Text = option(
        "kafka", "First part of the brokers' principals, with GSSAPI. Tickets come from the account's cache or keytab."
    )
    oauth_token_url: Annotated[str, AfterValidator(http_url)] | None = option(
        None,
        "Where tokens are fetched with OAUTHBEARER (client credentials) and without aws_msk_region. With http:// the "
        "client's secret crosses the network in clear.",
        accepted="an https:// or http:// address",
    )
    oauth_client_id: Text | None = option(None, "Client id that tokens are fetched with.")
    oauth_client_secret: SecretStr | None = option(None, "Client secret that tokens are fetched with.")
    oauth_scope: Text | None = option(None, "Scope asked for with a token, if the endpoint wants one.")
    oauth_ca_file: Path | None = option(
        None, "PEM file with the certificates to trust at the token endpoint; without it, as for ca_file."
    )
    ca_file: Path | None = option(
        None, "PEM file with the certificates to trust; without it, those that the system trusts."
    )
    certificate_file: Path | None = option(None, "PEM file with the client's certificate chain (mutual TLS).")
    key_file: Path | None = option(None, "PEM file with the client's private key (mutual TLS).")
    key_password: SecretStr | None = option(None, "Password of the private key, if it is encrypted.")
    check_hostname: bool = option(True, "Whether the broker's certificate must carry the broker's host name.")

    @property
    def uses_sasl(self) -> bool:
        """Whether the protocol asks for a user name."""
        return self.protocol.startswith("SASL_")

    @property
    def uses_oauth(self) -> bool:
        """Whether we are let in by tokens."""
        return self.uses_sasl and self.sasl_mechanism == "OAUTHBEARER"

    @property
    def uses_kerberos(self) -> bool:
        """Whether we are let in by tickets."""
        return self.uses_sasl and self.sasl_mechanism == "GSSAPI"

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.protocol.endswith("SSL")

    def rules(self) -> Iterator[Problem]:
        """SASL options come with a SASL protocol, certificate files with a TLS one, both complete."""
        yield from self._sasl_rules()
        for name in ("ca_file", "certificate_file", "key_file"):
            path = getattr(self, name)
            if path is not None and not self.uses_tls:
                yield Problem(
                    option=name,
                    found=f"{path} with protocol {self.protocol}",
                    accepted="a file with SSL and SASL_SSL, none otherwise",
                    involves=("protocol",),
                )
            elif path is not None:
                yield from must_be_file(name, path)
        yield from together("certificate_file", self.certificate_file, "key_file", self.key_file)

    def _sasl_rules(self) -> Iterator[Problem]:
        with_sasl = "a value with SASL_PLAINTEXT and SASL_SSL, none with PLAINTEXT and SSL"
        if (self.sasl_mechanism is not None) != self.uses_sasl:
            yield self._misplaced("sasl_mechanism", with_sasl)
        nameless = self.uses_oauth or self.uses_kerberos
        for name in ("username", "password"):
            if (getattr(self, name) is not None) != (self.uses_sasl and not nameless):
                yield self._misplaced(name, f"none with {self.sasl_mechanism}" if nameless else with_sasl)
        if self.aws_msk_region is not None and not self.uses_oauth:
            yield self._misplaced("aws_msk_region", "none without sasl_mechanism OAUTHBEARER")
        fetches = self.uses_oauth and self.aws_msk_region is None
        for name in ("oauth_token_url", "oauth_client_id", "oauth_client_secret"):
            if (getattr(self, name) is not None) != fetches:
                yield self._misplaced(
                    name, "a value with sasl_mechanism OAUTHBEARER unless aws_msk_region has one, none otherwise"
                )
        for name in ("oauth_scope", "oauth_ca_file"):
            if getattr(self, name) is not None and not fetches:
                yield self._misplaced(name, "none without sasl_mechanism OAUTHBEARER, and none with aws_msk_region")
        if self.oauth_ca_file is not None:
            yield from must_be_file("oauth_ca_file", self.oauth_ca_file)

    def _misplaced(self, name: str, accepted: str) -> Problem:
        mechanism = f" and sasl_mechanism {self.sasl_mechanism}" if self.sasl_mechanism is not None else ""
        if name.startswith("oauth_") and self.aws_msk_region is not None:
            mechanism += " and an aws_msk_region"
        found = "none" if getattr(self, name) is None else "a value"
        return Problem(
            option=name,
            found=f"{found} with protocol {self.protocol}{mechanism}",
            accepted=accepted,
            involves=("protocol", "sasl_mechanism", *(["aws_msk_region"] if name.startswith("oauth_") else [])),
        )


class KafkaSection(Section):
    """Where the brokers are."""

    bootstrap_servers: Annotated[
        str,
        BeforeValidator(bootstrap_servers_text, json_schema_input_type=str | list[str]),
        AfterValidator(host_port_list),
    ] = option("127.0.0.1:9092", "Brokers to ask first.", accepted=SERVERS)
    offsets_topic: Text = option("__consumer_offsets", "The group coordinator's log.")
    client_id: Text = option(
        "group-monitor",
        "Prefix of the client ids seen in the brokers' logs and quotas; no group is joined.",
    )
    request_timeout_ms: Positive = option(30_000, "How long one request to a broker may take.")
    max_record_bytes: Positive = option(
        64 * MIB,
        "Largest value of a record of the log that is read, never below the topic's max.message.bytes. A larger one, "
        "which a small batch may unpack to, is counted as undecodable.",
    )
    security: KafkaSecuritySection = KafkaSecuritySection()
