"""What a preset stands for, what an agent's session keeps, and that a small model's prompt is small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from denizen.app.models import ChosenModel, EmbeddedRuntimePool, build_catalog
from denizen.app.settings import render_settings
from denizen.builtin_skills import BUILTIN, OPT_IN, load_builtin
from denizen.domain.agent import Agent, SamplingSettings, StoragePolicy, SummaryPolicy, ToolPlanning, TurnLimits
from denizen.domain.cited_text import UNKNOWN
from denizen.domain.ids import AgentName
from denizen.domain.message import join_text
from denizen.domain.prompt import estimate_tokens
from denizen.domain.prompt_messages import count_tokens
from denizen.domain.speaker_choice import SILENCE
from denizen.ports.model import Capabilities, ModelRequest
from denizen.skill import SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.app.home_folder import Home
from tests.engine.engine_fixture import ToolsetFixture, open_engine
from tests.skill_fixture import ServicesFixture

ADA = AgentName("ada")
NO_TOOL = ScriptedReply(json.dumps({"thought": "-", "tool": None, "args": {}}))


def agent(home: Home, keys: str = "preset: small") -> Agent:
    return home.load(f"agents: {{ada: {{{keys}}}}}").agents[ADA]


@pytest.mark.proves("T-config-history", "L-store-limits", "L-store-cuts", "T19")
def test_the_preset_for_small_models_keeps_little_and_samples_cool(home: Home) -> None:
    found = agent(home)
    assert (found.limits.max_history_tokens, found.limits.max_history_messages, found.limits.max_tools) == (2000, 10, 5)
    assert (found.sampling, found.tool_access.planning) == (SamplingSettings(temperature=0.3), ToolPlanning.PLAN)
    assert found.history.storing == StoragePolicy(
        100, user_chars=1000, agent_chars=2000, tool_chars=1000, prompt_tool_chars=200
    )
    assert found.limits == replace(TurnLimits(), max_history_tokens=2000, max_history_messages=10, max_tools=5)


@pytest.mark.proves("T-config-history")
@pytest.mark.anyio
async def test_a_small_model_is_asked_with_little_history_and_cool(home: Home) -> None:
    model = ScriptedModel(otherwise=ScriptedReply("answer " * 200))
    small = agent(home, "preset: small, summaries: {enabled: false}")
    async with open_engine(model, ToolsetFixture([]), agent=small) as engine:
        for _ in range(5):
            await engine.say("word " * 180)
    tokens = [sum(map(count_tokens, request.messages)) for request in model.requests]
    assert 1900 < max(tokens) <= 2000
    assert {request.sampling.temperature for request in model.requests} == {0.3}


@pytest.mark.proves("L-store-limits")
@pytest.mark.anyio
async def test_a_small_model_as_it_is_preset_answers_by_the_last_messages_of_a_hundred(home: Home) -> None:
    can = Capabilities(native_tools=False, small=True)
    model = ScriptedModel(
        otherwise=lambda asked: NO_TOOL if asked.output_schema else ScriptedReply("ok"), capabilities=can
    )
    async with open_engine(model, agent=agent(home)) as engine:
        for number in range(1, 53):
            await engine.say(f"q{number}")
        stored = await engine.session()
    assert (len(stored), stored[0].text, stored[-2].text) == (100, "q3", "q52")
    answers = [request for request in model.requests if not request.output_schema]
    read = [sum(each.kind in ("history", "question") for each in request.messages) for request in answers]
    assert len(read) == 52 and set(read[2:]) <= set(range(5, 11))


@pytest.mark.proves("T-config-history")
def test_what_is_written_counts_before_the_preset(home: Home) -> None:
    found = agent(home, "preset: small, limits: {max_tools: 9}, sampling: {seed: 7}, storing: {max_messages: 0}")
    assert (found.limits.max_tools, found.limits.max_history_tokens) == (9, 2000)
    assert found.sampling == SamplingSettings(temperature=0.3, seed=7)
    assert (found.history.storing.max_messages, found.history.storing.user_chars) == (0, 1000)
    hot = agent(home, "preset: small, sampling: {temperature: 1}")
    assert hot.sampling.temperature == 1


def test_without_a_preset_everything_is_kept_and_summed_up_when_it_grows(home: Home) -> None:
    found = agent(home, "")
    assert found.history.storing == StoragePolicy()
    assert found.history.summaries == SummaryPolicy(enabled=None, start_at=0.7, keep=0.35)


@pytest.mark.proves("T12")
def test_switch_and_shares_of_summaries_are_read_and_written_again(home: Home) -> None:
    found = agent(home, "preset: small, summaries: {enabled: true, start_at: 0.8, keep: 0}, storing: {tool_chars: 5}")
    assert found.history.summaries == SummaryPolicy(enabled=True, start_at=0.8, keep=0)
    settings = home.load()
    assert home.load(render_settings(settings)).agents == settings.agents


@pytest.mark.parametrize(
    ("keys", "says", "fix"),
    [
        ("preset: tiny", "preset", "small"),
        ("summaries: {keep: 0.8}", "nothing would be left to summarize", "Make keep smaller than start_at"),
        ("summaries: {start_at: 0}", "start_at", ""),
        ("storing: {max_messages: -1}", "max_messages", ""),
        ("storing: {max_message: 1}", "max_message", "max_messages"),
    ],
)
def test_what_a_session_cannot_keep_is_refused_with_its_remedy(home: Home, keys: str, says: str, fix: str) -> None:
    problem = home.refuse(f"agents:\n  ada:\n    {keys}\n").explain()
    assert says in problem
    assert fix in problem


@pytest.mark.proves("T16")
def test_how_often_a_model_is_reminded_of_its_tools_and_the_last_words_are_settings(home: Home) -> None:
    found = agent(home, "limits: {nudges: 2, nudge_text: Really do it.}").limits
    assert (found.nudges, found.nudge_text) == (2, "Really do it.")


@pytest.mark.proves("T19")
@pytest.mark.anyio
@pytest.mark.parametrize("can", [Capabilities(), Capabilities(small=True), Capabilities(native_tools=False)])
async def test_the_fixed_prompt_of_a_small_model_is_under_500_tokens(
    home: Home, tmp_path: Path, can: Capabilities
) -> None:
    services = ServicesFixture(tmp_path).services()
    toolsets = tuple(SkillToolset(load_builtin(name), services) for name in BUILTIN if name not in OPT_IN)
    look = ScriptedReply(json.dumps({"tool": "current_time", "args": {}}))
    said = ScriptedReply("At noon.")
    model = ScriptedModel(NO_TOOL, said, capabilities=can, otherwise=lambda each: look if each.output_schema else said)
    async with open_engine(model, agent=agent(home)) as engine:
        await engine.runtime.swap(replace(engine.runtime.current, number=2, toolsets=toolsets))
        await engine.say("hello")
        await engine.say("What time is it?")
    assert "[Tool results." in list_notes(model.requests[-1])[-1]
    assert {request.sampling.temperature for request in model.requests} <= {0.0, 0.3}
    assert [fixed_tokens(request) for request in model.requests if fixed_tokens(request) >= 500] == []
    asked = " ".join(
        [segment.text for request in model.requests for segment in request.segments]
        + [note for request in model.requests for note in list_notes(request)]
    )
    assert [word for word in (UNKNOWN, SILENCE) if word in asked] == [], "words that stand for no answer"


def list_notes(request: ModelRequest) -> list[str]:
    return [join_text(each.parts) for each in request.messages if each.kind == "note"]


def fixed_tokens(request: ModelRequest) -> int:
    """System prompt, tools and notes, at four characters a token."""
    tools = [json.dumps([tool.name, tool.description, tool.parameters]) for tool in request.tools]
    return sum(map(estimate_tokens, [*tools, *(segment.text for segment in request.segments), *list_notes(request)]))


@pytest.mark.proves("T-config-limits")
def test_the_size_of_a_models_context_and_the_number_of_rounds_are_settings(home: Home) -> None:
    models = (
        "models: {providers: {near: {kind: ollama, base_url: 'http://127.0.0.1:9/v1'},"
        " own: {kind: openai-compatible, base_url: 'http://127.0.0.1:9/v1'}}, aliases: {balanced: near/own},"
        " overrides: {near/wide: {context_tokens: 65536}}}\n"
    )
    settings = home.load(models + "agents: {ada: {limits: {max_steps: 4}}}")
    catalog = build_catalog(settings, ChosenModel(None, ""), EmbeddedRuntimePool(home.path, {}, print))
    assert catalog.get("balanced").capabilities.context_tokens == 32_768
    assert catalog.get("own/any").capabilities.context_tokens == 32_768
    assert catalog.get("near/wide").capabilities.context_tokens == 65_536
    assert settings.agents[ADA].limits.max_steps == 4
