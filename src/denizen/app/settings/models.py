"""The section `models`: where models come from, the names that agents use for them, and corrections of what is
detected.

The kinds of providers are those of `denizen.adapters.models.providers`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from denizen.adapters.models.providers import PROVIDERS, ProviderKind
from denizen.app.settings.fields import HttpUrl, Name, Number, Secret, Section, Text, Whole, refuse
from denizen.domain.usage import TokenPrice

_MILLION = 1_000_000


class ProviderSection(Section):
    """A source of models. The last three keys are for the kind `embedded`, the four before them for the others."""

    kind: ProviderKind = Field(description="The protocol and service.")
    model: Text = Field(
        default="",
        description="The model that is used where an agent or an alias names only the provider. Embedded kind: the "
        "name of a model in the catalogue.",
    )
    api_key: Secret = Field(default=None, description="Needed by services that want one.")
    base_url: HttpUrl = Field(
        default="", description="Another address than the kind's own; needed for `openai-compatible`."
    )
    timeout_s: Number | None = Field(
        default=None,
        ge=1,
        le=3600,
        description="How long the provider may be silent, in seconds; unset: what suits the kind.",
    )
    headers: dict[str, Text] = Field(default_factory=dict[str, str], description="Sent with every request.")
    weights: Text = Field(default="", description="Embedded kind: path of a GGUF file of your own.")
    threads: Whole = Field(default=0, ge=0, le=1024, description="Embedded kind: processors to use; 0 takes all.")
    context_tokens: Whole | None = Field(
        default=None, ge=512, le=_MILLION, description="Embedded kind: tokens of context for one conversation."
    )

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


_EMBEDDED_KEYS = frozenset({"weights", "threads", "context_tokens"})
_REMOTE_KEYS = frozenset({"api_key", "base_url", "timeout_s", "headers"})


class AliasSection(Section):
    """A model under a name that agents use. Fallbacks are tried in order."""

    model: Text = Field(description="The model, as `provider/model`.")
    fallbacks: tuple[Text, ...] = Field(default=(), description="Models to try when it cannot answer, in order.")


class PriceSection(Section):
    """The price of a model, in USD for a million tokens. It counts in place of the list that Denizen ships."""

    input: Decimal = Field(ge=0, le=_MILLION, description="Tokens of the prompt.")
    output: Decimal = Field(ge=0, le=_MILLION, description="Tokens of the answer.")
    cached_input: Decimal | None = Field(
        default=None, ge=0, le=_MILLION, description="Tokens that the provider had cached; unset: as the others."
    )

    @property
    def price(self) -> TokenPrice:
        return TokenPrice(input_usd=self.input, output_usd=self.output, cached_input_usd=self.cached_input)


class OverrideSection(Section):
    """Corrections of what is detected about a model. A key that is unset leaves what was detected."""

    native_tools: bool | None = Field(default=None, description="Whether it calls tools by itself.")
    parallel_calls: bool | None = Field(default=None, description="Whether it may ask for several calls at once.")
    images: bool | None = Field(default=None, description="Whether it reads pictures.")
    prefill: bool | None = Field(default=None, description="Whether it continues an answer that was begun for it.")
    cache_marks: bool | None = Field(default=None, description="Whether the prompt carries cache marks.")
    json_schema: bool | None = Field(default=None, description="Whether its output can be held to a schema.")
    small: bool | None = Field(
        default=None, description="Whether it is small: it then plans, and is offered five tools at most."
    )
    image_output: bool | None = Field(
        default=None,
        description="Whether it answers with pictures too: Google, OpenRouter and servers that send them alike.",
    )
    sampling: tuple[Literal["temperature", "top_p", "seed"], ...] | None = Field(
        default=None, description="The sampling parameters it accepts."
    )
    context_tokens: Whole | None = Field(
        default=None, ge=512, le=10 * _MILLION, description="Tokens of prompt and answer together."
    )
    max_output_tokens: Whole | None = Field(default=None, ge=1, le=_MILLION, description="Tokens of an answer at most.")
    price: PriceSection | None = Field(
        default=None, description="What it costs: for a model that the list does not know, or prices of your own."
    )


def _short_alias(value: object) -> object:
    return {"model": value} if isinstance(value, str) else value


class ModelsSection(Section):
    """Where models come from."""

    providers: dict[Name, ProviderSection] = Field(default_factory=dict[str, ProviderSection])
    aliases: dict[Name, Annotated[AliasSection, BeforeValidator(_short_alias)]] = Field(
        default_factory=dict[str, AliasSection]
    )
    overrides: dict[str, OverrideSection] = Field(default_factory=dict[str, OverrideSection])
