"""A collector on loopback: it takes OTLP over HTTP, reads it with OpenTelemetry's own messages, and answers as set."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

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

from tests.http_server import Answer, Asked, HttpServer

METRICS: Final = "/v1/metrics"
LOGS: Final = "/v1/logs"
_REQUESTS: Final[Mapping[str, Any]] = {METRICS: ExportMetricsServiceRequest, LOGS: ExportLogsServiceRequest}


class Collector(HttpServer):
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
        super().__init__(self._answered, certificate)

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

    def _answered(self, asked: Asked) -> Answer:
        self.asked.append(asked.headers)
        if self.status != 200:
            elsewhere = {"location": f"{self.url}/elsewhere"} if self.status == 307 else {}
            return Answer(self.status, b"refused", elsewhere)
        assert "application/x-protobuf" == asked.headers["content-type"]
        request = _REQUESTS[asked.path].FromString(gzip.decompress(asked.body))
        self.taken.append((asked.path, request))
        return Answer(body=self.body if self.body is not None else self._answer(asked.path))

    def _answer(self, path: str) -> bytes:
        if path == LOGS:
            logs = ExportLogsPartialSuccess(rejected_log_records=self.rejects)
            return bytes(ExportLogsServiceResponse(partial_success=logs).SerializeToString())
        points = ExportMetricsPartialSuccess(rejected_data_points=self.rejects)
        return bytes(ExportMetricsServiceResponse(partial_success=points).SerializeToString())


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
