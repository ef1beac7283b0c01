"""/new, /reset, /agent and /context."""

import re

import pytest

from denizen.domain.agent import Agent, AgentInstructions, TurnLimits
from denizen.domain.attention import AccountPolicy, AccountStaff
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, ConversationId, SessionId, TurnId
from denizen.engine.configuration.choices import find_agent_choice, find_reset_time
from denizen.engine.memory.history_search import SessionHistorySearch
from denizen.ports.model import Capabilities
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.commands.command_fixture import (
    ADA,
    ANA,
    BEN,
    BOB,
    CLEO,
    OTHER_ROOM,
    ROOM,
    ZOE,
    CommandFixture,
    open_commands,
)
from tests.engine.engine_fixture import ToolsetFixture

pytestmark = pytest.mark.anyio

HERE = ROOM.place.conversation_id
SWITCHING = AccountPolicy(staff=AccountStaff(owners=frozenset({ZOE.id})), switchable=frozenset({BOB}))


async def find_agent(engine: CommandFixture, conversation: ConversationId = HERE) -> AgentName:
    async with engine.store.work(write=False) as work:
        return await find_agent_choice(
            work, ADA, conversation, known=engine.runtime.current.agents, now=engine.services.clock.now()
        )


@pytest.mark.proves("T35", "T-store-reset", "L-store-operations")
async def test_new_begins_a_session_and_the_old_one_stays_readable() -> None:
    async with open_commands() as engine:
        await engine.talk("hello", "hi")
        await engine.talk("elsewhere", room=OTHER_ROOM)
        reply = await engine.give("/new")
        assert "ada starts a new session here" in reply.text
        assert await engine.session() == []
        assert len(await engine.session(room=OTHER_ROOM)) == 1
        async with engine.store.work(write=False) as work:
            _, old = await work.sessions.list_sessions(HERE, ADA)
            assert [m.text for m in await work.messages.list_tail(old.id, limit=9)] == ["hello", "hi"]


async def test_new_is_for_the_session_of_whoever_answers_wherever_it_is() -> None:
    async with open_commands(account_policy=SWITCHING) as engine:
        engine.session_places[BOB] = Place("chat", "user:1")
        await engine.talk("for ada")
        await engine.talk("for bob", agent=BOB)
        await engine.give("/agent bob")
        await engine.give("/new")
        assert await engine.session(BOB) == []
        assert len(await engine.session(ADA)) == 1


@pytest.mark.proves("C11", "C19")
async def test_reset_makes_the_agent_forget_for_good_also_after_a_restart() -> None:
    store = TemporaryStore()
    async with open_commands(store=store) as engine:
        await engine.talk("hello", "hi")
        await engine.talk("to bob", agent=BOB)
        reply = await engine.give("/reset")
        assert "ada will never look again" in reply.text
        assert not reply.is_failure
    async with open_commands(store=store) as engine:
        assert await engine.session() == []
        assert len(await engine.session(BOB)) == 1
        async with store.work(write=False) as work:
            assert await find_reset_time(work, ADA, HERE) is not None
            assert await find_reset_time(work, BOB, HERE) is None
            assert await find_reset_time(work, ADA, OTHER_ROOM.place.conversation_id) is None
        search = SessionHistorySearch(store)
        for agent, found in ((ADA, []), (BOB, ["hello"])):
            asker, session = engine.principal(ANA), SessionId("later")
            scope = CallScope(
                agent=agent, principal=asker, place=ROOM.place, session_id=session, turn_id=TurnId("later")
            )
            assert [each.text for each in await search(scope, "hello", 5)] == found


@pytest.mark.proves("C19")
async def test_reset_all_is_for_every_agent_that_runs_here() -> None:
    async with open_commands() as engine:
        engine.session_places[CLEO] = Place("chat", "user:1")
        for agent in (ADA, BOB, CLEO):
            await engine.talk("hello", agent=agent)
        assert "All 3 agents" in (await engine.give("/reset all: yes")).text
        for agent in (ADA, BOB, CLEO):
            assert await engine.session(agent) == []
            async with engine.store.work(write=False) as work:
                assert await find_reset_time(work, agent, HERE) is not None


@pytest.mark.proves("T35")
async def test_an_admin_lets_any_agent_answer_and_calls_the_accounts_own_back() -> None:
    async with open_commands() as engine:
        assert "From now on cleo answers here" in (await engine.give("/agent cleo", ZOE)).text
        assert await find_agent(engine) == CLEO
        assert await find_agent(engine, OTHER_ROOM.place.conversation_id) == ADA
        assert "cleo answers here already" in (await engine.give("/agent cleo", ZOE)).text
        assert (await engine.give("/agent default", ANA)).is_failure
        assert "From now on ada answers here" in (await engine.give("/agent default", ZOE)).text
        assert await find_agent(engine) == ADA


async def test_others_choose_among_what_is_offered_to_everybody() -> None:
    async with open_commands(account_policy=SWITCHING) as engine:
        refused = await engine.give("/agent cleo")
        assert refused.is_failure
        assert "Only admins may choose any agent" in refused.text
        assert "Choose one of: `bob`" in refused.text
        assert not (await engine.give("/agent bob")).is_failure
        assert await find_agent(engine) == BOB
        assert not (await engine.give("/agent default", BEN)).is_failure
        assert await find_agent(engine) == ADA


