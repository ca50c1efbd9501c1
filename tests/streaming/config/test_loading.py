"""Configuration: what is accepted, what is refused, and in which words."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from streaming.base.errors import UsageError
from streaming.config.kafka_sections import KafkaSecuritySection
from streaming.config.loading import Config, accepted_by, effective_yaml, is_secret, load, options
from streaming.config.reference import REFERENCE, reference_yaml
from streaming.config.sections import HttpSection
from streaming.kafka.client_settings import confluent_settings, portable_settings, python_settings

SECRET = "correct-horse-battery"  # noqa: S105 - planted, to be looked for


@pytest.fixture
def refused(tmp_path: Path) -> Any:
    """Load a text that must be refused, and return the message."""

    def message(text: str, env: dict[str, str] | None = None, **overrides: object) -> str:
        path = tmp_path / "monitor.yaml"
        path.write_text(text)
        with pytest.raises(UsageError) as refusal:
            load(path, env or {}, {name.replace("__", "."): value for name, value in overrides.items()})
        return str(refusal.value)

    return message


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(text)
    return path


class TestReference:
    """conf/reference.yaml and the declarations say the same."""

    def test_is_what_the_declarations_render(self) -> None:
        """The committed file is the generated one; `python -m streaming.config.reference` repairs it."""
        assert reference_yaml() == REFERENCE.read_text(encoding="utf-8")

    def test_loads_as_the_defaults(self) -> None:
        """Loading the reference changes nothing."""
        assert Config() == load(REFERENCE, {})

    def test_has_every_option_and_no_other(self) -> None:
        """Options of the file and of the code are the same set."""
        assert {name for name, _ in options()} == set(flattened(yaml.safe_load(REFERENCE.read_text(encoding="utf-8"))))

    def test_every_option_has_a_meaning_and_says_what_it_accepts(self) -> None:
        """No option is undocumented."""
        assert [] == [name for name, field in options() if not field.description or not accepted_by(field)]

    def test_local_configuration_loads(self) -> None:
        """conf/local.yaml is valid and names a local broker."""
        assert "127.0.0.1:9092" == load(REFERENCE.with_name("local.yaml"), {}).kafka.bootstrap_servers


class TestPrecedence:
    """Flag over environment over file over default, one test a pair."""

    def test_file_over_default(self, tmp_path: Path) -> None:
        """A value of the file replaces the default."""
        assert 1 == load(written(tmp_path, "http: {port: 1}"), {}).http.port

    def test_environment_over_file(self, tmp_path: Path) -> None:
        """A variable replaces the file's value."""
        assert 2 == load(written(tmp_path, "http: {port: 1}"), {"GROUP_MONITOR__HTTP__PORT": "2"}).http.port

    def test_flag_over_environment(self, tmp_path: Path) -> None:
        """A flag replaces the variable's value."""
        path = written(tmp_path, "http: {port: 1}")

        assert 3 == load(path, {"GROUP_MONITOR__HTTP__PORT": "2"}, {"http.port": 3}).http.port

    def test_flag_not_given_changes_nothing(self) -> None:
        """None stands for a flag that was not given."""
        assert Config() == load(None, {}, {"http.port": None})

    def test_other_variables_are_none_of_our_business(self) -> None:
        """Variables without the double-underscore prefix are ignored, even those a Kubernetes service makes."""
        assert Config() == load(None, {"GROUP_MONITOR_PORT": "tcp://10.0.0.1:9464", "HTTP_PORT": "x"})

    def test_nested_and_mapping_options_can_be_set_by_variable(self) -> None:
        """Sections are separated by two underscores; a mapping is given as YAML or JSON."""
        config = load(
            None,
            {
                "GROUP_MONITOR__KAFKA__SECURITY__CHECK_HOSTNAME": "false",
                "GROUP_MONITOR__SPARK__CONF": '{"spark.foo": "1"}',
            },
        )

        assert (False, {"spark.foo": "1"}) == (config.kafka.security.check_hostname, config.spark.conf)

    def test_empty_file_and_empty_section_mean_defaults(self, tmp_path: Path) -> None:
        """What is not said has its default."""
        assert Config() == load(written(tmp_path, "http:\n"), {}) == load(written(tmp_path, ""), {})


