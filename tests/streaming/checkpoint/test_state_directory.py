"""Whose a state directory is: reported before anything in it is touched."""

import errno
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkRuntimeError
from structlog.testing import capture_logs

from lab.monitor_process import contents
from streaming.base.errors import CannotTellError, UsageError
from streaming.checkpoint.files import LocalFiles
from streaming.checkpoint.identity import (
    ACCEPTED_NUMBERS,
    ANOTHER_ONES,
    IDENTITY_FILE,
    REBUILD,
    REMEDY,
    STATE_LAYOUT,
    Identity,
    as_text,
    claim,
    refuse_anothers,
    stateful_tasks,
)
from streaming.checkpoint.state_directory import StateDirectory
from streaming.config.sections import Config, StateSection
from streaming.end_offsets.store import Topic
from streaming.monitor.offsets_topic import OffsetsTopic
from tests.faults.damage import left_by_former_release, left_by_older_release

IDENTITY = Identity(
    cluster_id="ZW1iZWRkZWQ",
    offsets_topic="__consumer_offsets",
    topic_id="ykfZRjoxTNC3Oq1z8S3kEA",
    partitions=50,
    shuffle_partitions=4,
    isolation="exact",
)
OTHERS: dict[str, Any] = {
    "cluster_id": "another",
    "offsets_topic": "copy",
    "topic_id": "another",
    "partitions": 100,
    "shuffle_partitions": 8,
    "isolation": "committed_only",
    "snapshot_format": 99,
    "state_layout": 99,
}


def test_directory_is_the_first_one_s_and_stays_so(tmp_path: Path) -> None:
    """Made where it is not, claimed by who comes first, and again by the same one after a restart."""
    directory = tmp_path / "state"

    claim(directory, IDENTITY)
    claim(directory, IDENTITY)

    assert asdict(IDENTITY) == json.loads((directory / IDENTITY_FILE).read_text())


@pytest.mark.parametrize("name", REMEDY)
def test_directory_of_another_one_is_refused(tmp_path: Path, name: str) -> None:
    """The error names what differs, what was found, what this one has, and the way out."""
    claim(tmp_path, replace(IDENTITY, **{name: OTHERS[name]}))

    told = f"{str(tmp_path)!r} of a monitor with {name} {OTHERS[name]!r}, this one has {getattr(IDENTITY, name)!r}, "
    told += f"accepted: {REMEDY[name]}"
    if name in ACCEPTED_NUMBERS:
        file = str(tmp_path / IDENTITY_FILE)
        told = f"{file!r} with {name} {OTHERS[name]!r}, accepted: {ACCEPTED_NUMBERS[name]}; {REMEDY[name]}"
    with pytest.raises(UsageError, match=re.escape(told)):
        claim(tmp_path, IDENTITY)


def test_directory_of_fewer_partitions_is_gone_on_from(tmp_path: Path) -> None:
    """The topic was grown; from then on fewer are refused."""
    grown = replace(IDENTITY, partitions=60)
    claim(tmp_path, IDENTITY)

    claim(tmp_path, grown)

    assert asdict(grown) == json.loads((tmp_path / IDENTITY_FILE).read_text())
    with pytest.raises(UsageError, match="of a monitor with partitions 60, this one has 50"):
        claim(tmp_path, IDENTITY)


@pytest.mark.parametrize("held", [None, "50", 0, -1])
def test_number_of_partitions_that_is_none_is_refused(tmp_path: Path, held: object) -> None:
    """It is no fewer."""
    (tmp_path / IDENTITY_FILE).write_text(json.dumps({**asdict(IDENTITY), "partitions": held}))

    with pytest.raises(UsageError, match=f"with partitions {held!r}, this one has 50"):
        claim(tmp_path, IDENTITY)


ZEROS = "A" * 22
"""What earlier releases wrote down where brokers have no topic ids."""


@pytest.mark.parametrize("former", [None, ZEROS])
def test_directory_of_brokers_without_topic_ids_is_gone_on_from_once_they_have_them(
    tmp_path: Path, former: str | None
) -> None:
    """An upgrade of brokers gives topics their ids; from then on another id is another topic."""
    old = replace(IDENTITY, topic_id=former)
    claim(tmp_path, old)
    claim(tmp_path, old)

    claim(tmp_path, IDENTITY)

    assert asdict(IDENTITY) == json.loads((tmp_path / IDENTITY_FILE).read_text())
    refuse_anothers("state.checkpoint", "s3a://b", as_text(old), IDENTITY)
    with pytest.raises(UsageError, match="of a monitor with topic_id"):
        claim(tmp_path, replace(IDENTITY, topic_id="another"))


def test_id_of_the_topic_is_kept_where_brokers_say_none(tmp_path: Path) -> None:
    """A client that gets no id, as from a broker that is yet to be upgraded, forgets none."""
    claim(tmp_path, IDENTITY)

    claim(tmp_path, replace(IDENTITY, topic_id=None))

    assert asdict(IDENTITY) == json.loads((tmp_path / IDENTITY_FILE).read_text())


