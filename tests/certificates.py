"""Certificates for tests, right ones and wrong ones: an authority and what it signs, as PEM files."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

LONG_AGO: Final = datetime(2020, 1, 1, tzinfo=UTC)


class Authority:
    """Signs certificates into a directory.

    Attributes:
        file: its own certificate.
    """

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._ca = trustme.CA(organization_name=name)
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / f"{name}.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def issue(
        self,
        name: str,
        *identities: str,
        common_name: str | None = None,
        expired: bool = False,
        password: bytes | None = None,
    ) -> tuple[Path, Path]:
        """Files of a certificate's chain and of its key (PKCS#8), called after `name`."""
        leaf = self._ca.issue_cert(*identities, common_name=common_name, not_after=LONG_AGO if expired else None)
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        loaded = load_pem_private_key(leaf.private_key_pem.bytes(), password=None)
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password)
        key.write_bytes(loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
        return certificate, key
