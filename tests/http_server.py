"""A server on loopback that answers as a function says: what stands in tests for a service of somebody else's."""

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

_POLL_SECONDS: Final = 0.02
"""How often it looks whether it is to end."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; the names of its headers in small letters."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """What is in the body; None in an empty one."""
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def in_json(value: Any, status: int = 200) -> Answer:
    """An answer in JSON."""
    return Answer(status, json.dumps(value).encode(), {"content-type": "application/json"})


class HttpServer:
    """Answers each request by a function, each on a thread of its own; use as a context manager.

    Attributes:
        url: its address, without a path.
    """

    def __init__(self, answer: Callable[[Asked], Answer], certificate: tuple[Path, Path] | None = None) -> None:
        """Take a port; with a certificate and its key it speaks TLS. Requests are answered once it is entered."""

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(headers.get("content-length", 0)))
                answered = answer(Asked(self.command, self.path, headers, body))
                self.send_response(answered.status)
                for name, value in {**answered.headers, "content-length": str(len(answered.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answered.body)

            do_GET = do_POST = do_PUT = _serve  # noqa: N815 - names of http.server

            def log_message(self, *_: object) -> None:
                """Nothing is printed into the tests' output."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
