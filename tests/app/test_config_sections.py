"""Sections of the configuration as forms: made from the schema, shown as a difference, written with comments kept."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from urllib.parse import unquote

import httpx2
import pytest

from denizen.web.pages.config_sections import SECTION, SECTIONS, find_setting
from tests.app.component_web_fixture import open_components
from tests.app.home_folder import Home
from tests.app.test_configuration import TEXT, ConfigurationFixture, open_configuration
from tests.web.test_source_pages import Browser

pytestmark = pytest.mark.anyio

FULL = (
    TEXT
    + """\
  bea: {description: The second}
default_agent: ada
channels:
  discord:
    keywords: [harbour]  # ours
    reactions: {done: "✅"}
    channels:
      - "123"  # general
      - "456"  # help
      - "789"
    error_message: ""
    accounts:
      ada: {token: "${DISCORD_TOKEN_ADA}", message_limit: 500}
      bea: ${DISCORD_TOKEN_BEA}
gate:
  tiers:
    weather: 2  # since it costs
    "mem*": 1
  roles: {weather: [admin, owner]}
  rules:
    - {tool: weather, action: deny}
custom_tools:
  lookup:
    description: Looks up.
    argv: [/usr/bin/lookup, "{{word}}"]
    parameters: {word: {description: What}}
"""
)


SECRETS = "".join(f"{name}=s3cret-{name}\n" for name in ("DISCORD_TOKEN_ADA", "DISCORD_TOKEN_BEA", "OTHER_TOKEN"))


@asynccontextmanager
async def open_sections(home: Home) -> AsyncGenerator[ConfigurationFixture]:
    home.add_file("secrets.env", SECRETS, 0o600)
    async with open_configuration(home, FULL) as server:
        yield server


class FormFields(HTMLParser):
    """The fields of the main form of a page, as a browser would send them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._name = ""
        self._depth = 0
        self.feed(page[page.index('class="stack settings"') :])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("select", "textarea"):
            self._name = str(given["name"])
            self.values[self._name] = ""
        if tag == "input" and given.get("name") not in ("remove", "name", "confirm"):
            self.values.setdefault(str(given["name"]), given.get("value") or "")
        if tag == "option" and "selected" in given:
            self.values[self._name] = given.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("select", "textarea"):
            self._name = ""

    def handle_data(self, data: str) -> None:
        if self._name and self.get_starttag_text() and str(self.get_starttag_text()).startswith("<textarea"):
            self.values[self._name] = data.removeprefix("\n")


async def submit(olga: Browser, path: str, **typed: str) -> httpx2.Response:
    """Opens the form, types into it, and sends it, to see what would be written."""
    fields = FormFields(await olga.read(f"{SECTION}/{path}")).values
    unknown = [name for name in typed if f"{path}.{name}" not in fields]
    assert unknown == []
    return await olga.send(f"{SECTION}/{path}", **fields | {f"{path}.{name}": each for name, each in typed.items()})


