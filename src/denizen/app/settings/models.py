"""What `models` in `denizen.yaml` may hold: where models come from, under which names agents use them, and what is
known better about one of them.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from denizen.adapters.models.providers import PROVIDERS, ProviderKind
from denizen.app.settings.fields import HttpUrl, Name, Number, Secret, Section, Text, Whole, refuse

_MILLION = 1_000_000


class ProviderSection(Section):
    """A source of models. The last four keys are for the embedded kind; `threads` 0 takes all processors.

    `timeout_s` is how long the provider may be silent; unset takes what suits the kind.
    """

    kind: ProviderKind
    api_key: Secret = None
    base_url: HttpUrl = ""
    timeout_s: Number | None = Field(default=None, ge=1, le=3600)
    headers: dict[str, Text] = Field(default_factory=dict[str, str])
    model: Text = ""
    weights: Text = ""
    threads: Whole = Field(default=0, ge=0, le=1024)
    context_tokens: Whole | None = Field(default=None, ge=512, le=_MILLION)

    @property
    def foreign_keys(self) -> frozenset[str]:
        return _REMOTE_KEYS if self.kind == "embedded" else _EMBEDDED_KEYS

    @field_validator("headers")
    @classmethod
    def _plain_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not (name.isascii() and name.isprintable() and name) or "\n" in value or "\r" in value:
                raise refuse("a header has a plain name and one line of text.", "Take line breaks out.")
        return headers

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        for key in sorted(self.foreign_keys & self.model_fields_set):
            where = "remote providers" if self.kind == "embedded" else "providers of kind embedded"
            raise refuse(f"is a key of {where} only, and this one is {self.kind}.", "Take the key out.", key=key)
        if self.kind == "openai-compatible" and not self.base_url:
            fix = "Write base_url, such as http://127.0.0.1:9100/v1."
            raise refuse("a provider of kind openai-compatible needs base_url.", fix, key="base_url")
        variable = PROVIDERS[self.kind].key_variable
        if variable and self.api_key is None and not self.base_url:
            fix = f"Write api_key: ${{{variable}}}, and put the key into secrets.env or the environment."
            raise refuse(f"a provider of kind {self.kind} needs api_key.", fix, key="api_key")
        return self


_EMBEDDED_KEYS = frozenset({"model", "weights", "threads", "context_tokens"})
_REMOTE_KEYS = frozenset({"api_key", "base_url", "timeout_s", "headers"})


class AliasSection(Section):
    """A model under a name that agents use, as `provider/model`. Fallbacks are tried in order."""

    model: Text
    fallbacks: tuple[Text, ...] = ()


class OverrideSection(Section):
    """What is known better about one model than its name tells. Unset means detected."""

    native_tools: bool | None = None
    parallel_calls: bool | None = None
    images: bool | None = None
    prefill: bool | None = None
    cache_marks: bool | None = None
    json_schema: bool | None = None
    small: bool | None = None
    image_output: bool | None = Field(
        default=None,
        description="Whether it answers with pictures too: Google, OpenRouter and servers that send them alike.",
    )
    sampling: tuple[Literal["temperature", "top_p", "seed"], ...] | None = None
    context_tokens: Whole | None = Field(default=None, ge=512, le=10 * _MILLION)
    max_output_tokens: Whole | None = Field(default=None, ge=1, le=_MILLION)


def _short_alias(value: object) -> object:
    return {"model": value} if isinstance(value, str) else value


class ModelsSection(Section):
    providers: dict[Name, ProviderSection] = Field(default_factory=dict[str, ProviderSection])
    aliases: dict[Name, Annotated[AliasSection, BeforeValidator(_short_alias)]] = Field(
        default_factory=dict[str, AliasSection]
    )
    overrides: dict[str, OverrideSection] = Field(default_factory=dict[str, OverrideSection])
