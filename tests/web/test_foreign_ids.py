"""Nobody reaches what is somebody else's by its id: every route with a parameter is tried, and nothing is given away.

The routes come from the application and the requests from its description, so a new route falls under this by itself.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from anyio import to_thread
from hypothesis import HealthCheck, Phase, given, settings
from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.approval import Approval, ApprovalRequest, ApprovalRule
from denizen.domain.delegation import Delegation, ParentTurn, parent_to_json
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.memory import Memory, MemoryOrigin
from denizen.domain.principal import RoleName
from denizen.domain.tool import Tier
from denizen.domain.turn import PARENT
from denizen.domain.user import IdentityProfile, User
from denizen.web.http.auth import LOGIN_COOKIE
from denizen.web.http.openapi import ApiRoute
from denizen.web.http.routing import Access, AccessRoute
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.timing import HANG_LIMIT_S
from tests.web.full_web_fixture import HOOK, open_full_web
from tests.web.people import PASSWORD, SignedIn, add_user, sign_in
from tests.web.question_fixture import QUESTION
from tests.web_fixture import WebFixture

pytestmark = pytest.mark.anyio

SECRET = "tangerine"
"""Stands in everything that Ann has."""
SHARED = {
    "agent": "denizen",
    "model": "denizen",
    "tool": "weather",
    "source": "notes",
    "platform": "discord",
    "channel": "general",
    "page": "chat",
    "route": HOOK.name,
}
"""Parameters that name what belongs to nobody, or to the operator."""
IDS_OF_ADMINS = {
    "run": "run_1",
    "gap": "gap_1",
    "proposal": "proposal_1",
    "memory": "mem_1",
    "delivery": "delivery_1",
    "schedule": "tea",
    "workflow": "greet",
}
"""Parameters that name what only admins see: a member is refused before anything is looked up."""
OWN_NAMES = {
    "POST /api/chats/{chat_id}": "everybody names chats in a space of their own; one that is missing is made",
    "GET /api/sessions/{name}/messages": "everybody names sessions in a space of their own",
    "GET /c/{chat_id}": "the page is the same for every chat and asks for it by itself",
    "GET /shared/{token}": "the page is the same for every token and asks for the chat by itself",
}
"""Routes that answer a foreign id with something of the caller's own."""
FIELDS = {"status": "archived", "title": "x", "name": "x", "document_name": "x", "text": "x"}
"""What forms of pages need, so that a request gets as far as the id."""
FOR_ADMINS_TOO = ("/api/turns/", "/api/approvals/")
"""What admins may see of everybody."""
EXAMPLES = 5


@dataclass
class Belongings:
    """What Ann has: the ids by the parameter that takes them, and everything that is stored."""

    web: WebFixture
    ann: SignedIn
    ids: Mapping[str, str]

    async def read_all(self) -> Any:
        async with self.web.store.work(write=False) as work:
            tables = await work.personal_data.export(self.ann.user.id)
        files = {str(path): path.read_bytes() for path in self.web.uploads.rglob("*") if path.is_file()}
        return tables, {path: data for path, data in files.items() if SECRET.encode() in data}


@asynccontextmanager
async def open_belongings(root: Path) -> AsyncGenerator[Belongings]:
    async with open_full_web(root) as web:
        await add_user(web, "owner")
        async with sign_in(web, await add_user(web, "ann")) as ann:
            yield Belongings(web, ann, await give_everything(web, ann))


