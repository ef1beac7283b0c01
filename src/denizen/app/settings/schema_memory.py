"""The shape of `memory` and `embeddings`: what comes up unasked, and what finds texts by their meaning."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from denizen.app.settings.fields import Number, Section, Text, Whole, refuse
from denizen.domain.memory import RecallPolicy

NONE = "none"
LOCAL = "local"
_POLICY = RecallPolicy()


class MemorySection(Section):
    """What is remembered and fits a message is told to the model without its asking, as far as all who read the reply
    may hear of it. The tools are those of the skill (`tools.memory`).
    """

    max_items: Whole = Field(
        default=_POLICY.max_items, ge=0, le=50, description="How many memories come up with one message; 0: none."
    )
    max_tokens: Whole = Field(
        default=_POLICY.max_tokens, ge=50, le=10_000, description="How long they are together, in estimated tokens."
    )


class EmbeddingsSection(Section):
    """What turns texts into vectors, so that they are found by meaning too. Without it, words have to do."""

    provider: Text = Field(
        default="",
        description="`none`; `local` for a model on this machine (the extra `embed`); or the name of a provider of "
        "`models.providers` with OpenAI's embeddings API. Unset: `local` where the extra is installed and the weights "
        "are here, else `none`; nothing is ever downloaded for it.",
    )
    model: Text = Field(
        default="",
        description="Which model of the provider, such as text-embedding-3-small. When it changes, what is remembered "
        "is embedded anew in the background.",
    )
    similarity: Number = Field(
        default=_POLICY.similarity,
        ge=0,
        le=1,
        description="How similar in meaning (cosine) a text has to be to be found by it. Some models call everything "
        "similar, and need more.",
    )

    @property
    def is_served(self) -> bool:
        """Whether a provider of the configuration is asked."""
        return self.provider not in ("", NONE, LOCAL)

    @model_validator(mode="after")
    def _names_a_model(self) -> Self:
        if self.is_served and not self.model:
            fix = "Write model: text-embedding-3-small, or whatever the provider calls it."
            raise refuse("a provider of embeddings needs the name of a model.", fix, key="model")
        if not self.is_served and self.model:
            fix = "Take model out, or name a provider of models.providers."
            raise refuse("only an embeddings provider of models.providers has a choice of models.", fix, key="model")
        return self
