"""The server's certificate: loaded at start, and again when its files have changed.

Certificates that renew themselves every few weeks must not need a restart. Every handshake takes the newest context
that could be made; one that cannot be made (half a file, a key that does not fit) is reported once, and the former
stays.
"""

import ssl
from pathlib import Path
from typing import Final

from streaming.base.errors import UsageError
from streaming.base.logging_setup import get_logger
from streaming.base.threads import Repeating

LOOK_EVERY_SECONDS: Final = 10.0

_log = get_logger("http_tls")


class Certificate:
    """A certificate chain and its key, as they are in their files now.

    Args:
        certificate_file: PEM file of the chain, the server's own first.
        key_file: PEM file of the private key, which has no password.

    Attributes:
        context: what the server listens with.

    Raises:
        UsageError: the files cannot be used.
    """

    def __init__(self, certificate_file: Path, key_file: Path) -> None:
        self._files = (certificate_file, key_file)
        self._seen = self._stamp()
        try:
            self._newest = self._loaded()
            self.context = self._loaded()
        except OSError as error:
            raise UsageError(
                f"http.tls_certificate_file: found {certificate_file}, http.tls_key_file: found {key_file} "
                f"({_reason(error)}), accepted: PEM files of a certificate chain and of its key, without a password"
            ) from None
        self.context.sni_callback = self._choose
        thread = Repeating("certificate", LOOK_EVERY_SECONDS, self.look)
        self.start, self.stop = thread.start, thread.stop

    def look(self) -> None:
        """Load the files if they are others than at the last look."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._newest = self._loaded()
        except OSError as error:
            _log.warning("certificate_not_loaded", file=str(self._files[0]), reason=_reason(error), now="the former")
        else:
            _log.info("certificate_loaded", file=str(self._files[0]))

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Called in every handshake, whether the client names a server or not."""
        connection.context = self._newest

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        certificate_file, key_file = self._files
        # Without a password of ours OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate_file, key_file, password="")
        return context

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(_stamp(path) for path in self._files)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    # What Kubernetes mounts is a link to another file after a change, with a time of its own.
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return error.strerror or str(error)
