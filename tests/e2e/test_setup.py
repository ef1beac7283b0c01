"""`denizen setup`: files, and the proof that the model answers."""

from __future__ import annotations

import json
import re
from collections.abc import Generator

import httpx2
import psutil
import pytest
from anyio.from_thread import start_blocking_portal

from denizen.testing.discord import DiscordServer, GatewayIntent, SimApplication, open_discord
from denizen.testing.discord.fixtures import build_discord_fixture
from denizen.testing.model_server import FailedAnswer, ModelAnswer
from tests.e2e.home import Home
from tests.e2e.process import ProcessResult, RunningProcess
from tests.e2e.provider import Provider
from tests.local_server import Exchange, serve
from tests.timing import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.e2e

FILES = {f"agents/denizen/{name}.md" for name in ("IDENTITY", "SOUL", "RULES")} | {"denizen.yaml"}


def files(home: Home) -> set[str]:
    """The configuration that people may edit."""
    found = (path.relative_to(home.folder).as_posix() for path in home.folder.rglob("*") if path.is_file())
    return {name for name in found if name.endswith((".md", ".yaml", ".env"))}


@pytest.mark.proves("T-cli-options", "T-cli-wizard", "V1")
def test_setup_without_questions_writes_a_home_and_has_the_model_answer(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="OK"))
    options = ("--provider", "openai-compatible", "--base-url", provider.server.openai_url, "--model", "tiny")
    done = home.do("setup", "--non-interactive", *options)
    assert done.ending == (0, "")
    assert files(home) == FILES
    assert re.search(r"^openai-compatible/tiny answers \([\d.]+ s\)\.$", done.err, re.MULTILINE)
    assert [body["model"] for body in provider.server.bodies] == ["tiny"]
    text = home.config.read_text()
    assert home.do("setup", "--non-interactive", "--if-missing") == ProcessResult(0, "", "")
    assert home.config.read_text() == text


DEAD = ("--base-url", "http://127.0.0.1:9/v1", "--model", "tiny")


def test_setup_with_a_server_that_is_dead_says_so_and_writes_nothing_unless_told_to(home: Home) -> None:
    done = home.do("setup", "--non-interactive", *DEAD)
    assert done.ending == (4, "")
    assert done.told[-4:] == [
        "Nothing is written. (--no-verify writes the files all the same.)",
        "error: The provider 'openai-compatible' cannot be reached.",
        "why: There is no connection to http://127.0.0.1:9: All connection attempts failed",
        "fix: Check the network and the provider's base_url.",
    ]
    assert not home.folder.exists()
    assert home.do("setup", "--non-interactive", "--no-verify", *DEAD).code == 0
    assert files(home) == FILES
    again = home.do("setup", "--non-interactive", "--base-url", "http://127.0.0.1:10/v1", "--model", "tiny")
    assert (again.code, "denizen setup --force" in again.err) == (2, True), "how to correct it is said"
    assert home.do("config", "check").code == 0


def test_a_provider_that_is_dead_takes_nothing_from_a_server_that_runs(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    before = home.config.read_text()
    assert home.do("setup", "--non-interactive", *DEAD).code == 4
    assert files(home) == {"denizen.yaml"}
    assert home.config.read_text() == before


def test_setup_without_questions_stores_the_key_where_it_is_told_to(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="OK"))
    home.variables["LAB_KEY"] = "sk-of-this-terminal"
    options = ("--base-url", provider.server.openai_url, "--model", "tiny", "--api-key-env", "LAB_KEY", "--store-key")
    assert home.do("setup", "--non-interactive", *options).code == 0
    assert provider.server.requests[0].headers["authorization"] == "Bearer sk-of-this-terminal"
    assert (home.folder / "secrets.env").read_text() == "LAB_KEY=sk-of-this-terminal\n"
    assert (home.folder / "secrets.env").stat().st_mode & 0o777 == 0o600
    del home.variables["LAB_KEY"]
    assert home.do("config", "check").code == 0


def answer_questions(wizard: RunningProcess, *pairs: tuple[str, str]) -> None:
    """Types each answer when its question stands there, behind the questions before."""
    place = 0
    for question, answer in pairs:
        place = wizard.out.await_text(question, after=place).end()
        wizard.type(f"{answer}\n")