class TestRefusals:
    """A refusal names the place, the option, what was found and what is accepted."""

    def test_unknown_option_comes_with_its_nearest_neighbour(self, refused: Any) -> None:
        """A misspelt option is answered with the one probably meant."""
        message = refused("http:\n  prot: 1\n")

        assert message.endswith(
            "monitor.yaml:2: http.prot: found an unknown option, accepted: known options (did you mean http.port?)"
        )

    def test_option_of_another_section_is_found_there(self, refused: Any) -> None:
        """An option in the wrong section is answered with its right place."""
        assert "source.isolation?" in refused("kafka: {isolation: exact}")

    def test_unknown_section_and_variable_and_flag(self, refused: Any) -> None:
        """Wherever an unknown name comes from, it is refused, and the source is said."""
        message = refused("kafak: {}", {"GROUP_MONITOR__HTTP__PORTS": "1"}, http__prot=1)

        assert "kafak: found an unknown option, accepted: known options (did you mean kafka?)" in message
        assert "environment variable GROUP_MONITOR__HTTP__PORTS: http.ports" in message
        assert "command line: http.prot" in message

    def test_all_problems_in_one_message(self, refused: Any) -> None:
        """Unknown names, wrong values and options that do not fit together are reported at once, in one line."""
        message = refused(
            "clutser: {}\n"
            "source:\n  isolation: exakt\n  tasks: 0\n"
            "http:\n  port: 70000\n  host: 0.0.0.0\n"
            "kafka:\n  bootstrap_servers: localhost\n"
        )

        for expected in (
            "clutser:",
            ":3: source.isolation: found 'exakt', accepted: exact or committed_only",
            ":4: source.tasks: found 0, accepted: a whole number, 1 or more",
            ":6: http.port: found 70000, accepted: a whole number from 0 to 65535",
            ":7: http.host: found '0.0.0.0', beyond loopback",
            ":9: kafka.bootstrap_servers: found 'localhost', accepted: HOST:PORT",
        ):
            assert expected in message
        assert 6 == message.count("accepted:")
        assert "\n" not in message

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("http: {port: true}", "http.port: found true"),
            ("http: {port: 1.5}", "http.port: found 1.5"),
            ("http: {port: null}", "http.port: found null"),
            ("cluster: {name: ''}", "cluster.name: found ''"),
            ("cluster: {name: 5}", "cluster.name: found 5, accepted: text that is not empty"),
            ("metrics: {partition_series: maybe}", "accepted: auto, true or false"),
            ("spark: {master: mesos}", "spark.master: found 'mesos', accepted: local[N]"),
            ("spark: {driver_memory: 2x}", "spark.driver_memory: found '2x', accepted: a size such as 512m or 2g"),
            ("spark: {conf: {foo: bar}}", "spark.conf: found the name 'foo'"),
            ("end_offsets: {history_points: 1}", "accepted: a whole number, 2 or more"),
            ("http: [1]", "http: found no mapping"),
            ("- 1", "file: found no mapping, accepted: a mapping with cluster, kafka"),
            ("http: {port: 1, port: 2}", "http.port: found it twice"),
            ("kafka: {bootstrap_servers: [a:1, b]}", "found ['a:1', 'b']"),
            ("kafka: {bootstrap_servers: 'a:0'}", "accepted: HOST:PORT"),
            (
                "kafka: {bootstrap_servers: 'PLAINTEXT://a:9092'}",
                "found 'PLAINTEXT://a:9092', accepted: HOST:PORT[,HOST:PORT…] or a list of HOST:PORT, without",
            ),
            ("kafka_sink: {bootstrap_servers: ['SSL://a:9092']}", "without PLAINTEXT:// and the like"),
            ("http: {username: me}", "http.password: found none, accepted: a value, as username has one"),
            ("http: {tls_certificate_file: /none.pem}", "http.tls_key_file: found none"),
            (
                "kafka: {security: {protocol: SASL_SSL}}",
                "kafka.security.sasl_mechanism: found none with protocol SASL_SSL",
            ),
            ("kafka: {security: {username: me}}", "kafka.security.username: found a value with protocol PLAINTEXT"),
            (
                "kafka: {security: {protocol: SASL_SSL, sasl_mechanism: OAUTHBEARER, username: me}}",
                "kafka.security.oauth_token_url: found none with protocol SASL_SSL and sasl_mechanism OAUTHBEARER",
            ),
            (
                "kafka: {security: {protocol: SASL_SSL, sasl_mechanism: OAUTHBEARER, username: me}}",
                "found a value with protocol SASL_SSL and sasl_mechanism OAUTHBEARER, accepted: none with OAUTHBEARER",
            ),
            ("kafka: {security: {oauth_scope: x}}", "accepted: none without sasl_mechanism OAUTHBEARER"),
            (
                "kafka: {security: {aws_msk_region: eu-west-1}}",
                "kafka.security.aws_msk_region: found a value with protocol PLAINTEXT, accepted: none without",
            ),
            (
                "kafka: {security: {aws_msk_region: eu-west-1.example}}",
                "kafka.security.aws_msk_region: found 'eu-west-1.example', accepted: a region of AWS, as eu-central-1",
            ),
            (
                "kafka: {security: {protocol: SASL_SSL, sasl_mechanism: OAUTHBEARER, aws_msk_region: eu-west-1, oauth_scope: x}}",  # noqa: E501 - one line of YAML
                "OAUTHBEARER and an aws_msk_region, accepted: none without sasl_mechanism OAUTHBEARER, and none with",
            ),
            (
                "kafka: {security: {protocol: SASL_SSL, sasl_mechanism: GSSAPI, username: me}}",
                "found a value with protocol SASL_SSL and sasl_mechanism GSSAPI, accepted: none with GSSAPI",
            ),
            (
                "kafka: {security: {protocol: SASL_SSL, sasl_mechanism: OAUTHBEARER, oauth_token_url: 'ftp://x'}}",
                "kafka.security.oauth_token_url: found 'ftp://x', accepted: an https:// or http:// address",
            ),
            ("kafka: {security: {protocol: SSL, ca_file: /none.pem}}", "found '/none.pem', which is no file"),
            (
                "kafka: {security: {ca_file: /none.pem}}",
                "kafka.security.ca_file: found /none.pem with protocol PLAINTEXT",
            ),
            (
                "share_groups: {enabled: perhaps}",
                "share_groups.enabled: found 'perhaps', accepted: auto, true or false",
            ),
            (
                "source: {kind: admin}\nshare_groups: {enabled: true}",
                "share_groups.enabled: found true with source.kind admin, which reads no log, accepted: auto or false",
            ),
            ("otlp: {endpoint: 'collector:4318'}", "otlp.endpoint: found 'collector:4318', accepted: an https:// or"),
            (
                "otlp: {endpoint: 'http://c:4318', metrics: false, events: false}",
                "otlp.endpoint: found 'http://c:4318', with metrics and events false, accepted: one of them true",
            ),
            ("otlp: {headers: {'a b': x}}", "otlp.headers: found 'a b', which with its value is no header, accepted:"),
            ('otlp: {headers: {a: "x\\ny"}}', "otlp.headers: found 'a', which with its value is no header, accepted:"),
            ("otlp: {headers: [a]}", "otlp.headers: found a list (not shown), accepted: a mapping of names to text"),
            ("otlp: {ca_file: /none.pem}", "otlp.ca_file: found '/none.pem', which is no file"),
            ("otlp: {interval_ms: 999}", "otlp.interval_ms: found 999, accepted: a whole number, 1000 or more"),
            (
                "kafka_sink: {events_format: avro}",
                "found 'avro', accepted: json, cloudevents_binary or cloudevents_structured",
            ),
            ("a: [b", "monitor.yaml:1: not YAML"),
        ],
    )
    def test_value(self, refused: Any, text: str, expected: str) -> None:
        """Each kind of wrong value is refused in its own words."""
        assert expected in refused(text)

    def test_missing_file(self, tmp_path: Path) -> None:
        """A configuration file that is not there is named."""
        with pytest.raises(UsageError, match=r"--config: found '.*none.yaml' \(No such file or directory\), accepted:"):
            load(tmp_path / "none.yaml", {})

    def test_constructed_in_code_the_rules_hold_too(self) -> None:
        """Options that do not fit together are refused without a file as well."""
        with pytest.raises(UsageError, match=r"http\.host: found '0\.0\.0\.0', beyond loopback"):
            Config(http=HttpSection(host="0.0.0.0"))  # noqa: S104 - the point of the test

    def test_sections_cannot_be_changed(self) -> None:
        """A configuration stays what was checked."""
        with pytest.raises(ValidationError, match="frozen"):
            Config().http.port = 1


