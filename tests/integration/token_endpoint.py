"""A token endpoint of OAuth 2 over TLS: it grants client credentials; brokers check its tokens by the keys it shows."""

import base64
import json
import time
from pathlib import Path
from typing import Final

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.certificates import Authority
from tests.http_server import Answer, Asked, HttpServer, in_json

ISSUER: Final = "https://issuer.test"
AUDIENCE: Final = "kafka"
_KEY_ID: Final = "key-1"


class TokenEndpoint(HttpServer):
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
        super().__init__(self._answered, authority.issue("token-endpoint", "127.0.0.1"))
        self.url += "/token"

    def _answered(self, asked: Asked) -> Answer:
        known = self._authorization == asked.headers.get("authorization")
        return in_json(self._token()) if known and b"client_credentials" in asked.body else in_json({}, 401)

    def _token(self) -> dict[str, object]:
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
        return {"access_token": token, "token_type": "Bearer", "expires_in": 600}