def test_topic_that_is_given_an_id_while_it_is_read_is_the_same(tmp_path: Path) -> None:
    """The brokers are upgraded beside a running monitor: the id is written down, and another one refused."""
    log = offsets_topic(tmp_path, replace(IDENTITY, topic_id=None))

    log.refuse_another(described(50, None))
    log.refuse_another(described(50))

    assert IDENTITY == log.identity
    assert asdict(IDENTITY) == json.loads((tmp_path / IDENTITY_FILE).read_text())
    log.refuse_another(described(50, None))
    with pytest.raises(UsageError, match="topic_id"):
        log.refuse_another(described(50, "another"))


def offsets_topic(directory: Path, identity: Identity = IDENTITY) -> OffsetsTopic:
    """As it was found at a start."""
    log = OffsetsTopic(Config(state=StateSection(dir=directory)))
    log._identity = log._at_start = identity
    claim(directory, identity)
    return log


def described(partitions: int, topic_id: str | None = IDENTITY.topic_id) -> Topic:
    """The topic as brokers describe it."""
    return Topic(topic_id, IDENTITY.offsets_topic, partitions, dict.fromkeys(range(partitions), 1))


def test_topic_that_grows_while_it_is_read_is_noted(tmp_path: Path) -> None:
    """Once, in the log and where the next start looks; a broker that has yet to hear of it changes nothing."""
    log = offsets_topic(tmp_path)

    with capture_logs() as logged:
        for partitions in (50, 60, 50, 60):
            log.refuse_another(described(partitions))

    assert [("offsets_topic_grown", 60, 50)] == [(of["event"], of["partitions"], of["before"]) for of in logged]
    assert 60 == log.identity.partitions
    assert 60 == json.loads((tmp_path / IDENTITY_FILE).read_text())["partitions"]


@pytest.mark.parametrize("found", [described(49), described(60, "another"), described(50, "another")])
def test_topic_of_fewer_partitions_or_another_id_is_refused(tmp_path: Path, found: Topic) -> None:
    """It was deleted and made again."""
    with pytest.raises(UsageError, match="of a monitor with"):
        offsets_topic(tmp_path).refuse_another(found)

    assert asdict(IDENTITY) == json.loads((tmp_path / IDENTITY_FILE).read_text())


@pytest.mark.parametrize(("asked_for", "tasks"), [(None, 4), (4, 4), (8, 8)])
def test_stateful_tasks_are_those_that_the_directory_was_made_with_unless_asked_for(
    tmp_path: Path, asked_for: int | None, tasks: int
) -> None:
    """A new default makes no difference to what is there; another number that is asked for is refused by name."""
    claim(tmp_path, IDENTITY)

    assert tasks == stateful_tasks(tmp_path, asked_for)


@pytest.mark.parametrize(
    "text", [None, "", "{", "[1]", "{}", '{"shuffle_partitions": "4"}', '{"shuffle_partitions": 0}']
)
def test_new_directory_has_one_stateful_task(tmp_path: Path, text: str | None) -> None:
    """So has one that does not say how many it was made with: it is refused for what else is amiss."""
    if text is not None:
        (tmp_path / IDENTITY_FILE).write_text(text)

    assert 1 == stateful_tasks(tmp_path, None)
    assert 3 == stateful_tasks(tmp_path, 3)


def test_directory_from_before_layouts_had_numbers_is_refused(tmp_path: Path) -> None:
    """Spark would fail in the middle of it, and say nothing that helps."""
    held = {name: value for name, value in asdict(IDENTITY).items() if name != "state_layout"}
    (tmp_path / IDENTITY_FILE).write_text(json.dumps(held))

    with pytest.raises(UsageError, match=r"state_layout None, accepted: 3, 4, 5, 6 or \d; the release that wrote it"):
        claim(tmp_path, IDENTITY)


def test_directory_that_an_older_release_left_is_refused_by_name_and_may_be_rebuilt(tmp_path: Path) -> None:
    """A real one, of the layout before: not a byte of it changes until it is forgotten."""
    (tmp_path / IDENTITY_FILE).write_text(json.dumps({"topic_id": "any"}))
    left_by_older_release(tmp_path)
    held = json.loads((tmp_path / IDENTITY_FILE).read_text())
    identity = Identity(**{**held, "state_layout": STATE_LAYOUT})
    before = contents(tmp_path)

    with pytest.raises(UsageError, match=f"state_layout 2, accepted: 3, 4, 5, 6 or {STATE_LAYOUT}; .* or {REBUILD}"):
        claim(tmp_path, identity)
    assert before == contents(tmp_path)
    assert "checkpoint/commits/0" in before

    claim(tmp_path, identity, lambda _: LocalFiles(tmp_path / "checkpoint").forget())
    assert not any(name.startswith("checkpoint") for name in contents(tmp_path))