class TestListening:
    """Beyond loopback only with authentication, or when it is said explicitly."""

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
    def test_loopback_needs_nothing(self, host: str) -> None:
        """Addresses that only this machine reaches are open."""
        assert host == load(None, {}, {"http.host": host}).http.host

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "monitor.example"])  # noqa: S104 - the point of the test
    def test_beyond_loopback_is_refused_without_authentication(self, host: str) -> None:
        """Other addresses, and names whose address is not known, need authentication."""
        with pytest.raises(UsageError, match=r"http\.host: found .* beyond loopback and without authentication"):
            load(None, {}, {"http.host": host})

    @pytest.mark.parametrize(
        "env",
        [
            {"GROUP_MONITOR__HTTP__TOKEN": SECRET},
            {"GROUP_MONITOR__HTTP__USERNAME": "me", "GROUP_MONITOR__HTTP__PASSWORD": SECRET},
            {"GROUP_MONITOR__HTTP__ALLOW_REMOTE_WITHOUT_AUTH": "true"},
        ],
    )
    def test_beyond_loopback_with_authentication_or_permission(self, env: dict[str, str]) -> None:
        """A token, a user, or an explicit word opens it."""
        assert not load(None, {**env, "GROUP_MONITOR__HTTP__HOST": "0.0.0.0"}).http.is_loopback  # noqa: S104 - the point of the test


