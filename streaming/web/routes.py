"""The addresses of page, metrics and API, as an ASGI application.

What an address answers is worked out in `api_answers.py` and `exporter.py`; who may ask is `access.py`'s business, and
the socket `server.py`'s.
"""

import asyncio
import hashlib
import inspect
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coordinator_model.gates.plan import remedies
from coordinator_model.kinds.table import ALARMS, KINDS
from coordinator_model.migration.upgrade_blockers import BLOCKERS
from streaming.base.doubt import said
from streaming.base.errors import CannotTellError, CheckFailed
from streaming.base.version import release
from streaming.base.wanted import look
from streaming.board.event_window import Event, is_of
from streaming.board.search import ASKED
from streaming.metrics.exporter import OPENMETRICS, Exporter
from streaming.web.access import ANYONE, Credentials, Door, Guard
from streaming.web.api_answers import Api, to_json
from streaming.web.connection_limits import CONNECTION, NO_CLIENT, Client, who
from streaming.web.history_api import BusyError, NoHistoryError
from streaming.web.openapi import description
from streaming.web.query_parameters import SHOWN, BadRequestError, NotFoundError, shard_of
from streaming.web.shared_pages import ENDING, WAIT_SECONDS, SharedPages
from streaming.web.unread_answers import InSlices, UnreadAnswers

T = TypeVar("T")

PAGE: Final = Path(__file__).parent / "page"
MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

STREAM_POLL_SECONDS: Final = 0.05
LIVE_SECONDS: Final = 1.0
"""How often the live stream speaks, with news or without: a client that hears nothing longer knows that it broke."""

KEEP_ALIVE_SECONDS: Final = 15.0
READY_AT_ONCE: Final = 2
MOST_STREAMS: Final = 100
MOST_STREAMS_OF_ONE_ADDRESS: Final = 75
"""A quarter is left for everybody else."""

_JSON: Final = "application/json"

IN_FULL: Final = {of.code: of.in_full for of in ALARMS.values() if of.in_full}
"""Code of a reason to look → what the page of its group says instead of the short text."""

OF_A_ROLL: Final = [kind for kind, row in KINDS.items() if row.on_roll_page]
"""Kinds of events that the page of a roll lists."""

_READINESS_LOOKS: Final = {
    "ready": "good",
    "care": "moving",
    "blocked": "bad",
    "unknown": "",
    "done": "good",
    "out_of_scope": "",
}
"""Readiness of a group → how its pill looks; what is not known has no colour that means well."""


_PLAN_COLUMNS: Final = (
    "Wave", "Group", "Owner", "Readiness", "Members", "Static ids", "Assignor", "After", "Rebalances a day", "Lag",
    "Reasons",
)  # fmt: skip


