"""Whom Alertmanager notifies: a webhook on loopback that keeps what arrives."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.http_server import Answer, Asked, HttpServer


class Webhook:
    """`notifications` are the bodies of the requests, in order; `alerts` what was in them, each with its status."""

    def __init__(self) -> None:
        self.notifications: list[dict[str, Any]] = []
        self.url = ""

    @property
    def alerts(self) -> list[tuple[str, str, str]]:
        """(status, alert, group) in the order of arrival."""
        return [
            (alert["status"], alert["labels"]["alertname"], alert["labels"].get("group", ""))
            for notification in self.notifications
            for alert in notification["alerts"]
        ]


@contextmanager
def running_webhook() -> Iterator[Webhook]:
    """One that says yes to everything."""
    webhook = Webhook()

    def notified(asked: Asked) -> Answer:
        webhook.notifications.append(asked.json())
        return Answer()

    with HttpServer(notified) as server:
        webhook.url = f"{server.url}/"
        yield webhook
