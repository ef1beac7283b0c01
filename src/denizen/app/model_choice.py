"""A model that is named for one run instead of the configured one. Imports little, since every command loads it."""

from __future__ import annotations

from denizen.adapters.models.providers import PROVIDERS
from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

KINDS: tuple[str, ...] = tuple(PROVIDERS)


@record
class ModelChoice:
    """The model of a command line. All empty means the configured one; `model` alone is an alias or a model's name."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""

    @property
    def is_provider(self) -> bool:
        """Whether a provider is described, and not only a configured model named."""
        return bool(self.provider or self.base_url)

    @property
    def kind(self) -> str:
        """A base URL alone means a server that speaks OpenAI's protocol."""
        return self.provider or "openai-compatible"

    def check(self) -> None:
        """Raises InvalidInput for a combination that cannot work."""
        if self.is_provider and not self.model and self.kind != "embedded":
            raise InvalidInput("Which model?", why=f"provider '{self.kind}' serves many", fix="Add --model NAME.")
        if self.provider == "openai-compatible" and not self.base_url:
            raise InvalidInput("Where is the server?", fix="Add --base-url http://host:port/v1.")
        if self.api_key_env and not self.is_provider:
            raise InvalidInput("--api-key-env belongs to --provider or --base-url.")