async def test_an_agent_that_is_gone_gives_the_conversation_back() -> None:
    store = TemporaryStore()
    async with open_commands(store=store) as engine:
        await engine.give("/agent cleo", ZOE)
    async with open_commands(store=store, agents=(Agent(ADA), Agent(BOB))) as engine:
        assert await find_agent(engine) == ADA


async def test_agents_are_listed_and_suggested_as_far_as_one_may_choose_them() -> None:
    async with open_commands(account_policy=SWITCHING) as engine:
        listed = (await engine.give("/agent")).text
        assert "ada answers here" in listed
        assert "- `bob`: Knows the docs." in listed
        assert "- `cleo` (admins only)" in listed
        assert list(await engine.suggest("agent", "", "name", "", ANA)) == ["ada", "bob", "default"]
        assert list(await engine.suggest("agent", "", "name", "", ZOE)) == ["ada", "bob", "cleo", "default"]
        assert list(await engine.suggest("agent", "", "name", "bo", ZOE)) == ["bob"]
        assert "Did you mean 'cleo'" in (await engine.give("/agent cloe", ZOE)).text


@pytest.mark.proves("T35")
async def test_at_most_25_agents_are_suggested() -> None:
    many = tuple(Agent(AgentName(f"agent-{at:02}")) for at in range(40))
    async with open_commands(agents=(Agent(ADA), *many)) as engine:
        assert len(await engine.suggest("agent", "", "name", "", ZOE)) == 25
        assert list(await engine.suggest("agent", "", "name", "39", ZOE)) == ["agent-39"]


@pytest.mark.proves("T35")
async def test_context_shows_how_the_tokens_divide_against_what_a_prompt_may_have() -> None:
    model = ScriptedModel(name="acme/tiny", capabilities=Capabilities(context_tokens=8000))
    agent = Agent(
        ADA,
        instructions=AgentInstructions(persona=(("SOUL.md", "x" * 4000), ("EMPTY.md", " "), ("RULES.md", "y" * 400))),
    )
    async with open_commands(scripted=ScriptedModels(model), agents=(agent,), toolsets=(ToolsetFixture(),)) as engine:
        await engine.talk("z" * 8000, "ok")
        text = (await engine.give("/context")).text
        rows = {line.rsplit(maxsplit=3)[0] if line.endswith("%") else line: line.split() for line in text.splitlines()}
        assert "ada on acme/tiny, which reads 8,000 tokens" in text
        assert text.count("```") == 2
        cells = {name: row[-3:-1] for name, row in rows.items()}
        assert cells["file SOUL.md"][0] == "1,000"
        assert cells["file RULES.md"][0] == "100"
        assert "EMPTY.md" not in text
        assert cells["messages"][0] == "2,009"
        assert int(cells["tools"][0]) > 20
        used, free = (int(cells[name][0].replace(",", "")) for name in ("in use", "free"))
        fixed = used - 2009
        budget = (8000 - fixed) // 2  # the other half is kept for the answer
        assert abs(fixed + budget - (used + free)) <= 1
        assert f"The prompt may have {used + free:,} of them" in text
        for name in ("file SOUL.md", "tools", "messages", "free"):
            count, percent = cells[name]
            assert percent == str(round(100 * int(count.replace(",", "")) / (used + free))), name


async def test_context_counts_what_is_summed_up_by_its_summary() -> None:
    async with open_commands(scripted=ScriptedModels(ScriptedModel(ScriptedReply("A dog.")))) as engine:
        await engine.talk(*["z" * 4000, "ok"] * 2)
        assert "summaries" not in (await engine.give("/context")).text
        await engine.give("/compact")
        rows = {line.split()[0]: line.split() for line in (await engine.give("/context")).text.splitlines() if line}
        assert 10 < int(rows["summaries"][-3]) < 40
        assert rows["messages"][-3] == "0"


async def test_context_counts_with_the_model_that_the_asker_chose_and_says_when_it_gets_full() -> None:
    small = ScriptedModel(name="acme/small", capabilities=Capabilities(context_tokens=2000))
    large = ScriptedModel(name="acme/large", capabilities=Capabilities(context_tokens=200_000))
    models = ScriptedModels({"balanced": large, "cheap": small})
    agent = Agent(ADA, limits=TurnLimits(max_history_tokens=1800))
    async with open_commands(scripted=models, agents=(agent,)) as engine:
        await engine.talk("z" * 3200)
        assert "acme/large, which reads 200,000" in (await engine.give("/context")).text
        await engine.give("/model set cheap")
        full = (await engine.give("/context")).text
        assert "acme/small, which reads 2,000" in full
        assert "It is getting full" in full
        await engine.talk("z" * 6400)
        (most,) = re.findall(r"only the newest ([0-9]+) tokens are sent", (await engine.give("/context")).text)
        assert int(most) < 1000  # the rest of the window is for what stands in every prompt, and for the answer
