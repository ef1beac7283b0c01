"""Whether a webhook is GitHub's own: HMAC-SHA256 over its bytes, compared in constant time (inventory S33). Pure."""

from __future__ import annotations

import hashlib
import hmac

HEADER = "x-hub-signature-256"
_PREFIX = "sha256="


def sign(secret: str, body: bytes) -> str:
    """What the header says of a body."""
    return _PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(secret: str, body: bytes, signature: str) -> bool:
    """False without a secret, whatever the signature is."""
    return bool(secret) and hmac.compare_digest(sign(secret, body).encode(), signature.strip().encode())
