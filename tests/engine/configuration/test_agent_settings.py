"""Settings of an assistant in the store: when they hold, and for what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.agent import Agent, AgentInstructions, TurnLimits, WritingStyle
from denizen.domain.agent_settings import FIELDS
from denizen.domain.audit import AuditKind
from denizen.domain.clock import SystemClock
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.json import Json
from denizen.engine.configuration.agent_settings import KEPT_S, AgentSettingsOverlay
from denizen.engine.configuration.generation import Generation
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.engine.engine_fixture import ANA, NAME, EngineFixture, ToolsetFixture, generation, open_engine
from tests.engine.loop.routing_fixture import AUTO, RoutingModels, make_routing_reply, open_router

pytestmark = pytest.mark.anyio


async def save(engine: EngineFixture, **given: Json) -> None:
    assert engine.services.assistant is not None
    await engine.services.assistant.save(ANA, engine.runtime.current, given, to=NAME)


def join_segments(model: ScriptedModel, request: int) -> str:
    return "\n".join(segment.text for segment in model.requests[request].segments)


@pytest.mark.proves(
    "SW5", "S-config-save", "S-config-temperature", "S-config-search-instructions", "S-config-additional-prompt", "S8"
)
async def test_what_is_saved_holds_for_the_next_turn_and_a_reset_brings_the_file_back() -> None:
    saved: dict[str, Json] = {
        "additional_prompt": "Be kind.",
        "response_style": "friendly",
        "language": "it",
        "temperature": 0.2,
        "search_instructions": "Search twice.",
        "citation_format": "footnote",
        "max_steps_multiplier": 0.5,
    }
    assert {*saved, "default_model"} == set(FIELDS), "each setting has to show in a request, here or in the next test"
    model = ScriptedModel(otherwise=ScriptedReply("ok"))
    agent = Agent(NAME, instructions=AgentInstructions(style=WritingStyle(extra_instructions="As in the file.")))
    async with open_engine(model, agent=agent) as engine:
        await engine.say("one")
        await save(engine, **saved)
        await engine.say("two")
        assert engine.services.assistant is not None
        await engine.services.assistant.reset(ANA, NAME)
        await engine.say("three")
    before, changed, after = (join_segments(model, number) for number in range(3))
    assert before == after
    assert "As in the file." in before
    for said in ("Be kind.", "warmly", "language 'it'", "Search twice.", "footnotes", "at most 8 rounds"):
        assert said in changed
        assert said not in before
    assert [request.sampling.temperature for request in model.requests] == [None, 0.2, None]


@pytest.mark.proves("SW5", "S6", "S-config-default-model", "S-config-step-multiplier")
async def test_the_owner_s_model_replaces_the_routed_one_and_the_owner_s_factor_multiplies_the_steps() -> None:
    models = RoutingModels.answering(*[make_routing_reply("simple", 8, "fast")] * 2)
    async with open_router(models) as engine:
        assert (await engine.say("Who wrote Hamlet?")).reply == "said by fast"
        await save(engine, max_steps_multiplier=2.0)
        assert (await engine.say("Who wrote Medea, on the other hand?")).reply == "said by fast"
        told = [str(request.messages) for request in models.fast.requests]
        assert ["at most 6 tool calls" in told[0], "at most 14 tool calls" in told[1]] == [True, True]
        await save(engine, default_model="quality")
        assert (await engine.say("Who wrote Faust?")).reply == "said by quality"
        assert (await engine.say("And who wrote Emma?", model="balanced")).reply == "said by balanced"
    assert len(models.router.requests) == 2, "with the model given, nobody has to sort"


async def test_the_owner_can_put_an_agent_on_auto() -> None:
    models = RoutingModels.answering(make_routing_reply("complex", 25, "quality"))
    async with open_router(models, Agent(NAME)) as engine:
        await save(engine, default_model="auto", max_steps_multiplier=2.0)
        assert (await engine.say("Why does it crash?")).reply == "said by quality"
    assert "at most 48 tool calls" in str(models.quality.requests[0].messages[-1])


async def test_the_command_line_s_model_goes_before_the_owner_s() -> None:
    models = RoutingModels.answering()
    async with open_router(models, Agent(NAME)) as engine:
        await save(engine, default_model="quality")
        chosen = replace(engine.runtime.current, number=3, is_model_chosen=True)
        await engine.runtime.swap(chosen)
        assert (await engine.say("hello")).reply == "said by balanced"


@pytest.mark.proves("S-http-agent-config-put")
async def test_a_model_that_is_not_configured_is_refused_and_one_that_has_gone_is_passed_over() -> None:
    models = RoutingModels.answering()
    async with open_router(models, Agent(NAME)) as engine:
        with pytest.raises(InvalidInput, match="default_model"):
            await save(engine, default_model="opus")
        await save(engine, default_model="quality", response_style="friendly")
        left = {name: model for name, model in models.by_alias.items() if name != "quality"}
        await engine.runtime.swap(generation(left, ToolsetFixture(), agent=Agent(NAME), number=3))
        assert (await engine.say("hello")).reply == "said by balanced"
    assert "warmly" in join_segments(models.balanced, 0)


@pytest.mark.proves("S-kv-agent-config")
async def test_a_change_by_another_process_holds_within_a_minute() -> None:
    store, clock = TemporaryStore(), ManualClock()
    here, elsewhere = AgentSettingsOverlay(store, clock), AgentSettingsOverlay(store, SystemClock())
    current = generation(ScriptedModel(), ToolsetFixture(), agent=Agent(NAME))

    async def steps_here() -> int:
        return (await here.agent(current, NAME)).limits.steps

    assert await steps_here() == 20
    await elsewhere.save(ANA, current, {"max_steps_multiplier": 2.0}, to=NAME)
    clock.advance(KEPT_S - 1)
    assert await steps_here() == 20
    clock.advance(1)
    assert await steps_here() == 40
    assert KEPT_S <= 60


@pytest.mark.proves("S-data-agent-config")
async def test_sets_have_names_and_one_of_them_is_active() -> None:
    assistant, current = (
        AgentSettingsOverlay(TemporaryStore(), SystemClock()),
        generation(ScriptedModel(), ToolsetFixture()),
    )
    first = await assistant.save(ANA, current, {"language": "de"}, to=NAME)
    assert (first.name, first.is_active) == ("default", True)
    await assistant.save(ANA, current, {"language": "fr"}, to=NAME, name="exam", activate=False)
    assert (await load_agent(assistant, current)).instructions.style.language == "de"
    assert (await assistant.activate(ANA, NAME, "exam")).is_active
    assert (await load_agent(assistant, current)).instructions.style.language == "fr"
    await assistant.save(ANA, current, {"temperature": 0}, to=NAME)
    sets = {each.name: (each.is_active, each.chosen.names) for each in await assistant.list_sets(NAME)}
    assert sets == {"default": (False, ("language",)), "exam": (True, ("language", "temperature"))}
    await assistant.remove(ANA, NAME, "exam")
    assert await load_agent(assistant, current) == current.agent(NAME)
    with pytest.raises(NotFound, match="exam"):
        await assistant.activate(ANA, NAME, "exam")
    with pytest.raises(NotFound) as caught:
        await assistant.remove(ANA, NAME, "defualt")
    assert caught.value.fix == "Did you mean 'default'?"


async def test_the_audit_log_tells_who_changed_which_settings_and_not_what_they_say() -> None:
    store = TemporaryStore()
    assistant, current = AgentSettingsOverlay(store, SystemClock()), generation(ScriptedModel(), ToolsetFixture())
    await assistant.save(ANA, current, {"additional_prompt": "A secret."}, to=NAME)
    await assistant.reset(ANA, NAME)
    await assistant.activate(ANA, NAME, "default")
    await assistant.remove(ANA, NAME, "default")
    async with store.work(write=False) as work:
        events = [entry.event for entry in await work.audit.list_entries(limit=10)]
    assert {(event.kind, event.actor, event.subject) for event in events} == {
        (AuditKind.SETTINGS, "local:ana", "ada/default")
    }
    assert sorted(str(event.details["done"]) for event in events) == ["activate", "remove", "reset", "save"]
    assert "secret" not in str(events)


async def test_a_reset_of_nothing_changes_nothing() -> None:
    assistant, current = (
        AgentSettingsOverlay(TemporaryStore(), SystemClock()),
        generation(ScriptedModel(), ToolsetFixture()),
    )
    assert await assistant.reset(ANA, NAME) is None
    assert await load_agent(assistant, current) == current.agent(NAME)


async def test_steps_are_multiplied_where_nothing_is_routed_too() -> None:
    agent = replace(AUTO, is_routed=False, limits=TurnLimits(max_steps=10, max_steps_multiplier=1.5))
    model = ScriptedModel(otherwise=ScriptedReply("ok"))
    async with open_engine(model, agent=agent) as engine:
        await engine.say("hello")
    assert "at most 13 rounds" in join_segments(model, 0)


async def load_agent(assistant: AgentSettingsOverlay, current: Generation) -> Agent:
    return await assistant.agent(current, NAME)
