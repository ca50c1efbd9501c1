"""Another account of the same machine: it may drive nothing and read nothing of a running monitor.

The list of ports and files is the kernel's, of all processes that the monitor is made of, so that none is forgotten.
"""

import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from lab.monitor_process import CommandProcess, MonitorProcess, marked_processes, until
from streaming.demo.embedded_broker import EmbeddedBroker
from tests.integration.test_permissions import somebody_s_group

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]

# Commands of py4j's callback server (drop an object, shut down, call one), and words for Spark's RPC and for HTTP.
HOSTILE: Final = (
    b"g\np0\ne\n",
    b"g\np1\ne\n",
    b"s\n",
    b"c\np0\nonQueryTerminated\nn\ne\n",
    b"A\nwrong\ne\n",
    b"\x00\x00\x00\x00\x00\x00\x00\x15\x03" + bytes(12),
    b"GET / HTTP/1.0\r\n\r\n",
    os.urandom(64),
)
KNOCK: Final = """
import encodings.idna, json, os, socket, sys  # another account may not read the rest of this Python
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
port, *words = json.loads(sys.argv[1])
answers = []
for host in ("127.0.0.1", "::1"):
    for word in words:
        try:
            with socket.create_connection((host, port), timeout=1) as knocking:
                knocking.settimeout(0.5)
                knocking.sendall(bytes.fromhex(word))
                answers.append(knocking.recv(4096).hex())
        except OSError as error:
            answers.append(type(error).__name__)
print(json.dumps(answers))
"""


def listening_ports(pids: set[int]) -> dict[int, str]:
    """TCP port → address it listens on, of these processes, as the kernel has it."""
    inodes = set()
    for pid in pids:
        for descriptor in descriptors(pid):
            try:
                found = re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))
            except OSError:  # closed meanwhile
                continue
            if found:
                inodes.add(found[1])
    ports = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                address, _, port = words[1].partition(":")
                ports[int(port, 16)] = address
    return ports


def descriptors(pid: int) -> list[Path]:
    """What a process has open; nothing if it has ended meanwhile, as a child that sets a file's mode does."""
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []


def written_files(process: CommandProcess) -> list[Path]:
    """Files that a command's processes have open to write to, as the kernel has it, but for its standard streams."""
    found = set()
    ours = {Path(f"/proc/{process.pid}/fd/{number}").readlink() for number in range(3)}
    for pid, _ in marked_processes(process._mark):
        for descriptor in descriptors(pid):
            with suppress(OSError):  # closed meanwhile
                held = Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text("ascii")
                flags = int(re.findall(r"flags:\s+(\d+)", held)[0], 8)
                path = descriptor.readlink()
                if path not in ours and flags & os.O_ACCMODE != os.O_RDONLY and path.is_file():
                    found.add(path)
    return sorted(found)


def knock(port: int) -> list[str]:
    """What the port answers another account, in hexadecimal digits, or the name of the error."""
    command = [sys.executable, "-S", "-I", "-c", KNOCK, json.dumps([port, *(word.hex() for word in HOSTILE)])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 - our own words
    answers: list[str] = json.loads(done.stdout)
    return answers


class Watched:
    """A monitor, and what the kernel says of it."""

    def __init__(self, broker: EmbeddedBroker, monitor: MonitorProcess, state: Path) -> None:
        self.broker, self.monitor, self.state = broker, monitor, state
        pids = {pid for pid, _ in marked_processes(monitor._mark)}
        self.ports = listening_ports(pids)

    def batches(self) -> float:
        """How many micro-batches it has finished."""
        return sum(self.monitor.samples()["group_monitor_batch_seconds_count"].values())


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    directory = tmp_path_factory.mktemp("account")
    with EmbeddedBroker(directory / "broker") as broker:
        somebody_s_group(broker.bootstrap_servers)
        state = directory / "state"
        with MonitorProcess(directory / "run", broker.bootstrap_servers, state=state) as monitor:
            monitor.await_ready()
            yield Watched(broker, monitor, state)


@pytest.fixture(scope="module")
def answers(watched: Watched) -> dict[int, list[str]]:
    """What another account was answered by each port but the page's, when it had said all its words."""
    page = int(watched.monitor.url.rpartition(":")[2])
    return {port: knock(port) for port in watched.ports if port != page}


def test_no_port_is_open_to_other_machines(watched: Watched) -> None:
    """The page, Spark's ports and the callback server are there, each on loopback."""
    loopback = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}

    assert 4 <= len(watched.ports)
    assert {} == {port: address for port, address in watched.ports.items() if address not in loopback}


@pytest.mark.usefixtures("answers")
def test_another_account_stops_nothing(watched: Watched) -> None:
    """Commands to every port change nothing: the stream goes on, is followed, and the monitor stays ready."""
    before = watched.batches()
    somebody_s_group(watched.broker.bootstrap_servers)

    until(lambda: watched.batches() > before, 90, "no batch is finished, or none is heard of")
    time.sleep(1)
    assert watched.monitor.is_ready()
    assert watched.monitor.exit_status is None


def test_callbacks_take_no_command_without_the_secret(answers: dict[int, list[str]]) -> None:
    """Nothing but the page answers anything that is not a refusal."""
    # `!y` is py4j's word for success.
    assert {} == {port: said for port, said in answers.items() if any("2179" in each for each in said)}


def test_files_are_this_account_s_alone(watched: Watched) -> None:
    """No one else reads what the state directory holds: names, hosts, commit metadata, logs."""
    assert 0o700 == stat.S_IMODE(watched.state.stat().st_mode)
    files = [path for path in watched.state.rglob("*") if path.is_file() and not path.is_symlink()]

    assert len(files) > 10
    assert [] == [str(path) for path in files if is_open_to_others(path)]


def test_files_written_elsewhere_are_this_account_s_alone(watched: Watched) -> None:
    """What the kernel says is being written to, wherever that is: RocksDB works below Java's temporary directory."""
    files = written_files(watched.monitor)

    assert {"spark.log", "lock"} <= {path.name for path in files}
    assert any(not path.is_relative_to(watched.state) for path in files)
    assert [] == [str(path) for path in files if is_open_to_others(path)]


def is_open_to_others(path: Path) -> bool:
    """Whether another account may do anything with it; one that is gone meanwhile is not."""
    with suppress(FileNotFoundError):
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    return False
