"""The listening socket, and the thread of the monitor's own process that serves it."""

import logging
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import uvicorn
from starlette.types import ASGIApp

from streaming.base.errors import UsageError
from streaming.base.threads import Repeating
from streaming.board.board import Board
from streaming.config.sections import HttpSection
from streaming.metrics.exporter import Exporter
from streaming.web.access import Credentials, Door
from streaming.web.api_answers import Api, BrokerAnswers
from streaming.web.certificate import Certificate
from streaming.web.connection_limits import LONGEST_HEAD, Connections, Listener, Most, TimedProtocol
from streaming.web.routes import Pages

if TYPE_CHECKING:
    from streaming.history.queries import History

_STOP_SECONDS: Final = 5
_TIDY_SECONDS: Final = 2.0

MOST_PROBES: Final = Most(in_all=64, of_one_address=48)
"""Connections of probes. Each is for one answer, and a new one takes the place of the oldest."""

_printing = threading.Lock()
"""Python writes a line and its end apart: monitors of one process would write into each other's."""


class Server:
    """The listening socket and the thread that serves it; the same once more for probes, where they have a port.

    The ports are taken on construction, so that a start fails before anything heavy is begun.

    Args:
        pages: what is served.
        host: address to listen on.
        port: port to listen on, 0 for any free one.
        tls_certificate_file: PEM file with the server's certificate chain; turns TLS on.
        tls_key_file: PEM file with its private key.
        probe_port: port for probes alone, without TLS; None for none, 0 for any free one.

    Raises:
        UsageError: an address cannot be listened on, or the TLS files cannot be used.
    """

    def __init__(  # noqa: PLR0913 - what is configured of it, each by name
        self,
        pages: Pages,
        host: str = "127.0.0.1",
        port: int = 0,
        tls_certificate_file: Path | None = None,
        tls_key_file: Path | None = None,
        probe_port: int | None = None,
    ) -> None:
        self._pages = pages
        both = tls_certificate_file is not None and tls_key_file is not None
        self._certificate = Certificate(tls_certificate_file, tls_key_file) if both else None  # type: ignore[arg-type]  # both are
        self._scheme = "http" if self._certificate is None else "https"
        # Whatever a stranger sends, a line for each of it would fill the log.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._listening = _Listening("http", pages.app, (host, port), Most(), self._certificate)
        self._probes: _Listening | None = None
        if probe_port is not None:
            try:
                self._probes = _Listening("http-probes", pages.probes, (host, probe_port), MOST_PROBES, None)
            except UsageError:
                self._listening.close()
                raise
        self._server, self._socket = self._listening.server, self._listening.socket
        self._tidying = Repeating("http-tidying", _TIDY_SECONDS, self._tidy)

    @classmethod
    def of(
        cls,
        http: HttpSection,
        board: Board,
        exporter: Exporter,
        brokers: BrokerAnswers | None = None,
        history: "History | None" = None,
    ) -> Self:
        """The server that a configuration asks for. `brokers` and `history`: see `Api`."""
        secrets = [None if secret is None else secret.get_secret_value() for secret in (http.token, http.password)]
        credentials = Credentials(token=secrets[0], username=http.username, password=secrets[1])
        api = Api(board, exporter.cluster, brokers=brokers, history=history)
        pages = Pages(api, exporter, credentials, door_of(http))
        return cls(pages, http.host, http.port, http.tls_certificate_file, http.tls_key_file, http.probe_port)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._listening.address[1]

    @property
    def probe_port(self) -> int | None:
        """The port of probes; None where there is none."""
        return None if self._probes is None else self._probes.address[1]

    @property
    def url(self) -> str:
        """Address of the page, as a browser on this machine reaches it."""
        host, port = self._listening.address
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - looked for, not bound
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def print_address(self, more: str = "") -> None:
        """Write the addresses of the page and of the metrics to standard output, as one line that ends with `more`."""
        with _printing:
            print(f"page {self.url}/  metrics {self.url}/metrics{more}", flush=True)  # noqa: T201 - what a run puts out

    def start(self) -> None:
        """Serve, in threads of its own."""
        for each in self._all:
            each.thread.start()
        self._tidying.start()
        if self._certificate is not None:
            self._certificate.start()

    def stop(self) -> None:
        """End streams and connections, and free the ports."""
        if self._certificate is not None:
            self._certificate.stop()
        self._pages.close()
        self._tidying.stop()
        for each in self._all:
            each.server.should_exit = True
        for each in self._all:
            each.close()

    @property
    def _all(self) -> list["_Listening"]:
        return [each for each in (self._listening, self._probes) if each is not None]

    def _tidy(self) -> None:
        for each in self._all:
            each.connections.sweep()
        self._pages.tidy()


class _Listening:
    """One listening socket, its connections, and the thread that serves them.

    Args:
        name: of the thread; also the option's, with `port` in place of what is behind `http`.
        app: what is served.
        address: host and port to listen on.
        most: how many connections there may be.
        certificate: of TLS, if there is to be any.
    """

    def __init__(
        self, name: str, app: ASGIApp, address: tuple[str, int], most: Most, certificate: Certificate | None
    ) -> None:
        self.connections = Connections(most)
        config = uvicorn.Config(
            app,
            loop="streaming.web.connection_limits:Loop",
            http=TimedProtocol.of(self.connections),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            timeout_graceful_shutdown=1,
            ssl_context_factory=None if certificate is None else lambda _config, _default: certificate.context,
        )
        config.load()
        self.server = uvicorn.Server(config)
        option = "http.port" if name == "http" else "http.probe_port"
        self.socket = Listener(_listen(option, *address), self.connections)
        host, port, *_ = self.socket.getsockname()
        self.address = str(host), int(port)
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self.socket]}, name=name, daemon=True
        )

    def close(self) -> None:
        """Wait for its end, and free the port."""
        if self.thread.is_alive():
            self.thread.join(_STOP_SECONDS)
        self.socket.close()


def door_of(http: HttpSection) -> Door:
    """How a configuration lets the application be reached."""
    named = frozenset(name.strip().lower() for name in (http.allowed_hosts or "").split(",") if name.strip())
    # With credentials a page of somebody else's gets nothing by whatever name: browsers keep them for ours.
    return Door(
        hosts=named if named or not http.requires_auth else None,
        requests_per_second=http.requests_per_second,
        tls=http.tls_certificate_file is not None,
    )


def _listen(option: str, host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UsageError(
            f"{option}: found {port} on http.host {host!r} ({_reason(error)}), "
            "accepted: an address of this machine with a free port, or port 0 for any"
        ) from None


def _reason(error: OSError) -> str:
    # asyncio's and socket's own texts repeat the address; resolvers' numbers are not the operating system's.
    if isinstance(error, socket.gaierror) or error.errno is None:
        return str(error.strerror or error)
    return os.strerror(error.errno)
