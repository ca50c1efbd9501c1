"""The sections of the configuration: frozen, every option with its default, its meaning and what it accepts.

An option is declared once, here. The loader (`loading.py`), the reference file (`reference.py`) and the error messages
all read these declarations. What only holds between options is a `rules` method of the section.
"""

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from streaming.base.errors import UsageError
from streaming.base.expectations import HELD_BACK, Expectations, Expected
from streaming.base.places import STATE
from streaming.config.kafka_sections import KafkaSection, bootstrap_servers_text
from streaming.config.output_sections import HistorySection, KafkaSinkSection, OtlpSection, SpoolSection
from streaming.config.section import (
    MIB,
    HomePath,
    NotNegative,
    Port,
    Positive,
    Problem,
    Section,
    Text,
    Whole,
    all_rules,
    must_be_file,
    option,
    together,
)
from streaming.config.view_sections import MetricsSection, ViewSection

MOST_GUESSED: Final = 16
"""Characters of a secret that callers of ours send: fewer are soon tried."""


class ClusterSection(Section):
    """How the cluster is called."""

    name: Text = option("default", "Value of the label `cluster` (and `cluster_name`) on every metric.")


class SourceSection(Section):
    """Where groups are from: how the log is read, or how groups are polled."""

    kind: Literal["log", "admin"] = option(
        "log",
        "log reads the coordinator's log. admin asks coordinators about their groups every few seconds, where the log "
        "may not be read: members, assignments and lag, without what happens between two polls (docs/permissions.md).",
    )
    poll_interval_ms: Annotated[Whole, Field(ge=500, le=30_000)] = option(
        5_000, "With kind admin: time between the beginnings of two polls of all groups."
    )
    isolation: Literal["exact", "committed_only"] = option(
        "exact",
        "exact reads membership records uncommitted and offset commits committed, as the coordinator holds them. "
        "committed_only reads up to the last stable offset alone: an open transaction on any group holds back all "
        "groups of its partition.",
    )
    max_offsets_per_trigger: Positive = option(
        2_000_000, "Largest number of records in one micro-batch; bounds memory while catching up."
    )
    tasks: Positive = option(
        2,
        "Largest number of processes that read the log in one micro-batch. A few thousand records are read by one, "
        "whatever stands here: a second would cost more than it saves.",
    )
    fetch_max_wait_ms: NotNegative = option(
        20,
        "librdkafka's fetch.wait.max.ms. It is paid where the last records of a partition are not delivered: "
        "compacted away, or marks of transactions.",
    )
    max_partition_fetch_bytes: Positive = option(
        MIB, "librdkafka's max.partition.fetch.bytes: what a broker sends of a partition at once."
    )


class ShareGroupsSection(Section):
    """How far share groups are: the share coordinator's log, read beside the first."""

    enabled: Literal["auto"] | bool = option(
        "auto",
        "Whether __share_group_state is read. auto looks for it at start and once a minute, and does without it where "
        "it is not there or may not be read: lag of share groups is then not known. With true it has to be there and "
        "readable.",
        accepted="auto, true or false",
    )


_MASTER = re.compile(r"(local(\[(\*|\d+)(,\s*\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s)://\S+)")


def _spark_master(value: str) -> str:
    if not _MASTER.fullmatch(value):
        raise ValueError(value)
    return value


