"""Answers of the API as plain objects; `routes.py` sends them."""

import json
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from coordinator_model.gates import broker_releases
from coordinator_model.gates.verdict import BrokerSettings, Cluster, LogScan
from coordinator_model.migration import phases
from streaming.base.answers import (
    BurnDownAnswer,
    CopiedGroupAnswer,
    CopiedGroupsAnswer,
    EventAnswer,
    EventsAnswer,
    GateAnswer,
    GroupAnswer,
    HistoryAnswer,
    LagAnswer,
    NamesAnswer,
    PlanAnswer,
    TopicAnswer,
    TopicsAnswer,
)
from streaming.base.name_filter import one_of
from streaming.base.times import now_ms
from streaming.board import gates, group_answer
from streaming.board.board import Board, BoardMoment
from streaming.board.event_window import Event, is_of
from streaming.board.plan import plan
from streaming.board.polls import OFF
from streaming.board.readiness import Standing
from streaming.board.search import ASKED, Search, topic_view, topics_view
from streaming.reports import forms
from streaming.web.history_api import DEFAULT_EVENTS, HistoryApi, no_group, with_sentence
from streaming.web.overview import Overview
from streaming.web.query_parameters import (
    SHOWN,
    BadRequestError,
    NotFoundError,
    limit_of,
    max_size,
    pattern_of,
    target_version,
    time_of,
)

if TYPE_CHECKING:
    from streaming.history.queries import History

T = TypeVar("T")

OVERVIEW_EVENTS: Final = 40
HIDDEN: Final = "said to those who may see groups"
"""What stands for a failure's words where anyone asks: they may name groups and brokers."""
TREND_POINTS: Final = 60
"""Five minutes at the pace of `lag_history`."""

ITEMS_A_PIECE: Final = 100

_PLACE: Final = re.compile(r"(?<![\w-])(?P<id>[\w-]{22})(?=/\d)", re.ASCII)
"""A topic's id in front of a partition, as the model names what it knows by id."""

_TOKEN: Final = re.compile(r"(?P<run>[0-9a-f]+)-(?P<version>[0-9]{1,15})-(?P<number>[0-9]{1,15})", re.ASCII)

BROKER_ANSWER_SECONDS: Final = 5.0
"""How long the brokers' word is taken: a page that is left open asks a gate every few seconds."""

BROKER_WAIT_SECONDS: Final = 3.0
"""How long an answer waits for it: of brokers that are away, a gate says at once that it cannot tell."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a roll, in one of `REPORT_FORMS`."""

    text: str
    media_type: str


@dataclass(frozen=True, slots=True)
class BrokerAnswers:
    """What only brokers know and gates ask; by default they say nothing.

    Attributes:
        group_configs: names of groups with dynamic GROUP configurations; None while brokers have not said.
        settings: configurations that decide about conversions, and finalized features.
        log_scan: what is physically in the log that brokers before 3.4.1 fail on; None where it cannot be looked at.
    """

    group_configs: Callable[[], Collection[str] | None] = lambda: None
    settings: Callable[[], BrokerSettings] = BrokerSettings
    log_scan: Callable[[], LogScan | None] = lambda: None


