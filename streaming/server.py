"""Page, metrics and API over HTTP, from a thread of the monitor's own process.

What an address answers is worked out in `api.py` and `exporter.py`; who may ask is `http_guard.py`'s business.
"""

import asyncio
import hashlib
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final, Self

import uvicorn
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from streaming.api import Api, BadRequestError, BrokerAnswers, NotFoundError, to_json
from streaming.board import Board
from streaming.config_sections import HttpSection
from streaming.errors import UsageError
from streaming.event_window import Event
from streaming.exporter import Exporter
from streaming.http_guard import Credentials, Guard

PAGE: Final = Path(__file__).parent / "page"
MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

STREAM_POLL_SECONDS: Final = 0.1
KEEP_ALIVE_SECONDS: Final = 15.0
MOST_STREAMS: Final = 100

_JSON: Final = "application/json"
_LONGEST_HEAD_BYTES: Final = 128 * 1024
"""A group's name may have 32 KB, and three times that percent-encoded."""
_MOST_CONNECTIONS: Final = 512
_STOP_SECONDS: Final = 5


class _AnyName(Convertor[str]):
    """A group's name in a path: slashes, line breaks, nothing at all."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", _AnyName())


class Pages:
    """The addresses, as an ASGI application (`app`).

    Args:
        api: what the API answers.
        exporter: what /metrics answers.
        credentials: what callers must send; nothing by default.
    """

    def __init__(self, api: Api, exporter: Exporter, credentials: Credentials | None = None) -> None:
        self._api = api
        self._exporter = exporter
        self._cluster = api.cluster
        self._streams = 0
        self.closing = False
        templates = Environment(loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined)
        self._index = templates.get_template("index.html")
        self._group = templates.get_template("group.html")
        self._files = {path.name: path.read_bytes() for path in PAGE.iterdir() if path.suffix in MEDIA_TYPES}
        self.app = Guard(
            Starlette(
                routes=self._routes(),
                middleware=[Middleware(GZipMiddleware, minimum_size=1_024, compresslevel=4)],
                exception_handlers={HTTPException: _http_error, Exception: _internal_error},
            ),
            credentials or Credentials(),
        )

    def _routes(self) -> list[Route]:
        return [
            Route("/", self.index),
            Route("/group", self.group_page),
            Route("/group/{name:name}", self.group_page),
            Route("/page/{file}", self.file),
            Route("/metrics", self.metrics),
            Route("/healthz", self.healthz),
            Route("/ready", self.ready),
            Route("/api/v1/overview", self.overview),
            Route("/api/v1/groups", self.groups),
            Route("/api/v1/groups/{name:name}", self.group),
            Route("/api/v1/gate/{gate}", self.gate),
            Route("/api/v1/events", self.events),
            Route("/api/v1/events/stream", self.stream),
        ]

    def index(self, _: Request) -> Response:
        """The page of all groups."""
        return HTMLResponse(self._index.render(cluster=self._cluster))

    def group_page(self, request: Request) -> Response:
        """The page of one group, named in the path, or in the query where a path cannot (`.` and `..`)."""
        name = request.path_params.get("name", request.query_params.get("name", ""))
        return HTMLResponse(self._group.render(cluster=self._cluster, group=name))

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

    def metrics(self, request: Request) -> Response:
        """Prometheus."""
        page, content_type = self._exporter.render(request.headers.get("accept", ""))
        return Response(page, headers={"content-type": content_type})

    async def healthz(self, _: Request) -> Response:
        """Alive: the event loop answers."""
        return _answer({"alive": True})

    def ready(self, _: Request) -> Response:
        """Whether the board may be believed."""
        ready = self._api.ready()
        return _answer(ready, 200 if ready["ready"] else 503)

    def overview(self, _: Request) -> Response:
        """What the page of all groups shows."""
        return Response(self._api.overview(), media_type=_JSON, headers={"cache-control": "no-store"})

    def groups(self, request: Request) -> Response:
        """All groups."""
        return _answer(self._api.groups(request.query_params))

    def group(self, request: Request) -> Response:
        """One group; `?name=` where a path cannot name it."""
        name = request.path_params["name"] or request.query_params.get("name", "")
        return _found(self._api.group, name)

    def gate(self, request: Request) -> Response:
        """A verdict on rolling now, on `?group=…&group=…` or on all; see `Api.gate` for what else can be asked."""
        query = request.query_params
        return _found(self._api.gate, request.path_params["gate"], query.getlist("group"), query)

    def events(self, request: Request) -> Response:
        """The latest events."""
        return _found(self._api.events, request.query_params)

    async def stream(self, request: Request) -> Response:
        """Events as they come, of `?group=` or of all; after a break, those since Last-Event-ID."""
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=headers)
        if self._streams >= MOST_STREAMS:
            raise HTTPException(503, f"streams: found {MOST_STREAMS} open already, accepted: fewer")
        lines = self._stream(request.headers.get("last-event-id"), request.query_params.get("group") or None)
        return StreamingResponse(lines, media_type="text/event-stream", headers=headers)

    async def _stream(self, last_id: str | None, group: str | None) -> AsyncIterator[str]:
        self._streams += 1
        try:
            window = self._api.board.events
            # An id that is not here any more is older than all that is: then everything is news.
            number = window.last if last_id is None else window.number_of(last_id) or 0
            yield "retry: 2000\n\n"
            silent = 0.0
            while not self.closing:
                for number, event in window.after(number):  # noqa: B007, B020 - the next look goes on from the last one
                    if group is None or event["group"] == group:
                        silent = 0.0
                        yield self._sent(event)
                await asyncio.sleep(STREAM_POLL_SECONDS)
                silent += STREAM_POLL_SECONDS
                if silent >= KEEP_ALIVE_SECONDS:
                    silent = 0.0
                    yield ": keep-alive\n\n"
        finally:
            self._streams -= 1

    def _sent(self, event: Event) -> str:
        return f"id: {event['id']}\ndata: {to_json(self._api.board.named(event)).decode()}\n\n"


class Server:
    """The listening socket and the thread that serves it.

    The port is taken on construction, so that a start fails before anything heavy is begun.

    Args:
        pages: what is served.
        host: address to listen on.
        port: port to listen on, 0 for any free one.
        tls_certificate_file: PEM file with the server's certificate chain; turns TLS on.
        tls_key_file: PEM file with its private key.

    Raises:
        UsageError: the address cannot be listened on, or the TLS files cannot be used.
    """

    def __init__(
        self,
        pages: Pages,
        host: str = "127.0.0.1",
        port: int = 0,
        tls_certificate_file: Path | None = None,
        tls_key_file: Path | None = None,
    ) -> None:
        self._pages = pages
        self._scheme = "http" if tls_certificate_file is None else "https"
        config = uvicorn.Config(
            self._pages.app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            h11_max_incomplete_event_size=_LONGEST_HEAD_BYTES,
            timeout_graceful_shutdown=1,
            ssl_certfile=tls_certificate_file,
            ssl_keyfile=tls_key_file,
        )
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"http.tls_certificate_file: found {tls_certificate_file}, http.tls_key_file: found {tls_key_file} "
                f"({error}), accepted: PEM files of a certificate chain and of its key"
            ) from None
        self._server = uvicorn.Server(config)
        self._socket = _listen(host, port)
        address = self._socket.getsockname()
        self._host, self._port = str(address[0]), int(address[1])
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="http", daemon=True
        )

    @classmethod
    def of(
        cls,
        http: HttpSection,
        board: Board,
        exporter: Exporter,
        brokers: BrokerAnswers | None = None,
    ) -> Self:
        """The server that a configuration asks for. `brokers`: see `Api`."""
        secrets = [None if secret is None else secret.get_secret_value() for secret in (http.token, http.password)]
        credentials = Credentials(token=secrets[0], username=http.username, password=secrets[1])
        pages = Pages(Api(board, exporter.cluster, brokers=brokers), exporter, credentials)
        return cls(pages, http.host, http.port, http.tls_certificate_file, http.tls_key_file)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    @property
    def url(self) -> str:
        """Address of the page, as a browser on this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104 - looked for, not bound
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{self._port}"

    def start(self) -> None:
        """Serve, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End streams and connections, and free the port."""
        self._pages.closing = True
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        self._socket.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UsageError(
            f"http.port: found {port} on http.host {host!r} ({_reason(error)}), "
            "accepted: an address of this machine with a free port, or port 0 for any"
        ) from None


def _reason(error: OSError) -> str:
    # asyncio's and socket's own texts repeat the address; resolvers' numbers are not the operating system's.
    if isinstance(error, socket.gaierror) or error.errno is None:
        return str(error.strerror or error)
    return os.strerror(error.errno)


def _answer(answer: object, status: int = 200) -> Response:
    return Response(to_json(answer), status, media_type=_JSON, headers={"cache-control": "no-store"})


def _found(ask: Callable[..., object], *arguments: object) -> Response:
    try:
        return _answer(ask(*arguments))
    except BadRequestError as error:
        raise HTTPException(400, str(error)) from None
    except NotFoundError as error:
        raise HTTPException(404, str(error)) from None


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for no other
    unknown = error.status_code == 404 and error.detail == "Not Found"  # noqa: PLR2004 - HTTP's number
    return _answer({"error": f"no such address: {request.url.path}" if unknown else error.detail}, error.status_code)


async def _internal_error(_: Request, error: Exception) -> Response:
    return _answer({"error": f"internal error: {type(error).__name__}"}, 500)
