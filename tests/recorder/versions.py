"""The Kafka releases that are recorded, what each needs said before it knows all its kinds of groups, and their jars.

A release is here if the registry has its broker and its tools complete. Early access and preview features are turned on
where records of them differ from what the next release made of them: 4.0's share groups, 4.1's streams groups.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from streaming.spark.java import find_java

ROOT: Final = Path(__file__).parents[2]
_VERSIONS_DIR: Final = ROOT / ".cache" / "versions"
_IVY_SETTINGS: Final = ROOT / "conf" / "ivysettings.xml"

_IVY_FILE: Final = """<ivy-module version="2.0">
  <info organisation="group-monitor" module="kafka-{version}"/>
  <configurations defaultconfmapping="*->default"><conf name="kafka"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_{scala}" rev="{version}" conf="kafka->default"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{version}" conf="kafka->default"/>
    <!-- Not what it brings: stores of the recorded topology are in memory, so RocksDB's 70 MB stay away. -->
    <dependency org="org.apache.kafka" name="kafka-streams" rev="{version}" conf="kafka->master" transitive="false"/>
    {logging}
  </dependencies>
</ivy-module>
"""

# Up to 3.9 a broker brings another binding of slf4j; later ones none, or half of one, and would fail in silence.
_LOGGING: Final = """<dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.4"
                conf="kafka->default"/>
    <exclude org="org.slf4j" module="slf4j-reload4j" conf="kafka"/>
    <exclude org="org.slf4j" module="slf4j-log4j12" conf="kafka"/>"""
# Before 3.2 the broker calls log4j 1 by name, and brings it with that binding alone.
_LOG4J_1: Final = """<dependency org="org.apache.logging.log4j" name="log4j-1.2-api" rev="2.25.4" conf="kafka->master"
                transitive="false"/>
    """

# Kinds of groups, and protocols by which a release lets members speak.
CLASSIC_AND_CONSUMER: Final = "classic,consumer"

EARLY_ACCESS: Final[Mapping[str, str]] = {
    "unstable.api.versions.enable": "true",
    "unstable.feature.versions.enable": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaVersion:
    """One release.

    Attributes:
        name: as in `kafka_2.13-NAME.jar`.
        properties: broker settings beside `EmbeddedBroker`'s.
        features: feature levels to set once it runs.
        described_by: the release whose tools describe its groups: those of 3.9 print no epochs, those of 4.1 other
            streams groups than they are asked for.
    """

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    described_by: str | None = None

    @property
    def tools(self) -> str:
        """The release whose tools describe its groups."""
        return self.described_by or self.name

    @property
    def number(self) -> tuple[int, int]:
        """Major and minor."""
        major, minor, _ = self.name.split(".")
        return int(major), int(minor)


VERSIONS: Final = (
    KafkaVersion(
        name="3.9.1",
        properties={**EARLY_ACCESS, "group.coordinator.rebalance.protocols": CLASSIC_AND_CONSUMER},
        described_by="4.3.1",
    ),
    KafkaVersion(
        name="4.0.2",
        properties={
            **EARLY_ACCESS,
            "group.coordinator.rebalance.protocols": f"{CLASSIC_AND_CONSUMER},share",
            "group.share.enable": "true",
        },
    ),
    KafkaVersion(
        name="4.1.1",
        properties=EARLY_ACCESS,
        features={"share.version": 1, "streams.version": 1},
        described_by="4.2.1",
    ),
    KafkaVersion(name="4.2.1", features={"streams.version": 1}),
    KafkaVersion(name="4.3.1"),
)
BY_NAME: Final[Mapping[str, KafkaVersion]] = {version.name: version for version in VERSIONS}


def jars_of(version: str, *, scala: str = "2.13", log4j_1: bool = False) -> Path:
    """The folder with the jars of a release, fetched by the Ivy that Spark ships unless they are there.

    Args:
        version: of Kafka.
        scala: of the broker; not every release was published for each.
        log4j_1: whether the release calls log4j 1, and brings none.

    Raises:
        UsageError: no usable Java.
        RuntimeError: the registry does not have all of them; Ivy's own words.
    """
    folder = _VERSIONS_DIR / version
    done = folder / ".fetched"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    ivy_file = _VERSIONS_DIR / f"ivy-{version}.xml"
    logging = (_LOG4J_1 if log4j_1 else "") + _LOGGING
    ivy_file.write_text(_IVY_FILE.format(version=version, scala=scala, logging=logging), encoding="utf-8")
    command = [str(find_java()), "-jar", str(_ivy()), "-warn", "-settings", str(_IVY_SETTINGS), "-ivy", str(ivy_file)]
    command += ["-confs", "kafka", "-retrieve", f"{folder}/[artifact]-[revision].[ext]", "-sync"]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell takes part
    if fetched.returncode != 0:
        raise RuntimeError(f"jars of Kafka {version}: not all could be fetched\n{fetched.stdout}{fetched.stderr}")
    done.touch()
    return folder


def _ivy() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (jar,) = (Path(spec.origin).parent / "jars").glob("ivy-*.jar")
    return jar
