"""What stands before every page: who may come in, what may be asked for, and what browsers must not do with answers.

Plain ASGI, the innermost parts know nothing of it. Probes (`/healthz`, `/ready`) stay open, because orchestrators ask
without credentials and learn nothing from them but numbers.

A monitor without credentials is guarded by being out of reach; a page of another site in a browser that reaches it
could still ask it, under a name that it has pointed there (DNS rebinding), or by its address. So such a monitor answers
to addresses, to names of this machine and to those of `http.allowed_hosts`, and every monitor refuses what a
browser says another site asks for, but for following a link.
"""

import base64
import binascii
import contextlib
import hmac
import ipaddress
import json
import math
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from streaming.base.wanted import GoneError, asked_by
from streaming.web.connection_limits import CONNECTION, LONGEST_HEAD, NO_CLIENT, who
from streaming.web.rate_limit import Guesses, RateLimit

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

OPEN_PATHS: Final = frozenset({"/healthz", "/ready"})
ANYONE: Final = "group_monitor.anyone"
"""Key of the scope: whether credentials are asked for, and this request for an open path has none that are right."""
METHODS: Final = ("GET", "HEAD")
LONGEST_QUERY: Final = 100_000
"""A group's name may have 32 KB, and three times that percent-encoded."""

SECURITY_HEADERS: Final = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
TLS_HEADERS: Final = ((b"strict-transport-security", b"max-age=31536000"),)
"""Only over TLS: a browser that has seen it once speaks to this host in no other way for a year."""

COST_OF_WRONG_CREDENTIALS: Final = 20.0
"""In requests: who guesses is slowed down before who asks."""

