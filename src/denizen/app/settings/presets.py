"""What `preset` stands for. Pure; called by `implied`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from denizen.app.settings.fields import Section
from denizen.app.settings.schema import AgentSection, LimitsSection, SamplingSection
from denizen.app.settings.schema_history import Preset, StoringSection
from denizen.domain.agent import ToolPlanning

S = TypeVar("S", bound=Section)

PRESETS: Mapping[Preset, AgentSection] = {
    Preset.SMALL: AgentSection(
        planning=ToolPlanning.PLAN,
        limits=LimitsSection(max_history_tokens=2000, max_history_messages=10, max_tools=5),
        sampling=SamplingSection(temperature=0.3),
        storing=StoringSection(
            max_messages=100, user_chars=1000, agent_chars=2000, tool_chars=1000, prompt_tool_chars=200
        ),
    )
}
"""`small`: for models of a few thousand million weights on one's own machine (inventory 5.3, T19)."""


def apply_preset(section: AgentSection) -> AgentSection:
    """The section with the values of its preset, where it says nothing itself."""
    return section if section.preset is None else _fill(section, PRESETS[section.preset])


def _fill(own: S, preset: S) -> S:
    values: dict[str, object] = {}
    for name in preset.model_fields_set:
        mine, theirs = getattr(own, name), getattr(preset, name)
        if name not in own.model_fields_set:
            values[name] = theirs
        elif isinstance(mine, Section):
            values[name] = _fill(mine, theirs)
    return own.model_copy(update=values)
