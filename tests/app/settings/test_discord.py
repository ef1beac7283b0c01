"""The accounts of Discord: what they are by default, what is shared, what is one account's own, and who is left out."""

from __future__ import annotations

import re
from dataclasses import fields
from decimal import Decimal

import pytest

from denizen.app.settings import render_settings
from denizen.app.settings.discord import DiscordPolicySection
from denizen.domain.attention import (
    AccountPolicy,
    AccountScope,
    AccountStaff,
    ConversationLimits,
    Reactions,
    ReplyStyle,
    ThreadMode,
    TriggerPolicy,
)
from tests.app.home_folder import Home

TWO = "agents: {ada: {}, bert: {}}\ndefault_agent: ada\n"
BOTH = TWO + 'channels: {discord: {accounts: {ada: "${ADA}", bert: "${BERT}"}}}\n'
TOKENS = {"ADA": "token-of-ada", "BERT": "token-of-bert"}


def account_policy(home: Home, conduct: str) -> AccountPolicy:
    """Of the only account, with these lines at `channels.discord`."""
    account = "accounts: {denizen: {token: '${T}'}}"
    lines = "".join(f"    {line}\n" for line in (account, *conduct.splitlines()))
    (login,) = home.load(f"channels:\n  discord:\n{lines}", T="token").discord_accounts
    return login.account_policy


@pytest.mark.proves("T-config-discord", "T34")
def test_an_account_needs_a_token_only_and_answers_mentions_and_direct_messages_everywhere(home: Home):
    settings = home.load("channels: {discord: {accounts: {denizen: '${T}'}}}", T="token-1")
    assert settings.channels.discord.enabled is True
    (login,) = settings.discord_accounts
    assert (login.agent, login.token, login.account_policy, login.commands_guild) == (
        "denizen",
        "token-1",
        AccountPolicy(),
        "",
    )
    assert (login.account_policy.triggers.direct_messages, login.account_policy.triggers.mentions) == (True, True)
    assert (login.account_policy.staff.owners, login.account_policy.scope) == (frozenset[str](), AccountScope())


@pytest.mark.proves("T-config-discord", "T34")
def test_owner_guilds_and_the_switches_for_direct_messages_and_mentions_are_settings(home: Home):
    found = account_policy(home, "owners: ['42']\nguilds: ['7']\ndirect_messages: false\nmentions: false")
    assert (found.staff.owners, found.scope.guilds) == ({"42"}, {"7"})
    assert (found.triggers.direct_messages, found.triggers.mentions) == (False, False)
    off = home.load("channels: {discord: {enabled: false, accounts: {denizen: '${T}'}}}", T="token")
    assert off.discord_accounts == ()


@pytest.mark.proves("C-config-channels", "C20", "C21")
def test_every_key_of_the_section_reaches_the_policy(home: Home):
    found = account_policy(
        home,
        """\
owners: [1]
admins: [2]
admin_roles: [3]
guilds: [4]
channels: [5]
users: [6]
roles: [7]
direct_messages: false
mentions: false
replies: false
mention_roles: [8]
keywords: ['^hey\\b']
always_channels: [9]
threads: open
max_exchanges: 5
max_exchange_usd: 0.5
eagerness: 90
missed_limit_minutes: 1.5
edit_window_s: 10
message_limit: 1900
keep_blank_lines: true
preview: false
reactions: {seen: 🤔, done: '<:ok_hand:123>', failed: ''}
error_message: Sorry.
failure_text: false
greeting: Yes?
switchable: [denizen]""",
    )
    assert found == AccountPolicy(
        staff=AccountStaff(owners=frozenset({"1"}), admins=frozenset({"2"}), admin_roles=frozenset({"3"})),
        scope=AccountScope(frozenset({"4"}), frozenset({"5"}), frozenset({"6"}), frozenset({"7"})),
        triggers=TriggerPolicy(
            direct_messages=False,
            mentions=False,
            replies=False,
            mention_roles=frozenset({"8"}),
            keywords=(re.compile(r"^hey\b", re.IGNORECASE),),
            always_channels=frozenset({"9"}),
            threads=ThreadMode.OPEN,
        ),
        limits=ConversationLimits(
            max_exchanges=5, max_exchange_usd=Decimal("0.5"), missed_limit_s=90.0, edit_window_s=10
        ),
        eagerness=90,
        style=ReplyStyle(
            message_limit=1900,
            keep_blank_lines=True,
            preview=False,
            reactions=Reactions(seen="🤔", done="<:ok_hand:123>", failed=""),
            error_message="Sorry.",
            failure_text=False,
            greeting="Yes?",
        ),
        switchable=frozenset({"denizen"}),
    )
    topics = (found.staff, found.scope, found.triggers, found.limits, found.style)
    changed = [(topic, type(topic)()) for topic in topics] + [(found, AccountPolicy())]
    usual = {
        each.name
        for topic, default in changed
        for each in fields(topic)
        if getattr(topic, each.name) == getattr(default, each.name)
    }
    assert usual == {"asks_here", "tells_refusals"}  # what the platform can do, and nobody configures