@pytest.mark.parametrize("secret", ["", " ", "\t\n"])
@pytest.mark.parametrize(
    ("option", "env"),
    [
        ("http.token", "GROUP_MONITOR__HTTP__TOKEN"),
        ("http.password", "GROUP_MONITOR__HTTP__PASSWORD"),
        ("kafka.security.password", "GROUP_MONITOR__KAFKA__SECURITY__PASSWORD"),
        ("kafka.security.key_password", "GROUP_MONITOR__KAFKA__SECURITY__KEY_PASSWORD"),
    ],
)
def test_an_empty_secret_is_refused(option: str, env: str, secret: str) -> None:
    """It would let everybody in who sends nothing."""
    with pytest.raises(UsageError) as error:
        load(None, {env: secret, "GROUP_MONITOR__HTTP__USERNAME": "me"})

    assert f"environment variable {env}: {option}: found an empty value, accepted: a secret that is not" in str(
        error.value
    )


def test_a_file_that_is_nested_without_end_is_refused(refused: Any) -> None:
    """In one line, as any other file that cannot be read; in a variable it is no mapping."""
    deep = "[" * 20_000

    assert "(nested too deep), accepted: a readable YAML file" in refused(f"kafka: {deep}")
    with pytest.raises(UsageError, match=r"otlp\.headers: found"):
        load(None, {"GROUP_MONITOR__OTLP__HEADERS": deep})


@pytest.mark.parametrize("length", [1, 15, 16])
@pytest.mark.parametrize("name", ["token", "password"])
def test_a_secret_of_callers_is_not_soon_guessed(name: str, length: int) -> None:
    """16 characters or more; those that others chose have no least length."""
    variables = {
        "GROUP_MONITOR__HTTP__USERNAME": "me",
        "GROUP_MONITOR__HTTP__PASSWORD": SECRET,
        f"GROUP_MONITOR__HTTP__{name.upper()}": "x" * length,
    }
    if length == len("sixteen letters."):
        load(None, variables)
        return

    with pytest.raises(UsageError, match=rf"http\.{name}: found a value of {length} characters \(not shown\)"):
        load(None, variables)


def test_a_secret_of_others_has_no_least_length() -> None:
    """Brokers, and the one who made the key, chose it."""
    assert load(None, {"GROUP_MONITOR__KAFKA__SECURITY__KEY_PASSWORD": "s"}).kafka.security.key_password is not None


SASL_YAML = """
kafka:
  security:
    protocol: SASL_PLAINTEXT
    sasl_mechanism: SCRAM-SHA-256
    username: ${env:KAFKA_USER}
    password: ${env:KAFKA_PASSWORD}
"""
OAUTH_YAML = """
kafka:
  security:
    protocol: SASL_SSL
    sasl_mechanism: OAUTHBEARER
    oauth_token_url: https://tokens.test/token
    oauth_client_id: monitor
    oauth_client_secret: ${{env:KAFKA_PASSWORD}}
    oauth_ca_file: {ca_file}
"""
SASL_ENV = {"KAFKA_USER": "monitor", "KAFKA_PASSWORD": SECRET}


