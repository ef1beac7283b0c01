"""Signs webhooks as a sender does that follows Standard Webhooks."""

from __future__ import annotations

import base64
import hmac
from datetime import datetime


def sign_standard(secret: str, body: bytes, *, now: datetime, key: str = "msg_1") -> dict[str, str]:
    """Returns the headers of a webhook whose secret is the key as it stands."""
    at = str(int(now.timestamp()))
    signature = base64.b64encode(hmac.digest(secret.encode(), f"{key}.{at}.".encode() + body, "sha256")).decode()
    return {"webhook-id": key, "webhook-timestamp": at, "webhook-signature": f"v1,{signature}"}