@pytest.mark.proves("V12", "C-config-channels", "C15", "C21")
def test_the_defaults_of_the_file_are_those_of_the_policy(home: Home):
    assert account_policy(home, "") == AccountPolicy()
    assert AccountPolicy().style.preview


@pytest.mark.proves("C-config-exchanges")
def test_three_exchanges_between_agents_are_the_default_and_another_number_can_be_set(home: Home):
    assert account_policy(home, "").limits.max_exchanges == 3
    assert account_policy(home, "max_exchanges: 1").limits.max_exchanges == 1
    assert account_policy(home, "max_exchanges: 0").limits.max_exchanges == 0


@pytest.mark.proves("C-config-message-limit")
def test_answers_are_split_at_2000_characters_or_at_a_lower_number_and_never_at_a_higher_one(home: Home):
    assert account_policy(home, "").style.message_limit == 2000
    assert account_policy(home, "message_limit: 50").style.message_limit == 50
    error = home.refuse("channels: {discord: {message_limit: 2001}}")
    assert "channels.discord.message_limit: must be between 50 and 2000" in error.message


@pytest.mark.proves("L-config-error-message")
def test_the_text_of_a_failure_is_a_setting(home: Home):
    assert account_policy(home, "").style.error_message == ""
    assert account_policy(home, "error_message: Something broke.").style.error_message == "Something broke."


@pytest.mark.proves("L-config-guild")
def test_commands_can_be_kept_to_one_guild(home: Home):
    settings = home.load("channels: {discord: {commands_guild: 77, accounts: {denizen: '${T}'}}}", T="token")
    assert settings.discord_accounts[0].commands_guild == "77"


def test_ids_may_be_written_with_quotes_or_without_and_none_of_their_digits_is_lost(home: Home):
    found = account_policy(home, "users: [18446744073709551615, '18446744073709551614']")
    assert found.scope.users == {"18446744073709551615", "18446744073709551614"}


def test_an_id_may_come_from_the_environment(home: Home):
    text = "channels: {discord: {owners: ['${ME}'], accounts: {denizen: '${T}'}}}"
    assert home.load(text, ME="12345", T="token").discord_accounts[0].account_policy.staff.owners == {"12345"}


def test_a_keyword_is_found_in_any_case(home: Home):
    (keyword,) = account_policy(home, r"keywords: ['\bdenizen\b']").triggers.keywords
    assert keyword.search("Is DENIZEN here?")
    assert not keyword.search("denizens")


def test_accounts_share_what_stands_beside_them_and_override_it_for_themselves(home: Home):
    settings = home.using(TOKENS).load(
        TWO
        + """\
channels:
  discord:
    owners: [1]
    max_exchanges: 5
    commands_guild: 9
    reactions: {seen: 🤔, failed: ❌}
    accounts:
      ada: "${ADA}"
      bert: {token: "${BERT}", owners: [], max_exchanges: 3, commands_guild: '', reactions: {done: ''}}
"""
    )
    ada, bert = settings.discord_accounts
    assert (ada.account_policy.staff.owners, ada.account_policy.limits.max_exchanges, ada.commands_guild) == (
        {"1"},
        5,
        "9",
    )
    assert (bert.account_policy.staff.owners, bert.account_policy.limits.max_exchanges, bert.commands_guild) == (
        frozenset[str](),
        3,
        "",
    )
    assert ada.account_policy.style.reactions == Reactions(seen="🤔", done="👍", failed="❌")
    assert bert.account_policy.style.reactions == Reactions(seen="🤔", done="", failed="❌"), (
        "within a group, too, only what is written counts"
    )


