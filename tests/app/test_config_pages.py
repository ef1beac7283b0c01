"""Every part of the configuration that people change is changed on a page: it is in the file, with its comments, and in
force.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from denizen.app.build import Denizen
from denizen.app.settings.schema import Config
from denizen.domain.ids import AgentName
from denizen.domain.tool import Tier
from denizen.domain.verdict import Decision
from denizen.engine.configuration.generation import Generation
from denizen.engine.tools.toolbox import list_all
from denizen.web.pages.config_sections import SECTION, SECTIONS
from tests.app.component_web_fixture import open_components
from tests.app.home_folder import Home
from tests.app.test_config_sections import confirm, submit
from tests.web.test_source_pages import Browser

pytestmark = [pytest.mark.anyio, pytest.mark.proves("T-ui-config")]

TEXT = """\
# The house, since spring.
models:
  aliases: {balanced: lab/one}
  providers:
    # The box in the cellar.
    lab: {kind: openai-compatible, base_url: "http://127.0.0.1:9/v1", model: one}
channels:
  discord:
    keywords: [harbour]  # ours
    accounts: {denizen: {token: "${DISCORD_TOKEN}"}}
agents:
  denizen:
    description: The first  # never forget
tools:
  weather: {enabled: true}  # for sailors
gate:
  tiers: {weather: 1}  # it costs little
custom_tools:
  lookup:
    description: Looks up.  # in the book
    argv: [/usr/bin/lookup, "{{word}}"]
    parameters: {word: {description: What}}
commands:
  motto: {description: Says the motto., prompt: Say the motto.}  # of the house
schedules:
  # Every morning.
  news: {cron: 0 9 * * *, prompt: What is new?}
task_watcher:
  debounce_ms: 4000  # they type slowly
webhooks:
  enabled: true
  routes:
    # The builders.
    builds: {scheme: github, secret: "${BUILDS_SECRET}", message: A build ended.}
listeners:
  ends: {on: webhook.builds, message: See to it.}  # by hand before
