"""A collector on loopback: it takes OTLP over HTTP, reads it with OpenTelemetry's own messages, and answers as set."""

import gzip
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

METRICS: Final = "/v1/metrics"
LOGS: Final = "/v1/logs"
_REQUESTS: Final[Mapping[str, Any]] = {METRICS: ExportMetricsServiceRequest, LOGS: ExportLogsServiceRequest}


class Collector:
    """Use as a context manager.

    Attributes:
        url: the endpoint.
        taken: (path, request) of each that was answered with 200.
        asked: headers of every request.
        status: what is answered from now on.
        rejects: how many it says it rejected of what it takes.
        body: an answer of its own to what it takes, instead of OTLP's.
    """

    def __init__(self, certificate: tuple[Path, Path] | None = None) -> None:
        self.taken: list[tuple[str, Any]] = []
        self.asked: list[Mapping[str, str]] = []
        self.status, self.rejects = 200, 0
        self.body: bytes | None = None
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.asked.append({name.lower(): value for name, value in self.headers.items()})
                answer = b"refused"
                if collector.status == 200:
                    assert "application/x-protobuf" == self.headers["content-type"]
                    request = _REQUESTS[self.path].FromString(gzip.decompress(body))
                    collector.taken.append((self.path, request))
                    answer = collector.body if collector.body is not None else collector._answer(self.path)
                self.send_response(collector.status)
                if collector.status == 307:
                    self.send_header("location", f"{collector.url}/elsewhere")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nothing is printed into the tests' output."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="collector", daemon=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self._server.server_port}"

    @property
    def points(self) -> list[tuple[Any, Any]]:
        """(metric, point) of all that was taken."""
        return [of for path, request in self.taken if path == METRICS for of in points_of(request)]

    @property
    def records(self) -> list[Any]:
        """The log records that were taken."""
        return [
            record
            for path, request in self.taken
            if path == LOGS
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def _answer(self, path: str) -> bytes:
        if path == LOGS:
            logs = ExportLogsPartialSuccess(rejected_log_records=self.rejects)
            return bytes(ExportLogsServiceResponse(partial_success=logs).SerializeToString())
        points = ExportMetricsPartialSuccess(rejected_data_points=self.rejects)
        return bytes(ExportMetricsServiceResponse(partial_success=points).SerializeToString())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def points_of(request: Any) -> list[tuple[Any, Any]]:
    """(metric, point) of one request."""
    return [
        (metric, point)
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in getattr(metric, metric.WhichOneof("data")).data_points
    ]


def plain(attributes: list[KeyValue]) -> dict[str, Any]:
    """Attributes as a mapping."""
    return {of.key: value_of(of.value) for of in attributes}


def value_of(value: AnyValue) -> Any:
    """What is in a value."""
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)