def test_an_account_may_have_every_key_of_the_conduct(home: Home):
    common = home.load("channels: {discord: {accounts: {denizen: '${T}'}}}", T="t").channels.discord
    values = {name: getattr(common, name) for name in DiscordPolicySection.model_fields}
    assert (
        set(values) == set(DiscordPolicySection.model_fields) >= {"owners", "reactions", "greeting", "commands_guild"}
    )
    for key in ("api_url", "gateway_url", "enabled", "accounts"):
        error = home.refuse(f"channels: {{discord: {{accounts: {{denizen: {{token: '${{T}}', {key}: ''}}}}}}}}", T="t")
        assert f"accounts.denizen.{key}: this key is not known" in error.message


@pytest.mark.proves("C-config-agent", "L-config-required")
def test_an_agent_whose_token_is_not_set_is_left_out_with_a_notice_and_the_others_stay(home: Home):
    settings = home.load(BOTH, BERT="token-of-bert")
    assert [login.agent for login in settings.discord_accounts] == ["bert"]
    (warning,) = settings.warnings
    assert (warning.variable, warning.line) == ("ADA", 3)
    assert str(warning).endswith("the variable ADA is not set, so 'ada' stays away from Discord.")
    assert "ADA=..." in warning.fix


@pytest.mark.proves("C-config-agent")
@pytest.mark.parametrize(
    "account", ["", "{}", "''", "{token: ''}", "{owners: [1]}", "${TOKEN:-}", "{token: '${TOKEN:-}'}"]
)
def test_an_account_without_a_token_is_left_out_with_a_notice(home: Home, account: str):
    settings = home.load(f"channels:\n  discord:\n    accounts:\n      denizen: {account}\n")
    assert settings.discord_accounts == ()
    (warning,) = settings.warnings
    assert str(warning).endswith(
        "denizen.yaml:4:7: channels.discord.accounts.denizen: there is no token, so 'denizen' stays away from Discord."
    )
    assert "TOKEN" in warning.fix


def test_an_optional_token_that_is_set_is_used(home: Home):
    settings = home.load("channels: {discord: {accounts: {denizen: '${TOKEN:-}'}}}", TOKEN="token")
    assert [login.token for login in settings.discord_accounts] == ["token"]
    assert settings.warnings == ()


def test_a_token_may_come_from_the_secrets_file(home: Home):
    home.add_file("secrets.env", "T=from-the-file\n", mode=0o600)
    assert home.load("channels: {discord: {accounts: {denizen: '${T}'}}}").discord_accounts[0].token == "from-the-file"


def test_discord_that_is_switched_off_has_no_accounts_and_gives_no_notice_for_them(home: Home):
    settings = home.using(TOKENS).load(BOTH.replace("{accounts", "{enabled: false, accounts"))
    assert (settings.discord_accounts, settings.warnings) == ((), ())
    assert home.load("channels: {discord: {enabled: false, accounts: {denizen: {}}}}").warnings == ()


@pytest.mark.proves("C-config-agent")
@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("bert: {}", "there is no agent 'ada'"),
        ("'': {}", "this cannot be the name of an agent"),
        ("ada: {model: ''}", "there is no alias ''"),
        ("ada: {model: lab/one}", "names a provider that is not configured"),
        ("ada: {model: nobody}", "there is no alias 'nobody'"),
    ],
)
def test_an_account_needs_an_agent_with_a_model_of_a_provider(home: Home, agent: str, says: str):
    text = f"agents: {{{agent}}}\nchannels: {{discord: {{accounts: {{ada: '${{T}}'}}}}}}"
    assert says in home.refuse(text, T="token").explain()


@pytest.mark.proves("C-config-agent")
def test_what_an_account_answers_with_is_the_agents_own_configuration(home: Home):
    settings = home.load("agents: {ada: {model: fast}}\nchannels: {discord: {accounts: {ada: '${T}'}}}", T="token")
    agent = settings.agents[settings.discord_accounts[0].agent]
    assert (agent.name, agent.model, settings.models.aliases["fast"].model) == ("ada", "fast", "builtin/default")


@pytest.mark.parametrize("token", ["${MISSING}", "${T}"])
def test_an_account_of_an_agent_that_does_not_exist_is_an_error_with_or_without_its_token(home: Home, token: str):
    error = home.refuse(f"{TWO}channels:\n  discord:\n    accounts:\n      bart: {token}\n", T="token")
    assert error.message.startswith(f"{home.config}:6:7: channels.discord.accounts.bart: there is no agent 'bart'")
    assert error.fix == "Did you mean 'bert'? Known agents: ada, bert."