def test_directory_that_the_former_release_left_is_gone_on_from_wherever_it_is_now(tmp_path: Path) -> None:
    """A real one, made elsewhere: it says what it is of, and Spark finds the files that it notes the places of."""
    (tmp_path / IDENTITY_FILE).write_text("{}")
    left_by_former_release(tmp_path)
    noted = tmp_path / "checkpoint/state/0/_metadata/v2/0"
    identity = Identity(**{**json.loads((tmp_path / IDENTITY_FILE).read_text()), "state_layout": STATE_LAYOUT})
    held = StateDirectory(tmp_path, None, reads_uncommitted=True, clock_ms=lambda: 0)
    before = noted.read_text()

    held.claim(identity, rebuild=False)
    held.examine()

    (place,) = json.loads(noted.read_text().splitlines()[1])["stateStoreInfo"][0]["stateSchemaFilePaths"]
    assert asdict(identity) == json.loads((tmp_path / IDENTITY_FILE).read_text())
    assert Path(place.removeprefix("file:")).is_relative_to(tmp_path)
    assert Path(place.removeprefix("file:")).is_file()
    assert before.replace("/var/lib/group-monitor", str(tmp_path)) == noted.read_text()
    settled = contents(tmp_path)
    held.claim(identity, rebuild=False)
    held.examine()
    assert settled == contents(tmp_path)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EMFILE, "Too many open files"), CannotTellError),
        (PySparkRuntimeError("tried to connect, but: [Errno 24] Too many open files"), CannotTellError),
        (Py4JNetworkError("gone"), Py4JNetworkError),
        (Py4JError("An error occurred while calling o7.load"), Py4JError),
        (Py4JError("An error occurred while calling o7.load. Trace:\nNo such object"), UsageError),
        (OSError(errno.EIO, "Input/output error"), UsageError),
    ],
)
def test_checkpoint_that_cannot_be_read_now_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: type[Exception]
) -> None:
    """Without a descriptor, or the JVM's answer, it cannot be known: it is tried again, and nothing is forgotten."""

    def fail(_files: LocalFiles, _directory: str = "") -> list[str]:
        raise error

    held = StateDirectory(tmp_path, None, reads_uncommitted=True, clock_ms=lambda: 0)
    monkeypatch.setattr(LocalFiles, "names", fail)

    with pytest.raises(expected) as found:
        held.mark()
    assert expected is type(found.value)
    assert (expected is UsageError) == ("damaged" in str(found.value))


@pytest.mark.parametrize("text", ["", "{", "[1]", "\udcff"])
def test_directory_whose_identity_is_damaged_is_refused(tmp_path: Path, text: str) -> None:
    """No one can tell whose it is; it may be rebuilt."""
    (tmp_path / IDENTITY_FILE).write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(UsageError, match=f"damaged .*{IDENTITY_FILE}.* accepted: a whole one, or {REBUILD}"):
        claim(tmp_path, IDENTITY)
    claim(tmp_path, IDENTITY, lambda _: None)
    claim(tmp_path, IDENTITY)


@pytest.mark.parametrize("name", sorted(REMEDY.keys() - {*ANOTHER_ONES}))
def test_directory_of_another_layout_may_be_rebuilt(tmp_path: Path, name: str) -> None:
    """What its checkpoint was made with does not matter once that is forgotten, and only then is it ours."""
    claim(tmp_path, replace(IDENTITY, **{name: OTHERS[name]}))
    held: list[Any] = []

    claim(tmp_path, IDENTITY, lambda _: held.append(json.loads((tmp_path / IDENTITY_FILE).read_text())[name]))

    assert [OTHERS[name]] == held
    assert asdict(IDENTITY) == json.loads((tmp_path / IDENTITY_FILE).read_text())


@pytest.mark.parametrize("name", ANOTHER_ONES)
def test_directory_of_another_cluster_is_not_rebuilt(tmp_path: Path, name: str) -> None:
    """It is another monitor's, whatever process asks."""
    claim(tmp_path, replace(IDENTITY, **{name: OTHERS[name]}))
    forgotten: list[None] = []

    with pytest.raises(UsageError, match=name):
        claim(tmp_path, IDENTITY, lambda _: forgotten.append(None))
    assert not forgotten


def test_checkpoint_is_forgotten_and_nothing_else(tmp_path: Path) -> None:
    """Even one in a directory of an odd name, and after an earlier attempt that did not come to its end."""
    state = tmp_path / "a b%c"
    for name in ("checkpoint/commits/0", "checkpoint.forgotten/commits/0", "spool/0"):
        (state / name).parent.mkdir(parents=True)
        (state / name).touch()

    LocalFiles(state / "checkpoint").forget()

    assert ["spool"] == [path.name for path in state.iterdir()]
