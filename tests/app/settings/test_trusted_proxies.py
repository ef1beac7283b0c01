"""Reverse proxies are named by their addresses."""

import pytest

from tests.app.home_folder import Home


@pytest.mark.parametrize("proxy", ["proxy.example.org", "10.0.0.0/99", "*", ""])
def test_a_proxy_that_is_no_address_or_network_is_refused(home: Home, proxy: str) -> None:
    error = home.refuse(f"server: {{trusted_proxies: ['{proxy}']}}\n")
    assert "server.trusted_proxies" in error.message
    assert "172.18.0.0/16" in error.fix


@pytest.mark.parametrize("proxy", ["10.0.0.5", "172.18.0.1/16", "2001:db8::/32"])
def test_an_address_or_network_is_taken(home: Home, proxy: str) -> None:
    assert home.load(f"server: {{trusted_proxies: ['{proxy}']}}\n").server.trusted_proxies == (proxy,)
