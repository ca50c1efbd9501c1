"""A monitor that faults are done to: one after the other on one state directory, all reported to one file."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from lab.monitor_process import END_SECONDS, READY_SECONDS, MonitorProcess, until
from streaming.checkpoint import resume_file
from tests.faults import victim
from tests.faults.coordinator_log import Log
from tests.faults.reported import WHOLLY, Comparison, Difference, Reported, reported_in, shown

PATIENCE_SECONDS: Final = 4 * READY_SECONDS
"""For what waits for a whole start: a machine that does much else takes minutes."""


class _Victim(MonitorProcess):
    program = (sys.executable, "-P", "-m", "tests.faults.victim")


class Disturbed:
    """Monitors of one log.

    Args:
        stack: what they end with.
        directory: theirs.
        log: what they read.
        settings: options of theirs, as `section.option=value`.
        environment: more of it than `start` gives them.
    """

    def __init__(
        self, stack: ExitStack, directory: Path, log: Log, *settings: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.state, self.reported_file = directory / "state", directory / "told.ndjson"
        self._stack, self._directory, self._log = stack, directory, log
        self._settings = (f"kafka.offsets_topic={log.topic}", *settings)
        self._environment = environment or {}
        self.runs = 0
        directory.mkdir(parents=True, exist_ok=True)
        self.reported_file.touch()

    def set(self, *settings: str) -> None:
        """Give those that are started from here on these options as well."""
        self._settings = (*self._settings, *settings)

    def set_environment(self, environment: Mapping[str, str]) -> None:
        """Give those that are started from here on this in their environment as well."""
        self._environment = {**self._environment, **environment}

    def start(self, *arguments: str, at: str | None = None) -> MonitorProcess:
        """Start one, which is to end at a stage of `victim.STAGES` if one is named."""
        self.runs += 1
        environment = {
            victim.REPORTED: str(self.reported_file),
            **self._environment,
            **({victim.AT: at} if at else {}),
        }
        chosen = [word for setting in self._settings for word in ("--set", setting)]
        return self._stack.enter_context(
            _Victim(
                self._directory / f"run-{self.runs}",
                self._log.bootstrap_servers,
                state=self.state,
                command=("run", *chosen, *arguments),
                environment=environment,
            )
        )

    def start_and_die(self, at: str) -> None:
        """Start one that is killed at a stage, and wait until nothing of it is left."""
        self.await_death(self.start(at=at))

    def await_ready(self, monitor: MonitorProcess) -> None:
        """Wait until one may be believed."""
        until(lambda: bool(monitor.output_lines()) or monitor.exit_status is not None, PATIENCE_SECONDS, "no address")
        monitor.await_ready(PATIENCE_SECONDS)

    def await_death(self, monitor: MonitorProcess) -> None:
        """Wait until one that is to be killed is, and nothing of it is left."""
        assert -9 == monitor.await_end(PATIENCE_SECONDS), monitor.error_lines()
        until(lambda: not monitor.left_over(), 60, "processes of a killed monitor are still there")

    def refused(self, *arguments: str) -> str:
        """Start one that must end on its own, and return the one line it says."""
        monitor = self.start(*arguments)
        status = monitor.await_end(PATIENCE_SECONDS)
        (line,) = [line for line in monitor.error_lines() if line.startswith("error: ")]
        assert status in (1, 2), (status, line)
        until(lambda: not monitor.left_over(), 60, "processes of a monitor that ended are still there")
        return line

    def await_reported(self, ends: dict[int, int] | None = None) -> Reported:
        """Wait until a sink was given all that is in the log, and return that."""
        ends = self._log.ends() if ends is None else ends
        until(
            lambda: self._has_reported(ends),
            PATIENCE_SECONDS,
            lambda: f"reported {reported_in(self.reported_file).shards}, {ends}",
        )
        return reported_in(self.reported_file)

    def difference(
        self,
        monitor: MonitorProcess,
        live_from: dict[int, int] | None = None,
        compared: Comparison = WHOLLY,
    ) -> Difference:
        """How what was reported, and is shown in the end, differs from what follows from the log."""
        self.await_ready(monitor)
        answer = self._log.undisturbed(live_from)
        reported = self.await_reported()
        until(
            lambda: shown(monitor, answer).keys() == answer.views.keys(), 30, lambda: "other groups are shown than are"
        )
        found, seen = compared.reports(reported, answer), compared.view
        on_board = shown(monitor, answer)
        unlike = [
            f"{name}: {key} shown {shown_of.get(key)!r}, is {is_!r}"
            for name, shown_of in ((name, seen(of)) for name, of in on_board.items())
            for key, is_ in seen(answer.views[name]).items()
            if shown_of.get(key) != is_
        ]
        assert [] == unlike, "\n".join(unlike)
        return found

    def await_noted(self) -> None:
        """Wait until what was reported is also written down, so that a monitor that reads all again knows."""
        ends = self._log.ends()

        def is_noted() -> bool:
            left = resume_file.load(self.state)
            return left is not None and all(left.all_told().get(of, 0) >= end for of, end in ends.items())

        until(is_noted, PATIENCE_SECONDS, "what was reported is not noted")

    def end(self, monitor: MonitorProcess) -> None:
        """End one as a service manager does."""
        monitor.terminate()
        assert 0 == monitor.await_end(4 * END_SECONDS), monitor.error_lines()

    def _has_reported(self, ends: dict[int, int]) -> bool:
        reported = reported_in(self.reported_file)
        return all(reported.shards.get(of, {}).get("last_offset", -1) >= end - 1 for of, end in ends.items())
