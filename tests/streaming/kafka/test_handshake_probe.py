"""What a listener's answer to SaslHandshake says about the options; the rest is asked of a real broker."""

import struct

import pytest

from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSecuritySection
from streaming.kafka.handshake_probe import _judge_handshake

OFFERED = ("SCRAM-SHA-512", "PLAIN")


def answer(error: int, *mechanisms: str) -> bytes:
    """SaslHandshake's response in version 1: correlation id, error, mechanisms."""
    listed = b"".join(struct.pack(">h", len(name)) + name.encode() for name in mechanisms)
    return struct.pack(">ihi", 0, error, len(mechanisms)) + listed


def test_a_mechanism_that_is_not_offered_is_reported_with_those_that_are() -> None:
    """The option, what was found, and the listener's own list."""
    security = KafkaSecuritySection(protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER")
    with pytest.raises(CannotTellError) as reported:
        _judge_handshake(answer(33, *OFFERED), "broker:9092", security)

    expected = "kafka.security.sasl_mechanism: found OAUTHBEARER, which broker:9092 does not offer, accepted: "
    assert f"{expected}PLAIN, SCRAM-SHA-512" == str(reported.value)


def test_listeners_that_fit_are_not_complained_about() -> None:
    """SASL where SASL is wanted, and none where none is."""
    plain = KafkaSecuritySection()
    sasl = KafkaSecuritySection(protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN")

    _judge_handshake(answer(34), "broker:9092", plain)
    _judge_handshake(answer(0, *OFFERED), "broker:9092", sasl)


@pytest.mark.parametrize(
    ("protocol", "given", "expected"),
    [("PLAINTEXT", answer(33, *OFFERED), "it wants SASL: PLAIN, "), ("SASL_PLAINTEXT", answer(34), "it has no SASL")],
)
def test_the_other_kind_of_listener_is_named(protocol: str, given: bytes, expected: str) -> None:
    """By the option that does not fit it."""
    security = KafkaSecuritySection.model_construct(protocol=protocol)
    with pytest.raises(CannotTellError, match=r"^kafka\.security\.protocol: found ") as reported:
        _judge_handshake(given, "broker:9092", security)

    assert f"({expected}" in str(reported.value)
