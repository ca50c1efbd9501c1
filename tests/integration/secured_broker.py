"""A broker that lets in by every way Kafka has, and lets do nothing that was not allowed.

One node, one listener for each way: TLS, mutual TLS, SASL over TLS with all mechanisms, two whose certificates are
wrong, one that says it is elsewhere, and a plain one for the tests themselves, who alone may do everything. By whatever
way, the monitor is `User:monitor`.
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streaming.config.loading import Config, load
from streaming.demo.embedded_broker import HOST, EmbeddedBroker, _free_ports
from streaming.kafka.permissions import Permission
from tests.certificates import Authority
from tests.integration.token_endpoint import AUDIENCE, ISSUER, TokenEndpoint
from tests.kafka_replay.judge import compile_java

USER: Final = "monitor"
PRINCIPAL: Final = f"User:{USER}"
PASSWORD: Final = "planted-broker-password-Zq7"  # noqa: S105 - of a user that lives as long as the test
CLIENT_SECRET: Final = "planted-client-secret-Xw9"  # noqa: S105 - as above
THIRD_HOST: Final = "127.0.0.2"
_ADMIN_SECONDS: Final = 30

_TLS_LISTENERS: Final = ("TLS", "MUTUAL", "SASL", "MSK", "ELSEWHERE", "EXPIRED", "AWAY")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
MSK: Final = "MSK"
"""As brokers of Amazon MSK with IAM: tokens that AWS credentials sign, checked by `MskSignatures.java`."""
WAYS: Final = ("TLS", "MUTUAL", *MECHANISMS, MSK)

AWS_REGION: Final = "eu-central-1"
AWS_SECRET: Final = "planted-aws-secret-key-Lp4"  # noqa: S105 - of an account that only the test's broker knows
AWS_ENVIRONMENT: Final = {"AWS_ACCESS_KEY_ID": "AKIAGROUPMONITORTEST", "AWS_SECRET_ACCESS_KEY": AWS_SECRET}


class SecuredBroker:
    """Use as a context manager.

    Attributes:
        open_servers: the plain listener, behind which everything is allowed.
        servers: listener → HOST:PORT.
        authority: signed all certificates.
        tokens: the token endpoint.
        third_host: where the listener AWAY says that the broker is; no one listens there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.authority = Authority(directory / "certificates")
        self.stranger = Authority(directory / "certificates", "stranger")
        self.tokens = TokenEndpoint(directory, self.authority, "monitor-client", CLIENT_SECRET, USER)
        classes = directory / "classes"
        compile_java(Path(__file__).with_name("MskSignatures.java"), into=classes)
        self.broker = EmbeddedBroker(directory / "broker", offsets_partitions=4, also=[classes])
        # Two more than are needed: those of the broker itself are free as well, until it starts.
        listening = self.broker._properties["listeners"]
        wanted = len(_TLS_LISTENERS) + 1
        port, *ports = [of for of in _free_ports(wanted + 2) if f":{of}" not in listening][:wanted]
        self.servers = {name: f"{HOST}:{port}" for name, port in zip(_TLS_LISTENERS, ports, strict=True)}
        self.open_servers = self.broker.bootstrap_servers
        self.client_files = self.authority.issue("client", "client.test", common_name=USER)
        self.stranger_files = self.stranger.issue("stranger-client", "client.test", common_name=USER)
        self._stack = ExitStack()
        self.third_host = (THIRD_HOST, port)
        advertised = {**self.servers, "AWAY": f"{THIRD_HOST}:{port}"}
        for name, servers in (("listeners", self.servers), ("advertised.listeners", advertised)):
            self.broker._properties[name] += "".join(f",{way}://{server}" for way, server in servers.items())
        self.broker._properties.update(self._properties())

    @property
    def keys_url(self) -> str:
        return self.tokens.keys_file.as_uri()

    def config(self, way: str, servers: str | None = None, **options: Any) -> Config:
        """The configuration of a monitor that comes in this way; `options` are of `kafka.security`, None for none."""
        return load(None, self.environment(way, servers, **options))

    def environment(self, way: str, servers: str | None = None, **options: Any) -> dict[str, str]:
        """The same as environment variables of a process."""
        security = {name: value for name, value in {**self.options(way), **options}.items() if value is not None}
        return {
            "GROUP_MONITOR__KAFKA__BOOTSTRAP_SERVERS": servers or self.servers[_listener(way)],
            **{f"GROUP_MONITOR__KAFKA__SECURITY__{name.upper()}": str(value) for name, value in security.items()},
        }

    def options(self, way: str) -> dict[str, Any]:
        """Options of `kafka.security` to come in this way."""
        options: dict[str, Any] = {
            "protocol": "SASL_SSL" if way in (*MECHANISMS, MSK) else "SSL",
            "ca_file": self.authority.file,
        }
        if way == "MUTUAL":
            options["certificate_file"], options["key_file"] = self.client_files
        if way in MECHANISMS:
            options["sasl_mechanism"] = way
        if way == MSK:
            options |= {"sasl_mechanism": "OAUTHBEARER", "aws_msk_region": AWS_REGION}
        if way == "OAUTHBEARER":
            options["oauth_token_url"] = self.tokens.url
            options["oauth_client_id"] = "monitor-client"
            options["oauth_client_secret"] = CLIENT_SECRET
            options["oauth_scope"] = "monitor"
            options["oauth_ca_file"] = self.authority.file
        elif way in MECHANISMS:
            options |= {"username": USER, "password": PASSWORD}
        return options

    def allow(self, permissions: Iterable[Permission]) -> None:
        """Let the monitor do this."""
        bindings = [_binding(permission) for permission in permissions]
        for done in self._admin.create_acls(bindings).values():
            done.result(_ADMIN_SECONDS)

    def forbid(self, permission: Permission) -> None:
        """Let the monitor do this no longer."""
        binding = _binding(permission)
        wanted = AclBindingFilter(
            binding.restype, binding.name, binding.resource_pattern_type, PRINCIPAL, "*", binding.operation,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        (done,) = self._admin.delete_acls([wanted]).values()
        assert 1 == len(done.result(_ADMIN_SECONDS))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.tokens)
            before = os.environ.get("JAVA_TOOL_OPTIONS")
            os.environ["JAVA_TOOL_OPTIONS"] = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.keys_url}"
            try:
                stack.enter_context(self.broker)
            finally:
                del os.environ["JAVA_TOOL_OPTIONS"]
                if before is not None:
                    os.environ["JAVA_TOOL_OPTIONS"] = before
            self._admin = AdminClient({"bootstrap.servers": self.open_servers, "log_level": 2})
            for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                # One of a user in a request.
                user = UserScramCredentialUpsertion(USER, ScramCredentialInfo(kind, 4096), PASSWORD.encode())
                (done,) = self._admin.alter_user_scram_credentials([user]).values()
                done.result(_ADMIN_SECONDS)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _properties(self) -> dict[str, str]:
        good = self._keystore("broker", *self.authority.issue("broker", HOST))
        elsewhere = self._keystore("elsewhere", *self.authority.issue("elsewhere", "elsewhere.test"))
        expired = self._keystore("expired", *self.authority.issue("expired", HOST, expired=True))
        protocols = {name: "SASL_SSL" if name in ("SASL", MSK, "AWAY") else "SSL" for name in _TLS_LISTENERS}
        sasl, msk, away = "listener.name.sasl", "listener.name.msk", "listener.name.away"
        plain = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        return {
            "listener.security.protocol.map": ",".join(
                ["CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT", *(f"{name}:{kind}" for name, kind in protocols.items())]
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(good),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.file),
            "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/",
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.elsewhere.ssl.keystore.location": str(elsewhere),
            "listener.name.expired.ssl.keystore.location": str(expired),
            f"{sasl}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
            f"{sasl}.plain.sasl.jaas.config": plain,
            f"{away}.sasl.enabled.mechanisms": "PLAIN",
            f"{away}.plain.sasl.jaas.config": plain,
            f"{sasl}.scram-sha-256.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            f"{sasl}.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            f"{sasl}.oauthbearer.sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
            ),
            f"{sasl}.oauthbearer.sasl.server.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            f"{sasl}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self.keys_url,
            f"{sasl}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            f"{sasl}.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
            f"{msk}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{msk}.oauthbearer.sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
            ),
            f"{msk}.oauthbearer.sasl.server.callback.handler.class": "MskSignatures",
            "test.msk.region": AWS_REGION,
            "test.msk.accessKey": AWS_ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            "test.msk.secretKey": AWS_SECRET,
            "test.msk.principal": USER,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def _keystore(self, name: str, certificate: Path, key: Path) -> Path:
        both = self._directory / f"{name}-keystore.pem"
        both.write_bytes(key.read_bytes() + certificate.read_bytes())
        return both


def _listener(way: str) -> str:
    return "SASL" if way in MECHANISMS else way


def _binding(permission: Permission) -> AclBinding:
    kind = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.BROKER}
    name = "kafka-cluster" if permission.resource == "cluster" else permission.name
    operation = AclOperation[permission.operation]
    return AclBinding(
        kind[permission.resource], name, ResourcePatternType.LITERAL, PRINCIPAL, "*", operation, AclPermissionType.ALLOW
    )
