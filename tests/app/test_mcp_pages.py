"""The MCP servers of a home folder on their pages, with real programs: state, output, restart, adding after a check."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from httpx2 import Response

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


class EditForm(HTMLParser):
    """The fields of the form that changes a server, as a browser would send them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._area = self._choice = ""
        self.feed(page[page.index('class="stack settings"') :])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        match tag:
            case "input":
                self.values[given["name"]] = given["value"]
            case "textarea":
                self._area = given["name"]
                self.values[self._area] = ""
            case "select":
                self._choice = given["name"]
            case "option" if "selected" in given:
                self.values[self._choice] = given["value"]
            case _:
                pass

    def handle_endtag(self, tag: str) -> None:
        self._area = "" if tag == "textarea" else self._area

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area] += data.removeprefix("\n")


async def change(server: ComponentWebFixture, secrets: str = "", /, *, check: bool = False, **typed: str) -> Response:
    """Opens the form of the server "small", types into it and sends it."""
    path = "/admin/mcp/servers/small"
    assert f'href="{path}/edit"' in await server.olga.read(path)
    fields = EditForm(await server.olga.read(f"{path}/edit")).values
    assert [name for name in typed if f"mcp.servers.small.{name}" not in fields] == []
    changed = {f"mcp.servers.small.{name}": text for name, text in typed.items()} | {"secrets": secrets}
    return await server.olga.send(f"{path}/edit", **fields | changed | ({"check": "yes"} if check else {}))


async def test_a_server_is_changed_by_a_form_that_shows_what_changes_and_keeps_what_it_hides(home: Home) -> None:
    home.add_file("secrets.env", f"SMALL_TOKEN={SECRET}\n", 0o600)
    starts = home.path / "starts.txt"
    async with open_components(home, configure(home)) as server:
        before = server.text
        fields = EditForm(await server.olga.read("/admin/mcp/servers/small/edit")).values
        assert fields["mcp.servers.small.env"] == "STARTS: ***\nTOKEN: ${SMALL_TOKEN}"
        assert {f"mcp.servers.small.{name}" for name in ("args", "timeout_s", "start_timeout_s", "cwd")} <= set(fields)
        env = f"{fields['mcp.servers.small.env']}\r\nPLACE: harbour"
        typed: dict[str, str] = {"timeout_s": "20", "start_timeout_s": "25", "env": env}
        shown = await change(server, check=True, **typed)
        told = read_words(shown.text)
        assert (shown.status_code, server.text) == (200, before)
        assert "It answers like this. Nothing is saved yet." in told and "+ timeout_s: 20" in told
        assert (str(starts) in shown.text, "PLACE: harbour" in told) == (False, True)
        assert starts.read_text().split() == ["start"]  # it was really tried
        saved = await change(server, "", check=False, **typed)
        assert (saved.status_code, saved.headers["location"]) == (303, "/admin/mcp/servers/small?done=changed")
        await wait_for(server, "/admin/mcp/servers/small", "up since")
        text = re.sub("['\"]", "", server.text)
        assert f"STARTS: {starts}, TOKEN: ${{SMALL_TOKEN}}, PLACE: harbour" in text
        assert "timeout_s: 20" in server.text and server.text.startswith("# Ours.")
        nothing = await change(server)
        assert nothing.headers["location"] == "/admin/mcp/servers/small?done=same"


async def test_new_secrets_of_a_server_go_into_secrets_env_and_its_other_values_may_be_moved_while_hidden(
    home: Home,
) -> None:
    home.add_file("secrets.env", f"SMALL_TOKEN={SECRET}\n", 0o600)
    async with open_components(home, configure(home)) as server:
        saved = await change(server, "KEY=sk-new-one-of-many", env="TOKEN: ${SMALL_TOKEN}\nSTARTS: ***")
        assert saved.status_code == 303, read_words(saved.text)
        assert (home.path / "secrets.env").read_text() == f"SMALL_TOKEN={SECRET}\nMCP_SMALL_KEY=sk-new-one-of-many\n"
        assert str(home.path / "starts.txt") in server.text and "KEY: '${MCP_SMALL_KEY}'" in server.text
        assert "***" not in server.text and "sk-new" not in server.text
        invented = await change(server, env="OTHER: ***")
        assert (invented.status_code, "there is none here" in invented.text) == (400, True)


async def test_a_change_of_a_server_that_does_not_answer_or_cannot_be_used_is_refused_at_its_field(home: Home) -> None:
    home.add_file("secrets.env", f"SMALL_TOKEN={SECRET}\n", 0o600)
    async with open_components(home, configure(home)) as server:
        before = server.text
        for check in (True, False):
            down = await change(server, check=check, command="no-such-program-here")
            assert (down.status_code, "there is no program" in down.text) == (503, True)
            assert 'value="no-such-program-here"' in down.text
            wrong = await change(server, check=check, timeout_s="soon")
            assert (wrong.status_code, 'id="mcp.servers.small.timeout_s-faults"' in wrong.text) == (400, True)
            both = await change(server, check=check, url="http://127.0.0.1:9/mcp")
            assert (both.status_code, "either command or url" in both.text) == (400, True)
        late = await server.olga.send("/admin/mcp/servers/small/edit", digest="0" * 64)
        assert late.status_code == 409
        assert (await server.ada.send("/admin/mcp/servers/small/edit", check="yes")).status_code == 403
        assert "/edit" not in await server.ada.read("/admin/mcp/servers/small")
        assert (await server.olga.send("/admin/mcp/servers/other/edit")).status_code == 404
        assert server.text == before


async def test_secrets_that_were_typed_into_a_refused_form_have_to_be_typed_again_as_it_says(home: Home) -> None:
    home.add_file("secrets.env", f"SMALL_TOKEN={SECRET}\n", 0o600)
    async with open_components(home, configure(home)) as server:
        words = "Type it again. What you typed here was not saved"
        typed = f"KEY={SECRET}-new"
        refused = await server.olga.send("/admin/mcp/add", name="bad", command="no-such-program", secrets=typed)
        changed = await change(server, typed, command="no-such-program")
        shown = await change(server, typed, check=True)
        key = await server.olga.send("/admin/models/add-provider", name="lab", kind="openai", key=f"{SECRET}-new")
        for answer, field in ((refused, "secrets"), (changed, "secrets"), (shown, "secrets"), (key, "key")):
            assert words in read_words(answer.text)
            (tag,) = re.findall(rf'<[^>]*id="{field}"[^>]*>', answer.text)
            assert 'aria-invalid="true"' in tag and f'{field}-again"' in tag and f'id="{field}-again"' in answer.text
            assert f"{SECRET}-new" not in answer.text
        without = await server.olga.send("/admin/mcp/add", name="bad", command="no-such-program")
        assert words not in read_words(without.text)


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
