"""One monitor at a time writes to a checkpoint, in any state directory; wall clocks are not compared."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming.base.errors import UsageError
from streaming.checkpoint.files import LocalFiles
from streaming.checkpoint.lease import LEASE_FILE, LOOK_SECONDS, RENEW_SECONDS, TERM_SECONDS, Lease, owner_of

FOUND = "state.checkpoint_location: found 's3a://bucket/state'"


class Time:
    """Seconds that go by only while somebody sleeps; what happens meanwhile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.meanwhile: Callable[[float], object] = lambda _: None

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.meanwhile(self.seconds)


@pytest.fixture
def time() -> Time:
    return Time()


def lease(directory: Path, owner: str, time: Time) -> Lease:
    """Of a monitor; its thread does not renew it within the time of a test."""
    return Lease(LocalFiles(directory), FOUND, owner, clock=time, sleep=time.sleep)


def is_there(directory: Path) -> bool:
    return (directory / LEASE_FILE).exists()


def test_free_checkpoint_is_taken_at_once_and_given_back(tmp_path: Path, time: Time) -> None:
    """A stop leaves nothing that another one would have to wait for."""
    first = lease(tmp_path, "first", time)
    first.take()
    assert is_there(tmp_path)
    first.release()
    second = lease(tmp_path, "second", time)
    second.take()
    second.release()

    assert (0.0, False) == (time.seconds, is_there(tmp_path))


def test_second_monitor_is_refused_while_the_first_renews(tmp_path: Path, time: Time) -> None:
    """In one line: the checkpoint, who has it, and what helps; within one renewal."""
    first = lease(tmp_path, "first", time)
    first.take()
    time.meanwhile = lambda now: first.renew() if now % RENEW_SECONDS == 0 else None

    with pytest.raises(UsageError, match=f"^{FOUND} in use by process [0-9]+ on .*, accepted: .* --standby"):
        lease(tmp_path, "second", time).take()
    assert time.seconds <= RENEW_SECONDS
    first.refuse_lost()
    first.release()


def test_lease_that_does_not_change_is_taken_over(tmp_path: Path, time: Time) -> None:
    """After a term of one's own clock: its owner was killed. Its own time does not matter, nor that of its file."""
    first = lease(tmp_path, "first", time)
    first.take()
    first._thread.stop()
    second = lease(tmp_path, "second", time)
    second.take()

    assert TERM_SECONDS <= time.seconds <= TERM_SECONDS + 4 * LOOK_SECONDS
    second.refuse_lost()
    second.release()


def test_who_stands_by_waits_until_the_owner_is_gone(tmp_path: Path, time: Time) -> None:
    """It has the checkpoint a term after the last renewal; meanwhile it is asked whether to go on."""
    first = lease(tmp_path, "first", time)
    first.take()
    last = 20 * RENEW_SECONDS
    time.meanwhile = lambda now: first.renew() if now % RENEW_SECONDS == 0 and now <= last else None
    looks = []
    second = lease(tmp_path, "second", time)
    second.take(wait=True, look=lambda: looks.append(time.seconds))
    first._thread.stop()

    assert last + TERM_SECONDS <= time.seconds <= last + TERM_SECONDS + 4 * LOOK_SECONDS
    assert looks[:2] == [0.0, LOOK_SECONDS]
    second.release()


def test_who_stands_by_takes_what_is_given_back(tmp_path: Path, time: Time) -> None:
    """Without a term: a stop is no riddle."""
    first = lease(tmp_path, "first", time)
    first.take()
    time.meanwhile = lambda now: first.release() if now == LOOK_SECONDS else None
    second = lease(tmp_path, "second", time)
    second.take(wait=True)

    assert time.seconds <= 4 * LOOK_SECONDS
    second.release()


def test_restart_on_the_same_state_directory_does_not_wait(tmp_path: Path, time: Time) -> None:
    """Whose lock it has, so the writer of the lease has ended."""
    killed = lease(tmp_path, "same", time)
    killed.take()
    killed._thread.stop()
    again = lease(tmp_path, "same", time)
    again.take()

    assert 0.0 == time.seconds
    again.release()


def test_of_two_that_saw_the_same_one_has_it(tmp_path: Path, time: Time) -> None:
    """Both have waited for a term; who wrote last has it, and the other one is refused."""
    dead = lease(tmp_path, "dead", time)
    dead.take()
    dead._thread.stop()
    first, second = lease(tmp_path, "first", time), lease(tmp_path, "second", time)

    def other_writes(now: float) -> None:
        if now >= TERM_SECONDS + LOOK_SECONDS:
            second._write()

    time.meanwhile = other_writes
    with pytest.raises(UsageError, match="in use by process"):
        first.take()
    assert second._is_ours(second._read())


def test_owner_that_stood_still_ends_once_another_one_has_it(tmp_path: Path, time: Time) -> None:
    """A process that was stopped, or a machine that slept: it finds out before it writes the lease, and says so."""
    first = lease(tmp_path, "first", time)
    first.take()
    first._thread.stop()
    second = lease(tmp_path, "second", time)
    second.take()
    held = (tmp_path / LEASE_FILE).read_text()
    with capture_logs() as lines:
        first.renew()
        first.renew()

    assert (["lease_lost"], held) == ([line["event"] for line in lines], (tmp_path / LEASE_FILE).read_text())
    with pytest.raises(UsageError, match=f"^{FOUND} taken over by process"):
        first.refuse_lost()
    first.release()
    assert is_there(tmp_path)
    second.release()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_lease_that_says_nothing_is_watched_as_any(tmp_path: Path, time: Time, text: str) -> None:
    """Its owner may have been killed while it wrote; or it is written just now."""
    (tmp_path / LEASE_FILE).write_text(text)
    taken = lease(tmp_path, "second", time)
    taken.take()

    assert time.seconds >= TERM_SECONDS
    assert json.loads((tmp_path / LEASE_FILE).read_text())["owner"] == "second"
    taken.release()


def test_lease_is_there_again_after_the_checkpoint_was_forgotten(tmp_path: Path, time: Time) -> None:
    """Its file goes with the rest."""
    held = lease(tmp_path / "checkpoint", "first", time)
    held.take()
    LocalFiles(tmp_path / "checkpoint").forget()
    held.renew()

    assert is_there(tmp_path / "checkpoint")
    held.release()


def test_copy_of_a_state_directory_is_another_owner(tmp_path: Path) -> None:
    """It may be started while the first one runs, elsewhere or here."""
    for name in ("first", "copy"):
        (tmp_path / name).mkdir()

    assert owner_of(tmp_path / "first", "id") == owner_of(tmp_path / "first", "id")
    assert owner_of(tmp_path / "first", "id") != owner_of(tmp_path / "copy", "id")
