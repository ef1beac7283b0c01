"""What a server that is put together as `denizen run` does it answers by HTTP, where other tests have parts of it."""

from __future__ import annotations

import pytest

from tests.app.home_folder import LAB, Home
from tests.app.server_fixture import open_server
from tests.web.api.test_chats import events

pytestmark = pytest.mark.anyio

DISK = """
commands:
  disk: {description: Says how full it is., shell: [/bin/echo, full of, "{{input}}"]}
gate:
  rules: [{tool: command_disk, action: approve}]
"""


@pytest.mark.proves("T-http-command")
async def test_the_program_of_a_command_runs_and_its_output_is_streamed(home: Home) -> None:
    async with open_server(home, LAB + DISK) as server, server.client() as client:
        output, end = events(await client.post("/api/command", json={"input": "/disk tea; rm -r $HOME"}))
    assert output == {"type": "shell_output", "text": "full of tea; rm -r $HOME", "is_error": False, "truncated": False}
    assert (end["type"], end["is_failure"]) == ("command", False)
