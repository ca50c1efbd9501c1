"""A token endpoint of OAuth 2 over TLS: it grants client credentials; brokers check its tokens by the keys it shows."""

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.certificates import Authority

ISSUER: Final = "https://issuer.test"
AUDIENCE: Final = "kafka"
_KEY_ID: Final = "key-1"


class TokenEndpoint:
    """Serves on loopback; use as a context manager.

    Attributes:
        url: where tokens are to be had.
        keys_file: the public keys (JWKS).
        granted: tokens given so far.
    """

    def __init__(self, directory: Path, authority: Authority, client_id: str, client_secret: str, subject: str) -> None:
        pair = f"{client_id}:{client_secret}".encode()
        self._authorization = "Basic " + base64.b64encode(pair).decode()
        self._subject = subject
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self.keys_file = directory / "keys.json"
        key = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        self.keys_file.write_text(json.dumps({"keys": [{**key, "kid": _KEY_ID, "use": "sig", "alg": "RS256"}]}))
        self.granted: list[str] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                known = endpoint._authorization == self.headers.get("authorization")
                status, answer = endpoint._answer() if known and b"client_credentials" in body else (401, {})
                payload = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: object) -> None:
                """Nothing is printed into the tests' output."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        certificate, key_file = authority.issue("token-endpoint", "127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key_file)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="token-endpoint", daemon=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}/token"

    def _answer(self) -> tuple[int, dict[str, object]]:
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": self._subject,
            "scope": "monitor",
            "iat": now,
            "exp": now + 600,
        }
        token = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": _KEY_ID})
        self.granted.append(token)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 600}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
