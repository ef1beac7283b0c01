"""Documents are searched before the model is asked, where an agent needs that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.agent import Agent, AgentInstructions, AnswersFrom, LookUp, ToolAccess, ToolPlanning
from denizen.domain.events import TextAdded, TurnFinished
from denizen.domain.json import Json
from denizen.domain.message import Role, TextPart, join_text
from denizen.domain.tool import DataFlow, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.engine.loop.look_up import PASSAGES
from denizen.engine.loop.outcome import NOT_IN_SOURCES
from denizen.ports.model import Capabilities, ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import LOOK, NAME, ToolsetFixture, open_engine

pytestmark = pytest.mark.anyio

SMALL = Capabilities(native_tools=False, small=True, context_tokens=8192)
LARGE = Capabilities()
QUESTION = "How long can I keep a board game?"
PASSAGE = "[docs/loans.md:4-4]\n4: Board games are lent for 7 days."
SEARCH = ToolSpec(
    "search_docs",
    "Finds passages.",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}, "strict": {"type": "boolean"}},
        "additionalProperties": False,
    },
    tier=Tier.HARMLESS,
    read_only=True,
)


class Documents(ToolsetFixture):
    """Finds the passage for questions about board games, closely."""

    def __init__(self, *more: ToolSpec) -> None:
        self.asked: list[dict[str, Json]] = []
        super().__init__([SEARCH, *more], self._find, name="knowledge")

    async def _find(self, asked: ToolCall, scope: CallScope) -> ToolResult:
        self.asked.append(dict(asked.args))
        if asked.tool != "search_docs":
            return ToolResult("done")
        found = "board" in str(asked.args["query"])
        return ToolResult(PASSAGE, data={"found": 1}) if found else ToolResult("Nothing fits that closely.")


def agent(look_up: LookUp = LookUp.AUTO, planning: ToolPlanning = ToolPlanning.AUTO) -> Agent:
    return Agent(NAME, tool_access=ToolAccess(look_up=look_up, planning=planning))


def words(request: ModelRequest) -> str:
    return "\n".join(part.text for m in request.messages for part in m.parts if isinstance(part, TextPart))


async def test_a_small_model_answers_from_passages_that_nobody_had_to_ask_for() -> None:
    model, documents = ScriptedModel(ScriptedReply("Seven days."), capabilities=SMALL), Documents(LOOK)
    async with open_engine(model, documents, agent=agent()) as engine:
        assert (await engine.say(QUESTION)).reply == "Seven days."
        session = await engine.session()
    assert documents.asked == [{"query": QUESTION, "limit": PASSAGES, "strict": True}]
    [request] = model.requests
    assert PASSAGE in words(request)
    assert [m.role for m in session] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]


@pytest.mark.parametrize(
    ("look_up", "planning", "capabilities", "looks"),
    [
        (LookUp.AUTO, ToolPlanning.AUTO, LARGE, False),
        (LookUp.AUTO, ToolPlanning.PLAN, LARGE, True),
        (LookUp.AUTO, ToolPlanning.AUTO, Capabilities(native_tools=False), True),
        (LookUp.AUTO, ToolPlanning.NATIVE, Capabilities(small=True), True),
        (LookUp.ALWAYS, ToolPlanning.AUTO, LARGE, True),
        (LookUp.NEVER, ToolPlanning.AUTO, SMALL, False),
    ],
)
async def test_who_looks_up(
    look_up: LookUp, planning: ToolPlanning, capabilities: Capabilities, *, looks: bool
) -> None:
    documents = Documents()
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply("ok" if r.output_schema is None else '{"tool": "none"}'),
        capabilities=capabilities,
    )
    async with open_engine(model, documents, agent=agent(look_up, planning)) as engine:
        await engine.say(QUESTION)
    assert bool(documents.asked) is looks
    assert any(PASSAGE in words(request) for request in model.requests) is looks


async def test_a_model_that_calls_tools_itself_reads_them_behind_the_question_as_words() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="x")]), ScriptedReply("ok"))
    async with open_engine(model, Documents(LOOK), agent=agent(LookUp.ALWAYS)) as engine:
        await engine.say(QUESTION)
    roles = [message.role for message in model.requests[0].messages]
    assert roles[-1] is Role.USER
    assert PASSAGE in words(ModelRequest((), model.requests[0].messages[-1:]))
    assert PASSAGE in words(model.requests[1])


@pytest.mark.parametrize("said", ["Hello!", "How are you?", "Tell me about the weather on Mars."])
async def test_what_fits_no_document_is_asked_without_any(said: str) -> None:
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply("ok" if r.output_schema is None else '{"tool": "none"}'), capabilities=SMALL
    )
    async with open_engine(model, Documents(LOOK), agent=agent()) as engine:
        await engine.say(said)
        session = await engine.session()
    assert all("fits that closely" not in words(request) for request in model.requests)
    assert [m.role for m in session] == [Role.USER, Role.ASSISTANT]


async def test_with_an_answer_at_hand_a_plan_is_made_only_for_tools_that_the_question_speaks_of() -> None:
    remind = ToolSpec("remind", "Reminds somebody later.", {"type": "object", "properties": {}}, tier=Tier.HARMLESS)
    plans = ScriptedModel(ScriptedReply('{"tool": "remind", "args": {}}'), ScriptedReply("ok"), capabilities=SMALL)
    weather = replace(remind, name="weather", description="The weather of a place now and for the coming days.")
    documents = Documents(LOOK, remind, weather)
    async with open_engine(plans, documents, agent=agent()) as engine:
        await engine.say("Remind me to bring back the board game")
    offered = str(plans.requests[0].output_schema)
    assert [name for name in ("remind", "look", "weather", "search_docs") if name in offered] == ["remind"]
    assert len(documents.asked) == 2


async def test_an_agent_without_documents_is_asked_at_once() -> None:
    model = ScriptedModel(ScriptedReply('{"tool": "none"}'), ScriptedReply("ok"), capabilities=SMALL)
    async with open_engine(model, ToolsetFixture([LOOK]), agent=agent()) as engine:
        assert (await engine.say(QUESTION)).reply == "ok"
        assert [m.role for m in await engine.session()] == [Role.USER, Role.ASSISTANT]


async def ask_guide(question: str, said: str, *, documents: Documents | None = None) -> tuple[str, list[str]]:
    """Returns the reply of an agent that answers from its sources only, and what those who watch see of it."""
    guide = replace(agent(), instructions=AgentInstructions(answers_from=AnswersFrom.SOURCES))
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply(said if r.output_schema is None else '{"tool": "none"}'), capabilities=SMALL
    )
    shown = [""]
    async with open_engine(model, documents or Documents(), agent=guide) as engine:
        for event in await engine.watch(question):
            if isinstance(event, TextAdded):
                shown = [*shown, event.text] if event.retract else [*shown[:-1], shown[-1] + event.text]
            if isinstance(event, TurnFinished):
                last = (await engine.session())[-1]
                assert join_text(last.parts) == event.reply, "later turns read what people have read"
                return event.reply, shown
    raise AssertionError("the turn has not ended")


async def test_who_answers_from_sources_does_not_know_what_is_in_none_of_them() -> None:
    reply, shown = await ask_guide("What is the password of the wifi?", "It is guest123.")
    assert reply == shown[-1] == NOT_IN_SOURCES


@pytest.mark.parametrize(
    ("question", "said"), [("Hello!", "Hello."), ("Thanks, how are you today?", "Fine."), (QUESTION, "Seven days.")]
)
async def test_who_answers_from_sources_answers_small_talk_and_what_they_say(question: str, said: str) -> None:
    reading = Documents()
    reading.specs = [replace(SEARCH, flow=DataFlow(reads=frozenset({Taint.DOCUMENT})))]
    assert (await ask_guide(question, said, documents=reading))[0] == said


async def test_a_tool_of_that_name_from_elsewhere_is_not_asked_unasked() -> None:
    documents = Documents()
    documents.name = "mcp:somebody"
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply("ok" if r.output_schema is None else '{"tool": "none"}'), capabilities=SMALL
    )
    async with open_engine(model, documents, agent=agent()) as engine:
        await engine.say(QUESTION)
    assert documents.asked == []
