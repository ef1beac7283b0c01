"""Which other sites may use the API is said site by site."""

import pytest

from tests.app.home_folder import Home


@pytest.mark.parametrize(
    "origin", ["*", "https://*", "null", "chat.example", "https://chat.example/", "https://a b", ""]
)
def test_every_site_and_what_is_no_site_are_refused(home: Home, origin: str) -> None:
    error = home.refuse(f"server: {{cors_origins: ['{origin}']}}\n")
    assert "server.cors_origins" in error.message
    assert "https://chat.example.org" in error.fix


@pytest.mark.parametrize("origin", ["https://chat.example", "http://localhost:3000", "http://[::1]:3000"])
def test_an_origin_as_browsers_send_it_is_taken(home: Home, origin: str) -> None:
    assert home.load(f"server: {{cors_origins: ['{origin}']}}\n").server.cors_origins == (origin,)
