"""The clients that make one request to one model, without retries: their interface, and what each is made for.

`sdk_client` goes through the vendors' libraries, `chat_client` speaks chat completions itself. `connection` makes them,
`model` asks them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import field
from typing import Protocol, TypeAlias

from denizen.adapters.models.failures import FailureContext
from denizen.adapters.models.providers import ProviderSpec, cut_to_origin
from denizen.domain.record import record
from denizen.ports.model import Capabilities, ModelReply, ModelRequest, TextDelta, ThinkingDelta

NO_KEY = "none"
"""The key for servers that need none; the SDKs insist on one."""

_LEAST_SECRET_CHARS = 6

ClientEvent: TypeAlias = TextDelta | ThinkingDelta | ModelReply | None
"""An event of a request: deltas, the whole reply last. None is output that is not shown, such as the beginning of
a tool call.
"""


@record
class ProviderAccess:
    """The address to send requests to, the key, and the provider's name of the model."""

    base_url: str
    api_key: str = field(repr=False)
    model: str


@record(kw_only=True)
class ModelTarget:
    """The model that a client talks to. `name` is our full name of it."""

    name: str
    spec: ProviderSpec
    access: ProviderAccess
    capabilities: Capabilities

    @property
    def failure_context(self) -> FailureContext:
        """The names that errors use, and the secrets that they must not show."""
        secrets = (self.access.api_key, *self.spec.headers.values())
        # Without the line break of a file: it is what such errors are about, and they show it in another form.
        kept = tuple(bare for secret in secrets if len(bare := secret.strip()) >= _LEAST_SECRET_CHARS)
        origin = cut_to_origin(self.access.base_url)
        return FailureContext(self.name, self.spec.name, origin, key_name=self.spec.key_name, secrets=kept)


class ModelClient(Protocol):
    """A client for one model."""

    def stream(self, request: ModelRequest, left_s: float) -> AsyncGenerator[ClientEvent]:
        """Makes one request, which may take `left_s` seconds. Raises AttemptFailed, and InvalidInput for a request that
        cannot be sent to this model.
        """
        ...