_Refusal = tuple[int, str, list[tuple[bytes, bytes]]]
_CLOSE: Final = (b"connection", b"close")
_REALM: Final = 'realm="group-monitor", charset="UTF-8"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What callers must send: a bearer token, a user name with password, or either.

    A browser cannot send a token, so it may be given as the password of basic authentication, with any user name.
    """

    token: str | None = None
    username: str | None = None
    password: str | None = None

    @property
    def required(self) -> bool:
        """Whether callers must identify themselves at all."""
        return self.token is not None or self.username is not None

    def accept(self, authorization: bytes) -> bool:
        """Whether an Authorization header is right; takes the same time however much of it is."""
        scheme, _, given = authorization.strip().partition(b" ")
        if scheme.lower() == b"bearer":
            return _same(given.strip(), self.token)
        if scheme.lower() != b"basic":
            return False
        try:
            username, _, password = base64.b64decode(given.strip(), validate=True).partition(b":")
        except binascii.Error:
            return False
        is_user = _same(username, self.username) & _same(password, self.password)
        return is_user | _same(password, self.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """How the application is reached.

    Attributes:
        hosts: names that requests may be addressed to, beside addresses and this machine's own; None for any name.
        requests_per_second: of one address; 0 for any number.
        tls: whether it is reached over TLS.
        to_anyone: whether no credentials are asked for, and no names are said.
    """

    hosts: frozenset[str] | None = None
    requests_per_second: float = 0.0
    tls: bool = False
    to_anyone: bool = False


class Guard:
    """Wraps an ASGI application.

    Args:
        app: what is guarded.
        credentials: what callers must send.
        door: how it is reached.
    """

    def __init__(self, app: App, credentials: Credentials, door: Door | None = None) -> None:
        self._app = app
        self._credentials = credentials
        self._door = door or Door()
        self._headers = (*SECURITY_HEADERS, *(TLS_HEADERS if self._door.tls else ()))
        self._rate = RateLimit(self._door.requests_per_second)
        self._guesses = Guesses(self._door.requests_per_second / COST_OF_WRONG_CREDENTIALS)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with security headers on the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                # What is shown is of now and for those who may see it: no cache keeps it, unless it is a file.
                fresh = [] if any(name == b"cache-control" for name, _ in given) else [(b"cache-control", b"no-store")]
                message["headers"] = [*given, *fresh, *self._headers]
            await send(message)

        refusal = self._refusal(scope)
        if self._door.to_anyone or scope["path"] in OPEN_PATHS:
            scope[ANYONE] = self._door.to_anyone or not self._is_known(scope)
        if refusal is None:
            client = scope.get(CONNECTION, NO_CLIENT)
            if not scope.get(ANYONE):
                client.let_in()
            asked_by(client)
            # What was not finished for a client that is gone is no error.
            with contextlib.suppress(GoneError):
                await self._app(scope, receive, send_safely)
            return
        status, reason, headers = refusal
        body = json.dumps({"error": reason}).encode()
        lengths = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send_safely({"type": "http.response.start", "status": status, "headers": [*lengths, *headers]})
        await send_safely({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _refusal(self, scope: AsgiScope) -> _Refusal | None:
        open_path = scope["path"] in OPEN_PATHS
        address = _address(scope)
        return (
            self._malformed(scope)
            or self._misdirected(scope)
            or self._cross_site(scope)
            or (None if open_path else self._too_often(address))
            or (None if open_path else self._unknown(scope, address))
        )

    @staticmethod
    def _malformed(scope: AsgiScope) -> _Refusal | None:
        if scope["method"] not in METHODS:
            accepted = ", ".join(METHODS)
            # Closed, here and below, because a body that may come would be read for the next request, or all of it.
            allow = [(b"allow", accepted.encode()), _CLOSE]
            return 405, f"method: found {scope['method']}, accepted: {accepted}", allow
        if not scope["path"].startswith("/"):
            return 400, "address: found one of a server, accepted: a path, as this is no proxy", [_CLOSE]
        if len(scope["query_string"]) > LONGEST_QUERY:
            return 414, f"query: found {len(scope['query_string'])} bytes, accepted: at most {LONGEST_QUERY}", [_CLOSE]
        head = len(scope["raw_path"]) + sum(len(name) + len(value) for name, value in scope["headers"])
        if head > LONGEST_HEAD:
            return 431, f"head: found {head} bytes, accepted: at most {LONGEST_HEAD}", [_CLOSE]
        if any(name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 "))
               for name, value in scope["headers"]):  # fmt: skip
            return 413, "body: found one, accepted: requests without a body", [_CLOSE]
        return None

    def _misdirected(self, scope: AsgiScope) -> _Refusal | None:
        if self._door.hosts is None:
            return None
        for name, value in scope["headers"]:
            if name == b"host" and not _is_own(value.decode("latin-1"), self._door.hosts):
                accepted = "an address, localhost, or a name of http.allowed_hosts"
                return 421, f"Host: found {value.decode('latin-1')!r}, accepted: {accepted}", []
        return None

    @staticmethod
    def _cross_site(scope: AsgiScope) -> _Refusal | None:
        """What a page of another site asks for, as browsers say.

        A link that is followed is asked for by its reader, unless it is fetched before.
        """
        sent = {name: value for name, value in scope["headers"] if name.startswith(b"sec-fetch-")}
        if sent.get(b"sec-fetch-site") != b"cross-site":
            return None
        is_followed = (sent.get(b"sec-fetch-mode"), sent.get(b"sec-fetch-dest")) == (b"navigate", b"document")
        is_fetched_before = any(name in (b"purpose", b"sec-purpose") for name, _ in scope["headers"])
        if scope["method"] == "GET" and is_followed and not is_fetched_before:
            return None
        return 403, "Sec-Fetch-Site: found cross-site, accepted: what our own pages ask for, and links to them", []

    def _is_known(self, scope: AsgiScope) -> bool:
        """Whether a request for an open path may be answered in full; guesses count as everywhere."""
        if not self._credentials.required:
            return True
        address = _address(scope)
        return (
            bool(_authorization(scope))
            and not self._rate.wait_seconds(address)
            and self._unknown(scope, address) is None
        )

    def _too_often(self, address: str) -> _Refusal | None:
        wait_seconds = self._rate.wait_seconds(address)
        if not wait_seconds:
            return None
        most = self._door.requests_per_second
        retry = [(b"retry-after", str(math.ceil(wait_seconds)).encode())]
        return 429, f"requests: found too many, accepted: {most:g} a second (http.requests_per_second)", retry

    def _unknown(self, scope: AsgiScope, address: str) -> _Refusal | None:
        if not self._credentials.required:
            return None
        sent = _authorization(scope)
        wait_seconds = self._guesses.wait_seconds(address) if sent else 0.0
        if wait_seconds:
            retry = [(b"retry-after", str(math.ceil(wait_seconds)).encode())]
            return 429, "Authorization: found too many that are not right, accepted: none from here for now", retry
        if len(sent) == 1 and self._credentials.accept(sent[0]):
            self._guesses.right(address)
            return None
        if sent:
            self._rate.charge(address, COST_OF_WRONG_CREDENTIALS)
            self._guesses.wrong(address)
        schemes = ["Bearer", "Basic"] if self._credentials.token is not None else ["Basic"]
        challenges = [(b"www-authenticate", f"{scheme} {_REALM}".encode()) for scheme in schemes]
        found = "no credentials" if not sent else "credentials that are not right"
        return 401, f"Authorization: found {found}, accepted: {' or '.join(schemes)} as configured", challenges


def _address(scope: AsgiScope) -> str:
    return who(str((scope.get("client") or ("",))[0]))


def _authorization(scope: AsgiScope) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == b"authorization"]


def _is_own(host: str, accepted: frozenset[str]) -> bool:
    """Whether a Host header names this machine: an address cannot be pointed elsewhere, and these names are never."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost") or name in accepted:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(given: bytes, expected: str | None) -> bool:
    return hmac.compare_digest(given, (expected or "").encode()) and expected is not None
