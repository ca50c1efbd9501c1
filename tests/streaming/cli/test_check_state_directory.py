"""What `check` says of the state directory, without a broker."""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming.checkpoint.lock import LOCK
from streaming.cli.check import _state_dir
from streaming.cli.run import _warn_of_open_state
from streaming.config.loading import Config


def config(directory: Path, kind: str = "log", checkpoint: str | None = None) -> Config:
    state = {"dir": str(directory), "checkpoint_location": checkpoint}
    return Config.model_validate({"state": state, "source": {"kind": kind}})


@pytest.mark.parametrize("name", ["state", "a b", "100% #1 [x] é"])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    """It is made if it is not there."""
    found = _state_dir(config(tmp_path / name))

    assert ("ok", f"{tmp_path / name}, to be made") == (found.status, found.detail)


def test_colon_is_refused_where_there_is_a_checkpoint(tmp_path: Path) -> None:
    """In one line that names the option; polled groups need none."""
    found = _state_dir(config(tmp_path / "a:b"))
    elsewhere = _state_dir(config(tmp_path, checkpoint="/a:b"))

    assert ("fail", "fail") == (found.status, elsewhere.status)
    assert found.detail.startswith(f"state.dir: found '{tmp_path}/a:b' with a colon in its path, accepted: ")
    assert elsewhere.detail.startswith("state.checkpoint_location: found '/a:b' with a colon in its path, accepted: ")
    assert "ok" == _state_dir(config(tmp_path / "a:b", kind="admin")).status


def test_checkpoint_that_an_earlier_release_hid_is_named(tmp_path: Path) -> None:
    """Whose it is, `run` finds out; a directory of that name with more in it is somebody's own."""
    hidden = tmp_path / "a%20b" / "checkpoint"
    hidden.mkdir(parents=True)
    (hidden / "metadata").touch()
    found = _state_dir(config(tmp_path / "a b"))
    (tmp_path / "a%20b" / "monitor.json").touch()

    assert "note" == found.status
    assert str(hidden.parent) in found.detail
    assert "ok" == _state_dir(config(tmp_path / "a b")).status


@pytest.mark.parametrize("mode", [0o700, 0o770, 0o2775, 0o777, 0o1777, 0o702])
def test_directory_that_others_may_write_to_is_named(tmp_path: Path, mode: int) -> None:
    """Its group may, as on a volume of Kubernetes; others decide what the monitor says: `check` and `run` say so."""
    directory = tmp_path / "state"
    directory.mkdir()
    directory.chmod(mode)
    is_open = bool(mode & 0o002)
    found = _state_dir(config(directory))
    elsewhere = _state_dir(config(tmp_path, checkpoint=f"file://{directory}"))
    with capture_logs() as logged:
        _warn_of_open_state(config(directory))

    assert ("note" if is_open else "ok") == found.status == elsewhere.status
    assert is_open == found.detail.startswith(f"state.dir: found '{directory}', which any account of this machine may")
    assert is_open == elsewhere.detail.startswith(f"state.checkpoint_location: found '{directory}', which any account")
    assert [("state_open_to_others", found.detail)] * is_open == [(of["event"], of["reason"]) for of in logged]


def test_files_of_another_account_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a monitor that was run by root once: the directory may be written to, and `run` would end."""
    (tmp_path / LOCK).touch()
    assert "ok" == _state_dir(config(tmp_path)).status
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path / LOCK, os.W_OK))
    found = _state_dir(config(tmp_path))

    assert "fail" == found.status
    assert found.detail.startswith(f"state.dir: found '{tmp_path / LOCK}' of another account, accepted: ")