@pytest.mark.proves("T-cli-wizard", "V1")
def test_the_wizard_asks_for_provider_address_and_model_and_ends_with_an_answer_of_the_model(
    home: Home, provider: Provider
) -> None:
    answer = provider.hold(ModelAnswer(text="OK"))
    provider.server.models = ("small", "tiny", "tiny-long")
    with home.start_in_terminal("setup") as wizard:
        kinds = wizard.out.await_text(r"Number or name \[1\]: ").string
        found = re.search(r"(\d+)  openai-compatible ", kinds)
        assert found is not None
        answer_questions(
            wizard,
            (r"Number or name \[1\]: ", "99"),
            (r"There is no provider '99'\. Type a number from 1 to \d+, .*\r\nNumber or name \[1\]: ", found[1]),
            (r"Address .*: ", provider.server.openai_url),
            (r"API key.*the server needs none\): ", ""),
            (r" 2  tiny\r\n +3  tiny-long\r\nModel .*: ", "2"),
            (r"Discord too\? \[y/N\]: ", ""),
        )
        provider.requests.await_count(1)
        assert "wrote" not in wizard.out.text, "nothing is written before the model has answered"
        assert not home.folder.exists()
        answer.release()
        assert wizard.finish().code == 0
    assert re.search(r"openai-compatible/tiny answers \(.*Next: denizen chat", wizard.out.text, re.DOTALL)
    assert files(home) == FILES


@pytest.mark.proves("T-cli-wizard")
def test_the_wizard_keeps_what_was_typed_when_the_model_does_not_answer(home: Home, provider: Provider) -> None:
    provider.script(FailedAnswer(401), ModelAnswer(text="OK"))
    with home.start_in_terminal("setup") as wizard:
        answer_questions(
            wizard,
            (r"Number or name \[1\]: ", "openai-compatible"),
            (r"Address .*: ", provider.server.openai_url),
            (r"API key.*: ", "sk-mistyped"),
            (r"Model .*: ", "tiny"),
            (r"Discord too\? \[y/N\]: ", ""),
            (r"Nothing is written yet\.[^:]*: ", "correct"),
            (r"Number or name \[10\]: ", ""),
            (r"Address \[http.*\]: ", ""),
            (r"API key.*the one that you typed\): ", "sk-well-typed"),
            (r"Model .*\[tiny\]: ", ""),
        )
        assert wizard.finish().code == 0
    assert "typed" not in wizard.out.text.replace("that you typed", "")
    assert (home.folder / "secrets.env").read_text() == "OPENAI_COMPATIBLE_API_KEY=sk-well-typed\n"


def test_the_wizard_writes_a_model_that_does_not_answer_only_with_consent(home: Home) -> None:
    questions = (
        (r"Number or name \[1\]: ", "openai-compatible"),
        (r"Address .*: ", "http://127.0.0.1:9/v1"),
        (r"keep it with Enter\.\r\nAddress \[http://127.0.0.1:9/v1\]: ", ""),
        (r"API key.*: ", ""),
        (r"Model .*: ", "tiny"),
        (r"Discord too\? \[y/N\]: ", ""),
    )
    with home.start_in_terminal("setup") as wizard:
        answer_questions(wizard, *questions, (r"Nothing is written yet\.[^:]*: ", "quit"))
        assert wizard.finish().code == 130
    assert not home.folder.exists()
    with home.start_in_terminal("setup") as wizard:
        answer_questions(wizard, *questions, (r"Nothing is written yet\.[^:]*: ", "write"))
        assert wizard.finish().code == 0
    assert files(home) == FILES


def test_the_wizard_asks_again_for_an_address_where_nothing_answers_and_for_a_key_that_is_refused(home: Home) -> None:
    def list_models(exchange: Exchange) -> None:
        known = exchange.headers["authorization"] == "Bearer sk-well-typed"
        exchange.say(json.dumps({"data": [{"id": "tiny"}]}) if known else "", status=200 if known else 401)

    with serve({"/v1/models": list_models}) as server, home.start_in_terminal("setup", "--no-verify") as wizard:
        answer_questions(
            wizard,
            (r"Number or name \[1\]: ", "openai-compatible"),
            (r"Address .*: ", "http://127.0.0.1:9/v1"),
            (r"no connection to http://127.0.0.1:9: .*\r\nCorrect the address.*\r\nAddress .*: ", server.url("/v1")),
            (r"API key.*: ", "sk-mistyped"),
            (r"refused the key.*\r\nCorrect the key.*\r\nAPI key.*: ", "sk-well-typed"),
            (r" 1  tiny\r\nModel .*: ", "1"),
            (r"Discord too\? \[y/N\]: ", ""),
        )
        assert wizard.finish().code == 0
    assert (home.folder / "secrets.env").read_text() == "OPENAI_COMPATIBLE_API_KEY=sk-well-typed\n"


def test_the_wizard_asks_again_for_a_key_that_is_needed_and_leaves_a_model_without_one_alone(home: Home) -> None:
    with home.start_in_terminal("setup") as wizard:
        answer_questions(
            wizard,
            (r"Number or name \[1\]: ", "anthropic"),
            (r"API key.*: ", ""),
            (r"'anthropic' needs a key.*set ANTHROPIC_API_KEY later\.\r\nAPI key.*: ", ""),
            (r"Model .*: ", "claude-haiku-4-5"),
            (r"Discord too\? \[y/N\]: ", ""),
        )
        assert wizard.finish().code == 0
    assert "error" not in wizard.out.text
    assert "warning: ANTHROPIC_API_KEY is not set; add it to" in wizard.out.text
    assert files(home) == FILES


