"""Settings of clients that cross to another process of this machine."""

from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.client_settings import portable_section, python_settings, section_of


def test_a_section_is_the_same_on_the_other_side() -> None:
    """With its secrets: who reads it has to be let in by the brokers."""
    section = KafkaSection.model_validate(
        {
            "bootstrap_servers": "kafka-1.example:9092",
            "security": {
                "protocol": "SASL_SSL",
                "sasl_mechanism": "PLAIN",
                "username": "monitor",
                "password": "a secret",
            },
        }
    )

    there = section_of(portable_section(section))

    assert section == there
    assert "a secret" == python_settings(there, "epochs")["sasl_plain_password"]
