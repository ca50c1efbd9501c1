"""`kafka-consumer-groups` kept warm in one JVM: starting a JVM takes a second, asking it takes milliseconds."""

import queue
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from py4j.java_gateway import GatewayParameters, JavaGateway

from streaming.base.errors import CannotTellError, UsageError
from streaming.demo import child_processes
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR
from streaming.spark import java
from tests import group_tables

_GROUP_COMMAND: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_GATEWAY_SECONDS: Final = 30.0


class GroupTool:
    """`kafka-consumer-groups` in a JVM that stays; use as a context manager. One question at a time."""

    def __init__(
        self, bootstrap_servers: str, *, log: Path, jars_dir: Path = DEFAULT_JARS_DIR, heap: str = "128m"
    ) -> None:
        """Start the JVM.

        Args:
            bootstrap_servers: the cluster to ask.
            log: file for what the JVM says beside its answers.
            jars_dir: the jars of one Kafka version.
            heap: its largest heap.

        Raises:
            UsageError: no usable Java, or no jars.
            CannotTellError: the JVM does not come up.
        """
        self._bootstrap_servers = bootstrap_servers
        self._lock = threading.Lock()
        command = java.command(jars_dir, "py4j.GatewayServer", ["--die-on-broken-pipe", "0"], heap=heap, also=[_py4j()])
        self._process = child_processes.start(command, log=log, piped=True)
        port = _first_line(self._process)
        if not port.isdigit():
            child_processes.stop(self._process)
            raise CannotTellError(f"kafka-consumer-groups: its JVM did not start (see {log})")
        # Without finalizers: one that ran after the JVM's end, in the middle of something else, would fail that.
        parameters = GatewayParameters(port=int(port), enable_memory_management=False)
        self._gateway = JavaGateway(gateway_parameters=parameters)

    def list_groups(self) -> list[str]:
        """The names of all groups, sorted."""
        return sorted(self.run("--list").split())

    def states(self, *groups: str) -> list[group_tables.StateRow]:
        """State and epochs of groups, or of all.

        Raises:
            CannotTellError: a group is not known, or the cluster does not answer.
        """
        return group_tables.state_rows(self._describe(groups, "--state", "--verbose"))

    def members(self, *groups: str) -> list[group_tables.MemberRow]:
        """Members of groups, or of all; raises as `states`."""
        return group_tables.member_rows(self._describe(groups, "--members", "--verbose"))

    def offsets(self, *groups: str) -> list[group_tables.OffsetRow]:
        """Committed and log end offsets of groups, or of all; raises as `states`."""
        return group_tables.offset_rows(self._describe(groups, "--offsets"))

    def delete(self, *groups: str) -> None:
        """Delete empty groups; raises CannotTellError if one is left."""
        answer = self.run("--delete", *_each("--group", groups))
        if "Error: " in answer:
            raise CannotTellError(f"kafka-consumer-groups --delete: {answer}")

    def run(self, *arguments: str, main_class: str = _GROUP_COMMAND) -> str:
        """Run the tool, or one that returns as it does (`ShareGroupCommand`), and return what it printed.

        Arguments must be right: over those it does not know the tool ends its JVM, and so this one.
        """
        given = ["--bootstrap-server", self._bootstrap_servers, *arguments]
        jvm = self._gateway.jvm
        with self._lock:
            array = self._gateway.new_array(jvm.java.lang.String, len(given))
            for number, argument in enumerate(given):
                array[number] = argument
            before, printed = jvm.java.lang.System.out, jvm.java.io.ByteArrayOutputStream()
            jvm.java.lang.System.setOut(jvm.java.io.PrintStream(printed, True, "UTF-8"))
            try:
                jvm.java.lang.Class.forName(main_class)
                getattr(jvm, main_class).main(array)
            finally:
                jvm.java.lang.System.setOut(before)
            return str(printed.toString("UTF-8"))

    def close(self) -> None:
        """End the JVM."""
        self._gateway.close()
        child_processes.stop(self._process)

    def __enter__(self) -> Self:
        """Nothing to do: it has been started."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _describe(self, groups: Sequence[str], *what: str) -> str:
        return self.run("--describe", *(_each("--group", groups) if groups else ["--all-groups"]), *what)


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _py4j() -> Path:
    """The jar of the py4j that Spark ships."""
    # Found without being imported: Spark itself is not needed here.
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise UsageError("pyspark: found none, accepted: the packages that `make setup` installs")
    (jar,) = (Path(spark.origin).parent / "jars").glob("py4j-*.jar")
    return jar


def _first_line(process: subprocess.Popen[str]) -> str:
    """The first line a child prints; empty if it ends or keeps silent."""
    lines: queue.Queue[str] = queue.Queue()
    pipe = process.stdout
    assert pipe is not None
    threading.Thread(target=lambda: lines.put(pipe.readline()), daemon=True).start()
    with suppress(queue.Empty):
        return lines.get(timeout=_GATEWAY_SECONDS).strip()
    return ""