def test_one_token_for_two_agents_is_an_error(home: Home):
    error = home.refuse(BOTH, ADA="the-same-token", BERT="the-same-token")
    assert "channels.discord.accounts.bert: this is the token of 'ada' too." in error.message
    assert "a bot of its own" in error.fix
    assert "the-same-token" not in error.explain()


def test_by_default_the_address_is_that_of_discord(home: Home):
    endpoints = home.load("").discord_endpoints
    assert (endpoints.api_url, endpoints.gateway_url, endpoints.are_own) == ("https://discord.com/api/v10", "", False)


def test_the_addresses_can_be_set_in_the_file_and_the_environment_goes_before_it(home: Home):
    text = "channels: {discord: {api_url: 'http://file/api', gateway_url: 'ws://file/gateway'}}"
    assert home.load(text).discord_endpoints.api_url == "http://file/api"
    found = home.load(text, DENIZEN_DISCORD_API_URL="http://env/api", DENIZEN_DISCORD_GATEWAY_URL="wss://env/gateway")
    endpoints = found.discord_endpoints
    assert (endpoints.api_url, endpoints.gateway_url, endpoints.are_own) == (
        "http://env/api",
        "wss://env/gateway",
        True,
    )


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("DENIZEN_DISCORD_API_URL", "nowhere:9200", "begins with http:// or https://"),
        ("DENIZEN_DISCORD_GATEWAY_URL", "http://nowhere", "begins with ws:// or wss://"),
    ],
)
def test_an_address_in_the_environment_that_is_none_is_refused_and_not_quoted(
    home: Home, variable: str, value: str, says: str
):
    error = home.using({variable: value}).refuse("")
    assert f"the variable {variable} must be an address that {says}" in error.message
    assert value not in error.explain()


# (what it is, lines below channels.discord, where, what the error says, what the fix says)
BAD = [
    ("unknown key", "ownrs: []", "ownrs", "this key is not known", "Did you mean 'owners'?"),
    ("unknown key of an account", "accounts: {ada: {tokn: x}}", "accounts.ada.tokn", "is not known", "'token'"),
    ("unknown reaction", "reactions: {sen: ''}", "reactions.sen", "is not known", "Did you mean 'seen'?"),
    ("name for an id", "owners: [ada]", "owners[0]", "not an id of Discord", "Copy ID"),
    ("mention for an id", "users: ['<@42>']", "users[0]", "not an id of Discord", "Copy ID"),
    ("id that is too long", "roles: ['123456789012345678901']", "roles[0]", "not an id of Discord", "Copy ID"),
    ("negative id", "guilds: [-1]", "guilds[0]", "not an id of Discord", "Copy ID"),
    ("empty id", "channels: ['']", "channels[0]", "not an id of Discord", "Copy ID"),
    ("foreign digits", "admins: ['١٢٣']", "admins[0]", "not an id of Discord", "Copy ID"),
    ("fraction for an id", "admins: [1.5]", "admins[0]", "must be a text, not a number", "quotes"),
    ("yes for an id", "admin_roles: [true]", "admin_roles[0]", "must be a text", "quotes"),
    ("one id for a list", "always_channels: '42'", "always_channels", "must be a list, not a text", "[one, two]"),
    ("guild of commands", "commands_guild: home", "commands_guild", "not an id of Discord", "Copy ID"),
    ("id of an account", "accounts: {ada: {mention_roles: [x]}}", "accounts.ada.mention_roles[0]", "not an id", "Copy"),
    ("keyword", "keywords: ['(']", "keywords[0]", "not a regular expression", "Correct it"),
    ("empty keyword", "keywords: ['']", "keywords[0]", "is in every message", "always_channels"),
    ("keyword of all", "keywords: ['.*']", "keywords[0]", "is in every message", "always_channels"),
    ("threads", "threads: folow", "threads", "'folow' is not possible", "Did you mean 'follow'?"),
    ("exchanges below", "max_exchanges: -1", "max_exchanges", "must be between 0 and 100", "bounds"),
    ("exchanges above", "max_exchanges: 101", "max_exchanges", "must be between 0 and 100", "bounds"),
    ("missed", "missed_limit_minutes: -1", "missed_limit_minutes", "must be between 0 and 10080", "bounds"),
    ("edit window", "edit_window_s: 3601", "edit_window_s", "must be between 0 and 3600", "bounds"),
    ("limit below", "message_limit: 49", "message_limit", "must be between 50 and 2000", "bounds"),
    (
        "limit of an account",
        "accounts: {ada: {message_limit: 1}}",
        "accounts.ada.message_limit",
        "between 50",
        "bounds",
    ),
    ("emoji by name", "reactions: {seen: ':eyes:'}", "reactions.seen", "not an emoji", "the emoji itself"),
    ("words for an emoji", "reactions: {failed: 'oh nö'}", "reactions.failed", "not an emoji", "<:name:id>"),
    ("long error", f"error_message: {'x' * 2001}", "error_message", "at most 2000 characters", "Shorten it"),
    ("empty greeting", "greeting: ' '", "greeting", "must not be empty", "take the key out"),
    ("switchable", "switchable: [adda]", "switchable[0]", "there is no agent 'adda'", "Did you mean 'ada'?"),
    ("switchable of one", "accounts: {ada: {switchable: [b]}}", "accounts.ada.switchable[0]", "no agent 'b'", "ada"),
    ("api", "api_url: localhost", "api_url", "must be a web address", "in full"),
    ("api as a websocket", "api_url: ws://localhost", "api_url", "must be a web address", "in full"),
    ("gateway", "gateway_url: http://localhost", "gateway_url", "the address of a websocket", "ws://"),
    ("enabled", "enabled: 7", "enabled", "must be true or false", "true or false"),
    ("accounts as a list", "accounts: [ada]", "accounts", "must be a group of keys, not a list", "key: value"),
    (
        "account as a number",
        "accounts: {ada: 7}",
        "accounts.ada",
        "must be a group of keys, not a number",
        "key: value",
    ),
    ("token", "accounts: {ada: {token: abc}}", "accounts.ada.token", "a secret must not stand", "${DISCORD_TOKEN_ADA}"),
    ("token alone", "accounts: {ada: abc}", "accounts.ada.token", "a secret must not stand", "${DISCORD_TOKEN_ADA}"),
    ("token in part", "accounts: {ada: 'Bot ${X}'}", "accounts.ada.token", "a secret", "${DISCORD_TOKEN_ADA}"),
    ("token as default", "accounts: {ada: '${X:-abc}'}", "accounts.ada.token", "a secret", "${DISCORD_TOKEN_ADA}"),
]


