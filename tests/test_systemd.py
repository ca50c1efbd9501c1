"""conf/systemd/group-monitor.service: systemd takes it, and it fits the program."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from streaming.base.errors import UsageError
from streaming.cli.run import load_config
from streaming.config.loading import load
from tests.command_lines import refused
from tests.left_out import needs

ROOT: Final = Path(__file__).resolve().parent.parent
UNIT: Final = ROOT / "conf" / "systemd" / "group-monitor.service"
TEXT: Final = UNIT.read_text("utf-8")
SETTINGS: Final = dict(re.findall(r"^(\w+)=(.*)$", TEXT, re.MULTILINE))


@needs("systemd-analyze")
@pytest.mark.parametrize(("line", "expected"), [("", ""), ("KilMode=mixed\n", "Unknown key")], ids=["ours", "misspelt"])
def test_systemd_takes_it(tmp_path: Path, line: str, expected: str) -> None:
    """Every key and value is one that it knows; the program's place is Python's here."""
    program = SETTINGS["ExecStart"].partition(" ")[0]
    unit = tmp_path / UNIT.name
    unit.write_text(TEXT.replace(program, sys.executable).replace("[Service]\n", f"[Service]\n{line}"), "utf-8")
    said = subprocess.run(  # noqa: S603 - our own words
        ["systemd-analyze", "verify", "--man=no", str(unit)],  # noqa: S607 - of the path, as the one that would run it
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    ours = "".join(each for each in said.stderr.splitlines() if UNIT.name in each)
    assert (expected in ours) if expected else (ours == "")


def test_what_it_starts_is_accepted() -> None:
    """The program's command and options, with the configuration that the first lines write."""
    program, *words = shlex.split(SETTINGS["ExecStart"])
    (made,) = re.findall(rf"^# +{program} (config init \S+)", TEXT, re.MULTILINE)

    assert "" == refused(words)
    assert "" == refused(shlex.split(made))
    assert words[-1] == made.split()[-1]


def test_state_is_where_it_may_write() -> None:
    """The directory that systemd makes for it is `state.dir`, whatever the file says."""
    variables = dict(word.split("=", 1) for word in SETTINGS["Environment"].split())

    assert f"/var/lib/{SETTINGS['StateDirectory']}" == str(load(None, variables).state.dir)
    assert ("0700", "yes", "strict") == tuple(
        SETTINGS[of] for of in ("StateDirectoryMode", "DynamicUser", "ProtectSystem")
    )


def test_a_wrong_configuration_is_not_tried_again() -> None:
    """The exit status of usage errors ends the restarts; a stop amid the start counts as one."""
    with pytest.raises(UsageError) as refused_as:
        load_config(None, ["http.port=none"])

    assert SETTINGS["RestartPreventExitStatus"] == str(refused_as.value.exit_status)
    assert "on-failure" == SETTINGS["Restart"]