def test_the_wizard_stores_a_key_of_this_terminal_when_told_to(home: Home) -> None:
    home.variables["ANTHROPIC_API_KEY"] = "sk-of-this-terminal"
    home.variables["HTTPS_PROXY"] = "http://127.0.0.1:9"  # the list of models is not read from the network
    with home.start_in_terminal("setup", "--no-verify") as wizard:
        answer_questions(
            wizard,
            (r"Number or name \[1\]: ", "claude"),
            (r"API key.*the one in ANTHROPIC_API_KEY\): ", ""),
            (r"set in this terminal only.*\[Y/n\]: ", "y"),
            (r"Model .*: ", "claude-haiku-4-5"),
            (r"Discord too\? \[y/N\]: ", ""),
        )
        assert wizard.finish().code == 0
    assert (home.folder / "secrets.env").read_text() == "ANTHROPIC_API_KEY=sk-of-this-terminal\n"
    assert "balanced: anthropic/claude-haiku-4-5" in home.config.read_text()


@pytest.fixture
def discord(home: Home) -> Generator[DiscordServer]:
    """A Discord with a bot in a server, which the home's processes take for the real one."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_discord()) as server:
        build_discord_fixture(server)
        home.variables |= {"DENIZEN_DISCORD_API_URL": server.api_url, "DENIZEN_DISCORD_GATEWAY_URL": server.gateway_url}
        yield server


def find_bot(discord: DiscordServer) -> SimApplication:
    [bot] = discord.store.applications.values()
    return bot


def answer_about_discord(wizard: RunningProcess, provider: Provider, *pairs: tuple[str, str]) -> None:
    """Answers what comes before the token, and then those questions."""
    answer_questions(
        wizard,
        (r"Number or name \[1\]: ", "openai-compatible"),
        (r"Address .*: ", provider.server.openai_url),
        (r"API key.*: ", ""),
        (r"Model .*: ", "tiny"),
        (r"Discord too\? \[y/N\]: ", "y"),
        *pairs,
    )


def test_the_wizard_asks_again_for_a_token_that_discord_refuses_and_says_what_the_bot_may(
    home: Home, provider: Provider, discord: DiscordServer
) -> None:
    provider.script(ModelAnswer(text="OK"))
    bot = find_bot(discord)
    with home.start_in_terminal("setup") as wizard:
        answer_about_discord(
            wizard,
            provider,
            (r"Token .*: ", "two words"),
            (r"This is no token of a bot.*\r\nToken .*: ", "a-wrong-token"),
            (r"FAIL  Discord refused the token.*\r\n(.*\r\n)*Token .*: ", bot.token),
        )
        assert wizard.finish().code == 0
    assert f"ok    The token belongs to Ada ({bot.user.id})." in wizard.out.text
    assert f"https://discord.com/oauth2/authorize?client_id={bot.id}" in wizard.out.text
    assert (bot.token in wizard.out.text, "a-wrong-token" in wizard.out.text) == (False, False)
    assert f"DISCORD_TOKEN_DENIZEN={bot.token}\n" in (home.folder / "secrets.env").read_text()


def test_the_wizard_looks_again_once_an_intent_is_on_or_leaves_discord_out(
    home: Home, provider: Provider, discord: DiscordServer
) -> None:
    provider.script(ModelAnswer(text="OK"), ModelAnswer(text="OK"), ModelAnswer(text="OK"))
    bot = find_bot(discord)
    intents, question = bot.intents, r"FAIL  Message Content Intent is off\.(.*\r\n)*Look again.*: "
    for answer, is_connected in (("leave", False), ("connect", True)):
        bot.intents = GatewayIntent(0)
        with home.start_in_terminal("setup", "--force") as wizard:
            answer_about_discord(wizard, provider, (r"Token .*: ", bot.token), (question, answer))
            assert wizard.finish().code == 0
        assert bool(re.search(r"^channels:", home.config.read_text(), re.MULTILINE)) == is_connected
    with home.start_in_terminal("setup", "--force") as wizard:
        answer_about_discord(wizard, provider, (r"Token .*: ", bot.token))
        wizard.out.await_text(question)
        bot.intents = intents
        wizard.type("look\n")
        assert wizard.finish().code == 0
    assert "ok    Message Content Intent is on." in wizard.out.text


def test_setup_without_questions_writes_nothing_for_a_token_that_discord_refuses(
    home: Home, provider: Provider, discord: DiscordServer
) -> None:
    provider.script(ModelAnswer(text="OK"), ModelAnswer(text="OK"))
    options = ("--base-url", provider.server.openai_url, "--model", "tiny", "--discord-token-env", "MY_BOT")
    home.variables["MY_BOT"] = "a-wrong-token"
    refused = home.do("setup", "--non-interactive", *options)
    assert (refused.code, "error: Discord refuses this token." in refused.told) == (2, True)
    assert ("a-wrong-token" in refused.err, home.folder.exists()) == (False, False)
    home.variables["MY_BOT"] = find_bot(discord).token
    done = home.do("setup", "--non-interactive", *options)
    assert (done.code, "token: ${MY_BOT}" in home.config.read_text()) == (0, True)
    assert "ok    Message Content Intent is on." in done.told


def test_the_wizard_tells_how_to_get_a_bot_and_keeps_its_token_out_of_sight(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="OK"))
    home.variables["DENIZEN_DISCORD_API_URL"] = "http://127.0.0.1:9/api/v10"  # nobody is there, so it is not checked
    with home.start_in_terminal("setup") as wizard:
        answer_questions(
            wizard,
            (r"Number or name \[1\]: ", "openai-compatible"),
            (r"Address .*: ", provider.server.openai_url),
            (r"API key.*: ", ""),
            (r"Model .*: ", "tiny"),
            (r"Discord too\? \[y/N\]: ", "y"),
        )
        told = wizard.out.await_text(r"Token .*: ").string
        assert "https://discord.com/developers/applications" in told
        assert "Message Content Intent" in told
        wizard.type("typed-bot-token\n")
        assert wizard.finish().code == 0
    assert "typed-bot-token" not in wizard.out.text
    assert files(home) == FILES | {"secrets.env"}
    assert "DISCORD_TOKEN_DENIZEN=typed-bot-token" in (home.folder / "secrets.env").read_text()
    assert "token: ${DISCORD_TOKEN_DENIZEN}" in home.config.read_text()


def test_setup_without_questions_adds_an_account_by_the_name_of_its_variable(home: Home) -> None:
    done = home.do("setup", "--non-interactive", "--no-verify", "--discord-token-env", "MY_BOT")
    assert done.code == 0
    assert done.told[-2] == f"warning: MY_BOT is not set; add it to {home.folder / 'secrets.env'} or the environment"
    assert "token: ${MY_BOT}" in home.config.read_text()
    refused = home.do("setup", "--non-interactive", "--no-verify", "--discord-token-env", "MTIz.abc.def")
    assert (refused.code, "MTIz" in refused.err) == (2, False)


def test_a_wizard_that_is_left_writes_nothing(home: Home) -> None:
    with home.start_in_terminal("setup") as wizard:
        wizard.out.await_text(r"Number or name \[1\]: ")
        # Python's `input` does not notice a signal between its prompt and its wait before the next line.
        wait_until(lambda: psutil.Process(wizard.pid).status() == psutil.STATUS_SLEEPING)
        wizard.type("\x03")
        assert wizard.finish().code == 130
    assert not home.folder.exists()


def test_nobody_is_asked_where_nobody_is(home: Home) -> None:
    done = home.do("setup")
    assert done.ending == (2, "")
    assert done.err == (
        "error: There is nobody to ask: standard input is no terminal.\n"
        "fix: Add --non-interactive, with --provider and --model.\n"
    )


def test_a_server_with_a_simulated_discord_takes_a_real_bot_in_the_browser_and_logs_it_in_after_a_restart(
    home: Home, discord: DiscordServer
) -> None:
    bot = find_bot(discord)
    assert home.do("setup", "--non-interactive", "--no-verify").code == 0
    with home.start("run", "--port", "0", "--simulate") as running:
        url = running.err.await_text(r"Denizen is ready: (http://\S+)$")[1]
        assert running.err.await_text(r"First steps, in the browser: (\S+)$")[1] == f"{url}/admin/setup"
        with httpx2.Client(base_url=url, timeout=HANG_LIMIT_S) as browser:
            connected = browser.post("/admin/setup/discord", data={"token": bot.token})
            assert connected.headers["location"] == "/admin/setup?done=discord", connected.text
            assert "Discord is simulated until the next start" in browser.get("/admin/setup").text
            assert bot.user.id not in {each.application.user.id for each in discord.sessions.all}
            assert browser.post("/admin/setup/restart").status_code == 303
        url = running.err.await_text(r"Restarting\.\n(?:.*\n)*?Denizen is ready: (http://\S+)\n")[1]
        assert discord.get_session("Ada").application is bot
        with httpx2.Client(base_url=url) as browser:
            wait_until(lambda: ">listening<" in browser.get("/admin/setup/discord").text)
            assert "Restart the server" not in browser.get("/admin/setup").text
        assert "First steps, in" not in running.err.text.partition("Restarting.")[2], "the first step is taken"
