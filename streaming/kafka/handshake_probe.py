"""The first contact with a broker: a connection, a TLS handshake, and the two questions that every listener answers.

Kafka's clients try again and again and in the end say that no broker was there. Asked by hand once, each thing that
can be wrong with a listener, a certificate, a name or a password says which option to look at. ApiVersions
(KIP-35) and SaslHandshake (KIP-43) are answered before anybody has said who they are; then we say it (KIP-152).
"""

import socket
import ssl
import struct
from contextlib import suppress
from typing import Final

from streaming.base import kafka_frames
from streaming.base.errors import CannotTellError, first_line
from streaming.config.kafka_sections import KafkaSection, KafkaSecuritySection
from streaming.kafka.kerberos import refuse_without_libraries
from streaming.kafka.oauth_tokens import tokens_of
from streaming.kafka.security_settings import python_security_settings, revealed

_TIMEOUT_SECONDS: Final = 5.0
_API_VERSIONS: Final = 18
_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
"""Keys of the requests; asked in versions 0, 1 and 0, which brokers have known since 1.0."""

_LONGEST_ANSWER: Final = 64 * 1024
_TLS_ALERT: Final = b"\x15\x03"
"""How the answer of a TLS listener to what is no TLS begins; of a Kafka answer it would be a length of 350 MB."""

_UNSUPPORTED_MECHANISM: Final = 33
_NO_SASL_HERE: Final = 34
_NOT_LET_IN: Final = 58
"""Kafka's error codes UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE and SASL_AUTHENTICATION_FAILED."""

_HOST_MISMATCH: Final = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""

_OUT_OF_DATE: Final = (9, 10)
"""OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED."""


def refuse_unreachable(kafka: KafkaSection) -> None:
    """Return once one of the bootstrap servers has answered.

    Raises:
        CannotTellError: none did. Names the option to look at, by what became of the first server that could be
            connected to; where none could, every server with its reason. Also, what Kerberos needs is not here.
    """
    refuse_without_libraries(kafka.security)
    context = _context(kafka.security) if kafka.security.uses_tls else None
    timeout_seconds = min(_TIMEOUT_SECONDS, kafka.request_timeout_ms / 1_000)
    reasons: list[str] = []
    wrong: list[CannotTellError] = []
    for server in kafka.bootstrap_servers.split(","):
        host, _, port = server.rpartition(":")
        host = host.strip("[]")
        try:
            connection = socket.create_connection((host, int(port)), timeout=timeout_seconds)
        except OSError as error:
            reasons.append(f"{server}: {_reason(error)}")
            continue
        try:
            with connection:
                _ask(connection, host, server, kafka.security, context)
        except CannotTellError as error:
            wrong.append(error)
        else:
            return
    if wrong:
        raise wrong[0]
    raise CannotTellError(
        f"kafka.bootstrap_servers: found {kafka.bootstrap_servers!r}, none reachable ({'; '.join(reasons)}), "
        "accepted: HOST:PORT of a running broker"
    )


