"""docker-compose.yml and Dockerfile fit the repository: no container is needed to see that."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from dashboards.alert import SEVERITIES
from dashboards.alerts import ALERTS
from dashboards.build import GENERATED, RULES
from lab.monitor_process import until
from streaming.config import loading
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR, EmbeddedBroker
from streaming.web.access import OPEN_PATHS
from streaming.web.routes import Pages
from streaming.web.server import door_of
from tests.command_lines import refused
from tests.dashboards.prometheus_tools import needs_promtool, promtool
from tests.left_out import needs, needs_kafka_jars

ROOT: Final = Path(__file__).resolve().parent.parent
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
MONITOR: Final = SERVICES["monitor"]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
DOCKERFILE: Final = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "").splitlines()
CONF: Final = ROOT / "conf"
PROMETHEUS: Final[dict[str, Any]] = yaml.safe_load((CONF / "prometheus.yml").read_text("utf-8"))
ALERTMANAGER: Final[dict[str, Any]] = yaml.safe_load((CONF / "alertmanager.yml").read_text("utf-8"))
PROVISIONING: Final = CONF / "grafana" / "provisioning"
PINNED: Final = r"[\w./-]+:v?\d+\.\d+\.\d+(-[\w.-]+)?@sha256:[0-9a-f]{64}"

# What the specification knows of a service, as far as this file uses it; more is one line here.
SERVICE_KEYS: Final = frozenset(
    {
        "build",
        "command",
        "depends_on",
        "environment",
        "healthcheck",
        "hostname",
        "image",
        "ports",
        "profiles",
        "restart",
        "stop_grace_period",
        "volumes",
    }
)
HEALTHCHECK_KEYS: Final = frozenset({"test", "interval", "timeout", "retries", "start_period"})


def mounts() -> list[tuple[str, str, str]]:
    """(service, source, target) of every mount."""
    return [
        (name, *volume.split(":")[:2]) for name, service in SERVICES.items() for volume in service.get("volumes", [])
    ]


def environment(service: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in service["environment"].items()}


def ran(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A command that has ended; no shell takes part."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own words


def address(service: str) -> str:
    """Where other services find one, by its own port."""
    (port,) = SERVICES[service]["ports"]
    return f"{service}:{port.rpartition(':')[2]}"


def locked_in(name: str) -> dict[str, str]:
    """Package → version, of a lock file."""
    return dict(re.findall(r"^([\w.-]+)==([^ ;]+)", (ROOT / name).read_text("utf-8"), re.MULTILINE))


def copied() -> list[list[str]]:
    """Words of each COPY without its options, the target last."""
    lines = [line for line in DOCKERFILE if line.startswith("COPY ")]
    return [[word for word in shlex.split(line)[1:] if not word.startswith("--")] for line in lines]


class TestSpecification:
    """The file is one that Compose reads."""

    def test_keys_are_those_of_the_specification(self) -> None:
        """Nothing stands where Compose does not look for it."""
        assert {"name", "services", "volumes"} == COMPOSE.keys()
        for service in SERVICES.values():
            assert service.keys() <= SERVICE_KEYS
            assert service.get("healthcheck", {}).keys() <= HEALTHCHECK_KEYS
            assert ("image" in service) or ("build" in service)

    def test_the_specification_s_schema_accepts_it(self) -> None:
        """The JSON schema of the compose specification has nothing to say against it."""
        done = ran(
            sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"
        )

        assert 0 == done.returncode, done.stdout

    def test_who_is_waited_for_says_when_it_is_well(self) -> None:
        """A service that others wait for has a health check, and so has each that serves something."""
        waited_for = {name for service in SERVICES.values() for name in service.get("depends_on", {})}
        serving = {name for name, service in SERVICES.items() if "ports" in service}

        assert waited_for <= serving
        assert serving == {name for name, service in SERVICES.items() if "healthcheck" in service}
        for service in SERVICES.values():
            assert all(each == {"condition": "service_healthy"} for each in service.get("depends_on", {}).values())

    @pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if "ports" in service])
    def test_ports_are_open_on_loopback_only(self, name: str) -> None:
        """No one outside this machine reaches a port that is open without a password."""
        assert all(re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in SERVICES[name]["ports"])

    def test_no_port_is_open_twice(self) -> None:
        """Two services on one port would not start."""
        ports = [port for service in SERVICES.values() for port in service.get("ports", [])]

        assert sorted(set(ports)) == sorted(ports)

    @pytest.mark.parametrize(("service", "source", "target"), mounts())
    def test_what_is_mounted_exists(self, service: str, source: str, target: str) -> None:
        """A mount is a file or folder of the checkout, read only, or a volume that is declared."""
        if source.startswith("./"):
            assert (ROOT / source).exists()
            assert f"{source}:{target}:ro" in SERVICES[service]["volumes"]
        else:
            assert source in COMPOSE["volumes"]

    def test_every_volume_is_used(self) -> None:
        """What is declared holds something."""
        assert COMPOSE["volumes"].keys() == {source for _, source, _ in mounts() if not source.startswith("./")}

    @pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if "build" not in service])
    def test_images_have_a_version_and_a_digest(self, name: str) -> None:
        """A version may be built again, by its maker or by who takes their account; a digest is one image for ever."""
        assert re.fullmatch(PINNED, SERVICES[name]["image"])


class TestBroker:
    """Kafka is the Kafka of the tests, and says where it is."""

    def test_it_is_the_one_the_tests_use(self) -> None:
        """Image and embedded broker are of one version."""
        ivy = (CONF / "ivy.xml").read_text("utf-8")

        version = SERVICES["kafka"]["image"].partition("@")[0].partition(":")[2]
        assert {version} == set(re.findall(r'name="kafka_2.13" rev="([^"]+)"', ivy))

    @pytest.mark.parametrize("variable", environment(SERVICES["kafka"]))
    def test_variables_are_settings_of_a_broker(self, variable: str) -> None:
        """The image turns KAFKA_A_B into a.b, and a broker passes over what it does not know: so it must exist."""
        assert variable.removeprefix("KAFKA_").lower().replace("_", ".") in settings_of_kafka()

    def test_the_monitor_reaches_it_where_it_says_it_is(self) -> None:
        """A client keeps to the advertised address, so it must be the one the monitor and the members are given."""
        advertised = environment(SERVICES["kafka"])["KAFKA_ADVERTISED_LISTENERS"]

        assert environment(MONITOR)["GROUP_MONITOR__KAFKA__BOOTSTRAP_SERVERS"] in advertised
        assert SERVICES["members"]["command"][-1] in advertised
        assert SERVICES["kafka"]["ports"][0].rpartition(":")[0] in advertised

    @pytest.mark.broker
    @needs_kafka_jars
    def test_its_health_is_asked_without_a_jvm(self, tmp_path: Path) -> None:
        """By the same command a broker is well once the coordinator's log exists, and a port without one is not."""
        kind, *words = SERVICES["kafka"]["healthcheck"]["test"]
        host, port = environment(MONITOR)["GROUP_MONITOR__KAFKA__BOOTSTRAP_SERVERS"].split(":")
        assert "CMD" == kind
        # Compose takes two dollars for one.
        script = words[-1].replace("$$", "$")
        assert f"/dev/tcp/{host}/{port}" in script
        with EmbeddedBroker(tmp_path) as broker:
            here = broker.bootstrap_servers.replace(":", "/")
            asked = [*words[:-1], script.replace(f"{host}/{port}", here)]
            until(lambda: ran(*asked).returncode == 0, 90, lambda: ran(*asked).stderr)
            topics = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics
        gone = ran(*asked)

        assert "__consumer_offsets" in topics
        assert 0 != gone.returncode

    def test_its_log_is_on_its_volume(self) -> None:
        """What the broker writes survives its container."""
        assert ("kafka", "kafka", environment(SERVICES["kafka"])["KAFKA_LOG_DIRS"]) in mounts()


