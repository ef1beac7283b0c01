"""The page of the simulation, as far as it can be tested without a browser: its JSON, its stream, its guard."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

import denizen.testing.discord.page
from denizen.testing.discord import SimUser, open_discord
from denizen.testing.discord.fixtures import DiscordFixture, build_discord_fixture
from denizen.testing.discord.world.small_world import build_small_world
from denizen.testing.discord.world.world import SimWorld
from tests.testing.discord.bots import Bot, running
from tests.testing.discord.interaction_bot import InteractionBot
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

STATIC = Path(denizen.testing.discord.page.__file__).parent / "static"
GENERAL = "/channels/general"


@dataclass(frozen=True, slots=True)
class PageUser:
    """One person at the page."""

    session: aiohttp.ClientSession
    person: SimUser

    async def ask(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        async with self.session.request(
            method, f"/sim{path}", params={"as": str(self.person.id)}, json=body
        ) as response:
            text = await response.text()
            assert response.status == status, text
            return json.loads(text) if text else None

    async def do(self, method: str, path: str, body: object = None) -> None:
        assert await self.ask(method, path, body, status=204) is None

    async def say(self, text: str, where: str = GENERAL, **more: object) -> Any:
        return await self.ask("POST", f"{where}/messages", {"text": text, **more})

    async def read(self, where: str = GENERAL) -> list[Any]:
        return (await self.ask("GET", f"{where}/messages"))["messages"]

    async def refused(self, method: str, path: str, body: object = None) -> str:
        """Why."""
        async with self.session.request(
            method, f"/sim{path}", params={"as": str(self.person.id)}, json=body
        ) as response:
            assert response.status >= 400
            return (await response.json())["error"]["message"]

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[PageStream]:
        async with self.session.get("/sim/events", params={"as": str(self.person.id)}) as response:
            assert response.content_type == "text/event-stream"
            yield PageStream(response)


@dataclass(frozen=True, slots=True)
class PageStream:
    """Its open page."""

    response: aiohttp.ClientResponse

    async def next(self) -> tuple[str, Any]:
        """Comments, which only keep the connection up, are passed over."""
        fields: dict[str, str] = {}
        with anyio.fail_after(HANG_LIMIT_S):
            while "data" not in fields:
                while line := (await self.response.content.readline()).decode().rstrip("\n"):
                    name, _, value = line.partition(": ")
                    fields[name] = value
        return fields["event"], json.loads(fields["data"])

    async def read_next(self, name: str) -> Any:
        while True:
            found, body = await self.next()
            if found == name:
                return body


@asynccontextmanager
async def at_the_page(sim: DiscordFixture, person: SimUser | None = None) -> AsyncGenerator[PageUser]:
    async with aiohttp.ClientSession(sim.discord.url) as session:
        yield PageUser(session, person or sim.ana)


class AnswerBot(Bot):
    """Answers whoever mentions it."""

    async def on_message(self, message: Any) -> None:
        if self.user in message.mentions:
            await message.reply(f"**{message.author.display_name}** said it", mention_author=False)


async def test_a_person_writes_and_reads_what_the_bot_answers(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, AnswerBot), at_the_page(sim) as ana, ana.listening() as page:
        said = await ana.say(f"{sim.ada.mention} hello")
        await sim.discord.until(lambda: len(sim.general.messages) == 2)
        question, answer = await ana.read()
        told = [await page.read_next("message"), await page.read_next("message")]
    assert question == said
    assert (answer["author_id"], answer["text"]) == (str(sim.ada.id), "**Ana** said it")
    assert answer["reply"] == {"id": said["id"], "author_id": str(sim.ana.id), "text": said["text"]}
    assert told == [question, answer]


async def test_names_become_mentions_as_in_discords_own_client(sim: DiscordFixture) -> None:
    ana, ada, general = sim.ana.mention, sim.ada.mention, sim.general.mention
    crew = sim.guild.add_role("crew", mentionable=True)
    sim.guild.add_role("staff")
    maria = sim.world.add_person("Ana Maria")
    sim.guild.join(maria)
    sim.guild.add_channel("cellar", private_to=[sim.ana])
    sim.guild.add_channel("help", kind="forum")
    texts = {
        "@ada, hello @Ana": f"{ada}, hello {ana}",
        "@ana maria and @crew see #general": f"{maria.mention} and {crew.mention} see {general}",
        "@anabel a@ada.example `@ada` @staff @nobody #cellar": "@anabel a@ada.example `@ada` @staff @nobody #cellar",
        f"```\n@ada\n``` {ada} @everyone": f"```\n@ada\n``` {ada} @everyone",
    }
    async with running(sim.discord, sim.ada, InteractionBot), at_the_page(sim, sim.ben) as ben:
        for written, sent in texts.items():
            assert (await ben.say(written))["text"] == sent
        said = await ben.ask("PATCH", f"{GENERAL}/messages/{(await ben.say('x'))['id']}", {"text": "@ada?"})
        assert said["text"] == f"{ada}?"
        post = await ben.ask("POST", "/channels/help/threads", {"name": "How?", "text": "@ada!"})
        assert (await ben.read(f"/channels/{post['id']}"))[0]["text"] == f"{ada}!"
        await ben.ask("POST", f"{GENERAL}/commands", {"name": "echo", "options": {"text": "@ada"}})
        assert (await ben.read())[-1]["text"].startswith(ada)
        direct = await ben.ask("POST", "/direct", {"with": str(sim.ada.id)})
        assert (await ben.say("@ada @ana", f"/channels/{direct['id']}"))["text"] == f"{ada} @ana"


async def test_the_world_comes_first_and_again_when_it_has_changed(sim: DiscordFixture) -> None:
    async with at_the_page(sim, sim.ben) as ben, ben.listening() as page:
        name, world = await page.next()
        assert (name, world["me"]) == ("world", str(sim.ben.id))
        assert [each["name"] for each in world["guilds"][0]["channels"]] == ["general"]
        assert {each["name"]: each["online"] for each in world["people"]} == {"Ana": True, "Ben": True, "Ada": False}
        sim.guild.add_channel("news")
        sim.guild.add_channel("hidden", private_to=[])
        world = await page.read_next("world")
        assert [each["name"] for each in world["guilds"][0]["channels"]] == ["general", "news"]


async def test_a_message_that_changes_quickly_is_told_once_as_it_is_then(sim: DiscordFixture) -> None:
    async with at_the_page(sim) as ana, ana.listening() as page:
        await page.read_next("world")
        message = sim.world.say(sim.ben, sim.general, "one")
        sim.world.edit(message, "two")
        gone = sim.world.say(sim.ben, sim.general, "never mind")
        sim.world.delete(gone)
        sim.world.type_in(sim.ben, sim.general)
        told = [await page.next() for _ in range(3)]
    assert [(name, body.get("text")) for name, body in told[:1]] == [("message", "two")]
    assert told[1] == ("gone", {"channel_id": str(sim.general.id), "ids": [str(gone.id)]})
    assert told[2] == ("typing", {"channel_id": str(sim.general.id), "person_id": str(sim.ben.id)})


async def test_nobody_is_told_what_is_said_where_they_are_not(sim: DiscordFixture) -> None:
    office = sim.guild.add_channel("office", private_to=[sim.ana])
    direct = sim.world.open_dm(sim.ana, sim.ada.user)
    async with at_the_page(sim, sim.ben) as ben, ben.listening() as page:
        await page.read_next("world")
        for room in (office, direct, sim.general):
            sim.world.say(sim.ana, room, f"in {room.name}")
        assert (await page.read_next("message"))["text"] == "in general"
        assert await ben.refused("GET", "/channels/office/messages") == "You cannot see this channel."
        assert await ben.refused("GET", f"/channels/{direct.id}/messages") == "You cannot see this channel."


async def test_people_edit_delete_react_and_reply_on_the_page(sim: DiscordFixture) -> None:
    async with at_the_page(sim) as ana, at_the_page(sim, sim.ben) as ben:
        said = await ana.say("one")
        place = f"{GENERAL}/messages/{said['id']}"
        assert (await ana.ask("PATCH", place, {"text": "two"}))["edited"]
        await ben.do("PUT", f"{place}/reactions/👍")
        [message] = await ana.read()
        reaction = {"key": "👍", "name": "👍", "mine": False, "people": [str(sim.ben.id)]}
        assert (message["text"], message["reactions"]) == ("two", [reaction])
        await ben.do("DELETE", f"{place}/reactions/👍")
        await ben.say("three", reply_to=said["id"])
        thread = await ben.ask("POST", f"{place}/thread", {"name": "More"})
        await ben.say("in the thread", f"/channels/{thread['id']}")
        [message, answer] = await ana.read()
        assert (message["reactions"], message["thread"]) == ([], {"id": thread["id"], "name": "More", "count": 1})
        assert (answer["kind"], answer["for_me"]) == ("reply", True)
        assert [each["kind"] for each in await ana.read("/channels/More")] == ["thread_starter_message", "default"]
        await ana.do("DELETE", place)
        [answer] = await ana.read()
    assert answer["reply"] == {"id": said["id"], "author_id": None, "text": ""}


async def test_a_file_goes_up_and_comes_back_without_rights(sim: DiscordFixture) -> None:
    page = b"<script>alert(1)</script>"
    async with at_the_page(sim) as ana:
        sent = {"name": "a page.html", "data": base64.b64encode(page).decode()}
        [file] = (await ana.say("", files=[sent]))["attachments"]
        async with ana.session.get(file["url"].removeprefix(sim.discord.url)) as response:
            assert await response.read() == page
            assert response.headers["Content-Security-Policy"].startswith("sandbox;")
            assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert await ana.refused("POST", f"{GENERAL}/messages", {"files": [{"name": "a", "data": "%"}]}) == (
            "files.0.data: This is not base64."
        )
    assert (file["name"], file["size_bytes"]) == ("a page.html", len(page))


async def test_the_page_makes_forum_posts_direct_messages_and_people(sim: DiscordFixture) -> None:
    sim.guild.add_channel("help", kind="forum")
    async with at_the_page(sim) as ana:
        made = await ana.ask("POST", "/people", {"name": "Dora"})
        assert await ana.refused("POST", "/people", {"name": "Dora"}) == "name: There is somebody called Dora already."
        dora = PageUser(ana.session, sim.world.store.get_user(int(made["id"])))
        post = await dora.ask("POST", "/channels/help/threads", {"name": "How?", "text": "Tell me."})
        assert [each["text"] for each in await ana.read(f"/channels/{post['id']}")] == ["Tell me."]
        direct = await dora.ask("POST", "/direct", {"with": str(sim.ada.id)})
        await dora.say("psst", f"/channels/{direct['id']}")
        [room] = (await dora.ask("GET", "/world"))["direct_messages"]
        assert (room["id"], room["with"]) == (direct["id"], [str(sim.ada.id)])
        assert (await ana.ask("GET", "/world"))["direct_messages"] == []


async def test_older_messages_are_read_page_by_page(sim: DiscordFixture) -> None:
    for number in range(60):
        sim.world.say(sim.ben, sim.general, str(number))
    async with at_the_page(sim) as ana:
        newest = await ana.ask("GET", f"{GENERAL}/messages")
        before = newest["messages"][0]["id"]
        async with ana.session.get(f"/sim{GENERAL}/messages", params={"before": before}) as response:
            older = await response.json()
    assert ([each["text"] for each in newest["messages"]], newest["more"]) == ([*map(str, range(10, 60))], True)
    assert ([each["text"] for each in older["messages"]], older["more"]) == ([*map(str, range(10))], False)


async def test_commands_are_listed_completed_and_run(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot), at_the_page(sim, sim.ben) as ben:
        listed = await ben.ask("GET", f"{GENERAL}/commands")
        names = [each["name"] for each in listed]
        assert names == ["ask", "choose", "echo", "follow", "fruit", "memory", "think"]  # idle is for administrators
        assert listed[2]["application"] == "Ada"
        assert [each["name"] for each in listed[2]["options"]] == ["text", "to"]
        body = {"name": "echo", "options": {"text": "hi", "to": str(sim.ana.id)}}
        assert await ben.ask("POST", f"{GENERAL}/commands", body) == {"acknowledged": True, "modal": None}
        [answer] = await ben.read()
        assert answer["text"] == f"hi {sim.ana.id}"
        assert answer["used"] == {"person_id": str(sim.ben.id), "command": "/echo"}
        body = {"name": "fruit", "options": {"name": "ap"}, "focused": "name"}
        choices = await ben.ask("POST", f"{GENERAL}/autocomplete", body)
        assert [each["value"] for each in choices] == ["apple", "apricot"]
        assert await ben.refused("POST", f"{GENERAL}/commands", {"name": "echo"}) == (
            "options.text: This field is required"
        )
        assert await ben.refused("POST", f"{GENERAL}/commands", {"name": "idle"}) == "Unknown application command"


async def test_an_answer_for_one_person_is_shown_to_that_person_only(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot), at_the_page(sim) as ana:
        ben = PageUser(ana.session, sim.ben)
        async with ana.listening() as hers, ben.listening() as his:
            await ben.ask("POST", f"{GENERAL}/commands", {"name": "memory forget", "options": {"count": 3}})
            sim.world.say(sim.ana, sim.general, "anything new?")
            first, second = await his.read_next("message"), await his.read_next("message")
            assert (first["text"], first["ephemeral"], second["text"]) == ("forgot 3", True, "anything new?")
            assert (await hers.read_next("message"))["text"] == "anything new?"


async def test_buttons_selects_and_modals_are_used_on_the_page(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot), at_the_page(sim, sim.ben) as ben:
        await ben.ask("POST", f"{GENERAL}/commands", {"name": "choose"})
        [shown] = await ben.read()
        press = f"{GENERAL}/messages/{shown['id']}/press"
        assert (await ben.ask("POST", press, {"custom_id": "yes"}))["acknowledged"]
        await ben.ask("POST", press, {"custom_id": "who", "values": [str(sim.ana.id)]})
        await sim.discord.until(lambda: len(sim.general.messages) == 2)
        assert [each["text"] for each in await ben.read()] == ["ben said yes", "ana"]
        assert await ben.refused("POST", press, {"custom_id": "yes"}) == "data.custom_id: Component validation failed"
        modal = (await ben.ask("POST", f"{GENERAL}/commands", {"name": "ask"}))["modal"]
        assert modal["title"] == "Name"
        send = f"/interactions/{modal['interaction_id']}/modal"
        assert "Must be between 1 and 5" in await ben.refused("POST", send, {"values": {"name": "much too long"}})
        assert (await ben.ask("POST", send, {"values": {"name": "Ben"}}))["acknowledged"]
        assert (await ben.read())[-1]["text"] == "hello Ben"


class Chooser(Bot):
    """Acknowledges every choice."""

    async def on_interaction(self, interaction: Any) -> None:
        await interaction.response.defer()


async def test_a_channel_is_chosen_from_a_select(sim: DiscordFixture) -> None:
    select = {"type": 8, "custom_id": "where"}
    async with running(sim.discord, sim.ada, Chooser), at_the_page(sim) as ana:
        asked = sim.world.say(sim.ada.user, sim.general, "Where?", components=[{"type": 1, "components": [select]}])
        body = {"custom_id": "where", "values": [str(sim.general.id)]}
        pressed = await ana.ask("POST", f"{GENERAL}/messages/{asked.id}/press", body)
    assert pressed == {"acknowledged": True, "modal": None}
    [interaction] = sim.world.store.interactions.by_token.values()
    assert interaction.data["values"] == [str(sim.general.id)]
    assert list(interaction.data["resolved"]["channels"]) == [str(sim.general.id)]


async def test_refusals_are_told_in_words(sim: DiscordFixture) -> None:
    said = sim.world.say(sim.ben, sim.general, "mine")
    async with at_the_page(sim) as ana:
        place = f"{GENERAL}/messages/{said.id}"
        for method, path, body, why in [
            ("POST", f"{GENERAL}/messages", {"text": "  "}, "A message needs a text or a file."),
            ("POST", f"{GENERAL}/messages", {"text": "x" * 2001}, "content: Must be 2000 or fewer in length."),
            ("POST", f"{GENERAL}/messages", ["no"], "Only dictionaries may be used in a ModelType"),
            ("PATCH", place, {"text": "yours"}, "Cannot edit a message authored by another user"),
            ("PUT", f"{place}/reactions/smile", None, "Unknown Emoji"),
            ("GET", "/channels/nowhere/messages", None, "Unknown Channel"),
            ("POST", "/people", {"name": " "}, "name: Give the new person a name."),
            ("POST", "/direct", {"with": "1"}, "Unknown User"),
        ]:
            assert await ana.refused(method, path, body) == why
        async with ana.session.get("/sim/world", params={"as": "Ada"}) as response:
            assert response.status == 404  # a bot is nobody's to play


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),  # another port of this machine
        ({"Origin": "https://example.org"}, 403),
        ({"Host": "example.org:80"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
async def test_only_the_page_itself_and_programs_may_ask(
    sim: DiscordFixture, headers: dict[str, str], status: int
) -> None:
    sent = {"Content-Type": "application/json", **headers}
    async with aiohttp.ClientSession(sim.discord.url) as session:
        answer = await session.post(f"/sim{GENERAL}/messages", data='{"text": "hello"}', headers=sent)
    assert answer.status == status
    assert sim.general.texts == (["hello"] if status == 200 else [])


async def test_a_link_from_elsewhere_may_open_the_page_but_not_read_from_it(sim: DiscordFixture) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    async with aiohttp.ClientSession(sim.discord.url, headers=headers) as session:
        assert [(await session.get(path)).status for path in ("/", "/sim/world", "/sim/events")] == [200, 403, 403]


async def test_the_page_is_served_under_a_strict_policy_and_bots_get_what_discord_sends(sim: DiscordFixture) -> None:
    async with aiohttp.ClientSession(sim.discord.url) as session:
        page = await session.get("/")
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        for file in STATIC.iterdir():
            if file.suffix != ".html":
                assert (await session.get(f"/page/{file.name}")).status == 200
        for path in ("/page/nothing.js", "/page/../site.py", "/page/%2e%2e%2fsite.py", "/page/index.html"):
            assert (await session.get(path)).status == 404
        answer = await session.get("/api/v10/users/@me", headers={"Authorization": f"Bot {sim.ada.token}"})
        assert answer.status == 200 and "Content-Security-Policy" not in answer.headers


async def test_an_open_page_ends_with_the_server() -> None:
    async with aiohttp.ClientSession() as session:
        async with open_discord() as server:
            build_discord_fixture(server)
            page = await session.get(f"{server.url}/sim/events")
        assert (await page.content.read()).startswith(b"event: world\n")


class PageTags(HTMLParser):
    """The tags of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed((STATIC / "index.html").read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_scripts_find_what_they_look_for_in_the_page() -> None:
    ids = {attrs["id"] for _, attrs in PageTags().tags if "id" in attrs}
    text = "".join(path.read_text() for path in STATIC.glob("*.js"))
    wanted = set(re.findall(r'find\("([\w-]+)"\)', text))
    wanted |= {name for names in re.findall(r"= \[(.*)\]\.map\(find\)", text) for name in re.findall(r'"(\w+)"', names)}
    assert len(wanted) > 20
    assert wanted <= ids


def test_no_script_makes_html_out_of_text_and_nothing_comes_from_outside() -> None:
    for path in STATIC.glob("*.js"):
        found = re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text()
        )
        assert found is None, path
    for _, attrs in PageTags().tags:
        assert not [name for name in attrs if name.startswith("on") or name == "style"]
        assert (attrs.get("src") or attrs.get("href") or "/").startswith(("/", "#"))


async def test_the_small_world_has_a_bot_for_each_agent_and_a_room_that_not_everybody_sees() -> None:
    async with open_discord() as server:
        world: SimWorld = server.world
        small = build_small_world(world, ["ada", "zoe"], "Workshop")
        assert small.guild.name == "Workshop"
        assert [each.name for each in small.applications] == ["ada", "zoe"]
        assert all(each.id in small.guild.members for each in small.applications)
        async with aiohttp.ClientSession(server.url) as session:

            async def rooms(name: str) -> list[str]:
                seen = await (await session.get("/sim/world", params={"as": name})).json()
                return [each["name"] for each in seen["guilds"][0]["channels"]]

            everybodys = ["welcome", "general", "help", "Where can I keep my bike?"]
            assert await rooms("Cleo") == everybodys
            assert await rooms("Ana") == await rooms("Ben") == [*everybodys[:3], "staff", everybodys[3]]
