"""The accounts on GitHub: what they are by default, what is shared, what is one account's own, and who is left out."""

from __future__ import annotations

import pytest

from denizen.app.settings import GitHubLogin
from denizen.domain.attention import (
    AccountPolicy,
    AccountScope,
    ConversationLimits,
    Reactions,
    ReplyStyle,
    ThreadMode,
    TriggerPolicy,
)
from denizen.domain.errors import InvalidInput
from tests.app.home_folder import Home

BOTH = """\
agents: {ada: {}, bert: {}}
default_agent: ada
channels:
  github:
    repositories: [harbour/*]
    answers: [member, owner]
    reactions: {seen: rocket}
    accounts:
      ada: {app_id: 123, private_key: "${KEY}", webhook_secret: "${HOOK}", reply_to_new_issues: true}
      bert: {token: "${TOKEN}", repositories: [sea/north], reactions: {done: "+1"}}
"""
VALUES = {"KEY": "-----BEGIN\\nKEY-----", "HOOK": "the-hook", "TOKEN": "ghp_token"}


def load_only_login(home: Home, lines: str) -> GitHubLogin:
    """The only account, with these lines at `channels.github`."""
    inside = "".join(f"    {line}\n" for line in ("accounts: {denizen: '${T}'}", *lines.splitlines()))
    (login,) = home.load(f"channels:\n  github:\n{inside}", T="ghp_token").github_accounts
    return login


def test_a_token_suffices_and_answers_mentions_of_people_everywhere(home: Home):
    login = load_only_login(home, "")
    account = login.account
    assert (account.agent, account.token, account.api_url) == ("denizen", "ghp_token", "https://api.github.com")
    assert (account.is_app, account.repositories, account.reply_to_new_issues) == (False, (), False)
    assert login.account_policy == AccountPolicy(
        triggers=TriggerPolicy(threads=ThreadMode.NONE, replies=False),
        limits=ConversationLimits(max_exchanges=0, missed_limit_s=86_400.0, edit_window_s=0.0),
        style=ReplyStyle(
            message_limit=65_000,
            keep_blank_lines=True,
            preview=False,
            reactions=Reactions(waiting="", seen="eyes", done="", failed="confused"),
            tells_refusals=False,
            asks_here=False,
        ),
    )


@pytest.mark.proves("L-config-error-message")
def test_the_text_of_a_failure_is_a_setting(home: Home):
    assert load_only_login(home, "error_message: Ask Olga.").account_policy.style.error_message == "Ask Olga."


def test_what_is_shared_holds_for_each_account_that_says_nothing_else(home: Home):
    ada, bert = home.using(VALUES).load(BOTH).github_accounts
    assert (ada.account.app_id, ada.account.private_key) == ("123", "-----BEGIN\nKEY-----")
    assert (ada.account.webhook_secret, ada.account.token) == ("the-hook", "")
    assert (bert.account.token, bert.account.webhook_secret) == ("ghp_token", "")
    assert ada.account.repositories == ("harbour/*",) and bert.account.repositories == ("sea/north",)
    assert (ada.account.reply_to_new_issues, bert.account.reply_to_new_issues) == (True, False)
    assert ada.account_policy.scope == bert.account_policy.scope == AccountScope(roles=frozenset({"member", "owner"}))
    assert ada.account_policy.style.reactions == Reactions(waiting="", seen="rocket", done="", failed="confused")
    assert bert.account_policy.style.reactions == Reactions(waiting="", seen="rocket", done="+1", failed="confused")


@pytest.mark.proves("C-config-exchanges")
@pytest.mark.parametrize(("line", "number"), [("", 0), ("max_exchanges: 2", 2)])
def test_no_exchange_with_bots_is_the_default_and_another_number_can_be_set(line: str, number: int, home: Home):
    assert load_only_login(home, line).account_policy.limits.max_exchanges == number


def test_an_admitted_repository_is_matched_without_case(home: Home):
    account = load_only_login(home, "repositories: [Harbour/*, sea/north]").account
    assert account.admits("harbour/Boats") and account.admits("sea/north")
    assert not account.admits("sea/south")