@cache
def settings_of_kafka() -> frozenset[str]:
    """Every text with a dot in it that is a constant of Kafka's own classes, `node.id` among them."""
    found: set[str] = set()
    for jar in (ROOT / DEFAULT_JARS_DIR).glob("kafka*.jar"):
        with ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(("Config.class", "Configs.class")):
                    found.update(re.findall(r"[a-z]+(?:\.[a-z]+)*", archive.read(name).decode("latin-1")))
    return frozenset(found)


class TestMonitor:
    """The image and how it is started."""

    def test_its_base_has_a_version_and_a_digest(self) -> None:
        """As the other images."""
        stages = [line.split()[1:] for line in DOCKERFILE if line.startswith("FROM ")]

        assert re.fullmatch(PINNED, stages[0][0])
        assert ["base", "base"] == [of[0] for of in stages[1:]]
        assert ["AS", "base"] == stages[0][1:]

    def test_what_runs_has_no_tools_of_tests_in_it(self) -> None:
        """The last stage takes what runs, installed from a lock of its own: what the program asks for, no more."""
        last = DOCKERFILE[max(at for at, line in enumerate(DOCKERFILE) if line.startswith("FROM ")) :]
        locked, run = (locked_in(name) for name in ("requirements.lock", "requirements.run.lock"))
        dependencies = PROJECT["project"]["dependencies"]

        assert run.items() <= locked.items()
        assert {of.lower() for each in dependencies for of in re.findall(r"^[\w-]+", each)} <= run.keys()
        extras = locked_in("requirements.extras.lock")
        asked = [each for name in ("msk", "otlp") for each in PROJECT["project"]["optional-dependencies"][name]]
        assert run.items() <= extras.items() <= locked.items()
        assert {of.lower() for each in asked for of in re.findall(r"^[\w-]+", each)} <= extras.keys() - run.keys()
        assert "ARG LOCK=requirements.run.lock" in DOCKERFILE
        assert {"pytest", "ruff", "mypy", "playwright", "setuptools", "hypothesis"} <= locked.keys() - run.keys()
        assert [
            "COPY --from=build /opt/group-monitor /opt/group-monitor",
            "COPY conf/local.yaml /etc/group-monitor/",
        ] == [line for line in last if line.startswith(("COPY", "ADD"))]
        assert not [line for line in last if "pip" in line or "make" in line]

    def test_its_labels_are_the_projects(self) -> None:
        """Title, version and licence, under the names of the OCI image specification."""
        (line,) = [line for line in DOCKERFILE if line.startswith("LABEL ")]
        labels = dict(word.split("=", 1) for word in shlex.split(line)[1:])
        of = {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}

        assert {name: PROJECT["project"][name] for name in ("version",)} == {"version": of["version"]}
        assert (PROJECT["project"]["name"], PROJECT["project"]["license"]) == (of["title"], of["licenses"])
        assert {"title", "description", "version", "licenses"} == of.keys()

    def test_it_says_whether_it_is_well(self) -> None:
        """Without compose too: the same question, as often; the image alone has no port for probes."""
        (line,) = [line for line in DOCKERFILE if line.startswith("HEALTHCHECK ")]
        options, _, command = line.removeprefix("HEALTHCHECK ").partition("CMD ")
        asked = MONITOR["healthcheck"]

        probe_port = MONITOR["environment"]["GROUP_MONITOR__HTTP__PROBE_PORT"]
        assert ["CMD", *json.loads(command)] == [word.replace(probe_port, "9464") for word in asked["test"]]
        assert {f"--{name.replace('_', '-')}={value}" for name, value in asked.items() if name != "test"} == {
            *options.split()
        }

    @pytest.mark.parametrize("words", copied(), ids=" ".join)
    def test_what_is_copied_exists(self, words: list[str]) -> None:
        """Every source of a COPY is in the checkout, and none is ignored."""
        ignored = [
            line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] not in ("", "#")
        ]

        if words[0] == "/opt/group-monitor":
            return  # of an earlier stage
        assert all((ROOT / source).exists() for source in words[:-1])
        assert not set(words[:-1]) & set(ignored)

    def test_what_is_copied_first_is_enough_to_set_up(self, tmp_path: Path) -> None:
        """`make setup` finds all it needs in the files copied before it: its plan is complete, and Java is found."""
        before = "\n".join(DOCKERFILE).partition("RUN make setup")[0]
        for words in copied():
            if " ".join(words) in before:
                target = tmp_path / words[-1]
                target.mkdir(exist_ok=True)
                for source in words[:-1]:
                    shutil.copy(ROOT / source, target)
        plan = ran("make", "-n", "setup", cwd=tmp_path)
        java = ran(sys.executable, "-m", "streaming.spark.java", cwd=tmp_path)

        assert (0, "") == (plan.returncode, plan.stderr)
        assert "requirements.lock" in plan.stdout
        assert 0 == java.returncode

    def test_it_is_not_root(self) -> None:
        """The last user named is a number, by which Kubernetes knows it; it, and group 0, may write to the volume."""
        assert ["USER 10001"] == [line for line in DOCKERFILE if line.startswith("USER ")]
        assert DOCKERFILE.index("USER 10001") > DOCKERFILE.index("FROM base")
        (made,) = [line for line in DOCKERFILE if "useradd" in line]
        assert "groupadd --gid 10001 monitor " in made
        assert "--uid 10001 --gid 10001 monitor " in made
        assert "install -d -m 0770 -o 10001 -g 0 /var/lib/group-monitor" in made

    @pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if "build" in service])
    def test_its_command_is_accepted(self, name: str) -> None:
        """What is run is a command of `group-monitor`, with options it has."""
        assert 'ENTRYPOINT ["/opt/group-monitor/bin/group-monitor"]' in DOCKERFILE
        assert "" == refused(SERVICES[name]["command"])

    def test_the_image_does_the_same_by_itself(self) -> None:
        """Without compose the image starts the monitor likewise."""
        (given,) = [json.loads(line.removeprefix("CMD ")) for line in DOCKERFILE if line.startswith("CMD ")]

        assert MONITOR["command"] == given

    def test_it_accepts_its_configuration(self) -> None:
        """File and environment variables are read as the monitor reads them; it listens where the port is opened."""
        file = Path(MONITOR["command"][MONITOR["command"].index("--config") + 1])
        assert f"COPY conf/{file.name} {file.parent}/" in DOCKERFILE
        loaded = loading.load(CONF / file.name, environment(MONITOR))

        assert "kafka:19092" == loaded.kafka.bootstrap_servers
        assert [f"127.0.0.1:{loaded.http.port}:{loaded.http.port}"] == MONITOR["ports"]
        assert f"EXPOSE {loaded.http.port}" in DOCKERFILE
        (variables,) = [line for line in DOCKERFILE[DOCKERFILE.index("FROM base") :] if line.startswith("ENV ")]
        home = dict(word.split("=") for word in variables.split()[1:])["XDG_STATE_HOME"]
        assert ("monitor", "state", f"{home}/group-monitor") in mounts()

    def test_it_answers_to_the_name_by_which_others_find_it(self) -> None:
        """It is open without authentication, so a name that is not listed is refused: Prometheus asks by this one."""
        (name,) = [name for name, service in SERVICES.items() if service is MONITOR]
        http = loading.load(CONF / "local.yaml", environment(MONITOR)).http
        targets = re.findall(rf"\b{name}:{http.port}\b", (CONF / "prometheus.yml").read_text("utf-8"))

        assert (False, False) == (http.requires_auth, http.is_loopback)
        assert frozenset({name}) == door_of(http).hosts
        assert targets

    def test_its_health_is_asked_where_it_tells(self) -> None:
        """The address of the check is one of those for probes, on their port, which is not opened."""
        (port, path) = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", MONITOR["healthcheck"]["test"][-1])[0]

        assert path in OPEN_PATHS
        assert port == MONITOR["environment"]["GROUP_MONITOR__HTTP__PROBE_PORT"]
        assert port not in str(MONITOR["ports"])

    def test_members_come_with_the_profile_only(self) -> None:
        """A stack for a cluster of one's own has no demo in it."""
        assert {"members"} == {name for name, service in SERVICES.items() if "profiles" in service}
        assert ["demo"] == SERVICES["members"]["profiles"]


