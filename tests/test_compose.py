"""docker-compose.yml fits the repository: no container is needed to see that."""

import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from streaming import config

ROOT: Final = Path(__file__).resolve().parent.parent
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
MONITOR: Final = SERVICES["monitor"]


def mounts() -> list[tuple[str, str]]:
    """(service, source) of every mount."""
    return [
        (name, volume.partition(":")[0]) for name, service in SERVICES.items() for volume in service.get("volumes", [])
    ]


def environment(service: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in service["environment"].items()}


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_on_loopback_only(name: str) -> None:
    """Nobody outside this machine reaches a port that is open without a password."""
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


@pytest.mark.parametrize(("service", "source"), mounts())
def test_what_is_mounted_exists(service: str, source: str) -> None:
    """A mount is a file or folder of the checkout, or a volume that is declared."""
    assert (ROOT / source).exists() if source.startswith("./") else source in COMPOSE["volumes"], service


@pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if "image" in service])
def test_images_have_a_version(name: str) -> None:
    """An image is pinned, so that the same file is the same software tomorrow."""
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


def test_the_broker_is_the_one_the_tests_use() -> None:
    """Image and embedded broker are of one Kafka version."""
    ivy = (ROOT / "conf" / "ivy.xml").read_text("utf-8")
    versions = set(re.findall(r'name="kafka_2.13" rev="([^"]+)"', ivy))

    assert {SERVICES["kafka"]["image"].partition(":")[2]} == versions


def test_what_the_image_copies_exists() -> None:
    """Every source of a COPY is in the checkout."""
    lines = MONITOR["build"]["dockerfile_inline"].splitlines()
    sources = [source for line in lines if line.startswith("COPY ") for source in shlex.split(line)[1:-1]]

    assert [] == [source for source in sources if not (ROOT / source).exists()]
    assert len(sources) > 1


def test_the_monitor_accepts_its_configuration() -> None:
    """File and environment variables are read as the monitor reads them; it listens where the port is opened."""
    file = ROOT / MONITOR["command"][MONITOR["command"].index("--config") + 1]
    loaded = config.load(file, environment(MONITOR))

    assert "kafka:19092" == loaded.kafka.bootstrap_servers
    assert [f"127.0.0.1:{loaded.http.port}:{loaded.http.port}"] == MONITOR["ports"]


def test_the_monitor_reaches_the_broker_where_it_says_it_is() -> None:
    """A client keeps to the advertised address, so it must be the one the monitor is given."""
    advertised = environment(SERVICES["kafka"])["KAFKA_ADVERTISED_LISTENERS"]

    assert environment(MONITOR)["GROUP_MONITOR__KAFKA__BOOTSTRAP_SERVERS"] in advertised


def test_prometheus_scrapes_the_monitor() -> None:
    """The scrape target is the monitor's service and port."""
    scrape = yaml.safe_load((ROOT / "conf" / "prometheus.yml").read_text("utf-8"))["scrape_configs"]

    assert [["monitor:9464"]] == [target["targets"] for job in scrape for target in job["static_configs"]]


def test_grafana_reads_from_prometheus() -> None:
    """The provisioned data source is the Prometheus of this file."""
    file = ROOT / "conf" / "grafana" / "provisioning" / "datasources" / "prometheus.yml"
    (source,) = yaml.safe_load(file.read_text("utf-8"))["datasources"]

    assert "http://prometheus:9090" == source["url"]
    assert ["127.0.0.1:9090:9090"] == SERVICES["prometheus"]["ports"]