async def confirm(olga: Browser, path: str, preview: httpx2.Response) -> httpx2.Response:
    """Presses "Save" below the difference."""
    assert preview.status_code == 200, preview.text
    form = preview.text[preview.text.index('id="change"') : preview.text.index(">Save</button>")]
    hidden = re.findall(r'(?s)<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return await olga.send(f"{SECTION}/{path}", **{html.unescape(name): html.unescape(each) for name, each in hidden})


async def change(server: ConfigurationFixture, path: str, **typed: str) -> str:
    """Returns the text of the file after a change by form."""
    async with server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        answer = await confirm(olga, path, await submit(olga, path, **typed))
        assert answer.headers["location"].startswith(f"{SECTION}/{path}?done="), answer.text
    return server.text


async def test_every_section_has_a_form_whose_fields_sent_back_as_they_are_change_nothing(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        paths = [
            *(path for path in SECTIONS if path not in ("models", "mcp", "agents", "schedules")),
            "channels.discord.accounts.ada",
            "custom_tools.lookup",
            "agents.bea",
            "models.overrides",
            "server.api_keys[0]",
        ]
        for path in paths:
            page = await olga.read(f"{SECTION}/{path}")
            fields = FormFields(page).values
            answer = await olga.send(f"{SECTION}/{path}", **fields)
            assert (answer.status_code, unquote(answer.headers["location"])) == (303, f"{SECTION}/{path}?done=same")
        assert server.text == FULL
        missing = await client.get(f"{SECTION}/gate.nothing", headers={"x-api-key": "key-of-olga"})
        assert missing.status_code == 404


async def test_a_change_is_shown_before_it_is_written_and_comments_of_the_file_stay(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        path = "channels.discord"
        preview = await submit(
            olga,
            path,
            greeting="Ahoy <b>",
            mentions="no",
            max_exchanges="3",
            threads="open",
            channels="123\r\n789\r\n1000",
            **{"reactions.done": "", "reactions.seen": '""'},
        )
        assert server.text == FULL
        assert ("greeting: Ahoy &lt;b&gt;" in preview.text, "<b>" in preview.text) == (True, False)
        saved = await confirm(olga, path, preview)
        assert saved.headers["location"] == f"{SECTION}/{path}?done=saved"
        assert server.denizen.settings.channels.discord.greeting == "Ahoy <b>"
    text = server.text
    for line in ("keywords: [harbour]  # ours", '- "123"  # general', "# Ours, since spring.", "mentions: false"):
        assert line in text
    discord = server.denizen.settings.channels.discord
    assert (discord.channels, discord.max_exchanges, discord.threads) == (("123", "789", "1000"), 3, "open")
    assert (discord.reactions.done, discord.reactions.seen, discord.mentions) == ("👍", "", False)
    assert "help" not in text


async def test_a_wrong_value_is_told_at_its_field_with_what_was_typed_kept(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        wrong = await submit(olga, "server", port="<eighty>", public_url="chat.example.org", host="0.0.0.0")
        assert wrong.status_code == 400
        for name, words in (
            ("port", "must be a whole number, not a text."),
            ("public_url", "not the address of a server"),
        ):
            found = re.search(rf'(?s)id="server.{name}-faults">(.*?)</div>', wrong.text)
            assert found is not None
            assert words in found[1]
        fields = FormFields(wrong.text).values
        assert (fields["server.port"], fields["server.host"]) == ("<eighty>", "0.0.0.0")
        assert ("What will be written" in wrong.text, server.text) == (False, FULL)


async def test_what_only_loading_finds_wrong_is_told_at_its_field_too(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        preview = await submit(olga, "gate", tiers="weather: 2\nwhether: 1")
        wrong = await confirm(olga, "gate", preview)
        found = re.search(r'(?s)id="gate.tiers-faults">(.*?)</div>', wrong.text)
        assert found is not None
        assert "weather" in found[1]
        assert (wrong.status_code, server.text) == (400, FULL)


async def test_an_empty_field_resets_to_the_default_and_leaves_the_file(home: Home) -> None:
    async with open_sections(home) as server:
        text = await change(server, "gate", tiers="weather: 2", roles="")
        assert ('"mem*"' in text, "roles" in text, "weather: 2  # since it costs" in text) == (False, False, True)
        assert server.denizen.settings.gate.roles == {}


async def test_a_secret_is_named_by_its_variable_and_never_shown_or_written_itself(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        path = "channels.discord.accounts.ada"
        literal = await submit(olga, path, token="mfa.s3cret-token")
        assert (literal.status_code, "s3cret" in literal.text, "secrets.env" in literal.text) == (400, False, True)
        text = await change(server, path, token="OTHER_TOKEN")
        assert 'ada: {token: "${OTHER_TOKEN}", message_limit: 500}' in text.replace("'", '"')
        short = await olga.read(f"{SECTION}/channels.discord.accounts.bea")
        assert "Edit it as text" in short


async def test_an_entry_is_added_and_removed_by_form(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        named = await client.get(f"{SECTION}/custom_tools?name=echo", headers={"x-api-key": "key-of-olga"})
        assert named.headers["location"] == f"{SECTION}/custom_tools.echo"
        text = await change(server, "custom_tools.echo", description="Says it.", argv="/bin/echo\nhello", tier="1")
        assert "  echo:\n    description: Says it.\n    argv: [/bin/echo, hello]\n    tier: 1\n" in text
        preview = await olga.send(f"{SECTION}/custom_tools.lookup", remove="yes")
        assert (preview.status_code, server.text) == (200, text)
        removed = await confirm(olga, "custom_tools.lookup", preview)
        assert removed.headers["location"] == f"{SECTION}/custom_tools?done=saved"
        assert ("lookup" in server.text, "echo" in server.text) == (False, True)


async def test_what_no_field_can_hold_leads_to_the_line_of_the_editor(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:
        ada = Browser(client, "key-of-ada")
        page = await ada.read(f"{SECTION}/gate")
        assert "/admin/config/section/gate.rules%5B0%5D" in page
        assert "/admin/config?at=gate.rate_limits.tool#text" in page
        editor = await ada.read("/admin/config?at=gate.roles")
        assert f'data-line="{FULL.splitlines().index("  roles: {weather: [admin, owner]}") + 1}"' in editor


async def test_what_has_a_page_of_its_own_is_changed_there_and_a_form_has_only_the_rest(home: Home) -> None:
    home.add_file("secrets.env", SECRETS, 0o600)
    full = FULL.replace("  bea:", "  denizen: {description: Ours}\n  bea:", 1)
    text = f"{full}mcp: {{servers: {{a.b: {{command: 'true'}}}}}}\nbudgets: {{}}\n"
    async with open_components(home, text) as server, server.web.client() as client:
        listed = await server.olga.read("/admin/config")
        toolbar = listed[listed.index('aria-label="Forms"') :]
        links = dict(re.findall(r'<a class="button" href="([^"]+)">([^<]+)</a>', toolbar[: toolbar.index("</nav>")]))
        owned = ("/admin/models", "/admin/mcp", "/admin/agents", "/admin/gate")
        assert [links[page] for page in owned] == ["Models", "MCP servers", "Agents", "Permissions"]
        for page in links:
            await server.olga.read(page)
        for path, page in {
            "models": "/admin/models",
            "models.providers": "/admin/models",
            "models.aliases.fast": "/admin/models?edit=fast#alias",
            "mcp": "/admin/mcp",
            'mcp.servers."a.b"': "/admin/mcp/servers/a.b",
            "agents": "/admin/agents",
            "gate.rules[0]": "/admin/gate#rules-title",
            "schedules": "/admin/schedules",
        }.items():
            for method in ("GET", "POST"):
                answer = await client.request(method, f"{SECTION}/{path}", headers={"x-api-key": "key-of-olga"})
                assert (answer.status_code, answer.headers["location"]) == (303, page), path
            await server.olga.read(page)
        for page in ("/admin/models", "/admin/models/providers/lab", "/admin/agents/denizen", "/admin/gate"):
            rest = re.search(rf'href="({SECTION}/[^"]*)"', await server.olga.read(page))
            assert rest is not None, page
            await server.olga.read(html.unescape(rest[1]))
        assert server.text == text


def test_a_setting_that_a_text_names_is_found_on_the_page_that_changes_it() -> None:
    found = {
        "Correct models.providers.lab.base_url.": ("Models", "/admin/models/providers/lab"),
        "Raise models.providers.lab.timeout_s.": (
            "Models",
            f"{SECTION}/models.providers.lab#models.providers.lab.timeout_s",
        ),
        "Name it under models.aliases.": ("Models", "/admin/models"),
        "Set models.aliases.fast.": ("Models", "/admin/models?edit=fast#alias"),
        "See mcp.servers.time.command.": ("MCP servers", "/admin/mcp/servers/time"),
        "Check what is below mcp.servers.": ("MCP servers", "/admin/mcp"),
        "Set agents.ada.model.": ("Agents", "/admin/agents/ada"),
        "Set agents.ada.fallback.": ("Agents", f"{SECTION}/agents.ada#agents.ada.fallback"),
        "Look at gate.rules.": ("Permissions", "/admin/gate#rules-title"),
        "Set gate.observer.alert_channel.": ("Permissions", f"{SECTION}/gate#gate.observer.alert_channel"),
        "Set knowledge.sync.hours.": ("Knowledge", f"{SECTION}/knowledge#knowledge.sync.hours"),
    }
    assert {text: find_setting(text) for text in found} == found


async def test_the_keys_of_a_part_of_the_configuration_are_listed_with_what_they_are_for(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:

        async def ask(path: str, key: str = "key-of-ada") -> httpx2.Response:
            return await client.get("/admin/config/keys", params={"path": path}, headers={"x-api-key": key})

        top = {each["name"]: each["hint"] for each in (await ask("")).json()}
        assert {"agents", "models", "gate", "logging"} <= top.keys() and top["logging"] == "The log."
        rule = [each["name"] for each in (await ask("gate.rules[0]")).json()]
        assert {"tool", "action", "roles"} <= set(rule)
        assert (await ask("agents")).json() == []  # names of one's own
        assert "model" in {each["name"] for each in (await ask("agents.ada")).json()}
        assert (await ask("gate.nothing")).status_code == 404
        assert (await ask("", "key-of-ann")).status_code == 403


async def test_a_form_made_on_another_text_is_refused_and_only_owners_change(home: Home) -> None:
    async with open_sections(home) as server, server.web.client() as client:
        olga, ada = Browser(client, "key-of-olga"), Browser(client, "key-of-ada")
        preview = await submit(olga, "logging", level="debug")
        await change(server, "logging", format="json")
        late = await confirm(olga, "logging", preview)
        assert (late.status_code, "was changed meanwhile" in late.text) == (409, True)
        old = await olga.send(f"{SECTION}/logging", digest="0" * 64, **{"logging.level": "debug"})
        assert (old.status_code, "was changed meanwhile" in old.text) == (409, True)
        refused = await ada.send(f"{SECTION}/logging", **{"logging.level": "debug", "confirm": "yes"})
        assert refused.status_code == 403
        assert "Show what changes" not in await ada.read(f"{SECTION}/logging")
        assert "level" not in server.text
