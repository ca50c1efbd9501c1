"""A broker of any release from 3.3 on, alone on loopback, that loads a log as it stands: nothing in it ever expires.

Retention and the session timeouts that are the broker's own do not run; a classic member's session is in its record,
and does. The cleaner is off. What the coordinator's loader says is logged at INFO, a line each that begins with `@`.
"""

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from streaming.demo.embedded_broker import HOST, PROPERTIES, EmbeddedBroker

_YEAR_MS: Final = "31536000000"
_DAY_MS: Final = "86400000"
_LARGEST_BATCH: Final = "104857600"

# Settings that a release does not know it passes over.
_PROPERTIES: Final[Mapping[str, str]] = {
    **{name: value for name, value in PROPERTIES.items() if not name.startswith("group.")},
    "offsets.retention.minutes": "2147483647",
    "offsets.retention.check.interval.ms": _YEAR_MS,
    "group.consumer.max.session.timeout.ms": _DAY_MS,
    "group.consumer.session.timeout.ms": _DAY_MS,
    "group.share.max.session.timeout.ms": _DAY_MS,
    "group.share.session.timeout.ms": _DAY_MS,
    "group.streams.max.session.timeout.ms": _DAY_MS,
    "group.streams.session.timeout.ms": _DAY_MS,
    # A clock that goes wrong is no reason to refuse a record that brokers once took.
    "log.message.timestamp.after.max.ms": "9223372036854775807",
    "message.max.bytes": _LARGEST_BATCH,
    "socket.request.max.bytes": str(2 * int(_LARGEST_BATCH)),
    "log.cleaner.enable": "false",
}

_LOG4J_2: Final = """status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = @%p %m%n%ex{full}
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
logger.old.name = kafka.coordinator.group
logger.old.level = INFO
logger.new.name = org.apache.kafka.coordinator
logger.new.level = INFO
"""
_LOG4J_1: Final = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=@%p %m%n
log4j.logger.kafka.coordinator.group=INFO
log4j.logger.org.apache.kafka.coordinator=INFO
"""


class ReleaseBroker(EmbeddedBroker):
    """As `EmbeddedBroker`, of any release, with a cluster id of its own."""

    _START_SECONDS: ClassVar = 300.0
    """Long: a broker looks through its log first, and a rehearsal may run where much else does."""
    _QUORUM: ClassVar[Sequence[str]] = ()

    def __init__(
        self,
        data_dir: Path,
        *,
        jars_dir: Path,
        offsets_partitions: int,
        heap: str = "1g",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """As `EmbeddedBroker`; `properties` win over all that is set here."""
        super().__init__(
            data_dir,
            jars_dir=jars_dir,
            offsets_partitions=offsets_partitions,
            heap=heap,
            cluster_id=urlsafe_b64encode(_first_not_a_dash().bytes).decode("ascii").rstrip("="),
        )
        controller = self._properties["controller.quorum.bootstrap.servers"]
        kept = ("listeners", "log.dirs", "offsets.topic.num.partitions")
        self._properties = {
            **_PROPERTIES,
            **{name: self._properties[name] for name in kept},
            # Known to all releases; before 3.9 a controller has no advertised listener.
            "controller.quorum.voters": f"1@{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            **(properties or {}),
        }

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        return self._port

    def _node(self, settings: Path) -> list[str]:
        java, *rest = super()._node(settings)
        files = {"log4j2.configurationFile": _LOG4J_2, "log4j.configuration": _LOG4J_1}
        options = []
        for option, text in files.items():
            file = self.data_dir / f"{option}.properties"
            file.write_text(text, encoding="utf-8")
            options.append(f"-D{option}={file.resolve().as_uri()}")
        return [java, *options, *rest]


def _first_not_a_dash() -> uuid.UUID:
    """A uuid whose text does not begin as an option does, which is what the formatter would take it for."""
    while (found := uuid.uuid4()).bytes[0] >> 2 == 62:  # noqa: PLR2004 - the dash of base64url
        pass
    return found
