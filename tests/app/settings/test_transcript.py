"""How an agent becomes a participant that reads the whole talk."""

from __future__ import annotations

import pytest

from denizen.app.settings import render_settings
from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.ids import AgentName
from denizen.domain.message import join_text
from denizen.domain.transcript import TranscriptBudget
from denizen.ports.model import ModelRequest
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.app.home_folder import Home
from tests.engine.engine_fixture import NAME, open_engine, strip_date
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.engine.prompt.transcript_fixture import ask, list_blocks, mirror_everything, model, write_posts


def agent(home: Home, keys: str = "") -> Agent:
    return home.load(f"agents: {{ada: {{context: transcript{keys}}}}}").agents[AgentName("ada")]


@pytest.mark.proves("C28", "C6", "C7", "C8", "C-config-context-tokens", "C-config-blocks", "E4", "E5")
def test_a_participant_has_its_budget_and_no_persona_unless_something_else_is_said(home: Home):
    found = agent(home)
    assert (found.history.context, found.instructions.persona) == (ContextStrategy.TRANSCRIPT, ())
    assert found.history.transcript == TranscriptBudget(total=100_000, tail=8000, block=None, parent_share=0.5)


@pytest.mark.anyio
@pytest.mark.proves("C28", "C-config-toggles")
async def test_a_participant_is_sent_nothing_but_the_talk_and_an_assistant_its_system_prompt(home: Home):
    sent: list[ModelRequest] = []
    for keys in ("context: transcript", "context: transcript, transcript: {system_prompt: true}"):
        model = ScriptedModel(otherwise=ScriptedReply("Quite."))
        agents = home.load(f"agents: {{ada: {{{keys}}}}}").agents
        async with open_platform(None, model, agents=agents) as fixture:
            fixture.world.platform.say(fixture.world.general, "bob", "it rains")
            fixture.world.platform.say(fixture.world.general, "ana", "@ada hello")
            await fixture.settled()
        sent += model.requests
    bare, prompted = sent
    assert bare.segments == ()
    assert [join_text(each.parts) for each in bare.messages] == ["Bob: it rains\nAna: @ada hello", "ada:"]
    assert "helpful member" in prompted.segments[0].text


@pytest.mark.proves("C-config-blocks")
def test_every_key_of_the_transcript_is_read(home: Home):
    sizes = "budget_tokens: 20000, tail_tokens: 500, block_tokens: 3000, parent_share: 0.25, max_messages: 50"
    keys = f", transcript: {{{sizes}}}"
    assert agent(home, keys).history.transcript == TranscriptBudget(20_000, 500, 3000, 0.25, 50)
    settings = home.load()
    assert home.load(render_settings(settings)).agents == settings.agents


@pytest.mark.anyio
@pytest.mark.proves("C-config-blocks")
@pytest.mark.parametrize(("keys", "size", "count"), [("", 30_000, 1), (", block_tokens: 12000", 12_000, 2)])
async def test_a_block_closes_at_30000_tokens_or_as_many_as_are_configured(
    keys: str, size: int, count: int, home: Home
):
    found = agent(home, f", transcript: {{separate_blocks: true{keys}}}")
    world = World()
    write_posts(world, 330, words="x" * 390)
    async with open_platform(world, model(), agents={ADA: found}, prepare=mirror_everything(world)) as fixture:
        blocks = list_blocks(await ask(fixture))
        async with fixture.store.work(write=False) as work:
            closed = await work.transcripts.list_blocks(world.general.place)
    assert len(blocks) == len(closed) == count
    assert all(size <= each.tokens < size + 110 for each in closed)  # with one line of that length less, below it


@pytest.mark.proves("C28")
def test_a_participant_keeps_its_persona_files_and_gets_the_usual_prompt_where_it_is_switched_on(home: Home):
    assert "helpful member" in agent(home, ", transcript: {system_prompt: true}").instructions.persona[0][1]
    home.add_file("agents/ada/SOUL.md", "You are a pirate.")
    assert agent(home).instructions.persona == (("SOUL.md", "You are a pirate."),)


@pytest.mark.anyio
@pytest.mark.proves("X-history")
async def test_the_configuration_chooses_between_session_and_transcript_and_bounds_the_messages_of_either(home: Home):
    async def read(keys: str) -> list[str]:
        """The last prompt after five questions, without the date."""
        found = home.load(f"agents: {{ada: {{{keys}}}}}").agents[NAME]
        model = ScriptedModel(otherwise=ScriptedReply("yes"))
        async with open_engine(model, agent=found) as engine:
            for number in range(5):
                await engine.say(f"q{number}")
        texts = [strip_date(join_text(message.parts)) for message in model.requests[-1].messages]
        return [text for text in texts if not text.startswith("[Today is")]

    session = ["q0", "yes", "q1", "yes", "q2", "yes", "q3", "yes", "q4"]
    assert await read("") == await read("context: session") == session
    bounded = await read("limits: {max_history_messages: 5}, summaries: {enabled: false}")
    assert 1 < len(bounded) <= 5 and bounded == session[-len(bounded) :]
    transcript = [f"{'ada' if text == 'yes' else 'Ana'}: {text}" for text in session]
    assert "\n".join(await read("context: transcript")).split("\n") == [*transcript, "ada:"]
    capped = await read("context: transcript, transcript: {max_messages: 5}")
    assert "\n".join(capped).split("\n") == [*transcript[-5:], "ada:"]


@pytest.mark.parametrize(
    ("keys", "says", "fix"),
    [
        ("transcript: {budget_token: 1}", "budget_token", "budget_tokens"),
        ("transcript: {budget_tokens: 10}", "budget_tokens", ""),
        ("transcript: {budget_tokens: 2000, block_tokens: 3000}", "must fit the budget", "Lower block_tokens"),
        ("transcript: {parent_share: 1}", "parent_share", ""),
    ],
)
def test_what_a_transcript_cannot_be_is_refused_with_its_remedy(home: Home, keys: str, says: str, fix: str):
    problem = home.refuse(f"agents:\n  ada:\n    context: transcript\n    {keys}\n")
    assert says in str(problem.explain())
    assert fix in str(problem.explain())
