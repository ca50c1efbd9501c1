"""Does Spark start here? A small session in a process of its own, for `check`: nothing of it stays.

`python -m streaming.spark.trial` reads settings as JSON on standard input, starts, and writes what came of it, JSON
again. Its JVM takes 256 MB and ports that the system chooses, on loopback; all it writes is in a scratch directory.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streaming.base.errors import MonitorError, words
from streaming.base.places import ROOT
from streaming.base.signals import interrupt_on_end_signals
from streaming.config.loading import Config
from streaming.config.sections import SparkSection

SECONDS: Final = 20.0
"""How long it may take."""

LEAST_FREE_BYTES: Final = 768 * 1024 * 1024
"""What has to be free of the memory limit: JVM, its Python and ours."""

_MASTER: Final = "local[1]"
_HEAP: Final = "256m"
_NOT_TRIED: Final = re.compile(r"spark\.(master|submit\..*|.*\.port|port\..*|ui\..*|driver\.memory.*|eventLog\..*)")
"""Settings that a trial leaves to itself: where Spark runs, ports, sizes, and what would write elsewhere."""

_SMALL: Final = {
    # Spark reserves 300 MB of a heap, and asks for one and a half times as much.
    "spark.testing.reservedMemory": "0",
}
_END_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial.

    Attributes:
        starts: whether Spark starts; None where that is not known.
        said: its release, or in a line what keeps it from starting.
    """

    starts: bool | None
    said: str


def run(spark: SparkSection, seconds: float = SECONDS) -> Outcome:
    """Try it in a process of its own, which has ended when this returns."""
    directory = Path(tempfile.mkdtemp(prefix="group-monitor-trial-"))
    try:
        return _run(spark, directory, seconds)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def settings(spark: SparkSection) -> dict[str, Any]:
    """What a trial starts with: the configuration's settings as far as they can be tried, on one small JVM."""
    conf = {name: value for name, value in spark.conf.items() if not _NOT_TRIED.fullmatch(name)}
    return {"master": _MASTER, "driver_memory": _HEAP, "ui": False, "conf": {**conf, **_SMALL}}


def free_bytes(root: Path = Path("/")) -> int | None:
    """What is free of the memory that this process may have, by its control group's limit or the machine's; or None.

    Args:
        root: where /proc and /sys are.
    """
    found = [*_of_groups(root / "sys" / "fs" / "cgroup"), *_of_machine(root / "proc" / "meminfo")]
    return min(found, default=None)


def _run(spark: SparkSection, directory: Path, seconds: float) -> Outcome:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    # Asked to end, it ends its JVM first, which is in a session of its own.
    with subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-m", "streaming.spark.trial", str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **_local_directories(spark.conf, directory)},
        start_new_session=True,
    ) as child:
        try:
            out, errors = child.communicate(json.dumps(settings(spark)), timeout=seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGTERM)
            try:
                child.communicate(timeout=_END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
            return Outcome(None, f"no session within {seconds:.0f} s: a machine that is busy, or one that is too slow")
        except BaseException:
            child.send_signal(signal.SIGTERM)
            raise
    try:
        return Outcome(**json.loads(out.splitlines()[-1]))  # before it there may be lines of our log
    except (ValueError, TypeError, LookupError):
        last = "".join(errors.splitlines()[-1:]) or "it said nothing"
        return Outcome(None, f"the trial ended with status {child.returncode}: {last}")


def _local_directories(conf: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Where Spark keeps blocks meanwhile: where it is to keep them, if that is said, as it may be at fault."""
    said = "spark.local.dir" in conf or "SPARK_LOCAL_DIRS" in os.environ
    return {} if said else {"SPARK_LOCAL_DIRS": str(directory)}


def _of_groups(directory: Path) -> list[int]:
    """Of a control group's limit what is free, of either version; caches count as free."""
    for limit, used, cached in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most, now = int((directory / limit).read_text("ascii")), int((directory / used).read_text("ascii"))
            lines = (directory / used).with_name("memory.stat").read_text("ascii").splitlines()
            fields = dict(line.split() for line in lines)
            return [most - now + int(fields.get(cached, 0))]
        except (OSError, ValueError):  # no limit is "max"
            continue
    return []


def _of_machine(file: Path) -> list[int]:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", file.read_text("ascii"), re.MULTILINE)
    except (OSError, ValueError):
        return []
    return [int(found[1]) * 1024] if found else []


def _try(given: Mapping[str, Any], directory: Path) -> Outcome:
    # Imported late: who asks for a trial needs no Spark.
    from streaming.spark import jvm_lifecycle, native_code, session

    config = Config.model_validate({"spark": given, "state": {"dir": str(directory)}})
    log = directory / "spark.log"
    try:
        spark = session.start(config, log)
    except MonitorError as error:
        # The log goes with the directory; what it says is in the line.
        return Outcome(False, str(error).partition("; see ")[0])
    try:
        assert spark._jvm is not None  # noqa: S101, SLF001 - there is one
        spark._jvm.org.rocksdb.RocksDB.loadLibrary()  # noqa: SLF001 - as a stateful query does
        release = spark.version
    except Exception as error:  # noqa: BLE001 - whatever it is, it keeps a query from running
        return Outcome(False, native_code.refusal(config.spark.conf, native_code.why(words(error))))
    finally:
        jvm_lifecycle.stop(spark)
    return Outcome(True, f"Spark {release} starts, with a heap of {_HEAP} on {_MASTER}")


def main() -> int:
    """Try it, and write what came of it."""
    interrupt_on_end_signals()
    outcome = _try(json.load(sys.stdin), Path(sys.argv[1]))
    sys.stdout.write(json.dumps({"starts": outcome.starts, "said": outcome.said}) + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
