"""What an agent is told about its sources, and how it is to name them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.agent import (
    Agent,
    AgentInstructions,
    AnswersFrom,
    CitationFormat,
    ContextStrategy,
    HistorySettings,
    ResponseStyle,
    ToolPlanning,
    WritingStyle,
)
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.prompt import estimate_tokens
from denizen.domain.turn import ReplyTarget
from denizen.engine.inspection.queries import Queries
from denizen.engine.prompt.system_prompt import source_rules
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import LOOK, NAME, PLACE, ToolsetFixture, message, open_engine

pytestmark = pytest.mark.anyio

SOURCES = Agent(NAME, instructions=AgentInstructions(answers_from=AnswersFrom.SOURCES))
READING = [replace(LOOK, name=name) for name in ("bash", "search_docs", "clock")]


async def load_prompt(agent: Agent, *, public: bool = False, specs: list[str] | None = None) -> str:
    model = ScriptedModel(otherwise=ScriptedReply("ok"))
    tools = ToolsetFixture([replace(LOOK, name=name) for name in specs] if specs else list(READING))
    async with open_engine(model, tools, agent=agent) as engine:
        request = message("When do you open?")
        if public:
            owed, place = (
                ReplyTarget(AgentName(NAME), reply_to="1", answers=("1",), guild="g"),
                Place("discord", "general"),
            )
            request = replace(request, shared=True, owed=owed, place=place)
        await engine.turns.ask(request)
    return "\n".join(segment.text for segment in model.requests[-1].segments)


@pytest.mark.proves("S-prompt-chat")
async def test_an_agent_that_answers_from_its_sources_is_told_how() -> None:
    prompt = await load_prompt(SOURCES)
    for said in (
        "Answer only from your sources",
        "do not fill in from memory",
        "each in one batch",
        "Cite path and lines",
        "write [[unknown]]",
        "Never repeat a command that failed",
        "Never end on a tool call or with a placeholder",
    ):
        assert said in prompt


@pytest.mark.proves("S-prompt-bot", "S-prompt-chat")
async def test_in_a_public_thread_it_is_told_so_in_a_shorter_form() -> None:
    prompt = await load_prompt(SOURCES, public=True)
    for said in (
        "Answer only from your sources",
        "read them, do not only list them",
        "cite path and lines",
        "Never repeat a failing command",
        "never end on a tool call or a placeholder",
    ):
        assert said in prompt
    full, short = (source_rules(SOURCES, ["bash"], is_short=is_short) for is_short in (False, True))
    assert estimate_tokens(short) < 0.7 * estimate_tokens(full)


@pytest.mark.proves("S-prompt-chat")
async def test_a_general_agent_stays_general() -> None:
    assert "sources" not in await load_prompt(Agent(NAME))


async def test_an_agent_that_cannot_read_its_sources_is_not_told_to() -> None:
    assert "Answer only" not in await load_prompt(SOURCES, specs=["clock"])


@pytest.mark.proves("S-prompt-chat")
async def test_where_tools_are_planned_the_short_form_does() -> None:
    planned = replace(SOURCES, tool_access=replace(SOURCES.tool_access, planning=ToolPlanning.PLAN))
    assert source_rules(SOURCES, ["bash"], is_short=True) in await load_prompt(planned)


@pytest.mark.proves(
    "SW5",
    "S-config-additional-prompt",
    "S-config-response-style",
    "S-config-language",
    "S-config-search-instructions",
    "S-config-citation-format",
)
async def test_a_participant_without_a_persona_is_told_what_its_owner_chose_and_nothing_else() -> None:
    plain = Agent(NAME, history=HistorySettings(context=ContextStrategy.TRANSCRIPT))
    for style, told in (
        (WritingStyle(), ""),
        (WritingStyle(ResponseStyle.FRIENDLY), "Answer warmly and in plain words."),
        (WritingStyle(language="EN"), ""),
        (WritingStyle(language="en-GB"), "Write in the language 'en-GB' unless asked otherwise."),
        (WritingStyle(language="de"), "Write in the language 'de' unless asked otherwise."),
        (WritingStyle(extra_instructions="Mention cats."), "Mention cats."),
        (WritingStyle(search_instructions="Search twice."), "Search twice."),
    ):
        assert await load_prompt(replace(plain, instructions=AgentInstructions(style=style))) == told
    footnotes = AgentInstructions(style=WritingStyle(citations=CitationFormat.FOOTNOTE))
    assert (await load_prompt(replace(plain, instructions=footnotes))).startswith("Name sources as numbered footnotes")


@pytest.mark.proves("S-prompt-chat")
async def test_a_participant_that_answers_from_its_sources_is_told_so() -> None:
    agent = replace(
        SOURCES,
        history=replace(SOURCES.history, context=ContextStrategy.TRANSCRIPT),
        instructions=replace(SOURCES.instructions, style=WritingStyle(extra_instructions="Mention cats.")),
    )
    assert (await load_prompt(agent)).startswith(f"Mention cats.\n{source_rules(SOURCES, ['bash'], is_short=False)}")


@pytest.mark.proves("S-config-citation-format")
@pytest.mark.parametrize(
    ("citations", "said", "unsaid"),
    [
        (CitationFormat.INLINE, ("right behind a statement", "Cite path and lines"), ("footnotes",)),
        (CitationFormat.FOOTNOTE, ("numbered footnotes", "Cite path and lines"), ("right behind",)),
        (CitationFormat.NONE, ("Answer only from your sources",), ("footnotes", "right behind", "ite path and")),
    ],
)
async def test_sources_are_named_as_configured(
    citations: CitationFormat, said: tuple[str, ...], unsaid: tuple[str, ...]
) -> None:
    prompt = await load_prompt(
        replace(SOURCES, instructions=replace(SOURCES.instructions, style=WritingStyle(citations=citations)))
    )
    assert [each for each in said if each not in prompt] == []
    assert [each for each in unsaid if each in prompt] == []
    assert WritingStyle().citations is CitationFormat.INLINE


@pytest.mark.proves("S-config-search-instructions")
@pytest.mark.parametrize("planning", list(ToolPlanning))
async def test_search_instructions_reach_whoever_chooses_what_to_look_up(planning: ToolPlanning) -> None:
    style = WritingStyle(search_instructions="The rules are in rules.md.")
    model = ScriptedModel(otherwise=ScriptedReply('{"tool": "none"}'))
    async with open_engine(
        model,
        ToolsetFixture(list(READING)),
        agent=replace(
            SOURCES,
            tool_access=replace(SOURCES.tool_access, planning=planning),
            instructions=replace(SOURCES.instructions, style=style),
        ),
    ) as engine:
        await engine.say("When do you open?")
    assert "The rules are in rules.md." in str(model.requests[0].segments)


async def test_what_fills_the_context_names_them_too() -> None:
    async with open_engine(ScriptedModel(), ToolsetFixture(list(READING)), agent=SOURCES) as engine:
        context = await Queries(engine.runtime, engine.services).load_context(PLACE, NAME)
    assert "sources" in [share.name for share in context.shares]
