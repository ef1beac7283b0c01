"""The skill `event_system` on a home folder: listeners and sources are managed in the file, with its comments."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.event_configuration import HomeEvents
from denizen.app.reload import Reloader
from denizen.builtin_skills.event_system import skill
from denizen.domain.event_source import WebSocketSource
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.toolset import CallScope
from denizen.skill import ScopedServices, SkillToolset
from tests.app.home_folder import LAB, Home, open_home
from tests.skill_fixture import PLACE, ServicesFixture

pytestmark = pytest.mark.anyio

OWNER = Principal(PrincipalKind.PLATFORM_USER, "discord:1", "Olga", frozenset({RoleName.OWNER}))
MEMBER = Principal(PrincipalKind.PLATFORM_USER, "discord:2", "Ann", frozenset({RoleName.MEMBER}))
TEXT = f"""# Ours.
{LAB}
listeners:
  # Keep these.
  kept: {{on: "denizen.emitted.*", action: log}}
events:
  websockets:
    market:
      url: wss://stream.example.org/v1
      headers: {{Authorization: "Bearer ${{MARKET_TOKEN}}"}}
"""


@dataclass
class EventToolsFixture:
    home: Home
    denizen: Denizen

    @property
    def text(self) -> str:
        return self.home.config.read_text(encoding="utf-8")

    async def call(self, tool: str, args: JsonObject, by: Principal = OWNER) -> ToolResult:
        toolset, scope = self._open(by)
        return await toolset.call(ToolCall(CallId("c"), tool, args), scope)

    def _open(self, by: Principal) -> tuple[SkillToolset, CallScope]:
        services = ServicesFixture(self.home.path).services()
        opened = ScopedServices(open_events=self.denizen.generation_deps.skills.events.open)
        scope = CallScope(
            agent=AgentName("denizen"), principal=by, place=PLACE, session_id=SessionId("s"), turn_id=TurnId("t")
        )
        return SkillToolset(skill, replace(services, scoped=opened), {}), scope

    async def preview(self, tool: str, args: JsonObject) -> str:
        toolset, scope = self._open(OWNER)
        return await toolset.preview(ToolCall(CallId("c"), tool, args), scope)

    async def do(self, tool: str, **args: Json) -> str:
        result = await self.call(tool, args)
        assert not result.is_error, result.text
        return result.text


@asynccontextmanager
async def open_tools(home: Home) -> AsyncGenerator[EventToolsFixture]:
    home.add_file("secrets.env", "MARKET_TOKEN=the-token-of-the-market\n", mode=0o600)
    async with open_home(home, TEXT) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        denizen.generation_deps.skills.events.open_configuration(HomeEvents(files))
        yield EventToolsFixture(home, denizen)


@pytest.mark.proves("V-skill-event-system")
async def test_listeners_websockets_and_polls_are_managed_events_emitted_and_the_log_read_by_tools(home: Home) -> None:
    async with open_tools(home) as kit:
        events = kit.denizen.runtime
        said = await kit.do("set_poll", name="tickets", url="https://api.example.org/t", items="list", id="id")
        assert "+    tickets:" in said and "https://api.example.org/t" in said
        assert events.current.events.polls["tickets"].mapping.id == "id"
        await kit.do(
            "set_websocket", name="news", url="wss://news.example.org/", messages=['{"op": "${MARKET_TOKEN}"}']
        )
        assert events.current.events.websockets["news"].messages == ('{"op": "${MARKET_TOKEN}"}',)
        await kit.do(
            "set_listener", name="heard", on=["local.*", "poll.tickets"], message="Eat!", filter={"dish": "s*"}
        )
        await kit.do("set_listener", name="heard", cool_down=60)
        listener = events.current.events.listeners["listener:heard"]
        assert (listener.on, listener.cool_down.total_seconds()) == (("local.*", "poll.tickets"), 60)
        listed = await kit.do("list_event_setup")
        assert all(each in listed for each in ("tickets", "news", "heard", '"websocket:news": "waiting"'))
        assert "the-token" not in listed

        assert "(local.lunch) for 1 listener" in await kit.do("emit_event", name="lunch", data={"dish": "soup"})
        [row] = [each for each in (await kit.do("read_events", type="local.*")).splitlines() if "lunch" in each]
        assert '{"dish": "soup"}' in row
        await kit.do("emit_event", name="lunch", data={"dish": "stew"})
        log = await kit.do("read_events")
        assert "cooling down" in log
        [skipped] = [each.split()[0] for each in log.splitlines() if "skipped" in each]
        assert "waiting" in await kit.do("replay_event", delivery=skipped)
        assert await kit.do("read_events", failed=True) == "There are none."

        await kit.do("switch_event_entry", kind="listener", name="heard", enabled=False)
        assert "listener:heard" not in events.current.events.listeners
        await kit.do("switch_event_entry", kind="listener", name="heard", enabled=True)
        assert "listener:heard" in events.current.events.listeners
        await kit.do("remove_event_entry", kind="listener", name="heard")
        await kit.do("remove_event_entry", kind="poll", name="tickets")
        await kit.do("remove_event_entry", kind="websocket", name="news")
        assert set(events.current.events.sources) == {WebSocketSource(name="market", url="").key}
        assert "# Ours." in kit.text and "  # Keep these." in kit.text


@pytest.mark.proves("V-skill-integrations")
async def test_a_new_webhook_route_is_signed_with_a_secret_that_only_the_owner_finds(home: Home) -> None:
    async with open_tools(home) as kit:
        said = await kit.do("set_webhook", name="shop", message="{{what}} was sold.")
        secret = home.load().secrets.variables["WEBHOOK_SHOP_SECRET"]
        assert len(secret) > 40 and secret not in said and secret not in kit.text
        route = (kit.denizen.runtime.current.events.routes or {})["shop"]
        assert route.secret == secret
        await kit.do("set_webhook", name="shop", action="log")
        assert home.load().secrets.variables["WEBHOOK_SHOP_SECRET"] == secret


async def test_only_owners_see_and_change_events_and_anybody_may_emit(home: Home) -> None:
    async with open_tools(home) as kit:
        calls: dict[str, JsonObject] = {
            "read_events": {},
            "list_event_setup": {},
            "replay_event": {"delivery": "d"},
            "set_poll": {"name": "x", "url": "https://a.b"},
            "set_listener": {"name": "x", "on": ["*"], "action": "log"},
            "remove_event_entry": {"kind": "listener", "name": "kept"},
            "switch_event_entry": {"kind": "listener", "name": "kept", "enabled": False},
        }
        for tool, args in calls.items():
            refused = await kit.call(tool, args, MEMBER)
            assert refused.is_error and "Only an owner" in refused.text
        assert not (await kit.call("emit_event", {"name": "lunch"}, MEMBER)).is_error
        assert kit.text == TEXT


async def test_what_cannot_be_used_is_not_written_and_a_source_with_a_secret_is_not_led_elsewhere(home: Home) -> None:
    async with open_tools(home) as kit:
        calls: list[tuple[str, JsonObject, str]] = [
            ("set_websocket", {"name": "market", "url": "wss://evil.example.org"}, "it has headers"),
            ("set_poll", {"name": "x", "url": "ftp://a.b"}, "web address"),
            ("set_poll", {"name": "x", "url": "https://a.b", "every": 5}, "60"),
            ("set_listener", {"name": "x", "on": ["local.x"], "action": "post"}, "a text and a channel"),
            ("set_listener", {"name": "x"}, "Say what is to be set"),
            ("emit_event", {"name": "No Name"}, "cannot be the name"),
            ("remove_event_entry", {"kind": "poll", "name": "none"}, "There is no poll"),
            ("replay_event", {"delivery": "none"}, "no delivery"),
        ]
        for tool, args, why in calls:
            refused = await kit.call(tool, args)
            assert refused.is_error and why in refused.text, (tool, refused.text)
        assert kit.text == TEXT


async def test_no_secret_of_the_operator_is_led_elsewhere_or_shown(home: Home) -> None:
    async with open_tools(home) as kit:
        home.config.write_text(
            f"""{LAB}
