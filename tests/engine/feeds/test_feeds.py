"""Feeds: followed by a tool, read by the poller, and posted by the account, each item once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest

from denizen.builtin_skills.feeds import skill
from denizen.domain.agent import Agent
from denizen.domain.attention import AccountPolicy
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.domain.feed import MAX_FEEDS, MAX_POSTS, FeedDocument, FeedItem, FeedVersion
from denizen.domain.ids import CallId, SessionId, TurnId
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Effect, Taint, Tier, ToolCall, ToolResult
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.events.signal import Signal
from denizen.engine.feeds.access import ScopedFeeds
from denizen.engine.feeds.catalog import FeedCatalog
from denizen.engine.feeds.poller import LOOK_EVERY_S, FeedPoller
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.ports.feeds import FeedReading
from denizen.ports.toolset import CallScope
from denizen.skill import ScopedServices, SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels
from tests.engine.platform_fixture import ADA, World
from tests.memory_channel import MemoryChannel
from tests.skill_fixture import ServicesFixture
from tests.timing import poll

pytestmark = pytest.mark.anyio

URL = "https://example.org/feed"
MINUTE = timedelta(minutes=1)


@dataclass
class FeedServer:
    """Feeds in memory, of which the newest item stands on top. A version that is known is not sent again."""

    items: list[str] = field(default_factory=lambda: ["old"])
    text: str = ""
    is_down: bool = False
    asked: list[FeedVersion] = field(default_factory=list[FeedVersion])

    async def read(self, url: str, known: FeedVersion) -> FeedReading:
        del url
        self.asked.append(known)
        if self.is_down:
            raise Unavailable("The server of the feed answered 500.", code="feed_status")
        version = FeedVersion(etag=str(len(self.items)))
        if known == version:
            return FeedReading(None, known)
        items = tuple(
            FeedItem(key=each, title=each, url=f"https://example.org/{each}", text=self.text) for each in self.items
        )
        return FeedReading(FeedDocument("News", items), version)

    def publish(self, *names: str) -> None:
        for name in names:
            self.items.insert(0, name)


@dataclass
class FeedsFixture:
    """One process with the account of Ada."""

    world: World
    server: FeedServer
    catalog: FeedCatalog
    poller: FeedPoller
    outbox: DeliveryOutbox
    channels: ConnectedAccounts
    account: MemoryChannel
    root: Path

    def scope(self, place: Place | None = None, *, who: str = "ana", guild: str = "1") -> CallScope:
        asker = Principal(PrincipalKind.PLATFORM_USER, f"discord:{who}", who.title())
        return CallScope(
            agent=ADA,
            principal=asker,
            place=place or self.world.general.place,
            session_id=SessionId("s"),
            turn_id=TurnId("t"),
            guild=guild,
            account=ADA,
        )

    async def call(self, tool: str, scope: CallScope | None = None, **args: Json) -> ToolResult:
        opened = ScopedServices(open_feeds=partial(ScopedFeeds, self.catalog, self.channels))
        toolset = SkillToolset(skill, replace(ServicesFixture(self.root).services(), scoped=opened), {})
        return await toolset.call(ToolCall(CallId("c"), tool, args), scope or self.scope())

    async def follow(self, url: str = URL, **args: Json) -> str:
        """Returns the id."""
        result = await self.call("subscribe_feed", None, url=url, **args)
        assert not result.is_error, result.text
        return (await self.catalog.list_subscriptions())[-1].id

    async def pass_time(self, time: timedelta = 5 * MINUTE) -> Sequence[str]:
        """Returns the first lines of all that the account has posted by then."""
        self.world.clock.time += time
        await self.poller.poll_due()
        await poll(self.owes_nothing)
        return [sent.content.text.splitlines()[0] for sent in self.account.sent]

    async def owes_nothing(self) -> bool:
        async with self.world.store.work(write=False) as work:
            return not await work.outbox.list_due(ADA, self.account.platform)


@asynccontextmanager
async def open_fixture(
    root: Path, world: World | None = None, server: FeedServer | None = None, *, connected: bool = True
) -> AsyncGenerator[FeedsFixture]:
    world, server, runtime, channels = world or World(), server or FeedServer(), Runtime(), ConnectedAccounts()
    await runtime.swap(
        Generation(
            number=1,
            agents={ADA: Agent(ADA)},
            default_agent=ADA,
            models=ScriptedModels(ScriptedModel()),
            toolsets=(),
            account_policies={("discord", ADA): AccountPolicy()},
        )
    )
    async with world.store.work() as work:
        for room in world.platform.rooms.values():
            await work.archive.put_room(room)
    outbox = DeliveryOutbox(runtime, world.store, world.clock, channels)
    account, changed = MemoryChannel(world.platform, ADA), Signal(channels.added)
    async with anyio.create_task_group() as group:
        if connected:
            channels.add(account)
            group.start_soon(outbox.run, account)
        yield FeedsFixture(
            world,
            server,
            FeedCatalog(world.store, world.clock, server, changed),
            FeedPoller(
                store=world.store, clock=world.clock, reader=server, channels=channels, outbox=outbox, changed=changed
            ),
            outbox,
            channels,
            account,
            root,
        )
        group.cancel_scope.cancel()


@pytest.mark.proves("V33", "V-skill-integrations")
async def test_a_feed_is_followed_listed_and_dropped_by_tools_and_posts_only_what_is_new(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as kit:
        key = await kit.follow(format="compact")
        assert await kit.pass_time() == []
        kit.server.publish("first", "second")
        assert await kit.pass_time() == ["first", "second"]
        assert [sent.place for sent in kit.account.sent] == [kit.world.general.place] * 2
        listed = (await kit.call("list_feeds")).text
        assert key in listed
        assert f"News ({URL}) in <#{kit.world.general.id}> as compact" in listed
        assert not (await kit.call("unsubscribe_feed", feed=key)).is_error
        assert (await kit.call("list_feeds")).text == "No feed is followed here."
        kit.server.publish("third")
        assert await kit.pass_time() == ["first", "second"]
        kit.server.publish("fourth")
        await kit.follow()  # anew: what is there now is old
        assert await kit.pass_time() == ["first", "second"]


@pytest.mark.proves("V33")
async def test_items_appear_in_the_format_that_was_asked_for_and_none_is_longer_than_2000_characters(
    tmp_path: Path,
) -> None:
    for shape in ("embed", "compact", "full"):
        async with open_fixture(tmp_path) as kit:
            kit.server.text = "word " * 1000
            await kit.follow(format=shape)
            kit.server.publish("news")
            await kit.pass_time()
            [content] = [sent.content for sent in kit.account.sent]
            shown = content.text + "".join(card.title + card.text for card in content.embeds)
            assert "news" in shown
            assert len(shown) <= 2000
            assert [card.url for card in content.embeds] == ["https://example.org/news"] * (shape == "embed")
            assert ("<https://example.org/news>" in content.text) == (shape != "embed")
            assert (len(shown) > 1900, "word" in shown) == (shape == "full", shape != "compact")


@pytest.mark.proves("V33")
async def test_a_feed_is_never_read_sooner_than_five_minutes_after_it_was_read_for_anybody(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as kit:
        other = kit.world.platform.add_room("other")
        async with kit.world.store.work() as work:
            await work.archive.put_room(other)
        await kit.follow()
        kit.world.clock.time += 4 * MINUTE
        await kit.follow(channel=other.id)
        await kit.pass_time(4 * MINUTE)
        assert len(kit.server.asked) == 2
        kit.server.publish("news")
        await kit.pass_time(MINUTE)
        assert len(kit.server.asked) == 3
        assert sorted(sent.place.channel for sent in kit.account.sent) == sorted([kit.world.general.id, other.id])
        await kit.pass_time(4 * MINUTE)
        assert len(kit.server.asked) == 3


async def test_what_two_processes_read_and_a_later_one_reads_again_is_posted_once(tmp_path: Path) -> None:
    world, server = World(), FeedServer()
    async with (
        open_fixture(tmp_path, world, server) as kit,
        open_fixture(tmp_path, world, server, connected=False) as two,
    ):
        two.channels.add(kit.account)
        await kit.follow(format="compact")
        server.publish("news")
        world.clock.time += 5 * MINUTE
        async with anyio.create_task_group() as group:
            group.start_soon(kit.poller.poll_due)
            group.start_soon(two.poller.poll_due)
        kit.outbox.wake(kit.account.platform, ADA)  # the other process may owe it, and cannot tell this one
        assert await kit.pass_time() == ["news"]
        server.items.remove("news")
        await kit.pass_time()
        server.publish("news")  # it is listed once more
        assert await kit.pass_time() == ["news"]


async def test_many_new_items_come_some_at_a_time_and_all_of_them(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(MAX_POSTS + 3)]
    async with open_fixture(tmp_path) as kit:
        await kit.follow(format="compact")
        kit.server.publish(*names)
        assert await kit.pass_time() == names[:MAX_POSTS]
        assert await kit.pass_time() == names
        assert kit.server.asked[-1] == FeedVersion()
        await kit.pass_time()
        assert kit.server.asked[-1] == FeedVersion(etag=str(len(names) + 1))


async def test_a_feed_that_fails_says_why_is_asked_less_often_and_recovers(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as kit:
        await kit.follow(format="compact")
        kit.server.is_down = True
        await kit.pass_time()
        await kit.pass_time()  # too soon after a failure
        assert len(kit.server.asked) == 2
        assert "the last try failed: The server of the feed answered 500." in (await kit.call("list_feeds")).text
        kit.server.is_down = False
        kit.server.publish("news")
        assert await kit.pass_time() == ["news"]
        assert "failed" not in (await kit.call("list_feeds")).text


async def test_a_feed_waits_for_its_account(tmp_path: Path) -> None:
    world, server = World(), FeedServer()
    async with open_fixture(tmp_path, world, server) as kit:
        await kit.follow(format="compact")
    server.publish("news")
    async with open_fixture(tmp_path, world, server, connected=False) as kit:
        await kit.pass_time()
        assert len(server.asked) == 1
    async with open_fixture(tmp_path, world, server) as kit:
        assert await kit.pass_time() == ["news"]


async def test_a_feed_that_is_followed_there_already_and_one_too_many_are_refused(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as kit:
        await kit.follow()
        again = await kit.call("subscribe_feed", url=URL)
        assert again.is_error
        assert "followed there already" in again.text
        for number in range(1, MAX_FEEDS):
            await kit.follow(f"{URL}{number}")
        assert f"{MAX_FEEDS} feeds" in (await kit.call("subscribe_feed", url=f"{URL}x")).text


async def test_feeds_are_for_those_who_may_write_in_their_channel(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as kit:
        secret = kit.world.platform.add_room("secret", readers=["ana", "bot-ada"])
        async with kit.world.store.work() as work:
            await work.archive.put_room(secret)
        key = await kit.follow(channel="#secret")
        bob = kit.scope(who="bob")
        assert (await kit.call("list_feeds", bob)).text == "No feed is followed here."
        assert f"No feed '{key}'" in (await kit.call("unsubscribe_feed", bob, feed=key)).text
        refused = await kit.call("subscribe_feed", bob, url=URL, channel="secret")
        assert "both the asker and the account" in refused.text
        assert "no channel" in (await kit.call("subscribe_feed", url=URL, channel="elsewhere")).text
        elsewhere = kit.scope(guild="2")
        assert (await kit.call("list_feeds", elsewhere)).text == "No feed is followed here."
        assert "no channel" in (await kit.call("subscribe_feed", elsewhere, url=URL, channel=secret.id)).text
        kit.world.platform.silent.add(kit.world.general.id)
        assert "both the asker and the account" in (await kit.call("subscribe_feed", url=URL)).text


async def test_in_a_direct_talk_its_own_feeds_are_followed_and_off_platforms_none(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as kit:
        direct = kit.scope(kit.world.direct("bob").place, who="bob", guild="")
        assert not (await kit.call("subscribe_feed", direct, url=URL)).is_error
        assert URL in (await kit.call("list_feeds", direct)).text
        assert (await kit.call("list_feeds")).text == "No feed is followed here."
        refused = await kit.call("subscribe_feed", direct, url=URL, channel="general")
        assert "this talk only" in refused.text
        web = replace(kit.scope(Place("web", "x")), account=None)
        assert "messages on a platform" in (await kit.call("subscribe_feed", web, url=URL)).text


def test_following_asks_a_human_counts_as_sending_later_and_what_feeds_say_is_foreign() -> None:
    tools = {tool.name: tool for tool in skill.tools}
    follow, listing = tools["subscribe_feed"], tools["list_feeds"]
    assert follow.tier is Tier.SENSITIVE
    assert follow.flow.effects == {Effect.SCHEDULE, Effect.SEND}
    assert follow.flow.reads == listing.flow.reads == {Taint.WEB}


async def test_nothing_is_polled_while_no_account_is_connected_that_could_post(tmp_path: Path) -> None:
    async with open_fixture(tmp_path, connected=False) as kit:
        assert await kit.poller.poll_due() is None
        assert kit.server.asked == []
        kit.channels.add(kit.account)
        assert await kit.poller.poll_due() == LOOK_EVERY_S
