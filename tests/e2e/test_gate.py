"""The gate from the command line: what becomes of calls is shown, missing rules are told, the observer is switched."""

from __future__ import annotations

import pytest

from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

GATE = """\
gate:
  tiers: {calculator: 3, weather: 2}
  roles: {weather: [admin]}
  rules: [{tool: fetch_url, action: deny}]
  observer: {model: balanced}
"""


def test_tools_are_listed_with_what_becomes_of_their_calls_and_why(home: Home, provider: Provider) -> None:
    home.configure(f"{provider.server.url}/v1", rest=GATE)
    listed = home.do("tools").out
    assert "observer: tier 3 by gate.tiers (declared: 0)" in listed
    assert "observer: tier 2 by gate.tiers (declared: 1); for admin only; reads foreign text (web)" in listed
    assert "never: declared as tier 1; 1 rule; reads foreign text (web); a rule denies every call" in listed
    assert "run: declared as tier 1; remembers, so people are asked after foreign text" in listed
    examined = home.do("doctor", "--offline").out
    assert "warn  tools of tier 3 without a rule: calculator" in examined


@pytest.mark.proves("V22")
def test_the_observer_is_switched_off_from_the_terminal_and_stays_off(home: Home, provider: Provider) -> None:
    home.configure(f"{provider.server.url}/v1", rest=GATE)
    told = home.do("chat", stdin="/observer status\n/observer disable\n").out
    assert "The observer is on" in told
    assert "people: tier 3 by gate.tiers (declared: 0); no observer looks at calls" in home.do("tools").out
    assert "switched off" in home.do("chat", stdin="/observer\n").out
    assert "The observer is on" in home.do("chat", stdin="/observer enable\n").out