def addresses() -> set[str]:
    """Paths the monitor answers."""
    return {route.path for route in Pages._routes(object.__new__(Pages))}


class TestPrometheus:
    """What it scrapes, judges by and shows."""

    def test_it_scrapes_the_monitor(self) -> None:
        """The scrape target is the monitor's service and port, and the path one it answers."""
        targets = [target["targets"] for job in PROMETHEUS["scrape_configs"] for target in job["static_configs"]]

        assert [[address("monitor")]] == targets
        assert all(job.get("metrics_path", "/metrics") in addresses() for job in PROMETHEUS["scrape_configs"])

    def test_it_reads_the_committed_rules(self) -> None:
        """The pattern of rule files matches the committed one where it is mounted."""
        (pattern,) = PROMETHEUS["rule_files"]
        (target,) = [
            target for _, source, target in mounts() if source == "./dashboards/generated" and "rules" in target
        ]

        assert Path(target, RULES).match(pattern)
        assert (GENERATED / RULES).exists()

    def test_it_tells_alertmanager(self) -> None:
        """Alerts go to the Alertmanager of this file."""
        configured = PROMETHEUS["alerting"]["alertmanagers"]

        assert [address("alertmanager")] == [
            each for row in configured for target in row["static_configs"] for each in target["targets"]
        ]

    @needs_promtool
    def test_its_configuration_is_accepted(self) -> None:
        """Prometheus has nothing to say against it."""
        assert "" == promtool("check", "config", str(CONF / "prometheus.yml"))