@pytest.mark.proves("L-config-required")
def test_the_key_may_be_a_file_of_the_home_folder(home: Home):
    text = "channels: {github: {accounts: {denizen: {app_id: '1', private_key_file: app.pem}}}}"
    settings = home.load(text)
    account, file = settings.github_accounts[0].account, settings.home / "app.pem"
    assert (account.private_key, account.key_problem) == ("", f"There is no file {file}.")
    assert f"There is no file {file}." in str(settings.warnings[0])
    file.mkdir()
    assert str(file) in home.load(text).github_accounts[0].account.key_problem
    file.rmdir()
    home.add_file("app.pem", "KEY\n", 0o600)
    account = home.load(text).github_accounts[0].account
    assert (account.private_key, account.key_problem) == ("KEY\n", "")


@pytest.mark.parametrize(
    ("account", "says"),
    [
        ("{app_id: '1', token: '${T}', private_key_file: x}", "an App needs no token"),
        ("{app_id: '1'}", "there is an app_id, but no private key"),
        ("{private_key_file: x, token: '${T}'}", "there is a private key, but no app_id"),
        ("{token: ghp_literal}", "must not stand in this file"),
        ("{token: '${T}', reactions: {seen: wave}}", "GitHub has no such reaction"),
        ("{token: '${T}', repositories: [boats]}", "this is not a repository"),
        ("{token: '${T}', owners: [ana]}", "this is not an id of GitHub"),
        ("{token: '${T}', answers: [friend]}", "answers"),
        ("{token: '${T}', answers: [owner]}", "everybody is `owner`"),
        ("{token: '${T}', admin_associations: [owner]}", "everybody is `owner`"),
        ("{token: '${T}', admin_associations: [owner], repositories: ['*/boats']}", "everybody is `owner`"),
        ("{token: '${T}', answers: [owner], repositories: [harbour/*, 'harbour*/boats']}", "everybody is `owner`"),
    ],
)
def test_what_cannot_work_is_refused_by_name(home: Home, account: str, says: str):
    with pytest.raises(InvalidInput) as refused:
        home.load(f"channels: {{github: {{accounts: {{denizen: {account}}}}}}}", T="ghp_token")
    assert says in str(refused.value)
    assert "ghp_literal" not in refused.value.explain()


def test_what_all_share_needs_repositories_at_each_account(home: Home):
    text = """\
agents: {ada: {}, bert: {}}
default_agent: ada
channels:
  github:
    admin_associations: [owner]
    accounts:
      ada: {token: "${T}", repositories: [harbour/boats, harbour/docs-*]}
      bert: {token: "${T}"}
"""
    with pytest.raises(InvalidInput) as refused:
        home.load(text, T="ghp_token")
    assert "'bert'" in refused.value.explain() and "'ada'" not in refused.value.explain()
    assert len(home.load(text.replace('bert: {token: "${T}"}', ""), T="ghp_token").github_accounts) == 1


def test_an_account_for_an_unknown_agent_is_refused(home: Home):
    with pytest.raises(InvalidInput) as refused:
        home.load("agents: {ada: {}}\nchannels: {github: {accounts: {adda: '${T}'}}}", T="ghp_token")
    assert "adda" in refused.value.explain()


@pytest.mark.proves("L-config-required")
def test_who_has_no_login_stays_away_and_who_has_no_secret_hears_no_webhooks(home: Home):
    settings = home.load("channels: {github: {accounts: {denizen: '${T}'}}}")
    assert settings.github_accounts == ()
    assert ["stays away from GitHub" in str(each) for each in settings.warnings] == [True]
    settings = home.load("channels: {github: {accounts: {denizen: {}}}}")
    assert "there is no login" in str(settings.warnings[0])
    settings = home.load("channels: {github: {accounts: {denizen: '${T}'}}}", T="ghp_token")
    assert ["no webhook secret" in str(each) for each in settings.warnings] == [True]
    off = home.load("channels: {github: {enabled: false, accounts: {denizen: '${T}'}}}", T="ghp_token")
    assert (off.github_accounts, off.warnings) == ((), ())


def test_an_agent_has_manners_on_each_platform(home: Home):
    text = "channels: {github: {accounts: {denizen: '${T}'}}, discord: {accounts: {denizen: '${T}'}}}"
    settings = home.load(text, T="token")
    assert settings.discord_accounts[0].account_policy.style.preview is True
    assert settings.github_accounts[0].account_policy.style.preview is False