webhooks:
  routes:
    store: {{secret: "${{WEBHOOK_SHOP_SECRET}}"}}
listeners:
  told: {{on: "local.*", action: post, message: "It is ${{MARKET_TOKEN}}.", channel: "1"}}
events:
  websockets:
    market: {{url: wss://stream.example.org/v1, messages: ['{{"auth": "${{MARKET_TOKEN}}"}}']}}
  polls:
    tickets: {{url: "https://api.example.org/t?key=${{MARKET_TOKEN}}"}}
""",
            encoding="utf-8",
        )
        home.add_file(
            "secrets.env",
            "MARKET_TOKEN=the-token-of-the-market\nWEBHOOK_SHOP_SECRET=the-secret-of-the-store\n",
            mode=0o600,
        )
        text = kit.text
        calls: list[tuple[str, JsonObject, str]] = [
            ("set_websocket", {"name": "market", "url": "wss://evil.example.org"}, "names a variable"),
            ("set_poll", {"name": "tickets", "items": "list"}, "names a variable"),
            ("set_listener", {"name": "told", "channel": "2"}, "names a variable"),
            ("set_webhook", {"name": "shop", "action": "log"}, "WEBHOOK_SHOP_SECRET, which is in use"),
        ]
        for tool, args, why in calls:
            refused = await kit.call(tool, args)
            assert refused.is_error and why in refused.text, (tool, refused.text)
        await kit.do("set_webhook", name="store", message="{{what}} was sold.")
        assert home.load().secrets.variables["WEBHOOK_SHOP_SECRET"] == "the-secret-of-the-store"
        assert "the-token" not in await kit.do("list_event_setup")
        assert "key=${MARKET_TOKEN}" in kit.text and kit.text.count("MARKET_TOKEN") == text.count("MARKET_TOKEN")


async def test_those_who_approve_a_listener_are_shown_what_would_be_written_and_no_secret(home: Home) -> None:
    async with open_tools(home) as tools:
        before = tools.text
        listener: JsonObject = {"name": "new", "on": ["poll.news.*"], "action": "log"}
        shown = await tools.preview("set_listener", listener)
        assert "+  new:" in shown and "poll.news.*" in shown and "Keep these" not in shown
        webhook = await tools.preview("set_webhook", {"name": "ci", "action": "log"})
        assert "${WEBHOOK_CI_SECRET}" in webhook and "secrets.env" not in webhook
        assert "-  kept:" in await tools.preview("remove_event_entry", {"kind": "listener", "name": "kept"})
        assert tools.text == before
        assert "WEBHOOK_CI" not in (home.path / "secrets.env").read_text()
