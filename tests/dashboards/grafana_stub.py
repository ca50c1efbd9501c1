"""What a Grafana answers to the few requests of a push, and a record of what it was asked.

No Grafana can be installed from the package registries, so this is its HTTP conversation and no more: paths, answers
and status codes as the HTTP API's documentation has them (Grafana 12: folder, dashboard, data source, health).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.http_server import Answer, Asked, HttpServer, in_json

TOKEN: Final = "glsa_of_the_test"  # noqa: S105 - of a server that lives as long as a test


class GrafanaStub:
    """Folders, dashboards and data sources that were put in; `requests` are (method, path) in order."""

    def __init__(self) -> None:
        self.folders: list[dict[str, Any]] = []
        self.dashboards: dict[str, dict[str, Any]] = {}
        self.data_sources: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.release = "12.1.0"
        self.url = ""

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Requests that were to change something."""
        return [request for request in self.requests if request[0] != "GET"]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:  # noqa: PLR0911 - a row of a table each
        """Status and JSON of the answer."""
        match (method, path.strip("/").split("/")[1:]):
            case ("GET", ["health"]):
                return 200, {"database": "ok", "version": self.release}
            case ("GET", ["folders"]):
                return 200, self.folders
            case ("POST", ["folders"]):
                self.folders.append({"uid": f"folder-{len(self.folders)}", "title": body["title"]})
                return 200, self.folders[-1]
            case ("GET", ["dashboards", "uid", uid]) if uid in self.dashboards:
                return 200, self.dashboards[uid]
            case ("POST", ["dashboards", "db"]):
                uid = body["dashboard"]["uid"]
                version = self.dashboards[uid]["dashboard"]["version"] + 1 if uid in self.dashboards else 1
                stored = {**body["dashboard"], "id": len(self.dashboards) + 1, "version": version}
                self.dashboards[uid] = {"dashboard": stored, "meta": {"folderUid": body["folderUid"]}}
                return 200, {"uid": uid, "status": "success", "version": version}
            case ("GET", ["datasources", "uid", uid]) if uid in self.data_sources:
                return 200, self.data_sources[uid]
            case ("POST", ["datasources"]):
                self.data_sources[body["uid"]] = {**body, "id": 1}
                return 200, {"datasource": body}
            case ("PUT", ["datasources", "uid", uid]) if uid in self.data_sources:
                self.data_sources[uid] = body
                return 200, {"datasource": body}
        return 404, {"message": "Not found"}


@contextmanager
def running_grafana() -> Iterator[GrafanaStub]:
    """A stub on loopback that wants its token."""
    stub = GrafanaStub()

    def answered(asked: Asked) -> Answer:
        stub.requests.append((asked.method, asked.path))
        if asked.path != "/api/health" and asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return in_json({"message": "Invalid API key"}, 401)
        status, said = stub.answer(asked.method, asked.path, asked.json())
        return in_json(said, status)

    with HttpServer(answered) as server:
        stub.url = server.url
        yield stub
