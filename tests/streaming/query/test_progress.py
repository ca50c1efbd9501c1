"""Spark's progress reports, as the supervisor of a query hears them."""

from types import SimpleNamespace
from typing import Any

from streaming.query.progress import Progress, ProgressListener

QUERY, ANOTHER = "group-monitor east", "group-monitor west"


class Lent(SimpleNamespace):
    """An object of Java, as py4j shows it."""

    def _detach(self) -> None:
        self.is_back = True


class Sources(list[Lent]):
    """An array of them."""

    def _detach(self) -> None: ...


def lent_id(text: str) -> Lent:
    return Lent(toString=lambda: text)


def started(query: str = QUERY, run: str = "first") -> Any:
    """As Java's events are asked."""
    return Lent(name=lambda: query, id=lambda: lent_id("checkpoint"), runId=lambda: lent_id(run))


def finished(batch: int, query: str = QUERY, run: str = "first") -> Any:
    """As above."""
    source = Lent(endOffset=lambda: '{"commits":{"0":7},"membership":{"0":9}}', numInputRows=lambda: 3)
    reported = {
        "name": query,
        "runId": lent_id(run),
        "batchId": batch,
        "batchDuration": 250,
        "sources": Sources([source]),
    }
    progress = Lent(**{name: lambda value=value: value for name, value in reported.items()})
    return Lent(progress=lambda: progress)


def test_report_of_a_run_that_has_ended_is_late() -> None:
    """So no one takes brokers for reachable because Spark reports a batch after they have gone."""
    reported: list[Progress] = []
    listener = ProgressListener(QUERY, reported.append)
    listener.onQueryStarted(started())
    listener.onQueryProgress(finished(0))
    listener.ended()
    listener.onQueryProgress(finished(1))
    listener.onQueryStarted(started())
    listener.onQueryProgress(finished(2))

    assert [(0, False), (1, True), (2, False)] == [(of.batch_id, of.is_late) for of in reported]
    assert [250, ({0: 7}, {0: 9}), 3] == [reported[0].duration_ms, reported[0].positions, reported[0].input_rows]


def test_what_was_forgotten_is_not_reported() -> None:
    """A run that ended before says how far it was when nothing of that is shown any more."""
    reported: list[Progress] = []
    ids: list[str] = []
    listener = ProgressListener(QUERY, reported.append, ids.append)
    listener.onQueryStarted(started())
    listener.onQueryProgress(finished(0))
    listener.forget()
    listener.onQueryProgress(finished(1))
    listener.onQueryStarted(started(run="second"))
    listener.onQueryProgress(finished(2))
    listener.onQueryProgress(finished(0, run="second"))

    assert [0, 0] == [of.batch_id for of in reported]
    assert ["checkpoint", "checkpoint"] == ids


def test_another_query_of_the_session_is_not_listened_to() -> None:
    """Several monitors have one Spark: another one's batches are none of this one's, nor is its start."""
    reported: list[Progress] = []
    listener = ProgressListener(QUERY, reported.append)
    listener.onQueryStarted(started())
    listener.ended()
    listener.onQueryStarted(started(ANOTHER))
    of_another = finished(0, ANOTHER)
    listener.onQueryProgress(of_another)
    listener.onQueryProgress(finished(1))

    assert [(1, True)] == [(of.batch_id, of.is_late) for of in reported]
    assert of_another.is_back
    assert of_another.progress().is_back
