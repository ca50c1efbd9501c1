"""`.ci/run`, what a build server runs, and `.ci/install`, by which it gets the programs that tests need.

Both run with stand-ins for Debian's tools on a PATH that has nothing else.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from lab.monitor_process import until
from tests import left_out

ROOT: Final = left_out.ROOT
TOOLS: Final = (
    "bash",
    "cat",
    "chmod",
    "cut",
    "dirname",
    "grep",
    "mkdir",
    "mv",
    "paste",
    "rm",
    "sh",
    "sleep",
    "sort",
    "touch",
)
PROGRAMS: Final = {
    "chromium": "chromium",
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
    "zsh": "zsh",
    "fish": "fish",
    "openssl": "openssl",
    "git": "git",
    "systemd-analyze": "systemd",
}
THEIRS: Final = "#!/bin/sh\nexit 0\n"

# What it was asked, and what stands in for Go's own building.
GO: Final = r"""#!/bin/sh
echo "$@" GOTOOLCHAIN=$GOTOOLCHAIN >>"$MACHINE/built"
[ -z "$GO_SAYS" ] || { printf 'first\n%s\n' "$GO_SAYS" >&2; exit 1; }
mkdir -p "$GOBIN"
printf '#!/bin/sh\n' >"$GOBIN/helm"; chmod 755 "$GOBIN/helm"
"""

# What a package's installation asks, and what it then may do.
APT_GET: Final = r"""#!/bin/sh
echo "$@" >>"$MACHINE/asked"
case "$*" in
*update) exit ${UPDATE:-0} ;;
esac
"$POLICY" prometheus start; echo "may start: $?" >>"$MACHINE/asked"
touch "$MACHINE/installing"
while [ -n "$WAIT" ]; do sleep 0.1; done
for program in $BRINGS; do printf '#!/bin/sh\n' >"$MACHINE/bin/$program"; chmod 755 "$MACHINE/bin/$program"; done
exit ${INSTALL:-0}
"""


@dataclass(frozen=True)
class Machine:
    """A machine with some programs, on which an installation is tried."""

    directory: Path

    def __post_init__(self) -> None:
        (self.directory / "bin").mkdir()
        for file in (".ci/install", "tests/programs.txt"):
            (self.checkout / file).parent.mkdir(parents=True)
            shutil.copy(ROOT / file, self.checkout / file)
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None
            (self.directory / "bin" / tool).symlink_to(found)
        self.put("apt-get", APT_GET)

    @property
    def checkout(self) -> Path:
        """Where it is run from."""
        return self.directory / "checkout"

    @property
    def policy(self) -> Path:
        """What packages ask whether they may start a service."""
        return self.directory / "policy-rc.d"

    def put(self, program: str, text: str = THEIRS) -> None:
        """A program on its PATH."""
        path = self.directory / "bin" / program
        path.write_text(text, "utf-8")
        path.chmod(0o755)

    def begin(
        self, *, user: int = 0, system: str = "debian", brings: Iterable[str] = PROGRAMS, **variables: str
    ) -> subprocess.Popen[str]:
        """Start the installation, whose packages bring these programs."""
        self.put("id", f"#!/bin/sh\necho {user}\n")
        (self.directory / "os-release").write_text(f"NAME=Any\nID={system}\n", "utf-8")
        return subprocess.Popen(  # noqa: S603 - ours
            [self.checkout / ".ci" / "install"],
            env={
                "PATH": str(self.directory / "bin"),
                "MACHINE": str(self.directory),
                "OS_RELEASE": str(self.directory / "os-release"),
                "POLICY": str(self.policy),
                "BRINGS": " ".join(brings),
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def install(self, **given: str | int | tuple[str, ...]) -> tuple[int, str]:
        """Exit status, and what it said on standard error."""
        running = self.begin(**given)  # type: ignore[arg-type] # handed on
        _, errors = running.communicate(timeout=60)
        return running.returncode, errors

    def asked(self) -> list[str]:
        """What apt-get was called with, and whether a service might be started then."""
        path = self.directory / "asked"
        return path.read_text("utf-8").splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


class TestInstall:
    """`.ci/install`."""

    def test_brings_what_is_missing_and_starts_no_service(self, machine: Machine) -> None:
        """Packages once each, after the lists are fetched; while they are installed, each start is forbidden."""
        for program in ("git", "openssl", "promtool", "systemd-analyze", "chromium-browser"):
            machine.put(program)

        assert (0, "") == machine.install()
        update, install, may_start = machine.asked()
        assert "-qq update" == update
        assert install.endswith("install -y --no-install-recommends fish prometheus prometheus-alertmanager zsh")
        assert "may start: 101" == may_start
        assert not machine.policy.exists()

    def test_table_is_that_of_the_tests(self, machine: Machine) -> None:
        """Every program that tests look for is brought, but helm, which Debian does not have and Go builds."""
        assert (0, "") == machine.install()
        assert " ".join(sorted({*PROGRAMS.values()})) == machine.asked()[1].partition("--no-install-recommends ")[2]
        assert {*PROGRAMS, "helm"} == {need.name for need in left_out.NEEDS if need.name in left_out._PROGRAMS}

    def test_go_builds_what_debian_does_not_have(self, machine: Machine) -> None:
        """Where Go is, by the version of the table, once, where tests look for it, for any account on any system."""
        for program in PROGRAMS:
            machine.put(program)
        machine.put("go", GO)
        (row,) = (line for line in (ROOT / "tests" / "programs.txt").read_text("utf-8").splitlines() if "go in" in line)

        assert [(0, ""), (0, "")] == [machine.install(user=1000, system="fedora") for _ in range(2)]
        (command,) = (machine.directory / "built").read_text("utf-8").splitlines()
        assert f"go {command}".startswith(f"{row.rpartition('|')[2].strip()} GOTOOLCHAIN=local")
        assert re.search(r"/helm@v\d+\.\d+\.\d+ ", command)
        assert (machine.checkout / ".cache" / "bin" / "helm").exists()

    def test_goes_on_without_what_go_does_not_build(self, machine: Machine) -> None:
        """Behind a wall, or by a Go that is too old: the last that it said is said, and Debian's packages come."""
        machine.put("go", GO)

        status, said = machine.install(GO_SAYS="requires go >= 1.25")
        assert (0, "may start: 101") == (status, machine.asked()[2])
        assert (
            "warning: helm: found none, and Go builds none (requires go >= 1.25); tests that need it are left out\n"
        ) == said

    def test_does_nothing_where_all_is_there(self, machine: Machine) -> None:
        """A second run asks for nothing."""
        machine.install()
        before = machine.asked()

        assert (0, "") == machine.install(UPDATE="100")
        assert before == machine.asked()

    def test_policy_that_was_there_is_there_again(self, machine: Machine) -> None:
        """As it was, with its mode, though it would have allowed the start."""
        machine.policy.write_text(THEIRS, "utf-8")
        machine.policy.chmod(0o700)

        assert (0, "") == machine.install()
        assert "may start: 101" == machine.asked()[2]
        assert (THEIRS, 0o100700) == (machine.policy.read_text("utf-8"), machine.policy.stat().st_mode)
        assert [machine.policy] == list(machine.directory.glob("policy*"))

    @pytest.mark.parametrize("policy", [None, THEIRS], ids=["no policy", "a policy"])
    @pytest.mark.parametrize(
        ("variables", "status"), [({"UPDATE": "100"}, 100), ({"INSTALL": "100"}, 100), ({"brings": ("zsh",)}, 1)]
    )
    def test_fails_if_that_fails(
        self, machine: Machine, variables: dict[str, str], status: int, policy: str | None
    ) -> None:
        """Also if a package does not bring its program; the policy is what it was."""
        if policy is not None:
            machine.policy.write_text(policy, "utf-8")

        assert status == machine.install(**variables)[0]
        assert policy == (machine.policy.read_text("utf-8") if machine.policy.exists() else None)

    def test_says_what_no_package_has_brought(self, machine: Machine) -> None:
        """By the names of the programs."""
        _, said = machine.install(brings=tuple(program for program in PROGRAMS if program not in ("fish", "amtool")))

        assert said.startswith("error: programs: found no amtool fish after the installation of chromium fish git ")

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
    def test_policy_is_restored_after_an_interruption(self, machine: Machine, number: signal.Signals) -> None:
        """By the run itself; if it was killed, by the next one."""
        machine.policy.write_text(THEIRS, "utf-8")
        running = machine.begin(WAIT="yes")
        until((machine.directory / "installing").exists, 60, "nothing is installed")
        children = _children_of(running.pid)
        for pid, by in ((running.pid, number), *((child, signal.SIGKILL) for child in children)):
            os.kill(pid, by)
        running.communicate(timeout=60)
        if number == signal.SIGKILL:
            assert 0 == machine.install()[0]

        assert 0 != running.returncode
        assert THEIRS == machine.policy.read_text("utf-8")
        assert [machine.policy] == list(machine.directory.glob("policy*"))

    @pytest.mark.parametrize(("user", "system"), [(1000, "debian"), (0, "ubuntu"), (0, "fedora")])
    def test_goes_on_elsewhere_and_says_what_is_left_out(self, machine: Machine, user: int, system: str) -> None:
        """Nothing is installed by another account, and on another system."""
        for program in PROGRAMS.keys() - {"fish", "chromium"}:
            machine.put(program)

        status, said = machine.install(user=user, system=system)
        assert 3 == status
        assert "not installed: chromium fish; tests that need them are left out" in said
        assert [] == machine.asked()


