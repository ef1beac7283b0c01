"""A feed is followed on Discord by a tool that a human approves; its items outlive `kill -9`, each posted once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Literal

import pytest
from anyio import to_thread

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.deployment import wait_until_reached
from tests.e2e.discord import DiscordDeployment
from tests.local_server import Exchange, LocalServer, serve

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

POSTS = r"/channels/\d+/messages$"


class Feed:
    """An RSS feed of so many items, the newest first; each calls everybody."""

    def __init__(self) -> None:
        self.titles = ["old"]

    def answer(self, exchange: Exchange) -> None:
        items = "".join(
            f'<item><title>{each} @everyone</title><guid isPermaLink="false">{each}</guid></item>'
            for each in self.titles
        )
        exchange.say(f'<rss version="2.0"><channel><title>News</title>{items}</channel></rss>')


def configure(deployment: DiscordDeployment, server: LocalServer) -> None:
    deployment.configure(
        conduct=[f'owners: ["{deployment.ana.id}"]'],
        rest=f"tools:\n  feeds: {{enabled: true, server: {server.url('')}}}\n",
    )


def let_five_minutes_pass(deployment: DiscordDeployment) -> None:
    """For the feeds, while nothing runs."""
    with closing(sqlite3.connect(deployment.home.folder / "denizen.db")) as connection, connection:
        connection.execute("UPDATE feeds SET polled_at = '2020-01-01 00:00:00.000000'")


def news(deployment: DiscordDeployment) -> Sequence[str]:
    return [text for text in deployment.said() if "everyone" in text]


@pytest.mark.proves("V33")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_followed_by_approval_and_killed_while_it_posts_each_new_item_comes_once(
    deployment: DiscordDeployment, when: Literal["before", "after"]
) -> None:
    feed = Feed()
    with serve({"/feed": feed.answer}) as server:
        configure(deployment, server)
        call = ModelCall("subscribe_feed", {"url": server.url("/feed"), "format": "compact"})
        deployment.script(ModelAnswer(calls=[call]), "Followed.")
        async with deployment.run() as first:
            deployment.ask(deployment.ana, "follow that feed here")
            card = await deployment.find_card()
            assert not server.requests
            await deployment.press(deployment.ana, card, "Approve")
            await deployment.until(lambda: "Followed." in deployment.said())
            await first.kill()
        feed.titles[:0] = ["two", "one"]
        let_five_minutes_pass(deployment)
        held = deployment.discord.faults.hold("POST", POSTS, times=1, when=when)
        async with deployment.run() as second:
            await wait_until_reached(held)
            await second.kill()
        held.release()
        let_five_minutes_pass(deployment)
        async with deployment.run():
            await deployment.until(lambda: len(news(deployment)) == 2)
            await deployment.settle()
        listed = await to_thread.run_sync(lambda: deployment.home.do("feeds", "list"))
        assert f"News  {server.url('/feed')}  discord {deployment.general.id}  compact" in listed.out
        key = listed.out.split()[0]
        assert (await to_thread.run_sync(lambda: deployment.home.do("feeds", "remove", key))).out == "Ended.\n"
    ping = "@\N{ZERO WIDTH SPACE}everyone"
    assert sorted(news(deployment)) == [f"one {ping}", f"two {ping}"]
    assert not any(post.mentioned.everyone for post in deployment.posts())


async def test_the_operator_follows_a_feed_from_the_command_line_and_is_told_what_is_wrong(
    deployment: DiscordDeployment,
) -> None:
    feed = Feed()
    with serve({"/feed": feed.answer, "/page": lambda exchange: exchange.say("<html></html>")}) as server:
        configure(deployment, server)
        async with deployment.run():
            where = ("--channel", str(deployment.general.id), "--format", "compact")

            def add(path: str, *options: str) -> str:
                done = deployment.home.do("feeds", "add", server.url(path), *(options or where))
                return done.out + done.err

            assert "neither RSS nor Atom" in await to_thread.run_sync(lambda: add("/page"))
            assert "answered 404" in await to_thread.run_sync(lambda: add("/none"))
            assert "no channel '1'" in await to_thread.run_sync(lambda: add("/feed", "--channel", "1"))
            assert "News is followed in general" in await to_thread.run_sync(lambda: add("/feed"))
            feed.titles.insert(0, "one")
            let_five_minutes_pass(deployment)
            await deployment.until(lambda: news(deployment))
    assert news(deployment) == ["one @\N{ZERO WIDTH SPACE}everyone"]


async def test_a_feed_of_this_machine_is_refused_unless_the_operator_named_its_server(
    deployment: DiscordDeployment,
) -> None:
    with serve({"/feed": Feed().answer}) as server:
        deployment.configure(rest="tools:\n  feeds: {enabled: true}\n")
        async with deployment.run():
            url = server.url("/feed")
            refused = await to_thread.run_sync(
                lambda: deployment.home.do("feeds", "add", url, "--channel", str(deployment.general.id))
            )
        assert refused.code
        assert "its address is loopback" in refused.err
        assert not server.requests
