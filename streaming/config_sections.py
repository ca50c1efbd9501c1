"""The sections of the configuration: frozen, every option with its default, its meaning and what it accepts.

An option is declared once, here. The loader (`streaming.config`), the reference file (`streaming.config_reference`) and
the error messages all read these declarations. What only holds between options is a `rules` method of the section.
"""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from streaming.errors import UsageError

MIB: Final = 1024 * 1024
MAX_PORT: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a configuration.

    Attributes:
        option: dotted path of the option, for example `http.port`.
        found: the value as it may be shown; secrets never get here.
        accepted: what would have been right.
        involves: the other options (dotted) the judgement rests on.
        origin: where the value came from: `FILE:LINE`, an environment variable or the command line.
    """

    option: str
    found: str
    accepted: str
    involves: tuple[str, ...] = ()
    origin: str = ""

    def __str__(self) -> str:
        where = f"{self.origin}: " if self.origin else ""
        return f"{where}{self.option}: found {self.found}, accepted: {self.accepted}"


def _not_bool(value: object) -> object:
    # pydantic reads YAML's true as the number 1.
    if isinstance(value, bool):
        raise ValueError("a truth value")  # noqa: TRY004 - pydantic turns only ValueError into a problem of the field
    return value


def _bootstrap_servers(value: object) -> object:
    return ",".join(str(entry) for entry in value) if isinstance(value, list) else value


def _host_port_list(value: str) -> str:
    for entry in value.split(","):
        host, _, port = entry.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
            raise ValueError(entry)
    return ",".join(entry.strip() for entry in value.split(","))


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError
    return value


Whole = Annotated[int, BeforeValidator(_not_bool)]
Positive = Annotated[Whole, Field(ge=1)]
NotNegative = Annotated[Whole, Field(ge=0)]
Port = Annotated[Whole, Field(ge=0, le=MAX_PORT)]
Text = Annotated[str, Field(min_length=1)]


def option(default: Any, meaning: str, *, accepted: str | None = None) -> Any:  # noqa: ANN401 - as pydantic's Field
    """Declare an option.

    Args:
        default: its value when nothing is said.
        meaning: what it does, one or two sentences; ends up in the reference file.
        accepted: what it accepts, where type and bounds do not say it well enough.
    """
    return Field(default=default, description=meaning, json_schema_extra={"accepted": accepted} if accepted else None)


class Section(BaseModel):
    """A part of the configuration: immutable, and without options it does not know."""

    # Input is kept out of pydantic's own messages: a secret may be part of it.
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def rules(self) -> Iterator[Problem]:
        """Yield what does not fit together; option names are relative to the section."""
        yield from ()


class ClusterSection(Section):
    """How the cluster is called."""

    name: Text = option("default", "Value of the label `cluster` (and `cluster_name`) on every metric.")


SASL_MECHANISMS = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


class KafkaSecuritySection(Section):
    """How to be let in."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = option(
        "PLAINTEXT", "Kafka's security.protocol."
    )
    sasl_mechanism: SASL_MECHANISMS | None = option(
        None, "Kafka's sasl.mechanism; needed with SASL_PLAINTEXT and SASL_SSL."
    )
    username: str | None = option(None, "SASL user name; with any mechanism but OAUTHBEARER.")
    password: SecretStr | None = option(None, "SASL password; with any mechanism but OAUTHBEARER.")
    oauth_token_url: Annotated[str, AfterValidator(_http_url)] | None = option(
        None,
        "Where tokens are fetched with OAUTHBEARER (client credentials). With http:// the client's secret crosses the "
        "network in clear.",
        accepted="an https:// or http:// address",
    )
    oauth_client_id: Text | None = option(None, "Client id that tokens are fetched with.")
    oauth_client_secret: SecretStr | None = option(None, "Client secret that tokens are fetched with.")
    oauth_scope: Text | None = option(None, "Scope asked for with a token, if the endpoint wants one.")
    oauth_ca_file: Path | None = option(
        None, "PEM file with the certificates to trust at the token endpoint; without it, as for ca_file."
    )
    ca_file: Path | None = option(
        None, "PEM file with the certificates to trust; without it, those that the system trusts."
    )
    certificate_file: Path | None = option(None, "PEM file with the client's certificate chain (mutual TLS).")
    key_file: Path | None = option(None, "PEM file with the client's private key (mutual TLS).")
    key_password: SecretStr | None = option(None, "Password of the private key, if it is encrypted.")
    check_hostname: bool = option(True, "Whether the broker's certificate must carry the broker's host name.")

    @property
    def uses_sasl(self) -> bool:
        """Whether the protocol asks for a user name."""
        return self.protocol.startswith("SASL_")

    @property
    def uses_oauth(self) -> bool:
        """Whether we are let in by tokens."""
        return self.uses_sasl and self.sasl_mechanism == "OAUTHBEARER"

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.protocol.endswith("SSL")

    def rules(self) -> Iterator[Problem]:
        """SASL options come with a SASL protocol, certificate files with a TLS one, both complete."""
        yield from self._sasl_rules()
        for name in ("ca_file", "certificate_file", "key_file"):
            path = getattr(self, name)
            if path is not None and not self.uses_tls:
                yield Problem(
                    option=name,
                    found=f"{path} with protocol {self.protocol}",
                    accepted="a file with SSL and SASL_SSL, none otherwise",
                    involves=("protocol",),
                )
            elif path is not None:
                yield from _must_be_file(name, path)
        yield from _together("certificate_file", self.certificate_file, "key_file", self.key_file)

    def _sasl_rules(self) -> Iterator[Problem]:
        with_sasl = "a value with SASL_PLAINTEXT and SASL_SSL, none with PLAINTEXT and SSL"
        if (self.sasl_mechanism is not None) != self.uses_sasl:
            yield self._misplaced("sasl_mechanism", with_sasl)
        for name in ("username", "password"):
            if (getattr(self, name) is not None) != (self.uses_sasl and not self.uses_oauth):
                yield self._misplaced(name, "none with OAUTHBEARER" if self.uses_oauth else with_sasl)
        for name in ("oauth_token_url", "oauth_client_id", "oauth_client_secret"):
            if (getattr(self, name) is not None) != self.uses_oauth:
                yield self._misplaced(name, "a value with sasl_mechanism OAUTHBEARER, none otherwise")
        for name in ("oauth_scope", "oauth_ca_file"):
            if getattr(self, name) is not None and not self.uses_oauth:
                yield self._misplaced(name, "none without sasl_mechanism OAUTHBEARER")
        if self.oauth_ca_file is not None:
            yield from _must_be_file("oauth_ca_file", self.oauth_ca_file)

    def _misplaced(self, name: str, accepted: str) -> Problem:
        mechanism = f" and sasl_mechanism {self.sasl_mechanism}" if self.sasl_mechanism is not None else ""
        found = "none" if getattr(self, name) is None else "a value"
        return Problem(
            option=name,
            found=f"{found} with protocol {self.protocol}{mechanism}",
            accepted=accepted,
            involves=("protocol", "sasl_mechanism"),
        )


