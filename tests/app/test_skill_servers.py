"""Servers that a skill's settings name: they alone are reachable, and an address that is none stops nothing."""

import pytest

from denizen.adapters.fetch.addresses import AllowList
from denizen.app.build import OpenOptions, open_denizen
from denizen.app.reload import Reloader
from denizen.app.toolsets import list_named_servers
from denizen.domain.errors import InvalidInput
from tests.app.home_folder import Home


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://weather.lan:8080/v1", "weather.lan", 8080),
        ("https://weather.lan/v1", "weather.lan", 443),
        ("http://127.0.0.1", "127.0.0.1", 80),
        ("http://[::1]:8080/v1", "::1", 8080),
    ],
)
def test_a_named_server_is_opened_at_its_port_and_nothing_else_is(url: str, host: str, port: int) -> None:
    allowed = AllowList(list_named_servers({"forecast_url": url, "units": "metric"}))
    assert allowed.names(host, port)
    assert not allowed._networks
    assert len(allowed._pairs) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("bad", ["http://weather.lan:99999/", "http://[::1/", "http://", "http://weather.lan:x/"])
async def test_an_address_that_is_none_is_a_fault_of_the_configuration_and_does_not_end_the_server(
    home: Home, bad: str
) -> None:
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        before = denizen.runtime.current
        home.write(f"tools: {{weather: {{forecast_url: '{bad}'}}}}\n")
        with pytest.raises(InvalidInput):
            await Reloader(denizen).reload()
        assert denizen.runtime.current is before
