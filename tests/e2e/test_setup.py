"""`denizen setup`: files, and the proof that the model answers."""

from __future__ import annotations

import re

import psutil
import pytest

from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home
from tests.e2e.process import ProcessResult
from tests.e2e.provider import Provider
from tests.timing import wait_until

pytestmark = pytest.mark.e2e

FILES = {f"agents/denizen/{name}.md" for name in ("IDENTITY", "SOUL", "RULES")} | {"denizen.yaml"}


def files(home: Home) -> set[str]:
    """The configuration that people may edit."""
    found = (path.relative_to(home.folder).as_posix() for path in home.folder.rglob("*") if path.is_file())
    return {name for name in found if name.endswith((".md", ".yaml", ".env"))}


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


def test_setup_with_a_server_that_is_dead_says_so_and_keeps_the_files(home: Home) -> None:
    done = home.do("setup", "--non-interactive", "--base-url", "http://127.0.0.1:9/v1", "--model", "tiny")
    assert done.ending == (4, "")
    assert done.told[-4:] == [
        "The files are written, but the model does not answer.",
        "error: The provider 'openai-compatible' cannot be reached.",
        "why: Connection error.",
        "fix: Check the network and the provider's base_url.",
    ]
    assert files(home) == FILES
    again = home.do("setup", "--non-interactive", "--base-url", "http://127.0.0.1:10/v1", "--model", "tiny")
    assert (again.code, "denizen setup --force" in again.err) == (2, True), "how to correct it is said"
    assert home.do("config", "check").code == 0


@pytest.mark.proves("T-cli-wizard")
def test_the_wizard_asks_for_provider_address_and_model_and_ends_with_an_answer_of_the_model(
    home: Home, provider: Provider
) -> None:
    answer = provider.hold(ModelAnswer(text="OK"))
    with home.start_in_terminal("setup") as wizard:
        kinds = wizard.out.await_text(r"Number \[1\]: ").string
        found = re.search(r"(\d+)  openai-compatible ", kinds)
        assert found is not None
        wizard.type(f"{found[1]}\n")
        wizard.out.await_text(r"Address .*: ")
        wizard.type(f"{provider.server.openai_url}\n")
        wizard.out.await_text(r"Model .*: ")
        wizard.type("tiny\n")
        wizard.out.await_text(r"Discord too\? \[y/N\]: ")
        wizard.type("\n")
        provider.requests.await_count(1)
        assert "Next:" not in wizard.out.text, "it is the model's answer that ends it"
        answer.release()
        assert wizard.finish().code == 0
    assert re.search(r"openai-compatible/tiny answers \(.*Next: denizen chat", wizard.out.text, re.DOTALL)
    assert files(home) == FILES


def test_the_wizard_tells_how_to_get_a_bot_and_keeps_its_token_out_of_sight(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="OK"))
    with home.start_in_terminal("setup") as wizard:
        kinds = wizard.out.await_text(r"Number \[1\]: ").string
        found = re.search(r"(\d+)  openai-compatible ", kinds)
        assert found is not None
        for prompt, answer in (("", found[1]), (r"Address .*: ", provider.server.openai_url), (r"Model .*: ", "tiny")):
            wizard.out.await_text(prompt)
            wizard.type(f"{answer}\n")
        wizard.out.await_text(r"Discord too\? \[y/N\]: ")
        wizard.type("y\n")
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
    assert done.told[-1] == f"warning: MY_BOT is not set; add it to {home.folder / 'secrets.env'} or the environment"
    assert "token: ${MY_BOT}" in home.config.read_text()
    refused = home.do("setup", "--non-interactive", "--no-verify", "--discord-token-env", "MTIz.abc.def")
    assert (refused.code, "MTIz" in refused.err) == (2, False)


def test_a_wizard_that_is_left_writes_nothing(home: Home) -> None:
    with home.start_in_terminal("setup") as wizard:
        wizard.out.await_text(r"Number \[1\]: ")
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
