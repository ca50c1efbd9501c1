"""The jars of Kafka that the demo runs: where they are, and how an installed wheel fetches them, once.

A checkout has them from `make setup`, with the same list (`conf/ivy.xml`) and the same Ivy, which Spark brings.
"""

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Final

from streaming.base.errors import CannotTellError, MonitorError, UsageError
from streaming.base.places import CACHE, IS_CHECKOUT, ROOT
from streaming.spark import java

MEGABYTES: Final = 55
"""What is fetched, about."""

_LIST: Final = ROOT / "conf" / "ivy.xml"
_SETTINGS: Final = ROOT / "conf" / "ivysettings.xml"
_DIGESTS: Final = ROOT / "conf" / "jars.sha256"
_REASON: Final = re.compile(r"(?i)unresolved dependency|download failed|not found|unknownhost|refused|timed out")

DIRECTORY: Final = CACHE / "jars" / ("kafka" if IS_CHECKOUT else f"kafka-{zlib.crc32(_LIST.read_bytes()):08x}")
"""Of a wheel, another one for another list: a release with another Kafka fetches its own."""


def must_be_fetched() -> bool:
    """Whether they are missing and are ours to fetch; in a checkout that is `make setup`'s business."""
    return not IS_CHECKOUT and not DIRECTORY.is_dir()


def fetch(
    configuration: str = "kafka", directory: Path | None = None, *, listed: Path = _LIST, cache: Path | None = None
) -> None:
    """Fetch them; interrupted, none are there.

    Args:
        configuration: of the list.
        directory: for the jars; by default where those of Kafka are.
        listed: Ivy's list of them; of any but conf/ivy.xml there are no digests.
        cache: where Ivy keeps what it was given, for the next call; gone with this one if not said.

    Raises:
        UsageError: no usable Java, or the directory cannot be written.
        CannotTellError: the registry is out of reach, or does not have all, or others under their names.
    """
    directory = directory or DIRECTORY
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".fetched-") as scratch:
            made = Path(scratch) / "jars"
            log = directory.with_name(f"{directory.name}.log")
            command = _command(configuration, made, cache or Path(scratch) / "cache", listed)
            with log.open("wb") as said:
                variables = os.environ | java.names_in_utf8()
                done = subprocess.run(command, stdout=said, stderr=said, env=variables, check=False)  # noqa: S603 - no shell takes part
            if done.returncode != 0:
                lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
                reason = next((line for line in lines if _REASON.search(line)), f"Ivy ended with {done.returncode}")
                raise CannotTellError(
                    f"jars: not all of {listed.name} could be fetched ({reason[:200]}; see {log}); is Maven's central "
                    "registry within reach?"
                )
            if listed == _LIST:
                _refuse_others(configuration, made)
            # Another process may have been quicker.
            shutil.rmtree(directory, ignore_errors=True)
            made.rename(directory)
    except OSError as error:
        raise UsageError(
            f"jars: found {str(directory.parent)!r}: {error.strerror}, accepted: a writable XDG_CACHE_HOME"
        ) from error


def _refuse_others(configuration: str, directory: Path) -> None:
    """See that each jar is the one that was tried, wherever it comes from; a configuration without digests has any.

    Raises:
        CannotTellError: one is another, missing or one more.
    """
    lines = [line.split() for line in _DIGESTS.read_text("ascii").splitlines()]
    expected = {name: digest for digest, name in lines if name.startswith(f"{configuration}/")}
    found = {
        f"{configuration}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()
    }
    others = sorted({name for name, _ in expected.items() ^ found.items()})
    if expected and others:
        raise CannotTellError(
            f"jars: found {others[0]} ({len(others)} in all) that is not the one of {_DIGESTS.name}, accepted: the one "
            "that is; what handed it out cannot be trusted"
        )


def _command(configuration: str, into: Path, cache: Path, listed: Path) -> list[str]:
    found = importlib.util.find_spec("pyspark")
    (home,) = [] if found is None else found.submodule_search_locations or []
    (ivy,) = (Path(home) / "jars").glob("ivy-*.jar")
    settings = ["-settings", str(_SETTINGS), "-cache", str(cache), "-ivy", str(listed), "-confs", configuration]
    return [
        str(java.find_java()),
        "-jar",
        str(ivy),
        "-warn",
        *settings,
        "-retrieve",
        f"{into}/[artifact]-[revision].[ext]",
    ]


def main() -> int:
    """Have them, before the demo asks; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m group_monitor.jars")
    parser.add_argument(
        "--from", dest="source", metavar="DIR", type=Path, help="copy them from here; fetched otherwise"
    )
    source: Path | None = parser.parse_args().source
    try:
        if must_be_fetched() and source is not None:
            shutil.copytree(source, DIRECTORY)
        elif must_be_fetched():
            fetch()
    except (MonitorError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status if isinstance(error, MonitorError) else UsageError.exit_status
    sys.stdout.write(f"{DIRECTORY}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
