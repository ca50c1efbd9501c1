"""What can be done to a checkpoint: each damage, and its undoing.

A machine that fails leaves files short, empty or full of zeros; people delete what they take for a cache; and a
release finds what an earlier one has left.
"""

import json
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from streaming.checkpoint.identity import IDENTITY_FILE
from streaming.checkpoint.location import CHECKPOINT
from streaming.checkpoint.lock import JVM_LOCK, LOCK
from streaming.checkpoint.resume_file import RESUME_FILE

Damage = Callable[[Path], None]

REFUSED_FILE: Final = Path(__file__).with_name("state_layout_2.tar.gz")
GONE_ON_FROM_FILE: Final = Path(__file__).with_name("state_layout_3.tar.gz")
LAYOUT_6_FILE: Final = Path(__file__).with_name("state_layout_6.tar.gz")
LEFT_BEHIND: Final = 140
"""Events of the story that those monitors had read who left these."""

KEPT_ASIDE: Final = ".whole"
WRITTEN: Final = dict.fromkeys(
    ("spark.log", RESUME_FILE, "end-offsets.json", "events.db", "events.db-wal", "events.ndjson", LOCK, JVM_LOCK), ""
)
"""Files of the state directory that a run may write before it finds out."""


def _newest(directory: Path, pattern: str = "[0-9]*") -> Path:
    found = [path for path in directory.glob(pattern) if path.name.partition(".")[0].isdecimal()]
    return max(found, key=lambda path: int(path.name.partition(".")[0]))


def cut_offsets(state: Path) -> None:
    """The newest entry of Spark's log of offsets is short."""
    path = _newest(state / CHECKPOINT / "offsets")
    path.write_bytes(path.read_bytes()[:40])


def garble_offsets(state: Path) -> None:
    """The newest entry of Spark's log of offsets is full of zeros."""
    path = _newest(state / CHECKPOINT / "offsets")
    path.write_bytes(bytes(path.stat().st_size))


def lose_offsets(state: Path) -> None:
    """Spark's log of offsets is gone."""
    shutil.rmtree(state / CHECKPOINT / "offsets")


def lose_checkpoint(state: Path) -> None:
    """All of the checkpoint is gone."""
    shutil.rmtree(state / CHECKPOINT)


def _state_files(state: Path) -> list[Path]:
    """The newest file of state of each task."""
    tasks = [path for path in (state / CHECKPOINT / "state" / "0").iterdir() if path.name.isdecimal()]
    return [_newest(task, "[0-9]*.changelog") for task in tasks if any(task.glob("[0-9]*.changelog"))]


def garble_state(state: Path) -> None:
    """The newest changes of the state are full of zeros."""
    for path in _state_files(state):
        path.write_bytes(bytes(path.stat().st_size))


def lose_state(state: Path) -> None:
    """The state is gone, and all else is there."""
    shutil.rmtree(state / CHECKPOINT / "state")


def older_layout(state: Path) -> None:
    """Left by a release with another layout of the state."""
    path = state / IDENTITY_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "state_layout": 1}))


def older_snapshots(state: Path) -> None:
    """Left by a release that wrote groups down otherwise."""
    path = state / IDENTITY_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "snapshot_format": 0}))


def left_by_older_release(state: Path) -> None:
    """What a real monitor left whose layout no one reads any more."""
    _left(state, REFUSED_FILE)


def left_by_former_release(state: Path) -> None:
    """What a real monitor left of the release before packs, a moment ago."""
    _left(state, GONE_ON_FROM_FILE)
    path = state / RESUME_FILE
    now_ms = time.time_ns() // 1_000_000
    path.write_text(json.dumps({**json.loads(path.read_text()), "read_ms": now_ms, "seen_ms": now_ms}))


def _left(state: Path, file: Path) -> None:
    """All but which topic it is of: that is the log here."""
    path = state / IDENTITY_FILE
    held = json.loads(path.read_text())
    topic = {name: held[name] for name in ("offsets_topic", "topic_id") if name in held}
    shutil.rmtree(state)
    state.mkdir()
    with tarfile.open(file) as left:
        left.extractall(state, filter="data")
    path.write_text(json.dumps({**json.loads(path.read_text()), **topic}))


DAMAGES: Final[dict[str, Damage]] = {
    damage.__name__: damage
    for damage in (
        cut_offsets,
        garble_offsets,
        lose_offsets,
        lose_checkpoint,
        older_layout,
        older_snapshots,
        garble_state,
        lose_state,
    )
}
"""By name; the last two are found out by Spark only."""


@contextmanager
def done(state: Path, damage: Damage) -> Iterator[None]:
    """Do it, and undo it afterwards."""
    aside = state.with_name(state.name + KEPT_ASIDE)
    shutil.copytree(state, aside, symlinks=True)
    try:
        damage(state)
        yield
    finally:
        # The directory itself may be a mounted disk's.
        for path in state.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copytree(aside, state, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(aside)