async def give_everything(web: WebFixture, ann: SignedIn) -> Mapping[str, str]:
    """Lets Ann have one of everything. Returns the ids by parameter."""
    client, chat = ann.client, "ann-chat"
    spoken = await client.post(f"/api/chats/{chat}", json={"message": f"My {SECRET}"})
    turn = spoken.headers["x-denizen-turn"]
    await client.patch(f"/api/chats/{chat}", json={"title": f"The {SECRET}"})
    upload = (await client.put(f"/api/upload/{chat}?name={SECRET}.csv", content=f"{SECRET},1\n".encode())).json()
    ended = (await client.patch(f"/api/chats/{chat}/share", json={"is_public": True})).json()["share_token"]
    await client.patch(f"/api/chats/{chat}/share", json={"is_public": False})
    details = (await client.get(f"/api/chats/{chat}")).json()
    answer = details["messages"][-1]["id"]
    await client.patch(f"/api/messages/{answer}/feedback", json={"feedback": "positive", "reason": SECRET})
    response = await client.post("/v1/responses", json={"input": f"The {SECRET} again"})
    key = (await client.post("/api/account/api-keys", json={"name": SECRET, "password": PASSWORD})).json()["info"]
    [own] = (await client.get("/api/account/sessions")).json()
    profile = IdentityProfile(
        provider="github", site="GitHub", subject="7", login=SECRET, name=SECRET, email="ann@example.org"
    )
    await web.users.registration.link(profile, ann.user)
    await web.users.registration.link(replace(profile, provider="discord", subject="21"), ann.user)
    platform = MemoryPlatform(guild="1")
    platform.add_person("21", "Ann")
    platform.set_managers(["21"])
    web.channels.add(MemoryChannel(platform, AgentName("denizen")))
    assert (await client.get("/guilds/1")).status_code == 200
    _, invitation = await web.users.registration.invite(
        ann.user.principal(RoleName.OWNER), role=RoleName.MEMBER, email=f"{SECRET}@example.org"
    )
    await add_memory_and_approval(web, ann.user, turn)
    await add_question_and_background_task(web, ann.user, turn)
    project = (await client.post("/api/projects", json={"name": SECRET})).json()["id"]
    task = (await client.post("/api/tasks", json={"title": SECRET, "project": project})).json()["id"]
    comment = (await client.post(f"/api/tasks/{task}/comments", json={"text": SECRET})).json()["id"]
    document = (await client.post(f"/api/projects/{project}/documents", json={"name": SECRET})).json()["id"]
    return {
        "project": project,
        "task": task,
        "comment": comment,
        "document": document,
        "chat_id": chat,
        "message_id": answer,
        "session_id": details["session_id"],
        "name": chat,
        "token": ended,
        "path": upload["path"],
        "turn_id": turn,
        "response": response.json()["id"],
        "approval_id": "appr_ann",
        "question_id": QUESTION.id,
        "task_id": "dlg_ann",
        "sign_in": own["id"],
        "key": key["id"],
        "provider": "github",
        "user": ann.user.id,
        "invitation": invitation.id,
        "guild": "1",
    }


async def add_memory_and_approval(web: WebFixture, ann: User, turn_id: str) -> None:
    told = MemoryOrigin("web", ann.key, private=True)
    memory = Memory(
        "mem_1", AgentName("denizen"), ann.key, f"likes {SECRET}", told, told_by=ann.key, created_at=web.clock.now()
    )
    [turn] = [each for each in await web.turns() if each.id == turn_id]
    async with web.store.work() as work:
        await work.memories.add(memory)
        place = (await work.conversations.get(turn.conversation_id)).place
        request = ApprovalRequest(
            turn_id=turn.id,
            agent=turn.agent,
            requester=ann.key,
            place=place,
            conversation_id=turn.conversation_id,
            tool="weather",
            args={"city": SECRET},
            tier=Tier.DANGEROUS,
            reason=SECRET,
            preview=SECRET,
        )
        await work.approvals.add(
            Approval(id="appr_ann", request=request, rule=ApprovalRule(), created_at=web.clock.now(), expires_at=None)
        )


