"""What stands before every page: who may come in, what may be asked for, and what browsers must not do with answers.

Plain ASGI, the innermost parts know nothing of it. Probes (`/healthz`, `/ready`) stay open, because orchestrators ask
without credentials and learn nothing from them but numbers.
"""

import base64
import binascii
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS: Final = frozenset({"/healthz", "/ready"})
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
)

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


class Guard:
    """Wraps an ASGI application.

    Args:
        app: what is guarded.
        credentials: what callers must send.
    """

    def __init__(self, app: App, credentials: Credentials) -> None:
        self._app = app
        self._credentials = credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with security headers on the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send_safely)
            return
        status, reason, headers = refusal
        body = json.dumps({"error": reason}).encode()
        lengths = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send_safely({"type": "http.response.start", "status": status, "headers": [*lengths, *headers]})
        await send_safely({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _refusal(self, scope: Scope) -> tuple[int, str, list[tuple[bytes, bytes]]] | None:
        if scope["method"] not in METHODS:
            accepted = ", ".join(METHODS)
            return 405, f"method: found {scope['method']}, accepted: {accepted}", [(b"allow", accepted.encode())]
        if len(scope["query_string"]) > LONGEST_QUERY:
            return 414, f"query: found {len(scope['query_string'])} bytes, accepted: at most {LONGEST_QUERY}", []
        if not self._credentials.required or scope["path"] in OPEN_PATHS:
            return None
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(sent) == 1 and self._credentials.accept(sent[0]):
            return None
        schemes = ["Bearer", "Basic"] if self._credentials.token is not None else ["Basic"]
        challenges = [(b"www-authenticate", f"{scheme} {_REALM}".encode()) for scheme in schemes]
        found = "no credentials" if not sent else "credentials that are not right"
        return 401, f"Authorization: found {found}, accepted: {' or '.join(schemes)} as configured", challenges


def _same(given: bytes, expected: str | None) -> bool:
    return hmac.compare_digest(given, (expected or "").encode()) and expected is not None
