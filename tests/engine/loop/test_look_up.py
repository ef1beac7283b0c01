"""Documents and talk are searched before the model is asked, where an agent needs that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from denizen.builtin_skills.archive import skill as archive_skill
from denizen.domain.agent import Agent, AgentInstructions, AnswersFrom, LookUp, ToolAccess, ToolPlanning
from denizen.domain.events import TextAdded, TurnFinished
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Author, Role, TextPart, join_text
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import DataFlow, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import CallRecord, ReplyTarget
from denizen.domain.verdict import Decision
from denizen.engine.loop.look_up import PASSAGES
from denizen.engine.loop.outcome import NOT_IN_SOURCES
from denizen.ports.model import Capabilities, ModelRequest
from denizen.ports.toolset import CallScope
from denizen.skill import ScopedServices, SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.archive.archive_fixture import ArchiveFixture
from tests.engine.engine_fixture import LOOK, NAME, ToolsetFixture, message, open_engine
from tests.skill_fixture import ServicesFixture

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


@pytest.mark.parametrize(("look_up", "is_told"), [(LookUp.AUTO, True), (LookUp.NEVER, False)])
async def test_where_nothing_fits_the_model_is_told_not_to_guess(look_up: LookUp, is_told: bool) -> None:
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply("I do not know." if r.output_schema is None else '{"tool": "none"}'),
        capabilities=SMALL,
    )
    async with open_engine(model, Documents(), agent=agent(look_up)) as engine:
        assert (await engine.say("What is the password of the guest wifi?")).reply == "I do not know."
    assert ("do not guess" in words(model.requests[-1])) is is_told


@pytest.mark.parametrize("capabilities", [SMALL, Capabilities(native_tools=False)])
async def test_a_plan_may_search_the_documents_however_many_tools_fit_better(capabilities: Capabilities) -> None:
    others = [
        replace(LOOK, name=f"wifi_{number}", description="The password of the guest wifi.") for number in range(9)
    ]
    model = ScriptedModel(ScriptedReply('{"tool": "none"}'), ScriptedReply("ok"), capabilities=capabilities)
    asked = agent(LookUp.NEVER if capabilities.small else LookUp.AUTO)
    limited = replace(asked, limits=replace(asked.limits, max_tools=6))
    async with open_engine(model, Documents(*others), agent=limited) as engine:
        await engine.say("What is the password of the guest wifi?")
    plan = model.requests[0]
    assert "search_docs" in str(plan.output_schema)
    assert "need search_docs, never none" in "".join(segment.text for segment in plan.segments)


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


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ("The club was founded by a baker in 1953.", False),
        ("They cost 14 euros.", False),
        ("Board games are lent for seven days, so two of them in a row take 14.", True),
        ("They are lent for a while.", True),
    ],
)
async def test_who_answers_from_sources_tells_no_figures_of_which_none_was_read(said: str, is_kept: bool) -> None:
    reading = Documents()
    reading.specs = [replace(SEARCH, flow=DataFlow(reads=frozenset({Taint.DOCUMENT})))]
    reply, _ = await ask_guide(QUESTION, said, documents=reading)
    assert reply == (said if is_kept else NOT_IN_SOURCES)


@pytest.mark.parametrize(
    ("capabilities", "question", "said", "is_kept"),
    [
        (SMALL, QUESTION, "The club was founded by a baker in 1953.", False),
        (SMALL, QUESTION, "For 7 days, and I asked 40 people.", True),
        (SMALL, QUESTION, "One autumn day there was a board game.", True),
        (SMALL, QUESTION, "1. Ask at the desk.\n2. Show a card.", True),
        (SMALL, "How many hours may I keep a board game?", "For 168 hours.", True),
        (SMALL, "What does a board game cost?", "It costs 4 euros.", False),
        (SMALL, "In which year did Rome fall?", "In 476.", True),
        (LARGE, QUESTION, "The club was founded by a baker in 1953.", True),
    ],
)
async def test_a_small_model_with_passages_before_it_tells_no_figures_of_which_none_was_read(
    capabilities: Capabilities, question: str, said: str, is_kept: bool
) -> None:
    reading = Documents()
    reading.specs = [replace(SEARCH, flow=DataFlow(reads=frozenset({Taint.DOCUMENT})))]
    model = ScriptedModel(ScriptedReply(said), capabilities=capabilities)
    async with open_engine(model, reading, agent=agent(LookUp.ALWAYS)) as engine:
        assert (await engine.say(question)).reply == (said if is_kept else NOT_IN_SOURCES)


async def test_who_answers_from_sources_says_what_it_has_done() -> None:
    guide = replace(agent(), instructions=AgentInstructions(answers_from=AnswersFrom.SOURCES))
    model = ScriptedModel(ScriptedReply(calls=[call("remind", text="water")]), ScriptedReply("I will remind you."))
    text: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    reminder = ToolSpec("remind", "Reminds.", text, tier=Tier.HARMLESS)
    async with open_engine(model, Documents(reminder), agent=guide) as engine:
        assert (await engine.say("Remind me to water the plants tomorrow morning")).reply == "I will remind you."


@pytest.mark.parametrize(
    ("question", "said", "is_kept"),
    [
        ("Can I keep a board game for 50 days?", "Yes, for 50 days.", False),
        ("Can I keep two board games for 7 days?", "Yes, two of them.", True),
        ("How long are 3 board games lent, one after the other?", "For 3 games, 21 days.", True),
    ],
)
async def test_a_figure_of_the_question_is_no_answer_where_the_sources_tell_another(
    question: str, said: str, is_kept: bool
) -> None:
    reading = Documents()
    reading.specs = [replace(SEARCH, flow=DataFlow(reads=frozenset({Taint.DOCUMENT})))]
    reply, _ = await ask_guide(question, said, documents=reading)
    assert reply == (said if is_kept else NOT_IN_SOURCES)


@pytest.mark.parametrize(
    ("question", "looked_up"),
    [
        ("And how long is it lent?", "Where is the board game? And how long is it lent?"),
        ("How long are books lent?", "How long are books lent?"),
        ("Is there parking?", "Is there parking?"),
        ("Does the reading room have its own printer?", "Does the reading room have its own printer?"),
    ],
)
async def test_a_question_that_refers_to_the_one_before_is_looked_up_with_it(question: str, looked_up: str) -> None:
    model, documents = ScriptedModel(otherwise=lambda _: ScriptedReply("ok"), capabilities=SMALL), Documents()
    async with open_engine(model, documents, agent=agent()) as engine:
        await engine.say("Where is the board game?")
        await engine.say(question)
    assert documents.asked[-1]["query"] == looked_up


async def test_a_sum_is_not_looked_up_and_keeps_the_tools() -> None:
    model, documents = ScriptedModel(otherwise=lambda _: ScriptedReply("39168"), capabilities=SMALL), Documents(LOOK)
    async with open_engine(model, documents, agent=agent()) as engine:
        await engine.say("What is 17 * 2304?")
    assert documents.asked == []
    assert "look" in str(model.requests[0].output_schema)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("remember that I am allergic to nuts", "I am allergic to nuts"),
        ("Please remember this about me: I am vegan.", "I am vegan."),
        ("Merk dir, dass ich in Bonn wohne.", "ich in Bonn wohne."),
        ("Do you remember that I am allergic to nuts?", None),
        ("Remember, you promised. Write a poem about rain.", None),
        ("Please remember that rule and tell me how long a board game is lent", None),
        ("Remember that the answer is short: how long is a board game lent", None),
        ("Remember to water the plants.", None),
        ("I remember that you were there.", None),
    ],
)
async def test_what_somebody_wants_remembered_is_kept_before_a_small_model_is_asked(
    said: str, kept: str | None
) -> None:
    calls: list[JsonObject] = []

    async def remember(call: ToolCall, scope: CallScope) -> ToolResult:
        calls.append(call.args)
        return ToolResult("Remembered as mem_1.")

    text: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    memory = ToolsetFixture([ToolSpec("remember", "Keeps a fact.", text, tier=Tier.HARMLESS)], remember, name="memory")
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply("ok" if r.output_schema is None else '{"tool": "none"}'), capabilities=SMALL
    )
    async with open_engine(model, memory, agent=agent()) as engine:
        await engine.say(said)
    assert calls == ([{"text": kept}] if kept else [])
    assert ("Remembered as mem_1." in words(model.requests[-1])) is (kept is not None)


async def test_what_could_not_be_remembered_is_told() -> None:
    async def remember(call: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("The memory is full.", is_error=True)

    text: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    memory = ToolsetFixture([ToolSpec("remember", "Keeps a fact.", text, tier=Tier.HARMLESS)], remember, name="memory")
    model = ScriptedModel(otherwise=lambda _: ScriptedReply("Done, I will remember it."), capabilities=SMALL)
    async with open_engine(model, memory, agent=agent()) as engine:
        reply = (await engine.say("Remember that I am allergic to nuts")).reply
    assert reply.startswith("Sorry, `remember` failed: The memory is full.")


async def test_a_tool_of_that_name_from_elsewhere_is_not_asked_unasked() -> None:
    documents = Documents()
    documents.name = "mcp:somebody"
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply("ok" if r.output_schema is None else '{"tool": "none"}'), capabilities=SMALL
    )
    async with open_engine(model, documents, agent=agent()) as engine:
        await engine.say(QUESTION)
    assert documents.asked == []


class Talk:
    """An agent on a platform that has an archive of talk, and documents besides."""

    def __init__(self, folder: Path) -> None:
        self.archive, self.documents = ArchiveFixture(), Documents()
        services = ServicesFixture(folder).services()
        services = replace(
            services, scoped=ScopedServices(open_archive=self.archive.lookup.open), clock=self.archive.clock
        )
        self.toolset = SkillToolset(archive_skill, services)

    async def ask(
        self,
        question: str,
        *,
        answers_from: AnswersFrom = AnswersFrom.ANYTHING,
        on_platform: bool = True,
        capabilities: Capabilities = SMALL,
    ) -> tuple[str, list[CallRecord]]:
        """Returns what the model read of tools when it answered, and the calls that were made."""
        await self.archive.mirror_all()
        model = ScriptedModel(
            otherwise=lambda r: ScriptedReply("ok" if r.output_schema is None else '{"tool": "none"}'),
            capabilities=capabilities,
        )
        who = replace(agent(), instructions=AgentInstructions(answers_from=answers_from))
        kim = Principal(PrincipalKind.PLATFORM_USER, "discord:kim", "Kim")
        async with open_engine(model, self.documents, agent=who) as engine:
            await engine.runtime.swap(replace(engine.runtime.current, toolsets=(self.documents, self.toolset)))
            request = message(question, place=self.archive.general.place, principal=kim, author=Author("kim", "Kim"))
            if on_platform:
                request = replace(request, shared=True, owed=ReplyTarget(NAME, reply_to="1"))
            turn = (await engine.turns.ask(request)).turn_id
            async with engine.store.work(write=False) as work:
                calls = list(await work.turns.list_calls(turn))
        return words(model.requests[-1]), calls


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    made = Talk(tmp_path)
    for room, author, text in (
        (made.archive.general, "ana", "Where shall we eat on Friday?"),
        (made.archive.general, "bea", "At the harbour kitchen, I booked a table."),
        (made.archive.staff, "bea", "The harbour kitchen table is for Ana's farewell."),
    ):
        made.archive.platform.write(room, author, text)
    return made


async def test_a_question_about_what_was_said_is_answered_from_the_talk_that_its_readers_may_see(talk: Talk) -> None:
    read, calls = await talk.ask("Who booked a table at the harbour kitchen, did anybody say?")
    assert "Bea: At the harbour kitchen, I booked a table." in read
    assert "Ana: Where shall we eat on Friday?" in read
    assert "farewell" not in read
    by_tool = {call.tool_call.tool: call for call in calls}
    assert set(by_tool) == {"search_docs", "search_archive"}
    assert by_tool["search_archive"].outcome.verdict.decision is Decision.APPROVE
    assert by_tool["search_archive"].tool_call.args["strict"] is True


@pytest.mark.parametrize("question", ["What did Bea say?", "what was said in #general", "What did they say yesterday?"])
async def test_who_where_or_when_alone_is_enough_to_look_for(talk: Talk, question: str) -> None:
    talk.archive.clock.advance(days=1)
    assert "I booked a table" in (await talk.ask(question))[0]


async def test_documents_come_before_the_talk(talk: Talk) -> None:
    talk.archive.platform.write(talk.archive.general, "ana", "Did you know that board games are lent for 7 days?")
    read, _ = await talk.ask("What did we decide about the board games?")
    assert 0 <= read.index(PASSAGE) < read.index("Did you know that board games")


async def test_talk_that_does_not_fit_beside_the_documents_is_left_out(talk: Talk) -> None:
    async def find_much(asked: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult(f"{PASSAGE}\n" + "word " * 2000, data={"found": 1})

    read, _ = await talk.ask("What did Bea say?")
    assert "I booked a table" in read
    talk.documents.run = find_much
    read, _ = await talk.ask("What did Bea say?")
    assert PASSAGE in read
    assert "I booked a table" not in read


@pytest.mark.parametrize(
    "question", ["How do I book a table?", "Thanks!", "Did anybody mention the wholesale prices of Dutch tulips?"]
)
async def test_other_questions_and_those_that_no_talk_is_close_to_read_none(talk: Talk, question: str) -> None:
    read, _ = await talk.ask(question)
    assert "harbour" not in read


async def test_who_may_not_quote_people_is_not_on_a_platform_or_is_large_does_not_look(talk: Talk) -> None:
    question = "What did Bea say?"
    for calls in (
        (await talk.ask(question, answers_from=AnswersFrom.SOURCES))[1],
        (await talk.ask(question, on_platform=False))[1],
        (await talk.ask(question, capabilities=LARGE))[1],
    ):
        assert "search_archive" not in {call.tool_call.tool for call in calls}


@pytest.mark.parametrize("question", ["Hello! How are you?", "Good morning!", "Thank you"])
async def test_nothing_is_looked_up_for_small_talk(question: str) -> None:
    model = ScriptedModel(ScriptedReply('{"tool": "none"}'), ScriptedReply("Fine."), capabilities=SMALL)
    documents = Documents()
    async with open_engine(model, documents, agent=agent()) as engine:
        await engine.say(question)
    assert documents.asked == []
    assert "do not guess" not in words(model.requests[-1])


@pytest.mark.parametrize(
    ("look_up", "pinned", "offered"),
    [
        (LookUp.NEVER, (), ["search_docs"]),
        (LookUp.NEVER, ("look",), ["look", "search_docs"]),
        (LookUp.AUTO, ("look",), ["look"]),
        (LookUp.AUTO, (), []),
    ],
)
async def test_a_small_model_with_documents_is_offered_only_tools_that_the_question_speaks_of(
    look_up: LookUp, pinned: tuple[str, ...], offered: list[str]
) -> None:
    weather = replace(LOOK, name="weather", description="The weather of a place now and for the coming days.")
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply("ok" if r.output_schema is None else '{"tool": "none"}'), capabilities=SMALL
    )
    asked = Agent(NAME, tool_access=ToolAccess(look_up=look_up, pinned_tools=pinned))
    async with open_engine(model, Documents(LOOK, weather), agent=asked) as engine:
        await engine.say("Who founded the library, and in which year?")
    schema = str(model.requests[0].output_schema)
    assert [name for name in ("look", "weather", "search_docs") if name in schema] == offered
    assert len(model.requests) == (2 if offered else 1), "without a tool there is nothing to plan"