"""
SECRETS = "DISCORD_TOKEN=not-a-real-token-0001\nBUILDS_SECRET=whsec-not-a-real-one-0001\n"
COMMENTS = re.findall(r"# .*", TEXT)


@dataclass
class Pages:
    """A home folder whose pages an owner has open."""

    home: Home
    denizen: Denizen
    olga: Browser

    @property
    def text(self) -> str:
        return self.home.config.read_text(encoding="utf-8")

    @property
    def now(self) -> Generation:
        return self.denizen.runtime.current

    async def fill_in(self, path: str, **typed: str) -> None:
        """Changes fields of the form of a section, looks at what would be written, and saves it."""
        answer = await confirm(self.olga, path, await submit(self.olga, path, **typed))
        assert answer.headers["location"] == f"{SECTION}/{path}?done=saved", answer.text

    async def send(self, path: str, **form: str) -> None:
        answer = await self.olga.send(path, **form)
        assert answer.status_code == 303, answer.text


@asynccontextmanager
async def open_pages(home: Home) -> AsyncGenerator[Pages]:
    home.add_file("secrets.env", SECRETS, 0o600)
    async with open_components(home, TEXT) as server:
        pages = Pages(home, server.denizen, server.olga)
        yield pages
        assert [each for each in COMMENTS if each not in pages.text] == []


async def test_a_provider_is_changed_on_its_page(home: Home) -> None:
    async with open_pages(home) as pages:
        await pages.send(
            "/admin/models/providers/lab", kind="openai-compatible", base_url="http://127.0.0.1:7/v1", model="one"
        )
        assert '"http://127.0.0.1:7/v1"' in pages.text or "http://127.0.0.1:7/v1," in pages.text
        assert pages.denizen.settings.models.providers["lab"].base_url == "http://127.0.0.1:7/v1"


async def test_discord_is_changed_in_its_form(home: Home) -> None:
    async with open_pages(home) as pages:
        await pages.fill_in("channels.discord", greeting="Ahoy", keywords="harbour\nboat")
        policy = pages.now.account_policies["discord", AgentName("denizen")]
        words = [each.pattern for each in policy.triggers.keywords]
        assert ("greeting: Ahoy" in pages.text, words) == (True, ["harbour", "boat"])


async def test_an_agent_is_changed_on_its_page_and_what_that_lacks_in_its_form(home: Home) -> None:
    async with open_pages(home) as pages:
        await pages.send("/admin/agents/denizen", description="The best", model="balanced", tools="weather")
        await pages.fill_in("agents.denizen", recent_messages="9")
        agent = pages.now.agent("denizen")
        assert (agent.description, agent.tool_access.tools) == ("The best", ("weather",))
        assert agent.history.recent_messages == 9
        assert "description: The best  # never forget" in pages.text and "recent_messages: 9" in pages.text


async def test_a_tool_is_switched_off_and_its_permissions_are_changed(home: Home) -> None:
    async with open_pages(home) as pages:
        await pages.fill_in("gate", tiers="weather: 2", mode="ask")
        assert (dict(pages.now.policy.tiers)["weather"], pages.now.policy.modes.default) == (Tier.SENSITIVE, "ask")
        await pages.send("/admin/gate/rules", rules="- {tool: weather, action: deny}\n")
        await pages.fill_in("tools.weather", enabled="no")
        assert "weather: {enabled: false}  # for sailors" in pages.text and "tiers: {weather: 2}" in pages.text
        assert [each.decision for each in pages.now.policy.rules] == [Decision.DENY]


async def test_a_custom_tool_is_changed_in_its_form(home: Home) -> None:
    async with open_pages(home) as pages:
        await pages.fill_in("custom_tools.lookup", description="Looks words up.", tier="1")
        assert "description: Looks words up.  # in the book" in pages.text
        tools = await list_all(pages.now.toolsets)
        assert (tools["lookup"].spec.description, tools["lookup"].spec.tier) == ("Looks words up.", Tier.LIMITED)


async def test_a_schedule_is_changed_on_its_page(home: Home) -> None:
    async with open_pages(home) as pages:
        form = {"name": "news", "prompt": "What is new?", "wake_agent": "yes", "to": "log"}
        await pages.send("/admin/schedules/news", **form, when="0 7 * * *")
        assert ("0 7 * * *" in pages.text, pages.now.schedules["news"].cron) == (True, "0 7 * * *")


async def test_the_task_watcher_is_switched_on_in_its_form(home: Home) -> None:
    async with open_pages(home) as pages:
        assert pages.now.task_watcher is None
        await pages.fill_in("task_watcher", enabled="yes", debounce_ms="6000")
        assert pages.now.task_watcher is not None and pages.now.task_watcher.debounce_ms == 6000
        assert "debounce_ms: 6000  # they type slowly" in pages.text


async def test_a_webhook_and_a_listener_are_changed_in_their_forms(home: Home) -> None:
    async with open_pages(home) as pages:
        await pages.fill_in("webhooks.routes.builds", message="A build is over.", action="log")
        await pages.fill_in("listeners.ends", message="Look at it.")
        assert "message: A build is over." in pages.text and "action: log" in pages.text
        assert pages.now.events.routes is not None and set(pages.now.events.routes) == {"builds"}
        messages = {each.name: each.action.message for each in pages.now.events.listeners.values()}
        assert messages["ends"] == "Look at it."


async def test_a_command_is_changed_in_its_form_and_another_is_added(home: Home) -> None:
    async with open_pages(home) as pages:
        await pages.fill_in("commands.motto", prompt="Sing the motto.")
        await pages.fill_in("commands.tide", description="Tells the tide.", prompt="When is high tide?")
        prompts = {each.name: each.prompt for each in pages.now.commands.commands}
        assert prompts == {"motto": "Sing the motto.", "tide": "When is high tide?"}
        assert "prompt: Sing the motto.}  # of the house" in pages.text and "tide:" in pages.text


async def test_the_raw_text_is_changed_on_the_page_of_the_configuration(home: Home) -> None:
    async with open_pages(home) as pages:
        assert "# The house, since spring." in await pages.olga.read("/admin/config")
        await pages.send("/admin/config", text=TEXT.replace("The first", "The second"))
        assert pages.text == TEXT.replace("The first", "The second")
        assert pages.now.agent("denizen").description == "The second"


def test_every_section_of_the_configuration_has_a_link_to_where_it_is_changed() -> None:
    linked = {path.partition(".")[0] for path in SECTIONS}
    assert set(Config.model_fields) - linked == set()


async def test_every_link_on_the_page_of_the_configuration_leads_somewhere(home: Home) -> None:
    async with open_pages(home) as pages:
        listed = await pages.olga.read("/admin/config")
        toolbar = listed[listed.index('aria-label="Forms"') :]
        links = re.findall(r'<a class="button" href="([^"]+)">', toolbar[: toolbar.index("</nav>")])
        assert len(links) == len(SECTIONS)
        for link in links:
            await pages.olga.read(link)
