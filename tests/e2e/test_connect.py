"""`denizen connect google`: from the link to a token among the secrets, as the owner of an account goes the way."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.request import urlopen

import pytest
from anyio import to_thread

from tests.e2e.home import Home
from tests.e2e.process import ProcessResult
from tests.google_server import ADDRESS, CLIENT_ID, CLIENT_SECRET, SCOPE, GoogleServer, open_google_server

pytestmark = pytest.mark.anyio


@pytest.fixture
async def google() -> AsyncGenerator[GoogleServer]:
    async with open_google_server() as server:
        yield server


@pytest.fixture
def home(google: GoogleServer, tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.configure(
        "http://127.0.0.1:9/v1",
        rest=f'google: {{api_url: "{google.url}"}}\ntools:\n  google_drive: {{enabled: true}}\n',
    )
    client = {
        "installed": {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "redirect_uris": ["http://localhost"]}
    }
    (tmp_path / "client.json").write_text(json.dumps(client))
    return home


def connect(home: Home, *args: str) -> tuple[str, ProcessResult]:
    """Opens the link as a browser would, and returns what that saw at last, with the end of the command."""
    with home.start("connect", "google", *args) as running:
        link = running.out.await_text(r"^  (http\S+)$")[1]
        with urlopen(link) as page:
            seen = page.read().decode()
        return seen, running.finish()


async def test_a_consent_becomes_a_token_among_the_secrets_with_which_the_tools_work(
    google: GoogleServer, home: Home
) -> None:
    client = str(home.folder.parent / "client.json")
    seen, done = await to_thread.run_sync(lambda: connect(home, "gmail", "--client", client))
    assert (done.code, done.err) == (0, "")
    assert "close this page" in seen
    assert f"Connected to {ADDRESS}: gmail, google_drive." in done.out
    assert "Agents cannot use gmail yet" in done.out
    [token] = [each for each in google.refresh_tokens if each != "1//first"]
    assert google.refresh_tokens[token].split() == [
        f"{SCOPE}gmail.readonly",
        f"{SCOPE}gmail.compose",
        f"{SCOPE}drive.readonly",
        f"{SCOPE}drive.file",
    ]
    secrets = home.folder / "secrets.env"
    assert secrets.read_text() == f"GOOGLE_CLIENT_SECRET={CLIENT_SECRET}\nGOOGLE_REFRESH_TOKEN={token}\n"
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert "${GOOGLE_REFRESH_TOKEN}" in home.config.read_text()
    assert token not in home.config.read_text() + done.out
    checked = await to_thread.run_sync(lambda: home.do("doctor"))
    assert f"ok    google: google_drive of {ADDRESS} can be used" in checked.out


async def test_the_address_is_pasted_where_the_browser_runs_elsewhere(google: GoogleServer, home: Home) -> None:
    client = str(home.folder.parent / "client.json")

    def paste(link: str) -> str:
        try:
            urlopen(link)
        except OSError:
            return f"http://127.0.0.1:1/?code=4/00&state={link.partition('state=')[2].partition('&')[0]}"
        raise AssertionError("something listens on port 1")

    def go() -> ProcessResult:
        with home.start("connect", "google", "--paste", "--client", client) as running:
            running.type(paste(running.out.await_text(r"^  (http\S+)$")[1]) + "\n")
            return running.finish()

    done = await to_thread.run_sync(go)
    assert done.code == 0 and f"Connected to {ADDRESS}: google_drive." in done.out
    assert len(google.refresh_tokens) == 2


async def test_a_refusal_leaves_everything_as_it_was(google: GoogleServer, home: Home) -> None:
    google.is_allowing = False
    client = str(home.folder.parent / "client.json")
    seen, done = await to_thread.run_sync(lambda: connect(home, "--client", client))
    assert done.code != 0 and "Google gave no consent" in done.err and "access_denied" in done.err
    assert "close this page" in seen
    assert "REFRESH_TOKEN" not in home.config.read_text()


async def test_what_is_missing_is_said_before_anything_is_asked(home: Home) -> None:
    bare = await to_thread.run_sync(lambda: home.do("connect", "google"))
    assert bare.code != 0 and "--client FILE" in bare.err
    wrong = await to_thread.run_sync(lambda: home.do("connect", "google", "--client", str(home.config)))
    assert wrong.code != 0 and "Desktop app" in wrong.err
    unconnected = await to_thread.run_sync(lambda: home.do("doctor"))
    assert "FAIL  google" in unconnected.out and "denizen connect google" in unconnected.out
