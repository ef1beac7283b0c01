"""The look inside: health, statistics, accounts, channels, block boundaries, transcripts and requests."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from denizen.domain.ids import AgentName
from denizen.domain.message import Author
from denizen.domain.room import Post, Room, RoomKind
from denizen.domain.transcript import post_line
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.engine.prompt.room_transcript import close_block
from denizen.web.http.dependencies import InstanceServices
from tests.clock import NOON
from tests.web.api.test_chats import say
from tests.web.api.test_commands import AS_ADA, AS_OWEN, OWEN
from tests.web_fixture import ADA, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

GENERAL = Room("discord", "10", "general", guild="1", guild_name="Town")
DIRECT = Room("discord", "20", "Ana", kind=RoomKind.DIRECT)
ACCOUNT = AccountState("discord", AgentName("denizen"), is_listening=True, told="connected as Denizen#1")


async def find_store_broken() -> dict[str, str]:
    return {"store": "The disk is full."}


INSTANCE = InstanceServices(find_problems=find_store_broken, list_accounts=lambda: [ACCOUNT])


def make_posts() -> list[Post]:
    return [
        Post("discord", str(100 + at), "10", Author("7", "Ana"), f"post {at}", NOON + timedelta(minutes=at), guild="1")
        for at in range(4)
    ]


async def mirror(web: WebFixture) -> Sequence[Post]:
    """Mirrors four posts of a channel, the first two of which are in a closed block, and a direct talk."""
    posts = make_posts()
    async with web.store.work() as work:
        for room in (GENERAL, DIRECT):
            await work.archive.put_room(room)
        await work.archive.put(posts)
        await work.archive.put([replace(posts[0], id="200", room="20", guild="", text="a secret")])
        closed = await close_block(work, GENERAL.place, 1, "10", [post_line(post) for post in posts[:2]])
        await work.transcripts.add_blocks(GENERAL.place, [closed.block])
    return posts


@pytest.mark.proves("C-inspect-server")
async def test_on_loopback_without_keys_whoever_is_there_inspects_everything() -> None:
    async with open_web(make_hello_model(), instance=INSTANCE) as web, web.client() as client:
        await mirror(web)
        await say(client, "trees", "Hi")

        async def look(path: str, **query: Any) -> Any:
            response = await client.get(f"/api/inspect/{path}", params=query)
            assert response.status_code == 200, response.text
            return response.json()

        assert (await look("health"))["problems"] == {"store": "The disk is full."}
        stats = await look("stats")
        assert (stats["posts"]["discord"], stats["rooms"]["discord"], stats["requests_today"]) == (5, 2, 1)
        assert (stats["running_turns"], stats["waiting_approvals"]) == (0, 0)
        [account] = await look("agents")
        assert (account["agent"], account["is_listening"], account["told"]) == ("denizen", True, ACCOUNT.told)
        assert {(row["id"], row["kind"], row["blocks"]) for row in await look("channels")} == {
            ("10", "channel", 1),
            ("20", "direct", 0),
        }
        one = "channels/discord/10"
        assert ((await look(one))["name"], (await look(one))["guild_name"]) == ("general", "Town")
        assert [row["text"] for row in await look(f"{one}/messages")] == [f"post {at}" for at in range(4)]
        assert [row["id"] for row in await look(f"{one}/messages", before="102", limit=1)] == ["101"]
        [block] = await look(f"{one}/boundaries")
        assert (block["number"], block["first"], block["last"], block["posts"]) == (1, "100", "101", 2)
        parts = await look(f"{one}/transcript")
        assert [(part["number"], part["text"]) for part in parts] == [
            (1, "Ana: post 0\nAna: post 1"),
            (None, "Ana: post 2\nAna: post 3"),
        ]
        assert sum(part["tokens"] for part in parts) > block["tokens"] > 0
        assert len(await look(f"{one}/boundaries")) == 1  # looking closes nothing

        before = len(web.model.requests)
        [payload] = await look("payload", message="And now?", session="trees")
        said = [part["text"] for message in payload["messages"] for part in message["parts"]]
        assert "Hello." in said
        assert any("And now?" in text for text in said)
        assert payload["model"] == "scripted/model"
        assert [tool["name"] for tool in payload["tools"]] == ["weather"]
        assert len(web.model.requests) == before

        reset = await client.post(f"/api/inspect/{one}/reset-blocks")
        assert reset.json() == {"blocks": 1}
        assert await look(f"{one}/boundaries") == []
        [tail] = await look(f"{one}/transcript")
        assert tail["text"].count("Ana: post") == 4


async def test_admins_inspect_no_room_that_is_not_open_to_everybody_and_no_request() -> None:
    async with open_web(keys=[ADA, OWEN]) as web, web.client(**AS_ADA) as ada, web.client(**AS_OWEN) as owen:
        await mirror(web)
        assert len((await owen.get("/api/inspect/channels")).json()) == 2
        assert (await ada.get("/api/inspect/channels")).json() == []
        for path in ("", "/messages", "/boundaries", "/transcript"):
            assert (await owen.get(f"/api/inspect/channels/discord/20{path}")).status_code == 200
            assert (await ada.get(f"/api/inspect/channels/discord/20{path}")).status_code == 404
        assert (await ada.post("/api/inspect/channels/discord/10/reset-blocks")).status_code == 404
        assert (await ada.get("/api/inspect/payload", params={"message": "Hi"})).status_code == 403
        assert (await owen.get("/api/inspect/channels/discord/99")).status_code == 404
