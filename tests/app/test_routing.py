"""Questions that choose their model, in a whole Denizen with its own store and durable runs, over the real wire."""

from __future__ import annotations

import json

import pytest

from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.app.model_choice import ModelChoice
from denizen.domain.ids import AgentName
from denizen.domain.turn import Turn
from denizen.testing.model_server import FailedAnswer, ModelAnswer, model_server
from tests.app.home_folder import Home, make_request

pytestmark = pytest.mark.anyio

PROVIDERS = {
    "openai-compatible": 'lab: {{kind: openai-compatible, base_url: "{server.openai_url}"}}',
    "anthropic": 'lab: {{kind: anthropic, base_url: "{server.url}"}}',
}
CONFIG = """
models:
  providers: {{{provider}}}
  aliases: {{cheap: lab/claude-haiku-4-5, fast: lab/small, balanced: lab/middle, quality: lab/large}}
agents: {{ada: {{model: auto}}}}
"""


def make_routing_answer(complexity: str, steps: int, model: str) -> ModelAnswer:
    row = {"complexity": complexity, "max_steps": steps, "model": model, "reason": "because"}
    return ModelAnswer(text=json.dumps(row))


async def ask(denizen: Denizen, text: str, key: str) -> Turn:
    done = await denizen.turns.ask(make_request(denizen, text, key))
    return (await denizen.queries.get_turn(done.turn_id)).turn


@pytest.mark.proves("S1", "S3", "SW5")
@pytest.mark.parametrize("kind", list(PROVIDERS))
async def test_the_question_chooses_the_model_that_answers_it(home: Home, kind: str) -> None:
    async with model_server() as server:
        home.write(CONFIG.format(provider=PROVIDERS[kind].format(server=server)))
        server.script(
            make_routing_answer("complex", 25, "quality"),
            ModelAnswer(text="A null."),
            make_routing_answer("simple", 8, "fast"),
        )
        server.script(ModelAnswer(text="Shakespeare."), FailedAnswer(400), ModelAnswer(text="Both."))
        async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
            await denizen.runtime.current.models.warm()  # as a server does, so that nobody waits for an import
            hard = await ask(denizen, "Why does it crash?", "m1")
            easy = await ask(denizen, "Who wrote Hamlet, by the way?", "m2")
            lost = await ask(denizen, "How do the two compare with each other?", "m3")
        assert [body["model"] for body in server.bodies] == [
            "claude-haiku-4-5",
            "large",
            "claude-haiku-4-5",
            "small",
            "claude-haiku-4-5",
            "middle",
        ]
        told = [
            (turn.result.reply, turn.route.complexity, turn.route.routed_by)
            for turn in (hard, easy, lost)
            if turn.route
        ]
        assert told == [
            ("A null.", "complex", "router"),
            ("Shakespeare.", "simple", "router"),
            ("Both.", "moderate", "fallback"),
        ]
        sorted_ = [str(server.bodies[place]["messages"]) for place in (0, 2, 4)]
        assert ["crash" in text for text in sorted_] == [True, False, False], "the last question, and no earlier one"
        assert "Who wrote Hamlet, by the way?" in sorted_[1] and "How do the two compare" in sorted_[2]
        prompts = [str(server.bodies[place].get("system") or server.bodies[place]["messages"][0]) for place in (1, 3)]
        assert prompts[0] == prompts[1], "what is cached is the same for all routes"


@pytest.mark.proves("S6", "S-config-default-model", "S-config-save", "S-config-temperature", "SW5")
async def test_what_a_set_says_holds_for_the_next_question(home: Home) -> None:
    async with model_server() as server:
        home.write(CONFIG.format(provider=PROVIDERS["openai-compatible"].format(server=server)))
        server.script(ModelAnswer(text="A null."))
        async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
            given = {"default_model": "quality", "temperature": 0.2}
            await denizen.assistant.save(denizen.operator, denizen.runtime.current, given, to=AgentName("ada"))
            assert (await ask(denizen, "Why does it crash?", "m1")).route is None
        (body,) = server.bodies
        assert (body["model"], body["temperature"]) == ("large", 0.2)


@pytest.mark.proves("S5")
async def test_each_alias_falls_back_on_models_of_its_own_in_their_order(home: Home) -> None:
    async with model_server() as server:
        home.write(f"""
models:
  providers: {{lab: {{kind: openai-compatible, base_url: "{server.openai_url}"}}}}
  aliases:
    fast: {{model: lab/small, fallbacks: [lab/tiny]}}
    quality: {{model: lab/large, fallbacks: [lab/huge, lab/middle]}}
agents: {{ada: {{model: fast}}, bea: {{model: quality}}}}
default_agent: ada
""")
        server.script(FailedAnswer(401), ModelAnswer(text="Tiny."))
        server.script(FailedAnswer(401), FailedAnswer(401), ModelAnswer(text="Middle."))
        async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
            said = [
                (await denizen.turns.ask(make_request(denizen, "hi", agent, agent=agent))).reply
                for agent in ("ada", "bea")
            ]
    assert said == ["Tiny.", "Middle."]
    assert [body["model"] for body in server.bodies] == ["small", "tiny", "large", "huge", "middle"]
