"""Tools on their pages: what there is and what becomes of calls, and trying one through the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.audit import AuditKind
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.tool import IdleTools, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.ports.store import AuditSearch
from denizen.ports.toolset import CallScope
from denizen.web.http.dependencies import InstanceServices
from denizen.web.pages.tools import PATH
from tests.web.admin_pages_fixture import PageText, ask, read
from tests.web.api.test_approvals import asks
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, open_web

pytestmark = pytest.mark.anyio

_PARAMETERS: dict[str, Json] = {
    "type": "object",
    "properties": {
        "who": {"type": "string", "description": "Whom <b>exactly</b>."},
        "days": {"type": "integer"},
        "mood": {"type": "string", "enum": ["mild", "stern"]},
        "labels": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["who"],
}


class Moderation:
    """A toolset with one dangerous tool, which says what it was called with."""

    name = "moderation"

    async def list_tools(self) -> Sequence[ToolSpec]:
        return [ToolSpec("ban", "Bans somebody.\nFor good.", _PARAMETERS, tier=Tier.DANGEROUS)]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult(f"{scope.principal.key} of {scope.agent}: {dict(call.args)}")

    async def aclose(self) -> None:
        pass


def policy() -> GatePolicy:
    """Bans are harmless here."""
    return replace(GatePolicy(), tiers=(("ban", Tier.HARMLESS),))


@pytest.mark.proves("T-ui-tools")
async def test_the_page_lists_tools_with_source_tier_outlook_and_agents_and_what_is_off() -> None:
    agents = [Agent(AgentName("denizen")), Agent(AgentName("scribe"), tool_access=ToolAccess(tools=("weather",)))]
    notes = IdleTools("notes", "Write `tools.notes.enabled: true`.", ["a", "b"])
    idle = InstanceServices(list_idle_tools=lambda: [notes])
    async with open_web(keys=[ADA], agents=agents, more=[Moderation()], instance=idle) as web:
        page, of_scribe = await read(web, "ada", PATH), await read(web, "ada", f"{PATH}?agent=scribe")
    assert page.rows == [
        [
            "weather reads only Tells the weather of a city.",
            "weather",
            "0",
            "run declared as tier 0",
            "denizen, scribe",
        ],
        ["ban Bans somebody.", "moderation", "3", "people declared as tier 3; no observer looks at calls", "denizen"],
        ["notes", "Write tools.notes.enabled: true .", "a, b"],
    ]
    assert [row[0].partition(" ")[0] for row in of_scribe.rows] == ["weather", "notes"]


async def test_a_tried_call_passes_the_gate_in_the_name_of_who_tries_it_and_is_in_the_audit_log() -> None:
    async with open_web(keys=[ADA, OWNER], more=[Moderation()], policy=policy()) as web:
        form = await read(web, "ada", f"{PATH}/ban")
        typed = {"arg-who": "<i>Eve</i>", "arg-days": "3", "arg-mood": "stern", "arg-labels": '["spam"]'}
        answer = await ask(web, "ada", "POST", f"{PATH}/ban", agent="scribe", **typed)
        async with web.store.work(write=False) as work:
            logged = await work.audit.search(AuditSearch(kind=AuditKind.CALL))
    assert [attrs["name"] for attrs in form.all("textarea", "select")] == ["agent", *typed]
    assert answer.status_code == 200
    expected = {"who": "<i>Eve</i>", "days": 3, "mood": "stern", "labels": ["spam"]}
    assert f"api_key:ada of scribe: {expected}" in PageText(answer.text).text
    assert "<i>Eve" not in answer.text
    assert [(each.event.actor, each.event.subject) for each in logged] == [("api_key:ada", "ban")]


DENIAL = ToolRule("weather", Decision.DENY, reason="not now")


@pytest.mark.parametrize(
    ("rules", "typed", "status", "told"),
    [
        (asks(), {"arg-city": "Paris"}, 403, "People have to decide about 'weather'"),
        (GatePolicy(rules=(DENIAL,)), {"arg-city": "Paris"}, 403, "not now"),
        (GatePolicy(), {}, 400, "city"),
    ],
)
async def test_what_is_refused_is_explained_beside_the_form_as_it_was(
    rules: GatePolicy, typed: dict[str, str], status: int, told: str
) -> None:
    async with open_web(keys=[ADA], policy=rules) as web:
        answer = await ask(web, "ada", "POST", f"{PATH}/weather", agent="denizen", **typed)
    page = PageText(answer.text)
    assert answer.status_code == status
    assert told in page.text
    assert ("Paris" in page.text) is bool(typed)
    assert not web.weather.calls


async def test_a_field_that_is_not_json_is_named() -> None:
    async with open_web(keys=[ADA], more=[Moderation()], policy=policy()) as web:
        answer = await ask(web, "ada", "POST", f"{PATH}/ban", agent="denizen", **{"arg-who": "x", "arg-days": "three"})
    assert answer.status_code == 400
    assert "'days' is not JSON." in PageText(answer.text).text


async def test_members_see_and_try_nothing_and_unknown_tools_are_named() -> None:
    async with open_web(keys=[ADA, ANN]) as web:
        member = [
            (await ask(web, "ann", method, path)).status_code
            for method, path in (("GET", PATH), ("GET", f"{PATH}/weather"), ("POST", f"{PATH}/weather"))
        ]
        unknown = await ask(web, "ada", "GET", f"{PATH}/nothing")
    assert member == [403, 403, 403]
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "tool_unknown")
