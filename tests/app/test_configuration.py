"""Changes of the configuration over HTTP: checked, written and loaded in one step, or not at all."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import pytest

from denizen.app.build import Denizen
from denizen.app.components import build_components
from denizen.app.configuration import HISTORY_FOLDER, KEPT_TEXTS, HomeConfiguration
from denizen.app.reload import Reloader, ReloadResult
from denizen.domain.agent import Agent
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.ids import AgentName
from denizen.engine.audit.audit_log import read_log
from denizen.ports.configuration import NewAgent
from denizen.testing.model_server import model_server
from denizen_sdk import ApiError, DenizenClient
from denizen_sdk.configuration import ConfigChange
from tests.app.home_folder import LAB, Home, open_home
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_source_pages import Browser
from tests.web_fixture import ADA, ANN, LOCAL, WebFixture, open_web

pytestmark = pytest.mark.anyio

TEXT = f"""\
# Ours, since spring.
{LAB}
agents:
  ada:
    description: The first  # never forget
"""


BY = OWNER.principal
BEA = NewAgent(name="bea", section={"description": "Answers about boats.", "model": "balanced"})


@dataclass
class ConfigurationFixture:
    """An open home folder with its configuration over HTTP."""

    home: Home
    denizen: Denizen
    files: HomeConfiguration
    web: WebFixture

    def sdk(self, key: str = "key-of-olga") -> DenizenClient:
        return DenizenClient(LOCAL, key, transport=httpx2.ASGITransport(self.web.app))

    @property
    def text(self) -> str:
        return self.home.config.read_text(encoding="utf-8")


@asynccontextmanager
async def open_configuration(home: Home, text: str = TEXT) -> AsyncGenerator[ConfigurationFixture]:
    async with open_home(home, text) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        await files.reload_and_tell()
        async with open_web(
            keys=[OWNER, ADA, ANN], configuration=files, components=build_components(denizen, files)
        ) as web:
            yield ConfigurationFixture(home, denizen, files, web)


@pytest.mark.proves("T-http-config-read")
async def test_the_configuration_is_read_whole_by_section_and_by_provider_with_secrets_masked(home: Home) -> None:
    text = TEXT.replace('base_url: "http://127.0.0.1:9/v1"', 'base_url: "http://127.0.0.1:9/v1", api_key: "${LAB_KEY}"')
    home.add_file("secrets.env", "LAB_KEY=sk-abcdefghijklmnop\n", 0o600)
    async with open_configuration(home, text) as server, server.sdk("key-of-ada") as ada:
        found = await ada.get_config()
        assert (found.raw, found.is_masked) == (text, False)
        assert await ada.get_config_section("agents.ada") == {"description": "The first"}
        assert await ada.get_config_section("agents.ada.description") == "The first"
        [provider] = [each for each in await ada.list_providers() if each.name == "lab"]
        assert (provider.kind, provider.key, provider.key_name) == ("openai-compatible", "sk-a...mnop", "LAB_KEY")
        with pytest.raises(ApiError) as missing:
            await ada.get_config_section("agents.nobody")
        assert missing.value.status == 404
        home.write(f"{text}# sk-abcdefghijklmnop\n")
        found = await ada.get_config()
        assert (found.is_masked, "sk-abcdefghijklmnop" in found.raw, "***" in found.raw) == (True, False, True)
        home.write(text.replace("The first", "sk-abcdefghijklmnop"))
        assert await ada.get_config_section("agents.ada") == {"description": "***"}


@pytest.mark.proves("T-http-config-read")
async def test_the_models_of_a_provider_are_listed(home: Home) -> None:
    async with model_server() as server:
        text = TEXT.replace("http://127.0.0.1:9/v1", f"{server.url}/v1")
        async with open_configuration(home, text) as configured, configured.sdk("key-of-ada") as ada:
            server.models = ("lab-large", "lab-small")
            assert await ada.list_provider_models("lab") == ("lab-large", "lab-small")
            for name, status in (("nobody", 404),):
                with pytest.raises(ApiError) as refused:
                    await ada.list_provider_models(name)
                assert refused.value.status == status


@pytest.mark.proves("T-http-config-write", "TW11")
async def test_a_change_holds_when_it_is_answered_and_comments_stay(home: Home) -> None:
    async with open_configuration(home) as server, server.sdk() as olga:
        before = server.denizen.runtime.current.number
        changed = await olga.put_config(TEXT.replace("The first", "The very first"))
        assert changed == ConfigChange(before + 1, changed=True)
        assert server.denizen.runtime.current.agent("ada").description == "The very first"
        await olga.put_config_section("agents.ada.limits", {"max_steps": 7})
        assert server.denizen.runtime.current.agent("ada").limits.max_steps == 7
        assert "# Ours, since spring." in server.text
        assert "# never forget" in server.text
        await olga.put_config_section("agents.ada.limits", None)
        assert "max_steps" not in server.text
        await olga.put_provider("den", {"kind": "openai-compatible", "base_url": "http://127.0.0.1:8/v1"})
        assert "den" in {each.name for each in await olga.list_providers()}
        await olga.put_provider("den", None)
        assert "den" not in {each.name for each in await olga.list_providers()}
        started = await olga.put_config_section("server", {"port": 8700})
        assert started.needs_restart == ("server",)


@pytest.mark.proves("T-http-config-write", "TW11")
async def test_what_cannot_be_used_is_refused_by_line_and_nothing_is_written(home: Home) -> None:
    async with open_configuration(home) as server, server.sdk() as olga:
        number = server.denizen.runtime.current.number
        wrong = [
            TEXT.replace("The first", "The first\n    modle: x"),
            TEXT + "agents: {}\n",
            TEXT + "\tx",
            TEXT.replace("lab/one", "lab2/one"),
            "",
        ]
        for text in wrong:
            with pytest.raises(ApiError) as refused:
                await olga.put_config(text)
            assert refused.value.status == 400, text
            assert (server.text, server.denizen.runtime.current.number) == (TEXT, number)
        faults = await olga.check_config(wrong[0])
        line = wrong[0].splitlines().index("    modle: x  # never forget") + 1
        assert [(each.line, each.path) for each in faults] == [(line, "agents.ada.modle")]
        with pytest.raises(ApiError) as unknown:
            await olga.put_config_section("agents.ada.modle", "x")
        assert (unknown.value.status, server.text) == (400, TEXT)


@pytest.mark.proves("TW11")
async def test_a_text_that_reads_well_but_cannot_be_loaded_is_put_back(home: Home) -> None:
    class RefusingReloader(Reloader):
        async def reload(self) -> ReloadResult:
            raise InvalidInput("No such thing can be built.")

    async with open_home(home, TEXT) as denizen:
        files = HomeConfiguration(denizen, RefusingReloader(denizen))
        with pytest.raises(InvalidInput, match="No such thing"):
            await files.replace(BY, TEXT.replace("The first", "Another"))
        assert home.config.read_text() == TEXT
        with pytest.raises(InvalidInput, match="No such thing"):
            await files.put_persona(BY, "ada", "RULES.md", "Be kind.")
        assert not (home.path / "agents" / "ada" / "RULES.md").exists()
        home.add_file("secrets.env", "OLD_KEY=kept-as-it-is\n", 0o600)
        with pytest.raises(InvalidInput, match="No such thing"):
            await files.put_values(BY, {("agents", "ada", "description"): "Another"}, secrets={"NEW_KEY": "sk-new"})
        assert (home.config.read_text(), (home.path / "secrets.env").read_text()) == (TEXT, "OLD_KEY=kept-as-it-is\n")


async def test_of_two_editors_the_second_is_told_that_the_text_has_changed(home: Home) -> None:
    async with open_configuration(home) as server, server.sdk() as olga, server.web.client() as client:
        read = await olga.get_config()
        await olga.put_config(TEXT.replace("The first", "Mine"), digest=read.digest)
        with pytest.raises(ApiError) as refused:
            await olga.put_config(TEXT.replace("The first", "Yours"), digest=read.digest)
        assert (refused.value.status, refused.value.code) == (409, "configuration_changed")
        answer = await client.put(
            "/api/config", json={"raw": TEXT}, headers={"x-api-key": "key-of-olga", "if-match": f'"{read.digest}"'}
        )
        assert answer.status_code == 409
        assert "Mine" in server.text


async def test_admins_read_and_only_owners_change(home: Home) -> None:
    async with open_configuration(home) as server, server.sdk("key-of-ada") as ada, server.sdk("key-of-ann") as ann:
        for client, change in (
            (ada, ada.put_config(TEXT)),
            (ada, ada.put_provider("x", None)),
            (ann, ann.get_config()),
        ):
            with pytest.raises(ApiError) as refused:
                await change
            assert refused.value.status == 403, client
        assert await ada.check_config(TEXT) == ()


async def test_accepted_texts_are_kept_and_only_the_last_ones(home: Home) -> None:
    async with open_configuration(home) as server, server.sdk() as olga:
        first = server.denizen.runtime.current.number
        for number in range(KEPT_TEXTS + 1):
            await olga.put_config(TEXT.replace("The first", f"Number {number}"))
        latest, *_, oldest = await olga.list_config_generations()
        assert (latest.number, latest.has_text, latest.source) == (first + KEPT_TEXTS + 1, True, "reload")
        assert oldest.number == first + 2
        assert "Number 29" in await server.files.read_kept(first + 30)
        with pytest.raises(NotFound):
            await server.files.read_kept(first)
        kept = list((home.path / HISTORY_FOLDER).iterdir())
        assert {file.stat().st_mode & 0o777 for file in kept} == {0o600}


async def test_persona_files_are_read_written_and_removed_and_nothing_outside_of_the_folder(home: Home) -> None:
    home.add_file("agents/ada/IDENTITY.md", "You are Ada.")
    home.add_file("agents/ada/notes.txt", "Not Markdown.")
    outside = home.add_file("elsewhere/RULES.md", "Secret.")
    (home.path / "agents" / "ada" / "LINK.md").symlink_to(outside)
    async with open_configuration(home) as server:
        files, current = server.files, server.denizen.runtime
        found = [(each.name, each.text, each.is_used) for each in await files.list_persona("ada")]
        assert found == [("IDENTITY.md", "You are Ada.", True)]
        await files.put_persona(BY, "ada", "RULES.md", "Be kind.")
        assert dict(current.current.agent("ada").instructions.persona)["RULES.md"] == "Be kind."
        await files.put_persona(BY, "ada", "RULES.md", "")
        assert "RULES.md" not in dict(current.current.agent("ada").instructions.persona)
        for name in ("../RULES.md", "RULES.txt", "/etc/x.md", "users/x.md", ".md", "LINK.md"):
            with pytest.raises(InvalidInput):
                await files.put_persona(BY, "ada", name, "x")
        assert outside.read_text() == "Secret."
        with pytest.raises(NotFound):
            await files.list_persona("nobody")


async def test_the_page_saves_a_text_with_its_comments_and_brings_an_older_one_back(home: Home) -> None:
    async with open_configuration(home) as server, server.web.client() as client:
        olga, ada = Browser(client, "key-of-olga"), Browser(client, "key-of-ada")
        page = await olga.read("/admin/config")
        assert ("# Ours, since spring." in page, 'data-line="3">models</a>' in page) == (True, True)
        digest = re.search(r'name="digest" value="(\w+)"', page)
        assert digest is not None
        changed = TEXT.replace("The first", "<i>Second</i>").replace("\n", "\r\n")
        checked = await olga.send("/admin/config", text=changed, digest=digest[1], check="yes")
        assert (checked.status_code, "Nothing is wrong with this text." in checked.text, server.text) == (
            200,
            True,
            TEXT,
        )
        saved = await olga.send("/admin/config", text=changed, digest=digest[1])
        assert saved.headers["location"] == "/admin/config?done=saved"
        assert server.text == TEXT.replace("The first", "<i>Second</i>")
        late = await olga.send("/admin/config", text=TEXT, digest=digest[1])
        assert (late.status_code, "was changed meanwhile" in late.text) == (409, True)
        number = server.denizen.runtime.current.number - 1
        compared = await ada.read(f"/admin/config?generation={number}")
        assert "<ins>+    description: The first  # never forget</ins>" in compared
        assert ("&lt;i&gt;Second" in compared, "<i>Second" in compared, "readonly" in compared) == (True, False, True)
        digest = re.search(r'name="digest" value="(\w+)"', compared)
        assert digest is not None
        back = await olga.send("/admin/config/restore", generation=str(number), digest=digest[1])
        assert (back.headers["location"], server.text) == ("/admin/config?done=saved", TEXT)
        assert (await ada.send("/admin/config", text=TEXT)).status_code == 403


async def test_a_secret_in_a_kept_text_is_masked_where_texts_are_compared_and_comes_back_with_the_text(
    home: Home,
) -> None:
    secret = "sk-abcdefghijklmnop"
    home.add_file("secrets.env", f"LAB_KEY={secret}\n", 0o600)
    keyed = TEXT.replace(
        'base_url: "http://127.0.0.1:9/v1"', 'base_url: "http://127.0.0.1:9/v1", api_key: "${LAB_KEY}"'
    )
    slip = f"{keyed}# {secret}\n"
    async with open_configuration(home, slip) as server, server.web.client() as client:
        number = server.denizen.runtime.current.number
        await server.files.replace(BY, keyed.replace("The first", "The second"))
        compared = await Browser(client, "key-of-ada").read(f"/admin/config?generation={number}")
        assert ("<ins>+# ***</ins>" in compared, secret in compared) == (True, False)
        await Browser(client, "key-of-olga").send("/admin/config/restore", generation=str(number))
        assert server.text == slip


async def test_the_page_tells_what_is_wrong_by_line_and_keeps_what_was_typed(home: Home) -> None:
    async with open_configuration(home) as server, server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        text = TEXT.replace("The first", "The first\n    modle: <x>")
        wrong = await olga.send("/admin/config", text=text)
        line = 1 + text.splitlines().index("    modle: <x>  # never forget")
        assert wrong.status_code == 400
        assert f'data-line="{line}">line {line}</a>' in wrong.text
        assert ("Nothing was saved" in wrong.text, "modle: &lt;x&gt;" in wrong.text, server.text) == (True, True, TEXT)


async def test_an_agent_is_added_beside_the_one_that_only_the_defaults_know(home: Home) -> None:
    async with open_configuration(home, f"# Bare.\n{LAB}") as server:
        before = set(server.denizen.runtime.current.agents)
        await server.files.add_agent(BY, BEA)
        current = server.denizen.runtime.current
        assert set(current.agents) == before | {"bea"}
        assert (current.default_agent in before, current.agent("bea").description) == (True, "Answers about boats.")
        assert server.text.startswith("# Bare.\n")
        with pytest.raises(Conflict):
            await server.files.add_agent(BY, BEA)
        with pytest.raises(InvalidInput):
            await server.files.add_agent(BY, NewAgent(name="no name!", section={}))


async def test_an_agent_and_its_files_are_one_change_that_is_shown_before_and_can_be_taken_back(home: Home) -> None:
    agent = NewAgent(name="bea", section=BEA.section, files={"IDENTITY.md": "You are a sailor.\n"})
    async with open_configuration(home) as server:
        current = server.denizen.runtime.current.number
        planned = await server.files.plan_agent(agent)
        assert "+  bea:\n+    description: Answers about boats." in planned.diff
        assert "+++ agents/bea/IDENTITY.md" in planned.diff and "+You are a sailor." in planned.diff
        assert (planned.faults, server.denizen.runtime.current.number, server.text) == ([], current, TEXT)
        await server.files.add_agent(BY, agent, expected=planned.digest)
        assert server.denizen.runtime.current.number == current + 1
        told = server.denizen.runtime.current.agent("bea").instructions.persona
        assert told == (("IDENTITY.md", "You are a sailor."),)
        await server.files.replace(BY, await server.files.read_kept(current))
        assert "bea" not in server.denizen.runtime.current.agents


async def test_an_agent_that_cannot_be_loaded_leaves_no_file_behind(home: Home) -> None:
    async with open_configuration(home) as server:
        for wrong in (
            NewAgent(name="bea", section={"tools": ["no_such_tool"]}, files={"RULES.md": "Be kind.\n"}),
            NewAgent(name="bea", section={}, files={"../RULES.md": "Be kind.\n"}),
        ):
            with pytest.raises(InvalidInput):
                await server.files.add_agent(BY, wrong)
        assert server.text == TEXT
        assert not list(home.path.glob("agents/**/*.md"))


async def test_an_agent_is_removed_but_not_the_default_one_nor_one_that_is_given_tasks(home: Home) -> None:
    async with open_configuration(home) as server:
        await server.files.add_agent(BY, BEA)
        with pytest.raises(Conflict):
            await server.files.remove_agent(BY, "ada")
        await server.files.put_value(BY, "agents.ada.delegates_to", ["bea"])
        with pytest.raises(InvalidInput):
            await server.files.remove_agent(BY, "bea")
        await server.files.put_value(BY, "agents.ada.delegates_to", None)
        await server.files.remove_agent(BY, "bea")
        assert set(server.denizen.runtime.current.agents) == {"ada"}


async def test_a_second_agent_is_added_by_form_with_its_persona_and_comments_stay(home: Home) -> None:
    async with open_configuration(home) as server, server.web.client() as client:
        olga, ada = Browser(client, "key-of-olga"), Browser(client, "key-of-ada")
        assert 'name="persona"' in await olga.read("/admin/add-agent")
        answer = await olga.send(
            "/admin/add-agent",
            name="bea",
            description="Boats.",
            model="balanced",
            tools="weather\n",
            persona="You are Bea.",
        )
        assert answer.headers["location"] == "/admin/agents/bea?done=added"
        bea = server.denizen.runtime.current.agent("bea")
        assert (bea.description, bea.tool_access.tools) == ("Boats.", ("weather",))
        assert bea.instructions.persona == (("IDENTITY.md", "You are Bea."),)
        assert server.denizen.runtime.current.default_agent == "ada"
        assert ("# Ours, since spring." in server.text, "# never forget" in server.text) == (True, True)
        wrong = await olga.send("/admin/add-agent", name="cia", model="modle/x", persona="<p>")
        assert (wrong.status_code, "&lt;p&gt;" in wrong.text, "cia" in server.text) == (400, True, False)
        assert (await ada.send("/admin/add-agent", name="dan")).status_code == 403


async def test_an_agent_and_its_persona_files_are_edited_on_its_page(home: Home) -> None:
    home.add_file("agents/ada/IDENTITY.md", "You are <Ada>.")
    agents = [Agent(AgentName("ada"), "The first")]
    async with open_home(home, TEXT) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        async with open_web(keys=[OWNER, ADA], configuration=files, agents=agents) as web, web.client() as client:
            olga, ada = Browser(client, "key-of-olga"), Browser(client, "key-of-ada")
            page = await olga.read("/admin/agents/ada?file=IDENTITY.md")
            assert ("You are &lt;Ada&gt;." in page, "in the prompt" in page) == (True, True)
            saved = await olga.send("/admin/agents/ada/files", file="IDENTITY.md", text="You are Ada, again.\r\nTruly.")
            assert saved.headers["location"] == "/admin/agents/ada?file=IDENTITY.md&done=saved"
            assert (home.path / "agents/ada/IDENTITY.md").read_text() == "You are Ada, again.\nTruly.\n"
            refused = await olga.send("/admin/agents/ada/files", file="../x.md", text="<x>")
            assert (refused.status_code, "&lt;x&gt;" in refused.text) == (400, True)
            changed = await olga.send(
                "/admin/agents/ada", description="The best", model="balanced", tools="weather, calculator"
            )
            assert changed.headers["location"] == "/admin/agents/ada?done=changed"
            now = denizen.runtime.current.agent("ada")
            assert (now.description, now.tool_access.tools) == ("The best", ("weather", "calculator"))
            number = denizen.runtime.current.number
            texts = {"style.response": "friendly", "style.language": "de", "style.extra_instructions": "Name\r\ncats."}
            bounds = {"limits.max_steps": "7", "limits.turn_timeout_s": "90", "limits.max_tools": "40"}
            same = {"description": "The first", "model": "balanced", "tools": "*"}
            await olga.send("/admin/agents/ada", **same, **texts, **bounds)
            now = denizen.runtime.current.agent("ada")
            style, limits = now.instructions.style, now.limits
            assert (style.response, style.language, style.extra_instructions) == ("friendly", "de", "Name\ncats.")
            assert (limits.max_steps, limits.turn_timeout_s) == (7, 90)
            assert denizen.runtime.current.number == number + 1  # all of it is one change
            assert "max_tools" not in home.config.read_text()  # what is as before is not written down
            for wrong in ("many", "0", "-1", ""):
                refused = await olga.send("/admin/agents/ada", **same, **{"limits.max_steps": wrong})
                assert (refused.status_code, "max_steps" in refused.text) == (400, True)
            assert "# never forget" in home.config.read_text()
            await olga.send("/admin/agents/ada/files", file="IDENTITY.md", text="x", remove="yes")
            assert not (home.path / "agents/ada/IDENTITY.md").exists()
            assert 'id="file-form"' not in await ada.read("/admin/agents/ada?file=IDENTITY.md")
            assert (await ada.send("/admin/agents/ada/files", file="RULES.md", text="x")).status_code == 403


async def test_the_form_of_an_agent_shows_and_writes_variables_by_their_names(home: Home) -> None:
    home.add_file("secrets.env", "KEY=very-secret-key\n", 0o600)
    text = TEXT.replace("The first", "Has ${KEY}") + "agent_defaults: {style: {extra_instructions: 'Say ${KEY}.'}}\n"
    async with open_home(home, text) as denizen:
        files, agent = HomeConfiguration(denizen, Reloader(denizen)), denizen.runtime.current.agent("ada")
        assert agent.description == "Has very-secret-key"
        async with open_web(keys=[OWNER], configuration=files, agents=[agent]) as web, web.client() as client:
            olga = Browser(client, "key-of-olga")
            form = (await olga.read("/admin/agents/ada")).partition("</form>")[0]
            assert ("very-secret-key" in form, "Has ${KEY}" in form, "Say ${KEY}." in form) == (False, True, True)
            same = {"model": "balanced", "tools": "*", "style.extra_instructions": "Say ${KEY}."}
            done = await olga.send("/admin/agents/ada", **same, description="Now has ${KEY}")
            assert done.headers["location"] == "/admin/agents/ada?done=changed"
            assert home.config.read_text() == text.replace("Has ${KEY}", "Now has ${KEY}")


async def test_the_audit_log_says_who_changed_which_file_without_the_words(home: Home) -> None:
    async with open_configuration(home) as server, server.sdk() as olga:
        await olga.put_config(TEXT.replace("The first", "The secret plan"))
        await server.files.put_persona(BY, "ada", "RULES.md", "Be kind to secrets.")
        with pytest.raises(ApiError):
            await olga.put_config("nonsense: 1")
        log = [each.event async for each in read_log(server.denizen.services.store)]
    assert [(each.kind, each.actor, each.subject) for each in log] == [
        ("settings", "api_key:olga", "denizen.yaml"),
        ("settings", "api_key:olga", "agents/ada/RULES.md"),
    ]
    assert "secret" not in str(log)
