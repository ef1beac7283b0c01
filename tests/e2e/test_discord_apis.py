"""An API is registered and called on Discord; what changes something waits for an owner, and nothing shows the key."""

from __future__ import annotations

import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment
from tests.local_server import serve

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

KEY = "t0p-" + "s3cret-0815"
CONFIG = """\
tools:
  apis:
    enabled: true
    server: {url}
    keys:
      tracker: {{host: 127.0.0.1, value: "Bearer ${{TRACKER_KEY}}"}}
"""


@pytest.mark.proves("V32")
async def test_an_api_is_registered_read_and_written_to_with_a_key_that_nothing_shows(
    deployment: DiscordDeployment,
) -> None:
    with serve({"/v1/items": lambda exchange: exchange.say(f"by {exchange.headers['Authorization']}")}) as server:
        deployment.configure(
            conduct=[f'owners: ["{deployment.ana.id}"]'],
            providers={"tracker": server.url("")},
            keys={"tracker": KEY},
            rest=CONFIG.format(url=server.url("")),
        )
        register = {"name": "tracker", "base_url": server.url("/v1"), "key": "tracker"}
        deployment.script(
            ModelAnswer(calls=[ModelCall("register_api", register)]),
            ModelAnswer(calls=[ModelCall("call_api", {"name": "tracker", "path": "items"})]),
            ModelAnswer(calls=[ModelCall("send_to_api", {"name": "tracker", "path": "items", "method": "DELETE"})]),
            "All done.",
        )
        async with deployment.run():
            deployment.ask(deployment.ana, "register the tracker, read its items and delete them")
            first = await deployment.find_card()
            assert not server.requests
            await deployment.press(deployment.ana, first, "Approve")
            await deployment.until(lambda: len([each for each in deployment.posts() if "send_to_api" in each.content]))
            assert [each.method for each in server.requests] == ["GET"]
            second = next(each for each in deployment.posts() if "send_to_api" in each.content)
            await deployment.press(deployment.ana, second, "Approve")
            await deployment.until(lambda: "All done." in deployment.said())
        assert [each.method for each in server.requests] == ["GET", "DELETE"]
        assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {KEY}"}
    assert "by ***" in str(deployment.requests[-1])
    shown = [str(each) for each in deployment.requests] + deployment.said() + [deployment.denizens[0].log]
    kept = [file.read_bytes() for file in deployment.home.folder.rglob("*") if file.is_file()]
    assert not [text for text in shown if KEY in text]
    assert len([data for data in kept if KEY.encode() in data]) == 1  # secrets.env
