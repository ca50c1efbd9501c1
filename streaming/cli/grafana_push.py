"""Putting boards into a Grafana over its HTTP API: the same boards twice change nothing.

Boards are known by their uid, a folder by its title, the data source by a uid of ours. What is there and equal is left
alone, what differs is replaced: save a board that you change in the browser under another name.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from grafana_client import GrafanaApi
from grafana_client.client import GrafanaClientError, GrafanaException

from streaming.base.errors import CannotTellError, CheckFailed, UsageError
from streaming.base.secret_masking import hide

# The environment, not the command line: a process list shows the latter to everybody.
TOKEN_VARIABLE: Final = "GRAFANA_TOKEN"  # noqa: S105 - the variable's name, no token
USERNAME_VARIABLE: Final = "GRAFANA_USERNAME"
PASSWORD_VARIABLE: Final = "GRAFANA_PASSWORD"  # noqa: S105 - as above

OLDEST_RELEASE: Final = 10
"""Of Grafana: the boards use what older ones do not show."""

DATA_SOURCE: Final = "group-monitor"
"""Name and uid of the data source that `--prometheus-url` makes."""

TIMEOUT_SECONDS: Final = 10.0

CREATED: Final = "created"
UPDATED: Final = "updated"
UNCHANGED: Final = "unchanged"

_UNAUTHORIZED: Final = (401, 403)
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing put into Grafana, or found there: its kind, its name, what was done, and a board's address."""

    kind: str
    name: str
    action: str
    address: str | None = None


