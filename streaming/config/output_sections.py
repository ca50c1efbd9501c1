"""Sections about what leaves the monitor: Kafka topics, OTLP, the queue, history."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from streaming.config.kafka_sections import (
    SERVERS,
    KafkaSection,
    KafkaSecuritySection,
    bootstrap_servers_text,
    host_port_list,
    http_url,
)
from streaming.config.section import MIB, HomePath, Positive, Problem, Section, Text, Whole, must_be_file, option

_HEADER: Final = re.compile(r"[A-Za-z0-9-]+")


class KafkaSinkSection(Section):
    """Kafka topics that events and states of groups are written to; docs/topics.md has what is in them."""

    events_topic: Text | None = option(None, "Topic of events; none are written without it.", accepted="a topic's name")
    events_format: Literal["json", "cloudevents_binary", "cloudevents_structured"] = option(
        "json",
        "How an event is written: as its JSON; or as a CloudEvent 1.0 of the Kafka protocol binding, in binary mode "
        "(the same value, attributes in headers) or in structured mode (an envelope with the event in data).",
    )
    groups_topic: Text | None = option(
        None,
        "Compacted topic of the groups as they are, from which `group-monitor serve` serves; none are written without.",
        accepted="a topic's name",
    )
    bootstrap_servers: (
        Annotated[
            str,
            BeforeValidator(bootstrap_servers_text, json_schema_input_type=str | list[str]),
            AfterValidator(host_port_list),
        ]
        | None
    ) = option(
        None,
        "Brokers of the topics, with security as below; without it they are in the cluster that is monitored, and "
        "kafka.* says how it is reached.",
        accepted=SERVERS,
    )
    groups_interval_ms: Positive = option(
        2_000, "Shortest time between two states of a group that only commits; other changes are written at once."
    )
    security: KafkaSecuritySection = KafkaSecuritySection()

    def connection(self, kafka: KafkaSection) -> KafkaSection:
        """How the brokers of the topics are reached."""
        if self.bootstrap_servers is None:
            return kafka
        return kafka.model_copy(update={"bootstrap_servers": self.bootstrap_servers, "security": self.security})

    def rules(self) -> Iterator[Problem]:
        """Two topics are two, and security comes with brokers."""
        if self.events_topic is not None and self.events_topic == self.groups_topic:
            yield Problem(
                option="groups_topic",
                found=f"{self.groups_topic!r}, which is events_topic too",
                accepted="a topic of its own, because it is compacted",
                involves=("events_topic",),
            )
        if self.bootstrap_servers is None and self.security != KafkaSecuritySection():
            yield Problem(
                option="security",
                found="settings without kafka_sink.bootstrap_servers",
                accepted="both, or neither: then kafka.security holds",
                involves=("bootstrap_servers",),
            )


class SpoolSection(Section):
    """What waits on disk, below state.dir, for sinks that are slow or gone; only with a sink."""

    max_bytes: Annotated[Whole, Field(ge=MIB)] = option(
        256 * MIB,
        "How much may wait. From half of it on states of groups wait in memory for their turn; when it is full the "
        "oldest goes undelivered, is counted and logged.",
    )
    state_interval_ms: Positive = option(
        10_000,
        "Shortest time between two states of a group that only commits offsets; a change of members, epoch or state "
        "is passed on at once.",
    )


class OtlpSection(Section):
    """Metrics and events by OTLP over HTTP (OpenTelemetry), beside /metrics and topics. Needs group-monitor[otlp]."""

    endpoint: Annotated[str, AfterValidator(http_url)] | None = option(
        None,
        "Where a collector takes OTLP over HTTP, without /v1/metrics and /v1/logs; nothing is exported without it.",
        accepted="an https:// or http:// address, as http://127.0.0.1:4318",
    )
    headers: dict[str, str] = Field(
        default={},
        # What lets in is among them.
        repr=False,
        description="Headers of each request, as Authorization; secrets in them by ${env:NAME} or ${file:PATH}.",
        json_schema_extra={"accepted": "a mapping of names to text"},
    )
    ca_file: Path | None = option(
        None, "PEM file with the certificates to trust there; without it, those that the system trusts."
    )
    metrics: bool = option(True, "Whether the page of /metrics is exported; each sample costs time (docs/operate.md).")
    events: bool = option(True, "Whether events are exported, as log records.")
    interval_ms: Annotated[Whole, Field(ge=1_000)] = option(30_000, "Time between two exports of metrics.")

    def rules(self) -> Iterator[Problem]:
        """A file that is there, headers that are, and something to export."""
        if self.ca_file is not None:
            yield from must_be_file("ca_file", self.ca_file)
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(name) or not value.isprintable() or not value.isascii():
                yield Problem(
                    option="headers",
                    found=f"{name!r}, which with its value is no header",
                    accepted="a name of letters, digits and hyphens, and a value of printable ASCII",
                )
        if self.endpoint is not None and not self.metrics and not self.events:
            yield Problem(
                option="endpoint",
                found=f"{self.endpoint!r}, with metrics and events false",
                accepted="one of them true, or no endpoint",
                involves=("metrics", "events"),
            )


class HistorySection(Section):
    """What is kept for weeks: events, and how groups were, in Parquet files that `group-monitor history` reads."""

    enabled: bool = option(False, "Whether a history is kept. Its sink is called history in the metrics.")
    dir: HomePath | None = option(None, "Directory of the files, if not history below state.dir.")
    retain_days: Positive = option(30, "How many days are kept besides today.")
    max_bytes: Annotated[Whole, Field(ge=16 * MIB)] = option(
        10 * 1024 * MIB, "How much the files may take; beyond it the oldest days go, however many are to be kept."
    )
    records: bool = option(
        False,
        "Whether records of the log are kept as well, for recordings of what was (history G --record FILE). The log is "
        "read once more for it, all commits included.",
    )
    interval_ms: Positive = option(
        10_000, "Time between two writes while little happens; so far the history is behind, and no further."
    )