async def add_question_and_background_task(web: WebFixture, ann: User, turn_id: str) -> None:
    """Her turn has asked the owner, and given a task away."""
    [turn] = [each for each in await web.turns() if each.id == turn_id]
    async with web.store.work(write=False) as work:
        place = (await work.conversations.get(turn.conversation_id)).place
    question = replace(QUESTION, turn_id=turn.id, asker=ann.key, asker_name=ann.name, text=SECRET)
    parent = ParentTurn(id=turn.id, agent=turn.agent, place=place, task_id="dlg_ann", is_background=True)
    delegated = replace(turn, id=TurnId("turn_delegated"), options={PARENT: parent_to_json(parent)})
    delegation = Delegation(
        turn_id=delegated.id,
        task_id=parent.task_id,
        parent_id=turn.id,
        asker=ann.key,
        is_background=True,
        created_at=web.clock.now(),
    )
    async with web.store.work() as work:
        await work.questions.add(question)
        await work.turns.open(delegated)
        await work.delegations.add(delegation)


def fill_in(route: AccessRoute, ids: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a route, as somebody else's things have them."""
    known = {**SHARED, **IDS_OF_ADMINS, **ids}
    names = set(route.param_convertors)
    if missing := names - set(known):
        pytest.fail(
            f"{route.path}: this test does not know {missing}. Say in `give_everything` how Ann gets such a thing, "
            "or in SHARED that it is nobody's."
        )
    return {name: known[name] for name in names}


def list_routes_with_ids(web: WebFixture) -> list[tuple[str, AccessRoute]]:
    routes = [route for route in web.app.routes if isinstance(route, AccessRoute) and route.param_convertors]
    return [(method, route) for route in routes for method in (route.methods or set()) - {"HEAD"}]


@pytest.mark.parametrize("role", [RoleName.MEMBER, RoleName.ADMIN])
async def test_no_route_reaches_by_its_id_what_is_somebody_elses(tmp_path: Path, role: RoleName) -> None:
    async with (
        open_belongings(tmp_path) as anns,
        sign_in(anns.web, await add_user(anns.web, "ben", role)) as ben,
        anns.web.serve() as url,
    ):
        described = schemathesis.openapi.from_dict((await ben.client.get("/api/openapi.json")).json())
        before, tried = await anns.read_all(), set[str]()
        for method, route in list_routes_with_ids(anns.web):
            parameters, path = fill_in(route, anns.ids), route.path_format
            name = f"{method} {path}"
            is_for_all = route.access in (Access.MEMBER, Access.PUBLIC)
            if role is RoleName.ADMIN and (not is_for_all or path.startswith(FOR_ADMINS_TOO)):
                continue
            if isinstance(route, ApiRoute):
                send = partial(send_examples, described[path][method], parameters, url, ben)
                answers = await to_thread.run_sync(send)
            else:
                form = {"csrf_token": ben.csrf_token, **FIELDS} if method == "POST" else None
                answer = await ben.client.request(method, path.format(**parameters), data=form)
                answers = [(answer.status_code, answer.text)]
            check_answers(name, route, answers)
            assert await anns.read_all() == before, f"{name} has changed what is Ann's"
            tried.add(name)
    assert tried > {"GET /api/chats/{chat_id}", "DELETE /api/upload/{path}", "DELETE /api/account/api-keys/{key}"}


def send_examples(operation: Any, parameters: dict[str, str], url: str, ben: SignedIn) -> list[tuple[int, str]]:
    """Sends requests that fit the description, with those parameters. Returns the statuses and texts of the answers."""
    answers: list[tuple[int, str]] = []
    headers = {"cookie": f"{LOGIN_COOKIE}={ben.token}", "x-csrf-token": ben.csrf_token, "sec-fetch-site": "same-origin"}

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE))
    def send(case: schemathesis.Case[Any]) -> None:
        case.path_parameters = dict(parameters)
        answer = case.call(base_url=url, headers=headers, timeout=HANG_LIMIT_S)
        answers.append((answer.status_code, answer.text))

    send()
    return answers