def _memory(value: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[kmgt]", value, re.IGNORECASE):
        raise ValueError(value)
    return value


class SparkSection(Section):
    """The engine underneath."""

    master: Annotated[str, AfterValidator(_spark_master)] = option(
        "local[8]",
        "Where Spark runs. More slots than cores is right: the tasks of the source mostly wait.",
        accepted="local[N], local[*], local-cluster[N,CORES,MB], spark://…, yarn or k8s://…",
    )
    driver_memory: Annotated[str, AfterValidator(_memory)] = option(
        "2g", "Java heap of the driver; with a local master, of everything.", accepted="a size such as 512m or 2g"
    )
    shuffle_partitions: Positive | None = option(
        None,
        "Stateful tasks the coordinator's partitions are spread over, fixed by the first run on a state directory; by "
        "default as many as the directory has, and 1 in a new one.",
        accepted="a whole number from 1 on",
    )
    trigger_interval_ms: NotNegative = option(375, "Shortest time between the starts of two micro-batches.")
    ui: bool = option(False, "Whether Spark's own web page is served.")
    ui_port: Port = option(4040, "Port of Spark's own web page.")
    conf: dict[str, str] = Field(
        default={},
        # Values may hold credentials of a file system.
        repr=False,
        description="Further spark.* settings, as they are; they win over those set here.",
        json_schema_extra={"accepted": "a mapping of spark.… names to text"},
    )

    def rules(self) -> Iterator[Problem]:
        """Further settings are Spark's."""
        for name in self.conf:
            if not name.startswith("spark."):
                yield Problem(option="conf", found=f"the name {name!r}", accepted="names that start with spark.")


class StateSection(Section):
    """What survives a restart."""

    dir: HomePath = option(
        STATE,
        "Directory of the checkpoint and of the log end offset history, of any name without a colon; ~ is the home "
        "directory. An installed wheel's default is group-monitor "
        "below XDG_STATE_HOME (~/.local/state).",
    )
    checkpoint_location: Text | None = option(
        None,
        "Where Spark keeps the checkpoint, if not below dir: on a cluster, a URL all executors reach. Nothing in it is "
        "escaped: a blank is a blank, and %20 are three characters.",
        accepted="a path or a URL of a file system Spark knows",
    )


class HttpSection(Section):
    """Page, metrics and API."""

    host: Text = option("127.0.0.1", "Address to listen on.")
    port: Port = option(9464, "Port to listen on; 0 takes any free one and says which.")
    probe_port: Port | None = option(
        None,
        "Port for probes alone, without TLS and credentials: /healthz and /ready in numbers, answered also while the "
        "other port has all the connections it takes. 0 takes any free one.",
    )
    token: SecretStr | None = option(None, "Bearer token that callers must send.")
    username: str | None = option(None, "User name callers must send (basic authentication).")
    password: SecretStr | None = option(None, "Password callers must send (basic authentication).")
    tls_certificate_file: Path | None = option(None, "PEM file with the server's certificate chain; turns TLS on.")
    tls_key_file: Path | None = option(None, "PEM file with the server's private key.")
    allow_remote_without_auth: bool = option(
        False, "Allow an address beyond loopback although neither token nor user name is set."
    )

    allowed_hosts: (
        Annotated[str, BeforeValidator(bootstrap_servers_text, json_schema_input_type=str | list[str])] | None
    ) = option(
        None,
        "Names that requests may be addressed to (their Host header), beside addresses and localhost. Without it any "
        "name where authentication is asked for, and none where it is not: then a service's name, or the one that a "
        "proxy hands on, is to be set.",
        accepted="NAME[,NAME…] or a list of names",
    )
    requests_per_second: NotNegative = option(
        200,
        "Requests of one address, probes aside; five seconds' worth may come at once, and wrong credentials count as "
        "twenty. 0 for any number, as behind a proxy that limits them itself.",
    )

    @property
    def requires_auth(self) -> bool:
        """Whether callers must identify themselves."""
        return self.token is not None or self.username is not None

    @property
    def is_loopback(self) -> bool:
        """Whether the address can be reached from this machine only."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def rules(self) -> Iterator[Problem]:
        """No open door by accident, nothing that is soon guessed, and every pair complete."""
        for name, secret in (("token", self.token), ("password", self.password)):
            length = MOST_GUESSED if secret is None else len(secret.get_secret_value())
            if length < MOST_GUESSED:
                yield Problem(
                    option=name,
                    found=f"a value of {length} characters (not shown)",
                    accepted=f"{MOST_GUESSED} characters or more",
                )
        if not self.is_loopback and not self.requires_auth and not self.allow_remote_without_auth:
            yield Problem(
                option="host",
                found=f"{self.host!r}, beyond loopback and without authentication",
                accepted="127.0.0.1, ::1 or localhost; or http.token or http.username and http.password; "
                "or http.allow_remote_without_auth: true",
                involves=("token", "username", "password", "allow_remote_without_auth"),
            )
        if self.probe_port and self.probe_port == self.port:
            yield Problem(
                option="probe_port",
                found=f"{self.probe_port}, which is http.port",
                accepted="another port, or none",
                involves=("port",),
            )
        yield from together("username", self.username, "password", self.password)
        yield from together("tls_certificate_file", self.tls_certificate_file, "tls_key_file", self.tls_key_file)
        for name in ("tls_certificate_file", "tls_key_file"):
            path = getattr(self, name)
            if path is not None:
                yield from must_be_file(name, path)


class EndOffsetsSection(Section):
    """Sampling of log end offsets, the other half of lag."""

    interval_ms: Positive = option(1_000, "Time between two samples of all log end offsets.")
    history_points: Annotated[Whole, Field(ge=2)] = option(
        600, "Samples kept for a partition; lag in seconds is interpolated between them."
    )
    history_seconds: Positive = option(
        3_600, "How far back the samples reach: the older ones are thinned out to cover this time."
    )
    read_records: bool = option(
        True,
        "Read at the committed offsets of idle partitions, with READ on their topics, whether a record waits there or "
        "only what transactions leave: markers, and what was aborted.",
    )


class ExpectationSection(Section):
    """What is expected of groups: an alarm that says so is held back, counted, and shown with the reason."""

    reason: Text = option("", "Why; shown where the alarm would have been.")
    shares_partitions: bool = option(False, "Its assignor gives a partition to several members by design.")
    seeks_back: bool = option(False, "Its members seek back: committed offsets that go back are meant.")
    restarts: bool = option(False, "Its members are restarted all the time.")
    shrinks: bool = option(False, "Its next roll leaves it with fewer members: those who go are not missed.")
    never_downgrades: bool = option(
        False,
        "It never goes back to the classic protocol: what only looks like it is held back, a downgrade is critical.",
    )
    owner: Text | None = option(None, "Whom to ask; also in plan and search. Needs no reason.")
    runbook: Text | None = option(None, "Address of what to do.")
    note: Text | None = option(None, "A remark beside the group in plan. Needs no reason.")


class AlarmsSection(Section):
    """When something is said to be wrong, where that is a matter of taste."""

    unsettled_after_ms: Annotated[Whole, Field(ge=60_000)] = option(
        600_000, "How long a group may not come to rest, epochs going by, before `group_unsettled` is reported."
    )
    expectations: dict[str, ExpectationSection] = Field(
        default={},
        description="What is expected of groups, by pattern of their names: shares_partitions, seeks_back, restarts, "
        "shrinks, never_downgrades (true or false), reason, owner, runbook, note. Alarms that say so are held back, "
        "counted in kafka_group_silenced_total, and shown with the reason.",
        json_schema_extra={"accepted": "a mapping of shell patterns to expectations, each with a reason"},
    )

    @property
    def expected(self) -> Expectations:
        """The expectations as they are applied."""
        return Expectations(
            Expected(
                pattern,
                frozenset(name for name in HELD_BACK if getattr(of, name)),
                of.reason,
                of.owner,
                of.runbook,
                of.note,
            )
            for pattern, of in self.expectations.items()
        )

    def rules(self) -> Iterator[Problem]:
        """Each expectation that holds something back says why."""
        for pattern, of in self.expectations.items():
            if not of.reason and any(getattr(of, name) for name in HELD_BACK):
                yield Problem(option=f"expectations.{pattern}.reason", found="nothing", accepted="a sentence")


class EventsSection(Section):
    """What the API still knows of the past."""

    window: Positive = option(10_000, "How many of the latest events the page and /api/v1/events can show.")


class Config(Section):
    """The whole configuration; what is not given has its default.

    Raises:
        UsageError: options do not fit together; all such problems in one message.
    """

    cluster: ClusterSection = ClusterSection()
    kafka: KafkaSection = KafkaSection()
    source: SourceSection = SourceSection()
    share_groups: ShareGroupsSection = ShareGroupsSection()
    spark: SparkSection = SparkSection()
    state: StateSection = StateSection()
    http: HttpSection = HttpSection()
    end_offsets: EndOffsetsSection = EndOffsetsSection()
    view: ViewSection = ViewSection()
    alarms: AlarmsSection = AlarmsSection()
    events: EventsSection = EventsSection()
    spool: SpoolSection = SpoolSection()
    history: HistorySection = HistorySection()
    kafka_sink: KafkaSinkSection = KafkaSinkSection()
    otlp: OtlpSection = OtlpSection()
    metrics: MetricsSection = MetricsSection()

    @property
    def checkpoint_location(self) -> str | None:
        """Where a checkpoint is that is not in `state.dir`; None where there is none, as where groups are polled."""
        return self.state.checkpoint_location if self.source.kind == "log" else None

    @property
    def history_dir(self) -> Path:
        """Where the history's files are, or would be."""
        return self.state.dir / "history" if self.history.dir is None else self.history.dir

    def rules(self) -> Iterator[Problem]:
        """What is watched is not written to, and what is not read is not kept."""
        if self.source.kind == "admin" and self.history.records:
            yield Problem(
                option="history.records",
                found="true with source.kind admin, which reads no records",
                accepted="false",
                involves=("source.kind",),
            )
        if self.source.kind == "admin" and self.share_groups.enabled is True:
            yield Problem(
                option="share_groups.enabled",
                found="true with source.kind admin, which reads no log",
                accepted="auto or false",
                involves=("source.kind",),
            )
        for name in ("events_topic", "groups_topic"):
            if getattr(self.kafka_sink, name) == self.kafka.offsets_topic:
                yield Problem(
                    option=f"kafka_sink.{name}",
                    found=f"{self.kafka.offsets_topic!r}, the log that is watched",
                    accepted="a topic of its own",
                    involves=("kafka.offsets_topic",),
                )

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        found = list(all_rules(self))
        if found:
            raise UsageError("; ".join(str(problem) for problem in found))
        return self