class KafkaSection(Section):
    """Where the brokers are."""

    bootstrap_servers: Annotated[str, BeforeValidator(_bootstrap_servers), AfterValidator(_host_port_list)] = option(
        "127.0.0.1:9092", "Brokers to ask first.", accepted="HOST:PORT[,HOST:PORT…] or a list of HOST:PORT"
    )
    offsets_topic: Text = option("__consumer_offsets", "The group coordinator's log.")
    client_id: Text = option(
        "group-monitor",
        "Prefix of the client ids seen in the brokers' logs and quotas, and of the group names under which Spark's "
        "consumers ask for committed offsets; no group is joined.",
    )
    request_timeout_ms: Positive = option(30_000, "How long one request to a broker may take.")
    security: KafkaSecuritySection = KafkaSecuritySection()


class SourceSection(Section):
    """How the log is read."""

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
        "Largest number of tasks that read the log in one micro-batch. A batch of a few thousand records is read by "
        "one, whatever stands here: a second would cost more than it saves. As many as cores on a cluster.",
    )
    fetch_max_wait_ms: NotNegative = option(
        20,
        "librdkafka's fetch.wait.max.ms. It is paid where the last records of a partition are not delivered: "
        "compacted away, or marks of transactions.",
    )
    max_partition_fetch_bytes: Positive = option(
        MIB, "librdkafka's max.partition.fetch.bytes: what a broker sends of a partition at once."
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
    shuffle_partitions: Positive = option(
        2,
        "Stateful tasks the coordinator's partitions are spread over. Fixed by the first run on a state directory.",
    )
    trigger_interval_ms: NotNegative = option(200, "Shortest time between the starts of two micro-batches.")
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

    dir: Path = option(Path(".cache/state"), "Directory of the checkpoint and of the log end offset history.")
    checkpoint_location: Text | None = option(
        None,
        "Where Spark keeps the checkpoint, if not below dir: on a cluster, a URL all executors reach.",
        accepted="a path or a URL of a file system Spark knows",
    )


class HttpSection(Section):
    """Page, metrics and API."""

    host: Text = option("127.0.0.1", "Address to listen on.")
    port: Port = option(9464, "Port to listen on; 0 takes any free one and says which.")
    token: SecretStr | None = option(None, "Bearer token that callers must send.")
    username: str | None = option(None, "User name callers must send (basic authentication).")
    password: SecretStr | None = option(None, "Password callers must send (basic authentication).")
    tls_certificate_file: Path | None = option(None, "PEM file with the server's certificate chain; turns TLS on.")
    tls_key_file: Path | None = option(None, "PEM file with the server's private key.")
    allow_remote_without_auth: bool = option(
        False, "Allow an address beyond loopback although neither token nor user name is set."
    )

    allowed_hosts: Annotated[str, BeforeValidator(_bootstrap_servers)] | None = option(
        None,
        "Names that requests may be addressed to (their Host header). Without it any name, but on loopback without "
        "authentication only addresses and localhost: to be set where a proxy on this machine hands on the name it was "
        "asked by.",
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
        """No open door by accident, and every pair complete."""
        if not self.is_loopback and not self.requires_auth and not self.allow_remote_without_auth:
            yield Problem(
                option="host",
                found=f"{self.host!r}, beyond loopback and without authentication",
                accepted="127.0.0.1, ::1 or localhost; or http.token or http.username and http.password; "
                "or http.allow_remote_without_auth: true",
                involves=("token", "username", "password", "allow_remote_without_auth"),
            )
        yield from _together("username", self.username, "password", self.password)
        yield from _together("tls_certificate_file", self.tls_certificate_file, "tls_key_file", self.tls_key_file)
        for name in ("tls_certificate_file", "tls_key_file"):
            path = getattr(self, name)
            if path is not None:
                yield from _must_be_file(name, path)


class EndOffsetsSection(Section):
    """Sampling of log end offsets, the other half of lag."""

    interval_ms: Positive = option(1_000, "Time between two samples of all log end offsets.")
    history_points: Annotated[Whole, Field(ge=2)] = option(
        600, "Samples kept for a partition; lag in seconds is interpolated between them."
    )
    history_seconds: Positive = option(
        3_600, "How far back the samples reach: the older ones are thinned out to cover this time."
    )


class EventsSection(Section):
    """What the API still knows of the past."""

    window: Positive = option(10_000, "How many of the latest events the page and /api/v1/events can show.")


class KafkaSinkSection(Section):
    """Kafka topics that events and states of groups are written to; docs/topics.md has what is in them."""

    events_topic: Text | None = option(None, "Topic of events; none are written without it.", accepted="a topic's name")
    groups_topic: Text | None = option(
        None,
        "Compacted topic of the groups as they are, from which `group-monitor serve` serves; none are written without.",
        accepted="a topic's name",
    )
    bootstrap_servers: Annotated[str, BeforeValidator(_bootstrap_servers), AfterValidator(_host_port_list)] | None = (
        option(
            None,
            "Brokers of the topics, with security as below; without it they are in the cluster that is monitored, and "
            "kafka.* says how it is reached.",
            accepted="HOST:PORT[,HOST:PORT…] or a list of HOST:PORT",
        )
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


class HistorySection(Section):
    """What is kept for weeks: events, and how groups were, in Parquet files that `group-monitor history` reads."""

    enabled: bool = option(False, "Whether a history is kept. Its sink is called history in the metrics.")
    dir: Path | None = option(None, "Directory of the files, if not history below state.dir.")
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


class MetricsSection(Section):
    """How many series there are."""

    rebalance_histogram: bool = option(True, "Whether rebalance durations are a histogram per group.")
    partition_series: bool = option(
        False,
        "Whether lag, offsets and commit age have a series per partition: four for each committed offset, two for each "
        "partition of a topic. Sums by group and topic, and maxima by group, are there either way.",
    )


class Config(Section):
    """The whole configuration; what is not given has its default.

    Raises:
        UsageError: options do not fit together; all such problems in one message.
    """

    cluster: ClusterSection = ClusterSection()
    kafka: KafkaSection = KafkaSection()
    source: SourceSection = SourceSection()
    spark: SparkSection = SparkSection()
    state: StateSection = StateSection()
    http: HttpSection = HttpSection()
    end_offsets: EndOffsetsSection = EndOffsetsSection()
    events: EventsSection = EventsSection()
    spool: SpoolSection = SpoolSection()
    history: HistorySection = HistorySection()
    kafka_sink: KafkaSinkSection = KafkaSinkSection()
    metrics: MetricsSection = MetricsSection()

    @property
    def history_dir(self) -> Path:
        """Where the history's files are, or would be."""
        return self.state.dir / "history" if self.history.dir is None else self.history.dir

    def rules(self) -> Iterator[Problem]:
        """What is watched is not written to."""
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


def all_rules(section: Section, prefix: str = "") -> Iterator[Problem]:
    """Yield the problems of a section and of those inside it, option names dotted from the root."""
    for problem in section.rules():
        yield Problem(
            option=prefix + problem.option,
            found=problem.found,
            accepted=problem.accepted,
            involves=tuple(prefix + name for name in problem.involves),
        )
    for name in type(section).model_fields:
        inner = getattr(section, name)
        if isinstance(inner, Section):
            yield from all_rules(inner, f"{prefix}{name}.")


def _together(first: str, first_value: object, second: str, second_value: object) -> Iterator[Problem]:
    if (first_value is None) != (second_value is None):
        missing, given = (first, second) if first_value is None else (second, first)
        yield Problem(option=missing, found="none", accepted=f"a value, as {given} has one", involves=(given,))


def _must_be_file(name: str, path: Path) -> Iterator[Problem]:
    if not path.is_file():
        yield Problem(option=name, found=f"{str(path)!r}, which is no file", accepted="a readable PEM file")