class Api:
    """Answers from a board.

    Args:
        board: what is shown.
        cluster: name of the cluster.
        brokers: what gates ask the brokers.
        history: what is kept of the past, if anything is.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(
        self,
        board: Board,
        cluster: str,
        *,
        brokers: BrokerAnswers | None = None,
        history: "History | None" = None,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self.board = board
        self.cluster = cluster
        self._brokers = brokers or BrokerAnswers()
        self._past = HistoryApi(board, history)
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._overview = Overview(board, clock_ms)
        self._overview_json: tuple[int, bytes] = (-1, b"")
        self._group_configs = _Remembered(self._brokers.group_configs, None)
        self._settings = _Remembered(self._brokers.settings, BrokerSettings())

    def tidy(self) -> None:
        """To be called every few seconds: let go of the overview where no client looks at it."""
        if self._overview.let_go():
            with self._lock:
                self._overview_json = (-1, b"")

    def ready(self, *, to_anyone: bool = False) -> dict[str, Any]:
        """Whether the board may be believed, and what is missing if not.

        And how sinks are doing, if there are any; of polled groups how the polling goes, and what is not known of them.

        Args:
            to_anyone: whether who asks may not be one who may see groups: then numbers alone, no group's name and no
                broker's address.
        """
        if to_anyone:
            return self._numbers(self.board.health.standing())
        polls = self.board.health.polls()
        return {
            **self._state(self.board.health.standing()),
            **({} if polls is None else {"source": {**polls.as_json(), "off": dict(OFF)}}),
        }

    def _numbers(self, standing: Standing) -> dict[str, Any]:
        """`ready` without what only brokers and groups say of themselves."""
        state, polls = self._state(standing), self.board.health.polls()
        for sink in state.get("sinks", ()):
            sink["failure"] = None if sink["failure"] is None else HIDDEN
        for each in state["missing"]:
            if "failure" in each:
                each["failure"] = HIDDEN
        if polls is None:
            return state
        why = "" if polls.failure is None else f" ({polls.failure})"
        bare = [each for each in (*state["missing"], *filter(None, [state["doubt"]])) if why]
        for each in bare:
            each["reason"] = each["reason"].replace(why, "")
        hidden: dict[str, Any] = {"failure": None if polls.failure is None else HIDDEN, "not_described": []}
        return {**state, "source": {**state["source"], **hidden, "off": dict(OFF)}}

    def _state(self, standing: Standing) -> dict[str, Any]:
        sinks = [asdict(sink) for sink in self.board.health.sinks()]
        polls = self.board.health.polls()
        return {
            "ready": standing.ready,
            "missing": standing.missing,
            "doubt": standing.doubt,
            # Who polls may not be allowed to ask.
            **(
                {}
                if polls is not None and self.board.health.offsets_partitions is None
                else {"without_leader": [*standing.unread.without_leader]}
            ),
            **({"unreadable": [*standing.unread.unreadable]} if standing.unread.unreadable else {}),
            **({"not_loaded": sorted(not_loaded)} if (not_loaded := self.board.findings.not_loaded) else {}),
            **({"sinks": sinks} if sinks else {}),
            **({} if polls is None else {"source": polls.as_json()}),
        }

    def groups_json(self, query: Mapping[str, str]) -> Iterator[bytes]:
        """All GROUPs with lag as JSON, in pieces: of one `type` and `state` where the query names them, and `ASKED`.

        Of a hundred thousand groups the text is too large to be held as a whole. Raises BadRequestError.
        """
        return self._groups_json(query.get("type") or None, query.get("state") or None, self._search(query))

    def _groups_json(self, type_: str | None, state: str | None, search: Search) -> Iterator[bytes]:
        shown, standing = moment = self.board.moment()
        chosen = search.finds
        views = group_answer.views(self.board, self._clock_ms(), type_=type_, state=state, chosen=chosen, moment=moment)
        yield b'{"left_out":' + to_json(self.board.left_out(shown)["groups"]) + b',"groups":['
        yield from _listed(views)
        yield b'],"cannot_tell":' + to_json(search.cannot_tell) + b',"doubt":' + to_json(standing.doubt)
        yield b',"unread":' + to_json(standing.unread.listed()) + b"}"

    def search(self, query: Mapping[str, str]) -> NamesAnswer:
        """Names of the groups that `groups_json` would list by `ASKED`; raises BadRequestError."""
        search = self._search(query)
        if not search.asked:
            raise BadRequestError(f"search: found nothing to search by, accepted: {', '.join(ASKED)}")
        chosen, (shown, standing) = self.board.scope.groups, self.board.moment()
        found = [name for name, held in shown.groups.items() if chosen(name) and search.finds(held)]
        left_out, unread = self.board.left_out(shown)["groups"], standing.unread.listed()
        return {"groups": sorted(found), "cannot_tell": search.cannot_tell, "left_out": left_out, "unread": unread}

    def _search(self, query: Mapping[str, str]) -> Search:
        asked = {name: pattern_of(name, query.get(name)) for name in ASKED}
        return Search(self.board, {name: value for name, value in asked.items() if value is not None})

    def copies(self) -> CopiedGroupsAnswer:
        """Groups with records in several partitions of the offsets topic."""
        named = self.board.copies.named(self.board.shown.groups)
        found: list[CopiedGroupAnswer] = [
            {"group": name, "partitions": [*of.partitions], "lives_in": of.lives_in}
            for name, of in named.items()
            if self.board.scope.groups(name)
        ]
        return {"groups": found, "left_out": len(named) - len(found)}

    def topics(self) -> TopicsAnswer:
        """All topics that groups have to do with."""
        return topics_view(self.board)

    def topic(self, name: str) -> TopicAnswer:
        """One topic with the groups that read it; raises NotFoundError."""
        found = topic_view(self.board, name, self._clock_ms())
        if found is None:
            raise NotFoundError(f"topic: found {name!r}, accepted: a topic that a group has to do with")
        return found

    def group(self, name: str) -> GroupAnswer:
        """One GROUP with lag; raises NotFoundError."""
        moment = self.board.moment()
        found = group_answer.view(self.board, name, self._clock_ms(), moment.shown)
        if found is None:
            raise no_group(name, moment)
        return cast(GroupAnswer, {**found, "doubt": moment.doubt_of(name)})

    def events(self, query: Mapping[str, str]) -> EventsAnswer:
        """The latest EVENTs, oldest first, by `group`, `since` and `limit`; raises BadRequestError."""
        size = self.board.events.size
        limit = limit_of(query.get("limit") or str(min(DEFAULT_EVENTS, size)), size)
        since_ms = time_of("since", query["since"]) if query.get("since") else None
        found = self.board.latest_events(limit, group=query.get("group"), since_ms=since_ms)
        return {"events": [with_sentence(event) for event in found]}

    def event(self, event: Event) -> EventAnswer:
        """An event of the board's memory as the API shows it: topics by name, and a sentence."""
        return with_sentence(self.board.named(event))

    @property
    def keeps_history(self) -> bool:
        """Whether anything is kept of the past."""
        return self._past.is_kept

    def history(self, name: str, query: Mapping[str, str]) -> HistoryAnswer:
        """What was of a group: see `HistoryApi.of`."""
        return self._past.of(name, query)

    def burn_down(self, query: Mapping[str, str], groups: Collection[str] = ()) -> BurnDownAnswer:
        """The migration over time: see `HistoryApi.burn_down`."""
        return self._past.burn_down(query, self._clock_ms(), groups)

    def report(self, name: str, query: Mapping[str, str]) -> Report:
        """What a roll of a group cost (`HistoryApi.report`), as `format` asks: json (an object), markdown or html."""
        form = query.get("format") or "json"
        if form not in REPORT_FORMS:
            raise BadRequestError(f"format: found {form[:SHOWN]!r}, accepted: {', '.join(REPORT_FORMS)}")
        made = self._past.report(name, query, self._clock_ms())
        media_type, write = REPORT_FORMS[form]
        return Report(write(made), media_type)

    def gate(self, name: str, groups: Collection[str], query: Mapping[str, str] | None = None) -> GateAnswer:
        """Verdict of a gate, on the groups named or on all; raises NotFoundError and BadRequestError.

        The upgrade gate takes `max_size`, in place of the brokers' group.consumer.max.size; the downgrade gate
        `target_version`, the release that the brokers are rolled to. With `as_shown` the groups are those of the rows
        that the live stream sends, and the answer says of which `version`.
        """
        if "as_shown" in (query or {}):
            version, moment = self._overview.moment()
            return {**self._gate(name, groups, query or {}, moment), "version": self._moment(version)}
        return self._gate(name, groups, query or {}, self.board.moment())

    def _gate(self, name: str, groups: Collection[str], query: Mapping[str, str], moment: BoardMoment) -> GateAnswer:
        if name not in (phases.UPGRADE, phases.DOWNGRADE):
            raise NotFoundError(f"gate: found {name!r}, accepted: {phases.UPGRADE} or {phases.DOWNGRADE}")
        for group in groups:
            if group not in moment.shown.groups:
                raise no_group(group, moment)
        asked = Cluster(settings=self._settings(), now_ms=self._clock_ms())
        if name == phases.UPGRADE:
            size = max_size(query.get("max_size"))
            if size is not None:
                asked = replace(asked, settings=replace(asked.settings, consumer_max_size=size))
            return self._named(gates.upgrade(self.board, groups, asked, moment))
        target = target_version(query.get("target_version"))
        to = None if target is None else broker_releases.release(target)
        asked = replace(
            asked,
            group_configs=self._group_configs(),
            log_scan=None if to is None or to.passes_over_unknown_types else self._brokers.log_scan(),
        )
        return self._named(gates.downgrade(self.board, groups, asked, moment, target))

    def plan(self, query: Mapping[str, str], groups: Collection[str] = ()) -> PlanAnswer:
        """The migration plan of all groups, or of those named and those that the shell pattern `match` matches.

        Raises NotFoundError where one of those named does not exist.
        """
        self._past.refuse_unknown(groups)
        now_ms = self._clock_ms()
        completed = self._past.completed(now_ms)
        chosen = one_of(groups, pattern_of("match", query.get("match")))
        return plan(self.board, self._settings(), chosen, now_ms, completed)

    def lag(self, query: Mapping[str, str]) -> LagAnswer:
        """What lag was: of the `group` that the query names, or of all that lagged lately; raises NotFoundError."""
        if "group" not in query:
            return self.board.lag_history.trends(TREND_POINTS)
        name = query["group"]
        moment = self.board.moment()
        if name not in moment.shown.groups:
            raise no_group(name, moment)
        return {"group": name, **self.board.lag_history.group(name)}

    def overview(self) -> bytes:
        """A line on every group, as JSON; made once for all who ask at about the same time."""
        version, rows, moment = self._overview.rows()
        with self._lock:
            if self._overview_json[0] != version:
                shown = {
                    "cluster": self.cluster,
                    **self._freshness(moment),
                    "events": [with_sentence(event) for event in self.board.latest_events(OVERVIEW_EVENTS)],
                    "trends": self.board.lag_history.trends(TREND_POINTS),
                }
                self._overview_json = (version, to_json(shown)[:-1] + b',"groups":[' + b"".join(_listed(rows)) + b"]}")
            return self._overview_json[1]

    def news(self, since: str | None, group: str | None) -> tuple[str, dict[str, Any]]:
        """(version, what is newer than version `since`): `groups` that changed, names that are `gone`, `events`.

        `reset` instead of groups where `since` is too long ago, of another run, or not given: then everything is to
        be read again.

        Args:
            since: a version this gave before, or None.
            group: the one group that is asked about, or None for all.
        """
        match = _TOKEN.fullmatch(since or "")
        known = match is not None and match["run"] == self._overview.run
        after = int(match["number"]) if match and known else self.board.events.last
        newer = self.board.events.after(after)
        events = [self.event(event) for _, event in newer if self._concerns(event, group)]
        after = newer[-1][0] if newer else after
        changed = self._overview.changes(int(match["version"]), group) if match and known else None
        if changed is None:
            now, _, moment = self._overview.rows()
            return self._token(now, after), {**self._freshness(moment), "reset": True, "events": events}
        now, rows, gone, moment = changed
        return self._token(now, after), {**self._freshness(moment), "groups": rows, "gone": gone, "events": events}

    def _concerns(self, event: Event, group: str | None) -> bool:
        """Whether who asks for a group, or for all, is to hear of this event."""
        return self.board.scope.groups(event["group"]) if group is None else is_of(event, group)

    def _token(self, version: int, number: int) -> str:
        return f"{self._moment(version)}-{number}"

    def _moment(self, version: int) -> str:
        return f"{self._overview.run}-{version}"

    def _freshness(self, moment: BoardMoment) -> dict[str, Any]:
        """What keeps the figures of a moment from being believed, if anything."""
        board, now_ms = self.board, self._clock_ms()
        polled, open_ = board.health.polls() is not None, board.health.open_transactions().values()
        return {
            "time": now_ms,
            **self._state(moment.standing),
            "unread": moment.standing.unread.listed(),
            "left_out": board.left_out(moment.shown),
            "end_offset_age_seconds": board.ends.age_seconds(now_ms),
            "replica_lag_records": None if polled else sum(board.health.replica_lag().values()),
            "open_transaction_records": None if polled else sum(records for records, _ in open_),
        }

    def _named(self, verdict: GateAnswer) -> GateAnswer:
        """The verdict with topics by name where it is known."""
        names = self.board.ends.topic_names
        for reason in verdict["reasons"]:
            reason["text"] = _PLACE.sub(lambda place: names.get(place["id"], place["id"]), reason["text"])
        return verdict


