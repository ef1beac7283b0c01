"""Turns on their pages: the list with its filters, the trace of one, who sees it, and a replay beside it."""

from __future__ import annotations

from decimal import Decimal

import anyio
import pytest

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.errors import Unavailable
from denizen.domain.hook import Hook, Hooks
from denizen.domain.ids import AgentName
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.engine.hooks.runner import hook_run_id
from denizen.engine.inspection.queries import Queries
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.web.pages.turns import PATH, SHOWN
from tests.engine.delegation.delegation_fixture import hand_on
from tests.web.admin_pages_fixture import KEYS, PageText, ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, BEN, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

USED = Usage(input_tokens=1200, cache_read_tokens=200, output_tokens=50, requests=1, cost_usd=Decimal("0.02"))
AWAY = ScriptedReply(error=Unavailable("The model does not answer.", fix="Try <b>later</b>."))


async def chat(web: WebFixture, who: str, text: str, agent: str = "") -> None:
    async with web.client(**{"x-api-key": KEYS[who]}) as client:
        await client.post("/api/chat", json={"message": text, "agent": agent})


async def make_private(web: WebFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on each turn counts as asked in private."""

    async def is_private(self: Queries, turn: object) -> bool:
        del self, turn
        return True

    monkeypatch.setattr(Queries, "is_private", is_private)


async def test_a_turn_leads_to_the_tasks_that_it_gave_away_and_these_lead_back() -> None:
    names = AgentName("denizen"), AgentName("scribe")
    agents = (Agent(names[0], tool_access=ToolAccess(delegates_to=names[1:])), Agent(names[1]))
    model = ScriptedModel(hand_on("Note it", "scribe"), ScriptedReply("noted"), ScriptedReply("Done."))
    async with open_web(model, keys=[OWNER, ANN], agents=agents) as web:
        await chat(web, "ann", "Note it")
        turns = {turn.agent: turn for turn in await web.turns()}
        for agent, other in (names, names[::-1]):
            page = await read(web, "olga", f"{PATH}/{turns[agent].id}")
            assert f"{PATH}/{turns[other].id}" in [attrs.get("href") for attrs in page.all("a")]


async def test_a_turn_that_runs_is_shown_as_far_as_it_is_and_its_page_loads_itself_until_it_ends() -> None:
    before = ReplyGate()
    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Paris")]), ScriptedReply("Fine.", before=before))
    async with open_web(model, keys=[OWNER, ANN]) as web, anyio.create_task_group() as group:
        group.start_soon(chat, web, "ann", "How is Paris?")
        await before.reached.wait()
        [turn] = await web.turns()
        path = f"{PATH}/{turn.id}"
        running = await read(web, "olga", path)
        before.open.set()
        await web.ended(TurnStatus.DONE)
        ended = await read(web, "olga", path)
        [[live], [still]] = [
            [attrs for attrs in page.all("div") if attrs.get("id") == "live"] for page in (running, ended)
        ]
        assert (live["hx-get"], live["hx-select"], still) == (path, "#live", {"id": "live"})
        assert [words in running.text for words in ("city: Paris", "It is still running.", "Fine.")] == [
            True,
            True,
            False,
        ]
        assert [words in ended.text for words in ("city: Paris", "It is still running.", "Fine.")] == [
            True,
            False,
            True,
        ]


async def test_turns_are_found_by_agent_status_platform_and_days() -> None:
    model = ScriptedModel(ScriptedReply("Old.", usage=USED), ScriptedReply("New.", usage=USED), AWAY, name="m1")
    async with open_web(model, keys=[ADA, ANN, BEN]) as web:
        await chat(web, "ann", "one")
        web.clock.advance(days=3)
        await chat(web, "ben", "two", agent="scribe")
        await chat(web, "ann", "three")
        found = {
            query: [(row[1], row[2], row[3]) for row in (await read(web, "ada", f"{PATH}{query}")).rows]
            for query in ("", "?agent=scribe", "?status=failed", "?days=2", "?platform=discord", "?platform=web&days=2")
        }
        everything = await read(web, "ada", PATH)
        odd = await ask(web, "ada", "GET", f"{PATH}?days=0")
    old, new, failed = ("done", "denizen", "ann"), ("done", "scribe", "ben"), ("failed", "denizen", "ann")
    assert found == {
        "": [failed, new, old],
        "?agent=scribe": [new],
        "?status=failed": [failed],
        "?days=2": [failed, new],
        "?platform=discord": [],
        "?platform=web&days=2": [failed, new],
    }
    assert everything.rows[1][4:] == ["web", "m1", "1,250", "$0.02"]
    assert odd.status_code == 400


async def test_the_list_goes_on_with_older_turns_on_the_next_page() -> None:
    async with open_web(make_hello_model(), keys=[ADA, ANN]) as web:
        for number in range(SHOWN + 2):
            await chat(web, "ann", str(number))
        first = await read(web, "ada", PATH)
        [older] = [str(attrs["href"]) for attrs in first.all("a") if "skip=" in str(attrs["href"])]
        second = await read(web, "ada", older)
        shown = [
            str(attrs["href"]).rpartition("/")[2]
            for page in (first, second)
            for attrs in page.all("a")
            if str(attrs["href"]).startswith(f"{PATH}/")
        ]
        assert shown == [turn.id for turn in reversed(await web.turns())]


async def test_a_turn_is_told_as_a_timeline_of_question_prompts_steps_calls_and_reply() -> None:
    asks = ScriptedReply(calls=[call("weather", city="<b>Paris</b>", api_key="s3cret")], usage=USED)
    async with open_web(ScriptedModel(asks, ScriptedReply("It <i>is</i> sunny.", usage=USED)), keys=[ADA, ANN]) as web:
        await chat(web, "ann", "How is the <u>weather</u>?")
        [turn] = await web.turns()
        answer = await ask(web, "ada", "GET", f"{PATH}/{turn.id}")
    page = PageText(answer.text)
    for told in (
        "Asked by ann api_key:ann",
        "Question How is the <u>weather</u>?",
        "Step 1: act",
        "1,200 tokens in (200 cached), 50 out, $0.02",
        "weather approve",
        "tier 0",
        "city: <b>Paris</b>",
        "Sunny.",
        "Step 2: act",
        "Reply It <i>is</i> sunny.",
    ):
        assert told in page.text, told
    assert "s3cret" not in page.text
    segments = [row for row in page.rows if row[0].startswith("style")]
    assert segments
    assert segments[0][1] == "config"
    assert int(segments[0][2]) > 0
    assert [each for each in ("<u>", "<b>Paris", "<i>is") if each in answer.text] == []


async def test_the_hooks_of_a_turn_are_marked_and_stand_where_they_ran() -> None:
    before, after = Hook("weather", {"city": "Oslo"}), Hook("weather", {"city": "{{response}}"})
    agents = [Agent(AgentName("denizen"), hooks=Hooks((before,), (after,)))]
    async with open_web(ScriptedModel(ScriptedReply("Atlantis")), keys=[ADA, ANN], agents=agents) as web:
        await chat(web, "ann", "Where?")
        [turn] = await web.turns()
        await web.durable.wait(hook_run_id(turn.id))
        page = await read(web, "ada", f"{PATH}/{turn.id}")
    told = [
        "Before the model was asked weather approve hook",
        "city: Oslo",
        "Step 1: act",
        "Reply Atlantis",
        "After the answer weather approve error hook",
        "city: Atlantis",
    ]
    places = [page.text.find(each) for each in told]
    assert -1 not in places and places == sorted(places), places


async def test_a_turn_that_a_hook_skipped_says_so() -> None:
    hooks = Hooks((Hook("weather", {"city": "Oslo"}, "Sunny"),))
    async with open_web(keys=[ADA, ANN], agents=[Agent(AgentName("denizen"), hooks=hooks)]) as web:
        await chat(web, "ann", "Where?")
        [turn] = await web.turns()
        page = await read(web, "ada", f"{PATH}/{turn.id}")
    assert "Skipped A hook found that there was nothing to answer." in page.text


async def test_a_failed_turn_tells_what_to_do() -> None:
    async with open_web(ScriptedModel(AWAY), keys=[ADA, ANN]) as web:
        await chat(web, "ann", "hi")
        [turn] = await web.turns()
        page = await read(web, "ada", f"{PATH}/{turn.id}")
    assert "Failure The model does not answer. Try <b>later</b>." in page.text


async def test_admins_do_not_see_what_was_asked_in_private_and_owners_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_web(make_hello_model(), keys=[ADA, ANN, OWNER]) as web:
        await chat(web, "ann", "a secret")
        await make_private(web, monkeypatch)
        [turn] = await web.turns()
        hidden, seen = await read(web, "ada", PATH), await read(web, "olga", PATH)
        assert (hidden.rows, "1 more were asked in private" in hidden.text, len(seen.rows)) == ([], True, 1)
        refused = await ask(web, "ada", "GET", f"{PATH}/{turn.id}")
        unknown = await ask(web, "ada", "GET", f"{PATH}/turn_unknown")
        assert (refused.status_code, unknown.status_code) == (404, 404)
        assert refused.text.replace(turn.id, "turn_unknown") == unknown.text
        assert "a secret" in (await read(web, "olga", f"{PATH}/{turn.id}")).text


async def test_an_owner_replays_a_turn_beside_what_was_recorded_without_a_trace() -> None:
    model = ScriptedModel(ScriptedReply("Then."), ScriptedReply("<b>Now</b>."), AWAY)
    async with open_web(model, keys=[ADA, ANN, OWNER]) as web:
        await chat(web, "ann", "hi")
        [turn] = await web.turns()
        form = await read(web, "olga", f"{PATH}/{turn.id}")
        assert [attrs["action"] for attrs in form.all("form") if "replay" in str(attrs.get("action"))] == [
            f"{PATH}/{turn.id}/replay"
        ]
        answer = await ask(web, "olga", "POST", f"{PATH}/{turn.id}/replay", model="")
        page = PageText(answer.text)
        assert answer.status_code == 200
        assert "Then, on scripted/model" in page.text
        assert "Now, on scripted/model" in page.text
        assert "<b>Now</b>." in page.text
        assert "<b>Now" not in answer.text
        assert len(await web.turns()) == 1
        failed = await ask(web, "olga", "POST", f"{PATH}/{turn.id}/replay", model="")
        assert failed.status_code == 503
        assert "The model does not answer." in PageText(failed.text).text
        assert (await ask(web, "ada", "POST", f"{PATH}/{turn.id}/replay", model="")).status_code == 403
        assert "replay" not in (await ask(web, "ada", "GET", f"{PATH}/{turn.id}")).text


async def test_a_browser_that_asks_for_what_is_not_there_gets_a_page_and_a_program_json() -> None:
    async with open_web(keys=[ADA]) as web, web.client(**{"x-api-key": KEYS["ada"]}) as client:
        page = await client.get(f"{PATH}/<b>nothing", headers={"accept": "text/html,*/*"})
        program = await client.get(f"{PATH}/nothing")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no turn <b>nothing." in PageText(page.text).text
    assert "<b>" not in page.text
    assert program.json()["error"]["code"] == "turn_not_found"


async def test_a_member_may_not_open_the_pages_even_for_an_own_turn() -> None:
    async with open_web(make_hello_model(), keys=[ANN]) as web:
        await chat(web, "ann", "hi")
        [turn] = await web.turns()
        answers = [(await ask(web, "ann", "GET", path)).status_code for path in (PATH, f"{PATH}/{turn.id}")]
    assert answers == [403, 403]