def _ask(
    connection: socket.socket, host: str, server: str, security: KafkaSecuritySection, context: ssl.SSLContext | None
) -> None:
    if context is not None:
        try:
            connection = context.wrap_socket(connection, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise _untrusted(error, host, server, security) from None
        except TimeoutError:
            raise _silent(server, security) from None
        except OSError as error:
            raise _other_protocol(server, security, _reason(error)) from None
    with connection:
        try:
            connection.sendall(_request(_API_VERSIONS, 0, b""))
            begins = kafka_frames.receive(connection, 4)
        except TimeoutError:
            raise _silent(server, security) from None
        except OSError as error:
            # With TLS 1.3 a broker refuses our certificate, or that there is none, only after its own part is done.
            if context is not None:
                raise _refused_certificate(server, security, _reason(error)) from None
            raise _other_protocol(server, security, _reason(error)) from None
        if context is None and begins.startswith(_TLS_ALERT):
            raise _other_protocol(server, security, "it answers in TLS")
        # What is not answered from here on is left to Kafka's clients to find out.
        with suppress(OSError, ValueError, struct.error):
            kafka_frames.receive_response(connection, begins, _LONGEST_ANSWER)
            mechanism = (security.sasl_mechanism or "none").encode()
            connection.sendall(_request(_SASL_HANDSHAKE, 1, struct.pack(">h", len(mechanism)) + mechanism))
            _judge_handshake(_answer(connection), server, security)
            if security.uses_sasl:
                _authenticate(connection, host, server, security)


def _judge_handshake(answer: bytes, server: str, security: KafkaSecuritySection) -> None:
    """Behind the correlation id: an error, and the mechanisms the listener has."""
    error, count = struct.unpack_from(">hi", answer, 4)
    offered, position = [], 10
    for _ in range(count):
        (length,) = struct.unpack_from(">h", answer, position)
        offered.append(answer[position + 2 : position + 2 + length].decode())
        position += 2 + length
    if security.uses_sasl and error == _NO_SASL_HERE:
        raise _other_protocol(server, security, "it has no SASL")
    if not security.uses_sasl and error == _UNSUPPORTED_MECHANISM:
        raise _other_protocol(server, security, f"it wants SASL: {', '.join(sorted(offered))}")
    if error == _UNSUPPORTED_MECHANISM:
        raise CannotTellError(
            f"kafka.security.sasl_mechanism: found {security.sasl_mechanism}, which {server} does not offer, "
            f"accepted: {', '.join(sorted(offered))}"
        )


def _authenticate(connection: socket.socket, host: str, server: str, security: KafkaSecuritySection) -> None:
    """Say who we are, in kafka-python's words; what Kerberos answers is in the error."""
    try:
        _converse(connection, host, server, security)
    except (CannotTellError, OSError, ValueError, struct.error):
        raise
    except Exception as error:
        # Errors of gssapi, a package that only Kerberos needs.
        if not security.uses_kerberos:
            raise
        raise CannotTellError(
            f"kafka.security.kerberos_service_name: found {security.kerberos_service_name!r}, and no ticket for "
            f"{server} ({first_line(error)}), accepted: the service of the brokers' principals, and a ticket cache "
            "(klist) or a keytab (KRB5_CLIENT_KTNAME) of this account"
        ) from None


def _converse(connection: socket.socket, host: str, server: str, security: KafkaSecuritySection) -> None:
    from kafka.net.sasl import get_sasl_mechanism  # imported late: commands that need no broker start sooner

    settings = {name: value for name, value in python_security_settings(security).items() if value is not None}
    mechanism = get_sasl_mechanism(security.sasl_mechanism)(host=host, **settings)
    while not mechanism.is_done():
        said = mechanism.auth_bytes()
        connection.sendall(_request(_SASL_AUTHENTICATE, 0, struct.pack(">i", len(said)) + said))
        answer = _answer(connection)
        error, length = struct.unpack_from(">hh", answer, 4)
        if error == _NOT_LET_IN:
            raise _stranger(server, security)
        position = 8 + max(0, length)
        (length,) = struct.unpack_from(">i", answer, position)
        mechanism.receive(answer[position + 4 : position + 4 + max(0, length)])


def _stranger(server: str, security: KafkaSecuritySection) -> CannotTellError:
    if security.uses_oauth:
        # Whatever it was that is wrong with the token, a new one may be right.
        tokens_of(security).forget()
    if security.aws_msk_region is not None:
        return CannotTellError(
            f"kafka.security.aws_msk_region: found {security.aws_msk_region!r}, and AWS credentials that {server} does "
            "not let in, accepted: the cluster's region, and credentials that may kafka-cluster:Connect"
        )
    if security.uses_kerberos:
        return CannotTellError(
            f"kafka.security.kerberos_service_name: found {security.kerberos_service_name!r}, and a ticket that "
            f"{server} does not let in, accepted: the service of the brokers' principals, and one that they know"
        )
    option = "oauth_client_id" if security.uses_oauth else "username"
    return CannotTellError(
        f"kafka.security.{option}: found {getattr(security, option)!r}, whom {server} does not let in with "
        f"{security.sasl_mechanism} and the secret given, accepted: a name and a secret that it knows"
    )


def _answer(connection: socket.socket) -> bytes:
    return kafka_frames.receive_response(connection, kafka_frames.receive(connection, 4), _LONGEST_ANSWER)


def _request(key: int, version: int, body: bytes) -> bytes:
    """A request without a client id."""
    request = struct.pack(">hhih", key, version, 0, -1) + body
    return struct.pack(">i", len(request)) + request


def _context(security: KafkaSecuritySection) -> ssl.SSLContext:
    """What kafka-python will trust and show.

    Raises:
        CannotTellError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = security.check_hostname
    try:
        if security.ca_file is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(str(security.ca_file))
    except OSError:
        raise CannotTellError(
            f"kafka.security.ca_file: found {str(security.ca_file)!r}, accepted: a readable PEM file of certificates"
        ) from None
    if security.certificate_file is not None:
        try:
            # Without a password of ours OpenSSL would ask for one on the terminal.
            context.load_cert_chain(
                str(security.certificate_file), str(security.key_file), revealed(security.key_password) or ""
            )
        except OSError as error:
            raise CannotTellError(
                f"kafka.security.certificate_file: found {str(security.certificate_file)!r} with key_file "
                f"{str(security.key_file)!r} and key_password {'as given' if security.key_password else 'not given'} "
                f"({_reason(error)}), accepted: a PEM file of a certificate chain and one of its key"
            ) from None
    return context


def _untrusted(
    error: ssl.SSLCertVerificationError, host: str, server: str, security: KafkaSecuritySection
) -> CannotTellError:
    message = error.verify_message.rstrip(".")
    if error.verify_code in _HOST_MISMATCH:
        return CannotTellError(
            f"kafka.security.check_hostname: found true, and {server} with a certificate that is not for {host!r}, "
            "accepted: kafka.bootstrap_servers by the names in the brokers' certificates, or false"
        )
    if error.verify_code in _OUT_OF_DATE:
        return CannotTellError(
            f"kafka.bootstrap_servers: found {server}, whose certificate does not hold today ({message}), "
            "accepted: a broker with a certificate that does"
        )
    trusted = "the system's certificates" if security.ca_file is None else repr(str(security.ca_file))
    return CannotTellError(
        f"kafka.security.ca_file: found {trusted}, which do not prove the certificate of {server} ({message}), "
        "accepted: a PEM file with the certificate of the authority that signed it"
    )


def _refused_certificate(server: str, security: KafkaSecuritySection, reason: str) -> CannotTellError:
    given = "none" if security.certificate_file is None else repr(str(security.certificate_file))
    return CannotTellError(
        f"kafka.security.certificate_file: found {given}, which {server} refuses ({reason}), "
        "accepted: a certificate, with key_file, that the broker trusts and that holds today"
    )


def _silent(server: str, security: KafkaSecuritySection) -> CannotTellError:
    return CannotTellError(
        f"kafka.bootstrap_servers: found {server!r}, which accepts connections but does not answer as a broker with "
        f"security.protocol {security.protocol} in time, accepted: HOST:PORT of a running broker"
    )


def _other_protocol(server: str, security: KafkaSecuritySection, reason: str) -> CannotTellError:
    return CannotTellError(
        f"kafka.security.protocol: found {security.protocol}, which {server} does not speak ({reason}), "
        "accepted: the protocol of that listener"
    )


def _reason(error: OSError) -> str:
    # OpenSSL's own texts carry the line of its source.
    if isinstance(error, ssl.SSLError):
        return (error.reason or "it closes the connection").lower().replace("_", " ")
    return error.strerror or str(error) or type(error).__name__
