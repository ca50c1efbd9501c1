"""Whether both Kafka clients can use Kerberos here; the wheels of neither can.

librdkafka has it where it was built with libsasl2, which the wheel of confluent-kafka is not; kafka-python asks for the
package gssapi.
"""

from importlib.util import find_spec

from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSecuritySection


def refuse_without_libraries(security: KafkaSecuritySection) -> None:
    """Return where GSSAPI is not asked for, or can be used.

    Raises:
        CannotTellError: it is asked for, and a library cannot; says which, and what to install.
    """
    if not security.uses_kerberos:
        return
    lacking = []
    if not _librdkafka_has("sasl_gssapi"):
        lacking.append("librdkafka is built without libsasl2")
    if find_spec("gssapi") is None:
        lacking.append("the Python package gssapi is missing")
    if lacking:
        raise CannotTellError(
            f"kafka.security.sasl_mechanism: found GSSAPI, and {', and '.join(lacking)}, accepted: GSSAPI with both, "
            "as from pip install --no-binary confluent-kafka confluent-kafka gssapi on a system with librdkafka "
            "(built with libsasl2) and Kerberos, and their headers"
        )


def _librdkafka_has(feature: str) -> bool:
    from confluent_kafka import KafkaException  # imported late: few need it

    from streaming.kafka.librdkafka import Producer

    try:
        # Set to what is wanted, this setting is refused where the library was built without (CONFIGURATION.md).
        Producer({"builtin.features": feature, "log_level": 0})
    except KafkaException:
        return False
    return True
