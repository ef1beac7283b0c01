"""Events that reach a `denizen run`: webhooks that agents answer, and what happens on Discord."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
from functools import partial
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from anyio import to_thread

from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment
from tests.e2e.home import Server, ServerResponse, receive
from tests.local_server import serve
from tests.socket_server import serve_socket
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

SECRET = "the-secret-of-the-route"
PUSH = {"ref": "refs/heads/main", "repository": {"full_name": "club/site"}, "pusher": {"name": "ana"}}
ROUTE = """\
webhooks:
  enabled: true
  routes:
    deploys:
      scheme: github
      secret: ${HOOK_SECRET}
      message: "{{pusher.name}} pushed to {{repository.full_name}}. Tell what that means."
"""
DELIVERIES = "SELECT status FROM event_deliveries ORDER BY position"


def hook(server: Server, route: str, payload: object, *, secret: str = SECRET, delivery: str = "d1") -> ServerResponse:
    """Sends a webhook as GitHub does."""
    body = json.dumps(payload)
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=HANG_LIMIT_S)
    headers = {
        "X-Hub-Signature-256": f"sha256={hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()}",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": delivery,
    }
    connection.request("POST", f"/api/hooks/{route}", body, headers)
    return receive(connection)


def configure(deployment: DiscordDeployment, rest: str) -> None:
    deployment.configure(rest=rest)
    deployment.write_tokens({"ada": deployment.ada.token}, {"HOOK_SECRET": SECRET})


async def test_a_webhook_is_answered_by_an_agent_in_the_session_of_its_route(deployment: DiscordDeployment) -> None:
    configure(deployment, ROUTE)
    deployment.script("The site is deployed.")
    async with deployment.run() as denizen:
        send = partial(hook, denizen.server, "deploys", PUSH)
        first = await to_thread.run_sync(send)
        assert (first.status, first.body["status"]) == (202, "taken")
        again = await to_thread.run_sync(partial(send, delivery="replayed"))
        assert (again.status, again.body) == (200, {"status": "known", "event": first.body["event"]})
        await deployment.until(lambda: deployment.rows("SELECT 1 FROM turns WHERE status = 'done'"))
    assert len(deployment.requests) == 1
    assert "ana pushed to club/site. Tell what that means." in str(deployment.requests[0])
    assert deployment.rows("SELECT type, subject, depth FROM events") == [("github.push", "club/site", 0)]
    places = deployment.rows("SELECT platform, thread FROM conversations WHERE platform != 'discord'")
    assert places == [("webhook", "webhook:deploys")]
    assert deployment.rows("SELECT principal_kind, principal_id FROM turns") == [("webhook", "deploys")]


async def test_a_webhook_whose_answer_was_killed_is_answered_once(deployment: DiscordDeployment) -> None:
    where = deployment.general.id
    configure(deployment, f'{ROUTE}      channel: "{where}"\n')
    deployment.script(HangingAnswer())
    async with deployment.run() as denizen:
        await to_thread.run_sync(partial(hook, denizen.server, "deploys", PUSH))
        await deployment.until(lambda: deployment.requests)
        await denizen.kill()
    deployment.script("The site is deployed.")
    async with deployment.run() as denizen:
        again = await to_thread.run_sync(partial(hook, denizen.server, "deploys", PUSH))
        assert again.body["status"] == "known"
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["The site is deployed."]
    assert len(deployment.rows(DELIVERIES)) == 1


WELCOME = """\
listeners:
  welcome:
    on: discord.member.join
    action: post
    message: "Welcome to {{{{guild.name}}}}, {{{{user.mention}}}} ({{{{user.name}}}})!"
    channel: "{where}"
  role:
    on: [discord.role.change, "discord.member.*"]
    action: log
"""


async def test_whoever_joins_on_discord_is_welcomed_with_a_post_that_calls_them(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=WELCOME.format(where=deployment.general.id))
    async with deployment.run() as denizen:
        cem = deployment.world.add_person("[Cem](https://x.example) @everyone")
        deployment.guild.join(cem)
        await deployment.until(deployment.posts)
        [post] = deployment.posts()
        name = r"\[Cem\](https://x.example) @" + "\u200beveryone"
        assert post.content == f"Welcome to {deployment.guild.name}, <@{cem.id}> ({name})!"
        assert post.mentioned.users == [cem] and not post.mentioned.everyone
        await denizen.kill()
    assert not deployment.requests
    kinds = deployment.rows("SELECT type, status FROM events JOIN event_deliveries ON event = key ORDER BY listener")
    assert kinds == [("discord.member.join", "done"), ("discord.member.join", "done")]


HEAR = """\
listeners:
  hear: {on: "discord.*", action: log}
"""
HEARD = "SELECT type, subject FROM events ORDER BY position"


@pytest.mark.proves("V30-discord")
async def test_messages_reactions_and_changes_on_discord_are_each_an_event(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=HEAR)
    async with deployment.run():
        guild, world = deployment.guild, deployment.world

        async def until(kind: str) -> None:
            await deployment.until(lambda: [each for each in deployment.rows(HEARD) if each[0] == f"discord.{kind}"])

        said = world.say(deployment.ben, deployment.general, "The kettle is on fire")
        await until("message")
        world.react(deployment.ana, said, "🔥")
        await until("reaction")
        cem = world.add_person("Cem")
        guild.join(cem)
        await until("member.join")
        role = guild.add_role("Sailor")
        await until("role.change")
        channel = guild.add_channel("harbour")
        await until("channel.change")
        thread = world.open_thread(deployment.ana, deployment.general, "Moorings")
        await until("thread.change")
        guild.leave(cem)
        await until("member.leave")
    assert [each for each in deployment.rows(HEARD) if each[0] != "discord.message"] == [
        ("discord.reaction", str(said.id)),
        ("discord.member.join", str(cem.id)),
        ("discord.role.change", str(role.id)),
        ("discord.channel.change", str(channel.id)),
        ("discord.thread.change", str(thread.id)),
        ("discord.member.leave", str(cem.id)),
    ]


SOURCES = """\
events:
  websockets:
    market:
      url: ws://127.0.0.1:{socket}/stream
      headers: {{Authorization: "Bearer ${{HOOK_SECRET}}"}}
      messages: ['{{"op": "subscribe"}}']
      id: trade
      private: true
  polls:
    tickets: {{url: "{poll}", items: list, id: id, type: state, first: all, private: true}}