class Grafana:
    """A Grafana.

    Args:
        url: its address, http:// or https://, with the path it is served under.
        ca_file: PEM file with the certificates to trust; None for the system's.
        dry_run: look and tell, change nothing.
        environment: where credentials are looked up, None for the process's.

    Raises:
        UsageError: the URL is none.
    """

    def __init__(
        self,
        url: str,
        ca_file: Path | None = None,
        *,
        dry_run: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        parts = _address(url)
        self._url = url.rstrip("/")
        self._dry_run = dry_run
        self._credentials = _credentials(os.environ if environment is None else environment)
        self._api = GrafanaApi(
            self._credentials,
            # With brackets around an IPv6 address, which `hostname` takes off; the port stands here too.
            host=parts.netloc,
            port=None,
            url_path_prefix=f"{parts.path.strip('/')}/".lstrip("/"),
            protocol=parts.scheme,
            verify=True if ca_file is None else str(ca_file),
            timeout=TIMEOUT_SECONDS,
        )

    def push(
        self, boards: Mapping[str, Mapping[str, Any]], folder: str, prometheus_url: str | None = None
    ) -> Iterator[Step]:
        """Put boards into a folder; yields each step when it is done.

        Args:
            boards: dashboards in the classic schema, by any name.
            folder: title of the folder, made if there is none.
            prometheus_url: Prometheus as Grafana reaches it; None leaves the data sources as they are. Boards show the
                data source that is made of it at first, and with None the one of an earlier push.

        Raises:
            CannotTellError: Grafana is out of reach, not one, or refuses the credentials.
            CheckFailed: Grafana does not take something.
        """
        with self._explained():
            self._greet()
            if prometheus_url is not None:
                yield self._data_source(prometheus_url)
            uid, step = self._folder(folder)
            yield step
            is_bound = prometheus_url is not None or self._found_data_source() is not None
            for board in boards.values():
                yield self._dashboard(_bound(board) if is_bound else dict(board), uid)

    def close(self) -> None:
        """Let go of the connection."""
        self._api.client.s.close()

    def _greet(self) -> None:
        # Not the library's own check: that asks for settings, which a wrong address answers in ways it does not expect.
        health = self._api.client.GET("/health")
        if not isinstance(health, Mapping) or "database" not in health:
            raise CannotTellError(f"--url: found {self._url} answering strangely, accepted: the address of a Grafana")
        release = str(health.get("version", ""))
        if release.partition(".")[0].isdigit() and int(release.partition(".")[0]) < OLDEST_RELEASE:
            raise CheckFailed(f"--url: found Grafana {release} at {self._url}, accepted: {OLDEST_RELEASE} or newer")

    def _data_source(self, url: str) -> Step:
        found = self._found_data_source()
        wanted = {"uid": DATA_SOURCE, "name": DATA_SOURCE, "type": "prometheus", "access": "proxy", "url": url}
        if found is None:
            self._change(lambda: self._api.datasource.create_datasource(wanted))
            return Step("data source", DATA_SOURCE, CREATED)
        if all(found.get(name) == value for name, value in wanted.items()):
            return Step("data source", DATA_SOURCE, UNCHANGED)
        self._change(lambda: self._api.datasource.update_datasource_by_uid(DATA_SOURCE, {**found, **wanted}))
        return Step("data source", DATA_SOURCE, UPDATED)

    def _found_data_source(self) -> Any:  # noqa: ANN401 - JSON of the API
        return _or_none(lambda: self._api.datasource.get_datasource_by_uid(DATA_SOURCE))

    def _folder(self, title: str) -> tuple[str | None, Step]:
        """The folder's uid, None for one that a dry run does not make."""
        for folder in self._api.folder.get_all_folders():
            if folder["title"] == title:
                return folder["uid"], Step("folder", title, UNCHANGED)
        made = self._change(lambda: self._api.folder.create_folder(title))
        return None if made is None else made["uid"], Step("folder", title, CREATED)

    def _dashboard(self, board: dict[str, Any], folder_uid: str | None) -> Step:
        title, address = board["title"], f"{self._url}/d/{board['uid']}"
        found = _or_none(lambda: self._api.dashboard.get_dashboard(board["uid"]))
        if found is not None and _same(found["dashboard"], board) and found["meta"].get("folderUid") == folder_uid:
            return Step("dashboard", title, UNCHANGED, address)
        sent = {
            "dashboard": board,
            "folderUid": folder_uid,
            "overwrite": True,
            "message": "group-monitor dashboards push",
        }
        self._change(lambda: self._api.dashboard.update_dashboard(sent))
        return Step("dashboard", title, CREATED if found is None else UPDATED, address)

    def _change(self, change: Callable[[], T]) -> T | None:
        return None if self._dry_run else change()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Show whatever goes wrong on the way in one line."""
        try:
            yield
        except GrafanaException as error:
            raise self._refused(error) from None
        except OSError as error:
            raise CannotTellError(
                f"--url: found {self._url} ({_reason(error)}), accepted: the address of a Grafana"
            ) from None
        except ValueError:
            raise CannotTellError(
                f"--url: found {self._url} answering without JSON, accepted: the address of a Grafana"
            ) from None

    def _refused(self, error: GrafanaException) -> Exception:
        if error.status_code in _UNAUTHORIZED:
            return self._unauthorized(error)
        if isinstance(error, GrafanaClientError) and error.status_code != _NOT_FOUND:
            return CheckFailed(f"--url: {self._url} does not take what is pushed ({error.message})")
        reason = error.message or "no answer in time"
        return CannotTellError(f"--url: found {self._url} ({reason}), accepted: the address of a Grafana")

    def _unauthorized(self, error: GrafanaException) -> CannotTellError:
        """Names the credentials that were used, or what there is to use."""
        refused = f"credentials that {self._url} refuses ({error.message})"
        may = " that may do this" if error.status_code == _FORBIDDEN else ""
        if self._credentials is None:
            return CannotTellError(
                f"{TOKEN_VARIABLE}: found no credentials, and {self._url} wants some ({error.message}), accepted: a "
                f"service account token, or {USERNAME_VARIABLE} and {PASSWORD_VARIABLE}"
            )
        if isinstance(self._credentials, str):
            return CannotTellError(f"{TOKEN_VARIABLE}: found {refused}, accepted: a service account token{may}")
        return CannotTellError(f"{USERNAME_VARIABLE}, {PASSWORD_VARIABLE}: found {refused}, accepted: a user{may}")


def _bound(board: Mapping[str, Any]) -> dict[str, Any]:
    """A board that shows our data source until another one is chosen: of several, Grafana's default may be any."""
    ours = {"selected": True, "text": DATA_SOURCE, "value": DATA_SOURCE}
    listed = board.get("templating", {}).get("list", [])
    variables = [{**of, "current": ours} if of["type"] == "datasource" else of for of in listed]
    return {**board, "templating": {**board["templating"], "list": variables}} if variables else dict(board)


def _address(url: str) -> SplitResult:
    accepted = "accepted: http://HOST:PORT or https://HOST:PORT"
    parts = urlsplit(url)
    if parts.username is not None:
        raise UsageError(f"--url: found an address with credentials in it, {accepted}, and {TOKEN_VARIABLE}")
    try:
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of a port that is no number
        usable = False
    if not usable:
        raise UsageError(f"--url: found {url!r}, {accepted}")
    return parts


def _credentials(environment: Mapping[str, str]) -> str | tuple[str, str] | None:
    token, username = environment.get(TOKEN_VARIABLE), environment.get(USERNAME_VARIABLE)
    password = environment.get(PASSWORD_VARIABLE, "")
    for secret in filter(None, (token, password)):
        hide(secret)
    return token or ((username, password) if username else None)


def _or_none(ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - JSON of the API
    """What is asked for, None where there is no such thing."""
    try:
        return ask()
    except GrafanaClientError as error:
        if error.status_code == _NOT_FOUND:
            return None
        raise


def _same(found: Mapping[str, Any], board: Mapping[str, Any]) -> bool:
    """Whether Grafana has this board; numbers it gives a board itself do not count."""
    return {name: value for name, value in found.items() if name not in {"id", "version"}} == board


def _reason(error: OSError) -> str:
    """The last cause in words: client libraries wrap refused connections several times."""
    cause: BaseException = error
    while isinstance(cause.__cause__ or cause.__context__, BaseException):
        cause = cause.__cause__ or cause.__context__ or cause
    return getattr(cause, "strerror", None) or str(cause)
