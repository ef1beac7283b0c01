"""A model named for one run instead of the configured one. Light, so that the command line can import it at once."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.adapters.models.providers import PROVIDERS
from denizen.domain.errors import InvalidInput

KINDS: tuple[str, ...] = tuple(PROVIDERS)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """All empty: the configured model. `model` alone is an alias or a configured model's name."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""

    @property
    def is_provider(self) -> bool:
        """Whether a provider was described, and not only one of the configured models named."""
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