class _AnyName(Convertor[str]):
    """A group's name in a path: slashes, line breaks, nothing at all."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", _AnyName())


class Pages:
    """The addresses, as an ASGI application (`app`); those of probes alone as another one (`probes`).

    Args:
        api: what the API answers.
        exporter: what /metrics answers.
        credentials: what callers must send; nothing by default.
        door: how it is reached.
    """

    def __init__(
        self, api: Api, exporter: Exporter, credentials: Credentials | None = None, door: Door | None = None
    ) -> None:
        self._api = api
        self._unread = UnreadAnswers()
        self._threads = ThreadPoolExecutor(READY_AT_ONCE, thread_name_prefix="ready")
        self._shared_pages = SharedPages(exporter, self._unread)
        self._cluster = api.cluster
        self._streams: Counter[str] = Counter()
        self._release = release()
        self.closing = False
        templates = Environment(loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined)
        self._index = templates.get_template("index.html")
        self._group = templates.get_template("group.html")
        self._topic = templates.get_template("topic.html")
        self._roll = templates.get_template("roll.html")
        self._plan = templates.get_template("plan.html")
        self._files = {path.name: path.read_bytes() for path in PAGE.iterdir() if path.suffix in MEDIA_TYPES}
        application = Starlette(
            routes=self._routes(),
            middleware=[Middleware(GZipMiddleware, minimum_size=1_024, compresslevel=4)],
            exception_handlers={HTTPException: _http_error, Exception: _internal_error},
        )
        # It would lead callers to whatever host they say they have asked.
        application.router.redirect_slashes = False
        self.app = Guard(InSlices(application, self._unread), credentials or Credentials(), door)
        probes = Starlette(
            routes=[Route("/healthz", self.healthz), Route("/ready", self.ready)],
            exception_handlers={HTTPException: _http_error, Exception: _internal_error},
        )
        probes.router.redirect_slashes = False
        # Anyone may ask, under any name, as often as they like: there are numbers, and connections are few.
        self.probes = Guard(closing(probes), Credentials(), Door(to_anyone=True))

    def tidy(self) -> None:
        """To be called every few seconds, see `Api.tidy`."""
        self._api.tidy()

    def close(self) -> None:
        """End the streams."""
        self.closing = True
        self._shared_pages.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _routes(self) -> list[Route]:
        return [
            _route("/", self.index, "q", "show", "sort", "down", "page"),
            _route("/group", self.group_page, "name", "at"),
            _route("/group/{name:name}", self.group_page, "at"),
            _route("/topic", self.topic_page, "name"),
            _route("/topic/{name:name}", self.topic_page),
            _route("/roll", self.roll_page, "q", "direction"),
            _route("/plan", self.plan_page, "match"),
            Route("/page/{file}", self.file),
            Route("/metrics", self.metrics),
            Route("/healthz", self.healthz),
            Route("/ready", self.ready),
            _route("/api/v1/overview", self.overview),
            _route("/api/v1/groups", self.groups, "type", "state", *ASKED),
            _route("/api/v1/groups/{name:name}", self.group, "name"),
            _route("/api/v1/search", self.search, *ASKED),
            _route("/api/v1/copies", self.copies),
            _route("/api/v1/topics", self.topics),
            _route("/api/v1/topics/{name:name}", self.topic, "name"),
            _route("/api/v1/lag", self.lag, "group"),
            _route("/api/v1/history", self.history, "name", "at", "since", "until", "limit"),
            _route("/api/v1/history/{name:name}", self.history, "name", "at", "since", "until", "limit"),
            _route("/api/v1/gate/upgrade", self.gate, "group", "max_size", "as_shown"),
            _route("/api/v1/gate/downgrade", self.gate, "group", "target_version", "as_shown"),
            Route("/api/v1/gate/{gate}", self.gate),
            _route("/api/v1/plan", self.plan, "group", "match"),
            _route("/api/v1/burndown", self.burn_down, "group", "match", "since"),
            _route("/api/v1/report/{name:name}", self.report, "name", "since", "until", "format"),
            _route("/api/v1/events", self.events, "group", "since", "limit"),
            _route("/api/v1/events/stream", self.stream, "group"),
            _route("/api/v1/live", self.live, "group", "since"),
            _route("/api/v1/openapi.json", self.openapi),
        ]

    def index(self, _: Request) -> Response:
        """The page of all groups."""
        return HTMLResponse(self._index.render(cluster=self._cluster, at="groups"))

    def group_page(self, request: Request) -> Response:
        """The page of one group, named in the path, or in the query where a path cannot (`.` and `..`)."""
        name = request.path_params.get("name", request.query_params.get("name", ""))
        shown: dict[str, Any] = {"group": name, "history": self._api.keeps_history}
        return HTMLResponse(
            self._group.render(cluster=self._cluster, at="group", blockers=BLOCKERS, texts=IN_FULL, **shown)
        )

    def topic_page(self, request: Request) -> Response:
        """The page of one topic: who reads it; named as a group is."""
        name = request.path_params.get("name", request.query_params.get("name", ""))
        return HTMLResponse(self._topic.render(cluster=self._cluster, at="topic", topic=name))

    def roll_page(self, _: Request) -> Response:
        """The page of a rolling upgrade or downgrade: may it go on?"""
        return HTMLResponse(self._roll.render(cluster=self._cluster, at="roll", blockers=BLOCKERS, kinds=OF_A_ROLL))

    def plan_page(self, request: Request) -> Response:
        """The page of the migration plan: every group's readiness, in waves."""
        pattern = request.query_params.get("match", "")
        shown: dict[str, Any] = {"plan": _asked(self._api.plan, request.query_params), "pattern": pattern}
        shown["remedies"] = remedies(shown["plan"])
        shown["why"] = "" if (doubt := shown["plan"]["doubt"]) is None else said(doubt)
        shown["unread"] = "; ".join(map(said, shown["plan"]["unread"]))
        shown |= {"looks": _READINESS_LOOKS, "columns": _PLAN_COLUMNS, "history": self._api.keeps_history}
        return HTMLResponse(self._plan.render(cluster=self._cluster, at="plan", **shown))

    def plan(self, request: Request) -> Response:
        """The same as JSON, of all groups, or of those of `?group=…&group=…` and of `?match=PATTERN`."""
        return _found(self._api.plan, request.query_params, _groups(request))

    def burn_down(self, request: Request) -> Response:
        """The migration over time, of the same groups."""
        return _found(self._api.burn_down, request.query_params, _groups(request))

    def report(self, request: Request) -> Response:
        """What a roll of a group cost since `?since=`; Markdown and HTML are files to be kept, not pages of ours."""
        name = request.path_params["name"] or request.query_params.get("name", "")
        made = _asked(self._api.report, name, request.query_params)
        ending = {"text/markdown": "md", "text/html": "html"}.get(made.media_type)
        kept = {"content-disposition": f'attachment; filename="roll.{ending}"'} if ending else {}
        return Response(made.text, media_type=made.media_type, headers={"cache-control": "no-store", **kept})

    def file(self, request: Request) -> Response:
        """A style sheet, script or picture of the page."""
        name = request.path_params["file"]
        content = self._files.get(name)
        if content is None:
            raise HTTPException(404, f"file: found {name!r}, accepted: a file of the page")
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=MEDIA_TYPES[Path(name).suffix], headers=headers)

    async def metrics(self, request: Request) -> Response:
        """Prometheus."""
        # Here and not in the middleware, which would hold up all other answers while it compresses.
        gzip = "gzip" in request.headers.get("accept-encoding", "")
        openmetrics = OPENMETRICS in request.headers.get("accept", "")
        shard = _asked(shard_of, request.query_params.get("shard"))
        client: Client = request.scope.get(CONNECTION, NO_CLIENT)
        try:
            page = await self._shared_pages.page(client, shard, openmetrics=openmetrics)
        except BusyError as error:
            raise HTTPException(503, str(error), {"retry-after": f"{WAIT_SECONDS:.0f}"}) from None
        headers = {"content-type": page.content_type}
        if gzip:
            headers |= {"content-encoding": "gzip", "vary": "Accept-Encoding"}
        if request.method == "HEAD":
            page.leave(client)
            return Response(headers=headers)
        return _Counted(lambda: page.leave(client), page.read(gzip=gzip), headers=headers)

    async def healthz(self, _: Request) -> Response:
        """Alive: the event loop answers, and no other process is needed for the stream; and which release this is."""
        reason = self._api.board.health.stuck()
        if reason is not None:
            return _answer({"alive": False, "reason": reason, "version": self._release}, 503)
        return _answer({"alive": True, "version": self._release})

    async def ready(self, request: Request) -> Response:
        """Whether the board may be believed."""
        # In threads of its own: those of the API may all be taken.
        asked = partial(self._api.ready, to_anyone=request.scope.get(ANYONE, False))
        try:
            ready = await asyncio.get_running_loop().run_in_executor(self._threads, asked)
        except RuntimeError:
            if not self.closing:
                raise
            raise HTTPException(503, ENDING) from None
        return _answer(ready, 200 if ready["ready"] else 503)

    def overview(self, _: Request) -> Response:
        """What the page of all groups shows."""
        return Response(self._api.overview(), media_type=_JSON, headers={"cache-control": "no-store"})

    def groups(self, request: Request) -> Response:
        """All groups."""
        headers = {"cache-control": "no-store"}
        pieces = _asked(self._api.groups_json, request.query_params)
        return StreamingResponse(pieces, media_type=_JSON, headers=headers)

    def group(self, request: Request) -> Response:
        """One group; `?name=` where a path cannot name it."""
        name = request.path_params["name"] or request.query_params.get("name", "")
        return _found(self._api.group, name)

    def search(self, request: Request) -> Response:
        """Names of groups by topic, owner, client id, host or instance id."""
        return _found(self._api.search, request.query_params)

    def copies(self, _: Request) -> Response:
        """Groups with records in several offsets partitions."""
        return _found(self._api.copies)

    def topics(self, _: Request) -> Response:
        """All topics that groups have to do with."""
        return _found(self._api.topics)

    def topic(self, request: Request) -> Response:
        """One topic, and who reads it; `?name=` where a path cannot name it."""
        name = request.path_params["name"] or request.query_params.get("name", "")
        return _found(self._api.topic, name)

    def lag(self, request: Request) -> Response:
        """What lag was in the last hour, of `?group=` or of all."""
        return _found(self._api.lag, request.query_params)

    def history(self, request: Request) -> Response:
        """What happened to a group, or how it was at `?at=`; `?name=` where a path cannot name it."""
        query = request.query_params
        name = request.path_params.get("name") or query.get("name", "")
        return _found(self._api.history, name, query)

    def gate(self, request: Request) -> Response:
        """A verdict on rolling now, on `?group=…&group=…` or on all; see `Api.gate` for what else can be asked."""
        query, gate = request.query_params, request.path_params.get("gate") or request.url.path.rpartition("/")[2]
        return _found(self._api.gate, gate, _groups(request), query)

    def events(self, request: Request) -> Response:
        """The latest events."""
        return _found(self._api.events, request.query_params)

    def openapi(self, _: Request) -> Response:
        """What the API answers, as OpenAPI."""
        return _answer(description())

    async def stream(self, request: Request) -> Response:
        """Events as they come, of `?group=` or of all; after a break, those since Last-Event-ID."""
        last_id = request.headers.get("last-event-id")
        return self._streaming(request, self._stream(last_id, request.query_params.get("group")))

    async def live(self, request: Request) -> Response:
        """Every second what changed since version `?since=`, of `?group=` or of all, with the events of that time."""
        since = request.headers.get("last-event-id") or request.query_params.get("since")
        return self._streaming(request, self._live(since, request.query_params.get("group")))

    def _streaming(self, request: Request, lines: AsyncIterator[str]) -> Response:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=headers)
        address = who(str((request.client or ("",))[0]))
        if self._streams.total() >= MOST_STREAMS:
            raise HTTPException(503, f"streams: found {MOST_STREAMS} open already, accepted: fewer")
        if self._streams[address] >= MOST_STREAMS_OF_ONE_ADDRESS:
            found = f"{MOST_STREAMS_OF_ONE_ADDRESS} open already from this address"
            raise HTTPException(503, f"streams: found {found}, accepted: fewer")
        # Counted here: until the first line is asked for a whole burst of others has come.
        self._streams[address] += 1
        return _Counted(lambda: self._ended(address), lines, media_type="text/event-stream", headers=headers)

    def _ended(self, address: str) -> None:
        self._streams[address] -= 1
        if not self._streams[address]:
            del self._streams[address]

    async def _live(self, since: str | None, group: str | None) -> AsyncIterator[str]:
        yield "retry: 2000\n\n"
        while not self.closing:
            since, news = await run_in_threadpool(self._api.news, since, group)
            yield f"id: {since}\ndata: {to_json(news).decode()}\n\n"
            await self._pause(LIVE_SECONDS)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the server's end."""
        while seconds > 0 and not self.closing:
            await asyncio.sleep(min(seconds, STREAM_POLL_SECONDS))
            seconds -= STREAM_POLL_SECONDS

    async def _stream(self, last_id: str | None, group: str | None) -> AsyncIterator[str]:
        window = self._api.board.events
        # An id that is not here any more is older than all that is: then everything is news.
        number = window.last if last_id is None else window.number_of(last_id) or 0
        yield "retry: 2000\n\n"
        silent = 0.0
        while not self.closing:
            for number, event in window.after(number):  # noqa: B007, B020 - the next look goes on from the last one
                if group is None or is_of(event, group):
                    silent = 0.0
                    yield self._sent(event)
            await asyncio.sleep(STREAM_POLL_SECONDS)
            silent += STREAM_POLL_SECONDS
            if silent >= KEEP_ALIVE_SECONDS:
                silent = 0.0
                yield ": keep-alive\n\n"

    def _sent(self, event: Event) -> str:
        return f"id: {event['id']}\ndata: {to_json(self._api.event(event)).decode()}\n\n"


