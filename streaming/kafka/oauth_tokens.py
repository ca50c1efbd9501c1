"""Bearer tokens: the client credentials grant of OAuth 2 (RFC 6749, 4.4), or signed for Amazon MSK; kept for a while.

librdkafka has the grant built in; kafka-python asks for tokens here, and both ask here for those of MSK. All
connections of this process share a token: it is fetched once, and again when four fifths of its life are over.
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from streaming.base.errors import CannotTellError, first_line
from streaming.base.secret_masking import hide
from streaming.config.kafka_sections import KafkaSecuritySection

TIMEOUT_SECONDS: Final = 10.0
LONGEST_ANSWER: Final = 64 * 1024
_ASSUMED_SECONDS: Final = 60.0
"""Life of a token whose endpoint does not say how long it lasts; RFC 6749 only recommends that it does."""

_RENEW_AT: Final = 0.8


@dataclass(frozen=True, slots=True)
class Token:
    """A token and how long it may be used.

    Attributes:
        text: what is sent to the broker.
        life_seconds: from when it was given.
    """

    text: str
    life_seconds: float


def signed(region: str) -> Token:
    """A token for the MSK clusters of a region, signed with the AWS credentials found here; asks no server for it.

    Raises:
        CannotTellError: the signer is not installed, or there are no credentials; names the option.
    """
    found = f"kafka.security.aws_msk_region: found {region!r}"
    try:
        from aws_msk_iam_sasl_signer.MSKAuthTokenProvider import generate_auth_token  # imported late: an extra
    except ImportError:
        raise CannotTellError(
            f"{found} without the package aws-msk-iam-sasl-signer-python, accepted: with it, as in "
            "pip install 'group-monitor[msk]'"
        ) from None
    try:
        text, until_ms = generate_auth_token(region)
    except AttributeError:
        # What the signer makes of a search for credentials that found none.
        reason = "nothing in the environment, in a profile, or of a role"
    except Exception as error:  # noqa: BLE001 - a chain of providers, each with its own errors
        reason = first_line(error)
    else:
        return Token(text, until_ms / 1_000 - time.time())
    raise CannotTellError(
        f"{found} and no AWS credentials to sign with ({reason}), accepted: credentials where AWS' own tools find them"
    )


def fetch(security: KafkaSecuritySection) -> Token:
    """Ask the token endpoint.

    Raises:
        CannotTellError: it does not answer, refuses, or answers with something else than a token; names the option.
    """
    url = security.oauth_token_url or ""
    secret = security.oauth_client_secret.get_secret_value() if security.oauth_client_secret is not None else ""
    pair = f"{quote_plus(security.oauth_client_id or '')}:{quote_plus(secret)}".encode()
    form = {"grant_type": "client_credentials"}
    if security.oauth_scope is not None:
        form["scope"] = security.oauth_scope
    request = Request(  # noqa: S310 - the option accepts http and https alone
        url,
        data=urlencode(form).encode("ascii"),
        headers={"Authorization": "Basic " + base64.b64encode(pair).decode("ascii"), "Accept": "application/json"},
    )
    try:
        with _opener(security).open(request, timeout=TIMEOUT_SECONDS) as response:
            answer = json.loads(response.read(LONGEST_ANSWER))
    except HTTPError as error:
        raise _refused(security, error.code) from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        text = getattr(reason, "verify_message", None) or getattr(reason, "strerror", None) or str(reason)
        option = "oauth_ca_file" if isinstance(reason, ssl.SSLCertVerificationError) else "oauth_token_url"
        found = url if option == "oauth_token_url" else str(security.oauth_ca_file or "the system's certificates")
        accepted = (
            "an endpoint within reach" if option == "oauth_token_url" else "what proves the endpoint's certificate"
        )
        raise CannotTellError(f"kafka.security.{option}: found {found!r} ({text}), accepted: {accepted}") from None
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("access_token"), str):
        raise CannotTellError(
            f"kafka.security.oauth_token_url: found {url!r} answering without a token, accepted: an endpoint of "
            "OAuth 2 that grants client credentials"
        )
    return Token(answer["access_token"], _seconds(answer.get("expires_in")))


class Tokens:
    """The present token, renewed when it is asked for late in its life; for any thread.

    Args:
        fetch_token: asks the endpoint.
        clock: seconds that only grow.
    """

    def __init__(self, fetch_token: Callable[[], Token], clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch_token
        self._clock = clock
        self._lock = threading.Lock()
        self._text = ""
        self._until = float("-inf")

    def token(self) -> str:
        """The text of a token that is still good. Raises as `fetch`."""
        return self.lasting().text

    def lasting(self) -> Token:
        """A token that is still good, and for how long it should be used."""
        with self._lock:
            if self._clock() >= self._until:
                token = self._fetch()
                hide(token.text, instead_of=self._text)
                self._text, self._until = token.text, self._clock() + token.life_seconds * _RENEW_AT
            return Token(self._text, self._until - self._clock())

    def forget(self) -> None:
        """Fetch another one next time: this one was refused."""
        with self._lock:
            self._until = float("-inf")


@lru_cache(maxsize=16)
def tokens_of(security: KafkaSecuritySection) -> Tokens:
    """The tokens of one configuration; all clients of this process share them."""
    if security.aws_msk_region is not None:
        return msk_tokens(security.aws_msk_region)
    return Tokens(lambda: fetch(security))


@lru_cache(maxsize=16)
def msk_tokens(region: str) -> Tokens:
    """The tokens for the MSK clusters of a region."""
    return Tokens(lambda: signed(region))


def token_provider(security: KafkaSecuritySection) -> Any:  # noqa: ANN401 - kafka-python has no types
    """What kafka-python takes as `sasl_oauth_token_provider`."""
    from kafka.net.sasl.oauth import AbstractTokenProvider  # imported late: commands that need no broker start sooner

    class Provider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
        def token(self) -> str:
            return tokens_of(security).token()

    return Provider()


class _NoRedirect(HTTPRedirectHandler):
    """Credentials go where the option says and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        """See the base: None is no further request, so the answer itself is the error."""


def _opener(security: KafkaSecuritySection) -> Any:  # noqa: ANN401 - urllib's opener, whose answers are untyped
    ca_file = None if security.oauth_ca_file is None else str(security.oauth_ca_file)
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise CannotTellError(
            f"kafka.security.oauth_ca_file: found {ca_file!r}, accepted: a readable PEM file of certificates"
        ) from None
    return build_opener(_NoRedirect, HTTPSHandler(context=context))


def _refused(security: KafkaSecuritySection, status: int) -> CannotTellError:
    if status in (400, 401, 403):
        return CannotTellError(
            f"kafka.security.oauth_client_id: found {security.oauth_client_id!r}, which {security.oauth_token_url} "
            f"refuses with oauth_client_secret and oauth_scope as given (HTTP {status}), accepted: a client it knows"
        )
    return CannotTellError(
        f"kafka.security.oauth_token_url: found {security.oauth_token_url!r} answering HTTP {status}, "
        "accepted: an endpoint of OAuth 2 that grants client credentials"
    )


def _seconds(expires_in: object) -> float:
    try:
        return max(0.0, float(expires_in))  # type: ignore[arg-type]  # a number or text in practice, anything by mistake
    except (TypeError, ValueError):
        return _ASSUMED_SECONDS
