"""File systems of other machines for a checkpoint: an HDFS of one NameNode and one DataNode, and an S3 that moto plays.

`make cluster` fetches what they are made of.
"""

import json
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.request import Request, urlopen

import pyspark

from lab.monitor_process import until
from streaming.base.places import CACHE
from streaming.demo import child_processes
from streaming.demo.embedded_broker import HOST
from streaming.spark.java import find_java

SPARK_JARS: Final = Path(pyspark.__file__).parent / "jars"
_OF_SPARK: Final = ("hadoop-client-*.jar", "slf4j-api-*.jar", "log4j-*.jar", "jcl-over-slf4j-*.jar", "commons-*.jar")
_START_SECONDS: Final = 120.0
_BUCKET: Final = "group-monitor"


class Hdfs:
    """Hadoop's own HDFS in one JVM; use as a context manager. `settings` are Spark's, `root` the URL of its root."""

    settings: Final[dict[str, str]] = {}

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.root = ""

    def __enter__(self) -> Self:
        """Start it, and wait until it says where it is."""
        self._directory.mkdir(parents=True, exist_ok=True)
        jars = [*(CACHE / "jars" / "hdfs").glob("*.jar"), *(jar for of in _OF_SPARK for jar in SPARK_JARS.glob(of))]
        details = self._directory / "details.json"
        data = self._directory / "data"
        command: list[str | Path] = [
            *(find_java(), "-Xmx384m", f"-Dtest.build.data={data}", f"-Dhadoop.log.dir={self._directory}"),
            *("-cp", ":".join(map(str, jars)), "org.apache.hadoop.test.MiniDFSClusterManager"),
            *("-format", "-datanodes", "1", "-writeDetails", details),
            *("-D", f"hdfs.minidfs.basedir={data}", "-D", "dfs.namenode.fs-limits.min-block-size=0"),
        ]
        log = self._directory / "hdfs.log"
        self._process = child_processes.start(command, log=log)
        until(lambda: _is_json(details), _START_SECONDS, lambda: log.read_text("utf-8", "replace")[-2_000:])
        self.root = f"hdfs://{HOST}:{json.loads(details.read_text('utf-8'))['namenode_port']}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        child_processes.kill(self._process)


class S3:
    """moto's server with a bucket; use as a context manager. `settings` and `root` as of `Hdfs`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.root = f"s3a://{_BUCKET}"
        with socket.create_server((HOST, 0)) as server:
            self._port: int = server.getsockname()[1]
        address = f"http://{HOST}:{self._port}"
        self._bucket = f"{address}/{_BUCKET}"
        self.settings: dict[str, str] = {
            "spark.driver.extraClassPath": ":".join(map(str, sorted((CACHE / "jars" / "s3").glob("*.jar")))),
            "spark.hadoop.fs.s3a.endpoint": address,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "of-a-test",
            "spark.hadoop.fs.s3a.secret.key": "of-a-test",
        }

    def __enter__(self) -> Self:
        """Start it, and make the bucket."""
        self._directory.mkdir(parents=True, exist_ok=True)
        log = self._directory / "s3.log"
        command = [sys.executable, "-P", "-m", "moto.server", "-H", HOST, "-p", str(self._port)]
        # In a directory of its own: it asks for other versions of what is pinned here.
        path = str(CACHE / "moto")
        self._process = child_processes.start(command, log=log, environment={"PYTHONPATH": path})
        until(self._has_bucket, _START_SECONDS, lambda: log.read_text("utf-8", "replace")[-2_000:])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        child_processes.kill(self._process)

    def _has_bucket(self) -> bool:
        with suppress(OSError), urlopen(Request(self._bucket, method="PUT"), timeout=5):  # noqa: S310 - our own address
            return True
        return False


FAR: Final[dict[str, Callable[[Path], Hdfs | S3]]] = {"hdfs": Hdfs, "s3": S3}


def _is_json(file: Path) -> bool:
    with suppress(OSError, ValueError):
        return isinstance(json.loads(file.read_text("utf-8")), dict)
    return False