class TestSecrets:
    """Secrets come from the environment and go nowhere but to the client."""

    def test_reference_is_resolved(self, tmp_path: Path) -> None:
        """`${env:NAME}` stands for the variable's value."""
        security = load(written(tmp_path, SASL_YAML), SASL_ENV).kafka.security

        assert ("monitor", SECRET) == (security.username, security.password and security.password.get_secret_value())

    def test_reference_to_a_variable_that_is_not_set(self, refused: Any) -> None:
        """A missing variable is named with the option that needs it."""
        assert "kafka.security.password: found ${env:KAFKA_PASSWORD}, but KAFKA_PASSWORD is not set" in refused(
            SASL_YAML, {"KAFKA_USER": "monitor"}
        )

    def test_secret_in_a_file_of_its_own(self, tmp_path: Path, refused: Any) -> None:
        """`${file:PATH}` stands for what is in the file, without the line's end; one that cannot be read is named."""
        secret = tmp_path / "secret"
        secret.write_text(f"{SECRET}\n")
        text = f"http: {{username: me, password: '${{file:{secret}}}'}}"
        password = load(written(tmp_path, text), {}).http.password

        assert SECRET == (password and password.get_secret_value())
        secret.write_text("")
        assert f"http.password: found ${{file:{secret}}}, but the file is empty, accepted: a reference " in refused(
            text
        )
        secret.unlink()
        assert "but the file cannot be read (No such file or directory)" in refused(text)

    def test_planted_secret_of_a_file_is_in_no_message(self, tmp_path: Path, refused: Any) -> None:
        """As one of the environment: shown by its reference."""
        secret = tmp_path / "secret"
        secret.write_text(SECRET)

        assert SECRET not in refused(f"http: {{port: '${{file:{secret}}}', token: '${{file:{secret}}}', host: 5}}")

    def test_literal_secret_is_refused_unseen(self, refused: Any) -> None:
        """A secret written into the file is refused, and not repeated."""
        message = refused(f"http: {{username: me, password: {SECRET}}}")

        assert "http.password: found a literal value (not shown), accepted: a reference ${env:NAME}" in message
        assert SECRET not in message

    def test_secret_on_the_command_line_is_refused(self, refused: Any) -> None:
        """Flags are visible in a process list, so secrets are no flags."""
        message = refused("", http__token=SECRET)

        assert "command line: http.token: found a literal value (not shown)" in message
        assert SECRET not in message

    @pytest.mark.parametrize(
        "text",
        [
            "http: {port: '${env:PLANTED}'}",
            "spark: {master: '${env:PLANTED}', conf: {spark.x: '${env:PLANTED}', y: 1}}",
            "source: {isolation: '${env:PLANTED}'}\nhttp: {token: '${env:PLANTED}', host: 5}",
            "kafka: {security: {password: '${env:PLANTED}', protocol: 1}}",
            f"http: {{token: [{SECRET}]}}",
            f"http: {{tokken: {SECRET}}}",
            f"http: {{token: *{SECRET}}}",
            f"http: {{token: !{SECRET} x}}",
            f"http: {{token: {{a: {SECRET}}}}}",
            f"http: {{token: '{SECRET}'\n  port: 1",
        ],
    )
    def test_planted_secret_is_in_no_message(self, refused: Any, text: str) -> None:
        """Whatever is wrong, and wherever a secret was put, the message does not hold it."""
        assert SECRET not in refused(text, {"PLANTED": SECRET, "GROUP_MONITOR__HTTP__PASSWORD": SECRET})

    def test_planted_secret_is_in_no_rendering(self, tmp_path: Path) -> None:
        """Neither repr nor str nor the YAML of a configuration shows a secret."""
        text = (
            SASL_YAML
            + "http: {token: '${env:KAFKA_PASSWORD}'}\nspark: {conf: {spark.x.secret.key: '${env:KAFKA_PASSWORD}'}}"
        )
        config = load(written(tmp_path, text), SASL_ENV)

        assert SECRET == config.spark.conf["spark.x.secret.key"]
        assert SECRET not in repr(config) + str(config) + effective_yaml(config)

    def test_headers_are_shown_by_their_names_alone(self, tmp_path: Path) -> None:
        """Whatever they are called: what lets in has another name with each collector."""
        text = "otlp: {headers: {X-Team: '${env:KAFKA_PASSWORD}', X-Scope-OrgID: literal-tenant}}"
        config = load(written(tmp_path, text), SASL_ENV)

        assert {"X-Team": SECRET, "X-Scope-OrgID": "literal-tenant"} == config.otlp.headers
        shown = repr(config) + str(config) + effective_yaml(config)
        assert "X-Team" in shown
        assert [] == [value for value in config.otlp.headers.values() if value in shown]

    def test_options_named_like_secrets_are_secrets(self) -> None:
        """Every option called password, token or secret is declared as a secret."""
        named = {name for name, _ in options() if name.rsplit(".", 1)[-1].endswith(("password", "token", "secret"))}

        assert named == {name for name, field in options() if is_secret(field)}


