"""Rate limits are waited out, and what goes wrong on the way to Discord goes wrong where the test says."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import anyio
import discord
import pytest

from denizen.testing.discord import DiscordPermission
from denizen.testing.discord.fixtures import DiscordFixture
from denizen.testing.discord.rest.limits import SimRateLimit
from tests.testing.discord.bots import Bot, running, text_channel

pytestmark = pytest.mark.anyio


class Rest:
    """REST without a library."""

    def __init__(self, sim: DiscordFixture, session: aiohttp.ClientSession) -> None:
        self.base = sim.discord.api_url
        self.messages = f"/channels/{sim.general.id}/messages"
        self.session = session

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any, Any]:
        async with self.session.request(method, self.base + path, json=body) as answer:
            kind = answer.headers.get("Content-Type")
            return answer.status, (await answer.json() if kind == "application/json" else None), answer.headers


@pytest.fixture
async def rest(sim: DiscordFixture) -> AsyncGenerator[Rest, None]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {sim.ada.token}"}) as session:
        yield Rest(sim, session)


async def test_a_429_is_waited_out_and_the_message_sent_once(sim: DiscordFixture) -> None:
    sim.discord.limits.strike(2, method="POST", route="/messages")
    async with running(sim.discord, sim.ada, Bot) as bot:
        await text_channel(bot, sim.general).send("patience")
        sim.discord.limits.strike(everywhere=True)
        await text_channel(bot, sim.general).send("more patience")
    assert sim.general.texts == ["patience", "more patience"]
    statuses = [each.status for each in sim.discord.requests_to("POST", "/channels/{channel_id}/messages")]
    assert statuses == [429, 429, 200, 429, 200]


async def test_buckets_are_kept_for_each_route_and_channel(sim: DiscordFixture, rest: Rest) -> None:
    other = sim.guild.add_channel("other")
    limits = sim.discord.limits
    limits.set("POST", r"/channels/\{channel_id\}/messages$", SimRateLimit(2, 60))
    answers = [await rest.ask("POST", rest.messages, {"content": str(number)}) for number in range(3)]
    assert [status for status, _, _ in answers] == [200, 200, 429]
    _, body, headers = answers[2]
    assert 59 < body["retry_after"] <= 60 and body["global"] is False
    assert headers["Via"] and headers["X-RateLimit-Scope"] == "user"
    assert [each[2]["X-RateLimit-Remaining"] for each in answers] == ["1", "0", "0"]
    assert len({each[2]["X-RateLimit-Bucket"] for each in answers}) == 1
    assert (await rest.ask("POST", f"/channels/{other.id}/messages", {"content": "free"}))[0] == 200
    assert (await rest.ask("GET", rest.messages))[0] == 200
    limits.everywhere = SimRateLimit(1, 60)
    assert (await rest.ask("GET", "/users/@me"))[0] == 200
    status, body, headers = await rest.ask("GET", "/users/@me")
    assert (status, body["global"], headers["X-RateLimit-Global"]) == (429, True, "true")


async def test_a_failure_before_or_after_leaves_nothing_or_the_message(sim: DiscordFixture, rest: Rest) -> None:
    faults = sim.discord.faults
    faults.fail("POST", "/messages", status=503)
    assert (await rest.ask("POST", rest.messages, {"content": "lost"}))[0] == 503
    assert not sim.general.messages
    faults.fail("POST", "/messages", status=500, when="after")
    assert (await rest.ask("POST", rest.messages, {"content": "kept"}))[0] == 500
    faults.drop("POST", r"/channels/\{channel_id\}/messages", when="before")
    with pytest.raises(aiohttp.ClientError):
        await rest.ask("POST", rest.messages, {"content": "dropped"})
    faults.drop("POST", "/messages", when="after")
    with pytest.raises(aiohttp.ClientError):
        await rest.ask("POST", rest.messages, {"content": "also kept"})
    assert sim.general.texts == ["kept", "also kept"]
    applied = [each.applied for each in sim.discord.requests_to("POST", "/messages")]
    assert applied == [False, True, False, True]
    assert (await rest.ask("POST", rest.messages, {"content": "fine"}))[0] == 200


async def test_a_send_whose_answer_was_lost_is_repeated_safely_with_its_nonce(sim: DiscordFixture, rest: Rest) -> None:
    sim.discord.faults.drop("POST", "/messages", when="after")
    body = {"content": "exactly once", "nonce": "1", "enforce_nonce": True}
    with pytest.raises(aiohttp.ClientError):
        await rest.ask("POST", rest.messages, body)
    status, answer, _ = await rest.ask("POST", rest.messages, body)
    assert (status, answer["id"]) == (200, str(sim.general.messages[0].id))
    assert sim.general.texts == ["exactly once"]


async def test_a_request_is_held_until_it_is_let_go(sim: DiscordFixture, rest: Rest) -> None:
    held = sim.discord.faults.hold("POST", "/messages", when="after")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rest.ask, "POST", rest.messages, {"content": "held"})
        await held.wait_reached()
        assert sim.general.texts == ["held"]
        assert sim.discord.requests[-1].status == 0
        held.release()
    assert sim.discord.requests[-1].status == 200


async def test_answers_are_json_and_nothing_but_json(rest: Rest) -> None:
    for path in ("/users/@me", "/nothing"):
        _, _, headers = await rest.ask("GET", path)
        assert headers["Content-Type"] == "application/json"


async def test_a_bad_body_is_told_where_it_is_bad(sim: DiscordFixture, rest: Rest) -> None:
    body = {
        "content": "x" * 2001,
        "nonce": "y" * 26,
        "embeds": [{"title": "t" * 257, "fields": [{"name": "", "value": "v"}]}],
        "allowed_mentions": {"parse": ["users"], "users": ["1"]},
    }
    status, answer, _ = await rest.ask("POST", rest.messages, body)
    assert (status, answer["code"]) == (400, 50035)
    assert answer["errors"]["content"]["_errors"][0]["code"] == "BASE_TYPE_MAX_LENGTH"
    assert set(answer["errors"]) == {"content", "nonce", "allowed_mentions"}
    del body["content"], body["nonce"], body["allowed_mentions"]
    _, answer, _ = await rest.ask("POST", rest.messages, body)
    assert answer["errors"]["embeds"]["0"]["title"] and answer["errors"]["embeds"]["0"]["fields"]["0"]["name"]
    for wrong in ([], "text", {"content": 3}, {"components": "x"}):
        status, answer, _ = await rest.ask("POST", rest.messages, wrong)
        assert (status, answer["code"]) == (400, 50035), wrong
    assert not sim.general.messages


@pytest.mark.parametrize(
    ("field", "url", "code"),
    [
        ("url", "tide.example", "URL_TYPE_INVALID_SCHEME"),
        ("url", "", "URL_TYPE_INVALID_SCHEME"),
        ("url", "attachment://tide.png", "URL_TYPE_INVALID_SCHEME"),
        ("url", "https://", "URL_TYPE_INVALID_URL"),
        ("image.url", "ftp://tide.example/1.png", "URL_TYPE_INVALID_SCHEME"),
        ("thumbnail.url", "file:///etc/passwd", "URL_TYPE_INVALID_SCHEME"),
        ("author.url", "javascript:alert(1)", "URL_TYPE_INVALID_SCHEME"),
        ("author.icon_url", "data:image/png;base64,AA", "URL_TYPE_INVALID_SCHEME"),
        ("footer.icon_url", "http://", "URL_TYPE_INVALID_URL"),
    ],
)
async def test_an_address_in_an_embed_has_a_scheme_of_the_web(
    sim: DiscordFixture, rest: Rest, field: str, url: str, code: str
) -> None:
    first, _, second = field.partition(".")
    embed = {"title": "Tide", first: {"name": "Ana", "text": "x", second: url} if second else url}
    status, answer, _ = await rest.ask("POST", rest.messages, {"embeds": [embed]})
    assert (status, answer["code"]) == (400, 50035)
    found = answer["errors"]["embeds"]["0"][first]
    assert (found[second] if second else found)["_errors"][0]["code"] == code
    assert not sim.general.messages


async def test_a_button_opens_an_address_of_the_web_or_of_discord(sim: DiscordFixture, rest: Rest) -> None:
    def make(url: str) -> dict[str, object]:
        button = {"type": 2, "style": 5, "label": "Open", "url": url}
        return {"content": "x", "components": [{"type": 1, "components": [button]}]}

    status, answer, _ = await rest.ask("POST", rest.messages, make("steam://run"))
    assert (status, answer["code"]) == (400, 50035)
    for url in ("https://tide.example/", "discord://-/channels/1/2"):
        assert (await rest.ask("POST", rest.messages, make(url)))[0] == 200


async def test_a_known_path_with_another_method_is_not_allowed_and_an_unknown_one_not_found(rest: Rest) -> None:
    status, answer, _ = await rest.ask("PUT", "/users/@me")
    assert (status, answer) == (405, {"message": "405: Method Not Allowed", "code": 0})
    assert (await rest.ask("GET", f"{rest.messages}/bulk-delete"))[0] == 405
    assert (await rest.ask("PUT", "/nothing"))[0] == 404
    assert (await rest.ask("GET", "/users/everybody"))[0] == 404


@pytest.mark.parametrize("limit", ["0", "101", "many"])
async def test_a_page_has_one_to_a_hundred_messages(rest: Rest, limit: str) -> None:
    assert (await rest.ask("GET", f"{rest.messages}?limit={limit}"))[0] == 400


async def test_many_messages_are_deleted_at_once_within_bounds(sim: DiscordFixture, rest: Rest) -> None:
    said = [sim.world.say(sim.ana, sim.general, str(number)) for number in range(4)]
    ids = [str(each.id) for each in said]
    delete = f"{rest.messages}/bulk-delete"
    assert (await rest.ask("POST", delete, {"messages": ids}))[1]["code"] == 50013
    sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("mod", permissions=DiscordPermission.MANAGE_MESSAGES)])
    assert (await rest.ask("POST", delete, {"messages": ids[:1]}))[1]["code"] == 50016
    assert (await rest.ask("POST", delete, {"messages": ["1", "2"]}))[1]["code"] == 50034
    assert (await rest.ask("POST", delete, {"messages": ids[:3]}))[0] == 204
    assert sim.general.texts == ["3"]


async def test_a_server_error_is_tried_again_by_the_client(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, Bot) as bot:
        sim.discord.faults.fail("GET", "/users/", status=503)
        with pytest.raises(discord.DiscordServerError):
            await bot.fetch_user(sim.ana.id)
        assert (await bot.fetch_user(sim.ana.id)).id == sim.ana.id
