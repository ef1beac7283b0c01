"""Who may have an account, and with which sites people sign in: the keys of `server`."""

import pytest

from denizen.adapters.sign_in import GITHUB, OAuthApplication
from denizen.app.users import build_users, read_admins
from denizen.domain.rate_limit import DAY_S, RateLimit
from tests.app.home_folder import LAB, Home, open_home

CONFIG = """
server:
  public_url: https://chat.example.org
  registration: open
  admins: [Ann@Example.org, octo, "discord:ann"]
  limits: {messages_per_day: 3}
  sign_in:
    github: {client_id: abc, client_secret: "${GITHUB_SECRET}"}
"""


def test_the_keys_are_read(home: Home) -> None:
    server = home.using({"GITHUB_SECRET": "s3cret"}).load(CONFIG).server
    assert (server.public_url, server.registration) == ("https://chat.example.org", "open")
    assert read_admins(server.admins) == {"ann@example.org", "github:octo", "discord:ann"}
    assert server.sign_in.github is not None and server.sign_in.github.client_id == "abc"
    assert server.sign_in.discord is None


@pytest.mark.anyio
@pytest.mark.proves("S-auth-sign-in")
async def test_people_sign_in_with_the_application_at_github_that_is_configured(home: Home) -> None:
    home.add_file("secrets.env", "GITHUB_SECRET=s3cret\n", 0o600)
    async with open_home(home, LAB + CONFIG) as denizen:
        assert build_users(denizen).providers() == {"github": OAuthApplication(GITHUB, "abc", "s3cret")}


def test_by_default_people_are_invited_and_have_fifteen_messages_a_day(home: Home) -> None:
    server = home.load("").server
    assert (server.registration, server.admins, server.limits.messages_per_day) == ("invite", (), 15)


@pytest.mark.anyio
@pytest.mark.parametrize(("messages", "limits"), [(3, (RateLimit(3, DAY_S),)), (0, ())])
async def test_the_messages_a_day_are_a_limit_of_members(
    home: Home, messages: int, limits: tuple[RateLimit, ...]
) -> None:
    home.write(f"server: {{limits: {{messages_per_day: {messages}}}}}\n")
    async with open_home(home, f"{LAB}\nserver: {{limits: {{messages_per_day: {messages}}}}}\n") as denizen:
        assert denizen.runtime.current.policy.rate_limits.per_member == limits


@pytest.mark.parametrize(
    ("written", "key", "fix"),
    [
        ("public_url: chat.example.org", "server.public_url", "https://"),
        ("public_url: https://chat.example.org/path", "server.public_url", "https://"),
        ("registration: all", "server.registration", "invite"),
        ("limits: {messages_per_day: -1}", "messages_per_day", ""),
        ("sign_in: {github: {client_id: a}}", "client_secret", ""),
        ("sign_in: {github: {client_id: a, client_secret: '${X:-}'}}", "client_secret", "without a default"),
        ("sign_in: {google: {client_id: a}}", "google", ""),
    ],
)
def test_what_cannot_be_meant_is_refused(home: Home, written: str, key: str, fix: str) -> None:
    error = home.refuse(f"server: {{{written}}}\n")
    assert key in error.message
    assert fix in error.fix


def test_a_secret_in_plain_text_is_refused_and_not_repeated(home: Home) -> None:
    error = home.refuse("server: {sign_in: {github: {client_id: a, client_secret: hunter2hunter2}}}\n")
    assert "client_secret" in error.message
    assert "hunter2" not in error.explain()