listeners:
  trades: {{on: websocket.market, action: post, message: "Sold for {{{{price}}}}.", channel: "{where}"}}
  tickets: {{on: "poll.tickets.*", action: post, message: "Ticket {{{{title}}}}.", channel: "{where}"}}
  connected: {{on: source.connected, action: log}}
  site: {{on: "denizen.emitted.site.*", action: post, message: "{{{{host}}}} is down.", channel: "{where}"}}
"""


@pytest.mark.proves("V30-feeds")
async def test_websockets_polled_resources_and_emitted_events_are_sources_of_events(
    deployment: DiscordDeployment,
) -> None:
    heard = list[str]()

    async def talk(opened: web.WebSocketResponse, request: web.Request) -> None:
        heard.extend([request.headers["Authorization"], await opened.receive_str()])
        for _ in range(2):  # the second one has the id of the first
            await opened.send_str('{"trade": 1, "price": 3}')
        await opened.receive()

    items = '{"list": [{"id": 7, "state": "open", "title": "@everyone the door is stuck"}]}'
    where = deployment.general.id
    with serve({"/tickets": lambda exchange: exchange.say(items, kind="application/json")}) as polled:
        async with serve_socket(talk) as port:
            rest = SOURCES.format(socket=port, poll=polled.url("/tickets"), where=where)
            configure(deployment, rest)
            async with deployment.run():
                await to_thread.run_sync(
                    partial(deployment.home.do, "events", "emit", "site.down", "--data", '{"host": "db1"}')
                )
                await deployment.until(lambda: len(deployment.said()) == 3)
                sources = await to_thread.run_sync(partial(deployment.home.do, "events", "sources"))
    assert set(deployment.said()) == {"Sold for 3.", "Ticket @\u200beveryone the door is stuck.", "db1 is down."}
    assert heard == [f"Bearer {SECRET}", '{"op": "subscribe"}']
    assert set(deployment.rows("SELECT type, source FROM events")) == {
        ("source.connected", "/websockets/market"),
        ("websocket.market", "/websockets/market"),
        ("poll.tickets.open", "/polls/tickets"),
        ("denizen.emitted.site.down", "/denizen"),
    }
    assert "websocket:market  working" in sources.out and "poll:tickets  working" in sources.out


async def test_an_owner_has_a_source_and_a_listener_added_after_approving_each(deployment: DiscordDeployment) -> None:
    items = '[{"id": 7, "title": "the door is stuck"}]'
    where = deployment.general.id
    with serve({"/tickets": lambda exchange: exchange.say(items, kind="application/json")}) as polled:
        owners = f'owners: ["{deployment.ana.id}"]'
        rest = f"""\
events:
  polls:
    # Ours.
    tickets: {{url: "{polled.url("/tickets")}", first: all, private: true, enabled: false}}
tools:
  event_system: {{enabled: true}}
"""
        deployment.configure(conduct=[owners], rest=rest)
        listener = {"name": "tickets", "on": ["poll.tickets"], "action": "post", "message": "Ticket: {{title}}"}
        deployment.script(
            ModelAnswer(calls=[ModelCall("set_listener", {**listener, "channel": str(where)})]),
            ModelAnswer(calls=[ModelCall("switch_event_entry", {"kind": "poll", "name": "tickets", "enabled": True})]),
            "They are posted here from now on.",
        )
        async with deployment.run():
            deployment.ask(deployment.ana, "Post new tickets here")
            for tool in ("set_listener", "switch_event_entry"):
                await deployment.until(lambda tool=tool: any(tool in text for text in deployment.said()))
                card = next(post for post in deployment.posts() if tool in post.content)
                await deployment.press(deployment.ana, card, "Approve")
            await deployment.until(lambda: "Ticket: the door is stuck" in deployment.said())
    text = (deployment.home.folder / "denizen.yaml").read_text()
    assert "# Ours." in text and "enabled: false" not in text and "Ticket: {{title}}" in text


async def test_what_a_command_emits_reaches_the_server_that_runs(deployment: DiscordDeployment) -> None:
    where = deployment.general.id
    post = f"""\
listeners:
  site: {{on: "denizen.emitted.site.*", action: post, message: "{{{{host}}}} is down.", channel: "{where}"}}
"""
    deployment.configure(rest=post)
    async with deployment.run():
        await deployment.settle()
        emitted = await to_thread.run_sync(
            partial(deployment.home.do, "events", "emit", "site.down", "--data", '{"host": "db1"}')
        )
        assert "for 1 listener" in emitted.out
        await deployment.until(lambda: "db1 is down." in deployment.said())
    listed = await to_thread.run_sync(partial(deployment.home.do, "events", "list"))
    assert "denizen.emitted.site.down  /denizen" in listed.out and "listener:site  done" in listed.out
    shown = await to_thread.run_sync(partial(deployment.home.do, "listeners", "list"))
    assert f"listener:site  on denizen.emitted.site.*  post ada in {where}" in shown.out
    failed = await to_thread.run_sync(partial(deployment.home.do, "events", "failed"))
    assert failed.out.strip() == "No delivery has failed."
