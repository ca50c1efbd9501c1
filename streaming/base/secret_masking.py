"""Secrets that must not be written anywhere: code that reads one registers it here, code that writes a line asks here.

Our own messages never hold one. This is for what others write: kafka-python logs its whole configuration at debug
level, and an error's text may quote what was sent.
"""

import json
from typing import Final

MASK: Final = "**********"

# Shorter ones would be found in every other word; such a password is no secret.
_SHORTEST: Final = 4

_hidden: frozenset[str] = frozenset()


def hide(secret: str, *, instead_of: str = "") -> None:
    """Have `masked` replace a secret from now on, in every form a log line may give it.

    Args:
        secret: what must not be read.
        instead_of: one that was hidden and is of no use any more, as a token that was renewed.
    """
    global _hidden  # noqa: PLW0603 - replaced, never changed: other threads read it meanwhile
    _hidden = (_hidden - _spellings(instead_of)) | _spellings(secret)


def masked(text: str) -> str:
    """The text without any secret."""
    # Longest first: one secret may be part of another.
    for secret in sorted(_hidden, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _spellings(secret: str) -> frozenset[str]:
    if len(secret) < _SHORTEST:
        return frozenset()
    spelt = {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]}
    return frozenset(spelt | {text.replace("\\", "\\\\").replace('"', '\\"') for text in spelt})
