"""Whom Alertmanager notifies: a webhook on loopback that keeps what arrives."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


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

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            webhook.notifications.append(json.loads(self.rfile.read(length)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            """Nothing: the notifications are kept."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    webhook.url = f"http://127.0.0.1:{server.server_address[1]}/"
    try:
        yield webhook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
