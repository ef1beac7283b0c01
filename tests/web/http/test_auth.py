"""Keys, sign-ins, and the rule that nobody listens beyond loopback without keys."""

from datetime import UTC, datetime, timedelta

import pytest

from denizen.domain.errors import NeedsAttention
from denizen.domain.principal import PrincipalKind
from denizen.web.http.auth import (
    LOGIN_LIFETIME,
    MAX_LOGINS,
    ApiKey,
    LoginSessions,
    check_exposure,
    find_key,
    is_loopback,
    read_credentials,
)
from tests.web_fixture import ADA, ANN, BEN, open_web

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
KEYS = [ANN, BEN, ADA]


@pytest.mark.parametrize(("text", "found"), [("key-of-ben", BEN), ("key-of-be", None), ("", None)])
def test_a_key_is_found_by_its_whole_text(text: str, found: object) -> None:
    assert find_key(KEYS, text) == found


def test_a_key_keeps_a_digest_and_not_its_text() -> None:
    assert "key-of-ann" not in repr(ANN)
    assert len(ANN.digest) == 32


@pytest.mark.proves("TW8")
def test_a_key_names_its_principal_and_carries_its_roles() -> None:
    principal = ADA.principal
    assert (principal.kind, principal.id, principal.roles) == (PrincipalKind.API_KEY, "ada", frozenset({"admin"}))


@pytest.mark.proves("S-auth-api-keys")
@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"authorization": "Bearer abc"}, "abc"),
        ({"authorization": "bearer  abc "}, "abc"),
        ({"x-api-key": "abc"}, "abc"),
        ({"authorization": "Basic abc", "x-api-key": "def"}, "def"),
        ({"authorization": "Bearer abc", "x-api-key": "def"}, "abc"),
        ({"authorization": "Bearer "}, ""),
        ({}, ""),
    ],
)
def test_a_key_comes_as_bearer_or_as_x_api_key(headers: dict[str, str], text: str) -> None:
    assert read_credentials(headers) == text


@pytest.mark.proves("S-auth-api-keys")
@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/api/agents", "/v1/models"])
async def test_every_client_may_send_its_key_either_way(path: str) -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        for headers, status in (
            ({"authorization": "Bearer key-of-ann"}, 200),
            ({"x-api-key": "key-of-ann"}, 200),
            ({"authorization": "Bearer wrong"}, 401),
            ({"x-api-key": "wrong"}, 401),
            ({}, 401),
        ):
            assert (await client.get(path, headers=headers)).status_code == status, headers


def test_a_sign_in_stands_for_its_key_until_it_ends() -> None:
    logins = LoginSessions()
    token = logins.open(ANN, now=NOW)
    assert logins.find(token, KEYS, now=NOW + LOGIN_LIFETIME - timedelta(seconds=1)) == ANN
    assert logins.find(token, KEYS, now=NOW + LOGIN_LIFETIME) is None
    assert logins.find(token, KEYS, now=NOW) is None, "an ended sign-in does not come back"


def test_a_sign_in_ends_with_its_key() -> None:
    logins = LoginSessions()
    token = logins.open(ANN, now=NOW)
    assert logins.find(token, [BEN, ADA], now=NOW) is None


def test_signing_out_ends_a_sign_in_and_no_other() -> None:
    logins = LoginSessions()
    first, second = logins.open(ANN, now=NOW), logins.open(ANN, now=NOW)
    logins.close(first)
    assert logins.find(first, KEYS, now=NOW) is None
    assert logins.find(second, KEYS, now=NOW) == ANN


def test_the_oldest_sign_in_makes_room_when_there_are_many() -> None:
    logins = LoginSessions()
    tokens = [logins.open(ANN, now=NOW) for _ in range(MAX_LOGINS + 1)]
    assert logins.find(tokens[0], KEYS, now=NOW) is None
    assert logins.find(tokens[1], KEYS, now=NOW) == ANN


def test_tokens_do_not_tell_the_key() -> None:
    assert "key-of-ann" not in LoginSessions().open(ANN, now=NOW)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LocalHost"])
def test_loopback_hosts_need_no_key(host: str) -> None:
    assert is_loopback(host)
    check_exposure(host, [], has_pages=False)


@pytest.mark.proves("TW3", "T-config-server")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.4", "example.org", "127.0.0.1.example.org"])
def test_listening_beyond_loopback_with_neither_keys_nor_a_page_to_sign_in_is_refused_with_the_fix(host: str) -> None:
    with pytest.raises(NeedsAttention) as caught:
        check_exposure(host, [], has_pages=False)
    assert caught.value.code == "server_exposed"
    assert "server.api_keys" in caught.value.fix
    check_exposure(host, [ApiKey.from_text("ann", "0123456789abcdef")], has_pages=False)
    check_exposure(host, [], has_pages=True)


def test_listening_beyond_loopback_with_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(NeedsAttention) as caught:
        check_exposure("0.0.0.0", [ApiKey.from_text("long", "0123456789abcdef"), ANN], has_pages=True)
    assert (caught.value.code, "'ann'" in caught.value.message) == ("key_too_short", True)
    check_exposure("127.0.0.1", [ANN], has_pages=True)
