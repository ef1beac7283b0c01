"""Buttons and menus on Discord: choices that the agent is told about, and roles that members give themselves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from denizen.builtin_skills.discord import Channel, act
from denizen.skill import Effect, Json, Param, Skill, Tier, ToolContext

skill = Skill("components", description="Buttons, menus and role menus on Discord.", acts_on_platform=True)

Style = Literal["buttons", "menu"]


@dataclass(frozen=True, slots=True)
class MenuChoice:
    label: str
    emoji: str = ""
    description: Annotated[str, "in menus"] = ""


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("channel",))
async def post_choices(
    context: ToolContext,
    text: str,
    choices: Annotated[list[MenuChoice], Param(min_length=1, max_length=25)],
    style: Style = "buttons",
    several: Annotated[bool, "of a menu"] = False,  # noqa: FBT002
    channel: Channel = "",
) -> str:
    """Posts buttons or a menu. You are told what people choose."""
    rows: list[Json] = [{name: value for name, value in asdict(each).items() if value} for each in choices]
    done = await act(context, "post_choices", text=text, choices=rows, style=style, several=several, channel=channel)
    return f"Posted: {done['link']}"


@skill.tool(tier=Tier.DANGEROUS, idempotent=True, effects={Effect.SEND}, destinations=("channel",))
async def post_role_menu(
    context: ToolContext,
    text: str,
    roles: Annotated[list[str], Param("names or ids", min_length=1, max_length=25)],
    style: Style = "buttons",
    only_one: bool = False,  # noqa: FBT001, FBT002
    channel: Channel = "",
) -> str:
    """Posts a menu by which members give themselves roles."""
    done = await act(
        context, "post_role_menu", text=text, roles=[*roles], style=style, only_one=only_one, channel=channel
    )
    return f"Posted: {done['link']}"
