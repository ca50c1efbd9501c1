"""Kafka's own decoder, as an oracle for ours.

A plain JVM with the broker's jars runs `GroupCoordinatorRecordSerde` and `CoordinatorRecordJsonConverters`, driven
through py4j, which Spark brings along: no broker, no compiler. About a dozen calls a record, hence some hundred records
a second.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, Final

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from streaming.spark.java import find_java

KAFKA_JARS: Final = Path(__file__).parents[1] / ".cache" / "jars" / "kafka"
_EXIT_SECONDS: Final = 10


class Refused(Exception):
    """Kafka could not decode the bytes; the text is the Java exception's."""


@dataclass(frozen=True)
class KafkaOracle:
    """What Kafka makes of the bytes of a record."""

    gateway: JavaGateway
    serde: Any
    converters: Any

    def record_json(self, key: bytes, value: bytes | None) -> dict[str, Any]:
        """The record in the form of Kafka's converters, like `json_form.record_json`. Raises Refused."""
        record = self._deserialize(key, value)
        return {"key": self._key_json(key, record), "value": self._value_json(record)}

    def written_again(self, key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
        """Key and value as Kafka writes what it has read, in the value's version. Raises Refused."""
        record = self._deserialize(key, value)
        return self.serde.serializeKey(record), self.serde.serializeValue(record)

    def embedded_json(self, kind: str, blob: bytes) -> dict[str, Any]:
        """A ``Subscription`` or ``Assignment`` of the consumer protocol as JSON, in its own version. Raises Refused."""
        name = f"ConsumerProtocol{kind}"
        kafka = self.gateway.jvm.org.apache.kafka
        protocol = kafka.clients.consumer.internals.ConsumerProtocol
        buffer = self.gateway.jvm.java.nio.ByteBuffer.wrap(blob)
        try:
            read = getattr(protocol, f"deserialize{name}")(buffer)
        except Py4JJavaError as error:
            raise Refused(error.java_exception.toString()) from None
        version = min(int.from_bytes(blob[:2], "big"), read.highestSupportedVersion())
        parsed: dict[str, Any] = json.loads(
            getattr(kafka.common.message, f"{name}JsonConverter").write(read, version).toString()
        )
        return parsed

    def types(self) -> dict[str, tuple[int, int, int]]:
        """Name of each record type → id, lowest and highest version of its value."""
        types = self.gateway.jvm.org.apache.kafka.coordinator.group.generated.CoordinatorRecordType.values()
        return {
            each.name(): (each.id(), each.lowestSupportedVersion(), each.highestSupportedVersion()) for each in types
        }

    def _deserialize(self, key: bytes, value: bytes | None) -> Any:
        wrap = self.gateway.jvm.java.nio.ByteBuffer.wrap
        try:
            return self.serde.deserialize(wrap(key), None if value is None else wrap(value))
        except Py4JJavaError as error:
            raise Refused(error.java_exception.toString()) from None

    def _key_json(self, key: bytes, record: Any) -> dict[str, Any]:
        data = self.converters.writeRecordKeyAsJson(record.key())
        return {"type": int.from_bytes(key[:2], "big", signed=True), "data": json.loads(data.toString())}

    def _value_json(self, record: Any) -> dict[str, Any] | None:
        value = record.value()
        if value is None:
            return None
        version = value.version()
        data = self.converters.writeRecordValueAsJson(value.message(), version)
        return {"version": version, "data": json.loads(data.toString())}


@contextmanager
def kafka_oracle() -> Iterator[KafkaOracle]:
    """An oracle in a JVM of its own, which is gone afterwards."""
    port, token, process = launch_gateway(
        classpath=f"{KAFKA_JARS}/*",
        jarpath=str(next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))),
        java_path=str(find_java()),
        javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        redirect_stdout=DEVNULL,
        redirect_stderr=DEVNULL,
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    try:
        # Without finalizers: one that ran after the JVM's end, in the middle of something else, would fail that.
        parameters = GatewayParameters(port=port, auth_token=token, enable_memory_management=False)
        gateway = JavaGateway(gateway_parameters=parameters)
        group = gateway.jvm.org.apache.kafka.coordinator.group
        yield KafkaOracle(gateway, group.GroupCoordinatorRecordSerde(), group.generated.CoordinatorRecordJsonConverters)
        gateway.shutdown()
    finally:
        _end(process)


def _end(process: "Popen[bytes]") -> None:
    process.terminate()
    process.wait(_EXIT_SECONDS)