class _Remembered(Generic[T]):
    """Asks once for all who ask at about the same time, in a thread of its own.

    Args:
        ask: what is asked.
        unknown: what is known of brokers that have not answered in `BROKER_WAIT_SECONDS`.
    """

    def __init__(self, ask: Callable[[], T], unknown: T) -> None:
        self._ask = ask
        self._unknown = unknown
        self._lock = threading.Lock()
        self._asked: Future[T] | None = None
        self._asked_at = 0.0

    def __call__(self) -> T:
        with self._lock:
            now, asked = time.monotonic(), self._asked
            if asked is None or (asked.done() and now - self._asked_at >= BROKER_ANSWER_SECONDS):
                asked = self._asked = Future()
                self._asked_at = now
                threading.Thread(target=self._run, args=(asked,), name="ask-brokers", daemon=True).start()
        try:
            return asked.result(BROKER_WAIT_SECONDS)
        except TimeoutError:
            return self._unknown

    def _run(self, asked: "Future[T]") -> None:
        try:
            asked.set_result(self._ask())
        except BaseException as error:  # noqa: BLE001 - for who asked
            asked.set_exception(error)


def _listed(items: Iterable[object]) -> Iterator[bytes]:
    """The inside of a list as JSON, piece by piece: while a piece is written, no other thread has its turn."""
    rest = iter(items)
    comma = b""
    while piece := list(islice(rest, ITEMS_A_PIECE)):
        yield comma + to_json(piece)[1:-1]
        comma = b","


REPORT_FORMS: Final[Mapping[str, tuple[str, Callable[[Mapping[str, Any]], str]]]] = {
    "json": ("application/json", lambda report: to_json(report).decode("ascii")),
    "markdown": ("text/markdown", forms.markdown),
    "html": ("text/html", forms.html_page),
}
"""How a report may be asked for → its media type, and what writes it."""


def to_json(answer: object) -> bytes:
    """JSON in ASCII: any name there can be in a log is safe in it."""
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode("ascii")
