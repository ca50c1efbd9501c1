"""A broker that allows nothing without permission, but by its plain door."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient

from lab.monitor_process import CommandProcess, MonitorProcess
from streaming.demo.embedded_broker import EmbeddedBroker, _free_ports
from streaming.kafka.permissions import Permission
from tests.integration.secured_broker import _binding

SECURITY: Final = (
    "  security: {protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN, username: monitor, "
    "password: '${env:MONITOR_PASSWORD}'}\n"
)
"""How a monitor comes in, as lines of its configuration's section `kafka`."""

SECRET: Final = {"MONITOR_PASSWORD": "secret"}

_ACL_SECONDS: Final = 30


def guarded_broker(directory: Path) -> tuple[EmbeddedBroker, str]:
    """A broker that allows nothing without permission but by its plain door, and the address of its other door."""
    broker = EmbeddedBroker(directory, offsets_partitions=4)
    (port,) = _free_ports(1)
    guarded = f"127.0.0.1:{port}"
    for name in ("listeners", "advertised.listeners"):
        broker._properties[name] += f",GUARDED://{guarded}"
    broker._properties.update(
        {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": (
                'org.apache.kafka.common.security.plain.PlainLoginModule required user_monitor="secret";'
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
    )
    return broker, guarded


def allow(servers: str, permissions: Iterable[Permission]) -> None:
    """Let the monitor do this."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    for done in admin.create_acls([_binding(each) for each in permissions]).values():
        done.result(_ACL_SECONDS)


class Started(MonitorProcess):
    """A monitor with a configuration that is there already, and the password in its environment."""

    def __init__(self, directory: Path, config: Path) -> None:
        CommandProcess.__init__(self, directory, "run", "--config", str(config), environment=SECRET)
        self._url = None
