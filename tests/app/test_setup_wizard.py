"""The wizard of set-up in the browser: each answer is checked at its own step, and kept until it is good."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from denizen.adapters.discord.client.settings import DiscordEndpoints
from denizen.app.configuration import HomeConfiguration
from denizen.app.home.secrets import load_secrets
from denizen.app.reload import Reloader, ReloadResult
from denizen.app.settings import Simulation
from denizen.app.setup_wizard import SetupWizard
from denizen.domain.errors import Conflict, Unavailable
from denizen.engine.audit.audit_log import read_log
from denizen.engine.users.credentials import UserPolicy
from denizen.ports.setup import ModelAnswers, SetupStep, TokenState
from denizen.testing.discord import DiscordPermission, GatewayIntent
from denizen.testing.model_server import FailedAnswer, ModelAnswer
from tests.app.home_folder import LAB, Home
from tests.app.setup_fixture import FRESH, SetupFixture, field_value, open_setup, shown
from tests.web.knowledge_web_fixture import OWNER
from tests.web.oauth_server import open_oauth_server
from tests.web.people import PASSWORD, open_browser
from tests.web.test_oauth import go
from tests.web_fixture import UserRegistration

pytestmark = pytest.mark.anyio

KEY, MISTYPED = "sk-the-right-key-of-1234", "sk-a-mistyped-key-of-1234"


def model_form(setup: SetupFixture, **more: str) -> dict[str, str]:
    return {"kind": "openai-compatible", "base_url": setup.models.openai_url, "model": "tiny", **more}


def states(page: str) -> list[str]:
    """The states of the steps, in their order."""
    return re.findall(r'<li><a href="/admin/setup/\w+".*?>(done|open|left out)</span>', page, re.DOTALL)


async def test_a_home_on_the_built_in_model_has_its_first_step_done_and_the_others_open(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        assert states(await setup.read("/model")) == ["done", "open", "open", "open"]
        assert "Now: the built-in small model." in shown(await setup.read())
        page = await setup.read("/model")
        assert re.search(r'kind=embedded" aria-current="true">\s*<strong>embedded</strong>.*in use', page)
        assert "API key" not in page


async def test_a_key_that_the_provider_refuses_is_told_at_its_step_and_what_was_typed_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        setup.models.script(FailedAnswer(401), ModelAnswer(text="OK"))
        refused = await setup.send("/model", **model_form(setup, api_key=MISTYPED))
        assert (refused.status_code, "refused the key" in shown(refused.text)) == (400, True)
        assert "Correct the key." in shown(refused.text)
        assert (field_value(refused.text, "base_url"), field_value(refused.text, "model")) == (
            setup.models.openai_url,
            "tiny",
        )
        assert (field_value(refused.text, "api_key"), MISTYPED in refused.text) == ("", False)
        assert (setup.config, setup.secrets) == (FRESH, "")

        done = await setup.send("/model", **model_form(setup, api_key=KEY))
        assert (done.status_code, done.headers["location"]) == (303, "/admin/setup/discord?done=model")
        assert [each.headers["authorization"] for each in setup.models.requests] == [
            f"Bearer {MISTYPED}",
            f"Bearer {KEY}",
        ]
        assert setup.secrets == f"OPENAI_COMPATIBLE_API_KEY={KEY}\n"
        assert (home.path / "secrets.env").stat().st_mode & 0o777 == 0o600
        assert "balanced: openai-compatible/tiny" in setup.config
        assert "# Ours, since today." in setup.config
        current = setup.denizen.runtime.current
        assert current.models.get(current.agents[current.default_agent].model).name == "openai-compatible/tiny"
        assert "The model answered." in await setup.read("/discord?done=model")
        again = await setup.read("/model")
        assert (field_value(again, "base_url"), "sk-t...1234" in again, KEY in again) == (
            setup.models.openai_url,
            True,
            False,
        )


async def test_a_key_that_was_typed_counts_until_it_is_stored_or_forgotten(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        setup.models.script(FailedAnswer(404, "no such model"), ModelAnswer(text="OK"), ModelAnswer(text="OK"))
        wrong = await setup.send("/model", **model_form(setup, api_key=KEY, model="tinny"))
        assert wrong.status_code == 400
        assert "Empty: the one that you typed" in shown(wrong.text)
        assert field_value(await setup.read("/model"), "model") == "tinny", "also after a look elsewhere"
        assert (await setup.send("/model", **model_form(setup))).status_code == 303
        assert setup.secrets == f"OPENAI_COMPATIBLE_API_KEY={KEY}\n"

        await setup.send("/model", **model_form(setup, kind="anthropic", list="yes", base_url="", api_key=MISTYPED))
        forgotten = await setup.send("/model", **model_form(setup, kind="anthropic", forget="yes", base_url=""))
        assert forgotten.status_code == 303
        missing = await setup.send("/model", **model_form(setup, kind="anthropic", base_url=""))
        assert (missing.status_code, "'anthropic' needs a key" in shown(missing.text)) == (400, True)


async def test_the_models_of_the_provider_are_listed_and_one_is_chosen(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        setup.models.models = ("tiny", "tiny-long")
        for form in (model_form(setup, list="yes"), model_form(setup, model="")):
            page = (await setup.send("/model", **form)).text
            assert re.findall(r"<option(?: selected)?>([\w-]+)</option>", page) == ["tiny", "tiny-long"]
        assert (setup.models.requests, setup.config) == ([], FRESH)
        setup.models.script(ModelAnswer(text="OK"))
        assert (await setup.send("/model", **model_form(setup, other="brand-new"))).status_code == 303
        assert setup.models.bodies[0]["model"] == "brand-new"


async def test_an_address_where_nothing_answers_and_one_that_is_missing_are_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        dead = await setup.send("/model", **model_form(setup, base_url="http://127.0.0.1:9/v1"))
        assert (dead.status_code, "cannot be reached" in shown(dead.text)) == (503, True)
        assert field_value(dead.text, "base_url") == "http://127.0.0.1:9/v1"
        missing = await setup.send("/model", **model_form(setup, base_url=""))
        assert (missing.status_code, "Where is the server?" in shown(missing.text)) == (400, True)
        assert (await setup.send("/model", kind="nonsense", model="x")).status_code == 400
        assert setup.config == FRESH


async def test_a_known_key_goes_only_to_the_address_that_it_was_given_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        setup.models.script(*[ModelAnswer(text="OK")] * 3)
        await setup.send("/model", **model_form(setup, api_key=KEY))
        assert (await setup.send("/model", **model_form(setup, model="other"))).status_code == 303
        elsewhere = setup.models.openai_url.replace("127.0.0.1", "localhost")
        assert (await setup.send("/model", **model_form(setup, base_url=elsewhere))).status_code == 303
        sent = [each.headers.get("authorization", "") for each in setup.models.requests]
        assert (sent[:2], KEY in sent[2]) == ([f"Bearer {KEY}"] * 2, False)
        assert setup.config.count("base_url") == 1


async def test_a_secret_in_an_address_is_shown_and_saved_as_its_reference_and_asked_with_its_value(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        secret, written = setup.models.openai_url, "${TENANT_ADDRESS}"
        home.add_file("secrets.env", f"TENANT_ADDRESS={secret}\n", 0o600)
        text = LAB.replace("lab", "openai-compatible").replace("http://127.0.0.1:9/v1", written)
        await HomeConfiguration(setup.denizen, Reloader(setup.denizen)).replace(OWNER.principal, text)
        page = await setup.read("/model?kind=openai-compatible")
        assert (field_value(page, "base_url"), secret in page) == (written, False)

        setup.models.models = ("tiny", "tiny-long")
        form = model_form(setup, base_url=field_value(page, "base_url"))
        listed = (await setup.send("/model", **form, list="yes")).text
        assert (">tiny-long</option>" in listed, secret in listed) == (True, False)
        setup.models.script(ModelAnswer(text="OK"))
        assert (await setup.send("/model", **form)).status_code == 303
        assert (f'base_url: "{written}"' in setup.config, secret in setup.config) == (True, False)
        assert setup.denizen.settings.models.providers["openai-compatible"].base_url == secret


async def test_a_key_that_the_environment_would_hide_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_setup(home, monkeypatch) as setup:
        monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "sk-of-the-environment-1234")
        refused = await setup.send("/model", **model_form(setup, api_key=KEY))
        assert (refused.status_code, "has another OPENAI_COMPATIBLE_API_KEY" in shown(refused.text)) == (409, True)
        assert setup.secrets == ""


async def test_a_token_that_discord_refuses_is_told_at_its_step_and_nothing_is_written(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        refused = await setup.send("/discord", token="a-wrong-token")
        assert (refused.status_code, "Discord refuses this token." in shown(refused.text)) == (400, True)
        assert ("a-wrong-token" in refused.text, "all the same" in refused.text) == (False, False)
        strange = await setup.send("/discord", token="two words")
        assert (strange.status_code, "This is no token" in shown(strange.text)) == (400, True)
        assert (setup.config, setup.secrets) == (FRESH, "")


async def test_a_bot_without_an_intent_is_refused_until_it_has_it_and_its_token_is_kept_meanwhile(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        intents, setup.bot.intents = setup.bot.intents, GatewayIntent.GUILD_MEMBERS
        gap = await setup.send("/discord", token=setup.bot.token)
        assert (gap.status_code, "Message Content Intent is off." in shown(gap.text)) == (409, True)
        assert f"https://discord.com/developers/applications/{setup.bot.id}/bot" in gap.text
        assert "Empty: the one that you typed." in shown(gap.text)
        assert (setup.bot.token in gap.text, setup.secrets) == (False, "")

        setup.bot.intents = intents
        setup.sim.guild.everyone.permissions &= ~DiscordPermission.ATTACH_FILES
        gap = await setup.send("/discord", token="")
        assert "In Harbour the account lacks Attach Files in #general." in shown(gap.text)
        setup.sim.guild.everyone.permissions |= DiscordPermission.ATTACH_FILES
        done = await setup.send("/discord", token="")
        assert (done.status_code, done.headers["location"]) == (303, "/admin/setup/source?done=discord")
        assert setup.secrets == f"DISCORD_TOKEN_DENIZEN={setup.bot.token}\n"
        assert "token: ${DISCORD_TOKEN_DENIZEN}" in setup.config
        assert [each.agent for each in setup.denizen.settings.discord_accounts] == ["denizen"]
        again = await setup.send("/discord", token="")
        assert (again.status_code, "all have all permissions" in again.text) == (200, False)
        assert "The token belongs to Ada" in shown(again.text)


async def test_a_bot_that_lacks_something_is_connected_all_the_same_when_that_is_wanted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        setup.sim.guild.leave(setup.bot.user)
        gap = await setup.send("/discord", token=setup.bot.token)
        assert (gap.status_code, "The account is in no server." in shown(gap.text)) == (409, True)
        assert re.search(rf'<a class="button" href="https://discord.com/\S+client_id={setup.bot.id}', gap.text)
        assert (await setup.send("/discord", anyway="yes")).status_code == 303
        assert setup.denizen.settings.discord_accounts[0].token == setup.bot.token


async def test_a_token_is_checked_against_discord_itself_while_it_is_simulated_and_then_a_restart_is_asked_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        simulation = Simulation((), DiscordEndpoints("http://127.0.0.1:9/api/v10"))
        setup.denizen.settings = replace(setup.denizen.settings, simulation=simulation)
        assert "Restart the server" not in await setup.read()
        assert (await setup.send("/discord", token=setup.bot.token)).status_code == 303
        assert "Discord is simulated until the next start" in await setup.read()
        assert states(await setup.read("/model"))[1] == "done"
        assert (await setup.send("/restart")).status_code == 409
        setup.denizen.restart.is_possible = True
        assert (await setup.send("/restart")).status_code == 303
        assert setup.denizen.restart.wanted.is_set()


async def test_a_step_is_left_out_and_taken_up_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_setup(home, monkeypatch) as setup:
        left = await setup.send("/left-out", step="discord")
        assert left.headers["location"] == "/admin/setup/source?done=left"
        assert states(await setup.read("/source")) == ["done", "left out", "open", "open"]
        back = await setup.send("/left-out", step="discord", again="yes")
        assert back.headers["location"] == "/admin/setup/discord"
        assert states(await setup.read("/discord"))[1] == "open"
        assert (await setup.send("/left-out", step="nonsense")).status_code == 400


async def test_the_overview_leads_owners_to_the_open_steps_until_none_is_left(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:

        async def find_links(key: str = "key-of-olga") -> list[str]:
            page = await setup.client.get("/admin", headers={"x-api-key": key})
            card = re.search(r'id="first-steps".*?</div>', page.text, re.DOTALL)
            return re.findall(r'href="([^"]+)"', card[0]) if card else []

        assert await find_links() == [
            "/admin/setup/discord",
            "/admin/setup/source",
            "/admin/setup/agent",
            "/admin/setup",
        ]
        assert await find_links("key-of-ada") == []
        for step in ("discord", "source", "agent"):
            await setup.send("/left-out", step=step)
        assert await find_links() == []
        assert "Everything is set up." in await setup.read()


async def test_a_source_and_an_agent_are_added_and_refused_with_what_was_typed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        assert 'name="max_videos"' in await setup.read("/source?kind=youtube")
        refused = await setup.send("/source", kind="folder", location="not/absolute", label="Handbook")
        assert (refused.status_code, field_value(refused.text, "label")) == (400, "Handbook")
        folder = home.add_file("docs/a.md", "A berth is ten euros.").parent
        done = await setup.send("/source", kind="folder", location=str(folder), label="Handbook")
        assert done.headers["location"] == "/admin/setup/agent?done=source"
        assert "Now: Handbook." in shown(await setup.read())

        refused = await setup.send("/agent", name="no good", persona="You are Ada.")
        assert (refused.status_code, "You are Ada." in refused.text) == (400, True)
        done = await setup.send("/agent", name="ada", tools="*", persona="You are Ada.")
        assert done.headers["location"] == "/admin/setup?done=agent"
        assert list(setup.denizen.runtime.current.agents) == ["denizen", "ada"]
        assert states(await setup.read("/model")) == ["done", "open", "done", "done"]


async def test_the_agent_that_came_along_counts_once_it_has_a_character_of_its_own(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        files = HomeConfiguration(setup.denizen, Reloader(setup.denizen))
        assert not (await setup.wizard.list_steps())[3].is_done
        await files.put_persona(OWNER.principal, "denizen", "IDENTITY.md", "You look after the harbour.\n")
        assert (await setup.wizard.list_steps())[3].is_done


async def test_only_owners_set_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_setup(home, monkeypatch) as setup:
        for path in ("", "/model", "/discord", "/source", "/agent"):
            address = f"/admin/setup{path}"
            assert (await setup.client.get(address, headers={"x-api-key": "key-of-ada"})).status_code == 403
            assert (await setup.client.get(address)).headers["location"].startswith("/login")
        for path in ("/model", "/discord", "/source", "/agent", "/left-out", "/restart"):
            sent = await setup.client.post(f"/admin/setup{path}", headers={"x-api-key": "key-of-ada"}, data={"a": "b"})
            assert sent.status_code == 403
        assert "First steps" not in (await setup.client.get("/admin", headers={"x-api-key": "key-of-ada"})).text


async def test_keys_and_tokens_are_in_no_page_log_or_audit_entry(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with open_setup(home, monkeypatch) as setup:
        setup.models.script(FailedAnswer(401, f"Incorrect API key provided: {KEY}"), ModelAnswer(text="OK"))
        texts = [(await setup.send("/model", **model_form(setup, api_key=KEY))).text for _ in range(2)]
        setup.bot.intents = GatewayIntent(0)
        texts += [(await setup.send("/discord", token=setup.bot.token, **more)).text for more in ({}, {"anyway": "y"})]
        texts += [await setup.read(path) for path in ("", "/model", "/discord", "/source", "/agent")]
        texts += [repr(entry) async for entry in read_log(setup.denizen.services.store)]
        texts += [setup.config, caplog.text, repr(ModelAnswers(kind="openai", api_key=KEY))]
        assert (KEY in setup.secrets, setup.bot.token in setup.secrets) == (True, True)
        assert [text for text in texts if KEY in text or setup.bot.token in text] == []


class _Refusing(Reloader):
    async def reload(self) -> ReloadResult:
        raise Unavailable("It cannot be loaded.", code="unavailable")


async def test_files_are_as_they_were_where_the_configuration_cannot_be_loaded(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        wizard = SetupWizard(setup.denizen, HomeConfiguration(setup.denizen, _Refusing(setup.denizen)))
        before = {path.name for path in home.path.rglob("*")}
        with pytest.raises(Unavailable, match="cannot be loaded"):
            await wizard.connect_discord(OWNER.principal, setup.bot.token)
        assert (setup.config, setup.secrets) == (FRESH, "")
        assert {path.name for path in home.path.rglob("*.md")} <= before


async def test_discord_that_does_not_answer_is_told_and_nothing_is_written(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        setup.sim.discord.faults.fail("GET", "/users/@me", status=503)
        answered = await setup.wizard.connect_discord(OWNER.principal, setup.bot.token, despite_gaps=True)
        assert (answered.is_saved, answered.checklist.token, setup.secrets) == (False, TokenState.UNKNOWN, "")


async def test_discord_that_is_switched_off_is_not_connected(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_setup(home, monkeypatch, f"{FRESH}channels: {{discord: {{enabled: false}}}}\n") as setup:
        with pytest.raises(Conflict, match="switched off"):
            await setup.wizard.connect_discord(OWNER.principal, setup.bot.token)


async def test_a_provider_that_is_there_gets_the_new_address_and_keeps_what_else_it_has(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = LAB.replace("lab", "openai-compatible").replace('/v1"}', '/v1", timeout_s: 9}')
    text = text.replace("openai-compatible/one", "{model: openai-compatible/one, fallbacks: [builtin/default]}")
    async with open_setup(home, monkeypatch, text) as setup:
        setup.models.script(ModelAnswer(text="OK"))
        assert (await setup.send("/model", **model_form(setup))).status_code == 303
        section = setup.denizen.settings.models.providers["openai-compatible"]
        assert (section.base_url, section.timeout_s) == (setup.models.openai_url, 9)
        alias = setup.denizen.settings.models.aliases["balanced"]
        assert (alias.model, alias.fallbacks) == ("openai-compatible/tiny", ("builtin/default",))


async def test_who_signs_up_first_lands_at_the_first_steps_and_later_people_at_the_chat(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        setup.web.keys.clear()
        form = {"email": "ann@example.org", "name": "Ann", "password": PASSWORD}
        browser = {"sec-fetch-site": "same-origin"}
        first = await setup.client.post("/sign-up", data=form, headers=browser)
        assert (first.status_code, first.headers["location"]) == (303, "/admin/setup")
        assert load_secrets(home.path, {}).variables == {}
        for step in (SetupStep.DISCORD, SetupStep.SOURCE, SetupStep.AGENT):
            await setup.wizard.leave_out(step, is_left_out=True)
        assert "Everything is set up" in (await setup.client.get("/admin/setup")).text


async def test_who_makes_the_first_account_at_another_site_lands_at_the_first_steps_as_well(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    registration = UserRegistration(UserPolicy(is_open=True))
    async with open_oauth_server() as site, open_setup(home, monkeypatch, registration=registration) as setup:
        setup.web.keys.clear()
        registration.providers = {"github": site.github, "discord": site.discord}
        for login, subject, path in (("ann", 1, "/admin/setup"), ("ann", 1, "/"), ("ben", 2, "/")):
            site.be(login, subject=subject, email=f"{login}@example.org")
            async with open_browser(setup.web) as browser:
                assert (await go(browser, "/login/discord")).headers["location"] == path


async def test_the_chat_leads_owners_from_the_built_in_model_to_a_provider_and_tells_others_who_may(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_setup(home, monkeypatch) as setup:
        owner, admin = [
            (await setup.client.get("/", headers={"x-api-key": key})).text for key in ("key-of-olga", "key-of-ada")
        ]
        assert 'For better ones, <a href="/admin/setup/model">connect a provider</a>.' in owner
        assert "connect a provider" not in admin
        assert "For better ones, an owner of this server connects a provider." in admin