@pytest.mark.parametrize(("line", "where", "says", "fix"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_wrong_line_is_named_with_its_remedy(home: Home, line: str, where: str, says: str, fix: str):
    error = home.refuse(f"agents: {{ada: {{}}}}\nchannels:\n  discord:\n    {line}\n")
    assert error.message.startswith(f"{home.config}:4:"), error.explain()
    assert f": channels.discord.{where}: " in error.message
    assert says in error.message
    assert fix in error.fix


def test_a_bot_token_is_recognised_wherever_it_is_pasted(home: Home):
    token = ".".join(("MTIzNDU2Nzg5MDEyMzQ1Njc4", "GaBcDe", "abcdefghijklmnopqrstuvwxyz0123456789AB"))
    error = home.refuse(f"agents: {{denizen: {{description: {token}}}}}")
    assert "a secret must not stand in this file" in error.message
    assert token not in error.explain()


def test_an_account_is_shown_with_what_is_its_own_and_what_is_shown_means_the_same(home: Home):
    settings = home.using(TOKENS).load(BOTH.replace('"${BERT}"', '{token: "${BERT}", reactions: {done: 👍}}'))
    rendered = render_settings(settings)
    assert "      ada:\n        token: ${ADA}\n      bert:\n        token: ${BERT}\n        reactions:\n" in rendered
    again = home.using(TOKENS).load(rendered)
    assert again.discord_accounts == settings.discord_accounts
    assert again.config == settings.config


def test_no_token_is_in_anything_that_is_made_of_the_settings(home: Home):
    settings = home.using(TOKENS).load(
        BOTH.replace("{accounts", '{error_message: "${ADA}", keywords: ["${BERT}"], accounts')
    )
    shown = (settings, settings.config, settings.discord_accounts, settings.discord_endpoints, settings.document.tree)
    for text in (*(repr(each) for each in shown), render_settings(settings), settings.digest):
        assert "token-of" not in text
    assert settings.secrets.mask("sent token-of-ada and token-of-bert") == "sent *** and ***"
