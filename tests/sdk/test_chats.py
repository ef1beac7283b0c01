"""Chats through the client."""

import anyio
import anyio.lowlevel
import pytest

from denizen_sdk import ApiError, DenizenClient
from denizen_sdk.chats import ChatMessageRequest, NewChat
from denizen_sdk.turns import ChangedEvent, TextAddedEvent, TitleEvent, TurnFinishedEvent
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import make_hello_model, open_web

pytestmark = pytest.mark.anyio


async def test_a_chat_is_made_read_shared_forked_judged_and_deleted() -> None:
    async with open_web(make_hello_model()) as web, web.serve() as url, DenizenClient(url) as client:
        created = await client.create_chat(NewChat(id="c", agent="scribe"))
        upload = await client.upload("c", "people.csv", b"a,b\n1,2\n")
        request = ChatMessageRequest(message="Hello you", uploads=(upload.path,))
        told = [event async for event in client.send_to_chat("c", request)]
        await client.change_chat("c", is_pinned=True)
        [listed] = await client.list_chats(search="hello")
        question, answer = (await client.get_chat("c")).messages
        await client.give_feedback(answer.id, "positive", "Kind")
        voted = (await client.get_chat("c", limit=1)).messages[-1]
        token = await client.share_chat("c")
        assert token is not None
        shared = await client.get_shared_chat(token)
        branch = await client.branch_chat("c", answer.id)
        forked = await client.get_chat("c")
        old = await client.activate_session("c", forked.sessions[0].id)
        sessions = await client.list_sessions()
        begun = await client.new_session("c", agent="scribe")
        await client.delete_upload(upload.path)
        with pytest.raises(ApiError):
            await client.delete_upload(upload.path)
        assert await client.share_chat("c", is_public=False) is None
        await client.delete_chat("c")
        left = await client.list_chats()
    assert (created.chat.agent, created.turn_id, listed.title, listed.is_pinned) == ("scribe", "", "Hello you", True)
    assert {TitleEvent, TextAddedEvent, TurnFinishedEvent} <= {type(event) for event in told}
    assert [each.name for each in question.uploads] == ["people.csv"]
    assert (voted.feedback, voted.feedback_reason) == ("positive", "Kind")
    assert [message.text for message in shared.messages] == ["Hello you", "Hello."]
    assert branch == forked.session_id and old == forked.sessions[0].id and forked.messages == ()
    assert (sessions[0].session, begun.session, begun.agent, left) == ("c", "c", "scribe", [])


async def test_a_chat_is_watched_until_it_is_deleted() -> None:
    seen: list[object] = []

    async with open_web(make_hello_model()) as web, web.serve() as url, DenizenClient(url) as client:
        await client.create_chat(NewChat(id="c"))

        async def watch() -> None:
            async for event in client.watch_chat("c"):
                seen.append(event)  # noqa: PERF401 - each is seen as it comes

        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch)
                while not seen:
                    await anyio.lowlevel.checkpoint()
                async with web.client() as other:
                    await other.delete("/api/chats/c")
    assert seen == [ChangedEvent(), ChangedEvent(removed=True)]
