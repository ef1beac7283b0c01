"""Participants that read a room as a transcript, and what a request to their model holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from denizen.domain.agent import (
    Agent,
    AgentInstructions,
    ContextStrategy,
    HistorySettings,
    ToolAccess,
    TranscriptLayout,
)
from denizen.domain.ids import AgentName
from denizen.domain.message import join_text
from denizen.domain.prompt import PromptMessage
from denizen.domain.room import Room
from denizen.domain.transcript import TranscriptBudget
from denizen.ports.model import Capabilities, ModelRequest
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.platform_fixture import ADA, PlatformFixture, World

BEN = AgentName("ben")


SMALL = TranscriptBudget(total=1200, tail=200, block=300)


def participant(
    name: AgentName = ADA, budget: TranscriptBudget = SMALL, *, persona: tuple[tuple[str, str], ...] = ()
) -> Agent:
    layout = TranscriptLayout(separate_blocks=True)
    return Agent(
        name,
        instructions=AgentInstructions(persona=persona),
        history=HistorySettings(context=ContextStrategy.TRANSCRIPT, transcript=budget, layout=layout),
        tool_access=ToolAccess(tools=()),
    )


def make_agents(ben: TranscriptBudget = SMALL) -> Mapping[AgentName, Agent]:
    return {ADA: participant(), BEN: participant(BEN, ben)}


def list_texts(request: ModelRequest) -> list[str]:
    return [join_text(message.parts) for message in request.messages]


def list_lines(request: ModelRequest) -> list[str]:
    """Everything but the cue, line by line."""
    return "\n".join(list_texts(request)[:-1]).split("\n")


def list_stable(request: ModelRequest) -> list[PromptMessage]:
    return list(request.messages[:-1])


def list_blocks(request: ModelRequest) -> list[str]:
    return [join_text(message.parts) for message in request.messages if message.kind == "block"]


def first_difference(earlier: ModelRequest, later: ModelRequest) -> str:
    """The first message of the earlier prompt that the later one does not begin with; empty when it does."""
    for place, (old, new) in enumerate(zip(list_stable(earlier), list_stable(later), strict=False)):
        if old != new:
            return f"message {place} ({old.kind}): {join_text(old.parts)[:80]!r} became {join_text(new.parts)[:80]!r}"
    return "" if len(later.messages) >= len(earlier.messages) else "the prompt is shorter"


async def ask(
    fixture: PlatformFixture, text: str = "@ada well?", who: str = "ana", room: Room | None = None
) -> ModelRequest:
    fixture.world.platform.say(room or fixture.world.general, who, text)
    await fixture.settled()
    return fixture.model.requests[-1]


def write_posts(
    world: World, count: int, *, room: Room | None = None, words: str = "we talk about the weather"
) -> None:
    for number in range(count):
        world.platform.write(room or world.general, ("ana", "bob")[number % 2], f"{words} {number}")


def model(*says: ScriptedReply, **more: bool) -> ScriptedModel:
    return ScriptedModel(*says, otherwise=ScriptedReply("Quite."), capabilities=Capabilities(**more))  # pyright: ignore


def mirror_everything(world: World) -> Callable[[object], Awaitable[None]]:
    """What was written while nobody was connected is in the archive already."""

    async def prepare(_: object) -> None:
        async with world.store.work() as work:
            await work.archive.put([written.post for written in world.platform.posts.values()])

    return prepare