class TestRun:
    """`.ci/run`."""

    @pytest.mark.parametrize(
        ("install", "tests", "expected", "ran"),
        [
            (0, 0, 0, "test COMPLETE=yes"),
            (0, 2, 2, "test COMPLETE=yes"),
            (3, 0, 0, "test COMPLETE="),
            (100, 0, 100, None),
        ],
    )
    def test_everything_has_to_be_tested_where_it_could_be_installed(
        self, tmp_path: Path, install: int, tests: int, expected: int, ran: str | None
    ) -> None:
        """It ends with the status of the tests, or of an installation that failed."""
        (tmp_path / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
        for program, text in (
            (tmp_path / ".ci" / "install", f"#!/bin/sh\nexit {install}\n"),
            (tmp_path / "make", f'#!/bin/sh\necho "$1 COMPLETE=$COMPLETE" >ran\nexit {tests}\n'),
        ):
            program.write_text(text, "utf-8")
            program.chmod(0o755)
        path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
        done = subprocess.run([tmp_path / ".ci" / "run"], env={"PATH": path}, timeout=60, check=False)  # noqa: S603 - ours

        assert expected == done.returncode
        assert ran == ((tmp_path / "ran").read_text("utf-8").strip() if (tmp_path / "ran").exists() else None)


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()]