class TestAlertmanager:
    """Who is notified of what."""

    @needs("amtool")
    def test_its_configuration_is_accepted(self) -> None:
        """Alertmanager has nothing to say against it."""
        done = ran("amtool", "check-config", str(CONF / "alertmanager.yml"))

        assert 0 == done.returncode, done.stderr

    def test_severities_and_alerts_are_ours(self) -> None:
        """What is routed or held back by name exists, and each severity has a receiver."""
        text = json.dumps(ALERTMANAGER)
        routed = set(re.findall(r'severity=\\"(\w+)\\"', text))
        names = {alert.name for alert in ALERTS}

        assert routed < SEVERITIES.keys()
        for matcher in re.findall(r'alertname=~?\\"([^"\\]+)\\"', text):
            assert any(re.fullmatch(matcher, name) for name in names), matcher
        receivers = {route["receiver"] for route in ALERTMANAGER["route"]["routes"]} | {
            ALERTMANAGER["route"]["receiver"]
        }
        assert receivers == {receiver["name"] for receiver in ALERTMANAGER["receivers"]}

    def test_one_notification_a_group(self) -> None:
        """Alerts are put together by what makes one finding."""
        assert ["alertname", "cluster", "group"] == ALERTMANAGER["route"]["group_by"]


class TestGrafana:
    """What it shows, and where from."""

    def test_it_reads_from_prometheus_and_alertmanager(self) -> None:
        """The provisioned data sources are the services of this file."""
        file = PROVISIONING / "datasources" / "prometheus.yml"
        sources = yaml.safe_load(file.read_text("utf-8"))["datasources"]

        assert {
            "prometheus": f"http://{address('prometheus')}",
            "alertmanager": f"http://{address('alertmanager')}",
        } == {source["type"]: source["url"] for source in sources}
        assert ["prometheus"] == [source["type"] for source in sources if source.get("isDefault")]

    def test_it_reads_the_committed_boards(self) -> None:
        """The provider looks where they are mounted."""
        (provider,) = yaml.safe_load((PROVISIONING / "dashboards" / "group-monitor.yml").read_text("utf-8"))[
            "providers"
        ]

        assert ("grafana", "./dashboards/generated", provider["options"]["path"]) in mounts()
        assert ("grafana", "./conf/grafana/provisioning", "/etc/grafana/provisioning") in mounts()
