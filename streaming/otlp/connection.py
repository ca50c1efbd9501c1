"""The exporters of OpenTelemetry's SDK, and what came of an export, which they only log.

The specification knows answers that another try does not change (OTLP/HTTP, "Failures"): what was sent is given up and
counted. Unlike it, wrong credentials are tried again, since somebody may put them right.
"""

import logging
from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from streaming.base.errors import UsageError
from streaming.base.version import release
from streaming.config.output_sections import OtlpSection

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

TIMEOUT_SECONDS: Final = 10.0
POINTS_AT_ONCE: Final = 10_000
"""Samples of one request: about a megabyte before compression."""

_GIVEN_UP: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
_NOT_LET_IN: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_SHOWN_CHARACTERS: Final = 200


class ExportError(Exception):
    """Nothing arrived; the text says why. It may be tried again."""


class Exporting:
    """An exporter of the SDK with an answer to each export.

    Args:
        exporter: makes it, with the settings that all signals share.
        settings: where to.
        path: of the signal, behind the endpoint.
        rejected: how many the collector says it rejected, from the body of its answer.
    """

    def __init__(
        self, exporter: Callable[..., Any], settings: OtlpSection, path: str, rejected: Callable[[bytes], int]
    ) -> None:
        from opentelemetry.exporter.otlp.proto.http import Compression  # imported late: an extra
        from requests import Response, Session, TooManyRedirects

        # What they log of a failure is in `ExportError`.
        logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL + 1)
        self._rejected = rejected
        self._endpoint = settings.endpoint
        self._status, self._body, self._failure = 0, b"", ""
        outer = self

        class Noting(Session):
            def request(self, *given: Any, **named: Any) -> Response:  # noqa: ANN401 - passed on
                outer._status = 0
                try:
                    # Said with each request: otherwise REQUESTS_CA_BUNDLE in the environment would win over ca_file.
                    answer = super().request(*given, **{**named, "verify": self.verify})
                except Exception as error:
                    outer._failure = _reason(error)
                    raise
                outer._status, outer._body = answer.status_code, answer.content
                outer._failure = f"HTTP {answer.status_code} {answer.reason}"
                if answer.is_redirect:
                    # The SDK would take it for success; credentials go where the option says and nowhere else.
                    raise TooManyRedirects(outer._failure)
                return answer

        self._exporter = exporter(
            endpoint=f"{(settings.endpoint or '').rstrip('/')}/{path}",
            certificate_file=None if settings.ca_file is None else str(settings.ca_file),
            headers=settings.headers,
            timeout=TIMEOUT_SECONDS,
            compression=Compression.Gzip,
            session=Noting(),
        )

    def export(self, batch: Any, size: int) -> int:  # noqa: ANN401 - what the exporter takes
        """Send a batch of `size` entries; returns how many were refused for good. Raises ExportError."""
        self._status, self._body, self._failure = 0, b"", "what it was to send cannot be encoded"
        if self._exporter.export(batch).name == "SUCCESS":
            return min(size, self._rejected_now())
        if self._status in _GIVEN_UP:
            return size
        if self._status in _NOT_LET_IN:
            found = f"those given, with which {self._endpoint} does not let in ({self._failure})"
            raise ExportError(f"otlp.headers: found {found}, accepted: headers with credentials that it knows")
        found = f"{self._endpoint!r} ({self._failure})"
        raise ExportError(f"otlp.endpoint: found {found}, accepted: a collector that takes OTLP over HTTP")

    @property
    def failure(self) -> str:
        """What the last answer was."""
        return self._failure

    def close(self) -> None:
        """Let go of the collector; an export under way ends."""
        self._exporter.shutdown()

    def _rejected_now(self) -> int:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # has no types

        try:
            return self._rejected(self._body)
        except DecodeError:
            # Some say that they took it in words of their own.
            return 0


def refuse_unreachable(settings: OtlpSection) -> None:
    """Ask the collector for each signal that is exported, with nothing in it. Raises UsageError and ExportError."""
    refuse_without_library(settings)
    from opentelemetry.sdk.metrics.export import MetricsData  # imported late: an extra

    for wanted, exporting, nothing in (
        (settings.metrics, metrics_exporting, MetricsData([])),
        (settings.events, events_exporting, []),
    ):
        if wanted:
            with closing(exporting(settings)) as asked:
                asked.export(nothing, 0)


def refuse_without_library(settings: OtlpSection) -> None:
    """Return where nothing is exported, or can be. Raises UsageError, with what to install."""
    if settings.endpoint is None:
        return
    try:
        import opentelemetry.exporter.otlp.proto.http  # noqa: F401 - looked for
    except ImportError:
        raise UsageError(
            f"otlp.endpoint: found {settings.endpoint!r} without the package opentelemetry-exporter-otlp-proto-http, "
            "accepted: with it, as in pip install 'group-monitor[otlp]'"
        ) from None


def metrics_exporting(settings: OtlpSection) -> Exporting:
    """What takes metrics."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # imported late: an extra
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

    def rejected(body: bytes) -> int:
        return int(ExportMetricsServiceResponse.FromString(body).partial_success.rejected_data_points)

    return Exporting(OTLPMetricExporter, settings, "v1/metrics", rejected)


def events_exporting(settings: OtlpSection) -> Exporting:
    """What takes log records."""
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # imported late: an extra
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

    def rejected(body: bytes) -> int:
        return int(ExportLogsServiceResponse.FromString(body).partial_success.rejected_log_records)

    return Exporting(OTLPLogExporter, settings, "v1/logs", rejected)


def resource(cluster: str) -> "Resource":
    """Who sends: the same after a restart and after a takeover. OTEL_RESOURCE_ATTRIBUTES adds to it."""
    from opentelemetry.sdk.resources import Resource  # imported late: an extra

    return Resource.create(
        {
            "service.name": "group-monitor",
            "service.version": release(),
            "service.instance.id": valid_text(cluster),
        }
    )


def valid_text(value: str) -> str:
    """The text as UTF-8 can have it: half a surrogate pair, as a hostile name may have, is spelt out."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")


def _reason(error: BaseException) -> str:
    """What lies beneath an error of requests, whose own text has the objects it went through."""
    while True:
        beneath = error.__cause__ or error.__context__ or getattr(error, "reason", None)
        if not isinstance(beneath, BaseException):
            break
        error = beneath
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0][:_SHOWN_CHARACTERS]
