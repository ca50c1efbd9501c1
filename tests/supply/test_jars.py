"""Every jar has a digest of ours: what a registry hands out is compared with what was tried."""

import hashlib
import shutil
from pathlib import Path
from typing import Final

import pytest

from streaming.base.errors import CannotTellError
from streaming.spark import kafka_jars
from supply import components
from tests.left_out import needs_kafka_jars

ROOT: Final = Path(__file__).resolve().parents[2]


def digests() -> dict[str, str]:
    lines = (line.split() for line in (ROOT / "conf" / "jars.sha256").read_text("ascii").splitlines())
    return {name: digest for digest, name in lines}


@needs_kafka_jars
def test_every_jar_is_the_one_that_was_tried() -> None:
    """Of those that `make setup` fetches, none is missing, another, or without a digest."""
    found = {
        f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for directory in components.JAR_DIRECTORIES
        for path in directory.glob("*.jar")
    }
    fetched = {directory.name for directory in components.JAR_DIRECTORIES}

    assert {name: digest for name, digest in digests().items() if name.partition("/")[0] in fetched} == found


@needs_kafka_jars
@pytest.mark.parametrize("wrong", ["another", "missing", "one more"])
def test_what_a_wheel_fetches_is_compared(tmp_path: Path, wrong: str) -> None:
    """A jar that is not the one, is missing, or is one more, is named, and none is used."""
    directory = tmp_path / "kafka"
    shutil.copytree(kafka_jars.DIRECTORY, directory)
    kafka_jars._refuse_others("kafka", directory)
    jar = min(directory.iterdir())
    if wrong == "another":
        jar.write_bytes(b"of somebody else's")
    elif wrong == "missing":
        jar.unlink()
    else:
        (directory / "a.jar").touch()
    named = "a.jar" if wrong == "one more" else jar.name

    with pytest.raises(CannotTellError, match=rf"^jars: found kafka/{named} \(1 in all\) that is not the one of jars"):
        kafka_jars._refuse_others("kafka", directory)
