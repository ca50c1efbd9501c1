"""How hard Hypothesis looks, by the profiles of `tests/conftest.py`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty

from lab.builders import offset_commit
from tests.histories import at, history
from tests.side_by_side import lawful, log_of

ROOT: Final = Path(__file__).resolve().parent.parent

MAX_EXAMPLES: Final = 25

# Many examples fail, and each can be made smaller.
FAILING: Final = """
from pathlib import Path
from hypothesis import given, strategies
@given(strategies.lists(strategies.integers(), min_size=3))
def test_fails(numbers):
    with Path("ran").open("a") as ran:
        ran.write("once\\n")
    assert sum(numbers) < 1000, "what is wrong"
"""


@pytest.mark.parametrize(("profile", "is_small"), [("", False), ("smallest", True)])
def test_what_failed_is_shown_as_it_was_found(tmp_path: Path, profile: str, is_small: bool) -> None:
    """It is not made smaller for minutes, at whose end the time-out is reported instead; unless that is asked for."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"), "utf-8")
    (tmp_path / "test_failing.py").write_text(FAILING, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 240\n", "utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "HYPOTHESIS_PROFILE"}
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "pytest", str(tmp_path)],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT), **({"HYPOTHESIS_PROFILE": profile} if profile else {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "what is wrong" in done.stdout
    assert is_small == ("numbers=[0, 0, 1000]" in done.stdout)
    assert is_small != ("timeout: 240" in done.stdout)
    # Each example once, and the one that fails once more.
    assert is_small == (len((tmp_path / "ran").read_text("utf-8").splitlines()) > MAX_EXAMPLES + 1)


def test_a_history_is_shown_by_its_records() -> None:
    """Not by bytes, in which it cannot be seen what happened."""
    shown = pretty(history(at(5, offset_commit("g", "t", 0, 9), (b"\x00\x63", None))))

    assert "  7/0, 5 ms: OffsetCommitKey(group='g', topic='t', partition=0) = OffsetCommitValue(offset=9, " in shown
    assert "  7/1, 5 ms: UnknownRecord(record_type=99, group_name=None): b'\\x00c' = None" in shown


def test_a_failure_tells_the_history_that_a_seed_stands_for() -> None:
    """Of a coordinator by chance Hypothesis itself knows a number alone."""

    @given(st.just(7))
    def fails(seed: int) -> None:
        assert not log_of(lawful(seed))

    with pytest.raises(AssertionError) as failed:
        fails()

    assert [repr(log_of(lawful(7)))] == [said for said in failed.value.__notes__ if said.startswith("History:")]
