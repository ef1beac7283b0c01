"""What stands in every prompt, whatever is asked: system prompt and tools of a plain "hello"."""

from __future__ import annotations

import json
import re
from typing import cast

import pytest

from denizen.app.build import OpenOptions, open_denizen
from denizen.app.model_choice import ModelChoice
from denizen.builtin_skills import BUILTIN
from denizen.domain.json import JsonObject
from denizen.domain.prompt import count_tool_tokens, estimate_tokens
from denizen.engine.inspection.replay import PlannedRequest, plan_requests
from tests.app.home_folder import LAB, Home, make_request

pytestmark = pytest.mark.anyio

IDENTIFIER = re.compile(r"(?<!\w)(?:[a-z]+(?:_[a-z]+)+|(?<=`)[a-z]+(?=`))(?!\w)")
"""A word that a model takes for the name of a tool or a parameter."""
CHART_WORDS = frozenset({"horizontal_bar", "stacked_area", "stacked_bar", "sizes", "x", "in_progress", "in_review"})
"""Kinds of charts and their fields."""
WORKFLOW_WORDS = frozenset({"manual", "then"})
"""Words of the file of a workflow."""


async def requests_for_hello(home: Home, config: str) -> list[PlannedRequest]:
    home.write(config)
    async with open_denizen(home.path, OpenOptions(ModelChoice(), durable=False)) as denizen:
        return await plan_requests(denizen.runtime, denizen.services, make_request(denizen, "hello"))


def fixed_tokens(sent: PlannedRequest) -> int:
    request = sent.request
    schema = estimate_tokens(json.dumps(request.output_schema)) if request.output_schema else 0
    system = sum(estimate_tokens(segment.text) for segment in request.segments)
    return schema + system + sum(map(count_tool_tokens, request.tools))


@pytest.mark.proves("P5")
async def test_the_default_agent_says_hello_with_less_than_2000_tokens_of_its_own(home: Home) -> None:
    (sent,) = await requests_for_hello(home, LAB)
    assert sent.request.tools
    assert fixed_tokens(sent) < 2000
    assert not [m for m in sent.request.messages if m.kind not in ("question", "history")]


async def test_the_built_in_model_is_asked_with_less_than_500_tokens(home: Home) -> None:
    planned, answered = await requests_for_hello(home, "")
    assert planned.model.startswith("builtin/")
    assert "planner" in [segment.name for segment in planned.request.segments]
    assert sum(estimate_tokens(segment.text) for segment in planned.request.segments) < 500
    assert fixed_tokens(answered) < 500


@pytest.mark.proves("SW5")
@pytest.mark.parametrize("planning", ["native", "plan"])
@pytest.mark.parametrize("skills", [(), BUILTIN], ids=["as installed", "all skills"])
async def test_no_prompt_names_a_tool_that_is_not_there(home: Home, planning: str, skills: tuple[str, ...]) -> None:
    home.add_file("knowledge/rules.md", "No shoes.")
    search = ", provider: searxng, base_url: http://127.0.0.1:9"
    enabled = "".join(f"  {each}: {{enabled: true{search if each == 'web_search' else ''}}}\n" for each in skills)
    agent = f"ada: {{answers_from: sources, planning: {planning}, limits: {{max_tools: 500}}}}"
    home.write(f"{LAB}agents: {{{agent}}}\n" + (f"tools:\n{enabled}" if enabled else ""))
    async with open_denizen(home.path, OpenOptions(ModelChoice(), durable=False)) as denizen:
        requests = await plan_requests(denizen.runtime, denizen.services, make_request(denizen, "hello"))
        specs = [spec for each in denizen.runtime.current.toolsets for spec in await each.list_tools()]
    texts = [segment.text for each in requests for segment in each.request.segments]
    texts += [spec.description + json.dumps(spec.parameters) for each in requests for spec in each.request.tools]
    named = {name for text in texts for name in IDENTIFIER.findall(text)}
    there = {spec.name for spec in specs}
    assert "bash" in named & there, "a search that finds no names proves nothing"
    parameters = {name for spec in specs for name in cast("JsonObject", spec.parameters.get("properties", {}))}
    assert named - there - parameters - CHART_WORDS - WORKFLOW_WORDS == set()
