"""The skills for messages and menus on Discord, called as a model calls them, on a simulated Discord."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from denizen.builtin_skills import load_builtin
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Effect, ToolResult, ToolSpec
from denizen.engine.accounts.connected_accounts import ConnectedAccounts, PlatformActionRunner
from denizen.skill import ScopedServices, SkillToolset
from denizen.testing.discord import DiscordPermission, SimMessage, open_discord
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.memory_channel import enter_at_once
from tests.skill_fixture import ServicesFixture, run, scope
from tests.testing.discord.schema import Schema, find_schema

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-discord", "V-skill-components")]


class DiscordFixture:
    """The tools of both skills, as Ana uses them in #general; the account may do all of it. What was asked of Discord
    fits its published schema, where that is here.
    """

    def __init__(self, sim: AccountFixture, toolsets: dict[str, SkillToolset]) -> None:
        self.sim = sim
        self._toolsets = toolsets

    async def call(self, tool: str, /, **args: Json) -> ToolResult:
        ana = self.sim.ana
        where = replace(
            scope(key=f"{tool} {args}"),
            principal=Principal(PrincipalKind.PLATFORM_USER, f"discord:{ana.id}", "Ana"),
            place=Place("discord", str(self.sim.general.id)),
            account=AgentName("ada"),
        )
        return await run(self._toolsets[tool], tool, args, where)

    async def do(self, tool: str, /, **args: Json) -> str:
        result = await self.call(tool, **args)
        assert not result.is_error, result.text
        return result.text

    def last(self) -> SimMessage:
        return self.sim.mine()[-1]


@asynccontextmanager
async def fixture(folder: Path) -> AsyncGenerator[DiscordFixture]:
    async with open_discord() as discord:
        sim = AccountFixture(discord)
        powers = DiscordPermission.ADMINISTRATOR
        sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("all", permissions=powers)])
        sim.guild.add_channel("news", kind="announcement")
        sim.guild.add_channel("help", kind="forum", tags=["bug"])
        sim.guild.add_role("red")
        async with running(sim) as (account, _):
            channels = ConnectedAccounts()
            channels.add(account)
            services = replace(
                ServicesFixture(folder).services(),
                scoped=ScopedServices(open_platform=PlatformActionRunner(channels, enter_at_once).open),
            )
            toolsets = [SkillToolset(load_builtin(name), services) for name in ("discord", "components")]
            yield DiscordFixture(sim, {spec.name: each for each in toolsets for spec in await each.list_tools()})
        path = find_schema()
        faults = [fault for request in discord.requests for fault in Schema(path).faults(request)] if path else []
        assert not faults, "\n".join(faults[:10])


async def test_messages_are_sent_changed_pinned_and_deleted(tmp_path: Path) -> None:
    async with fixture(tmp_path) as ana:
        sim = ana.sim
        told = await ana.do("send_message", text="hello @Ben", embed={"title": "Ferry", "fields": {"Pier": "3"}})
        sent = ana.last()
        assert f"/{sent.id}" in told
        assert sent.mentioned.users == [sim.ben]
        assert sent.body.embeds[0]["fields"][0]["value"] == "3"
        await ana.do("edit_message", message=str(sent.id), text="bye")
        await ana.do("pin_message", message=str(sent.id))
        assert (sent.content, sent.pinned) == ("bye", True)
        await ana.do("pin_message", message=str(sent.id), unpin=True)
        assert not sent.pinned
        await ana.do("delete_own_message", message=str(sent.id))
        said = sim.world.say(sim.ben, sim.general, "spam")
        await ana.do("delete_message", message=str(said.id))
        assert sent.state.deleted
        assert said.state.deleted
        news = sim.guild.channel("news")
        notice = sim.world.say(sim.ada.user, news, "we open")
        link = f"https://discord.com/channels/{sim.guild.id}/{news.id}/{notice.id}"
        await ana.do("crosspost_message", message=link)
        assert notice.flags & 1


async def test_reactions_and_polls_are_made_and_read_as_data(tmp_path: Path) -> None:
    async with fixture(tmp_path) as ana:
        sim = ana.sim
        said = sim.say("pizza?")
        assert await ana.do("read_reactions", message=str(said.id)) == "There are no reactions."
        await ana.do("react", message=str(said.id), emoji="🍕")
        assert "🍕 1\nby Ada" in await ana.do("read_reactions", message=str(said.id), emoji="🍕")
        await ana.do("react", message=str(said.id), emoji="🍕", remove=True)
        assert not said.state.reactions
        await ana.do("create_poll", question="Tea?", answers=["yes", "no"], several=True)
        polled = ana.last()
        assert polled.body.poll is not None
        assert polled.body.poll.multiple
        sim.world.vote(sim.ben, polled, 2)
        stands = await ana.do("read_poll", message=str(polled.id))
        assert stands.startswith("<untrusted")
        assert "Tea?\n- yes: 0\n- no: 1\nIt ends" in stands
        await ana.do("end_poll", message=str(polled.id))
        assert "It has ended." in await ana.do("read_poll", message=str(polled.id))


async def test_threads_and_posts_are_opened_and_changed(tmp_path: Path) -> None:
    async with fixture(tmp_path) as ana:
        sim = ana.sim
        forum = sim.guild.channel("help")
        told = await ana.do("create_thread", name="Lunch", text="Where?")
        (thread,) = sim.guild.threads.values()
        assert f"<#{thread.id}>" in told
        await ana.do("add_to_thread", member="Ben", thread=str(thread.id))
        await ana.do("edit_thread", thread=str(thread.id), name="Dinner", archived=True)
        assert thread.thread is not None
        assert (thread.name, thread.thread.archived) == ("Dinner", True)
        assert sim.ben.id in thread.thread.members
        await ana.do("create_forum_post", channel="help", title="It leaks", text="There", tags=["bug"])
        assert [each.name for each in sim.guild.threads.values() if each.parent is forum] == ["It leaks"]


async def test_choices_and_role_menus_are_posted(tmp_path: Path) -> None:
    async with fixture(tmp_path) as ana:
        await ana.do("post_choices", text="Which?", choices=[{"label": "Red", "emoji": "🔴"}, {"label": "Blue"}])
        assert [each["label"] for each in ana.last().body.components[0]["components"]] == ["Red", "Blue"]
        rows: list[Json] = [{"label": "Red", "emoji": "🔴", "description": "like a sunset"}, {"label": "Blue"}]
        await ana.do("post_choices", text="Which?", choices=rows, style="menu", several=True)
        options = ana.last().body.components[0]["components"][0]["options"]
        assert (options[0]["value"], options[0]["description"]) == ("Red", "like a sunset")
        assert options[0]["emoji"] == {"name": "🔴"}
        await ana.do("post_role_menu", text="Pick", roles=["red"], style="menu", only_one=True)
        menu = ana.last().body.components[0]["components"][0]
        assert (menu["custom_id"], menu["min_values"], menu["max_values"]) == ("roles", 0, 1)


async def test_a_refusal_is_an_error_that_says_why(tmp_path: Path) -> None:
    async with fixture(tmp_path) as ana:
        result = await ana.call("send_message", text="hi", channel="nowhere")
        assert result.is_error
        assert "no channel 'nowhere'" in result.text


async def test_off_platforms_nothing_can_be_done(tmp_path: Path) -> None:
    toolset = SkillToolset(load_builtin("discord"), ServicesFixture(tmp_path).services())
    result = await run(toolset, "send_message", {"text": "hi"})
    assert result.is_error
    assert "on Discord only" in result.text


def test_what_shows_words_elsewhere_is_a_send_and_says_where_to() -> None:
    specs: list[ToolSpec] = [spec for name in ("discord", "components") for spec in load_builtin(name).specs()]
    sends = {spec.name: spec.flow.destinations for spec in specs if Effect.SEND in spec.flow.effects}
    assert {name for name, to in sends.items() if not to} == {"crosspost_message"}
    quiet = {spec.name for spec in specs} - set(sends)
    assert quiet == {"delete_own_message", "delete_message", "pin_message", "read_reactions", "end_poll", "read_poll"}
    assert [spec.name for spec in specs if spec.destructive] == ["delete_message"]
