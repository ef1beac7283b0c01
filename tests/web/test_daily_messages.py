"""The messages that members have a day: counted once each, whatever the load, and told in headers."""

import anyio
import pytest

from denizen.domain.principal import RoleName
from denizen.engine.configuration.tool_policy import DAILY_MESSAGES
from denizen.web.http.dependencies import WebTiming
from tests.timing import HANG_LIMIT_S
from tests.web.people import SignedIn, add_user, sign_in
from tests.web_fixture import make_hello_model, open_web

pytestmark = pytest.mark.anyio

DAY_S = 24 * 3600
PATIENT = WebTiming(chat_start_s=HANG_LIMIT_S)
"""A stream begins with its turn, and not before, however busy the machine is: a refusal has its status then."""


async def ask(browser: SignedIn, number: int, key: str = "") -> tuple[int, str | None, str | None]:
    """Asks in a session of its own. Returns the status, the limit and what is left."""
    headers = {"Idempotency-Key": key} if key else {}
    body = {"message": f"hi {number}", "session": f"chat-{number}", "new": True}
    answer = await browser.client.post("/api/chat", json=body, headers=headers)
    return answer.status_code, answer.headers.get("x-ratelimit-limit"), answer.headers.get("x-ratelimit-remaining")


@pytest.mark.proves("S-http-rate-limit")
async def test_a_member_has_fifteen_messages_a_day_and_sees_how_many_are_left() -> None:
    async with open_web(make_hello_model(), timing=PATIENT) as web:
        await add_user(web, "owner")
        async with sign_in(web, await add_user(web, "ann")) as ann:
            answers = [await ask(ann, number) for number in range(15)]
            assert answers == [(200, "15", str(14 - number)) for number in range(15)]
            assert await ask(ann, 15) == (429, "15", "0")
            over = await ann.client.post("/api/chat", json={"message": "hi"})
            assert over.json()["error"]["code"] == "rate_limited"
            assert len(await web.turns()) == 15, "a refused message leaves nothing"
            web.clock.advance(DAY_S)
            assert await ask(ann, 16) == (200, "15", "14")


@pytest.mark.proves("S-http-rate-limit")
@pytest.mark.parametrize("role", [RoleName.ADMIN, RoleName.OWNER])
async def test_admins_and_owners_have_no_limit(role: RoleName) -> None:
    async with open_web(make_hello_model(), timing=PATIENT) as web:
        await add_user(web, "owner")
        async with sign_in(web, await add_user(web, "ann", role)) as ann:
            assert [await ask(ann, number) for number in range(DAILY_MESSAGES + 1)] == [(200, None, None)] * 16


@pytest.mark.proves("SW6")
async def test_a_repeated_request_counts_once_and_a_first_message_of_a_chat_too() -> None:
    async with open_web(make_hello_model(), timing=PATIENT, titles=True) as web:
        await add_user(web, "owner")
        async with sign_in(web, await add_user(web, "ann")) as ann:
            assert await ask(ann, 1, key="k") == (200, "15", "14")
            assert await ask(ann, 1, key="k") == (200, "15", "14")
            assert await ask(ann, 2) == (200, "15", "13")
            first = await ann.client.post("/api/chats/new", json={"message": "hi"})
            assert first.headers["x-ratelimit-remaining"] == "12"
            assert (await ann.client.post("/api/chats", json={"message": "hi"})).status_code == 201
            assert await ask(ann, 3) == (200, "15", "10")


@pytest.mark.proves("SW6")
async def test_of_many_messages_at_once_no_more_than_fifteen_are_answered_and_none_is_lost() -> None:
    async with open_web(make_hello_model(), timing=PATIENT) as web:
        await add_user(web, "owner")
        async with sign_in(web, await add_user(web, "ann")) as ann:
            codes: list[int] = []

            async def send(number: int) -> None:
                codes.append((await ask(ann, number))[0])

            async with anyio.create_task_group() as tasks:
                for number in range(25):
                    tasks.start_soon(send, number)
            assert (codes.count(200), codes.count(429)) == (15, 10)
            assert len(await web.turns()) == 15


async def test_own_keys_and_the_api_of_openai_clients_take_from_the_same_messages() -> None:
    async with open_web(make_hello_model(), timing=PATIENT) as web:
        await add_user(web, "owner")
        ann = await add_user(web, "ann")
        text, _ = await web.users.accounts.create_key(ann.principal(ann.role), "x", user=ann)
        async with sign_in(web, ann) as browser:
            assert await ask(browser, 1) == (200, "15", "14")
        async with web.client(authorization=f"Bearer {text}") as program:
            body = {"model": "denizen", "messages": [{"role": "user", "content": "hi"}]}
            answer = await program.post("/v1/chat/completions", json=body)
            assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (200, "13")


async def test_a_summary_that_is_asked_for_takes_a_message_too() -> None:
    async with open_web(make_hello_model(), timing=PATIENT) as web:
        await add_user(web, "owner")
        async with sign_in(web, await add_user(web, "ann")) as ann:
            for number in range(DAILY_MESSAGES):
                await ann.client.post("/api/chats/one", json={"message": f"hi {number}"})
            asked = len(web.model.requests)
            refused = await ann.client.post("/api/command", json={"input": "/compact", "chat": "one"})
    assert "You have asked 15 times within the day." in refused.text
    assert len(web.model.requests) == asked
