"""What set-up writes about Discord: one account for the default agent, its token in the secrets file."""

from __future__ import annotations

import re

import pytest

from denizen.app.settings import SetupAnswers, write_setup
from denizen.domain.errors import Conflict, InvalidInput
from denizen.domain.ids import AgentName
from tests.app.home_folder import Home


def test_set_up_adds_an_account_of_the_default_agent_by_the_name_of_its_variable(home: Home):
    report = write_setup(home.path, SetupAnswers(discord_token_env="MY_BOT"), environment={})
    assert report.unset == ("MY_BOT",)
    (login,) = home.load(MY_BOT="token").discord_accounts
    assert (login.agent, login.token) == ("denizen", "token")
    assert write_setup(home.path, SetupAnswers(discord_token_env="MY_BOT"), environment={"MY_BOT": "x"}).unset == ()


def test_a_token_that_was_typed_goes_into_the_secrets_file_beside_a_key_that_was_typed(home: Home):
    answers = SetupAnswers(kind="anthropic", model="claude-haiku-4-5", api_key="typed-key", discord_token="typed-token")
    report = write_setup(home.path, answers, environment={})
    assert (home.path / "secrets.env").read_text(encoding="utf-8") == (
        "ANTHROPIC_API_KEY=typed-key\nDISCORD_TOKEN_DENIZEN=typed-token\n"
    )
    assert (home.path / "secrets.env").stat().st_mode & 0o777 == 0o600
    assert report.unset == ()
    shown = home.config.read_text(encoding="utf-8") + repr((answers, report))
    assert not {"typed-key", "typed-token"} & set(re.findall(r"[\w-]+", shown))
    assert home.load().discord_accounts[0].token == "typed-token"


def test_set_up_adds_the_account_to_an_existing_file_for_its_default_agent_and_keeps_the_rest(home: Home):
    text = "# mine\nagents: {ada: {}, bert: {}}  # two\ndefault_agent: bert\nchannels:\n  web: {enabled: no}  # off\n"
    home.write(text)
    write_setup(home.path, SetupAnswers(discord_token="typed-token"), environment={})
    added = "  discord:\n    accounts:\n      bert:\n        token: ${DISCORD_TOKEN_BERT}\n"
    assert home.config.read_text(encoding="utf-8") == text + added
    assert [login.agent for login in home.load().discord_accounts] == ["bert"]


def test_set_up_completes_an_account_that_has_no_token_yet(home: Home):
    home.write("channels: {discord: {accounts: {denizen: {owners: [1]}}}}\n")
    write_setup(home.path, SetupAnswers(discord_token_env="T"), environment={})
    (login,) = home.load(T="token").discord_accounts
    assert (login.token, login.account_policy.staff.owners) == ("token", {"1"})


def test_set_up_does_not_replace_the_token_of_an_account(home: Home):
    home.write('channels: {discord: {accounts: {denizen: "${OTHER}"}}}\n')
    with pytest.raises(Conflict, match="has a Discord account already"):
        write_setup(home.path, SetupAnswers(discord_token_env="T"), environment={})
    assert write_setup(home.path, SetupAnswers(discord_token_env="OTHER"), environment={}).unset == ("OTHER",)


def test_a_token_that_is_given_in_place_of_its_variable_is_refused_and_not_repeated(home: Home):
    with pytest.raises(InvalidInput) as caught:
        write_setup(home.path, SetupAnswers(discord_token_env="MTIz.abc.def"), environment={})
    assert "MTIz" not in caught.value.explain()
    assert "DISCORD_TOKEN_DENIZEN=..." in caught.value.fix
    assert list(home.path.iterdir()) == []


def test_agents_with_a_hyphen_have_a_variable_that_a_shell_can_set(home: Home):
    home.write("agents: {my-agent: {}}\n")
    write_setup(home.path, SetupAnswers(discord_token="typed"), environment={})
    assert home.load().discord_accounts[0].agent == AgentName("my-agent")
    assert "DISCORD_TOKEN_MY_AGENT=typed" in (home.path / "secrets.env").read_text(encoding="utf-8")
