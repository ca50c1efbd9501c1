"""What a rehearsal of brokers says to the gate that asks whether brokers may be rolled to that release.

reason              effect  holds when
rehearsal_failed    stop    a broker of the release does not load the log, or loses something of it
rehearsal_of_other  unknown the rehearsal is of another cluster, of a recording, or the cluster is not known
rehearsal_old       unknown it is older than a day: the log is another by now
rehearsal_untold    unknown it could not tell
rehearsed           note    the release loads the log, and nothing is lost
not_rehearsed       note    there is none, of a release from 3.3 on: the command that makes one
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from coordinator_model.gates.verdict import NOTE, STOP, UNKNOWN, Reason, with_reasons
from coordinator_model.kinds.words import counted
from streaming.base.errors import UsageError
from streaming.base.times import time_text
from streaming.loading.compared import FORMAT, LoadingJson, is_lost
from streaming.loading.faults import numbers
from streaming.loading.releases import FIRST, PATCHES
from streaming.reports.forms import read_rehearsal

GOOD_FOR_MS: Final = 24 * 60 * 60 * 1000
"""How long a rehearsal says something of the log: the cleaner goes over it every day."""

COMMAND: Final = "group-monitor rehearse brokers --release {release} --config FILE --json > FILE"


def with_rehearsal(answer: Mapping[str, Any], target: str, file: Path | None, now_ms: int) -> dict[str, Any]:
    """The gate's answer with the reasons of a rehearsal, and the verdict that they come to.

    Args:
        answer: of the downgrade gate.
        target: release that brokers are rolled to; of one without a patch number all that were rehearsed count.
        file: what `rehearse brokers --json` printed; None where there is none.
        now_ms: when it is asked.

    Raises:
        UsageError: the file is none, or has nothing of the release.
    """
    if file is not None:
        report = read_rehearsal(file, FORMAT, "a file of rehearse brokers --json")
        return with_reasons(answer, _reasons(report, target, answer.get("cluster_id"), now_ms))
    if numbers(target)[:2] < FIRST:
        return dict(answer)
    command = COMMAND.format(release=_latest(target))
    text = f"whether such a broker loads this log: {command}, then --rehearsal FILE"
    return with_reasons(answer, [Reason(NOTE, "not_rehearsed", text)])


def _reasons(report: LoadingJson, target: str, cluster_id: str | None, now_ms: int) -> list[Reason]:
    held = [of for of in report["releases"] if of["release"] == target or of["release"].startswith(f"{target}.")]
    if not held:
        releases = ", ".join(of["release"] for of in report["releases"])
        raise UsageError(f"--rehearsal: found a rehearsal of {releases}, accepted: one of {target}")
    found: list[Reason] = []
    if cluster_id is None or report["cluster_id"] != cluster_id:
        of = "a recording" if report["cluster_id"] is None else f"cluster {report['cluster_id']}"
        text = f"it is of {of}, and the brokers are of {cluster_id or 'a cluster that is not known'}"
        found.append(Reason(UNKNOWN, "rehearsal_of_other", text))
    made = time_text(report["time"])
    if not now_ms - GOOD_FOR_MS <= report["time"] <= now_ms + GOOD_FOR_MS:
        found.append(Reason(UNKNOWN, "rehearsal_old", f"it is of {made}, more than a day ago: rehearse again"))
    return found + [_of_release(of, made) for of in held]


def _of_release(of: LoadingJson, made: str) -> Reason:
    release = f"Kafka {of['release']}"
    if "cannot_tell" in of:
        return Reason(UNKNOWN, "rehearsal_untold", f"the rehearsal could not tell of {release}: {of['cannot_tell']}")
    if not is_lost(of):
        return Reason(NOTE, "rehearsed", f"{release} loaded this log {made}, and nothing was lost")
    failed = [each for each in of["partitions"] if not each["loaded"]]
    known = sorted({each["known"] or "an unknown fault" for each in failed})
    what = f"does not load {counted(len(failed), 'partition')} ({', '.join(known)})" if failed else "loads this log"
    lost = f"{counted(len(of['groups_missing']), 'group')} and {counted(of['offsets_missing'], 'offset')} are missing"
    return Reason(STOP, "rehearsal_failed", f"{release} {what}: {lost}")


def _latest(target: str) -> str:
    version = numbers(target)
    return target if len(version) > 2 else f"{target}.{PATCHES.get(version, 1) - 1}"  # noqa: PLR2004 - a patch number
