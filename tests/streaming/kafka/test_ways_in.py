"""What is said where a way in needs a library that is not here; the wheels of the clients never have Kerberos."""

import sys
from importlib.util import find_spec

import pytest

from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection, KafkaSecuritySection
from streaming.kafka import oauth_tokens
from streaming.kafka.client_settings import confluent_settings, python_settings
from streaming.kafka.kerberos import _librdkafka_has
from streaming.kafka.preflight import broker_findings

KERBEROS = KafkaSecuritySection(protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI", kerberos_service_name="brokers")


def test_features_are_what_librdkafka_says_of_itself() -> None:
    """One that the wheel has, one that it has not, and one that there is not."""
    assert [True, False, False] == [_librdkafka_has(name) for name in ("sasl_oauthbearer", "sasl_gssapi", "sasl_x")]


def test_kerberos_without_its_libraries_is_refused_with_what_to_install() -> None:
    """Before any connection, by each of the checks of `check` that asks brokers; both libraries are named at once."""
    assert find_spec("gssapi") is None
    first, *others = broker_findings(KafkaSection(bootstrap_servers="127.0.0.1:1", security=KERBEROS))

    assert "cannot tell" == first.status
    assert first.detail.startswith(
        "kafka.security.sasl_mechanism: found GSSAPI, and librdkafka is built without libsasl2, and the Python package "
        "gssapi is missing, accepted: "
    )
    assert "pip install --no-binary confluent-kafka confluent-kafka gssapi" in first.detail
    assert {"cannot tell"} == {of.status for of in others}


def test_other_mechanisms_need_neither() -> None:
    """PLAIN goes on to the connection, and fails there."""
    security = KafkaSecuritySection.model_construct(protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN")
    found = broker_findings(KafkaSection(bootstrap_servers="127.0.0.1:1", security=security))[0]

    assert found.detail.startswith("kafka.bootstrap_servers: ")


def test_the_service_reaches_both_clients() -> None:
    """Under each client's own name, and no user name or password along with it."""
    kafka = KafkaSection(security=KERBEROS)
    python, confluent = python_settings(kafka, "test"), confluent_settings(kafka, "test")

    assert "brokers" == python["sasl_kerberos_service_name"] == confluent["sasl.kerberos.service.name"]
    assert "GSSAPI" == python["sasl_mechanism"] == confluent["sasl.mechanisms"]
    assert set() == {"sasl_plain_username", "sasl.username"} & {*python, *confluent}


def test_a_signer_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSK's IAM without its extra: the option, and what to install."""
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)
    with pytest.raises(CannotTellError) as raised:
        oauth_tokens.signed("eu-west-1")

    assert (
        "kafka.security.aws_msk_region: found 'eu-west-1' without the package aws-msk-iam-sasl-signer-python, "
        "accepted: with it, as in pip install 'group-monitor[msk]'"
    ) == str(raised.value)