class TestClientSettings:
    """One section, two clients."""

    def test_plaintext_needs_no_security_settings(self) -> None:
        """Without security options nothing but the address is said."""
        config = load(None, {}, {"kafka.bootstrap_servers": "a:1, b:2"})

        assert ["a:1", "b:2"] == python_settings(config.kafka, "test")["bootstrap_servers"]
        assert "PLAINTEXT" == python_settings(config.kafka, "test")["security_protocol"]
        assert "a:1,b:2" == confluent_settings(config.kafka, "test")["bootstrap.servers"]

    def test_sasl_reaches_both(self, tmp_path: Path) -> None:
        """User and password arrive at each client under its own names."""
        config = load(written(tmp_path, SASL_YAML), SASL_ENV)

        assert SECRET == python_settings(config.kafka, "test")["sasl_plain_password"]
        assert SECRET == confluent_settings(config.kafka, "test")["sasl.password"]

    def test_tokens_reach_both(self, tmp_path: Path) -> None:
        """Where tokens are fetched, by whom and whom to trust there; nothing is asked before it is needed."""
        ca_file = tmp_path / "ca.pem"
        ca_file.write_text("--line\nline--")
        config = load(written(tmp_path, OAUTH_YAML.format(ca_file=ca_file)), SASL_ENV)
        confluent = confluent_settings(config.kafka, "test")

        assert ("https://tokens.test/token", SECRET) == (
            confluent["sasl.oauthbearer.token.endpoint.url"],
            confluent["sasl.oauthbearer.client.secret"],
        )
        assert "--line\nline--" == portable_settings(config.kafka, "test")["https.ca.pem"]
        assert "sasl_plain_password" not in python_settings(config.kafka, "test")

    def test_certificates_travel_by_content_to_executors_and_by_path_elsewhere(self, tmp_path: Path) -> None:
        """Executors elsewhere have no copies of the files."""
        for name in ("ca", "certificate", "key"):
            (tmp_path / f"{name}.pem").write_text(f"--{name}--")
        security = KafkaSecuritySection(
            protocol="SSL",
            ca_file=tmp_path / "ca.pem",
            certificate_file=tmp_path / "certificate.pem",
            key_file=tmp_path / "key.pem",
            check_hostname=False,
        )
        kafka = Config().kafka.model_copy(update={"security": security})

        held = portable_settings(kafka, "test")
        assert ["--ca--", "--certificate--", "--key--"] == [
            held[f"ssl.{name}.pem"] for name in ("ca", "certificate", "key")
        ]
        assert str(tmp_path) not in str(held)
        assert str(tmp_path / "ca.pem") == python_settings(kafka, "test")["ssl_cafile"]
        assert str(tmp_path / "key.pem") == confluent_settings(kafka, "test")["ssl.key.location"]
        assert "none" == confluent_settings(kafka, "test")["ssl.endpoint.identification.algorithm"]


def flattened(tree: dict[str, Any], prefix: str = "") -> list[str]:
    """Dotted names of the leaves; an empty mapping is a leaf."""
    names: list[str] = []
    for name, value in tree.items():
        names.extend(flattened(value, f"{prefix}{name}.") if isinstance(value, dict) and value else [prefix + name])
    return names


def test_patterns_come_as_a_list_or_as_text(tmp_path: Path) -> None:
    """From the file either way, from the environment as text; they say what is shown."""
    file = tmp_path / "monitor.yaml"
    file.write_text("view: {groups_exclude: [test-*], topics_include: 'a, b'}", "utf-8")
    config = load(file, {"GROUP_MONITOR__METRICS__GROUPS_INCLUDE": "orders-*,billing"})
    view, metrics = config.view.scope, config.metrics.scope

    assert (False, True) == (view.groups("test-1"), view.groups("orders"))
    assert (True, False) == (view.topics("b"), view.topics("c"))
    assert (True, False) == (metrics.groups("billing"), metrics.groups("other"))


@pytest.mark.parametrize("text", ["view: {groups_exclude: ['']}", "view: {groups_exclude: {a: b}}"])
def test_a_pattern_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    """By the name of its option."""
    file = tmp_path / "monitor.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"view\.groups_exclude"):
        load(file, {})
