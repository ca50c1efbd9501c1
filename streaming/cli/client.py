"""Asking a running monitor over its HTTP API, with the standard library alone so that commands start at once."""

import base64
import json
import os
import ssl
from collections.abc import Collection, Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from streaming.base.doubt import cannot_tell
from streaming.base.errors import CannotTellError, NoSuchGroupError, UsageError

DEFAULT_URL: Final = "http://127.0.0.1:9464"
TIMEOUT_SECONDS: Final = 10.0

# The environment, not the command line: a process list shows the latter to everybody.
TOKEN_VARIABLE: Final = "GROUP_MONITOR_TOKEN"  # noqa: S105 - the variable's name, no token
USERNAME_VARIABLE: Final = "GROUP_MONITOR_USERNAME"
PASSWORD_VARIABLE: Final = "GROUP_MONITOR_PASSWORD"  # noqa: S105 - as above

_UNAUTHORIZED: Final = (401, 403)
_NOT_FOUND: Final = 404
_NOT_KEPT: Final = (410, 501)


class MonitorClient:
    """A running monitor.

    Args:
        url: where it listens, http:// or https://.
        ca_file: PEM file with the certificates to trust; None for the system's.
        environment: where credentials are looked up, None for the process's.

    Raises:
        UsageError: the URL is none, or the file cannot be used.
    """

    def __init__(
        self,
        url: str,
        ca_file: Path | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(f"--url: found {url!r}, accepted: http://HOST:PORT or https://HOST:PORT")
        self._url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._headers = _authorization(os.environ if environment is None else environment)
        self._opener = _opener(parts.hostname, ca_file if parts.scheme == "https" else None)

    def groups(self) -> list[dict[str, Any]]:
        """All groups, of a monitor that may have read half a log: `found` says so."""
        return list(self.found()["groups"])

    def found(self, **asked: str | None) -> dict[str, Any]:
        """`groups` by `topic`, `owner`, `client_id`, `host`, `instance_id`; of how many it is not known; `doubt`."""
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return self._get("/api/v1/groups" + (f"?{query}" if query else ""))

    def group(self, name: str) -> dict[str, Any]:
        """One group with members, offsets and lag.

        Raises:
            NoSuchGroupError: there is no such group.
        """
        # A path cannot end in these: they are removed on the way.
        in_query = name in ("", ".", "..")
        return self._get("/api/v1/groups/" + ("?" + urlencode({"name": name}) if in_query else quote(name, safe="")))

    def events(self, group: str | None = None, limit: int = 10) -> list[dict[str, Any]]:
        """The latest events, oldest first, of one group or of all."""
        wanted = {"limit": limit} if group is None else {"limit": limit, "group": group}
        return _as_kept(self._get("/api/v1/events?" + urlencode(wanted))["events"])

    def history(self, name: str, **asked: int | None) -> dict[str, Any]:
        """What the monitor's history has of a group: its events, or with `at` how it was.

        Raises:
            NoSuchGroupError: there is, or was, no such group.
            CannotTellError: the monitor keeps no history, or none that goes back so far.
        """
        query = [("name", name), *((of, value) for of, value in asked.items() if value is not None)]
        found = self._get("/api/v1/history?" + urlencode(query))
        return {**found, "events": _as_kept(found["events"])} if "events" in found else found

    def lag(self, name: str) -> dict[str, Any]:
        """A group's lag in the last hour: `times` (ms) and `lag` (records, None where it was not known).

        Raises:
            NoSuchGroupError: there is no such group.
        """
        return self._get("/api/v1/lag?" + urlencode({"group": name}))

    def gate(self, gate: str, groups: Collection[str], **asked: str | None) -> dict[str, Any]:
        """The verdict of a gate (`upgrade`, `downgrade`) on some groups, or on all; `asked` is what else it takes.

        Raises:
            NoSuchGroupError: there is no such group.
        """
        query = [("group", group) for group in groups]
        query += [(name, value) for name, value in asked.items() if value is not None]
        return self._get(f"/api/v1/gate/{gate}?" + urlencode(query))

    def plan(self, groups: Collection[str] = (), match: str | None = None) -> dict[str, Any]:
        """The migration plan of the groups named and of those that a shell pattern matches; of all where neither is.

        Raises:
            NoSuchGroupError: one of those named does not exist.
        """
        query = [("group", group) for group in groups] + ([] if match is None else [("match", match)])
        return self._get("/api/v1/plan?" + urlencode(query))

    def _get(self, path: str) -> dict[str, Any]:
        request = Request(self._url + path, headers={"Accept": "application/json", **self._headers})  # noqa: S310 - the scheme was checked
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as response:
                answer = json.loads(response.read())
        except _ElsewhereError as error:
            found = f"{self._url} sending on to {error.origin}"
            raise CannotTellError(f"--url: found {found}, accepted: the address of the monitor itself") from None
        except HTTPError as error:
            raise self._refused(error) from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            text = getattr(reason, "strerror", None) or str(reason)
            raise CannotTellError(
                f"--url: found {self._url} ({text}), accepted: the address of a running monitor"
            ) from None
        except ValueError:
            raise CannotTellError(
                f"--url: found {self._url}{path} answering without JSON, accepted: a monitor"
            ) from None
        if not isinstance(answer, dict):
            raise CannotTellError(f"--url: found {self._url}{path} answering strangely, accepted: a monitor")
        return answer

    def _refused(self, error: HTTPError) -> Exception:
        reason, doubt = _reason_of(error)
        if doubt is not None:
            return CannotTellError(f"{reason}; {cannot_tell(doubt)}")
        if error.code == _NOT_FOUND:
            return NoSuchGroupError(reason)
        if error.code in _NOT_KEPT:
            return CannotTellError(reason)
        if error.code in _UNAUTHORIZED:
            return CannotTellError(
                f"{TOKEN_VARIABLE}: found credentials that {self._url} refuses ({reason}), accepted: its bearer token, "
                f"or {USERNAME_VARIABLE} and {PASSWORD_VARIABLE}"
            )
        return CannotTellError(f"--url: found {self._url} answering {error.code} ({reason}), accepted: a ready monitor")


def _authorization(environment: Mapping[str, str]) -> dict[str, str]:
    token = environment.get(TOKEN_VARIABLE)
    if token:
        return {"Authorization": f"Bearer {token}"}
    username = environment.get(USERNAME_VARIABLE)
    if username:
        credentials = f"{username}:{environment.get(PASSWORD_VARIABLE, '')}".encode()
        return {"Authorization": "Basic " + base64.b64encode(credentials).decode("ascii")}
    return {}


class _ElsewhereError(Exception):
    """An answer sends on to another origin, which is not to get what was meant for this one."""

    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self.origin = origin


class _AtHome(HTTPRedirectHandler):
    """Follows no answer to another origin: credentials would go with it."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:  # noqa: ANN401, PLR0913 - as its base
        """See the base."""
        if _origin(newurl) != _origin(req.full_url):
            scheme, host, port = _origin(newurl)
            raise _ElsewhereError(f"{scheme}://{host}:{port}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _opener(host: str | None, ca_file: Path | None) -> OpenerDirector:
    # A machine behind a proxy may have no `no_proxy`: what is on this machine is not the proxy's, nor is its token.
    proxies = [ProxyHandler({})] if host is not None and _is_here(host) else []
    return build_opener(_AtHome, HTTPSHandler(context=_tls_context(ca_file)), *proxies)


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError):
        raise UsageError(f"--ca-file: found {str(ca_file)!r}, accepted: a readable PEM file") from None


def _reason_of(error: HTTPError) -> tuple[str, Mapping[str, Any] | None]:
    """The monitor's own words where it gives any, and its doubt: errors are JSON objects with `error`."""
    try:
        answer = json.loads(error.read())
    except (ValueError, OSError):
        return error.reason, None
    if not isinstance(answer, dict):
        return error.reason, None
    reason = answer.get("error")
    return (reason if isinstance(reason, str) else error.reason), answer.get("doubt")


def _as_kept(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """EVENTs as topics and files have them, without the sentence that the API adds for the page."""
    return [{name: value for name, value in event.items() if name != "text"} for event in events]