def check_answers(name: str, route: AccessRoute, answers: list[tuple[int, str]]) -> None:
    """Checks that somebody else's thing is not there, and that nothing of it is told."""
    statuses = {status for status, _ in answers}
    assert max(statuses) < 500, (name, answers)
    assert not [text for _, text in answers if SECRET in text], f"{name} tells what is Ann's"
    is_shared = set(route.param_convertors) <= set(SHARED)
    if name in OWN_NAMES or (is_shared and route.access in (Access.MEMBER, Access.PUBLIC)):
        return
    assert min(statuses) >= 400, (name, statuses)
    assert statuses & {401, 403, 404}, f"{name}: no request got as far as the id: {answers[0]}"
    if route.access in (Access.ADMIN, Access.OWNER):
        assert statuses == {403}, name


async def test_no_id_of_somebody_else_in_a_body_or_a_query_reaches_anything(tmp_path: Path) -> None:
    async with open_belongings(tmp_path) as anns, sign_in(anns.web, await add_user(anns.web, "ben")) as ben:
        client, ids = ben.client, anns.ids
        await client.post("/api/chats/bens", json={"message": "Hello"})
        before, asked = await anns.read_all(), len(anns.web.model.requests)
        tries: list[tuple[str, str, Any]] = [
            ("POST", "/api/chats/bens/branch", {"before_message_id": ids["message_id"]}),
            ("POST", f"/api/chats/bens/sessions/{ids['session_id']}/activate", None),
            ("GET", f"/api/chats/bens?session={ids['session_id']}", None),
            ("POST", "/api/chats/bens", {"message": "See", "uploads": [ids["path"]]}),
            ("POST", "/v1/responses", {"input": "And?", "previous_response_id": ids["response"]}),
            ("POST", "/api/chat", {"message": "Hello", "session": ids["chat_id"]}),
            ("GET", "/api/sessions", None),
            ("POST", "/api/command", {"input": "/status", "chat": ids["chat_id"]}),
            ("GET", f"/api/chats?search={SECRET}", None),
            ("GET", "/api/approvals", None),
            ("GET", "/api/account/export", None),
        ]
        for method, path, body in tries:
            answer = await client.request(method, path, json=body)
            assert answer.status_code < 500 and SECRET not in answer.text, path
        for path, body in ((path, body) for _, path, body in tries[:5]):
            method = "GET" if body is None and "?" in path else "POST"
            assert (await client.request(method, path, json=body)).status_code == 404, path
        for path, field, name in (
            ("/settings/sessions/revoke", "id", "sign_in"),
            ("/settings/api-keys/revoke", "id", "key"),
            ("/settings/identities/unlink", "provider", "provider"),
        ):
            await ben.submit(path, **{field: ids[name]})
        assert await anns.read_all() == before
    told = [str(request.messages) for request in anns.web.model.requests[asked:]]
    assert told and not [each for each in told if SECRET in each], "the model was told what is Ann's"


async def test_a_route_with_a_parameter_that_nobody_thought_of_fails_the_walk() -> None:
    async def show(_: Request) -> Response:
        return Response()

    with pytest.raises(pytest.fail.Exception, match=r"does not know \{'letter'\}"):
        fill_in(AccessRoute("GET", "/api/letters/{letter}", show, Access.MEMBER), {})


async def test_ann_has_one_of_everything_that_the_walk_tries_to_reach(tmp_path: Path) -> None:
    async with open_belongings(tmp_path) as anns:
        reached: dict[str, httpx2.Response] = {}
        for name, path in (
            ("chat_id", "/api/chats/{}"),
            ("path", "/api/upload/{}"),
            ("turn_id", "/api/turns/{}"),
            ("name", "/api/sessions/{}/messages"),
            ("task_id", "/api/background-tasks/{}"),
        ):
            reached[name] = await anns.ann.client.get(path.format(anns.ids[name]))
        assert {each.status_code for each in reached.values()} == {200}
        tables, files = await anns.read_all()
        assert len(files) == 1
        with_secret = {table for table, rows in tables.items() if SECRET in json.dumps(rows)}
    assert with_secret >= {"chats", "messages", "memories", "approvals", "linked_identities", "user_keys", "questions"}
