"""The MCP servers of a home folder on their pages, with real programs: state, output, restart, adding after a check."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.app.component_web_fixture import ComponentWebFixture, open_components, read_words
from tests.app.home_folder import LAB, Home
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("mcp")]

QUICK = Path(__file__).parent.parent / "adapters" / "mcp" / "quick_server.py"
SECRET = "sk-abcdefghijklmnopqrst"
BROKEN = "import os, sys; print('no luck with', os.environ['WORD'], file=sys.stderr); sys.exit(3)"


def configure(home: Home, more: str = "") -> str:
    (home.path / "starts.txt").touch()
    return f"""# Ours.
{LAB}
mcp:
  servers:
    small:
      command: {sys.executable}
      args: ["{QUICK}"]
      env: {{STARTS: "{home.path / "starts.txt"}", TOKEN: "${{SMALL_TOKEN}}"}}
{more}"""


async def wait_for(server: ComponentWebFixture, path: str, words: str) -> str:
    """The words of a page, once it shows these among them."""
    with anyio.fail_after(HANG_LIMIT_S):
        while True:
            text = read_words(await server.ada.read(path))
            if re.search(words, text):
                return text
            await anyio.lowlevel.checkpoint()


async def test_a_server_is_shown_with_state_tools_and_output_restarted_and_switched_off_and_on(home: Home) -> None:
    home.add_file("secrets.env", f"SMALL_TOKEN={SECRET}\n", 0o600)
    async with open_components(home, configure(home)) as server:
        path, starts = "/admin/mcp/servers/small", home.path / "starts.txt"
        assert "idle" in await wait_for(server, "/admin/mcp", "small")
        await server.ada.send(f"{path}/restart")
        up = await wait_for(server, path, "up since")
        assert "small 1.2.3" in up and "small_roll tier 3" in up
        assert "TOKEN from SMALL_TOKEN" in up
        assert (starts.read_text().split(), SECRET in up) == (["start"], False)
        assert (await server.ada.send(f"{path}/restart")).status_code == 303
        await wait_for(server, path, "Connections made 2")
        assert starts.read_text().split() == ["start", "start"]
        assert (await server.ada.send(f"{path}/switch", off="yes")).status_code == 403
        await server.olga.send(f"{path}/switch", off="yes")
        off = await wait_for(server, path, "State off")
        assert "Restart" not in off
        assert (await server.ada.send(f"{path}/restart")).status_code == 400
        await server.olga.send(f"{path}/switch", on="yes")
        await wait_for(server, path, "up since")
        assert server.text.startswith("# Ours.")
        assert (await server.olga.send(f"{path}/remove")).headers["location"] == "/admin/mcp?done=removed"
        assert "small" not in server.text
        assert (await server.olga.send(f"{path}/restart")).status_code == 404


async def test_a_server_that_ends_shows_why_and_what_it_wrote_without_its_secrets(home: Home) -> None:
    home.add_file("secrets.env", f"SMALL_TOKEN={SECRET}\n", 0o600)
    more = f"""    broken:
      command: {sys.executable}
      args: ["-c", "{BROKEN}"]
      env: {{WORD: "${{SMALL_TOKEN}}"}}
    literal:
      command: {sys.executable}
      args: ["-c", "{BROKEN}"]
      env: {{WORD: plain-text-secret}}
"""
    async with open_components(home, configure(home, more)) as server:
        for name, hidden in (("broken", SECRET), ("literal", "plain-text-secret")):
            await server.ada.send(f"/admin/mcp/servers/{name}/restart")
            page = await wait_for(server, f"/admin/mcp/servers/{name}", r"no luck with \*\*\*.*no luck with \*\*\*")
            assert "down since" in page
            assert hidden not in page + read_words(await server.ada.read("/admin/mcp"))


async def test_a_server_is_added_after_it_has_answered_and_its_secrets_go_into_secrets_env(home: Home) -> None:
    async with open_components(home, configure(home).replace(', TOKEN: "${SMALL_TOKEN}"', "")) as server:
        added = await server.olga.send(
            "/admin/mcp/add",
            name="second",
            command=f"{sys.executable} '{QUICK}'",
            variables=f"STARTS={home.path / 'starts.txt'}",
            secrets=f"api_key={SECRET}",
            trusted="yes",
        )
        assert (added.status_code, added.headers["location"]) == (303, "/admin/mcp/servers/second?done=added")
        page = await wait_for(server, "/admin/mcp/servers/second", "up since")
        assert "second_pid tier 1" in page  # what it says of risk is believed
        assert (home.path / "secrets.env").read_text() == f"MCP_SECOND_API_KEY={SECRET}\n"
        assert "api_key: ${MCP_SECOND_API_KEY}" in server.text and SECRET not in server.text + page
        assert server.text.startswith("# Ours.")
        again = await server.olga.send("/admin/mcp/add", name="second", command="true")
        assert again.status_code == 409


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"command": f"{sys.executable} -c 'raise SystemExit(\"wrong version\")'"}, "wrong version"),
        ({"command": "no-such-program-here"}, "there is no program"),
        ({"url": "http://127.0.0.1:9/mcp"}, "cannot be reached"),
        ({"command": "true", "url": "http://127.0.0.1:9/mcp"}, "either a command or an address"),
        ({"command": "'open"}, "The command cannot be read."),
        ({"command": "true", "secrets": f"{SECRET}"}, "Line 1 is not NAME=value."),
        ({"command": "true", "name": "Not A Name"}, "this cannot be a name"),
    ],
)
async def test_a_server_that_does_not_answer_or_is_wrong_is_not_written_down_and_says_why(
    home: Home, typed: dict[str, str], told: str
) -> None:
    async with open_components(home, f"# Ours.\n{LAB}") as server:
        before = server.text
        refused = await server.olga.send("/admin/mcp/add", **{"name": "bad", **typed})
        assert refused.status_code >= 400
        assert told in read_words(refused.text).replace("&#39;", "'")
        assert SECRET not in refused.text
        assert (server.text, (home.path / "secrets.env").exists()) == (before, False)


async def test_a_public_server_is_added_by_its_command_and_its_tools_are_there(home: Home) -> None:
    async with open_components(home, LAB) as server:
        added = await server.olga.send("/admin/mcp/add", name="time", command=f"{sys.executable} -m mcp_server_time")
        assert added.status_code == 303, read_words(added.text)
        await wait_for(server, "/admin/mcp/servers/time", "time_get_current_time tier 3")
        names = [spec.name for spec in await server.denizen.mcp_toolsets[0].list_tools()]
        assert "time_convert_time" in names


async def test_members_see_nothing_and_admins_add_nothing(home: Home) -> None:
    async with open_components(home, LAB) as server, server.web.client() as client:
        for path in ("/admin/mcp", "/admin/mcp/add"):
            assert (await client.get(path, headers={"x-api-key": "key-of-ann"})).status_code == 403
        assert (await server.ada.send("/admin/mcp/add", name="x", command="true")).status_code == 403
