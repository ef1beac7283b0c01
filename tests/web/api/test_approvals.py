"""Deciding over HTTP about calls that wait: whose word counts, and what everybody is told."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx2
import openai
import pytest

from denizen.domain.approval import ApprovalRule, Deciders
from denizen.domain.tool import Tier
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen_sdk.client import DenizenClient
from denizen_sdk.errors import ApiError
from denizen_sdk.turns import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    ToolFinishedEvent,
    TurnFinishedEvent,
    encode_event,
)
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import ADA, ANN, BEN, WebFixture, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.proves("T-approval-http", "T-http-approvals")]

KEY = {"ann": "key-of-ann", "ben": "key-of-ben", "ada": "key-of-ada"}


def asks(rule: ApprovalRule | None = None) -> GatePolicy:
    return GatePolicy(rules=(ToolRule("weather", Decision.ASK, reason="it costs money", approval=rule),))


def script() -> ScriptedModel:
    return ScriptedModel(ScriptedReply(calls=[call("weather", city="Paris", api_key="s3cret")]), ScriptedReply("Done."))


class ChatUser:
    """Somebody who chats, and what they are told."""

    def __init__(self, web: WebFixture, who: str, address: str) -> None:
        self.web = web
        self.client = DenizenClient(address, KEY[who])
        self.events: list[Any] = []
        self.waits = anyio.Event()

    async def chat(self) -> None:
        async for event in self.client.chat("go"):
            self.events.append(event)
            if isinstance(event, ApprovalRequestedEvent):
                self.waits.set()
        await self.client.aclose()

    @property
    def approval(self) -> Any:
        return next(event.approval for event in self.events if isinstance(event, ApprovalRequestedEvent))


async def post(web: WebFixture, who: str, path: str, **body: str) -> httpx2.Response:
    async with web.client(authorization=f"Bearer {KEY[who]}") as client:
        return await client.post(path, json=body)


async def get(web: WebFixture, who: str, path: str) -> Any:
    async with web.client(authorization=f"Bearer {KEY[who]}") as client:
        return (await client.get(path)).json()


@pytest.mark.proves("T-http-chat", "P2")
async def test_the_stream_tells_what_waits_and_what_was_decided_about_it() -> None:
    async with open_web(script(), keys=[ANN], policy=asks()) as web, web.serve() as address:
        ann = ChatUser(web, "ann", address)
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ann.chat)
                await ann.waits.wait()
                waits = ann.approval
                assert (waits.call.tool, waits.status, waits.may_decide) == ("weather", "pending", True)
                assert waits.call.args == {"city": "Paris", "api_key": "•••"}
                assert "s3cret" not in waits.call.preview
                assert "Asked because it costs money." in waits.call.preview
                assert not web.weather.calls
                async with DenizenClient(address, KEY["ann"]) as other:
                    assert [each.id for each in await other.list_approvals(status="pending")] == [waits.id]
                    assert (await other.approve(waits.id)).status == "approved"
        assert [encode_event(event)["type"] for event in ann.events if getattr(event, "approval", None)] == [
            "approval_request",
            "approval_decided",
        ]
        kinds = [type(event) for event in ann.events]
        assert kinds.index(ApprovalDecidedEvent) < kinds.index(ToolFinishedEvent)
        assert isinstance(ann.events[-1], TurnFinishedEvent)
        assert len(web.weather.calls) == 1


COMPLETION: Any = {"model": "denizen", "messages": [{"role": "user", "content": "go"}], "stream": True}
WAITS = {"x-denizen-approvals": "wait"}
TOLD = "Waiting for approval of weather by the one who asked: `denizen approvals approve apr_"


async def approve(web: WebFixture, told: str) -> None:
    """Approves the call that the text names."""
    key = told.partition("approve ")[2].partition("`")[0]
    assert (await post(web, "ann", f"/api/approvals/{key}", decision="approve")).status_code == 200


@pytest.mark.proves("P2")
async def test_an_official_client_reads_on_while_a_call_waits_and_may_show_why() -> None:
    said, thought = "", ""
    async with open_web(script(), keys=[ANN], policy=asks()) as web, web.serve() as url:
        own = httpx2.AsyncClient(timeout=HANG_LIMIT_S)
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY["ann"], http_client=own) as client:
            async for chunk in await client.chat.completions.create(**COMPLETION, extra_headers=WAITS):
                for choice in chunk.choices:
                    said += choice.delta.content or ""
                    if told := getattr(choice.delta, "reasoning_content", ""):
                        thought += told
                        await approve(web, told)
    assert (said, thought.startswith(TOLD)) == ("Done.", True)


async def test_the_comments_of_a_stream_say_that_a_call_waits_and_how_it_ended() -> None:
    async with (
        open_web(script(), keys=[ANN], policy=asks()) as web,
        web.serve() as url,
        httpx2.AsyncClient(base_url=url, timeout=HANG_LIMIT_S) as client,
        client.stream(
            "POST", "/v1/chat/completions", json=COMPLETION, headers={**WAITS, "authorization": f"Bearer {KEY['ann']}"}
        ) as response,
    ):
        comments: list[str] = []
        async for line in response.aiter_lines():
            if line.startswith(":"):
                comments.append(line)
            if line.startswith(f": {TOLD}"):
                await approve(web, line)
    assert [comment for comment in comments if "keep-alive" not in comment][1:] == [": weather: approved by ann"]


async def test_who_says_nothing_of_waiting_is_asked() -> None:
    async with (
        open_web(script(), keys=[ANN], policy=asks()) as web,
        web.serve() as url,
        httpx2.AsyncClient(base_url=url, timeout=HANG_LIMIT_S) as client,
        client.stream(
            "POST", "/api/chat", json={"message": "go"}, headers={"authorization": f"Bearer {KEY['ann']}"}
        ) as response,
    ):
        kinds: list[str] = []
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                kinds.append(event["type"])
                if event["type"] == "approval_request":
                    await post(web, "ann", f"/api/approvals/{event['approval']['id']}", decision="approve")
    assert "approval_request" in kinds
    assert len(web.weather.calls) == 1


async def test_a_stored_call_still_says_how_long_it_ran_and_who_approved_it() -> None:
    model = ScriptedModel(*(ScriptedReply(calls=[call("weather", city="Paris")]), ScriptedReply("Done.")) * 2)
    async with open_web(model, keys=[ANN], policy=asks()) as web, web.serve() as address:
        for decision, note in (("approve", ""), ("deny", "too dear")):
            ann = ChatUser(web, "ann", address)
            with anyio.fail_after(HANG_LIMIT_S):
                async with anyio.create_task_group() as group:
                    group.start_soon(ann.chat)
                    await ann.waits.wait()
                    await post(web, "ann", f"/api/approvals/{ann.approval.id}", decision=decision, reason=note)
        rows = await get(web, "ann", "/api/sessions/default/messages")
    first, second = (call for row in rows for call in row["calls"])
    assert (first["approval"]["status"], first["approval"]["decision"]["by"]) == ("approved", "ann")
    assert (second["approval"]["status"], second["approval"]["decision"]["note"]) == ("denied", "too dear")
    assert "Asked because it costs money." in first["approval"]["call"]["preview"]
    assert isinstance(first["duration_ms"], int)
    assert (first["is_error"], second["is_error"]) == (False, True)


async def test_a_vote_of_a_stranger_does_not_count_and_a_second_vote_changes_nothing() -> None:
    async with open_web(script(), keys=[ANN, BEN], policy=asks()) as web, web.serve() as address:
        ann = ChatUser(web, "ann", address)
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ann.chat)
                await ann.waits.wait()
                path = f"/api/approvals/{ann.approval.id}"
                refused = await post(web, "ben", path, decision="approve")
                assert refused.status_code == 403
                assert refused.json()["error"]["code"] == "approval_not_yours"
                assert await get(web, "ben", "/api/approvals") == []
                wrong = await post(web, "ann", path, decision="maybe")
                assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "decision_invalid")
                denied = await post(web, "ann", path, decision="deny", reason="too dear")
                assert (denied.json()["status"], denied.json()["decision"]["note"]) == ("denied", "too dear")
                again = await post(web, "ann", path, decision="approve")
                assert (again.status_code, again.json()["status"]) == (200, "denied")
        assert not web.weather.calls
        [result] = [event for event in ann.events if isinstance(event, ToolFinishedEvent)]
        assert result.text == "Denied: denied by ann: too dear."


async def test_a_role_may_decide_what_somebody_else_asked() -> None:
    rule = ApprovalRule(Deciders.ROLE, "admin")
    model = ScriptedModel(*(ScriptedReply(calls=[call("weather", city="Paris")]), ScriptedReply("Done.")) * 2)
    async with open_web(model, keys=[ANN, ADA], policy=asks(rule)) as web, web.serve() as address:
        ann = ChatUser(web, "ann", address)
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ann.chat)
                await ann.waits.wait()
                assert not ann.approval.may_decide
                [listed] = await get(web, "ada", "/api/approvals?status=pending")
                assert listed["may_decide"]
                body = await post(web, "ada", f"/api/approvals/{listed['id']}", decision="approve", scope="hour")
                assert body.json()["decision"]["by"] == "ada"
            assert len(web.weather.calls) == 1
            unasked = ChatUser(web, "ann", address)
            await unasked.chat()
        assert len(web.weather.calls) == 2 and not unasked.waits.is_set()


@pytest.mark.proves("T-approval-timeout")
async def test_a_word_that_comes_too_late_is_a_conflict() -> None:
    async with open_web(script(), keys=[ANN], policy=asks()) as web, web.serve() as address:
        ann = ChatUser(web, "ann", address)
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ann.chat)
                await ann.waits.wait()

                web.clock.advance(minutes=6)
                late = await post(web, "ann", f"/api/approvals/{ann.approval.id}", decision="approve")
                assert (late.status_code, late.json()["error"]["code"]) == (409, "approval_expired")
        assert not web.weather.calls


async def test_an_unknown_approval_is_not_found() -> None:
    async with open_web(script(), keys=[ANN], policy=asks()) as web, web.serve() as address:
        async with DenizenClient(address, KEY["ann"]) as client:
            with pytest.raises(ApiError) as caught:
                await client.deny("apr_none")
        problem = caught.value.problem
        assert (problem.status, problem.code, problem.fix) == (
            404,
            "approval_not_found",
            "GET /api/approvals lists them.",
        )
        assert "has this id" in problem.why


@pytest.mark.proves("TW1", "X-approval-absent")
@pytest.mark.parametrize("policy", [asks(), GatePolicy(tiers=(("weather", Tier.DANGEROUS),))])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"model": "denizen", "messages": [{"role": "user", "content": "go"}]}),
        ("/api/chat", {"message": "go", "wait_for_approval": False}),
    ],
)
async def test_a_program_that_does_not_say_that_it_waits_is_denied_at_once(
    policy: GatePolicy, path: str, body: dict[str, Any]
) -> None:
    model = script()
    async with open_web(model, keys=[ANN], policy=policy) as web:
        async with web.client(authorization="Bearer key-of-ann") as client:
            with anyio.fail_after(HANG_LIMIT_S):
                answer = await client.post(path, json=body)
        assert "Done." in answer.text
        assert not web.weather.calls
        assert "nobody can be asked here" in json.dumps(str(model.requests[-1].messages))
