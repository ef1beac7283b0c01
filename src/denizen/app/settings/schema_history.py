"""The shape of an agent's `summaries` and `storing`, and of `preset`: what its session keeps, and how (inventory 5.3,
T12).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from denizen.app.settings.fields import Number, Section, Whole, refuse
from denizen.domain.agent import StoragePolicy, SummaryPolicy

_SUMMARIES = SummaryPolicy()
_STORING = StoragePolicy()


class Preset(StrEnum):
    """A set of values for an agent; keys that are written count before it."""

    SMALL = "small"


class SummariesSection(Section):
    """When the oldest part of a session is summed up in the background, so that it is not forgotten when the history
    is full. No reply waits for it. The messages stay, and the agent can read them word for word.
    """

    enabled: bool | None = Field(
        default=_SUMMARIES.enabled,
        description="Whether it is done, by the model alias `cheap` or else the agent's own model. Each message is "
        "then read once more, by that model, and budgets hold for it. Unset: yes, but not by a small model, whose next "
        "answer would wait. `false` lets the oldest messages go unread, without a word.",
    )
    start_at: Number = Field(
        default=_SUMMARIES.start_at,
        ge=0.1,
        le=1,
        description="The share of `limits.max_history_tokens`, or of `limits.max_history_messages`, from which on the "
        "oldest part is summed up.",
    )
    keep: Number = Field(
        default=_SUMMARIES.keep,
        ge=0,
        le=0.9,
        description="The share that is left as it was said; at least the last exchange.",
    )

    @model_validator(mode="after")
    def _leaves_something(self) -> Self:
        if self.keep >= self.start_at:
            raise refuse("there would be nothing to sum up.", "Make keep smaller than start_at.", key="keep")
        return self


class StoringSection(Section):
    """How much of a session is stored. 0 is no bound. What is cut is gone for good, also from `denizen trace`."""

    max_messages: Whole = Field(
        default=_STORING.max_messages,
        ge=0,
        le=1_000_000,
        description="How many messages of a session are kept: the newest. Older ones are emptied at the end of a turn.",
    )
    user_chars: Whole = Field(
        default=_STORING.user_chars, ge=0, le=10_000_000, description="How much of a user's message is kept and read."
    )
    agent_chars: Whole = Field(
        default=_STORING.agent_chars,
        ge=0,
        le=10_000_000,
        description="How much of an answer is kept. It is sent whole.",
    )
    tool_chars: Whole = Field(
        default=_STORING.tool_chars,
        ge=0,
        le=10_000_000,
        description="How much of a tool's result is kept. In its own turn it is read whole.",
    )
    prompt_tool_chars: Whole = Field(
        default=_STORING.prompt_tool_chars,
        ge=0,
        le=10_000_000,
        description="How much of a tool's result the model reads in later turns.",
    )
