"""The jars of a broker of any release, for a rehearsal of its restart: where they are, and how they are fetched, once.

With the same Ivy as the demo's (`kafka_jars`). Of releases other than the demo's there are no digests of ours; Ivy
compares what it fetches with the registry's.
"""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from streaming.base.errors import CannotTellError
from streaming.base.places import CACHE
from streaming.spark import kafka_jars

MEGABYTES: Final = 90
"""What is fetched of one release, about."""

DIRECTORY: Final = CACHE / "brokers"

# Up to 3.9 a broker brings another binding of slf4j; later ones none, or half of one, and would fail in silence.
_IVY_FILE: Final = """<ivy-module version="2.0">
  <info organisation="group-monitor" module="kafka-{release}"/>
  <configurations defaultconfmapping="*->default"><conf name="kafka"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{release}" conf="kafka->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.4" conf="kafka->default"/>
    <exclude org="org.slf4j" module="slf4j-reload4j" conf="kafka"/>
    <exclude org="org.slf4j" module="slf4j-log4j12" conf="kafka"/>
  </dependencies>
</ivy-module>
"""
_CORE: Final = "kafka_2.13-{release}.jar"


def place(release: str, given: Path | None = None) -> Path:
    """Where the jars of a release are, or will be.

    Args:
        release: as `4.0.1`.
        given: a folder with jars of one release, or with a folder for each, named as it; None for those that are
            fetched.
    """
    if given is not None:
        return next((of for of in (given / release, given / release / "libs", given) if _has(of, release)), given)
    return kafka_jars.DIRECTORY if _has(kafka_jars.DIRECTORY, release) else DIRECTORY / release


def missing(releases: Iterable[str], given: Path | None = None) -> list[str]:
    """Releases whose jars are not there."""
    return [release for release in releases if not _has(place(release, given), release)]


def fetch(releases: Iterable[str], say: Callable[[str], None] = lambda _text: None) -> dict[str, str]:
    """Fetch the jars of releases, one after the other; of one that is interrupted none are there.

    Returns why those of a release could not be fetched: the registry is out of reach, or does not have all of them.

    Raises:
        UsageError: no usable Java, or the directory cannot be written.
    """
    lacking: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="group-monitor-jars-") as scratch:
        for release in releases:
            say(f"fetching the jars of Kafka {release}")
            listed = Path(scratch) / f"{release}.xml"
            listed.write_text(_IVY_FILE.format(release=release), encoding="utf-8")
            for is_last in (False, True):
                try:
                    kafka_jars.fetch("kafka", DIRECTORY / release, listed=listed, cache=Path(scratch) / "cache")
                    break
                except CannotTellError as error:
                    # A registry that breaks off one of two hundred files has it as a rule.
                    if is_last:
                        lacking[release] = str(error)
    return lacking


def _has(directory: Path, release: str) -> bool:
    return (directory / _CORE.format(release=release)).is_file()
