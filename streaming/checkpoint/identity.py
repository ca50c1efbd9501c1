"""What a state directory is made for: one cluster, one offsets topic, one number of stateful tasks.

It says so in `monitor.json`, so that a wrong configuration is refused before anything is touched.

    topic id written down   of the topic there is       it is
    one                     the same                    the same topic
    one                     another                     another topic: refused
    none, or zeros          any                         the same, for all that is known; the id is written down
    one                     none                        the same, for all that is known; the id stays

Brokers before 2.8 have no topic ids, and give each topic one when they are upgraded. Earlier releases wrote such an id
down as zeros. That another topic has the place of one without an id is found by what is read (`log_continuity.py`).
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from coordinator_model.state import snapshot
from streaming.base.atomic_files import replace
from streaming.base.errors import UsageError

IDENTITY_FILE: Final = "monitor.json"


STATE_LAYOUT: Final = 7
"""Of the state's keys and variables (`processor.py`) and of the position in the log (`source.py`). 1 had a key for each
partition, and no number in its identity; 2 the positions of Spark's Kafka source; 3 no packs; 4 none of
what is recent; 5 keys that do not say of which partition of the log they are; 6 text in each variable but packs,
and no share partitions."""


STATEFUL_TASKS: Final = 1
"""Of a new state directory. Each costs a micro-batch 0.03 s of processor, whatever it brings; a first catch-up has all
processors with one of them, too (`first_reading`)."""


RESUMABLE_LAYOUTS: Final = (3, 4, 5, 6)
"""Beside our own: what such state lacks is made when it is first used (`former_state.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the checkpoint is of. A difference in any field makes it another one's, but for a topic that was grown."""

    cluster_id: str
    offsets_topic: str
    topic_id: str | None
    partitions: int
    shuffle_partitions: int
    isolation: str
    snapshot_format: int = snapshot.FORMAT
    state_layout: int = STATE_LAYOUT


def known_id(topic_id: object) -> str | None:
    """A topic id that was written down, or that brokers have; None where it says nothing."""
    return topic_id if isinstance(topic_id, str) and topic_id.strip("A") else None


def may_be_one_topic(held: object, found: object) -> bool:
    """Whether two topic ids are those of one topic, for all that is known."""
    former, now = known_id(held), known_id(found)
    return None in (former, now) or former == now


REBUILD: Final = "run --rebuild, which reads the log from its beginning"


REMEDY: Final = {
    "cluster_id": "kafka.bootstrap_servers of the same cluster, or another state.dir",
    "offsets_topic": "the same kafka.offsets_topic, or another state.dir",
    "topic_id": f"the same offsets topic; recreated, it needs {REBUILD}",
    "partitions": f"the offsets topic as it was, or {REBUILD}",
    "shuffle_partitions": f"the same spark.shuffle_partitions, or {REBUILD}",
    "isolation": f"the same source.isolation, or {REBUILD}",
    "snapshot_format": f"the release that wrote it, or {REBUILD}",
    "state_layout": f"the release that wrote it, or {REBUILD}",
}


ACCEPTED_NUMBERS: Final = {
    "snapshot_format": str(snapshot.FORMAT),
    "state_layout": f"{', '.join(map(str, RESUMABLE_LAYOUTS))} or {STATE_LAYOUT}",
}
"""What a release counts up where it writes otherwise, and which of it this one reads."""


ANOTHER_ONES: Final = ("cluster_id", "offsets_topic")
"""What makes it another monitor's directory, which is not ours to rebuild."""


Forget = Callable[[Mapping[str, Any] | None], object]


def claim(directory: Path, identity: Identity, forget: Forget | None = None) -> Mapping[str, Any] | None:
    """Make the state directory this identity's, or see that it is; returns what it said before, None if nothing.

    Args:
        directory: made where it is not.
        identity: who wants it.
        forget: forgets what is in it, given whose it is if that can be read; what it was made with does not matter.

    Raises:
        UsageError: it belongs to another one, is damaged, or cannot be written.
    """
    path = directory / IDENTITY_FILE
    with _writable(directory):
        directory.mkdir(parents=True, exist_ok=True)
        held = _identity_in(path) if path.exists() else None
    former = held
    if held is not None and known_id(identity.topic_id) is None:
        identity = dataclasses.replace(identity, topic_id=known_id(held.get("topic_id")))
    wanted = asdict(identity)
    if held is not None and held.get("state_layout") in RESUMABLE_LAYOUTS:
        held = {**held, "state_layout": identity.state_layout}
    if path.exists() and forget is None and held is None:
        raise damaged(directory, f"{IDENTITY_FILE} is no JSON object")
    if held is not None:
        _same(directory, held, {name: wanted[name] for name in (wanted if forget is None else ANOTHER_ONES)})
    with _writable(directory):
        if forget is not None:
            forget(former)
        if former != wanted:
            write(directory, identity)
    return former


def write(directory: Path, identity: Identity) -> None:
    """Say whose the state directory is. Raises OSError."""
    replace(directory / IDENTITY_FILE, as_text(identity))


CHECKPOINT_IDENTITY_FILE: Final = "identity.json"
"""The same in the checkpoint: it shows whose the checkpoint is without `monitor.json`."""


def refuse_anothers(option: str, place: str, text: str, identity: Identity) -> None:
    """See that a checkpoint, which an option says the place of, is this identity's by its text. Raises UsageError.

    How many partitions the topic had then does not count, unless it has fewer now.
    """
    try:
        held = json.loads(text)
        if held["state_layout"] in RESUMABLE_LAYOUTS:
            held["state_layout"] = identity.state_layout
        held["partitions"] = max(held["partitions"], identity.partitions)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged(place, f"{CHECKPOINT_IDENTITY_FILE} does not say whose it is", option) from error
    _same(place, held, asdict(identity), option, CHECKPOINT_IDENTITY_FILE)


def as_text(identity: Identity) -> str:
    """What is written down of it."""
    return json.dumps(asdict(identity), indent=1) + "\n"


def stateful_tasks(directory: Path, asked_for: int | None) -> int:
    """How many stateful tasks a run has: as many as are asked for, else as the state directory was made with."""
    held = None
    with suppress(OSError):
        held = (_identity_in(directory / IDENTITY_FILE) or {}).get("shuffle_partitions")
    return asked_for or (held if isinstance(held, int) and held > 0 else STATEFUL_TASKS)


def same(directory: Path, held: Identity, found: Identity) -> None:
    """See that what the state directory is of is still what there is; there may be more of it. Raises UsageError."""
    _same(directory, asdict(held), asdict(found))


def _same(
    directory: Path | str,
    held: Mapping[str, Any],
    wanted: Mapping[str, Any],
    option: str = "state.dir",
    file: str = IDENTITY_FILE,
) -> None:
    for name, value in wanted.items():
        if not _is_as_wanted(name, held.get(name), value):
            if name in ACCEPTED_NUMBERS:
                raise UsageError(
                    f"{option}: found {f'{directory}/{file}'!r} with {name} {held.get(name)!r}, accepted: "
                    f"{ACCEPTED_NUMBERS[name]}; {REMEDY[name]}"
                )
            raise UsageError(
                f"{option}: found {str(directory)!r} of a monitor with {name} {held.get(name)!r}, this one has "
                f"{value!r}, accepted: {REMEDY[name]}"
            )


def _is_as_wanted(name: str, held: object, wanted: Any) -> bool:  # noqa: ANN401 - of any field
    if name == "topic_id":
        return may_be_one_topic(held, wanted)
    return held == wanted or (name == "partitions" and _is_grown(held, wanted))


def _is_grown(held: object, found: int) -> bool:
    return isinstance(held, int) and 0 < held < found


@contextmanager
def _writable(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"state.dir: found {str(directory)!r}: {error}, accepted: a writable directory") from error


def _identity_in(path: Path) -> dict[str, Any] | None:
    """What the file says; None where it is damaged."""
    try:
        held = json.loads(path.read_bytes())
    except ValueError:
        return None
    return held if isinstance(held, dict) else None


def damaged(directory: Path | str, reason: str, option: str = "state.dir") -> UsageError:
    """What to say of a state directory from which no run can go on."""
    return UsageError(f"{option}: found {str(directory)!r}, damaged ({reason}), accepted: a whole one, or {REBUILD}")