_Content = AsyncIterator[str] | AsyncIterator[bytes]


class _Counted(StreamingResponse):
    """An answer whose end, however it comes, is counted."""

    def __init__(self, ended: Callable[[], None], content: _Content, **options: Any) -> None:  # noqa: ANN401 - as its base
        super().__init__(content, **options)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def closing(app: ASGIApp) -> ASGIApp:
    """The same application, one request a connection."""

    async def closing_app(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_last(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await app(scope, receive, send_last)

    return closing_app


def _route(path: str, endpoint: Callable[[Request], Any], *parameters: str) -> Route:
    """A route that refuses other query parameters: what is misspelt would be answered as if it were not there."""

    def refuse_others(request: Request) -> None:
        for name in request.query_params:
            if name not in parameters:
                raise HTTPException(
                    400, f"query: found {name[:SHOWN]!r}, accepted: {', '.join(parameters) or 'nothing'}"
                )

    async def ask_async(request: Request) -> Response:
        refuse_others(request)
        answer: Response = await endpoint(request)
        return answer

    def ask(request: Request) -> Response:
        # It may have waited for a thread.
        look()
        refuse_others(request)
        answer: Response = endpoint(request)
        return answer

    return Route(path, ask_async if inspect.iscoroutinefunction(endpoint) else ask)


def _answer(answer: object, status: int = 200) -> Response:
    return Response(to_json(answer), status, media_type=_JSON, headers={"cache-control": "no-store"})


def _groups(request: Request) -> list[str]:
    """The groups that are named, each once."""
    return list(dict.fromkeys(request.query_params.getlist("group")))


def _found(ask: Callable[..., object], *arguments: object) -> Response:
    return _answer(_asked(ask, *arguments))


def _asked(ask: Callable[..., T], *arguments: object) -> T:
    """The answer; what keeps it from being given as HTTP's status."""
    try:
        return ask(*arguments)
    except BadRequestError as error:
        raise HTTPException(400, str(error)) from None
    except NotFoundError as error:
        raise _NotFound(404 if error.doubt is None else 503, str(error), error.doubt) from None
    except CheckFailed as error:
        raise HTTPException(404, str(error)) from None
    except CannotTellError as error:
        raise HTTPException(410, str(error)) from None
    except BusyError as error:
        raise HTTPException(503, str(error)) from None
    except NoHistoryError as error:
        raise HTTPException(501, str(error)) from None


class _NotFound(HTTPException):
    """A 404; or a 503, and why there may be such a thing all the same."""

    def __init__(self, status: int, detail: str, doubt: Mapping[str, Any] | None) -> None:
        super().__init__(status, detail)
        self.doubt = doubt


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for no other
    unknown = error.status_code == 404 and error.detail == "Not Found"  # noqa: PLR2004 - HTTP's number
    answer = {"error": f"no such address: {request.url.path}" if unknown else error.detail}
    doubt = error.doubt if isinstance(error, _NotFound) else None
    answered = _answer(answer if doubt is None else {**answer, "doubt": doubt}, error.status_code)
    answered.headers.update(error.headers or {})
    return answered


async def _internal_error(_: Request, error: Exception) -> Response:
    return _answer({"error": f"internal error: {type(error).__name__}"}, 500)
